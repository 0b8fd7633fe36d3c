package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/compat"
	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Compat reads a trace as dotnet-trace convert does: dotnet-trace-convert.md sections 1
// and 2. Filters apply to processes and threads; times, rules and tracks are ignored.
//
// What is not reproduced: the stitching of tasks, where the trace holds the events of
// the task library.
func Compat(ctx context.Context, open Open, o *Options) (*compat.Trace, *Info, error) {
	var own Options
	if o != nil {
		own = *o
	}
	own.Rules, own.Evidence = symbol.Reference, false
	l := newLoader(&own)
	l.compat = newCompatBuilder(l)
	if err := l.read(ctx, open); err != nil {
		return nil, nil, err
	}
	l.finish()
	return l.compat.finish(), &l.info, nil
}

// A compatThread is the state machine of section 1.4.
type compatThread struct {
	b, c    float64 // ms of the last off-CPU and on-CPU event; b < 0: running
	bs, cs  profile.StackID
	suffix  string
	base    profile.StackID // process > (Non-Activities) > Threads > Thread
	frame   profile.FrameID
	task    *task
	samples []compat.Sample
}

// A task is what an activity belongs to: without task events, a thread until its
// next wait for work.
type task struct{ current *compatActivity }

// A compatActivity is one start/stop activity of section 1.6.
type compatActivity struct {
	id      nettrace.GUID
	frame   profile.FrameID
	creator *compatActivity
	stopKey *task
	stopped bool
	above   *compatActivity // creator, or one above it if that has stopped

	stack   profile.StackID // down to frame, below the process that it was last asked for
	process profile.FrameID
}

