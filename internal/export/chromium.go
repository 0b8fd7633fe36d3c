package export

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// Chromium writes trace event JSON in the object form. The form is the one that
// Perfetto, the Catapult viewer, speedscope and Chrome DevTools all read right
// (chromium-trace.md section 9): metadata first, then thread by thread B and E events
// in time order, E with the name and category of its B, raw UTF-8, at most three
// decimals. B and E, and not X: both ends of neighbouring spans are the same digits
// then, where a reader's float ts+dur would tear them.
//
// Frames that a repair put back have ",tracefix" behind their category, and the repairs are
// listed under the top-level key "tracefix", unless o.Plain. Of a weight other than time
// spans are as long as stacks weigh, and their threads are tracks to those who read it again.
func Chromium(w io.Writer, p *profile.Profile, o Options) error {
	p, weighed, err := o.weightAsTime(p)
	if err != nil {
		return err
	}
	c := &chromiumWriter{
		buffer: newBuffer(w), p: p, o: &o, weighed: weighed,
		ids:   newNumbers(p),
		tails: make([]atomic.Pointer[frameTail], p.Table.Methods()),
	}
	tracks := o.tracks(p)
	c.str(`{"traceEvents":[`)
	timing := p.Timing()
	c.metadata(tracks, timing)
	line := newThreadLine(c.buffer, p.Table, func(b *threadPart) {
		b.begun = writtenTime{start: -1}
		if !b.first {
			b.begun = writtenTime{b.before.Start, b.before.End}
		}
		c.part(b)
	}, func(b *threadPart) {
		if !b.first && b.begun != c.at {
			b.begun = c.at
			c.part(b)
		}
		c.at = b.ended
	})
	line.marks = !o.Plain
	line.frames = max(1, partFrames/8) // events are three times as long as those of other formats
	for i, th := range o.threads(p) {
		if !line.thread(i, th, timing) {
			break
		}
	}
	line.close()
	for i, t := range tracks {
		c.track(t, c.trackIDs[i])
	}
	c.str("\n" + `],"displayTimeUnit":"ms","otherData":{"name":`)
	c.b = text.AppendJSON(c.b, o.title(p))
	c.str(`,"exporter":`)
	c.b = text.AppendJSON(c.b, o.exporter())
	if p.Meta.Format != "" {
		c.str(`,"source-format":`)
		c.b = text.AppendJSON(c.b, p.Meta.Format)
	}
	if !p.Meta.Start.IsZero() {
		c.str(`,"start":`)
		c.b = text.AppendJSON(c.b, p.Meta.Start.UTC().Format("2006-01-02T15:04:05.000000000Z"))
	}
	c.str(`,"processes":[`)
	for i, pr := range p.Processes {
		if i > 0 {
			c.str(",")
		}
		c.str(`{"pid":`)
		c.b = strconv.AppendInt(c.b, pr.PID, 10)
		c.str(`,"name":`)
		c.b = text.AppendJSON(c.b, pr.Name)
		c.str(`,"commandLine":`)
		c.b = text.AppendJSON(c.b, pr.CommandLine)
		c.str("}")
		if !c.flushed() {
			break
		}
	}
	c.str("]}")
	if err := c.repairMarks(p, &o, func(t *profile.Thread) (int64, int64) { return c.ids.pid(t.Owner()), c.ids.tids[t] }); err != nil {
		return err
	}
	c.str("}\n")
	return c.flush()
}

type chromiumWriter struct {
	*buffer
	p        *profile.Profile
	o        *Options
	weighed  bool // spans are as long as stacks weigh
	ids      *numbers
	trackIDs []int64
	events   int
	at       writtenTime                 // of the last part that is written
	tails    []atomic.Pointer[frameTail] // by method; nil: not met
	prefix   []byte
	asyncID  uint64
}

// event starts an event on a line of its own.
func (c *chromiumWriter) event() {
	if c.events > 0 {
		c.b = append(c.b, ',', '\n')
	} else {
		c.events = 1 // Perfetto wants to see {"traceEvents":[{" at once
	}
}

