package view_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

const (
	manySamples = 400_000
	manySlices  = 20_000
)

// partedProfile is one whose columns and details take several elements each. A sample lasts 1 ms,
// and the n-th slice tells n.
func partedProfile() *profile.Profile {
	tab := profile.NewTable()
	p := &profile.Profile{Table: tab, Meta: profile.Meta{End: manySamples * 1e6}}
	th := &profile.Thread{Process: &profile.Process{PID: 7}, TID: 8}
	frames := make([]profile.FrameID, 50)
	for i := range frames {
		frames[i] = tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: fmt.Sprintf("M%d()", i)})})
	}
	for i := range manySamples {
		s := tab.Push(0, frames[i%50])
		for k := i / 50; k > 0; k /= 50 {
			s = tab.Push(s, frames[k%50])
		}
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: s})
	}
	p.Threads = []*profile.Thread{th}
	p.Tracks = []*profile.Track{{Name: "Events", Group: "events", Slices: func(yield func(*profile.Slice) bool) {
		for i := range manySlices {
			if !yield(&profile.Slice{Start: int64(i), Instant: true, Name: "event", Args: []profile.Arg{{Key: "n", Value: fmt.Sprint(i, strings.Repeat(".", 150))}}}) {
				return
			}
		}
	}}}
	return p
}

// No element is large, and the parts of one list begin where those before end.
func TestParts(t *testing.T) {
	var b strings.Builder
	require.NoError(t, view.Write(&b, partedProfile()))
	parts := func(name string) (list []string) {
		for _, m := range regexp.MustCompile(`(?s)class="`+name+`">(.*?)</script>`).FindAllStringSubmatch(b.String(), -1) {
			require.Less(t, len(m[1]), 1_100_000)
			list = append(list, m[1])
		}
		require.Greater(t, len(list), 1, name)
		return list
	}
	parts("samples")
	parts("nodes")
	next := 1
	for _, text := range parts("told") {
		var list []any
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.EqualValues(t, next, list[0])
		next += len(list) - 1
	}
	assert.Equal(t, 1+manySlices, next)
}

// The page's program puts the parts together.
func TestPartsInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, partedProfile()), drawn)
	var got [4]float64
	b.Eval(`(() => { const [t] = tracefix.trace.threads, w = t.end.length; return [w, t.start[w - 1], t.start.filter((s, i) => t.end[i] - s === 1e6).length, tracefix.trace.tracks[0].slices]; })()`, &got)
	assert.Equal(t, [4]float64{manySamples, (manySamples - 1) * 1e6, manySamples, manySlices}, got)
	var told [3]string
	b.Eval(fmt.Sprintf(`[0, 12345, %d].map(i => tracefix.trace.detail(tracefix.trace.tracks[0], i).replaceAll(".", ""))`, manySlices-1), &told)
	assert.Equal(t, [3]string{"n: 0", "n: 12345", fmt.Sprintf("n: %d", manySlices-1)}, told)
}
