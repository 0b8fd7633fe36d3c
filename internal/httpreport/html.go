package httpreport

import (
	"bytes"
	_ "embed"
	"io"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/text"
)

//go:embed page.html
var page []byte

// htmlWriter writes one self-contained page. Rows are written as they come; the page
// sorts them.
type htmlWriter struct {
	out
	o    Options
	part int // bytes of the open part of the rows
	rest []byte
}

// Rows stand in elements of text.MaxElement.
const (
	beginRows = `<script type="application/json" class="rows">[`
	endRows   = "\n]</script>\n"
)

// Marks in page.html where data goes.
var (
	markRows    = []byte("/*ROWS*/")
	markSummary = []byte("/*SUMMARY*/")
	markStacks  = []byte("/*STACKS*/")
)

func newHTML(w io.Writer, o *Options) Writer {
	h := &htmlWriter{out: out{w: w}, o: *o}
	head, rest, _ := bytes.Cut(page, markRows)
	h.b = append(h.b, head...)
	h.rest = rest
	return h
}

// A row is an array, since a page has thousands of them:
// [id, start, duration|null, status, outcome, method, url, version, connection, new,
// error, phases, redirects, note, cause, times, why, served], times in ms, phases as [name, start,
// duration|null, error|0], redirects as [url, status, start, duration, phases] and times in
// the order of httpphases.Times; empty if they are not known. served is absent, or of a request
// that was served [route, id of the request that asked or 0].
func (w *htmlWriter) Request(r *httpphases.Request) error {
	from := w.begin()
	b := append(w.b, '[')
	b = strconv.AppendInt(b, int64(r.ID), 10)
	b = text.AppendMillis(append(b, ','), r.Start)
	b = append(b, ',')
	if r.HasDuration {
		b = text.AppendMillis(b, r.Duration)
	} else {
		b = append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, ','), int64(r.Status), 10)
	b = strconv.AppendInt(append(b, ','), int64(r.Outcome), 10)
	b = text.AppendJSON(append(b, ','), r.Method)
	b = text.AppendJSON(append(b, ','), r.URL())
	b = text.AppendJSON(append(b, ','), r.Version)
	conn, isNew := "", int64(0)
	if c := r.Connection; c != nil {
		if c.HasID {
			conn = "#" + strconv.FormatInt(c.ID, 10)
		}
		if c.New {
			isNew = 1
		}
	}
	b = text.AppendJSON(append(b, ','), conn)
	b = strconv.AppendInt(append(b, ','), isNew, 10)
	b = text.AppendJSON(append(b, ','), r.Error)
	b = htmlPhases(append(b, ','), r.Phases)
	b = append(b, ",["...)
	for i := range r.Redirects {
		if i > 0 {
			b = append(b, ',')
		}
		d := &r.Redirects[i]
		b = text.AppendJSON(append(b, '['), d.From)
		b = strconv.AppendInt(append(b, ','), int64(d.Status), 10)
		b = text.AppendMillis(append(b, ','), d.Start)
		b = text.AppendMillis(append(b, ','), d.Duration)
		b = htmlPhases(append(b, ','), d.Phases)
		b = append(b, ']')
	}
	b = append(b, "],"...)
	b = text.AppendJSON(b, htmlNote(r))
	b = text.AppendJSON(append(b, ','), r.ErrorCause)
	b = append(b, ",["...)
	if t := r.Times(); t != (httpphases.Times{}) {
		for i, ns := range []int64{t.BeforeDNS, t.DNS, t.BeforeConnect, t.Connect, t.BeforeTLS, t.TLS, t.Queue, t.Send, t.Wait, t.Receive, t.Other} {
			if i > 0 {
				b = append(b, ',')
			}
			b = text.AppendMillis(b, ns)
		}
	}
	b = append(b, "],"...)
	b = htmlWhy(b, r.Why)
	return w.end(append(b, ']'), from)
}

// begin begins a row and returns where it stands in w.b.
func (w *htmlWriter) begin() int {
	switch {
	case w.part > text.MaxElement:
		w.str(endRows + beginRows)
		w.part = 0
	case w.part > 0:
		w.str(",")
	default:
		w.str(beginRows)
	}
	w.str("\n")
	return len(w.b)
}

// end ends the row that stands in b from there on.
func (w *htmlWriter) end(b []byte, from int) error {
	w.b = escapeScript(b, from)
	w.part += len(w.b) - from
	return w.flushed()
}

