package compat

import (
	"cmp"
	"context"
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// Read reads a trace as dotnet-trace convert does: dotnet-trace-convert.md sections 1
// and 2. Filters apply to processes and threads; times, rules and tracks are ignored.
func Read(ctx context.Context, open input.Opener, o *load.Options) (*Trace, *load.Info, error) {
	b := newBuilder()
	own := load.Options{Rules: load.Reference, NoSamples: true, Table: b.table, Observe: b.event}
	if o != nil {
		own.Source, own.DepthLimit, own.Processes, own.Threads, own.Warn = o.Source, o.DepthLimit, o.Processes, o.Threads, o.Warn
	}
	p, info, err := load.Profile(ctx, open, &own, b)
	if err != nil {
		return nil, nil, err
	}
	return b.finish(p), info, nil
}

// Begin implements input.Consumer.
func (b *builder) Begin(r *nettrace.Reader) { b.header = *r.Header() }

// Event does nothing: what is wanted comes by Observe.
func (b *builder) Event(*nettrace.Event) error { return nil }

// End implements input.Consumer.
func (b *builder) End() {}

// A thread is the state machine of section 1.4.
type thread struct {
	trace   *profile.Thread
	shown   bool    // the filters leave it
	b, c    float64 // ms of the last off-CPU and on-CPU event; b < 0: running
	bs, cs  joined
	suffix  string
	base    profile.StackID // process > (Non-Activities) > Threads > Thread
	frame   profile.FrameID
	initial work     // what it does where nothing else is known
	current *work    // nil: initial
	samples []Sample // once they are sorted
}

// An activity is one start/stop activity of section 1.6.
type activity struct {
	id      nettrace.GUID
	frame   profile.FrameID
	creator *activity
	start   float64 // ms
	dur     float64 // ms; 0: no stop yet, or none that the reference notices
	stopKey *work
	stopped bool
	above   *activity // creator, or one above it if that has stopped

	stack   profile.StackID // down to frame, below the process that it was last asked for
	process profile.FrameID
}

// running skips activities that have stopped. None starts again: those it passes lead
// straight to what it found the next time.
func (a *activity) running() *activity {
	to := a
	for to != nil && to.stopped {
		to = to.above
	}
	for a != to {
		above := a.above
		a.above = to
		a = above
	}
	return to
}

type builder struct {
	table  *profile.Table
	header nettrace.Header

	nonActivities, activities, threads, cpu, unmanaged profile.FrameID
	processes                                          map[*profile.Process]profile.FrameID
	known                                              map[*profile.Thread]*thread

	live     map[nettrace.GUID]*activity
	deferred *activity
	chain    []*activity

	works   map[workID]*work // scheduled or running
	log     []logged
	samples []drawnSample

	marking map[*profile.Process]map[*thread]uint32 // heaps that threads mark in this GC
	values  []nettrace.Value
}

func newBuilder() *builder {
	b := &builder{
		table:     profile.NewTable(),
		processes: map[*profile.Process]profile.FrameID{},
		known:     map[*profile.Thread]*thread{},
		live:      map[nettrace.GUID]*activity{},
		works:     map[workID]*work{},
		marking:   map[*profile.Process]map[*thread]uint32{},
	}
	b.nonActivities = b.frame("(Non-Activities)")
	b.activities = b.frame("(Activities)")
	b.threads = b.frame("Threads")
	b.cpu = b.frame("CPU_TIME")
	b.unmanaged = b.frame("UNMANAGED_CODE_TIME")
	return b
}

func (b *builder) method(name string) profile.MethodID {
	return b.table.AddMethod(profile.Method{Name: name, Kind: profile.Synthetic})
}

func (b *builder) frame(name string) profile.FrameID {
	return b.table.AddFrame(profile.Frame{Method: b.method(name)})
}

// process returns the frame of p, which is named at the end.
func (b *builder) process(p *profile.Process) profile.FrameID {
	f, ok := b.processes[p]
	if !ok {
		f = b.frame("Process")
		b.processes[p] = f
	}
	return f
}

func (b *builder) thread(t *profile.Thread) *thread {
	c := b.known[t]
	if c == nil {
		c = &thread{trace: t, frame: b.frame("Thread")}
		c.initial = work{thread: c, kind: workInitial}
		b.known[t] = c
	}
	return c
}

// before takes what happens in the reference's first pass: the suffixes of threads.
// A thread gets none from its very first event.
func (b *builder) before(c *thread, ev *load.Observed) {
	if ev.Metadata.Role == nettrace.RoleSample || ev.First {
		return
	}
	set := func(s string) {
		if c.suffix == "" {
			c.suffix = s
		}
	}
	id := ev.Metadata.EventID
	switch ev.Metadata.Provider {
	case nettrace.ProviderRuntime:
		switch id {
		case runtimeevents.IDFinalizersEnd, runtimeevents.IDFinalizersBegin:
			set(".NET Finalizer Thread")
		case idAdjustmentSample:
			set(".NET ThreadPool")
		case idIODequeue:
			c.suffix = ".NET IO ThreadPool Worker"
		case idMarkStackRoots, idMarkFinalizeQueueRoots, idMarkHandles, idMarkOlderGenerations, runtimeevents.IDMarkWithType:
			if len(ev.Payload) >= 4 {
				m := b.marking[c.trace.Process]
				if m == nil {
					m = map[*thread]uint32{}
					b.marking[c.trace.Process] = m
				}
				m[c] = binary.LittleEndian.Uint32(ev.Payload)
			}
		case runtimeevents.IDGCEnd:
			if m := b.marking[c.trace.Process]; len(m) > 1 {
				for mc, heap := range m {
					if mc.suffix == "" {
						mc.suffix = ".NET Server GC Thread(" + strconv.FormatUint(uint64(heap), 10) + ")"
					}
				}
			}
			delete(b.marking, c.trace.Process)
		}
	case nettrace.ProviderRuntime + "Private":
		if id == idBackgroundGCBegin {
			set(".NET Background GC Thread")
		}
	case nettrace.ProviderFramework:
		if id == idDequeueWork || id == idTransferReceive {
			set(".NET ThreadPool Worker")
		}
	}
}

// event takes what happens in both passes of the reference.
func (b *builder) event(ev *load.Observed) {
	c := b.thread(ev.Thread)
	b.before(c, ev)
	b.work(c, ev)
	m := ev.Metadata
	id := m.EventID
	switch {
	case m.Role == nettrace.RoleSample:
		b.note(c, ev, ev.SampleType() == nettrace.SampleManaged)
	case m.Source == nettrace.SourceRuntime && !m.Role.NamesMethods():
		switch id {
		case runtimeevents.IDAllocationTick, idSampledObjectHigh, idSampledObjectLow:
			b.note(c, ev, true)
		case runtimeevents.IDExceptionCatchStart:
			b.start(c, ev, "ExceptionHandling", b.field(ev, "MethodName"))
		case runtimeevents.IDExceptionCatchStop:
			b.stop(c, ev)
		}
	case ev.Metadata.Provider == nettrace.ProviderTasks:
		switch id {
		case tplScheduled, tplStarted, tplWaitBegin, tplContinuationScheduled:
			b.note(c, ev, true)
		case tplWaitEnd:
			b.log = append(b.log, b.entry(c, ev, 0, true))
		}
	case m.Role == nettrace.RoleNone && m.Source != nettrace.SourceEventPipe && !ev.ActivityID.IsZero() && isActivityPath(ev.ActivityID, ev.ProcessID):
		switch ev.Opcode {
		case 1:
			name := ev.EventName()
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				name = name[:i]
			}
			b.start(c, ev, name, b.firstField(ev))
		case 2:
			b.stop(c, ev)
		}
	}
}

