package export

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tracefix/tracefix/profile"
)

// A maker builds profiles by hand: stacks are written as "a b c", root first.
type maker struct {
	p      *profile.Profile
	frames map[string]profile.FrameID
}

func newMaker() *maker {
	return &maker{p: &profile.Profile{Table: profile.NewTable()}, frames: map[string]profile.FrameID{}}
}

// frame returns the frame of a name such as "mod!Name" or "mod!Name@2", the second
// address in it.
func (m *maker) frame(name string) profile.FrameID {
	if id, ok := m.frames[name]; ok {
		return id
	}
	me := profile.Method{Name: name}
	addr := 0x7f0000000000 + 16*uint64(len(m.frames))
	base := name
	for i := range name {
		if name[i] == '@' {
			base = name[:i]
		}
	}
	me.Name = base
	for i := range base {
		if base[i] == '!' && i > 0 {
			me = profile.Method{Module: base[:i], Name: base[i+1:]}
			break
		}
	}
	switch {
	case name == profile.Bridge:
		me, addr = profile.Method{Name: name, Kind: profile.Synthetic}, 0
	case name[0] == '<':
		me, addr = profile.Method{Name: name, Kind: profile.Synthetic}, 0
	case me.Module == "vmlinux":
		me.Kind, addr = profile.Kernel, addr|0xffff<<48
	case me.Module == "libc.so.6":
		me.Kind = profile.Native
	}
	id := m.p.Table.AddFrame(profile.Frame{Method: m.p.Table.AddMethod(me), Addr: addr})
	m.frames[name] = id
	return id
}

func (m *maker) stack(frames ...string) (s profile.StackID) {
	for _, f := range frames {
		s = m.p.Table.Push(s, m.frame(f))
	}
	return s
}

func (m *maker) process(pid int64, name, line string) *profile.Process {
	p := &profile.Process{PID: pid, Name: name, CommandLine: line}
	m.p.Processes = append(m.p.Processes, p)
	return p
}

func (m *maker) thread(p *profile.Process, tid int64, name string) *profile.Thread {
	th := &profile.Thread{Process: p, TID: tid, Name: name}
	m.p.Threads = append(m.p.Threads, th)
	return th
}

func slicesOf(list ...profile.Slice) func(func(*profile.Slice) bool) {
	return func(yield func(*profile.Slice) bool) {
		for i := range list {
			s := list[i]
			if !yield(&s) {
				return
			}
		}
	}
}

const ms = 1_000_000

