package runtimeevents

import (
	"strings"

	"github.com/tracefix/tracefix/nettrace"
)

// A Tier is the optimization tier of a body of code.
type Tier int

// TierOSR is that of a method which was replaced while it ran: on-stack replacement.
const TierOSR Tier = 5

var tierNames = []string{
	"Unknown", "MinOptJitted", "Optimized", "QuickJitted", "OptimizedTier1", "OptimizedTier1OSR", "QuickJittedInstrumented", "OptimizedTier1Instrumented", "ReadyToRun",
}

// String returns the name of the tier, or "Unknown".
func (t Tier) String() string { return nameOf(tierNames, uint32(t)) }

// A Compilation is one body of code that the JIT compiler made.
type Compilation struct {
	Process int
	Thread  uint64
	Start   int64 // Unknown: the trace was recorded without MethodJittingStarted
	Stop    int64
	// Name is Namespace.Type.Method(args), as MethodLoadVerbose has it.
	Name        string
	Module      uint64 // the id under which module events name it
	Tier        Tier
	Version     uint64 // 0 for the first body; 1 and up for those of tiered compilation
	Dynamic     bool   // IL stub, DynamicMethod, compiled expression: IL is 0
	IL          uint32 // bytes
	Native      uint32 // bytes
	CodeBytes   uint64 // allocated for it, with what aligns it; 0: unknown
	ReadOnly    uint64 // data
	Stack       uint32 // of MethodJittingStarted
	HotCodeSize uint64
}

// Time is the time that the compilation took, 0 if the trace does not tell it.
func (c *Compilation) Time() int64 {
	if c.Start == Unknown {
		return 0
	}
	return max(0, c.Stop-c.Start) // events may be out of order
}

// Background reports whether tiered compilation compiled it on its own thread, so that
// nobody waited for it.
func (c *Compilation) Background() bool { return c.Version > 0 && c.Tier != TierOSR }

// JIT collects the compilations of a trace. The zero value is ready for use.
type JIT struct {
	Compilations []*Compilation // in order of their ends
	// Unfinished counts compilations whose end the trace does not hold.
	Unfinished int
	// Counts, if set, says which of these, and of Batches, count, by their start and the time by which they were
	// over; that is Unknown where the trace ended before.
	Counts func(start, until int64) bool
	// Batches are the runs of the background compiler, ns from start to stop.
	Batches []Batch

	open    map[threadKey][]*started // innermost last
	unended map[int]int              // Unfinished, by process
	batches map[int]int64
	modules map[moduleKey]string
}

// A moduleKey names a module of a process by the runtime's id.
type moduleKey struct {
	pid int
	id  uint64
}

// ModulePath is the file that a module was loaded from, empty if the trace does not tell it.
func (j *JIT) ModulePath(pid int, id uint64) string { return j.modules[moduleKey{pid, id}] }

// UnfinishedOf is how many of Unfinished a process has.
func (j *JIT) UnfinishedOf(pid int) int { return j.unended[pid] }

// A Batch is a run of the thread of tiered compilation.
type Batch struct {
	Process     int
	Start, Stop int64
	Methods     uint32
}

type started struct {
	method uint64
	c      Compilation
	over   bool // events of its thread were lost since: an end may be that of a later one
}

// Wants reports whether the collector would use the stack of the event.
func (*JIT) Wants(ev *nettrace.Event) bool { return runtimeID(ev) == IDMethodJittingStarted }

// Event takes an event. It should have all events, also those of other providers: they may tell
// that some were lost.
func (j *JIT) Event(ev *nettrace.Event, ns int64, stack uint32) {
	if ev.Lost > 0 {
		for _, s := range j.open[captureOf(ev)] {
			s.over = true
		}
	}
	switch ev.Metadata.Role {
	case nettrace.RoleModuleLoad, nettrace.RoleModuleDCStart, nettrace.RoleModuleDCStop:
		j.module(ev)
		return
	}
	switch runtimeID(ev) {
	case IDMethodJittingStarted:
		j.start(ev, ns, stack)
	case IDMemoryForJitCode:
		j.memory(ev)
	case IDMethodLoadVerbose:
		j.load(ev, ns)
	case IDBackgroundJitStart:
		if j.batches == nil {
			j.batches = map[int]int64{}
		}
		j.batches[ev.ProcessID] = ns
	case IDBackgroundJitStop:
		j.batch(ev, ns)
	}
}

