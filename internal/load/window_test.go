package load

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// What a selection by time leaves is the same whether the samples outside were kept or
// not, and most of those are not.
func TestWindow(t *testing.T) {
	type stretch struct {
		tid        int64
		start, end int64
		stack      []profile.FrameID
		joined     bool
	}
	read := func(open func() *Options, name string, s profile.Selection) (all []stretch, kept int, period int64) {
		p, _, err := Profile(context.Background(), opener(t, name), open())
		require.NoError(t, err)
		for _, th := range p.Threads {
			kept += th.Samples.Len()
		}
		p.Select(s)
		timing := p.Timing()
		for _, th := range p.Threads {
			for st := range timing.Stretches(th) {
				all = append(all, stretch{th.TID, st.Start, st.End, p.Table.AppendFrames(nil, st.Stack), st.Joined})
			}
		}
		return all, kept, timing.Period
	}
	const second = 1_000_000_000
	for _, name := range []string{"dotnet10/async.nettrace", "dotnet10/v6-nosymbols.nettrace", "dotnet10/web-60s.nettrace", "dotnet10/dropped.nettrace"} {
		for _, s := range []profile.Selection{{From: second / 2, To: 2 * second}, {From: 3 * second}, {To: second}, {From: 1000 * second}, {To: math.MaxInt64}, {From: second, To: math.MaxInt64 - second}} {
			want, total, period := read(func() *Options { return &Options{} }, name, s)
			got, kept, own := read(func() *Options { return &Options{From: s.From, To: s.To} }, name, s)
			assert.Equal(t, want, got, "%s %+v", name, s)
			assert.Equal(t, period, own, "%s %+v", name, s)
			assert.LessOrEqual(t, kept, total)
			if name == "dotnet10/web-60s.nettrace" && s.To > 0 && s.To < 10*second {
				assert.Less(t, kept, total/5)
			}
		}
	}
}
