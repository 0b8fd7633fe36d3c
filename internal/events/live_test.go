package events

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/runtimeevents"
)

// TestLiveGrows: what survived the collections of generation 2 of programs that were recorded for 15
// seconds, in MB, every second to sixth of them.
func TestLiveGrows(t *testing.T) {
	for name, tt := range map[string]struct {
		survived []float64
		want     string
	}{
		"a list that is never cleared":            {[]float64{27.4, 51.1, 58.4, 68.4, 78.6, 89.1, 98.6, 108.6, 121.8, 135.3, 150.7, 167.7, 184.5, 203.2, 223.0, 245.6, 269.4, 294.2, 265.1}, "Grows: 27.4 MB survived generation 2 at first, 223 MB at last, with each quarter of the 19 collections more"},
		"the same of large objects":               {[]float64{34.0, 48.5, 56.3, 63.1, 70.6, 77.7, 84.9, 92.2, 99.3, 106.3, 113.2, 120.5, 127.8, 135.0, 142.7, 149.3, 156.9, 164.0, 131.7}, "Grows: 34.0 MB"},
		"a cache that was full after a third":     {[]float64{27.4, 54.9, 68.5, 83.7, 98.4, 114.4, 115.5, 114.7, 115.9, 115.9, 115.4, 116.3, 116.1, 115.7, 115.5, 115.5, 77.4}, ""},
		"a cache that is cleared when it is full": {[]float64{27.4, 55.0, 68.5, 84.0, 98.6, 50.5, 63.4, 78.6, 93.7, 38.6, 59.9, 75.0, 89.9, 34.0, 53.1, 65.4, 80.2, 95.1, 43.7, 56.0}, ""},
		"objects that live for a while":           {[]float64{32.3, 38.7, 39.1, 39.2, 38.8, 39.1, 38.9, 38.9, 39.1, 38.9, 38.7, 38.8, 38.8, 38.7, 39.1, 39.0, 39.1, 38.8, 38.7}, ""},
		"few collections":                         {[]float64{10, 20, 30, 40, 50, 60, 70}, ""},
		"one that frees it in the end":            {[]float64{10, 20, 30, 40, 50, 60, 70, 10}, ""},
		"a little":                                {[]float64{100, 101, 102, 103, 104, 105, 106, 107}, ""},
		"slowly":                                  {[]float64{10, 10.3, 10.6, 10.9, 11.2, 11.5, 11.8, 12.1}, "by 24.0 MB an hour"},
	} {
		l := listsIn[gcRecord](nil)
		for i, mb := range tt.survived {
			g := &gcRecord{}
			g.Number, g.Generation, g.HasSizes, g.Start = uint32(i)+1, 2, true, int64(i)*45e9
			g.End = g.Start + 1e6
			g.Gen[2] = runtimeevents.Generation{After: uint64(mb * 1e6), Promoted: uint64(mb * 1e6)}
			l.add(1, g)
			young := *g
			young.Generation, young.Gen[2].Promoted = 1, 0
			l.add(1, &young)
		}
		p := &gcProcess{&runtimeevents.GCProcess{PID: 1}, l.list(1), nil, 0}
		c := &Context{End: 1e12, Process: func(int) string { return "" }, Frames: func(uint32) []string { return nil }}
		r := gcReport([]*gcProcess{p}, nil, c)
		stats := statsOf(t, r)
		if len(tt.survived) < 8 {
			assert.NotContains(t, stats, "live_grows", name)
		} else {
			assert.Equal(t, tt.want != "", stats["live_grows"], name)
		}
		assert.Equal(t, tt.want != "", strings.HasSuffix(r.Done, ", memory grows"), r.Done)
		if told := strings.Join(strings.Fields(writeRuntime(t, r, "text", 0)), " "); tt.want == "" {
			assert.NotContains(t, told, "Grows", name)
		} else {
			assert.Contains(t, told, tt.want, name)
		}
	}
}

// Collections of a damaged file may be at one time, in which nothing grows.
func TestLiveAtOneTime(t *testing.T) {
	var f floors
	for i := range 8 {
		f.add(5, uint64(i)*10e6)
	}
	assert.False(t, f.quarters().grow())
}

// TestManyFloors: of a million collections the quarters are those of all of them, to the thousandth
// part that an entry stands for.
func TestManyFloors(t *testing.T) {
	for _, n := range []int{8, 9, maxFloors, maxFloors + 1, 4*maxFloors + 3, 1_000_000} {
		var f floors
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for i := range n {
			f.add(int64(i), uint64(i)+r.Uint64N(1000))
		}
		assert.LessOrEqual(t, len(f.list), maxFloors)
		q := f.quarters()
		require.NotNil(t, q)
		for i := range q {
			begin := i * n / 4
			least := uint64(begin)
			assert.InDelta(t, least, q[i].bytes, 1000+float64(n)/256, "%d: %d", n, i)
			assert.InDelta(t, begin, q[i].ns, 1000+float64(n)/256)
		}
	}
}
