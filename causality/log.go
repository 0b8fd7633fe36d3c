package causality

import (
	"encoding/binary"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A Log keeps events, some ten bytes each, until the names of their frames are known: these stand
// at the end of a trace. Of samples that are as those around them on their thread, as most are, it
// keeps the first and the last; of a standstill that is not a collection's, of which there is one
// for each time that threads were sampled, its end and how long it was. The zero value is empty,
// and all in memory.
type Log struct {
	// Spool (a profile.Spool) takes what does not fit into memory. Its Err is to be asked when
	// events were read.
	Spool *spool.Spool
	// Interval is the distance of the samples of a thread, ns; 0: not known. Of those that are
	// taken on CPUs only what is no farther apart than the next sample of a thread that runs on is
	// one stretch.
	Interval int64

	chunks  []logPiece
	b       []byte
	n       int
	state   logState
	numbers map[string]uint32 // of strings
	strings []string
	threads map[threadKey]uint32
	halts   map[uint32]halt    // by process
	before  map[uint32]*before // likewise
	sampled bool
	awaited bool
	onCPU   bool
	offCPU  bool
	// What was met lately, by a part of it.
	lateThreads [64]logMet[threadKey]
	lateStrings [64]logMet[string]
}

// A logMet is a thing with its number in a Log; the zero value is of none.
type logMet[T comparable] struct {
	thing T
	next  uint32 // the number behind its own
}

// logState is what both the writer and the reader of a Log know of the events before.
type logState struct {
	time    int64
	recent  [1 << 10]activity.ID // ids met lately, by their hash
	threads []logThread
}

type logThread struct {
	key   threadKey
	stack stacks.StackID
	id    activity.ID
	run   logRun
}

// A logRun is what is known of the samples of a thread that are alike.
type logRun struct {
	first    int64 // time of the one that the Log has
	last     int64 // of the newest
	samples  bool  // the newest event of the thread is one of them
	external bool
	onCPU    bool
}

// maxRun is how long samples that are alike are one run, ns: who reads the Log learns at its
// end that the thread stood where it did.
const maxRun = int64(1e9)

// goesOn reports whether e is a sample as those before it, and takes it then.
func (t *logThread) goesOn(e *Event, interval int64) bool {
	r := &t.run
	if !r.samples || e.OnCPU && e.Time-r.last > runsOn(interval) || e.Kind != Sample || e.Stack != t.stack || e.External != r.external || e.OnCPU != r.onCPU || e.Time-r.first > maxRun || e.Cut || e.HasID || e.Blocked != 0 {
		return false
	}
	r.last = e.Time
	return true
}

// begin notes that e is the newest event of the thread.
func (t *logThread) begin(e *Event) {
	alike := e.Kind == Sample && e.Stack != 0 && !e.Cut && !e.HasID && e.Blocked == 0
	t.run = logRun{first: e.Time, last: e.Time, samples: alike, external: e.External, onCPU: e.OnCPU}
}

// Flags of an event in a Log.
const (
	logExternal = 1 << iota
	logOnCPU
	logRuntime
	logNested
	logHasInner
	logHasID
	logSameID // as the event before on this thread
	logCut
	logRelated
	logStack
	logTask
	logNext
	logBlocked
	logNames
	logCall
	logSpan
	logHeld
	logUnsuffixed
	logLabel
)

const logChunk = 64 << 10

// A logPiece is some of the bytes of a Log, in the spool or in memory.
type logPiece struct {
	b    []byte
	at   int64 // in the spool, in place of b; 0: nowhere
	size int   // there
}

// Len returns the number of events.
func (l *Log) Len() int { return l.n }

// Sampled reports whether any of the events is a sample.
func (l *Log) Sampled() bool { return l.sampled }

// Awaited reports whether any of the events tells what code awaits a task.
func (l *Log) Awaited() bool { return l.awaited }

// OnCPU reports whether any of the events is a sample that was taken on a CPU.
func (l *Log) OnCPU() bool { return l.onCPU }

// OffCPU reports whether any of the events tells that a thread was off its CPU.
func (l *Log) OffCPU() bool { return l.offCPU }

// Add appends an event.
func (l *Log) Add(e *Event) {
	if l.threads == nil {
		l.threads, l.numbers = map[threadKey]uint32{}, map[string]uint32{}
	}
	n := l.thread(threadKey{e.Process, e.Thread})
	l.n++
	switch e.Kind {
	case Sample:
		l.sampled, l.onCPU, l.offCPU = true, l.onCPU || e.OnCPU, l.offCPU || e.Blocked > 0
	case TaskMade, TaskReady, TaskYields, TaskContinues, TaskTaken, TaskAwait, StepBegin:
		l.awaited = true
	case Start, Stop:
		b := l.before[e.Process]
		if b == nil {
			if l.before == nil {
				l.before = map[uint32]*before{}
			}
			b = &before{}
			l.before[e.Process] = b
		}
		b.take(e)
	}
	t := &l.state.threads[n]
	if t.goesOn(e, l.Interval) || l.halted(e) {
		return
	}
	l.endRun(n)
	l.append(n, e)
	t.begin(e)
}

// Before returns, by process, until when activities were open that began before its ids were on, where that is known.
func (l *Log) Before() map[uint32]int64 {
	ends := map[uint32]int64{}
	for process, b := range l.before {
		if end := b.end(); end > 0 {
			ends[process] = end
		}
	}
	return ends
}

// A halt is how far a process is on its way to a standstill that is not a collection's.
type halt struct {
	asked, stands bool
	from          int64
}

// halted follows the halts and tells the event that ends one how long it was. It reports whether
// e tells nothing else.
func (l *Log) halted(e *Event) bool {
	switch e.Kind {
	case HaltAsked, HaltBegin, HaltEnd:
	default:
		return false
	}
	bare := e.Stack == 0 && e.ID.IsZero() // of the thread that samples, which works for none
	if l.halts == nil {
		l.halts = map[uint32]halt{}
	}
	h := l.halts[e.Process]
	switch {
	case e.Kind == HaltAsked:
		l.halts[e.Process] = halt{asked: true}
	case e.Kind == HaltBegin && h.asked:
		l.halts[e.Process] = halt{stands: true, from: e.Time}
	case e.Kind == HaltEnd:
		if h.stands {
			e.Blocked = e.Time - h.from
			bare = false
		}
		delete(l.halts, e.Process)
	}
	return bare
}

// thread returns which of the threads has a key, a new one perhaps.
func (l *Log) thread(key threadKey) uint32 {
	at := &l.lateThreads[key.id%uint64(len(l.lateThreads))]
	if at.thing == key && at.next > 0 {
		return at.next - 1
	}
	n, ok := l.threads[key]
	if !ok {
		n = uint32(len(l.state.threads))
		l.threads[key] = n
		l.state.threads = append(l.state.threads, logThread{key: key})
	}
	*at = logMet[threadKey]{key, n + 1}
	return n
}

// endRun appends the last of the samples of a thread that are alike.
func (l *Log) endRun(n uint32) {
	t := &l.state.threads[n]
	if r := &t.run; r.last > r.first {
		l.append(n, &Event{Kind: Sample, Time: r.last, Stack: t.stack, External: r.external, OnCPU: r.onCPU, Held: r.onCPU})
	}
}

// append appends an event of a thread.
func (l *Log) append(n uint32, e *Event) {
	t := &l.state.threads[n]
	flags := l.flags(e, t)
	if len(l.b)+256 > cap(l.b) {
		l.full()
	}
	b := append(l.b, byte(e.Kind))
	b = binary.AppendUvarint(b, uint64(flags))
	b = binary.AppendVarint(b, e.Time-l.state.time)
	b = binary.AppendUvarint(b, uint64(n))
	if flags&logHasID != 0 && flags&logSameID == 0 {
		b = l.state.appendID(b, e.ID)
		t.id = e.ID
	}
	if flags&logRelated != 0 {
		b = l.state.appendID(b, e.Related)
	}
	if flags&logStack != 0 {
		b = binary.AppendVarint(b, int64(e.Stack)-int64(t.stack))
		t.stack = e.Stack
	}
	if flags&logTask != 0 {
		b = binary.AppendVarint(b, e.Task)
	}
	if flags&logNext != 0 {
		b = binary.AppendVarint(b, e.Next)
	}
	if flags&logBlocked != 0 {
		b = binary.AppendVarint(b, e.Blocked)
	}
	if flags&logNames != 0 {
		for _, s := range [...]string{e.Provider, e.Name, e.Text} {
			b = binary.AppendUvarint(b, uint64(l.number(s)))
		}
	}
	if flags&logLabel != 0 {
		b = binary.AppendUvarint(b, uint64(l.number(e.Label)))
	}
	l.state.time = e.Time
	l.b = b
}

// full begins a new piece.
func (l *Log) full() {
	if len(l.b) > 0 {
		if at := l.Spool.Put(l.b, 0, logChunk); at > 0 {
			l.chunks = append(l.chunks, logPiece{at: at, size: len(l.b)})
			l.b = l.b[:0]
			return
		}
		l.chunks = append(l.chunks, logPiece{b: l.b})
	}
	l.b = make([]byte, 0, logChunk)
}

func (l *Log) flags(e *Event, t *logThread) (f int) {
	set := func(flag int, on bool) {
		if on {
			f |= flag
		}
	}
	set(logExternal, e.External)
	set(logOnCPU, e.OnCPU)
	set(logHeld, e.Held)
	set(logRuntime, e.Runtime)
	set(logUnsuffixed, e.Unsuffixed)
	set(logCall, e.Call)
	set(logSpan, e.Span)
	set(logNested, e.Nested)
	set(logHasInner, e.HasInner)
	set(logHasID, e.HasID)
	set(logSameID, e.HasID && e.ID == t.id)
	set(logCut, e.Cut)
	set(logRelated, !e.Related.IsZero())
	set(logStack, e.Stack != 0)
	set(logTask, e.Task != 0)
	set(logNext, e.Next != 0)
	set(logBlocked, e.Blocked != 0)
	set(logLabel, e.Label != "")
	set(logNames, e.Provider != "" || e.Name != "" || e.Text != "")
	return f
}

// number interns a string.
func (l *Log) number(s string) uint32 {
	k := len(s)
	if k > 0 {
		k += int(s[0])
	}
	at := &l.lateStrings[k%len(l.lateStrings)]
	if at.thing == s && at.next > 0 {
		return at.next - 1
	}
	n, ok := l.numbers[s]
	if !ok {
		n = uint32(len(l.strings))
		l.strings = append(l.strings, s)
		l.numbers[s] = n
	}
	*at = logMet[string]{s, n + 1}
	return n
}

// slot is where an id is among the recent ones.
func (s *logState) slot(id activity.ID) uint32 {
	h := binary.LittleEndian.Uint64(id[:]) ^ uint64(binary.LittleEndian.Uint32(id[8:]))<<17
	return uint32(h*0x9E3779B97F4A7C15>>32) % uint32(len(s.recent))
}

// appendID appends the place of an id among the recent ones, or the id behind a place that
// has another one.
func (s *logState) appendID(b []byte, id activity.ID) []byte {
	k := s.slot(id)
	if s.recent[k] == id {
		return binary.AppendUvarint(b, uint64(k)<<1)
	}
	s.recent[k] = id
	b = binary.AppendUvarint(b, uint64(k)<<1|1)
	return append(b, id[:]...)
}

// A LogReader reads the events of a Log.
type LogReader struct {
	log    *Log
	chunks []logPiece
	b      []byte
	state  *logState
	buf    []byte // for what comes from the spool
}

// Read returns a reader at the first event. What it has read is gone from the Log, to
// which nothing must be added any more.
func (l *Log) Read() *LogReader {
	for n := range l.state.threads {
		l.endRun(uint32(n))
	}
	r := &LogReader{log: l, chunks: append(l.chunks, logPiece{b: l.b}), state: &logState{}}
	for _, t := range l.state.threads {
		r.state.threads = append(r.state.threads, logThread{key: t.key})
	}
	l.chunks, l.b = nil, nil
	return r
}

// Next reads the next event into e, or returns false behind the last one, and where the spool cannot be read.
func (r *LogReader) Next(e *Event) bool {
	for len(r.b) == 0 {
		if len(r.chunks) == 0 {
			return false
		}
		r.enter(&r.chunks[0])
		r.chunks[0] = logPiece{}
		r.chunks = r.chunks[1:]
	}
	kind := Kind(r.b[0])
	r.b = r.b[1:]
	flags := int(r.uvarint())
	s := r.state
	s.time += r.varint()
	t := &s.threads[r.uvarint()]
	*e = Event{
		Kind: kind, Time: s.time, Process: t.key.process, Thread: t.key.id,
		External: flags&logExternal != 0, OnCPU: flags&logOnCPU != 0, Held: flags&logHeld != 0, Runtime: flags&logRuntime != 0,
		Unsuffixed: flags&logUnsuffixed != 0, Call: flags&logCall != 0, Span: flags&logSpan != 0,
		Nested: flags&logNested != 0, HasInner: flags&logHasInner != 0, HasID: flags&logHasID != 0, Cut: flags&logCut != 0,
	}
	if e.HasID {
		if flags&logSameID == 0 {
			t.id = r.id()
		}
		e.ID = t.id
	}
	if flags&logRelated != 0 {
		e.Related = r.id()
	}
	if flags&logStack != 0 {
		t.stack = stacks.StackID(int64(t.stack) + r.varint())
		e.Stack = t.stack
	}
	if flags&logTask != 0 {
		e.Task = r.varint()
	}
	if flags&logNext != 0 {
		e.Next = r.varint()
	}
	if flags&logBlocked != 0 {
		e.Blocked = r.varint()
	}
	if flags&logNames != 0 {
		for _, to := range [...]*string{&e.Provider, &e.Name, &e.Text} {
			*to = r.log.strings[r.uvarint()]
		}
	}
	if flags&logLabel != 0 {
		e.Label = r.log.strings[r.uvarint()]
	}
	return true
}

// enter goes to a piece. Behind one that cannot be read there are no events.
func (r *LogReader) enter(p *logPiece) {
	if r.b = p.b; p.at == 0 {
		return
	}
	if r.buf == nil {
		r.buf = make([]byte, logChunk)
	}
	if r.b = r.buf[:p.size]; !r.log.Spool.Get(r.b, p.at) {
		r.b, r.chunks = nil, r.chunks[:1]
	}
}

func (r *LogReader) id() (id activity.ID) {
	k := r.uvarint()
	at := &r.state.recent[k>>1]
	if k&1 != 0 {
		r.b = r.b[copy(at[:], r.b):]
	}
	return *at
}

func (r *LogReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *LogReader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	return r.long()
}

// long reads a number of more than seven bits.
func (r *LogReader) long() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}
