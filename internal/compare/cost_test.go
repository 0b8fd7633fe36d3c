package compare

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// Means and their errors are those of what a thing cost each request, whatever order that came in
// and however often a request was come back to; and they are the same to the last digit each time.
func TestSpread(t *testing.T) {
	const requests, things = 20_000, 40
	tr := &Trace{Profile: &profile.Profile{}, Requests: newRequests(false)}
	for id := 1; id <= requests; id++ {
		tr.Requests.add(id, []string{"GET", "GET", "POST"}[id%3], "/a", "", 7, 0, 1, true, fine)
	}
	c := newCosts(tr, &names{ids: map[string]int{}})
	made := func() ([]*sum, map[[2]int32]int64) {
		r := rand.New(rand.NewPCG(1, 2))
		s, want := newSpread(tr.Requests.aside, things), map[[2]int32]int64{}
		for thread := range 10 {
			for id := int32(1); id <= requests; id++ {
				for range r.IntN(4) {
					thing, ns := int32(r.IntN(things)), r.Int64N(1<<30)
					if id%7 == int32(thread)%7 { // of most requests it is one thread that works most
						ns *= 1000
					}
					s.add(id, thing, ns)
					if ns > 0 {
						want[[2]int32{id, thing}] += ns
					}
				}
			}
		}
		assert.True(t, tr.Requests.aside.InUse())
		sums := make([]*sum, things)
		for i := range sums {
			sums[i] = &sum{routes: map[string]pair{}}
		}
		got, last := map[[2]int32]int64{}, int32(0)
		s.each(func(request, thing int32, ns int64) {
			require.GreaterOrEqual(t, request, last)
			last = request
			got[[2]int32{request, thing}] += ns
			sums[thing].count(c.of(request).Route, ns)
		})
		require.Equal(t, want, got)
		return sums, want
	}
	sums, want := made()
	again, _ := made()
	for thing := range sums {
		require.Equal(t, sums[thing], again[thing])
		for route, method := range map[string]int32{"GET /a": 0, "POST /a": 2} {
			var total, squares float64
			n := 0
			for id := int32(1); id <= requests; id++ {
				if (id%3 == 2) == (method == 2) {
					ns := float64(want[[2]int32{id, int32(thing)}])
					total, squares, n = total+ns, squares+ns*ns, n+1
				}
			}
			m := c.routeMeans(sums[thing])[route]
			assert.Equal(t, meanOf(total, squares, n), m)
		}
	}
	assert.Nil(t, c.of(0))
	assert.Nil(t, c.of(requests+1))
	require.NoError(t, tr.Err())
}

// Requests of one kind share what they ask for, and URLs are kept for who selects by them.
func TestRequests(t *testing.T) {
	for _, urls := range []bool{false, true} {
		l := newRequests(urls)
		l.add(1, "GET", "/a/*", "/a/1", 7, 10, 5, true, fine)
		l.add(2, "GET", "/a/*", "/a/2", 7, 11, 5, false, fine)
		l.add(3, "", "/a/*", "/a/1", 7, 12, 5, true, fine)
		require.Equal(t, 3, l.Len())
		var list []Request
		for r := range l.all() {
			list = append(list, *r)
		}
		assert.Equal(t, urls, list[0].asked != list[1].asked)
		assert.EqualValues(t, -1, list[1].Duration)
		assert.Equal(t, "GET /a/*", l.of(&list[1]).Route)
		assert.Equal(t, "/a/*", l.of(&list[2]).Route)
		assert.Equal(t, map[bool]string{true: "/a/2"}[urls], l.of(&list[1]).url)
	}
}

// Of millions of requests the chosen ones are those that were wanted, in their order, and numbers
// by number are those that were set, in whatever order: most of both come from the disk.
func TestManyRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 2_000_000
	l := newRequests(false)
	by := l.numbers()
	for id := 1; id <= n; id++ {
		l.add(id, "GET", "/a", "", 7, int64(id)*10, 5, true, fine)
		if id%3 == 0 {
			by.set(id, int32(r.IntN(10)))
		}
	}
	want := map[int]int32{}
	for range 50 {
		id := 1 + r.IntN(n)
		want[id] = int32(id)
		by.set(id, int32(id))
	}
	id := 0
	chosen := l.chosen(func(r *Request) bool { return r.ID%2 == 0 })
	require.Equal(t, n/2, chosen.Len())
	for r := range chosen.all() {
		id += 2
		if int(r.ID) != id || r.start != int64(id)*10 || r.process != 7 {
			require.Fail(t, "another one", "%d: %+v", id, *r)
		}
	}
	require.Equal(t, n, id)
	for id, v := range want {
		require.Equal(t, v, by.get(id))
	}
	require.Zero(t, by.get(n+1<<20))
	require.Zero(t, by.get(-1))
	require.NoError(t, l.Err())
}

