package load

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// How long a walk took is the time between two samples of the recorder, whatever other events are between them and
// whichever threads they are of. Other recorders do not walk so.
func TestWalks(t *testing.T) {
	for _, file := range []string{"dotnet10/noise", "dotnet10/web", "dotnet10/v6-chain"} {
		t.Run(file, func(t *testing.T) {
			want := map[int64][]profile.Walk{}
			last := int64(math.MinInt64)
			o := &Options{Evidence: true, Take: func(ev *nettrace.Event, now int64, _ func() profile.StackID) {
				if ev.Metadata.Role != nettrace.RoleSample {
					return
				}
				w := profile.Walk(0)
				if last != math.MinInt64 {
					w = profile.WalkOf(time.Duration(now - last))
				}
				want[int64(ev.ThreadID)], last = append(want[int64(ev.ThreadID)], w), now
			}}
			p, _, err := Profile(context.Background(), opener(t, file+".nettrace"), o)
			require.NoError(t, err)
			known, between := 0, 0
			for _, th := range p.Threads {
				if p.Meta.Version >= 6 {
					assert.Zero(t, th.Walks.Len())
					continue
				}
				i, walks := 0, th.Walks.From(0)
				for n, s := range th.Samples.All() {
					w := walks.Next()
					if s.Type == profile.SampleEvent {
						between++
						require.Zero(t, w, "thread %d, sample %d: another event", th.TID, n)
						continue
					}
					require.Equal(t, want[th.TID][i], w, "thread %d, sample %d", th.TID, n)
					if i++; w != 0 {
						known++
					}
				}
			}
			if p.Meta.Version < 6 {
				assert.Greater(t, known, 1000)
				assert.Positive(t, between)
			}
			p, _, err = Profile(context.Background(), opener(t, file+".nettrace"), nil)
			require.NoError(t, err)
			for _, th := range p.Threads {
				assert.Zero(t, th.Walks.Len(), "nobody asked")
			}
		})
	}
}
