package stackfix

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A base is cut short where a method of the stack stands below another call of what it shares with
// whole stacks, and not where these are few, or stand too deep to be whole.
func TestHabitats(t *testing.T) {
	const root, mine, other, enter, visit, leaf = 4, 8, 12, 16, 20, 24
	// whole stacks that hold leaf below a call of root
	below := func(n int, call FrameID) (out [][]FrameID) {
		for i := range n {
			out = append(out, []FrameID{root, call, enter, 1000 + FrameID(4*i), leaf})
		}
		return out
	}
	deep := []FrameID{root, other, enter}
	for i := range 60 {
		deep = append(deep, 2000+FrameID(4*i))
	}
	base := []FrameID{root, mine, enter}
	for _, tc := range []struct {
		name   string
		known  [][]FrameID
		lost   []FrameID
		lowest int // frames that call what was recorded, at least
		want   []FrameID
	}{
		{"below another call only", append(below(fewHomes, other), deep), []FrameID{visit, visit, leaf}, 0, []FrameID{root}},
		{"at another address in the same method", append(below(fewHomes, other), deep), []FrameID{visit, visit, leaf + 1}, 0, []FrameID{root}},
		{"in too few", append(below(fewHomes-1, other), deep), []FrameID{visit, visit, leaf}, 0, base},
		{"below both", append(append(below(fewHomes, other), below(1, mine)...), deep), []FrameID{visit, visit, leaf}, 0, base},
		{"by a base at another call site", append(append(below(fewHomes, other), below(1, mine+1)...), deep), []FrameID{visit, visit, leaf}, 0, base},
		{"nowhere", [][]FrameID{deep}, []FrameID{visit, visit, leaf}, 0, base},
		{"what was recorded is not known below the base", append(below(fewHomes, other), deep), []FrameID{2000, visit, leaf}, 0, base},
		{"deeper than stacks are whole", append(below(fewHomes, other), deep), []FrameID{visit, visit, leaf}, 60, base},
		{"stacks that share nothing with the base say nothing", append([][]FrameID{deep}, func() (out [][]FrameID) {
			for i := range fewHomes {
				out = append(out, []FrameID{other, enter, 1000 + FrameID(4*i), leaf})
			}
			return out
		}()...), []FrameID{visit, visit, leaf}, 0, base},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := testEngine(site{}, 3000)
			b, s := e.t.Add(base...), e.t.Add(tc.lost...)
			// where visit stands below the base says how deep the others do
			w := baseRun(e, append(tc.known, append(slices.Clone(base), visit)), tc.lost, nil)
			var open *block
			for k := range w.runs[0].blocks {
				x := &w.runs[0].blocks[k]
				if x.given = x.rooted; !x.rooted {
					open = x
				}
			}
			x := e.newHabitats(w, []*block{open}, map[*block]*part{open: {base: b}})
			least := math.MaxInt
			if tc.lowest > 0 {
				least = tc.lowest
			}
			assert.Equal(t, tc.want, e.t.AppendFrames(nil, x.within(b, s, least)))
		})
	}
}
