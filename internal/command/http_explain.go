package command

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// waiting is how many requests wait for the names of methods, which stand at the end of a
// trace; where there are more it is read again. It bounds memory: each takes some 2 KB.
var waiting = 50000

// A waitingRoom keeps the requests of a reading in the order of their ends.
type waitingRoom struct {
	scan *requests.Scanner
	rows []httpRow
	full atomic.Bool
	// pairs are of the connections of the rows that were here when it was full.
	pairs *requests.Pairs
}

func (w *waitingRoom) add(r httpRow) {
	switch {
	case w.full.Load():
	case len(w.rows) == waiting:
		w.pairs = requests.Pair(w.rows, httpRow.sides)
		w.rows = nil
		w.full.Store(true)
	default:
		w.rows = append(w.rows, r)
	}
}

// sides returns the request that r is, made or served.
func (r httpRow) sides() (*httpphases.Request, *httpphases.ServerRequest) { return r.made, r.served }

// Begin implements input.Consumer.
func (w *waitingRoom) Begin(r *nettrace.Reader) { w.scan = newScanner(r, w.add) }

// Event implements input.Consumer.
func (w *waitingRoom) Event(ev *nettrace.Event) error {
	if w.full.Load() {
		return input.ErrStop
	}
	w.scan.Event(ev)
	return nil
}

// End implements input.Consumer.
func (w *waitingRoom) End() {}

// newScanner returns a Scanner that hands out the requests of both sides.
func newScanner(r *nettrace.Reader, each func(httpRow)) *requests.Scanner {
	return requests.NewScanner(r,
		func(r *httpphases.Request) { each(httpRow{made: r}) },
		func(s *httpphases.ServerRequest) { each(httpRow{served: s}) })
}

// scanned reads a trace and hands out its requests as they end.
func scanned(ctx context.Context, c *Call, begin func(*requests.Scanner), each func(httpRow)) (*requests.Info, error) {
	var scan *requests.Scanner
	read, err := requests.Read(ctx, c.In, func(r *nettrace.Reader) {
		scan = newScanner(r, each)
		begin(scan)
	}, func(ev *nettrace.Event) { scan.Event(ev) })
	defer func() { scan.Stop() }()
	if err == nil {
		scan.Finish()
	}
	return read, err
}

// explained reads a trace and hands out its requests in the order of their ends, but behind those
// that served them, when what explains them is ready, each with a time before which none that
// follows began. Others get the events of the first reading.
func explained(ctx context.Context, c *Call, ready func(*profile.Profile, *requests.Explainer, *requests.Scanner), each func(r httpRow, before int64), others ...input.Consumer) (*requests.Info, error) {
	rec, room := requests.NewRecorder(0), &waitingRoom{}
	p, read, err := recorded(ctx, c, rec, append(others, room)...)
	defer func() { room.scan.Stop() }()
	if err != nil {
		return nil, err
	}
	x := requests.NewExplainer(p.Table, rec)
	if !room.full.Load() {
		room.scan.Finish() // hands out those that are open, and those behind which the scanner was
	}
	if room.full.Load() {
		x.Pairs = room.pairs
		return scanned(ctx, c, func(scan *requests.Scanner) { ready(p, x, scan) }, func(r httpRow) { each(r, math.MinInt64) })
	}
	ready(p, x, room.scan)
	requests.Settle(room.rows, httpRow.sides)
	before := make([]int64, len(room.rows))
	first := int64(math.MaxInt64)
	for i, r := range slices.Backward(room.rows) {
		before[i] = first
		first = min(first, r.facts().start)
	}
	for i, r := range room.rows {
		room.rows[i] = httpRow{}
		each(r, before[i])
	}
	return read, nil
}

// recorded reads a trace for a recorder, and for others.
func recorded(ctx context.Context, c *Call, rec *requests.Recorder, others ...input.Consumer) (*profile.Profile, *requests.Info, error) {
	if err := requests.Readable(c.In); err != nil {
		return nil, nil, err
	}
	info := &requests.Info{}
	p, read, err := load.Profile(ctx, c.In.Reader, &load.Options{NoSamples: true, Take: rec.Take, Warn: info.Defect}, append(others, rec)...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.In.Name, err)
	}
	info.Told(&read.Header, read.Stats, p.Meta.End)
	return p, info, nil
}
