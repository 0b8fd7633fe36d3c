package load

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// maxSpan is beyond what one recording can last: 30 days. A time behind it is damage,
// and does not make the trace longer.
const maxSpan = int64(30 * 24 * time.Hour)

// event takes one event.
func (l *loader) event(ev *nettrace.Event) {
	now := l.r.Nanos(ev.Time)
	if l.o.Take != nil {
		l.taken, l.takenAt = ev, now
		l.o.Take(ev, now, l.takenStack)
	}
	if ev.Lost > 0 && l.weigh != nil {
		l.weigh.lost(ev)
	}
	m := ev.Metadata
	if m.Role == nettrace.RoleRuntimeInformation {
		_, version := input.RuntimeInformation(ev)
		l.types.Runtime(version)
	}
	switch m.Source {
	case nettrace.SourceRundown:
		l.rundown(ev, now)
		return
	case nettrace.SourceSystem:
		l.system(ev, now)
		return
	}
	if now < maxSpan {
		l.end = max(l.end, now)
	}
	t := l.thread(ev)
	if l.o.Observe != nil {
		l.observed = Observed{Event: ev, Thread: t.trace, First: !t.seen, Wanted: t.wanted, l: l, t: t, at: now}
		l.o.Observe(&l.observed)
	}
	l.touch(t, now)
	switch {
	case m.Role == nettrace.RoleSample:
		if ev.CaptureThreadID != l.lastSampler || len(l.sampler) == 0 {
			l.lastSampler = ev.CaptureThreadID
			l.sampler[ev.CaptureThreadID] = true
			l.lastWalk = math.MinInt64
		}
		typ := SampleType(ev)
		l.types.Look(typ, &t.look, ev.Stack.Len(), ev.Stack.Leaf())
		l.sample(t, ev, now, typ)
		l.walked(t, now)
	case m.Role == nettrace.RoleCPU:
		l.sample(t, ev, now, profile.SampleCPU)
	case m.Role == nettrace.RoleContextSwitch:
		l.switched(t, ev, now)
	case m.Role == nettrace.RolePageFault: // its stack is none: it is no evidence, but it can be counted
		if weights := l.weigh.wants(ev); len(weights) > 0 {
			l.keep(t, profile.Sample{Time: now, Type: profile.SampleEvent})
			l.weigh.add(t, ev, now, weights)
		}
	case m.Role == nettrace.RoleProcessInfo:
		l.processInfo(t.proc, ev)
	case m.Source == nettrace.SourceEventPipe:
	case m.Source == nettrace.SourceRuntime:
		l.lock(t, m.EventID, now)
		l.runtime(t, ev, now)
	default:
		kept := t.trace.Samples.Len()
		l.evidence(t, ev, now)
		if l.o.Evidence && ev.Metadata.Provider == nettrace.ProviderTasks {
			t.mark(ev, t.trace.Samples.Len() > kept && ev.Stack.Len() > 0)
		}
		if name := threadNameOf(ev); name != "" && t.trace.Name == "" {
			t.trace.Name = name
		}
	}
	if l.tracks != nil {
		l.tracks.event(ev, now, t)
	}
}

// An Observed is an event with what the loader knows of it.
type Observed struct {
	*nettrace.Event
	Thread *profile.Thread // always the same for one thread
	First  bool            // it is the first event of the thread
	Wanted bool            // no filter by id leaves the thread out; one by name may do so yet

	l  *loader
	t  *thread
	at int64
}

// Stack interns the stack of the event; its frames have names when the profile is returned.
func (x *Observed) Stack() profile.StackID { return x.l.stack(x.t, x.Event, x.at) }

// mostLocked bounds the memory for waits that few traces need.
const mostLocked = 1 << 18

// lock notes when t waits for a lock, as long as the samples may turn out not to tell it.
func (l *loader) lock(t *thread, id int, now int64) {
	switch id {
	case runtimeevents.IDContentionStart:
		t.wants = now
	case runtimeevents.IDContentionStop:
		if n := len(t.locked); t.wants > 0 && l.locked < mostLocked && !l.types.Told() && (n == 0 || t.locked[n-1].To <= t.wants) && t.wants < now {
			t.locked = append(t.locked, profile.Interval{From: t.wants, To: now})
			l.locked++
		}
		t.wants = 0
	}
}

// walked notes how long the sampler took for the stack of the newest sample of t: it walks those of
// all threads one after the other, and its time is that of the end of a walk
// (ep_rt_coreclr_walk_managed_stack_for_thread in ep-rt-coreclr.cpp).
func (l *loader) walked(t *thread, now int64) {
	if !l.o.Evidence || l.o.NoSamples || l.info.Header.Version >= 6 {
		return
	}
	if l.lastWalk != math.MinInt64 && now > l.lastWalk {
		t.trace.Walks.Add(t.trace.Samples.Len()-1, profile.WalkOf(time.Duration(now-l.lastWalk)))
	}
	l.lastWalk = now
}

// SampleType is what the runtime's sampler saw.
func SampleType(ev *nettrace.Event) profile.SampleType {
	switch ev.SampleType() {
	case nettrace.SampleExternal:
		return profile.SampleExternal
	case nettrace.SampleManaged:
		return profile.SampleManaged
	}
	return profile.SampleError
}

func (l *loader) sample(t *thread, ev *nettrace.Event, now int64, typ profile.SampleType) {
	l.info.Samples++
	if l.o.NoSamples {
		return
	}
	l.keep(t, profile.Sample{Time: now, Type: typ, Stack: l.stack(t, ev, now)})
}