// example is a small profile with one of everything: two processes, repaired, bridged
// and cut samples, off-CPU time, a gap, a break, odd names, and tracks whose slices
// nest, overlap, are instants, have flows and details of every type.
func example() *profile.Profile {
	m := newMaker()
	m.p.Meta = profile.Meta{
		Source: "example.nettrace", Format: "nettrace 4", PointerSize: 8, Interval: time.Millisecond,
		Start: time.Date(2026, 11, 21, 10, 30, 0, 123456700, time.UTC), End: 400 * ms, DepthLimit: 100,
	}
	shop := m.process(42, "shop", `dotnet /srv/shop.dll --say "hi"`)
	web := m.process(77, "", "")

	main := m.thread(shop, 42, "Main")
	add := func(th *profile.Thread, at int64, typ profile.SampleType, cut profile.Cut, frames ...string) {
		th.Samples.Append(profile.Sample{Time: at, Type: typ, Cut: cut, Stack: m.stack(frames...)})
	}
	add(main, 5_699_888, profile.SampleManaged, profile.Whole, "<root>", "shop!Shop.Main(class System.String[])", "shop!Shop.Run()@1")
	add(main, 6_700_001, profile.SampleManaged, profile.Whole, "<root>", "shop!Shop.Main(class System.String[])", "shop!Shop.Run()@2", `shop!Shop.<Run>b__0(class "x\y";int32)`)
	add(main, 7_700_000, profile.SampleExternal, profile.Whole, "<root>", "shop!Shop.Main(class System.String[])", "System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)")
	add(main, 7_900_000, profile.SampleEvent, profile.Whole, "shop!Shop.Throws()")
	// Put right: Main and Run were cut off.
	main.Repairs.Append(profile.Repair{Index: main.Samples.Len(), Recorded: m.stack("shop!Shop.Deep()", "shop!Shop.Leaf()"), How: "both-sides", Restored: 2, Confidence: 0.98765})
	add(main, 8_700_000, profile.SampleManaged, profile.CutDepth, "shop!Shop.Main(class System.String[])", "shop!Shop.Run()@1", "shop!Shop.Deep()", "shop!Shop.Leaf()")
	// Bridged: only Main is known.
	main.Repairs.Append(profile.Repair{Index: main.Samples.Len(), Recorded: m.stack("shop!Shop.Other()"), How: "bridge", Restored: 1, Confidence: 0.2})
	add(main, 9_700_000, profile.SampleManaged, profile.CutDepth, "shop!Shop.Main(class System.String[])", profile.Bridge, "shop!Shop.Other()")
	// A pause of the sampler holds, the break behind it does not.
	add(main, 80*ms, profile.SampleError, profile.Whole, "shop!Shop.Main(class System.String[])")
	main.Breaks = []int64{80_400_000}
	add(main, 82*ms, profile.SampleManaged, profile.CutBroken, "?!?")

	pool := m.thread(shop, 57, ".NET ThreadPool \"Worker\"")
	for i := range int64(30) {
		at := 100*ms + i*ms
		add(main, at, profile.SampleExternal, profile.Whole, "shop!Shop.Main(class System.String[])")
		if i == 0 || i == 29 { // in between the sampler did not see it
			add(pool, at, profile.SampleManaged, profile.Whole, "shop!Shop.Pool()")
		}
	}
	m.thread(shop, 58, "never sampled")

	run := m.thread(web, 1<<40, "far")
	run.Samples.Append(profile.Sample{Time: 10 * ms, Type: profile.SampleCPU, Stack: m.stack("web!Web.Run()", "libc.so.6!read")})
	run.Samples.Append(profile.Sample{Time: 10_500_000, Dur: 19_500_000, Type: profile.SampleOffCPU, Cut: profile.CutBytes, Stack: m.stack("web!Web.Run()", "libc.so.6!read", "vmlinux!schedule")})
	run.Samples.Append(profile.Sample{Time: 30_250_000, Type: profile.SampleCPU, Stack: m.stack("web!Web.Run()")})

	m.p.Tracks = []*profile.Track{
		{Name: "GC", Group: "gc", Process: shop, Nested: true, Slices: slicesOf(
			profile.Slice{Start: 10 * ms, Dur: 5 * ms, Name: "GC #1", Category: "gc", FlowOut: 9, Args: []profile.Arg{
				{Key: "gen", Value: int64(2)}, {Key: "reason", Value: "Alloc\u2028\"small\""}, {Key: "blocking", Value: true},
				{Key: "bytes", Value: uint64(1) << 63}, {Key: "ratio", Value: 0.25}, {Key: "more", Value: json.RawMessage(`{"a":[1,null]}`)},
			}},
			profile.Slice{Start: 10 * ms, Dur: 1_500_500, Name: "suspended", Category: "gc"},
			profile.Slice{Start: 12 * ms, Dur: 3 * ms, Name: "mark", Category: "gc", FlowIn: 9},
			profile.Slice{Start: 20 * ms, Name: "requested", Category: "gc", Instant: true},
			profile.Slice{Start: 390 * ms, Dur: 10 * ms, Name: "GC #2", Category: "gc", Open: true},
		)},
		{Name: "Requests", Group: "activities", Process: shop, Slices: slicesOf(
			profile.Slice{Start: 1 * ms, Dur: 10 * ms, Name: "GET /a", Category: "http", ID: 7},
			profile.Slice{Start: 2 * ms, Dur: 3 * ms, Name: "connect", Category: "http", ID: 7},
			profile.Slice{Start: 4 * ms, Dur: 20 * ms, Name: "GET /b", Category: "http", ID: 8, FlowIn: 3, FlowOut: 4},
			profile.Slice{Start: 6 * ms, Dur: 10 * ms, Name: "late", Category: "http", ID: 7},
			profile.Slice{Start: 6 * ms, Name: "zero", Category: "http"},
		)},
		{Name: "", Group: "events", Thread: pool, Slices: slicesOf(
			profile.Slice{Start: 9 * ms, Instant: true, Name: "", Args: []profile.Arg{{Key: "\xff", Value: "\x00\x1f\xfe"}}},
		)},
	}
	m.p.Losses = []profile.Loss{{From: 80_400_000, To: 82 * ms, Thread: main, Events: 12}}
	return m.p
}

// random makes a profile with much of everything that may go wrong.
func random(seed uint64) *profile.Profile {
	rng := rand.New(rand.NewPCG(seed, 7))
	m := newMaker()
	for i := range 1 + rng.IntN(2) {
		p := m.process(int64(100*i+rng.IntN(50)), "p"+strconv.Itoa(i), "")
		for range 1 + rng.IntN(3) {
			th := m.thread(p, int64(rng.IntN(1000)), "")
			now := int64(rng.IntN(5 * ms))
			var frames []string
			for n := rng.IntN(400); n > 0; n-- {
				frames = frames[:rng.IntN(len(frames)+1)]
				for range rng.IntN(4) {
					name := "m!f" + strconv.Itoa(rng.IntN(6)) + "@" + strconv.Itoa(rng.IntN(2))
					if rng.IntN(9) == 0 {
						name = "<hidden>"
					}
					frames = append(frames, name)
				}
				s := profile.Sample{Time: now, Type: profile.SampleType(rng.IntN(6)), Stack: m.stack(frames...)}
				if s.Type == profile.SampleOffCPU || rng.IntN(30) == 0 {
					s.Dur = rng.Int64N(3 * ms)
				}
				th.Samples.Append(s)
				switch rng.IntN(20) {
				case 0:
					now += rng.Int64N(200 * ms)
				case 1: // the same time again
				case 2:
					th.Breaks = append(th.Breaks, now+rng.Int64N(ms))
					now += ms
				default:
					now += ms + rng.Int64N(ms/4)
				}
			}
		}
		var list []profile.Slice
		at := int64(0)
		for range rng.IntN(100) {
			at += rng.Int64N(3) * ms
			list = append(list, profile.Slice{Start: at, Dur: rng.Int64N(6) * ms, Instant: rng.IntN(5) == 0, Name: "s" + strconv.Itoa(rng.IntN(4)), Category: "c", ID: uint64(rng.IntN(5)), FlowIn: uint64(rng.IntN(3)), FlowOut: uint64(rng.IntN(3))})
		}
		m.p.Tracks = append(m.p.Tracks, &profile.Track{Name: "t", Group: "x", Process: p, Nested: rng.IntN(2) == 0, Slices: slicesOf(list...)})
	}
	return m.p
}