// Server writes a row of the same shape: the trace tells no phases of what was served.
func (w *htmlWriter) Server(s *httpphases.ServerRequest) error {
	from := w.begin()
	b := strconv.AppendInt(append(w.b, '['), int64(s.ID), 10)
	b = text.AppendMillis(append(b, ','), s.Start)
	b = append(b, ',')
	if s.HasDuration {
		b = text.AppendMillis(b, s.Duration)
	} else {
		b = append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, ','), int64(s.Status), 10)
	b = strconv.AppendInt(append(b, ','), int64(s.Outcome), 10)
	b = text.AppendJSON(append(b, ','), s.Method)
	b = text.AppendJSON(append(b, ','), s.Target)
	b = text.AppendJSON(append(b, ','), s.Version)
	b = append(b, `,"",0,"",[],[],`...)
	note := ""
	if m := s.Marks(); m != 0 {
		note = "marked: " + m.String()
	}
	if s.Took > 0 {
		note += ". " + tookText(s.Took)
	}
	b = text.AppendJSON(b, note)
	b = append(b, `,"",[],`...)
	b = htmlWhy(b, s.Why)
	b = text.AppendJSON(append(b, ",["...), s.Route)
	b = strconv.AppendInt(append(b, ','), int64(s.Client), 10)
	if s.Upgraded() {
		b = append(b, ",1"...)
	}
	return w.end(append(b, "]]"...), from)
}

// htmlNote says what is to be known of a row.
func htmlNote(r *httpphases.Request) string {
	var l []string
	if m := r.Marks(); m != 0 {
		l = append(l, "marked: "+m.String())
	}
	if r.Took > 0 {
		l = append(l, tookText(r.Took))
	}
	for _, m := range r.Missing {
		l = append(l, "lost: "+m)
	}
	if r.Guessed > 0 {
		l = append(l, strconv.Itoa(r.Guessed)+" links guessed")
	}
	if r.SpanOnly && len(r.Phases) == 0 {
		l = append(l, "known from the DiagnosticSource bridge alone: no phases, and no time after the headers")
	}
	return strings.Join(append(l, failedAttempts(r)...), ". ")
}

// escapeScript makes b[from:] safe inside a script element: "<" stands in strings only.
func escapeScript(b []byte, from int) []byte {
	if bytes.IndexByte(b[from:], '<') < 0 {
		return b
	}
	s := bytes.ReplaceAll(b[from:], []byte("<"), []byte(`\u003c`))
	return append(b[:from], s...)
}

// htmlWhy appends where the time went, 0 if that is not known: as ndjson tells it, with
// "steps", each [cause, start, duration, thread], and for the other side its own.
func htmlWhy(b []byte, w *httpphases.Explanation) []byte {
	if w == nil {
		return append(b, '0')
	}
	o := open(b)
	o.why(w)
	o.key("steps")
	o.b = append(o.b, '[')
	for i := range w.Steps {
		s := &w.Steps[i]
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = text.AppendJSON(append(o.b, '['), s.Cause)
		o.b = text.AppendMillis(append(o.b, ','), s.From)
		o.b = text.AppendMillis(append(o.b, ','), s.To-s.From)
		o.b = strconv.AppendUint(append(o.b, ','), s.Thread, 10)
		o.b = append(o.b, ']')
	}
	o.b = append(o.b, ']')
	return o.close()
}

func htmlPhases(b []byte, l []httpphases.Phase) []byte {
	b = append(b, '[')
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		p := &l[i]
		b = strconv.AppendInt(append(b, '['), int64(p.Name), 10)
		b = text.AppendMillis(append(b, ','), p.Start)
		b = append(b, ',')
		if p.Open {
			b = append(b, "null"...)
		} else {
			b = text.AppendMillis(b, p.Duration)
		}
		if p.Error != "" {
			b = text.AppendJSON(append(b, ','), p.Error)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

func (w *htmlWriter) Close(s *Summary) error {
	if w.part > 0 {
		w.str(endRows)
	}
	mid, tail, _ := bytes.Cut(w.rest, markSummary)
	w.b = append(w.b, mid...)
	from := len(w.b)
	w.b = AppendSummary(w.b, s)
	w.b = escapeScript(w.b, from)
	mid, tail, _ = bytes.Cut(tail, markStacks)
	w.b = append(w.b, mid...)
	from = len(w.b)
	w.b = escapeScript(text.AppendJSON(w.b, w.o.Stacks), from)
	w.b = append(w.b, tail...)
	return w.flush()
}
