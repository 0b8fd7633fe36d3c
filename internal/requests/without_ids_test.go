package requests

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// made returns the requests that a recording made, in order of start, perhaps as if it had no
// activity ids.
func made(t *testing.T, name string, ids bool) []*httpphases.Request {
	var s *Scanner
	var rows []*httpphases.Request
	_, err := Read(context.Background(), open(t, name), func(r *nettrace.Reader) {
		s = NewScanner(r, func(q *httpphases.Request) { rows = append(rows, q) }, nil)
	}, func(ev *nettrace.Event) {
		if !ids {
			ev.ActivityID, ev.RelatedActivityID = nettrace.GUID{}, nettrace.GUID{}
		}
		s.Event(ev)
	})
	require.NoError(t, err)
	s.Finish()
	slices.SortFunc(rows, func(a, b *httpphases.Request) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// Of the requests of busy clients almost all end without ids when they end with them. If their
// answers go to who has waited longest, 2 to 16 % do, and 97 % of http-attach, most of whose ask
// one by one.
func TestEndsWithoutIDs(t *testing.T) {
	for name, want := range map[string]int{
		"http-attach":     99, // several places
		"requests-none":   95, // as many connections as it takes
		"requests-pool":   90, // ten, which are waited for
		"requests-convoy": 90,
		"requests-starve": 90, // who waits goes on late
		"compare-before":  95,
	} {
		t.Run(name, func(t *testing.T) {
			path := tracetest.Corpus(t, "dotnet10", name+".nettrace")
			with, without := made(t, path, true), made(t, path, false)
			require.Len(t, without, len(with))
			all, same := 0, 0
			for i, r := range with {
				if !r.HasDuration || r.Guessed > 0 {
					continue
				}
				all++
				q := without[i]
				require.Equal(t, r.Start, q.Start)
				if d := q.Duration - r.Duration; q.HasDuration && max(d, -d) < 1e5 {
					same++
				}
			}
			t.Logf("%d of %d", same, all)
			assert.GreaterOrEqual(t, same, all*want/100)
		})
	}
}