// metadata names processes, threads and tracks.
func (c *chromiumWriter) metadata(tracks []*profile.Track, timing *profile.Timing) {
	for _, pr := range c.p.Processes {
		c.ids.pid(pr)
	}
	for _, t := range tracks {
		c.ids.pid(c.ids.owner(t))
		c.trackIDs = append(c.trackIDs, c.ids.fresh())
	}
	for i, pr := range c.ids.processes {
		c.nameProcess(pr)
		c.sortIndex("process_sort_index", c.ids.pid(pr), 0, i)
	}
	threads := c.o.threads(c.p)
	holds := make([][]byte, len(threads))
	relay.Each(len(threads), func(i int) {
		if holds[i] = []byte(holdsTrack); !c.weighed {
			holds[i] = appendHolds(nil, c.p, threads[i], timing)
		}
	})
	for i, th := range threads {
		pid, tid := c.ids.pid(th.Owner()), c.ids.tids[th]
		c.threadName(pid, tid, th.Title(), holds[i])
		c.sortIndex("thread_sort_index", pid, tid, c.ids.ranks[th])
	}
	for i, t := range tracks {
		pid := c.ids.pid(c.ids.owner(t))
		c.threadName(pid, c.trackIDs[i], trackName(t, false), []byte(holdsTrack))
		c.sortIndex("thread_sort_index", pid, c.trackIDs[i], len(c.p.Threads)+i)
	}
}

// nameProcess names a process. It has no tid: where the first event has one, speedscope
// takes the file for one of the browser's devtools, and refuses it, as soon as anything in
// it is called Profile (chromium-trace.md section 9.3).
func (c *chromiumWriter) nameProcess(pr *profile.Process) {
	c.event()
	c.str(`{"ph":"M","ts":0,"pid":`)
	c.b = strconv.AppendInt(c.b, c.ids.pid(pr), 10)
	c.str(`,"name":"process_name","cat":"__metadata","args":{"name":`)
	c.b = text.AppendJSON(c.b, c.ids.title(pr))
	if c.ids.again(pr) { // for those who read the file again
		c.str(`,"tracefix":{"pid":`)
		c.b = strconv.AppendInt(c.b, pr.PID, 10)
		c.str(`,"process":`)
		c.b = text.AppendJSON(c.b, pr.Name)
		c.str("}")
	}
	c.str("}}")
	c.flushed()
}

// threadName names a thread or track, and says what its spans are to those who read
// the file again: nothing else in it tells. Viewers look at the name only.
func (c *chromiumWriter) threadName(pid, tid int64, name string, holds []byte) {
	if name == "" {
		name = "(unnamed)"
	}
	c.meta("thread_name", pid, tid)
	c.str(`"name":`)
	c.b = text.AppendJSON(c.b, name)
	c.str(`,"tracefix":`)
	c.b = append(c.b, holds...)
	c.str("}}")
	c.flushed()
}

// holdsTrack says that the spans of a thread are no stacks in time.
const holdsTrack = `{"holds":"track"}`

// appendHolds says what the spans of a thread's samples are.
func appendHolds(b []byte, p *profile.Profile, th *profile.Thread, timing *profile.Timing) []byte {
	b = appendLimit(b, p)
	b = b[:len(b)-1]
	b = appendCuts(b, p.Table, th, timing)
	if typ, ok := onlyType(th); ok {
		b = append(b, `,"type":`...)
		b = text.AppendJSON(b, typ.String())
	}
	b = appendUntyped(b, p, th)
	return append(b, '}')
}

