package activity_test

import (
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/activity"
)

// The tree of a request with a query in it.
func Example() {
	request, _ := activity.Encode(activity.NewPath(1, 2).WithProcess(4297), activity.EncoderOld)
	query, _ := activity.Encode(activity.NewPath(1, 2, 1).WithProcess(4297), activity.EncoderOld)

	b := activity.NewBuilder(nil)
	for _, e := range []activity.Event{
		{Time: 1e6, Name: "RequestStart", Opcode: activity.Start, ID: request},
		{Time: 2e6, Name: "QueryStart", Opcode: activity.Start, ID: query, Related: request},
		{Time: 5e6, Name: "QueryStop", Opcode: activity.Stop, ID: query},
		{Time: 6e6, Name: "RequestStop", Opcode: activity.Stop, ID: request},
	} {
		e.Thread, e.Process, e.Provider = 7, 4297, "Shop"
		b.Add(&e)
	}
	tree := b.Finish()
	for i := range tree.Rows {
		r := &tree.Rows[i]
		indent := 0
		for p := r.Parent; p >= 0; p = tree.Rows[p].Parent {
			indent += 2
		}
		path, _ := tree.Path(r)
		ns, _ := r.Duration()
		fmt.Printf("%s%s //%v %d ms %v\n", strings.Repeat(" ", indent), r.Name, path, ns/1e6, r.Status)
	}
	// Output:
	// Request //1/2 5 ms ok
	//   Query //1/2/1 3 ms ok
}

// An id as it stands in an event.
func ExampleDecode() {
	id, err := activity.ParseID("00000018-0000-0000-0000-0000f3929d59")
	if err != nil {
		fmt.Println(err)
		return
	}
	if path, ok := activity.Decode(id, false); ok {
		fmt.Println(path, "in process", path.Process())
	}
	// Output: 1/8 in process 2870
}
