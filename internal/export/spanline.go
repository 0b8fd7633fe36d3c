package export

import (
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// A spanLine is the way of begins and ends of frames into an output. Who goes through the
// stacks hands on numbers; others make text of them meanwhile, batch by batch, and what comes
// out is in the order of the calls.
type spanLine struct {
	out   *buffer
	line  *relay.Line[spanBatch]
	b     *spanBatch // that is being filled
	fresh bool       // the next span is the first one of a list
}

// A spanBatch is some events and the text that becomes of them.
type spanBatch struct {
	groups []spanGroup
	spans  []frameSpan
	text   []byte // what is written as it is
	out    []byte
}

// A spanGroup is events of one phase at one time, or text that stands between events.
type spanGroup struct {
	phase byte // 0: text
	at    int64
	ids   []byte // what the thread's events have in common
	n     int    // of spans, or of bytes of text
	first bool   // its first span is the first one of a list
}

// A frameSpan is a frame that begins or ends.
type frameSpan struct {
	method profile.MethodID // or offCPUSpan
	marked bool             // it was put back by a repair
}

// offCPUSpan is the leaf that says that a thread was switched out.
const offCPUSpan = ^profile.MethodID(0)

// batchSpans are so many that their text is about as much as is written at once.
const batchSpans = 1 << 10

// newSpanLine returns a line behind what out has. format appends the text of a group to b; it is
// called for several batches at once.
func newSpanLine(out *buffer, format func(b []byte, g *spanGroup, spans []frameSpan) []byte) *spanLine {
	out.flush()
	l := &spanLine{out: out}
	l.line = relay.New(func(b *spanBatch) {
		spans, text := b.spans, b.text
		for i := range b.groups {
			g := &b.groups[i]
			if g.phase == 0 {
				b.out, text = append(b.out, text[:g.n]...), text[g.n:]
				continue
			}
			b.out, spans = format(b.out, g, spans[:g.n]), spans[g.n:]
		}
	}, func(b *spanBatch) error {
		_, err := out.w.Write(b.out)
		b.groups, b.spans, b.text, b.out = b.groups[:0], b.spans[:0], b.text[:0], b.out[:0]
		return err
	})
	l.b = l.line.Batch()
	return l
}

// begin starts a group; a batch may end before it.
func (l *spanLine) begin(phase byte, at int64, ids []byte) {
	if len(l.b.spans) >= batchSpans || len(l.b.groups) >= batchSpans || len(l.b.text) >= bufferSize {
		if err := l.line.Send(); err != nil && l.out.err == nil {
			l.out.err = err
		}
		l.b = l.line.Batch()
	}
	l.b.groups = append(l.b.groups, spanGroup{phase: phase, at: at, ids: ids})
}

// span adds a frame to the group that was begun last.
func (l *spanLine) span(m profile.MethodID, marked bool) {
	l.b.spans = append(l.b.spans, frameSpan{m, marked})
	g := &l.b.groups[len(l.b.groups)-1]
	g.n++
	if l.fresh {
		l.fresh, g.first = false, true
	}
}

// str adds text.
func (l *spanLine) str(s string) { l.append(func(b []byte) []byte { return append(b, s...) }) }

// append adds the text that f appends.
func (l *spanLine) append(f func(b []byte) []byte) {
	l.begin(0, 0, nil)
	before := len(l.b.text)
	l.b.text = f(l.b.text)
	l.b.groups[len(l.b.groups)-1].n = len(l.b.text) - before
}

// close ends the line: out has all of it then, and may be written to again.
func (l *spanLine) close() {
	err := l.line.Send()
	if cerr := l.line.Close(); err == nil {
		err = cerr
	}
	if l.out.err == nil {
		l.out.err = err
	}
}
