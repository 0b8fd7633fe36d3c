package causality_test

import (
	"fmt"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// For whom threads worked in a recording of HTTP requests without samples: its events tell.
func Example() {
	file, err := os.Open("../internal/requests/testdata/http-more.nettrace.zst")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	unpacked, err := zstd.NewReader(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer unpacked.Close()
	r, err := nettrace.NewReader(unpacked, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	known, worked := 0, map[string]int{} // stretches by the activity that a thread worked for
	started := 0
	engine := causality.NewEngine(&causality.Options{
		Tree:      stacks.NewTree(), // of no stacks
		Role:      func(stacks.FrameID) causality.Role { return causality.Plain },
		Method:    func(f stacks.FrameID) uint32 { return f },
		Unsampled: true,
		Started:   func(*causality.Activity) { started++ },
		Segment: func(s *causality.Segment) {
			if s.Known {
				known++
			}
			if s.Activity != nil {
				worked[s.Activity.Name]++
			}
		},
	})
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		e := causality.Event{Time: r.Nanos(ev.Time), Process: uint32(ev.ProcessID), Thread: ev.ThreadID}
		causality.Decode(&e, ev)
		engine.Add(&e)
	}
	engine.Finish()
	fmt.Println(started, "activities,", known, "stretches of known work;", worked["Request"], "for a request,", worked["Connect"], "for a connection")
	// Output:
	// 343 activities, 822 stretches of known work; 397 for a request, 35 for a connection
}

// Where the 50 ms of a request went: its thread ran, stood at a lock, and ran again.
func ExampleExplainer() {
	const ms = int64(time.Millisecond)
	id, err := activity.Encode(activity.NewPath(1, 2), activity.EncoderOld)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Frames are numbers of the caller's; these are their names.
	names := []string{
		"", "Shop!Orders.Take()",
		"System.Private.CoreLib!System.Threading.Monitor.Enter(class System.Object,bool&)",
	}
	tree := stacks.NewTree()
	take := tree.Push(0, 1)
	enter := tree.Push(take, 2)

	var request *causality.Activity
	x := causality.NewExplainer(&causality.ExplainOptions{
		Options: causality.Options{
			Tree:   tree,
			Role:   func(f stacks.FrameID) causality.Role { return causality.RoleOf(names[f]) },
			Method: func(f stacks.FrameID) uint32 { return f },
		},
		Root: func(a *causality.Activity) bool { request = a; return a.Name == "Request" },
	})
	add := func(at int64, e causality.Event) {
		e.Time, e.Process, e.Thread, e.ID, e.HasID = at*ms, 42, 7, id, true
		x.Add(&e)
	}
	add(100, causality.Event{Kind: causality.Start, Provider: "Shop", Name: "Request"})
	for at := int64(101); at < 110; at++ {
		add(at, causality.Event{Kind: causality.Sample, Stack: take})
	}
	add(110, causality.Event{Kind: causality.LockBegin, Stack: enter})
	for at := int64(111); at < 140; at++ {
		add(at, causality.Event{Kind: causality.Sample, Stack: enter, External: true})
	}
	add(140, causality.Event{Kind: causality.LockEnd, Stack: enter})
	for at := int64(141); at < 150; at++ {
		add(at, causality.Event{Kind: causality.Sample, Stack: take})
	}
	add(150, causality.Event{Kind: causality.Stop, Provider: "Shop", Name: "Request"})
	x.Finish()

	e, ok := x.Explain(request, request.Start, request.Stop, nil, true)
	ids := x.Engine().IDs()
	_, path := ids.Text(request.ID)
	fmt.Println(ok, path)
	fmt.Println("ran", e.Time.CPU/ms, "ms, waited for a lock", e.Time.Of(causality.Lock)/ms, "ms, of", e.Time.Sum()/ms)
	for _, s := range e.Steps {
		fmt.Println(s.From/ms, s.To/ms, s.Cause)
	}
	for _, s := range e.Stuck {
		fmt.Println(names[tree.Frame(s.Stack)], s.Time/ms, "ms")
	}
	// Output:
	// true //1/2
	// ran 20 ms, waited for a lock 30 ms, of 50
	// 100 110 cpu
	// 110 140 lock
	// 140 150 cpu
	// System.Private.CoreLib!System.Threading.Monitor.Enter(class System.Object,bool&) 29 ms
}
