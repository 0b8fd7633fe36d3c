package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/profile"
)

// Each activity that has both ends is explained, its time adds up, and is what one has who goes through all events before he
// asks, as far as that is told when it ended.
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
		text := func(b []byte, x *httpphases.Explanation) []byte {
			q, err := json.Marshal(x)
			require.NoError(t, err)
			return append(b, q...)
		}
		told := func(want func(int, *activity.Row) bool) *Explanations {
			p, rec := recorded()
			out, err := ExplainActivities(rows, want, p.Table, rec, text)
			require.NoError(t, err)
			return out
		}
		all, some := told(nil), told(func(i int, _ *activity.Row) bool { return i%3 == 1 })
		others := 0
		for i, r := range rows.All() {
			got := all.Append([]byte("so: "), i)
			if i%3 == 1 {
				require.Equal(t, string(got), string(some.Append([]byte("so: "), i)), "%s: row %d", name, i)
			} else {
				require.Empty(t, some.Append(nil, i))
			}
			d, ok := r.Duration()
			if !ok || late.roots[requestKey{r.ID, r.Start}] == nil {
				require.Equal(t, "so: ", string(got), "%s: row %d", name, i)
				continue
			}
			explained++
			var x httpphases.Explanation
			require.NoError(t, json.Unmarshal(got[4:], &x))
			sum := int64(0)
			for _, ns := range x.Time.Causes {
				sum += ns
			}
			require.Equal(t, d, sum, "%s: row %d", name, i)
			y := late.activity(r)
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

// What is kept of many rows is on disk; a text may be long, and one that cannot be read is none.
func TestExplanationsOnDisk(t *testing.T) {
	e := &Explanations{aside: input.Aside(1)}
	e.begin()
	text := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "row %d ", i), 1+i%40) }
	const n = 60_000
	for range (n + len(placePage{}) - 1) / len(placePage{}) {
		e.places.Add()
	}
	for i := n - 1; i >= 0; i-- { // that of the first row is asked for last
		if i%5 > 0 {
			e.keep(i, text(i))
		}
	}
	e.done()
	require.True(t, e.aside.InUse())
	for i := range n {
		var want []byte
		if i%5 > 0 {
			want = text(i)
		}
		require.Equal(t, string(want), string(e.Append(nil, i)))
	}
	require.NoError(t, e.Err())
}
