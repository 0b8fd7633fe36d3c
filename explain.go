package tracefix

import (
	"context"
	"sync/atomic"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
)

// explainedAtOnce is how many requests wait for the names of methods, which stand at the end of a
// trace, and for what explains them; where there are more, the trace is read again. It bounds
// memory: each takes some 2 KB.
var explainedAtOnce = 50000

// Explain reads the HTTP requests of a nettrace as Requests does, and finds out where the time of
// each went: it sets Why of all that have a Duration. This is what `tracefix http --explain`
// prints: what ran, what blocked and on what, collections, the thread pool's queue, the exceptions
// thrown inside, and the request that served it in the same process. It uses samples, activity ids
// and task events; time that these do not account for is TimeByCause.Unknown.
//
// client is called for requests that the process made, server for those that it served; either may
// be nil. They are called one after the other, in the order in which requests end, except that a
// request comes after the one that served it; the first call is made when the whole trace was read
// once, the last before Explain returns. The requests belong to the callee. A trace of very many
// requests is read twice.
func (f *File) Explain(ctx context.Context, client func(*httpphases.Request), server func(*httpphases.ServerRequest)) error {
	if err := requests.Readable(f.in); err != nil {
		return f.named(err)
	}
	var room waitingRoom
	scan := NewRequestScanner(room.client, room.server) // of both sides: who answered whom depends on both
	defer scan.Stop()
	rec := requests.NewRecorder(0)
	o, damages := (*ReadOptions)(nil).counting()
	p, _, err := load.Profile(ctx, f.in.Reader, &load.Options{
		Source: f.in.Name, NoSamples: true, Take: rec.Take,
		Warn: func(e *nettrace.FormatError) { o.warn(e.Offset, e.Where, e.Err, -1) },
	}, scan, rec)
	if err != nil {
		return f.named(err)
	}
	f.metAll(&p.Meta, damages)
	x := &explaining{x: requests.NewExplainer(p.Table, rec), client: client, server: server}
	x.x.Steps = true
	if room.full.Load() {
		x.others.Pairs = room.pairs
		if err := f.Scan(ctx, NewRequestScanner(x.request, x.served)); err != nil {
			return err
		}
		return x.x.Err()
	}
	requests.Settle(room.rows, waitingRequest.sides)
	for i, r := range room.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		room.rows[i] = waitingRequest{}
		if r.made != nil {
			x.request(r.made)
		} else {
			x.served(r.served)
		}
	}
	return x.x.Err()
}

// A waitingRoom keeps the requests of a reading in the order of their ends.
type waitingRoom struct {
	rows  []waitingRequest
	full  atomic.Bool
	pairs *requests.Pairs // of the connections of those that were here when it was full
}

type waitingRequest struct {
	made   *httpphases.Request
	served *httpphases.ServerRequest // if made is nil
}

// sides returns the request that r is, made or served.
func (r waitingRequest) sides() (*httpphases.Request, *httpphases.ServerRequest) {
	return r.made, r.served
}

func (w *waitingRoom) client(r *httpphases.Request)       { w.add(waitingRequest{made: r}) }
func (w *waitingRoom) server(s *httpphases.ServerRequest) { w.add(waitingRequest{served: s}) }

func (w *waitingRoom) add(r waitingRequest) {
	switch {
	case w.full.Load():
	case len(w.rows) == explainedAtOnce:
		w.pairs = requests.Pair(w.rows, waitingRequest.sides)
		w.rows = nil
		w.full.Store(true)
	default:
		w.rows = append(w.rows, r)
	}
}

// explaining hands out requests with what explains them.
type explaining struct {
	x      *requests.Explainer
	others requests.Others
	client func(*httpphases.Request)
	server func(*httpphases.ServerRequest)
}

func (x *explaining) request(r *httpphases.Request) {
	if r.HasDuration {
		by, guessed := x.others.Of(r)
		r.Why = x.x.Client(r)
		r.Why.Server, r.Why.ServerGuessed = by, guessed
	}
	if x.client != nil {
		x.client(r)
	}
}

func (x *explaining) served(s *httpphases.ServerRequest) {
	s.Why = x.x.Server(s)
	x.others.Add(s)
	if x.server != nil {
		x.server(s)
	}
}
