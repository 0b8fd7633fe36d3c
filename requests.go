package tracefix

import (
	"context"
	"fmt"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/httpout"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// addRequests adds the tracks of HTTP requests to p: one for each connection. It reads the
// file again, which had a number of events at first: one that has fewer now is another one.
func (f *File) addRequests(ctx context.Context, o *ReadOptions, p *profile.Profile, events int64) error {
	var list []*httpphases.Request
	var scan *requests.Scanner
	info, err := requests.Read(ctx, f.in, func(r *nettrace.Reader) {
		scan = requests.NewScanner(r, func(r *httpphases.Request) {
			ended := r.HasDuration && r.Start+r.Duration < int64(o.From)
			if !ended && (o.To == 0 || r.Start <= int64(o.To)) {
				r.Detail = "" // long, and not drawn
				list = append(list, r)
			}
		}, nil)
	}, func(ev *nettrace.Event) { scan.Event(ev) })
	defer scan.Stop()
	if err != nil {
		return err
	}
	if info.Events < events {
		return fmt.Errorf("expected %d events as at first, found %d: %w", events, info.Events, input.ErrChanged)
	}
	scan.Finish()
	owner := func(pid uint32) *profile.Process {
		for _, q := range p.Processes {
			if q.PID == int64(pid) {
				return q
			}
		}
		return nil
	}
	p.Tracks = append(p.Tracks, httpout.Tracks(list, owner)...)
	return nil
}
