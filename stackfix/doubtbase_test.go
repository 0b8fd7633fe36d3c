package stackfix

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestDoubtBases holds that what whole stacks begin with is not the base of a cut one where other
// cut stacks come to the same frames another way and none of them is known to begin so.
func TestDoubtBases(t *testing.T) {
	row := func(from, n FrameID) (fs []FrameID) {
		for f := from; f < from+n; f++ {
			fs = append(fs, f)
		}
		return fs
	}
	base, below := row(1, 5), row(100, outerSites)
	other := row(50, 4) // a way into below
	const asks = 20
	for name, x := range map[string]struct {
		another int // cut stacks that show the other way
		alike   int // of these, those that are known to begin with base
		want    []FrameID
	}{
		"all come one way":              {0, 0, base},
		"others another way":            {asks, 0, nil},
		"another way, and all begin so": {asks, asks, base},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			var samples []Sample
			add := func(cut Cut, fs ...[]FrameID) {
				leaf := row(FrameID(200+len(samples)), 1)
				samples = append(samples, Sample{Time: int64(len(samples)) * lookTime, Stack: tree.Add(append(slices.Concat(fs...), leaf...)...), Cut: cut})
			}
			for i := range 2 * asks {
				if i == asks {
					add(Depth, below)
				}
				way := row(10+FrameID(i), 1) // all differ behind the base
				add(Whole, base, way, below)
				if i < x.another {
					add(Depth, other, below)
				}
			}
			s := newSolver(tree, Names{}, Options{Bridge: testBridge})
			s.byName = false
			w, _ := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
			var asked *block
			alike := x.alike
			for k := range w.runs[0].blocks {
				b := &w.runs[0].blocks[k]
				switch fs := tree.AppendFrames(nil, b.stack); {
				case b.cut == Whole:
				case fs[0] == below[0]:
					asked = b
				case fs[0] == other[0] && alike > 0:
					alike--
					b.ext, b.rooted, b.conf = s.t.Join(tree.Add(slices.Concat(base, row(90, 1))...), fs), true, 1
				}
			}
			c := s.newConsensus(w)
			c.find(false, nil)
			assert.False(t, asked.rooted)
			assert.Equal(t, x.want, tree.AppendFrames(nil, c.parts[asked].base))
		})
	}
}
