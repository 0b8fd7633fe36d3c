package spans

import (
	"context"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/relay"
)

// parsedEvents is how many events go from who parses them to who follows them at once.
const parsedEvents = 512

// parsed are events on their way.
type parsed struct {
	events []chromium.Event // n of them are filled
	n      int
	text   []byte   // what is kept of them
	names  [][]byte // those met so far
	told   []toldAt
}

// A toldAt is a defect that was met when so many events of its batch were parsed.
type toldAt struct {
	at   int
	what *chromium.FormatError
}

// keep gives an event that was just parsed texts of its own, as the reader's are gone with the next one: those that
// take looks at, of the first events all. Of the others nothing but whether they are there and how long they are may be asked.
func (b *parsed) keep(ev *chromium.Event, all bool) {
	own := func(text *[]byte) {
		if *text != nil {
			from := len(b.text)
			b.text = append(b.text, *text...)
			*text = b.text[from:len(b.text):len(b.text)]
		}
	}
	own(&ev.Cat)
	own(&ev.SF)
	if all || ev.Phase == 'M' {
		own(&ev.Name)
		own(&ev.PID)
		own(&ev.Args)
	}
}

// beside parses on this goroutine, and follows the events on another one. It returns how the reading ended.
func (d *reading) beside(ctx context.Context) error {
	names := &namesSoFar{Source: d.r}
	tell := d.tell
	d.src, d.table.r = names, names
	line := relay.New(nil, func(b *parsed) error {
		defer func() { b.n, b.text, b.told = 0, b.text[:0], b.told[:0] }()
		if err := ctx.Err(); err != nil {
			return err
		}
		names.raw = b.names
		told := b.told
		for i := range b.events[:b.n] {
			for ; len(told) > 0 && told[0].at <= i; told = told[1:] {
				tell(told[0].what)
			}
			d.take(&b.events[i])
		}
		for _, t := range told {
			tell(t.what)
		}
		return nil
	})
	defer func() {
		_ = line.Close()
		d.tell, d.src, d.table.r = tell, d.r, d.r
	}()
	d.tell = func(e *chromium.FormatError) {
		b := line.Batch()
		b.told = append(b.told, toldAt{b.n, e})
	}
	send := func(b *parsed) error {
		b.names = d.r.RawNames()
		return line.Send()
	}
	for n := 0; ; n++ {
		b := line.Batch()
		if b.n == parsedEvents {
			if err := send(b); err != nil {
				return err
			}
			b = line.Batch()
		}
		if b.events == nil {
			b.events, b.text = make([]chromium.Event, parsedEvents), make([]byte, 0, 32*parsedEvents)
		}
		if err := d.r.Read(&b.events[b.n]); err != nil {
			_ = send(b) // Close tells it, too
			if failed := line.Close(); failed != nil {
				return failed
			}
			return err
		}
		b.keep(&b.events[b.n], n < maxSeen)
		b.n++
	}
}

// A namesSoFar knows the names of a Reader that is ahead.
type namesSoFar struct {
	Source
	raw   [][]byte
	texts []string
}

// Name returns the decoded text of an Event.NameID.
func (s *namesSoFar) Name(id int32) string {
	for len(s.texts) < len(s.raw) {
		s.texts = append(s.texts, chromium.Unquote(s.raw[len(s.texts)]))
	}
	return s.texts[id]
}

// RawName returns its raw text.
func (s *namesSoFar) RawName(id int32) []byte { return s.raw[id] }
