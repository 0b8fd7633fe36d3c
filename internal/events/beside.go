package events

import (
	"sync"

	"github.com/tracefix/tracefix/nettrace"
)

// beside is a lister of ndjson that makes the lines of several batches of events at once.
type beside struct {
	*lister
	mu    sync.Mutex
	paths pathNames // whether the ids are lossy, as known behind the last batch that was taken
}

func newBeside(l *lister) *beside {
	b := &beside{lister: l}
	if l.o.Lossy != nil {
		b.paths.lossy = sync.OnceValue(l.o.Lossy)
	}
	return b
}

// prepared are the lines of a batch.
type prepared struct {
	liner
	buf   []byte
	lines []line
	over  int // the event from which on nothing is wanted; -1: there is none
}

// A line ends at a place in prepared.buf.
type line struct{ event, end int }

// Prepare implements input.Preparer.
func (b *beside) Prepare(events []nettrace.Event, work *any) {
	p, _ := (*work).(*prepared)
	if p == nil {
		p = &prepared{liner: liner{r: b.r, filter: b.filter, catalog: catalog{filter: b.filter}, names: b.names}}
		*work = p
	}
	b.mu.Lock()
	p.paths.become(&b.paths)
	b.mu.Unlock()
	p.fill(events)
}

// fill makes the lines of events.
func (p *prepared) fill(events []nettrace.Event) {
	p.buf, p.lines, p.over = p.buf[:0], p.lines[:0], -1
	for i := range events {
		ev := &events[i]
		ns := p.r.Nanos(ev.Time)
		k, over := p.kindOf(ev, ns)
		if over {
			p.over = i
			return
		}
		if k != nil {
			p.buf = append(p.appendJSON(p.buf, ev, k, ns), lineEnd...)
			p.lines = append(p.lines, line{i, len(p.buf)})
		}
	}
}

// Prepared implements input.Preparer.
func (b *beside) Prepared(events []nettrace.Event, work any) (int, error) {
	p := work.(*prepared)
	if b.paths.known && p.paths.found { // by itself, before it could know what those before it found
		p.paths.become(&b.paths)
		p.fill(events)
	}
	if p.paths.known && !b.paths.known {
		b.mu.Lock()
		b.paths.known, b.paths.answer = true, p.paths.answer
		b.mu.Unlock()
	}
	last := p.over
	if n := b.o.Limit - b.res.Written; b.o.Limit > 0 && n <= int64(len(p.lines)) {
		p.lines = p.lines[:n]
		last = p.lines[n-1].event
		p.buf = p.buf[:p.lines[n-1].end]
	}
	b.res.Written += int64(len(p.lines))
	b.res.Events += int64(len(events))
	if _, err := b.w.Write(p.buf); err != nil || last < 0 {
		return len(events), err
	}
	b.res.Events -= int64(len(events) - last - 1)
	return last + 1, b.enough(&events[last])
}