// What goes on for all of the time that is compared comes in no bursts, however much longer the trace
// is.
func TestBurstsOfATime(t *testing.T) {
	tr := batch(1, map[string]int{"App.Run()": 1000}, false)
	p := tr.Profile
	p.Threads = append(p.Threads, batch(2, map[string]int{"App.Run()": 1000}, false).Profile.Threads...)
	tr.from, tr.to = p.Meta.End/4, p.Meta.End/2
	p.Select(profile.Selection{From: tr.from, To: tr.to})
	n := &names{ids: map[string]int{}}
	rest := &newCosts(tr, n).total.of(n.id("App!App.Run()")).rest
	assert.Less(t, rest.squares, 1e-3*rest.time*rest.time, "of the first thread")
	assert.Less(t, rest.variance(tr.nanos()), 2e-3*rest.time*rest.time, "of both")
}

// Stacks of which each is one frame more than the last take memory as their frames do, not as their
// sum. What more frames take is compared with what few take: how much that is depends on the build, and
// with the race detector it is several times as much.
func TestStacksThatGrow(t *testing.T) {
	deep := func(name string, depth int) *Trace {
		table := profile.NewTable()
		th := &profile.Thread{Process: &profile.Process{PID: 1}, TID: 1}
		var s profile.StackID
		for i := range depth {
			s = table.Push(s, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Name: fmt.Sprint("f", i)})}))
			th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: s, Type: profile.SampleManaged})
		}
		end := int64(depth) * 1e6
		return &Trace{Name: name, Profile: &profile.Profile{Meta: profile.Meta{End: end}, Table: table, Processes: []*profile.Process{th.Process}, Threads: []*profile.Thread{th}}}
	}
	takes := func(depth int) uint64 {
		a, b := deep("a", depth), deep("b", depth)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := Traces(a, b)
		require.NoError(t, r.Folded(io.Discard))
		runtime.ReadMemStats(&after)
		assert.EqualValues(t, depth, r.a.total.of(0).samples)
		assert.EqualValues(t, 1, r.a.total.of(r.a.names.ids[fmt.Sprint("f", depth-1)]).samples)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := takes(1000), takes(8000)
	t.Logf("%d and %d bytes", few, many)
	assert.Less(t, many, 20*few, "the square would be 64 times as much")
}

// A service starts for half a second, and then one thread serves requests, of 3 ms each, so many in
// each 100 ms, while another one does its own work for half of the time.
func service(seconds, rate int) *Trace {
	table := profile.NewTable()
	stack := func(name string) profile.StackID {
		return table.Push(0, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Module: "App", Name: name})}))
	}
	start, serve, job := stack("App.Start()"), stack("App.Serve()"), stack("App.Job()")
	const ms = 1_000_000
	pr := &profile.Process{PID: 1}
	p := &profile.Profile{Table: table, Meta: profile.Meta{End: int64(seconds*1000+500) * ms}, Processes: []*profile.Process{pr}}
	tr := &Trace{Name: "service", Profile: p, Requests: newRequests(false)}
	worker, own := &profile.Thread{Process: pr, TID: 1}, &profile.Thread{Process: pr, TID: 2}
	for at := int64(0); at < 500*ms; at += ms {
		worker.Samples.Append(profile.Sample{Time: at, Stack: start, Type: profile.SampleManaged})
	}
	for at := int64(500 * ms); at < p.Meta.End; at += 100 * ms {
		for i := range int64(100) {
			now, kind := at+i*ms, profile.SampleExternal
			if i < 50 {
				kind = profile.SampleManaged
			}
			own.Samples.Append(profile.Sample{Time: now, Stack: job, Type: kind})
			kind = profile.SampleExternal
			if i < 3*int64(rate) {
				kind = profile.SampleManaged
			}
			worker.Samples.Append(profile.Sample{Time: now, Stack: serve, Type: kind})
			if i%3 == 0 && kind == profile.SampleManaged {
				id := tr.Requests.Len() + 1
				tr.Requests.add(id, "GET", "/a", "", 1, now, 3*ms, true, fine)
				p.Activities.Add(&profile.Activity{Request: id, Parent: -1})
				worker.Work.Add(profile.Work{From: now - 1, To: now + 3*ms - 1, Activity: int32(id - 1)})
			}
		}
	}
	p.Activities.Done()
	p.Threads = []*profile.Thread{worker, own}
	tr.unrecorded = tr.notRecorded(&session{})
	return tr
}