// running skips activities that have stopped. None starts again: those it passes lead
// straight to what it found the next time.
func (a *compatActivity) running() *compatActivity {
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

type compatBuilder struct {
	l *loader

	nonActivities, activities, threads, cpu, unmanaged profile.FrameID
	processes                                          map[*process]profile.FrameID

	live     map[nettrace.GUID]*compatActivity
	deferred *compatActivity
	chain    []*compatActivity

	marking map[*process]map[*thread]uint32 // heaps that threads mark in this GC
	values  []nettrace.Value
}

func newCompatBuilder(l *loader) *compatBuilder {
	b := &compatBuilder{
		l:         l,
		processes: map[*process]profile.FrameID{},
		live:      map[nettrace.GUID]*compatActivity{},
		marking:   map[*process]map[*thread]uint32{},
	}
	b.nonActivities = b.frame("(Non-Activities)")
	b.activities = b.frame("(Activities)")
	b.threads = b.frame("Threads")
	b.cpu = b.frame("CPU_TIME")
	b.unmanaged = b.frame("UNMANAGED_CODE_TIME")
	return b
}

func (b *compatBuilder) method(name string) profile.MethodID {
	return b.l.table.AddMethod(profile.Method{Name: name, Kind: profile.Synthetic})
}

func (b *compatBuilder) frame(name string) profile.FrameID {
	return b.l.table.AddFrame(profile.Frame{Method: b.method(name)})
}

// process returns the frame of p, which is named at the end.
func (b *compatBuilder) process(p *process) profile.FrameID {
	f, ok := b.processes[p]
	if !ok {
		f = b.frame("Process")
		b.processes[p] = f
	}
	return f
}

func (b *compatBuilder) thread(t *thread) *compatThread {
	if t.compat == nil {
		c := &compatThread{frame: b.frame("Thread"), task: &task{}}
		tab := b.l.table
		c.base = tab.Push(tab.Push(tab.Push(tab.Push(0, b.process(t.proc)), b.nonActivities), b.threads), c.frame)
		t.compat = c
	}
	return t.compat
}

// before takes what happens in the reference's first pass: the suffixes of threads.
// A thread gets none from its very first event.
func (b *compatBuilder) before(t *thread, ev *nettrace.Event, k kind) {
	if k == kindSample || !t.seen {
		return
	}
	c := b.thread(t)
	set := func(s string) {
		if c.suffix == "" {
			c.suffix = s
		}
	}
	id := ev.Metadata.EventID
	switch ev.Metadata.Provider {
	case symbol.RuntimeProvider:
		switch id {
		case 13, 14:
			set(".NET Finalizer Thread")
		case 54:
			set(".NET ThreadPool")
		case 64:
			c.suffix = ".NET IO ThreadPool Worker"
		case 25, 26, 27, 28, 202:
			if len(ev.Payload) >= 4 {
				m := b.marking[t.proc]
				if m == nil {
					m = map[*thread]uint32{}
					b.marking[t.proc] = m
				}
				m[t] = binary.LittleEndian.Uint32(ev.Payload)
			}
		case 2: // GCStop
			if m := b.marking[t.proc]; len(m) > 1 {
				for mt, heap := range m {
					if mc := b.thread(mt); mc.suffix == "" {
						mc.suffix = ".NET Server GC Thread(" + strconv.FormatUint(uint64(heap), 10) + ")"
					}
				}
			}
			delete(b.marking, t.proc)
		}
	case "Microsoft-Windows-DotNETRuntimePrivate":
		if id == 11 {
			set(".NET Background GC Thread")
		}
	case "System.Diagnostics.Eventing.FrameworkEventSource":
		if id == 31 || id == 151 {
			set(".NET ThreadPool Worker")
		}
	}
}

const providerTPL = "System.Threading.Tasks.TplEventSource"

// event takes what happens in the second pass.
func (b *compatBuilder) event(t *thread, ev *nettrace.Event, k kind, now int64) {
	id := ev.Metadata.EventID
	switch {
	case k == kindSample:
		b.sample(t, ev, now, sampleType(ev.Payload) == profile.SampleManaged, true)
	case k == kindRuntime:
		switch id {
		case 10, 20, 32: // GCAllocationTick, GCSampledObjectAllocation
			b.sample(t, ev, now, true, true)
		case 57: // ThreadPoolWorkerThreadWait: the thread forgets its activity
			b.thread(t).task = &task{}
		case 250: // ExceptionCatchStart
			b.start(t, ev, "ExceptionHandling", b.field(ev, "MethodName"))
		case 251: // ExceptionCatchStop
			b.stop(t, ev)
		}
	case ev.Metadata.Provider == providerTPL:
		switch id {
		case 7, 8, 10, 12: // TaskScheduled, TaskExecuteStart, TaskWaitSend, AwaitTaskContinuationScheduled
			b.sample(t, ev, now, true, true)
		case 11: // TaskWaitStop
			b.sample(t, ev, now, true, false)
		}
	case k == kindOther && !ev.ActivityID.IsZero() && isActivityPath(ev.ActivityID, ev.ProcessID):
		switch ev.Opcode {
		case 1:
			name := ev.EventName()
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				name = name[:i]
			}
			b.start(t, ev, name, b.firstField(ev))
		case 2:
			b.stop(t, ev)
		}
	}
}

// sample runs the state machine of section 1.4.
func (b *compatBuilder) sample(t *thread, ev *nettrace.Event, now int64, onCPU, own bool) {
	if !t.wanted {
		return
	}
	c := b.thread(t)
	base := b.base(t)
	s := base
	if own {
		s = b.l.stack(t, ev, now, base)
	}
	at := b.ms(ev.Time)
	if onCPU {
		switch {
		case c.b == 0:
			b.emitCPU(c, at)
			c.b = -1
		case c.b < 0:
			b.emitCPU(c, at)
		default:
			b.emitBlocked(c, at)
			c.b = -at
		}
		c.c, c.cs = at, s
		return
	}
	if c.b >= 0 {
		b.emitBlocked(c, at)
	} else {
		b.emitCPU(c, at)
	}
	c.b, c.bs = at, s
}

func (b *compatBuilder) emitCPU(c *compatThread, at float64) {
	if c.c > 0 {
		c.samples = append(c.samples, compat.Sample{Time: c.c, Metric: float32(at - c.c), Stack: b.l.table.Push(c.cs, b.cpu)})
	}
}

func (b *compatBuilder) emitBlocked(c *compatThread, at float64) {
	if c.b > 0 {
		c.samples = append(c.samples, compat.Sample{Time: c.b, Metric: float32(at - c.b), Stack: b.l.table.Push(c.bs, b.unmanaged)})
	}
}

// ms is the reference's time of a tick.
func (b *compatBuilder) ms(ticks int64) float64 {
	h := &b.l.info.Header
	return float64(max(0, ticks-h.SyncQPC)) * 1000.0 / float64(h.Frequency)
}

