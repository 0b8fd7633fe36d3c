package requests

import (
	"cmp"
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// Each activity that has both ends is explained, its time adds up, and is what one has who goes
// through all events before he asks, as far as that is told when it ended.
func TestExplainActivities(t *testing.T) {
	names := []string{"testdata/http-more.nettrace.zst", "testdata/net31-more.nettrace.zst"}
	corpus, err := filepath.Glob("../../../shared/corpus/dotnet10/*.nettrace")
	require.NoError(t, err)
	if len(corpus) == 0 {
		t.Log("no corpus: its activities are not explained")
	}
	explained := 0
	for _, name := range append(names, corpus...) {
		in, err := input.Open(context.Background(), name, nil)
		require.NoError(t, err)
		rows, _, err := Activities(context.Background(), in, nil)
		require.NoError(t, err)
		if rows.Len() == 0 {
			continue
		}
		recorded := func() (*profile.Profile, *Recorder) {
			rec := NewRecorder(0)
			p, _, err := load.Profile(context.Background(), in.Reader, &load.Options{NoSamples: true, Take: rec.Take}, rec)
			require.NoError(t, err)
			return p, rec
		}
		p, rec := recorded()
		late := newExplainer(p.Table, rec, func(*causality.Activity) bool { return true }, false)
		for late.more {
			late.until(late.next.Time)
		}
		told := func(want func(int, *activity.Row) bool) *Explanations {
			p, rec := recorded()
			out, err := ExplainActivities(rows, want, p.Table, rec)
			require.NoError(t, err)
			return out
		}
		all, some := told(nil), told(func(i int, _ *activity.Row) bool { return i%3 == 1 })
		others := 0
		for i, r := range rows.All() {
			x := all.Of(i)
			if i%3 == 1 {
				require.Equal(t, x, some.Of(i), "%s: row %d", name, i)
			} else {
				require.Nil(t, some.Of(i))
			}
			d, ok := r.Duration()
			if !ok || late.roots[requestKey{r.Process, r.ID, r.Start}] == nil {
				require.Nil(t, x, "%s: row %d", name, i)
				continue
			}
			explained++
			root := late.roots[requestKey{r.Process, r.ID, r.Start}]
			require.Equal(t, r.Name, cmp.Or(root.Label, root.Name), "%s: row %d", name, i)
			sum := int64(0)
			for _, ns := range x.Time.Causes {
				sum += ns
			}
			require.Equal(t, d, sum, "%s: row %d", name, i)
			ran := int64(0)
			for _, h := range x.Hot {
				ran += h.Time
			}
			require.LessOrEqual(t, ran, x.CPUTotal, "%s: row %d", name, i)
			y := late.explain(requestKey{r.Process, r.ID, r.Start}, r.Start, r.Stop, nil)
			if x.Time != y.Time || len(x.Hot) != len(y.Hot) || len(x.Blocked) != len(y.Blocked) {
				others++
			}
			require.Equal(t, x.CPUTotal, y.CPUTotal, "%s: row %d", name, i)
			require.LessOrEqual(t, len(x.Children), len(y.Children), "%s: row %d", name, i)
		}
		// Of threads of which nobody knows for whom they work less is told apart later.
		assert.LessOrEqual(t, others, rows.Len()/2000+1, name)
		require.NoError(t, all.Err())
	}
	assert.Greater(t, explained, 400)
}

// Explanations come back as they were, from memory and from disk.
func TestExplanationsOnDisk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := &Explanations{aside: input.Aside(1)}
	e.begin()
	const n = 60_000
	want := make([]*httpphases.Explanation, n)
	for i := range want {
		if i%len(placePage{}) == 0 {
			e.places.Add()
		}
		if i%5 > 0 {
			want[i] = &httpphases.Explanation{Time: httpphases.TimeByCause{CPU: r.Int64()}, Hot: make([]httpphases.MethodTime, 1+r.IntN(40))}
		}
	}
	for i := n - 1; i >= 0; i-- { // the last one ends first
		if want[i] != nil {
			e.keep(i, want[i])
		}
	}
	e.done()
	require.True(t, e.aside.InUse())
	for i, x := range want {
		require.Equal(t, x, e.Of(i))
	}
	require.NoError(t, e.Err())
}

// Of the activities that are wanted those that began lately are known, whoever asks a little late,
// and no more.
func TestBegun(t *testing.T) {
	const n = 20 * mostLately
	key := func(i int) requestKey {
		return requestKey{uint32(i % 3), [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}, int64(i / 1000)}
	}
	list := spool.ListIn[requestKey](nil)
	for i := 0; i < n; i += 2 {
		k := key(i)
		list.Add(&k)
	}
	b := begun{list.From(0), [2]map[requestKey]struct{}{{}, {}}}
	for i := range n {
		require.Equal(t, i%2 == 0, b.has(key(i)), i)
		if late := i - mostLately/2; late >= 0 {
			require.Equal(t, late%2 == 0, b.has(key(late)), late)
		}
		require.LessOrEqual(t, len(b.lately[0])+len(b.lately[1]), 2*mostLately)
	}
}