// TestWorkOfNoRequest: what a service does once, or all the while, is less of a request where there are
// more of them, and no request costs less for it.
func TestWorkOfNoRequest(t *testing.T) {
	for _, other := range []*Trace{service(5, 10), service(5, 20), service(15, 10), service(15, 20)} {
		for _, r := range []*Result{Traces(service(5, 10), other), Traces(other, service(5, 10))} {
			require.True(t, r.PerRequest)
			assert.Equal(t, Unclear, r.CPU.Verdict, "%v", r.Requests)
			assert.Equal(t, "nothing moved beyond noise", r.Summary(), "%v", r.Requests)
			require.Len(t, r.Methods, 3)
			for i := range r.Methods {
				assert.Equal(t, Unclear, r.Methods[i].Self.Verdict, "%s %v", r.Methods[i].Method, r.Requests)
				assert.Equal(t, Unclear, r.Methods[i].Total.Verdict)
			}
		}
	}
}

// What moved on the whole is told, though no method moved by itself.
func TestMovedOnTheWhole(t *testing.T) {
	work, slower := map[string]int{}, map[string]int{}
	for i := range 150 {
		name := fmt.Sprintf("App.M%d()", i)
		work[name], slower[name] = 8, 11
	}
	r := Traces(batch(1, work, false), batch(2, slower, false))
	assert.Equal(t, More, r.CPU.Verdict)
	assert.Equal(t, "1 moved beyond noise", r.Summary())
	assert.Regexp(t, `^All methods together: 1[0-9]+ -> 1[0-9]+ ms of CPU time in all, \+41 % \(95 %: `, r.verdict()[0])
}

// phases makes the trace of a program that runs 75 small methods below App.Old and 75 below App.New.
func phases(seed uint64, old, fresh int) *Trace {
	work := map[string]int{}
	for i := range 75 {
		work[fmt.Sprintf("Old%d", i)], work[fmt.Sprintf("New%d", i)] = old, fresh
	}
	tr := batch(seed, work, false)
	t := tr.Profile.Table
	callers := map[string]profile.FrameID{}
	for _, name := range []string{"Old", "New"} {
		callers[name] = t.AddFrame(profile.Frame{Method: t.AddMethod(profile.Method{Module: "App", Name: "App." + name + "()"})})
	}
	tr.Profile.Threads[0].Samples.Change(func(s *profile.Sample) bool {
		f := t.Frame(s.Stack)
		s.Stack = t.Push(t.Push(t.Parent(s.Stack), callers[t.MethodOf(f).Name[:3]]), f)
		return true
	})
	return tr
}

// TestOnlyTotalsMoved: a method that moved with the many small ones that it calls is told first, and not
// that nothing moved.
func TestOnlyTotalsMoved(t *testing.T) {
	r := Traces(phases(1, 12, 8), phases(2, 8, 12))
	require.Equal(t, Unclear, r.CPU.Verdict)
	for i := range r.Methods {
		require.False(t, r.Methods[i].Self.Moved())
	}
	assert.Regexp(t, `^App!App\.(Old|New)\(\) with what it calls: [0-9.]+ -> [0-9.]+ ms of CPU time in all, [-+][0-9]+ % \(95 %: .*\); so did 1 more\. No method moved by itself\.$`, r.verdict()[0])
	assert.NotContains(t, strings.Join(r.verdict(), "\n"), "othing moved")
	assert.Equal(t, "2 moved beyond noise", r.Summary())
}