// base returns the synthetic frames below the next sample of t.
func (b *compatBuilder) base(t *thread) profile.StackID {
	b.settle()
	c := b.thread(t)
	a := c.task.current.running()
	if a == nil {
		return c.base
	}
	tab, process := b.l.table, b.process(t.proc)
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
func (b *compatBuilder) settle() {
	d := b.deferred
	if d == nil {
		return
	}
	b.deferred = nil
	c := d.creator.running()
	d.stopKey.current = c
	if c != nil && c.id == d.id {
		b.live[d.id] = c
	} else {
		delete(b.live, d.id)
	}
	d.stopped = true
}

func (b *compatBuilder) start(t *thread, ev *nettrace.Event, name, extra string) {
	b.settle()
	c := b.thread(t)
	var creator *compatActivity
	if !ev.RelatedActivityID.IsZero() {
		creator = b.live[ev.RelatedActivityID]
	}
	if creator == nil {
		creator = c.task.current.running()
	}
	text := "Activity " + name + "(" + activityName(ev.ActivityID, ev.ProcessID)
	if extra != "" {
		text += "," + extra
	}
	text += ")"
	a := &compatActivity{id: ev.ActivityID, frame: b.frame(text), creator: creator, above: creator}
	b.live[ev.ActivityID] = a
	c.task.current = a
}

func (b *compatBuilder) stop(t *thread, ev *nettrace.Event) {
	b.settle()
	a := b.live[ev.ActivityID]
	if a == nil {
		return
	}
	if a.stopKey == nil {
		a.stopKey = b.thread(t).task
	}
	b.deferred = a
}

// firstField is `/name=value` if the first field of the payload is a string.
func (b *compatBuilder) firstField(ev *nettrace.Event) string {
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
func (b *compatBuilder) field(ev *nettrace.Event, name string) string {
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

var inParentheses = regexp.MustCompile(`\((\d+)\)`)

// finish names the synthetic frames and sorts threads and samples.
func (b *compatBuilder) finish() *compat.Trace {
	tab := b.l.table
	for p, f := range b.processes {
		tab.SetMethod(f, b.method(b.processText(p.trace)))
	}
	out := &compat.Trace{Table: tab}
	for _, p := range b.l.order {
		for _, t := range p.threads {
			c := t.compat
			if c == nil {
				continue
			}
			text := "Thread (" + strconv.FormatInt(t.trace.TID, 10) + ")"
			if c.suffix != "" {
				text += " (" + c.suffix + ")"
			}
			tab.SetMethod(c.frame, b.method(text))
			if len(c.samples) == 0 || !t.wanted {
				continue
			}
			slices.SortStableFunc(c.samples, func(a, b compat.Sample) int {
				return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Stack, b.Stack))
			})
			ct := &compat.Thread{Name: text, Samples: c.samples}
			if m := inParentheses.FindStringSubmatch(text); m != nil {
				ct.TID, _ = strconv.ParseInt(m[1], 10, 64)
			}
			out.Threads = append(out.Threads, ct)
		}
	}
	slices.SortFunc(out.Threads, func(x, y *compat.Thread) int {
		first := func(t *compat.Thread) (float64, profile.StackID) {
			// By (time, stack), not by metric.
			s := t.Samples[0]
			for _, o := range t.Samples {
				if o.Time > s.Time {
					break
				}
				s.Stack = min(s.Stack, o.Stack)
			}
			return s.Time, s.Stack
		}
		xt, xs := first(x)
		yt, ys := first(y)
		return cmp.Or(cmp.Compare(xt, yt), cmp.Compare(xs, ys))
	})
	return out
}

// processText is the text of the process frame (section 1.5).
func (b *compatBuilder) processText(p *profile.Process) string {
	bits := "32"
	if b.l.info.Header.PointerSize == 8 {
		bits = "64"
	}
	pid := strconv.FormatInt(p.PID, 10)
	name, args := "Process("+pid+")", ""
	if cmd := p.CommandLine; cmd != "" {
		image, rest, found := strings.Cut(cmd, " ")
		if len(image) >= 2 && image[0] == '"' && image[len(image)-1] == '"' {
			image = image[1 : len(image)-1]
		}
		name = programName(image)
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
