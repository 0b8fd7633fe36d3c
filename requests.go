package tracefix

import (
	"context"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Scan opens a nettrace, passes its events to consumers in one pass, and closes it: Open, File.Scan
// and File.Close in one.
func Scan(ctx context.Context, name string, consumers ...Consumer) error {
	f, err := Open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Scan(ctx, consumers...)
}

// Scan passes the events of a nettrace to consumers, in one pass and in order of time. Damaged
// parts are skipped; File.Reading has them. The end of the file is not an error. If the scan fails,
// Scan calls Stop of the consumers that have such a method, as RequestScanner does.
func (f *File) Scan(ctx context.Context, consumers ...Consumer) error {
	whole := false
	defer stopUnless(&whole, consumers)
	read, err := requests.ReadFor(ctx, f.in, consumers...)
	if err != nil {
		return f.named(err)
	}
	whole = true
	f.metIn(read)
	return nil
}

// metIn notes what a reading for requests or activities met.
func (f *File) metIn(read *requests.Info) {
	f.met = Reading{Events: read.Events, Lost: int64(read.Lost), Damages: read.Damages}
	for _, d := range read.Damage[:min(len(read.Damage), report.MaxDamages)] {
		f.met.Damage = append(f.met.Damage, Damage{Offset: d.Offset, Where: d.Where, What: d.What, Time: -1})
	}
}

// stopUnless ends what consumers do beside a reading, unless that came to its end. It is deferred:
// a consumer may panic.
func stopUnless(whole *bool, consumers []Consumer) {
	if *whole {
		return
	}
	for _, c := range consumers {
		if s, ok := c.(interface{ Stop() }); ok {
			defer s.Stop() // each of them, even where another one panics
		}
	}
}

// Requests reads the HTTP requests of a nettrace: client is called for those that its process made,
// server for those that it served; either may be nil. They are called one after the other as
// requests end, last for those still in flight at the end of the trace, and not after Requests
// returns. The requests belong to the callee. Explain also finds out where the time of each went.
func (f *File) Requests(ctx context.Context, client func(*httpphases.Request), server func(*httpphases.ServerRequest)) error {
	return f.Scan(ctx, NewRequestScanner(client, server))
}

// Activities reads the start/stop activities of all event sources of a nettrace.
func (f *File) Activities(ctx context.Context, o *activity.Options) (*activity.Tree, error) {
	rows, read, err := requests.Activities(ctx, f.in, o)
	if err != nil {
		return nil, f.named(err)
	}
	f.metIn(read)
	tree := rows.Tree()
	return tree, rows.Err()
}

// A RequestScanner is a Consumer that builds HTTP requests from events, as File.Requests does. With a
// nettrace.Reader of your own, call Begin, Event for each event, and End; with a File, Scan does.
type RequestScanner struct {
	client  func(*httpphases.Request)
	server  func(*httpphases.ServerRequest)
	scanner *requests.Scanner
}

// NewRequestScanner returns a RequestScanner that calls client and server, which may be nil, for
// every request that ends. It calls them one after the other, in batches, on a goroutine of its
// own, until End or Stop returns. One of these must be called.
func NewRequestScanner(client func(*httpphases.Request), server func(*httpphases.ServerRequest)) *RequestScanner {
	return &RequestScanner{client: client, server: server}
}

// Begin implements Consumer.
func (s *RequestScanner) Begin(r *nettrace.Reader) {
	s.scanner = requests.NewScanner(r, s.client, s.server)
}

// Event implements Consumer.
func (s *RequestScanner) Event(ev *nettrace.Event) error {
	s.scanner.Event(ev)
	return nil
}

// End implements Consumer. Requests still in flight end as incomplete.
func (s *RequestScanner) End() { s.scanner.Finish() }

// Stop ends a scan that failed. It does nothing after End.
func (s *RequestScanner) Stop() { s.scanner.Stop() }

// Stats returns the counts of the pass, after End.
func (s *RequestScanner) Stats() httpphases.Stats {
	if s.scanner == nil {
		return httpphases.Stats{}
	}
	return s.scanner.Stats()
}

// NewActivityScanner returns a Consumer that builds start/stop activities from events; after End,
// Tree returns them.
func NewActivityScanner(o *activity.Options) *ActivityScanner {
	return &ActivityScanner{options: o}
}

// An ActivityScanner is a Consumer; see NewActivityScanner.
type ActivityScanner struct {
	options *activity.Options
	scanner *requests.ActivityScanner
}

// Begin implements Consumer. What an earlier reading told is gone.
func (s *ActivityScanner) Begin(r *nettrace.Reader) {
	s.scanner = requests.NewActivityScanner(s.options)
	s.scanner.Begin(r)
}

// Event implements Consumer.
func (s *ActivityScanner) Event(ev *nettrace.Event) error { return s.scanner.Event(ev) }

// End implements Consumer.
func (s *ActivityScanner) End() { s.scanner.End() }

// Tree returns the activities, after End. The caller owns it. It is empty where the reading did not
// come to its end.
func (s *ActivityScanner) Tree() *activity.Tree {
	if s.scanner == nil || s.scanner.Rows() == nil {
		return &activity.Tree{}
	}
	return s.scanner.Rows().Tree()
}

// requestsFor returns a scanner that tells both of the requests of a trace; either may be nil.
func requestsFor(att *attributor, http *drawnRequests) *RequestScanner {
	return NewRequestScanner(func(r *httpphases.Request) {
		if att != nil {
			att.rows.Client(r)
		}
		if http != nil && http.shows(r.Start, r.Duration, r.HasDuration) {
			http.drawing.Client(r)
		}
	}, func(r *httpphases.ServerRequest) {
		if att != nil {
			att.rows.Server(r)
		}
		if http != nil && http.shows(r.Start, r.Duration, r.HasDuration) {
			http.drawing.Server(r)
		}
	})
}

// drawnRequests are the requests of either side that tracks show: those between two times, ns; to 0 is
// the end of the trace.
type drawnRequests struct {
	from, to int64
	drawing  httpreport.Drawing
}

func newDrawnRequests(from, to int64) *drawnRequests {
	return &drawnRequests{from, to, httpreport.Drawing{Spool: input.Aside(1)}}
}

// shows reports whether a request lies between the two times.
func (d *drawnRequests) shows(start, dur int64, ended bool) bool {
	return (!ended || start+dur >= d.from) && (d.to == 0 || start <= d.to)
}

// tracks are those of the requests: one for each connection, and those of what was served.
func (d *drawnRequests) tracks(p *profile.Profile) []*profile.Track {
	return d.drawing.Tracks(func(pid uint32) *profile.Process { return processOf(p, int(pid)) })
}