// switched takes a thread that left its CPU.
func (l *loader) switched(t *thread, ev *nettrace.Event, now int64) {
	l.info.Samples++
	s := profile.Sample{Time: now, Type: profile.SampleOffCPU}
	if l.o.NoSamples || l.o.Rules == Reference {
		return // the reference knows no such samples
	}
	s.Dur = l.r.SwitchedOut(ev)
	s.Stack = l.stack(t, ev, now)
	l.keep(t, s)
}

// evidence keeps the stack of another event, and what it weighs.
func (l *loader) evidence(t *thread, ev *nettrace.Event, now int64) {
	weights := l.weigh.wants(ev)
	if l.weigh != nil && isStop(ev) {
		l.weigh.pair(t, ev, now, 0)
	}
	if ev.Stack.Len() == 0 && len(weights) == 0 {
		return
	}
	l.info.Stacked++
	if !l.o.Evidence && len(weights) == 0 {
		return
	}
	l.keep(t, profile.Sample{Time: now, Type: profile.SampleEvent, Stack: l.stack(t, ev, now)})
	if len(weights) > 0 {
		l.weigh.add(t, ev, now, weights)
	}
}

// runtime takes an event of the runtime's own provider.
func (l *loader) runtime(t *thread, ev *nettrace.Event, now int64) {
	if t.proc.names.Event(ev, now) != nil {
		l.info.BadNames++
	}
	if ev.Metadata.Role.NamesMethods() {
		return
	}
	l.evidence(t, ev, now)
	if ev.Metadata.Role == nettrace.RoleThreadCreated {
		if len(ev.Payload) >= 28 {
			c := l.threadOf(ev.ProcessID, uint64(binary.LittleEndian.Uint32(ev.Payload[24:])))
			if c.trace.Samples.Len() > 0 {
				l.births = append(l.births, birth{c, now}) // the id was used again
			}
		}
		return
	}
	if name := threadNameOf(ev); name != "" && t.trace.Name == "" {
		t.trace.Name = name
	}
}

// threadNameOf returns what an event tells about the thread that wrote it.
func threadNameOf(ev *nettrace.Event) string {
	switch ev.Metadata.Provider {
	case nettrace.ProviderRuntime:
		switch ev.Metadata.EventID {
		case 13, 14: // GCFinalizersStop, GCFinalizersStart
			return ".NET Finalizer Thread"
		case 50, 51, 57: // ThreadPoolWorkerThreadStart, -Stop, -Wait
			return ".NET ThreadPool Worker"
		case 64: // ThreadPoolIODequeue
			return ".NET IO ThreadPool Worker"
		}
	case nettrace.ProviderRuntime + "Private":
		if ev.Metadata.EventID == 11 { // BGCBegin
			return ".NET Background GC Thread"
		}
	case nettrace.ProviderFramework:
		switch ev.Metadata.EventID {
		case 31, 151: // ThreadPoolDequeueWork, ThreadTransferReceive
			return ".NET ThreadPool Worker"
		}
	}
	return ""
}

func (l *loader) rundown(ev *nettrace.Event, now int64) {
	if ev.Metadata.Role == nettrace.RoleRundownComplete {
		l.info.Rundown = true
	}
	if l.process(ev.ProcessID).names.Event(ev, now) != nil {
		l.info.BadNames++
	}
}

// Events of Universal.System whose role does not tell them apart.
const (
	systemProcess       = 0 // ExistingProcess
	systemProcessCreate = 1
	systemProcessExit   = 2
)

// system takes an event of Universal.System.
func (l *loader) system(ev *nettrace.Event, now int64) {
	var err error
	l.systems++
	switch ev.Metadata.Role {
	case nettrace.RoleProcess:
		var told nettrace.Process
		_ = ev.Process(&told) // a short one may have the name all the same
		name := told.Name.String()
		old := l.procs[ev.ProcessID]
		if ev.Metadata.EventID == systemProcessCreate && old != nil && (old.exited || old.runs(name)) {
			old.gone = true
			names := old.names // the kernel's, and those of what is named later of before, are still its own
			if old.exited {
				names = nil
			}
			l.newProcess(ev.ProcessID, names).since = l.systems
		}
		p := l.process(ev.ProcessID)
		if name != "" && p.trace.Name == "" {
			p.trace.Name = name
		}
	case nettrace.RoleProcessExit: // also written when only a thread ends, so it ends nothing by itself
		if p := l.procs[ev.ProcessID]; p != nil {
			p.exited = true
		}
	case nettrace.RoleMapping, nettrace.RoleSymbol:
		err = l.process(ev.ProcessID).names.Event(ev, now)
	case nettrace.RoleMappingMetadata:
		err = l.images.Add(ev)
	}
	if err != nil {
		l.info.BadNames++
	}
}

// runs reports whether p is another program from now on, as name is what it is called: it began one
// in its place (exec), which no exit goes before. Of the recorder's own copies of an event each has
// the same name.
func (p *process) runs(name string) bool {
	return name != "" && p.trace.Name != "" && name != p.trace.Name
}

// processInfo takes the command line.
func (l *loader) processInfo(p *process, ev *nettrace.Event) {
	c := ev.Cursor()
	cmd := c.UTF16().String()
	if cmd == "" {
		return
	}
	p.trace.CommandLine = cmd
	p.trace.Name = input.ProcessName(cmd)
}