// note logs an event with its own stack.
func (b *builder) note(c *thread, ev *load.Observed, onCPU bool) {
	if ev.Wanted {
		b.log = append(b.log, b.entry(c, ev, ev.Stack(), onCPU))
	}
}

// entry is what an event means for the state machine of its thread.
func (b *builder) entry(c *thread, ev *load.Observed, stack profile.StackID, onCPU bool) logged {
	b.settle()
	w := c.doing()
	return logged{at: b.ms(ev.Time), thread: c, stack: stack, work: w, activity: w.activity.running(), onCPU: onCPU}
}

// take runs the state machine of section 1.4.
func (b *builder) take(c *thread, at float64, s joined, onCPU bool) {
	if onCPU {
		switch {
		case c.b == 0:
			b.emit(c.c, at, c.cs, b.cpu)
			c.b = -1
		case c.b < 0:
			b.emit(c.c, at, c.cs, b.cpu)
		default:
			b.emit(c.b, at, c.bs, b.unmanaged)
			c.b = -at
		}
		c.c, c.cs = at, s
		return
	}
	if c.b >= 0 {
		b.emit(c.b, at, c.bs, b.unmanaged)
	} else {
		b.emit(c.c, at, c.cs, b.cpu)
	}
	c.b, c.bs = at, s
}

