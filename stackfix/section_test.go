package stackfix

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Of a recording that is repaired in sections every cut sample has one repair, in order, whatever of
// what is right is found in one piece is nearly all found in several, and hardly more is wrong.
func TestSections(t *testing.T) {
	defer func(n int) { mostCuts = n }(mostCuts)
	type outcome struct{ right, wrong, bridged, cut int }
	judge := func(most int, seed uint64, idle bool) (o outcome, st Stats) {
		mostCuts = most
		tree := stacks.NewTree()
		threads, truth := walk(tree, seed, 3, 3000)
		if idle { // one thread ends early, one begins late, and one has a stack for as long as all lasts
			threads[0].Samples, truth[0] = threads[0].Samples[:300], truth[0][:300]
			threads[1].Samples, truth[1] = threads[1].Samples[2500:], truth[1][2500:]
			long := threads[2].Samples[0]
			long.Cut, long.Stack = Depth, threads[2].Samples[1000].Stack
			threads = append(threads, recorded{})
			for i := range threads[0].Samples {
				threads[3].Samples = append(threads[3].Samples, Sample{Time: int64(i) * 1e7, Stack: long.Stack, Cut: Depth})
			}
		}
		res := fix(tree, site{}, threads, Options{Bridge: testBridge})
		for i, th := range threads {
			n := 0
			for j, s := range th.Samples {
				if s.Cut == Whole {
					continue
				}
				require.Less(t, n, len(res.Repairs[i]), "every cut sample has a repair")
				r := res.Repairs[i][n]
				n++
				require.Equal(t, j, int(r.Index))
				o.cut++
				switch {
				case r.How == Bridge:
					o.bridged++
				case i < len(truth) && r.Stack != truth[i][j]:
					o.wrong++
				case i < len(truth):
					o.right++
				}
			}
			require.Equal(t, len(res.Repairs[i]), n)
		}
		return o, res.Stats
	}
	for seed := range uint64(3) {
		whole, all := judge(1<<30, seed, false)
		require.Positive(t, whole.right)
		for _, most := range []int{1000, whole.cut + 1} {
			got, st := judge(most, seed, false)
			assert.Equal(t, whole.cut, got.cut)
			assert.Equal(t, all.Samples, st.Samples)
			n := 0
			for _, how := range st.How {
				n += how
			}
			assert.Equal(t, got.cut, n)
			assert.Greater(t, float64(got.right), 0.7*float64(whole.right), "seed %d, at most %d: %+v, in one %+v", seed, most, got, whole)
			assert.LessOrEqual(t, got.wrong, whole.wrong+whole.cut/50, "seed %d, at most %d: %+v, in one %+v", seed, most, got, whole)
			if most > whole.cut {
				assert.Equal(t, whole, got)
			}
		}
	}
	for _, most := range []int{40, 100} {
		judge(most, 1, true)
	}
}

// Where most stacks are recorded once their frames count, too: fewer cuts than a section may have
// are repaired in several, none of which holds many more frames than it is to.
func TestSectionsOfDeepStacks(t *testing.T) {
	defer func(n int) { mostCuts = n }(mostCuts)
	mostCuts = 40
	const cuts, depth = 30, 200
	tree, rng := stacks.NewTree(), rand.New(rand.NewPCG(1, 2))
	var samples []Sample
	for i := range int64(cuts) {
		s := StackID(0)
		for range depth {
			s = tree.Push(s, rng.Uint32N(50))
		}
		samples = append(samples, Sample{Time: i * 1e7, Stack: s, Cut: Depth})
	}
	threads, most := []recorded{{Samples: samples}}, mostCuts*framesPerCut
	require.Greater(t, tree.Len(), most)

	s := newSolver(tree, Names{}, Options{Bridge: testBridge})
	_, ok := s.load(streams(threads), []int{0}, mostCuts)
	assert.False(t, ok)
	bounds := s.sectionBounds(streams(threads), []int{0})
	assert.Len(t, bounds, (cuts+cuts*depth/framesPerCut+mostCuts-1)/mostCuts)
	for _, b := range bounds {
		whole, part := streams(threads), streams(threads)
		c, _ := cut(s.stop, &whole[0], 0, b)
		part[0].Samples = c.samples(&whole[0])
		w, _ := s.load(part, []int{0}, noLimit)
		assert.Less(t, w.frames, most*5/4, "with what is beside it")
		assert.Positive(t, w.frames)
	}

	repairs := 0
	for _, r := range fix(tree, Names{}, threads, Options{Bridge: testBridge}).Repairs[0] {
		require.EqualValues(t, repairs, r.Index)
		repairs += int(r.N)
	}
	assert.Equal(t, cuts, repairs)
}

// A trial takes as many frames of deep stacks as of those that EventPipe cuts twice over, and of
// these it takes as many blocks as before.
func TestEnoughOfDeepStacks(t *testing.T) {
	w := &world{blocks: 40_000}
	for depth, want := range map[int]int{0: enoughBlocks, 100: enoughBlocks, 200: enoughBlocks, 1000: 1600} {
		assert.Equal(t, want, enough(w, w.blocks, depth), depth)
	}
	assert.Equal(t, 666, enough(w, 100, 300), "enoughFrames of few cuts")
}
