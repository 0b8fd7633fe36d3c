package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/httpout"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// addHTTP adds the tracks of HTTP requests to p if they are wanted: one for each
// connection. It reads the file again, which had a number of events at first: one that has
// fewer now is another one.
func addHTTP(ctx context.Context, in *input.File, c *Config, p *profile.Profile, events int64) error {
	if !slices.Contains(c.Tracks, "http") {
		return nil
	}
	var list []*httpphases.Request
	var scan *requests.Scanner
	info, err := requests.Read(ctx, in, func(r *nettrace.Reader) {
		scan = requests.NewScanner(r, func(r *httpphases.Request) {
			ended := r.HasDuration && r.Start+r.Duration < int64(c.Select.From)
			if !ended && (c.Select.To == 0 || r.Start <= int64(c.Select.To)) {
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
