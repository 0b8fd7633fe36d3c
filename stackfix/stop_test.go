package stackfix

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A countdown is a context that ends when it was asked so often.
type countdown struct {
	context.Context
	left atomic.Int64
}

func counting(t *testing.T, n int64) *countdown {
	c := &countdown{Context: t.Context()}
	c.left.Store(n)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever a repair is stopped it ends, with an error and without a result; one that is not stopped
// finds what Fix does.
func TestFixContext(t *testing.T) {
	defer func(cuts, sightings, open int) { mostCuts, mostSightings, leastOpen = cuts, sightings, open }(mostCuts, mostSightings, leastOpen)
	leastOpen = 0
	const never = 1 << 40
	walked := func(tree *stacks.Tree) []recorded {
		threads, _ := walk(tree, 1, 3, 300)
		threads[2].Process = 1
		return threads
	}
	for name, x := range map[string]struct {
		frames          Frames
		make            func(tree *stacks.Tree) []recorded
		cuts, sightings int
		opts            Options
	}{
		"one after the other": {site{}, walked, mostCuts, mostSightings, Options{}},
		"side by side":        {site{}, walked, mostCuts, mostSightings, Options{Each: atOnce, Workers: 3}},
		"by names":            {Names{}, walked, mostCuts, mostSightings, Options{Each: atOnce, Workers: 3}},
		"in sections":         {site{}, walked, 50, mostSightings, Options{}},
		"in portions": {site{}, func(tree *stacks.Tree) []recorded {
			threads := middles(tree)
			for i := range threads {
				threads[i].Samples = threads[i].Samples[:300]
			}
			return threads
		}, mostCuts, 0, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			mostCuts, mostSightings = x.cuts, x.sightings
			x.opts.Bridge = testBridge
			run := func(ctx context.Context) (Result, error) {
				tree := stacks.NewTree()
				threads := streams(x.make(tree))
				return FixContext(ctx, tree, x.frames, threads, x.opts)
			}
			all := counting(t, never)
			got, err := run(all)
			require.NoError(t, err)
			tree := stacks.NewTree()
			assert.Equal(t, Fix(tree, x.frames, streams(x.make(tree)), x.opts), got)

			asked := never - all.left.Load()
			require.Greater(t, asked, int64(20))
			step := 1 + asked/16 // the first questions one by one, and then some of each part
			for n := int64(0); n < asked; n += min(n/4+1, step) {
				res, err := run(counting(t, n))
				require.ErrorIs(t, err, context.Canceled, "after %d of %d questions", n, asked)
				require.Zero(t, res)
			}
		})
	}
}