// appendUntyped says that the recorder did not tell managed code from the rest, so that types are
// none to go by, and when the thread waited for a lock, which the stacks do not tell. It is
//
//	,"untyped":true,"locked":[gap,length, ...]
//
// with two numbers for each wait that a sample was taken in: ns from the end of the one before
// (from 0 for the first), and ns that it lasts.
func appendUntyped(b []byte, p *profile.Profile, th *profile.Thread) []byte {
	if !p.Meta.Untyped {
		return b
	}
	b = append(b, `,"untyped":true`...)
	var list []byte
	locked, end := th.Locked, int64(0) // end of the last wait that is told
	c := th.Samples.Cursor()
	for s := (profile.Sample{}); len(locked) > 0 && c.Read(&s); {
		for len(locked) > 0 && locked[0].To <= s.Time {
			locked = locked[1:]
		}
		if len(locked) > 0 && locked[0].From <= s.Time {
			list = append(strconv.AppendInt(list, locked[0].From-end, 10), ',')
			list = append(strconv.AppendInt(list, locked[0].To-locked[0].From, 10), ',')
			end, locked = locked[0].To, locked[1:]
		}
	}
	if len(list) > 0 {
		b = append(append(append(b, `,"locked":[`...), list[:len(list)-1]...), ']')
	}
	return b
}

// appendLimit says that spans are stacks, and at which depth the recorder cut them.
func appendLimit(b []byte, p *profile.Profile) []byte {
	b = append(b, `{"holds":"samples"`...)
	if limit := p.Meta.DepthLimit; limit > 0 {
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, int64(limit), 10)
	}
	return append(b, '}')
}

// onlyType returns the type of all samples of a thread besides those of its time off
// the CPU, which have a leaf of their own, and false if they differ.
func onlyType(th *profile.Thread) (typ profile.SampleType, ok bool) {
	for t := range profile.SampleEvent {
		if t == profile.SampleOffCPU || th.Samples.Count(t) == 0 {
			continue
		}
		if ok {
			return 0, false
		}
		typ, ok = t, true
	}
	return typ, ok
}

func (c *chromiumWriter) sortIndex(what string, pid, tid int64, index int) {
	c.meta(what, pid, tid)
	c.str(`"sort_index":`)
	c.b = strconv.AppendInt(c.b, int64(index), 10)
	c.str("}}")
	c.flushed()
}

func (c *chromiumWriter) meta(what string, pid, tid int64) {
	c.event()
	c.str(`{"ph":"M","ts":0`)
	c.b = appendIDs(c.b, pid, tid)
	c.str(`,"name":"`)
	c.str(what)
	c.str(`","cat":"__metadata","args":{`)
}

func appendIDs(b []byte, pid, tid int64) []byte {
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, pid, 10)
	b = append(b, `,"tid":`...)
	return strconv.AppendInt(b, tid, 10)
}

// A writtenTime is when a stretch began and ended as it was written: up to some nanoseconds later
// than it did, see part.
type writtenTime struct{ start, end int64 }

// part makes spans of the sampled stacks of a part. A nanosecond is put in where
// speedscope would lose ends: it takes all ends of a time before the begins, which would
// close a stack that does not last before it opens, and see clash. So when a stretch is written may
// hang on the one before, which b.begun tells; that it was written when it was is nearly always right.
func (c *chromiumWriter) part(b *threadPart) {
	b.open()
	b.ids = appendIDs(b.ids[:0], c.ids.pid(b.th.Owner()), c.ids.tids[b.th])
	b.marks = append(b.marks[:0], b.marked...)
	for len(b.marks) < len(b.sp.path) {
		b.marks = append(b.marks, false) // nothing is put back in this thread
	}
	offCPU := !b.first && b.before.Type == profile.SampleOffCPU // a leaf that says so is open
	start, end := b.begun.start, b.begun.end                    // of the stretch before
	for i := range b.list {
		x := &b.list[i]
		keep := b.sp.next(&x.Stretch)
		isOff := x.Type == profile.SampleOffCPU
		if start == end {
			end++
		}
		at := max(x.Start, end)
		if end == at && c.clash(b.sp, keep, offCPU, isOff) {
			if start < end-1 {
				end--
			} else {
				at++
			}
		}
		c.close(b, end, keep, offCPU)
		if keep < len(b.sp.path) {
			b.prefix = appendPrefix(b.prefix[:0], 'B', at, b.ids)
			for i, m := range b.sp.path[keep:] {
				b.marks = append(b.marks, keep+i < x.inserted)
				c.frame(b, m, b.marks[keep+i])
			}
		}
		if offCPU = isOff; offCPU {
			b.out = append(appendPrefix(b.out, 'B', at, b.ids), offCPUTail...)
		}
		start, end = at, max(x.End, at)
	}
	b.ended = writtenTime{start, end}
	if b.last {
		if start == end {
			end++
		}
		c.close(b, end, b.sp.step(0, 0), offCPU)
	}
}