func (b *builder) emit(from, to float64, s joined, leaf profile.FrameID) {
	if from > 0 {
		b.samples = append(b.samples, drawnSample{Sample{Time: from, Metric: float32(to - from), Stack: b.table.Push(s.stack, leaf)}, s.thread})
	}
}

// A drawnSample is a sample and the thread that it is drawn on.
type drawnSample struct {
	Sample
	thread *thread
}

// sort sorts all samples, then those of each thread, as section 1.8 does, and returns the
// threads in the order of their first samples.
func (b *builder) sort() []*thread {
	sortAsReference(b.samples, func(x, y *drawnSample) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Stack, y.Stack))
	})
	var threads []*thread
	for i := range b.samples {
		s := &b.samples[i]
		if len(s.thread.samples) == 0 {
			threads = append(threads, s.thread)
		}
		s.thread.samples = append(s.thread.samples, s.Sample)
	}
	b.samples = nil
	for _, c := range threads {
		sortAsReference(c.samples, func(x, y *Sample) int {
			return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Metric, y.Metric))
		})
	}
	return threads
}

// ms is the reference's time of a tick.
func (b *builder) ms(ticks int64) float64 {
	h := &b.header
	return float64(max(0, ticks-h.SyncQPC)) * 1000.0 / float64(h.Frequency)
}

// base returns the synthetic frames below the stacks of c that belong to an activity.
func (b *builder) base(c *thread, a *activity) profile.StackID {
	tab, process := b.table, b.process(c.trace.Process)
	if a == nil {
		if c.base == 0 {
			c.base = tab.Push(tab.Push(tab.Push(tab.Push(0, process), b.nonActivities), b.threads), c.frame)
		}
		return c.base
	}
	s := tab.Push(tab.Push(0, process), b.activities)
	b.chain = b.chain[:0]
	for ; a != nil; a = a.creator { // also those that have stopped
		if a.stack != 0 && a.process == process {
			s = a.stack
			break
		}
		b.chain = append(b.chain, a)
	}
	for _, a := range slices.Backward(b.chain) {
		s = tab.Push(s, a.frame)
		a.stack, a.process = s, process
	}
	return tab.Push(tab.Push(s, b.threads), c.frame)
}

// settle lets the last stop take effect.
func (b *builder) settle() {
	d := b.deferred
	if d == nil {
		return
	}
	b.deferred = nil
	c := d.creator.running()
	d.stopKey.activity = c
	if c != nil && c.id == d.id {
		b.live[d.id] = c
	} else {
		delete(b.live, d.id)
	}
	d.stopped = d.dur != 0
}

func (b *builder) start(c *thread, ev *load.Observed, name, extra string) {
	b.settle()
	var creator *activity
	if !ev.RelatedActivityID.IsZero() {
		creator = b.live[ev.RelatedActivityID]
	}
	if creator == nil {
		creator = c.doing().activity.running()
	}
	text := "Activity " + name + "(" + activityName(ev.ActivityID, ev.ProcessID)
	if extra != "" {
		text += "," + extra
	}
	text += ")"
	a := &activity{id: ev.ActivityID, frame: b.frame(text), creator: creator, above: creator, start: b.ms(ev.Time)}
	b.live[ev.ActivityID] = a
	c.doing().activity = a
}

func (b *builder) stop(c *thread, ev *load.Observed) {
	b.settle()
	a := b.live[ev.ActivityID]
	if a == nil {
		return
	}
	if a.dur == 0 {
		a.stopKey, a.dur = c.doing(), b.ms(ev.Time)-a.start
	}
	b.deferred = a
}

// firstField is `/name=value` if the first field of the payload is a string.
func (b *builder) firstField(ev *load.Observed) string {
	lay := ev.Layout()
	if lay == nil || len(lay.Fields) == 0 {
		return ""
	}
	vs, _ := ev.AppendValues(b.values[:0])
	b.values = vs
	if len(vs) == 0 || vs[0].Kind() != nettrace.KindString {
		return ""
	}
	return "/" + lay.Fields[0].Name + "=" + vs[0].String()
}

