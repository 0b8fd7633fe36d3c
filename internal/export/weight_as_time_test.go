package export

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// weighing makes a profile of one thread whose events weigh the amounts, in turn of two types.
func weighing(unit profile.Unit, amounts ...float64) *profile.Profile {
	m := newMaker()
	th := m.thread(m.process(7, "Shop", ""), 8, "Main")
	m.p.Weights = []profile.Weight{{Name: "alloc", Unit: unit}}
	m.p.Names = []string{"Order", "Basket"}
	stacks := []profile.StackID{m.stack("Main", "Load"), m.stack("Main", "Render")}
	for i, amount := range amounts {
		th.Samples.Append(profile.Sample{Time: int64(i), Stack: stacks[i%2], Type: profile.SampleEvent})
		th.Values.Append(profile.Value{Index: int32(i), Name: uint32(i % 2), Amount: amount})
	}
	return m.p
}

// TestWeightAsTime: what viewers sum up as time is what stacks weigh, and the process says what
// a millisecond stands for.
func TestWeightAsTime(t *testing.T) {
	tests := []struct {
		name    string
		unit    profile.Unit
		amounts []float64
		title   string
		ns      map[string]int64 // by frame
		warn    string
	}{
		{"bytes", profile.Bytes, []float64{3e6, 1e6, 5e6}, ", 1 ms is 1.00 MB", map[string]int64{"Main": 9e6, "Load": 8e6, "Order": 8e6, "Basket": 1e6}, ""},
		{"count", profile.Count, []float64{1, 1, 1}, ", 1 ms is 1", map[string]int64{"Main": 3e6, "Load": 2e6, "Basket": 1e6}, ""},
		{"waits", profile.Nanoseconds, []float64{10, 1e9}, "", map[string]int64{"Main": 1e9 + 10, "Order": 10}, ""},
		{"nothing weighs nothing", profile.NoUnit, []float64{0, 2, 0}, ", 1 ms is 1", map[string]int64{"Main": 2e6, "Order": 0, "Basket": 2e6}, ""},
		{"less than nothing", profile.NoUnit, []float64{-4, 2}, ", 1 ms is 1", map[string]int64{"Main": 2e6, "Order": 0}, "1 negative amounts are left out: this format draws them as time"},
		{"too much", profile.NoUnit, []float64{1e18, 3e18}, ", 1 ms is 1,000,000,000,000", map[string]int64{"Main": 4e12, "Order": 1e12}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := weighing(tt.unit, tt.amounts...)
			warned := ""
			o := Options{Weights: []string{"alloc"}, Warn: func(s string) { warned = s }}
			var out bytes.Buffer
			require.NoError(t, Chromium(&out, p, o))
			assert.Contains(t, out.String(), `"name":"Shop: alloc`+tt.title+`"`)
			assert.Contains(t, out.String(), `"holds":"track"`, "nobody takes it for time who reads it again")
			assert.Equal(t, tt.warn, warned)
			spans := [][]span{spansOf(t, readChromium(t, out.Bytes()))}
			out.Reset()
			require.NoError(t, Perfetto(&out, p, o))
			tr := readPerfetto(t, out.Bytes())
			assert.Empty(t, tr.samples)
			for _, spans := range append(spans, tr.spans) {
				got := map[string]int64{}
				for _, s := range spans {
					got[s.name] += s.end - s.start
				}
				for name, ns := range tt.ns {
					assert.InDelta(t, ns, got[name], 4, name)
				}
			}
		})
	}
	require.ErrorIs(t, Chromium(&bytes.Buffer{}, weighing(profile.Bytes, 1), Options{Weights: []string{"alloc", profile.TimeWeight}}), ErrOneWeight)
}

// TestLessThanNothing: what weighs less than nothing, such as what became less between two profiles, is left
// out where a format cannot hold it, and that is told. speedscope refuses a file with such a weight, and in a
// picture what stands beside it would be wider than its caller.
func TestLessThanNothing(t *testing.T) {
	const warning = "stacks that weigh less than nothing, which this format cannot show, and are left out: 1"
	write := func(format func(io.Writer, *profile.Profile, Options) error) string {
		var out bytes.Buffer
		warned := ""
		require.NoError(t, format(&out, weighing(profile.Bytes, 100, -60, 30), Options{Weights: []string{"alloc"}, Warn: func(s string) { warned += s }}))
		assert.Equal(t, warning, warned)
		return out.String()
	}
	assert.Equal(t, "Main;Load;Order 130\n", write(Folded))
	assert.Contains(t, write(Speedscope), `"startValue":0,"endValue":130,"samples":[`+"\n[1,0,2],\n[1,3,4]],"+`"weights":[130,0]}`)
	assert.Contains(t, write(SVG), `<title>Main: 130 B, 100.0 %</title><rect x="10.0" y="34" width="1179.6"`)
	assert.Contains(t, write(SVG), `<title>Load: 130 B, 100.0 %</title><rect x="10.0" y="50" width="1179.6"`)
}
