package stackfix

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Two ways lead into the same frames. The samples of a thread are letters: a and b are whole stacks
// that take one of the ways, small ones such as stop where the ways part; x is a cut stack, whose
// answer takes the way a.
func TestReview(t *testing.T) {
	root := []FrameID{1, 2, 3}
	ways := map[rune][]FrameID{'a': {4, 5}, 'b': {6, 7, 8}}
	middle := []FrameID{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	for name, c := range map[string]struct {
		samples string
		conf    float32
		kept    bool
	}{
		"few hold the same":                               {"bbb.x.bbb", 0.99, true},
		"all take the other way":                          {"bbbb.x.bbbb", 0.999, false},
		"the nearest take the other way":                  {"aaaaaaaabbbb.x.bbbbaaaaaaaa", 0.95, false},
		"the nearest take this one":                       {"bbbbaaaa.x.aaaabbbb", 0.95, true},
		"one neighbor takes it, of few who follow either": {"b.b.b.b.b.b.b.b.a.bax.b", 0.95, false},
		"the same, and it is sure":                        {"b.b.b.b.b.b.b.b.a.bax.b", 0.999, true},
		"one neighbor takes it, as all do":                {"a.a.a.a.a.a.a.a.b.ax.b", 0.95, true},
		"both neighbors take it, as all who have such":    {"aaaaaaaaaaaaaaaaaaaaaaaaaaxaaaabbbb", 0.95, true},
		"others between such take the other way":          {"abababababababababababababaxabababa", 0.95, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			var samples []Sample
			leaf := FrameID(100)
			for _, r := range c.samples {
				leaf++
				s := Sample{Time: int64(len(samples)) * 1e6}
				switch r {
				case '.':
					s.Stack = tree.Add(append(slices.Clone(root), leaf)...)
				case 'x':
					s.Stack, s.Cut = tree.Add(append(slices.Clone(middle[5:]), leaf)...), Depth
				default:
					s.Stack = tree.Add(slices.Concat(root, ways[r], middle, []FrameID{leaf})...)
				}
				samples = append(samples, s)
			}
			s := newSolver(tree, Names{}, Options{Bridge: 1000})
			w, ok := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
			require.True(t, ok)
			d := s.newReview(w)
			var x *block
			for b := range w.runs[0].all() {
				if b.cut == Depth {
					x = b
				}
			}
			require.NotNil(t, x)
			fs := s.t.AppendFrames(nil, x.stack)
			x.guess, x.guessed = s.t.Add(slices.Concat(root, ways['a'], middle[:5])...), c.conf
			n := s.t.Len()
			assert.Empty(t, d.doubtsOn(func(*block) bool { return false }))
			on := d.doubtsOn(func(b *block) bool { return b == x })
			assert.Equal(t, !c.kept, on[x].strays, "an answer that is not sure enough is doubted for the same reasons")
			assert.Equal(t, n, s.t.Len())
			most := mostSightings
			mostSightings = 1
			assert.Equal(t, on, d.doubtsOn(func(b *block) bool { return b == x }), "in portions")
			mostSightings = most
			x.ext = s.t.Add(slices.Concat(root, ways['a'], middle[:5], fs)...)
			x.rooted, x.conf = true, c.conf
			whole := x.ext
			d.takeBack()
			assert.Equal(t, c.kept, x.rooted)
			left, ok := d.left[x]
			require.Equal(t, !c.kept, ok)
			if !c.kept {
				assert.Equal(t, x.stack, x.ext)
				assert.Equal(t, append(slices.Clone(middle[:5]), fs...), s.t.AppendFrames(nil, left.stack), "what lies beyond the ways stays")
				assert.InDelta(t, c.conf, left.conf, 1e-6)
			}
			x.rooted = true
			d.takeBack()
			assert.True(t, x.rooted, "it is asked once")

			s.byName = false
			x.ext, x.conf = whole, c.conf
			s.newReview(w).takeBack()
			assert.True(t, x.rooted, "addresses tell calls apart")

			s.byName, s.minConf = true, doubted
			x.ext, x.conf = whole, c.conf
			d = s.newReview(w)
			d.takeBack()
			assert.True(t, x.rooted, "doubted answers are wanted")
			if !c.kept {
				assert.EqualValues(t, float32(doubted), x.conf)
			} else {
				assert.Equal(t, c.conf, x.conf)
			}
		})
	}
}

// The walk of one stack may end a frame or two before that of another one.
func TestAlong(t *testing.T) {
	q := &inquiry{consensus: &consensus{engine: testEngine(Names{}, 16)}}
	s := q.t.Add(1, 2, 3, 4, 5)
	for name, x := range map[string]struct {
		other []FrameID
		want  int
	}{
		"none":                       {nil, 0},
		"another root":               {[]FrameID{9, 8, 7}, 0},
		"the same":                   {[]FrameID{1, 2, 3, 4, 5, 6}, 5},
		"they part":                  {[]FrameID{1, 2, 3, 9}, 3},
		"the other one goes further": {[]FrameID{8, 1, 2, 3, 9}, 3},
		"by two frames":              {[]FrameID{7, 8, 1, 2}, 2},
		"by more than that":          {[]FrameID{6, 7, 8, 1, 2}, 0},
		"this one goes further":      {[]FrameID{3, 4, 9}, 4},
	} {
		assert.Equal(t, x.want, q.along(s, q.t.Add(x.other...)), name)
	}
}