// TestLostMethods: where the outer methods of one trace are lost, they did not become cheaper. What the
// others show is told nevertheless.
func TestLostMethods(t *testing.T) {
	work := map[string]int{}
	for i := range 100 {
		work[fmt.Sprintf("App.M%d()", i)] = 10
	}
	total := func(r *Result) *Figure {
		for i := range r.Methods {
			if r.Methods[i].Method == "App!App.Main()" {
				return &r.Methods[i].Total
			}
		}
		return nil
	}
	// cut takes the outer method from each so many samples.
	cut := func(tr *Trace, each int, told bool) *Trace {
		t, th, n := tr.Profile.Table, tr.Profile.Threads[0], 0
		bridge := t.Push(0, t.AddFrame(profile.Frame{Method: t.AddMethod(profile.Method{Name: profile.Bridge, Kind: profile.Synthetic})}))
		th.Samples.Change(func(s *profile.Sample) bool {
			if n++; n%each != 0 {
				return false
			}
			s.Stack = t.Push(bridge, t.Frame(s.Stack))
			if told {
				s.Cut = profile.CutDepth
			}
			return true
		})
		return tr
	}
	const says = "The outer methods of stacks are lost, for "
	for _, each := range []int{1, 2} {
		for _, r := range []*Result{Traces(batch(1, work, false), cut(batch(2, work, false), each, true)), Traces(cut(batch(2, work, false), each, true), batch(1, work, false))} {
			assert.Equal(t, Unclear, total(r).Verdict, "each %d", each)
			assert.Contains(t, strings.Join(r.verdict(), "\n"), says)
			assert.Equal(t, "nothing moved beyond noise", r.Summary())
		}
	}
	r := Traces(batch(1, work, false), cut(batch(2, work, false), 2, false)) // whole stacks that begin elsewhere
	assert.Equal(t, Less, total(r).Verdict)
	r = Traces(cut(batch(1, work, false), 8, true), cut(batch(2, work, false), 8, true))
	assert.Equal(t, Unclear, total(r).Verdict)
	assert.NotContains(t, strings.Join(r.verdict(), "\n"), says, "alike on both sides")
	slower := map[string]int{}
	for name := range work {
		slower[name] = 20
	}
	r = Traces(cut(batch(1, work, false), 8, true), cut(batch(2, slower, false), 8, true))
	assert.Equal(t, More, total(r).Verdict, "by more than is hidden")
}

// mixed serves cheap requests of 2 ms and dear ones of 10, so many of each ten.
func mixed(dear int) *Trace {
	table := profile.NewTable()
	serve := table.Push(0, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Module: "App", Name: "App.Serve()"})}))
	const ms = 1_000_000
	pr := &profile.Process{PID: 1}
	p := &profile.Profile{Table: table, Processes: []*profile.Process{pr}}
	tr := &Trace{Name: "service", Profile: p, Requests: newRequests(false)}
	th := &profile.Thread{Process: pr, TID: 1}
	now := int64(0)
	for id := 1; id <= 500; id++ {
		route, took := "/cheap", 2+id/10%2
		if id%10 < dear {
			route, took = "/dear", 10+id/10%2
		}
		from := now
		for range took {
			th.Samples.Append(profile.Sample{Time: now, Stack: serve, Type: profile.SampleManaged})
			now += ms
		}
		tr.Requests.add(id, "GET", route, "", 1, from, now-from, true, fine)
		p.Activities.Add(&profile.Activity{Request: id, Parent: -1})
		th.Work.Add(profile.Work{From: from - 1, To: now - 1, Activity: int32(id - 1)})
	}
	p.Activities.Done()
	p.Meta.End, p.Threads = now, []*profile.Thread{th}
	tr.unrecorded = tr.notRecorded(&session{})
	return tr
}

