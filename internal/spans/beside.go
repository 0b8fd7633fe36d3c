package spans

import (
	"bytes"
	"context"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/relay"
)

// parsedEvents is how many events go from who parses them to who follows them at once.
const parsedEvents = 512

// parsed are events on their way.
type parsed struct {
	events []brief // n of them are filled
	n      int
	wholes []chromium.Event // those of which all is kept
	text   []byte           // what is kept of them
	names  [][]byte         // those met so far
	told   []toldAt
}

// A toldAt is a defect that was met when so many events of its batch were parsed.
type toldAt struct {
	at   int
	what *chromium.FormatError
}

// keep takes in an event that was just parsed, whose texts are gone with the next one. Of metadata
// and of the first events, all, it keeps the event itself, with those of its texts that are looked
// at: Cat, SF, Name, PID and Args.
func (b *parsed) keep(ev *chromium.Event, all bool) {
	x := &b.events[b.n]
	x.shorten(ev)
	x.whole = nil
	if b.n > 0 && bytes.Equal(x.cat, b.events[b.n-1].cat) && x.cat != nil {
		x.cat = b.events[b.n-1].cat
	} else {
		x.cat = b.own(x.cat)
	}
	x.sf = b.own(x.sf)
	if all || ev.Phase == 'M' {
		if b.wholes == nil {
			b.wholes = make([]chromium.Event, 0, parsedEvents)
		}
		b.wholes = append(b.wholes, *ev)
		x.whole = &b.wholes[len(b.wholes)-1]
		x.whole.Cat, x.whole.SF = x.cat, x.sf
		x.whole.Name, x.whole.PID, x.whole.Args = b.own(ev.Name), b.own(ev.PID), b.own(ev.Args)
	}
	b.n++
}

// own copies a text.
func (b *parsed) own(text []byte) []byte {
	if text == nil {
		return nil
	}
	from := len(b.text)
	b.text = append(b.text, text...)
	return b.text[from:len(b.text):len(b.text)]
}

// beside parses on this goroutine, and follows the events on another one. It returns how the reading ended.
func (d *reading) beside(ctx context.Context) error {
	names := &namesSoFar{Source: d.r}
	tell := d.tell
	d.src, d.table.r = names, names
	line := relay.New(nil, func(b *parsed) error {
		defer func() { b.n, b.wholes, b.text, b.told = 0, b.wholes[:0], b.text[:0], b.told[:0] }()
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
	var ev chromium.Event
	for n := 0; ; n++ {
		b := line.Batch()
		if b.n == parsedEvents {
			if err := send(b); err != nil {
				return err
			}
			b = line.Batch()
		}
		if b.events == nil {
			b.events, b.text = make([]brief, parsedEvents), make([]byte, 0, 32*parsedEvents)
		}
		if err := d.r.Read(&ev); err != nil {
			_ = send(b) // Close tells it, too
			if failed := line.Close(); failed != nil {
				return failed
			}
			return err
		}
		b.keep(&ev, n < maxSeen)
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
