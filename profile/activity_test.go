package profile

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestActivitiesInEachOther: there may be as many as a file has, and what holds them all is no
// recursion, whose end nobody could recover from.
func TestActivitiesInEachOther(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	const n = 50_000
	p := &Profile{Table: NewTable()}
	for i := range int32(n) {
		a := Activity{Parent: i - 1, Name: "A", Started: true}
		if i%2 == 1 {
			a.Name = "" // its start is not in the trace
		}
		p.Activities.Add(&a)
	}
	p.Activities.Add(&Activity{Parent: -1})
	p.Activities.SetPath(n, "//1/7")
	p.Activities.Add(&Activity{Parent: n, Name: "B", Request: 3, Title: "GET /"})
	th := &Thread{}
	leaf := p.Table.Push(0, p.Table.AddFrame(Frame{Method: p.Table.AddMethod(Method{Name: "F"})}))
	for i, x := range []int32{n - 1, 10, n + 1, -1} {
		th.Work.Add(Work{From: int64(10 * i), To: int64(10*i + 9), Activity: x})
		th.Samples.Append(Sample{Time: int64(10*i + 5), Stack: leaf})
	}
	th.Samples.Append(Sample{Time: 100, Stack: leaf})
	p.Threads = []*Thread{th}
	p.ByActivity()
	var got [][]string
	var depths []int
	for _, s := range th.Samples.All() {
		var names []string
		for id := s.Stack; id != 0 && len(names) < 3; id = p.Table.Parent(id) {
			names = append(names, p.Table.MethodOf(p.Table.Frame(id)).Name)
		}
		got, depths = append(got, names), append(depths, p.Table.Depth(s.Stack))
	}
	assert.Equal(t, [][]string{{"F", "Activity A", "Activity A"}, {"F", "Activity A", "Activity A"}, {"F", "Activity B GET /", "Activity //1/7"}, {"F", NoActivity}, {"F", UnknownActivity}}, got)
	assert.Equal(t, []int{1 + n/2, 7, 3, 2, 2}, depths)
}
