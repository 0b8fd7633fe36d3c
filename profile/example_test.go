package profile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// Threads, their samples and the names of their frames: all that a writer of one's own needs.
func Example() {
	p, err := tracefix.Read(context.Background(), "../testdata/chain.nettrace.zst", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Select(profile.Selection{Processes: []string{"Lab"}, Threads: []string{"*Worker*"}, From: int64(time.Second), To: int64(2 * time.Second)})
	for _, th := range p.Threads {
		fmt.Println(th.Owner().Title(), th.Title(), th.TID, th.Samples.Written(), "samples")
	}
	th := p.Threads[0]
	for _, s := range th.Samples.All() {
		if s.Hidden { // not selected, but it tells when the sampler ticked
			continue
		}
		depth, leaf := 0, p.Table.MethodOf(p.Table.Frame(s.Stack)).Full()
		for id := s.Stack; id != 0; id = p.Table.Parent(id) { // to the root
			depth++
		}
		fmt.Println(time.Duration(s.Time), s.Type, "cut:", s.Cut, depth, "frames,", leaf)
		break
	}
	// Output:
	// Lab .NET ThreadPool Worker 3022 615 samples
	// Lab .NET ThreadPool Worker 3023 615 samples
	// Lab .NET ThreadPool Worker 3025 0 samples
	// 1.001449059s managed cut: depth 100 frames, System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()
}

// A sample speaks for the time until the next one, but not for longer than the sampler's period where
// that was late: a Timing knows, and what is added up by it is the same in every output.
func ExampleTiming() {
	p, err := tracefix.Read(context.Background(), "../testdata/chain.nettrace.zst", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	timing := p.Timing()
	var cpu, other time.Duration
	for _, th := range p.Threads {
		for st := range timing.Stretches(th) {
			if st.Type.OnCPU() {
				cpu += time.Duration(st.Nanos())
			} else {
				other += time.Duration(st.Nanos())
			}
		}
	}
	top := p.Top(profile.TopOptions{Raw: true})
	fmt.Println(cpu.Round(time.Millisecond), other.Round(time.Millisecond))
	fmt.Printf("%.0f %.0f\n", top.CPU, top.Wait)
	// Output:
	// 15.186s 6.491s
	// 15186 6491
}

// A profile that is made by hand: stacks are pushed on a table, root first.
func ExampleTable() {
	p := &profile.Profile{Table: profile.NewTable()}
	frame := func(name string) profile.FrameID {
		m := p.Table.AddMethod(profile.Method{Module: "Shop", Name: name, Kind: profile.Managed})
		return p.Table.AddFrame(profile.Frame{Method: m})
	}
	main := p.Table.Push(0, frame("Program.Main()"))
	order := p.Table.Push(main, frame("Orders.Take()"))
	price := p.Table.Push(order, frame("Prices.Of()"))

	th := &profile.Thread{TID: 7, Name: "Main", Process: &profile.Process{PID: 42, Name: "shop"}}
	for i, stack := range []profile.StackID{main, order, order, price, order} {
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: stack, Type: profile.SampleManaged})
	}
	p.Processes, p.Threads = append(p.Processes, th.Process), append(p.Threads, th)
	for r := range p.Top(profile.TopOptions{Total: true}).Rows() {
		fmt.Printf("%g of %g ms %s\n", r.CPUSelf, r.CPUTotal, r.Method)
	}
	// Output:
	// 1 of 5 ms Shop!Program.Main()
	// 3 of 4 ms Shop!Orders.Take()
	// 1 of 1 ms Shop!Prices.Of()
}
