package tracefix

import (
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/httpout"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A requestReader collects the HTTP requests that tracks show, while a trace is read for its
// samples.
type requestReader struct {
	o    *ReadOptions
	scan *requests.Scanner
	list []*httpphases.Request
}

func (q *requestReader) Begin(r *nettrace.Reader) { q.scan = requests.NewScanner(r, q.add, nil) }

func (q *requestReader) Event(ev *nettrace.Event) error {
	q.scan.Event(ev)
	return nil
}

func (q *requestReader) End() { q.scan.Finish() }

func (q *requestReader) add(r *httpphases.Request) {
	ended := r.HasDuration && r.Start+r.Duration < int64(q.o.From)
	if !ended && (q.o.To == 0 || r.Start <= int64(q.o.To)) {
		r.Detail = "" // long, and not drawn
		q.list = append(q.list, r)
	}
}

// tracks are those of the requests: one for each connection.
func (q *requestReader) tracks(p *profile.Profile) []*profile.Track {
	return httpout.Tracks(q.list, func(pid uint32) *profile.Process {
		for _, of := range p.Processes {
			if of.PID == int64(pid) {
				return of
			}
		}
		return nil
	})
}
