package events

import (
	"sync"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/nettrace"
)

// beside is a lister of ndjson that makes the lines of several batches of events at once.
type beside struct {
	*lister
	mu   sync.Mutex
	ids  activity.Decoder // what ids prove up to the last batch that was taken
	idle []*liner         // one for each who works at once: what it keeps of earlier events is near the processor that used it
}

func newBeside(l *lister) *beside { return &beside{lister: l} }

// prepared are the lines of a batch.
type prepared struct {
	buf   []byte
	lines []line
	over  int // the event from which on nothing is wanted; -1: there is none
	// what ids proved before these events and behind them
	before int
	ids    activity.Decoder
}

// A line ends at a place in prepared.buf.
type line struct{ event, end int }

// Prepare implements input.Preparer.
func (b *beside) Prepare(events *nettrace.Batch, work *any) {
	p, _ := (*work).(*prepared)
	if p == nil {
		p = &prepared{}
		*work = p
	}
	b.fill(p, events)
}

// fill makes the lines of events.
func (b *beside) fill(p *prepared, events *nettrace.Batch) {
	l := b.liner()
	p.before = l.paths.ids.Proven()
	p.lines, p.over = p.lines[:0], -1
	p.buf = l.lines(p, events)
	p.ids = l.paths.ids
	b.mu.Lock()
	b.idle = append(b.idle, l)
	b.mu.Unlock()
}

// liner returns one that nobody uses, which knows what the ids prove by now.
func (b *beside) liner() *liner {
	b.mu.Lock()
	defer b.mu.Unlock()
	var l *liner
	if n := len(b.idle) - 1; n >= 0 {
		l, b.idle = b.idle[n], b.idle[:n]
	} else {
		l = &liner{r: b.r, filter: b.filter, catalog: catalog{filter: b.filter}, names: b.names}
	}
	l.paths.become(b.ids)
	return l
}

// lines appends the lines of events to what p has, and returns their text.
func (l *liner) lines(p *prepared, events *nettrace.Batch) []byte {
	buf, ev := p.buf[:0], &l.event
	events.Rewind()
	for i := 0; events.Next(ev); i++ {
		ns := l.r.Nanos(ev.Time)
		k, over := l.kindOf(ev, ns)
		if over {
			p.over = i
			break
		}
		if k != nil {
			buf = append(l.appendJSON(buf, ev, k, ns), lineEnd...)
			p.lines = append(p.lines, line{i, len(buf)})
		}
	}
	return buf
}

// Prepared implements input.Preparer.
func (b *beside) Prepared(events *nettrace.Batch, work any) (int, error) {
	p := work.(*prepared)
	if p.before != b.ids.Proven() { // those before it proved something that was not known here
		b.fill(p, events)
	}
	if p.before != p.ids.Proven() {
		b.mu.Lock()
		b.ids = p.ids
		b.mu.Unlock()
	}
	last := p.over
	if n := b.o.Limit - b.res.Written; b.o.Limit > 0 && n <= int64(len(p.lines)) {
		p.lines = p.lines[:n]
		last = p.lines[n-1].event
		p.buf = p.buf[:p.lines[n-1].end]
	}
	b.res.Written += int64(len(p.lines))
	b.res.Events += int64(events.Len())
	var err error
	if p.buf, err = relay.Give(b.w, p.buf); err != nil || last < 0 {
		return events.Len(), err
	}
	b.res.Events -= int64(events.Len() - last - 1)
	events.Rewind()
	for range last + 1 {
		events.Next(&b.event)
	}
	return last + 1, b.enough(&b.event)
}