// field is the text of the field called name.
func (b *builder) field(ev *load.Observed, name string) string {
	lay := ev.Layout()
	if lay == nil {
		return ""
	}
	vs, _ := ev.AppendValues(b.values[:0])
	b.values = vs
	for i := range vs {
		if i < len(lay.Fields) && lay.Fields[i].Name == name && vs[i].Kind() == nettrace.KindString {
			return vs[i].String()
		}
	}
	return ""
}

var inParentheses = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\((\d+)\)`) })

// finish names the synthetic frames and sorts threads and samples.
func (b *builder) finish(p *profile.Profile) *Trace {
	for _, t := range p.Threads {
		b.thread(t).shown = true
	}
	b.replay()
	tab := b.table
	for proc, f := range b.processes {
		tab.SetMethod(f, b.method(processText(proc, p.Meta.PointerSize)))
	}
	out := &Trace{Table: tab}
	for _, c := range b.sort() {
		text := "Thread (" + strconv.FormatInt(c.trace.TID, 10) + ")"
		if c.suffix != "" {
			text += " (" + c.suffix + ")"
		}
		tab.SetMethod(c.frame, b.method(text))
		ct := &Thread{Name: text, Samples: c.samples}
		if m := inParentheses().FindStringSubmatch(text); m != nil {
			ct.TID, _ = strconv.ParseInt(m[1], 10, 64)
		}
		out.Threads = append(out.Threads, ct)
	}
	return out
}

// processText is the text of the process frame (section 1.5).
func processText(p *profile.Process, pointer int) string {
	bits := "32"
	if pointer == 8 {
		bits = "64"
	}
	pid := strconv.FormatInt(p.PID, 10)
	name, args := "Process("+pid+")", ""
	if cmd := p.CommandLine; cmd != "" {
		image, rest, found := strings.Cut(cmd, " ")
		if len(image) >= 2 && image[0] == '"' && image[len(image)-1] == '"' {
			image = image[1 : len(image)-1]
		}
		name = input.ProgramName(image)
		args = cmd
		if found {
			args = rest
		}
		if strings.HasPrefix(cmd, `"`) {
			if i := strings.IndexByte(cmd[1:], '"'); i >= 0 {
				args = cmd[i+2:]
			}
		}
	}
	return "Process" + bits + " " + name + " (" + pid + ") Args: " + args
}

// isActivityPath is the reference's test for an activity path of this process or of
// process 0.
func isActivityPath(id nettrace.GUID, pid int) bool {
	sum, check := pathSum(id)
	if pid == 0 {
		return sum&0xFFF00000 == check&0xFFF00000
	}
	return sum^uint32(pid) == check || sum == check
}

func pathSum(id nettrace.GUID) (sum, check uint32) {
	w := func(i int) uint32 { return binary.LittleEndian.Uint32(id[4*i:]) }
	return w(0) + w(1) + w(2) + 0x599D99AD, w(3)
}

// activityName is the reference's text of an activity id: with its faults on paths
// that hold numbers of several bytes.
func activityName(id nettrace.GUID, pid int) string {
	if id.IsZero() || !isActivityPath(id, pid) {
		return id.String()
	}
	sum, check := pathSum(id)
	out := []byte{'/'}
	if owner := sum ^ check; owner != 0 {
		out = append(out, '#')
		out = strconv.AppendUint(out, uint64(owner), 10)
	}
	sep := byte('/')
	at, end := 0, 12
	for at < end {
		nibble, second := id[at]>>4, false
		for nibble != 0 && nibble <= 10 {
			out = append(out, '/')
			out = strconv.AppendUint(out, uint64(nibble), 10)
			if second {
				break
			}
			nibble, second = id[at]&15, true
		}
		if nibble == 0 {
			break
		}
		if nibble <= 10 {
			at++
			continue
		}
		if nibble == 11 { // an overflow number follows
			if !second {
				nibble, second = id[at]&15, false
			} else {
				if at++; at >= end {
					break
				}
				nibble = id[at] >> 4
			}
			if nibble < 12 {
				return id.String()
			}
			sep = '$'
		}
		n := int(nibble) - 12
		var value uint32
		if !second {
			value = uint32(id[at] & 15)
		}
		at++
		n++
		if at+n > end {
			break
		}
		for i := n - 1; i >= 0; i-- {
			value = value<<8 + uint32(id[at+i])
		}
		out = append(out, sep)
		out = strconv.AppendUint(out, uint64(value), 10)
		at += n
	}
	return string(append(out, '/'))
}