// close closes what the last step of b closed, which kept keep frames, and the leaf of time off the CPU.
func (c *chromiumWriter) close(b *threadPart, at int64, keep int, offCPU bool) {
	if offCPU {
		b.out = append(appendPrefix(b.out, 'E', at, b.ids), offCPUTail...)
	}
	if len(b.sp.closed) == 0 {
		return
	}
	b.prefix = appendPrefix(b.prefix[:0], 'E', at, b.ids)
	for i := len(b.sp.closed) - 1; i >= 0; i-- {
		c.frame(b, b.sp.closed[i], b.marks[keep+i])
	}
	b.marks = b.marks[:keep]
}

// clash reports whether speedscope would misread the frames that sp closes when
// sp.path[keep:] opens at the same time: of a begin and an end of one name at one time it
// takes the begin first (chromium-trace.md section 7.2), and all that closes behind is
// lost. wasOff and isOff say that the leaf of time off the CPU closes and opens.
func (c *chromiumWriter) clash(sp *spanner, keep int, wasOff, isOff bool) bool {
	if keep == len(sp.path) {
		return wasOff && isOff && len(sp.closed) > 0
	}
	next := sp.path[keep]
	name := c.p.Table.MethodAt(next).Name
	for _, m := range sp.closed {
		if m == next || c.p.Table.MethodAt(m).Name == name {
			return true
		}
	}
	return false
}

// offCPUTail is the leaf that says that a thread was switched out.
var offCPUTail = []byte(`"name":"` + profile.OffCPU + `","cat":"tracefix"}`)

// ownCategory ends what has the mark for its category anyhow: a bridge.
var ownCategory = []byte(`,"cat":"tracefix"}`)

// begin prepares what all events of one phase at one time share.
func (c *chromiumWriter) begin(phase byte, at int64, ids []byte) {
	c.prefix = appendPrefix(c.prefix[:0], phase, at, ids)
}

// appendPrefix begins an event behind another one.
func appendPrefix(b []byte, phase byte, at int64, ids []byte) []byte {
	b = append(b, ",\n"+`{"ph":"`...)
	b = append(b, phase)
	b = append(b, `","ts":`...)
	b = appendMicros(b, at)
	b = append(b, ids...)
	return append(b, ',')
}

// frame writes the begin or end of a method, of which b.prefix is the beginning. A begin and its end
// have one category: viewers match them by it.
func (c *chromiumWriter) frame(b *threadPart, m profile.MethodID, marked bool) {
	tail := c.tails[m].Load()
	if tail == nil {
		tail = c.tailOf(m) // whoever meets it at the same time makes the same
		c.tails[m].Store(tail)
	}
	b.out = append(b.out, b.prefix...)
	if marked {
		b.out = append(b.out, tail.marked...)
	} else {
		b.out = append(b.out, tail.plain...)
	}
}

// A frameTail is the end of the events of a method: its name and category. The mark is for one that
// a repair put back.
type frameTail struct{ plain, marked []byte }

// tailOf returns the end of the events of a method.
func (c *chromiumWriter) tailOf(m profile.MethodID) *frameTail {
	me := c.p.Table.MethodAt(m)
	name := me.Name
	if name == "" {
		name = "?" // viewers refuse or hide an empty name
	}
	b := append([]byte(nil), `"name":`...)
	b = text.AppendJSON(b, name)
	b = append(b, `,"cat":`...)
	b = text.AppendJSON(b, category(me))
	tail := &frameTail{plain: append(b, '}')}
	tail.marked = tail.plain
	if !bytes.HasSuffix(tail.plain, ownCategory) {
		tail.marked = slices.Concat(bytes.TrimSuffix(tail.plain, []byte(`"}`)), []byte(`,tracefix"}`))
	}
	return tail
}
