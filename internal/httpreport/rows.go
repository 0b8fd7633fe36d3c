package httpreport

import (
	"io"
	"slices"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/spool"
)

// flushSize is what is written at once.
const flushSize = 64 << 10

// out collects output.
type out struct {
	w   io.Writer
	b   []byte
	err error
}

func (o *out) flushed() error {
	if len(o.b) >= flushSize {
		return o.flush()
	}
	return o.err
}

func (o *out) flush() error {
	if o.err == nil && len(o.b) > 0 {
		_, o.err = o.w.Write(o.b)
	}
	o.b = o.b[:0]
	return o.err
}

func (o *out) str(s string) { o.b = append(o.b, s...) }

// aside is text that is written behind what comes later: that of requests which were served.
type aside struct{ log spool.Log }

func newAside(o *Options) *aside { return &aside{spool.LogIn(o.Spool, 1<<20)} }

// Write implements io.Writer.
func (a *aside) Write(b []byte) (int, error) {
	a.log.Add(b)
	return len(b), nil
}

// copyTo writes all of it to o.
func (a *aside) copyTo(o *out) error {
	a.log.Done()
	for at, end := int64(0), a.log.Len(); at < end; {
		if err := o.flush(); err != nil {
			return err
		}
		o.b = slices.Grow(o.b, flushSize)[:min(flushSize, end-at)]
		a.log.Get(o.b, at)
		at += int64(len(o.b))
	}
	return a.log.Err()
}

// An ndjsonWriter makes the lines of several batches of requests at once.
type ndjsonWriter struct{ line *relay.Line[rows] }

// rows are requests, which are not changed any more, of either side and their lines.
type rows struct {
	list []either
	text []byte
}

// Either side of a request.
type either struct {
	made   *httpphases.Request
	served *httpphases.ServerRequest // if made is nil
}

// rowsAtOnce make some 100 KB.
const rowsAtOnce = 128

func newNDJSON(w io.Writer, _ *Options) Writer {
	return &ndjsonWriter{relay.New(func(b *rows) {
		b.text = b.text[:0]
		for _, r := range b.list {
			if r.made != nil {
				b.text = AppendRequest(b.text, r.made)
			} else {
				b.text = AppendServerRequest(b.text, r.served)
			}
			b.text = append(b.text, '\n')
		}
		clear(b.list)
		b.list = b.list[:0]
	}, func(b *rows) error {
		_, err := w.Write(b.text)
		return err
	})}
}

func (w *ndjsonWriter) add(r either) error {
	b := w.line.Batch()
	if b.list = append(b.list, r); len(b.list) < rowsAtOnce {
		return nil
	}
	return w.line.Send()
}

func (w *ndjsonWriter) Request(r *httpphases.Request) error { return w.add(either{made: r}) }

func (w *ndjsonWriter) Server(s *httpphases.ServerRequest) error { return w.add(either{served: s}) }

func (w *ndjsonWriter) Close(*Summary) error {
	_ = w.line.Send() // Close tells it
	return w.line.Close()
}

// Abandon ends a Writer that is not closed since an error came before. It does nothing after Close,
// nor to nil.
func Abandon(w Writer) {
	if n, ok := w.(*ndjsonWriter); ok {
		_ = n.line.Close()
	}
}

// jsonWriter writes one document. Requests and server requests come mixed, so the
// latter wait until the former are written.
type jsonWriter struct {
	out
	n      int
	served out
	later  *aside // what served writes to
}

func newJSON(w io.Writer, o *Options) Writer {
	j := &jsonWriter{out: out{w: w}, later: newAside(o)}
	j.served.w = j.later
	j.str("{\"requests\":[")
	return j
}

func (w *jsonWriter) Request(r *httpphases.Request) error {
	if w.n > 0 {
		w.str(",")
	}
	w.n++
	w.b = AppendRequest(append(w.b, '\n'), r)
	return w.flushed()
}

func (w *jsonWriter) Server(s *httpphases.ServerRequest) error {
	if len(w.served.b) > 0 || w.later.log.Len() > 0 {
		w.served.str(",")
	}
	w.served.b = AppendServerRequest(append(w.served.b, '\n'), s)
	return w.served.flushed()
}

func (w *jsonWriter) Close(s *Summary) error {
	w.str("\n]")
	if _ = w.served.flush(); w.later.log.Len() > 0 {
		w.str(",\n\"server_requests\":[")
		if err := w.later.copyTo(&w.out); err != nil {
			return err
		}
		w.str("\n]")
	}
	w.str(",\n\"summary\":")
	w.b = AppendSummary(w.b, s)
	w.str("}\n")
	return w.flush()
}

// AppendSummary appends s as a JSON object.
func AppendSummary(b []byte, s *Summary) []byte {
	o := open(b)
	o.str("source", s.Source)
	o.int("requests", int64(s.Requests))
	o.int("matched", int64(s.Matched))
	o.int("shown", int64(s.Shown))
	o.count("server_requests", s.Servers)
	for i, n := range s.Outcomes {
		o.int(httpphases.Outcome(i).String(), int64(n))
	}
	o.count("with_guessed_links", s.Guessed)
	o.count("with_events_missing", s.Missing)
	o.key("phases")
	p := open(o.b)
	for i := range s.Phases {
		if v := &s.Phases[i]; v.Count > 0 {
			p.key(httpphases.PhaseName(i).String())
			q := open(p.b)
			q.int("count", int64(v.Count))
			q.ms("sum_ms", v.Sum)
			q.ms("max_ms", v.Max)
			p.b = q.close()
		}
	}
	o.b = p.close()
	o.key("hosts")
	o.b = append(o.b, '[')
	for i, h := range s.Hosts {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		q := open(o.b)
		q.str("host", h.Name)
		h.counts(&q)
		q.int("new_connections", int64(h.New))
		q.int("redirected", int64(h.Redirected))
		h.quantiles(&q)
		o.b = q.close()
	}
	o.b = append(o.b, ']')
	if h := s.Served; h != nil {
		o.key("served")
		q := open(o.b)
		h.counts(&q)
		if h.Upgraded > 0 {
			q.int("upgraded", int64(h.Upgraded))
		}
		h.quantiles(&q)
		o.b = q.close()
	}
	o.strs("notes", s.Notes)
	return o.close()
}

func (h *Host) counts(o *object) {
	o.int("requests", int64(h.Requests))
	for k, n := range h.Outcomes {
		o.int(httpphases.Outcome(k).String(), int64(n))
	}
	o.int("status_4xx", int64(h.Client))
	o.int("status_5xx", int64(h.Server))
}

func (h *Host) quantiles(o *object) {
	if h.Durations.Len() > 0 {
		for i, v := range quantile.Of([]float64{.5, .9, .99, 1}, &h.Durations) {
			o.ms([...]string{"p50_ms", "p90_ms", "p99_ms", "max_ms"}[i], v)
		}
	}
}