// TestLostMethodsByRoute: nor did they for the requests of a route.
func TestLostMethodsByRoute(t *testing.T) {
	outer := func(tr *Trace, cut bool) *Trace {
		t, th := tr.Profile.Table, tr.Profile.Threads[0]
		top := t.Push(0, t.AddFrame(profile.Frame{Method: t.AddMethod(profile.Method{Module: "App", Name: "App.Pool()"})}))
		lost := t.Push(0, t.AddFrame(profile.Frame{Method: t.AddMethod(profile.Method{Name: profile.Bridge, Kind: profile.Synthetic})}))
		n := 0
		th.Samples.Change(func(s *profile.Sample) bool {
			below := top
			if n++; cut && n%10 > 3 {
				below, s.Cut = lost, profile.CutDepth
			}
			s.Stack = t.Push(below, t.Frame(s.Stack))
			return true
		})
		return tr
	}
	for _, r := range []*Result{Traces(outer(mixed(5), false), outer(mixed(5), true)), Traces(outer(mixed(5), true), outer(mixed(5), false))} {
		require.True(t, r.PerRequest)
		i := slices.IndexFunc(r.Methods, func(m Method) bool { return m.Method == "App!App.Pool()" })
		require.GreaterOrEqual(t, i, 0)
		m := &r.Methods[i]
		require.Len(t, m.RoutesT, 2)
		for _, f := range append(m.RoutesT, Route{Figure: m.Total}) {
			assert.Greater(t, math.Abs(f.Change), 30.0)
			assert.Equal(t, Unclear, f.Verdict, f.Route)
		}
	}
}

// TestOtherRequests: where more of the requests are of a dear route, none costs more for it.
func TestOtherRequests(t *testing.T) {
	for _, pair := range [][2]int{{3, 7}, {7, 3}, {2, 9}, {5, 5}} {
		r := Traces(mixed(pair[0]), mixed(pair[1]))
		require.True(t, r.PerRequest)
		assert.Equal(t, "nothing moved beyond noise", r.Summary(), "%v", pair)
		assert.Equal(t, pair[0] != pair[1], strings.Contains(strings.Join(r.verdict(), "\n"), fmt.Sprintf("GET /cheap are %d.0 -> %d.0 %% of them", 100-10*pair[0], 100-10*pair[1])), r.verdict())
		require.Len(t, r.Methods, 1)
		assert.Equal(t, Unclear, r.Methods[0].Self.Verdict, "%v", pair)
		assert.Equal(t, Unclear, r.Methods[0].Total.Verdict, "%v", pair)
	}
}

// TestLostMethodsOfSums: stacks of a file of sums that are as deep as the limit may be cut there, and are
// not repaired.
func TestLostMethodsOfSums(t *testing.T) {
	work := map[string]int{"App.Same()": 900}
	deep := func(seed uint64, sums bool) *Trace {
		tr := batch(seed, work, false)
		t := tr.Profile.Table
		f := t.AddFrame(profile.Frame{Method: t.AddMethod(profile.Method{Module: "App", Name: "App.Deep()"})})
		tr.sums = sums
		tr.Profile.Threads[0].Samples.Change(func(s *profile.Sample) bool {
			leaf, from := t.Frame(s.Stack), t.Parent(s.Stack)
			if sums {
				from = 0
			}
			for t.Depth(from) < cutAt-1 {
				from = t.Push(from, f)
			}
			s.Stack = t.Push(from, leaf)
			return true
		})
		return tr
	}
	for _, r := range []*Result{Traces(deep(1, false), deep(2, true)), Traces(deep(2, true), deep(1, false))} {
		i := slices.IndexFunc(r.Methods, func(m Method) bool { return m.Method == "App!App.Main()" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, Unclear, r.Methods[i].Total.Verdict)
	}
}

// TestNearMethodsAreNotLost: what stands no farther out than stacks were recorded is seen on each.
func TestNearMethodsAreNotLost(t *testing.T) {
	before, after := phases(1, 12, 8), phases(2, 8, 12)
	tab := after.Profile.Table
	bridge := tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Name: profile.Bridge, Kind: profile.Synthetic})}))
	after.Profile.Threads[0].Samples.Change(func(s *profile.Sample) bool {
		s.Cut, s.Stack = profile.CutDepth, tab.Push(tab.Push(bridge, tab.Frame(tab.Parent(s.Stack))), tab.Frame(s.Stack))
		return true
	})
	want := map[string]string{"App!App.Main()": Unclear, "App!App.Old()": Less, "App!App.New()": More}
	r := Traces(before, after)
	for i := range r.Methods {
		if verdict, ok := want[r.Methods[i].Method]; ok {
			assert.Equal(t, verdict, r.Methods[i].Total.Verdict, r.Methods[i].Method)
			delete(want, r.Methods[i].Method)
		}
	}
	assert.Empty(t, want)
}