// Finish counts what has not ended.
func (j *JIT) Finish() {
	for _, open := range j.open {
		j.unfinished(open, Unknown)
	}
	j.open = nil
}

func (j *JIT) unfinished(list []*started, until int64) {
	for _, s := range list {
		if j.Counts == nil || j.Counts(s.c.Start, until) {
			j.Unfinished++
			if j.unended == nil {
				j.unended = map[int]int{}
			}
			j.unended[s.c.Process]++
		}
	}
}

func (j *JIT) start(ev *nettrace.Event, ns int64, stack uint32) {
	cur := ev.Cursor()
	s := &started{method: cur.U64()}
	s.c = Compilation{Process: ev.ProcessID, Thread: ev.ThreadID, Start: ns, Stack: stack, Module: cur.U64()}
	cur.U32() // token
	s.c.IL = cur.U32()
	if cur.Err() != nil {
		return
	}
	if j.open == nil {
		j.open = map[threadKey][]*started{}
	}
	open := j.open[keyOf(ev)]
	if len(open) == maxNested {
		j.unfinished(open[:1], ns)
		open = open[1:]
	}
	j.open[keyOf(ev)] = append(open, s)
}

func (j *JIT) module(ev *nettrace.Event) {
	var m nettrace.Module
	if ev.Module(&m) != nil {
		return
	}
	if j.modules == nil {
		j.modules = map[moduleKey]string{}
	}
	j.modules[moduleKey{ev.ProcessID, m.ModuleID}] = m.ILPath.String()
}

func (j *JIT) memory(ev *nettrace.Event) {
	open := j.open[keyOf(ev)]
	if len(open) == 0 {
		return
	}
	s := open[len(open)-1]
	cur := ev.Cursor()
	if cur.U64() != s.method {
		return
	}
	cur.U64() // module
	s.c.HotCodeSize, s.c.ReadOnly, s.c.CodeBytes = cur.U64(), cur.U64(), cur.U64()
}

// load ends the compilation of its method; those inside it that are still open have failed.
func (j *JIT) load(ev *nettrace.Event, ns int64) {
	var m nettrace.Method
	if ev.Method(&m) != nil || m.Flags&nettrace.MethodJitted == 0 || m.Flags.Extent() != 0 {
		return
	}
	c := &Compilation{Process: ev.ProcessID, Thread: ev.ThreadID, Start: Unknown, Module: m.ModuleID}
	open := j.open[keyOf(ev)]
	for i := len(open) - 1; i >= 0; i-- {
		if open[i].method == m.MethodID {
			if !open[i].over {
				c = &open[i].c
			}
			j.unfinished(open[i+1:], ns)
			j.open[keyOf(ev)] = open[:i]
			break
		}
	}
	c.Stop, c.Name, c.Native = ns, methodName(&m), m.Size
	c.Tier, c.Version, c.Dynamic = Tier(m.Flags.Tier()), m.ReJITID, m.Flags&nettrace.MethodDynamic != 0
	j.Compilations = append(j.Compilations, c)
}

// methodName is the name as the reference library writes it: without the return type.
func methodName(m *nettrace.Method) string {
	sig := m.Signature.String()
	if i := strings.IndexByte(sig, '('); i >= 0 {
		sig = sig[i:]
	} else {
		sig = ""
	}
	return m.Namespace.String() + "." + m.Name.String() + sig
}

func (j *JIT) batch(ev *nettrace.Event, ns int64) {
	start, ok := j.batches[ev.ProcessID]
	if !ok {
		return
	}
	delete(j.batches, ev.ProcessID)
	if j.Counts != nil && !j.Counts(start, ns) {
		return
	}
	cur := ev.Cursor()
	cur.U16()
	cur.U32() // pending
	j.Batches = append(j.Batches, Batch{ev.ProcessID, start, ns, cur.U32()})
}
