package profile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTypeTally(t *testing.T) {
	add := func(x *TypeTally, n int, typ SampleType, moved bool) {
		for range n {
			x.Add(typ, moved)
		}
	}
	for _, c := range []struct {
		name            string
		managed, moved  int
		waiting, others int
		version         string
		untyped         bool
	}{
		{name: "nothing"},
		{name: "too few", moved: leastMoved - 1},
		{name: "none managed", moved: leastMoved, untyped: true},
		{name: "few managed", managed: 9, moved: 991, untyped: true},
		{name: "one in a hundred", managed: 10, moved: 990},
		{name: "one in a hundred of a version that is known for it", managed: 10, moved: 990, version: "9.0.5", untyped: true},
		{name: "one in ten of it", managed: 100, moved: 900, version: "10.0.1"},
		{name: "another version", managed: 10, moved: 990, version: "8.0.9"},
		{name: "idle", waiting: 100000, moved: 100},
		{name: "on CPUs", others: 1000, moved: 100},
	} {
		var x TypeTally
		add(&x, c.managed, SampleManaged, false)
		add(&x, c.moved, SampleExternal, true)
		add(&x, c.waiting, SampleExternal, false)
		add(&x, c.others, SampleCPU, true)
		x.Runtime(c.version)
		assert.Equal(t, c.untyped, x.Untyped(), c.name)
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		m      Method
		blocks bool
	}{
		{Method{"System.Private.CoreLib", "System.Threading.Monitor.Wait(class System.Object,int32)", Managed}, true},
		{Method{"System.Private.CoreLib", "System.Threading.LowLevelLifoSemaphore.WaitNative(int32)", Managed}, true},
		{Method{"System.Private.CoreLib", "System.Threading.Tasks.Task.InternalWaitCore(int32)", Managed}, true},
		{Method{"System.Private.CoreLib", "System.GC.WaitForPendingFinalizers()", Managed}, true},
		{Method{"System.Private.CoreLib", "System.GC.Collect(int32)", Managed}, false},
		{Method{"System.Net.Sockets", "Interop+Sys.Send(int32)", Managed}, true},
		{Method{"dynamicClass", "dynamicClass.IL_STUB_PInvoke(int32)", Managed}, true},
		{Method{"?", "0x7f00", Unresolved}, true},
		{Method{"?", "?", Managed}, true},
		{Method{"libc", "poll", Native}, true},
		{Method{"System.Private.CoreLib", "System.Threading.Tasks.Task.RunContinuations(class System.Object)", Managed}, false},
		{Method{"System.Private.CoreLib", "System.Threading.LowLevelSpinWaiter.Wait(int32)", Managed}, false}, // it spins
		{Method{"App", "App.Monitor.Wait()", Managed}, false},
		{Method{"App", "App.Work.Spin(int32)", Managed}, false},
	} {
		assert.Equal(t, c.blocks, c.m.blocks(), "%+v", c.m)
	}
}

// TestTyping: the innermost method tells, and events of contention where no method does.
func TestTyping(t *testing.T) {
	tab := NewTable()
	frame := func(n string) FrameID {
		return tab.AddFrame(Frame{Method: tab.AddMethod(Method{Module: "m", Name: n})})
	}
	work := tab.Push(0, frame("App.Work()"))
	wait := tab.Push(work, frame("System.Threading.Monitor.Wait(class System.Object)"))
	th := &Thread{Locked: []Interval{{150, 250}, {400, 401}}}
	for i, s := range []StackID{work, work, work, wait, work, 0, work} {
		th.Samples.Append(Sample{Time: int64(i) * 100, Stack: s, Type: SampleExternal})
	}
	th.Samples.Append(Sample{Time: 700, Stack: work, Type: SampleError})
	p := &Profile{Table: tab, Threads: []*Thread{th}}
	types := func() (all []SampleType) {
		for st := range p.Timing().Stretches(th) {
			all = append(all, st.Type)
		}
		return all
	}
	const m, e = SampleManaged, SampleExternal
	assert.Equal(t, []SampleType{e, e, e, e, e, e, e, SampleError}, types())
	p.Meta.Untyped = true
	assert.Equal(t, []SampleType{m, m, e, e, e, e, m, SampleError}, types())
	p.Select(Selection{CPUOnly: true})
	assert.Equal(t, []SampleType{m, m, m}, types())
	for i, s := range th.Samples.All() {
		assert.Equal(t, i != 7, s.Type == e, "what was recorded stays")
	}
}
