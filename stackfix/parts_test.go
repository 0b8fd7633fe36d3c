package stackfix

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestMiddlewares holds that a chain of a few kinds of middleware, each of which may call each,
// does not hide what the stacks around a cut one and all that hold the same call sites show.
func TestMiddlewares(t *testing.T) {
	const kinds, chain, perKind = 4, 40, 4
	rng := rand.New(rand.NewPCG(3, 1))
	order := make([]int, chain)
	for i := range order {
		order[i] = rng.IntN(kinds)
	}
	// the first frame of a middleware is the one method that all call by, the last one calls the next
	pipeline := []FrameID{1, 2, 3}
	for _, k := range order {
		pipeline = append(pipeline, 4, 5, FrameID(10+2*k), FrameID(11+2*k))
	}
	tree := stacks.NewTree()
	var samples []Sample
	var truth []StackID
	at, handler := 0, []FrameID(nil)
	for i := range 6000 {
		// a request goes down the chain, works, and goes back up
		switch {
		case at < chain && len(handler) == 0 && rng.IntN(40) > 0:
			at = min(chain, at+1+rng.IntN(6))
		case at == chain && rng.IntN(8) > 0:
			handler = handler[:rng.IntN(len(handler)+1)]
			for range rng.IntN(8) {
				handler = append(handler, 30+rng.Uint32N(20))
			}
		default:
			at, handler = rng.IntN(6), nil
		}
		fs := append(append([]FrameID{}, pipeline[:3+perKind*at]...), handler...)
		fs = append(fs, 60+rng.Uint32N(4))
		s := Sample{Time: int64(i) * 2e6, Stack: tree.Add(fs[max(0, len(fs)-testLimit):]...)}
		if len(fs) >= testLimit {
			s.Cut = Depth
		}
		samples, truth = append(samples, s), append(truth, tree.Add(fs...))
	}
	res := fix(tree, Names{}, []recorded{{Samples: samples}}, Options{Bridge: testBridge})
	missing, restored, wrong := 0, 0, 0
	for _, r := range res.Repairs[0] {
		lost := tree.Depth(truth[r.Index]) - tree.Depth(samples[r.Index].Stack)
		missing += lost
		restored += int(r.Restored)
		full := tree.AppendFrames(nil, truth[r.Index])
		shown := tree.AppendFrames(nil, r.Stack)
		if r.How != Bridge {
			if r.Stack != truth[r.Index] {
				wrong++
			}
			continue
		}
		above := int(r.Above) + tree.Depth(samples[r.Index].Stack)
		base := len(shown) - above - 1
		if base+above > len(full) || !slices.Equal(full[:base], shown[:base]) || !slices.Equal(full[len(full)-above:], shown[base+1:]) {
			wrong++
		}
	}
	assert.Zero(t, wrong)
	assert.Greater(t, 10*restored, missing, "of %d bridged stacks, %d frames are missing", res.Stats.How[Bridge], missing)
}

// TestRepeatsTooFar holds that callers above what was recorded may be more than that, or the same
// methods again, but not both; and not many of the same where few methods were recorded.
func TestRepeatsTooFar(t *testing.T) {
	methods := func(from, n FrameID) (fs []FrameID) {
		for m := range n {
			fs = append(fs, 4*(from+m))
		}
		return fs
	}
	many, few := methods(100, fewMethods), methods(100, fewMethods-1)
	others := methods(200, 2*innerSites)
	for name, x := range map[string]struct {
		above, recorded []FrameID
		want            bool
	}{
		"nothing":                       {nil, few, false},
		"few methods, others":           {others, few, false},
		"few methods, again":            {append(others[:innerSites-1:innerSites-1], few[0]), few, true},
		"few methods, from elsewhere":   {append(others[:innerSites-1:innerSites-1], few[0]+1), few, true}, // of the method
		"few methods, less":             {append(others[:innerSites-2:innerSites-2], few[0]), few, false},
		"many methods, more, others":    {others, many, false},
		"many methods, more, again":     {append(others[:], many[0]), many, true},
		"many methods, as many, again":  {append(others[:2*fewMethods-1:2*fewMethods-1], many[0]), slices.Concat(many, many), false},
		"many methods, one more, again": {append(others[:2*fewMethods:2*fewMethods], many[0]), slices.Concat(many, many), true},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			tree.Add(slices.Concat(x.above, x.recorded)...)
			e := newEngine(tree, site{}, Options{Bridge: testBridge})
			assert.Equal(t, x.want, e.repeatsTooFar(x.above, x.recorded))
		})
	}
}

// TestLongContext holds that a stack which begins with what comes again in others is whole where
// all that hold more of it show the same.
func TestLongContext(t *testing.T) {
	row := func(from, n FrameID) (fs []FrameID) {
		for f := from; f < from+n; f++ {
			fs = append(fs, f)
		}
		return fs
	}
	turn := row(10, outerSites)
	sites := func(frames []FrameID, apart FrameID) (fs []FrameID) { // of methods, each of which has four
		for _, f := range frames {
			fs = append(fs, 4*f+apart)
		}
		return fs
	}
	for name, x := range map[string]struct {
		below int     // sites that are recorded below the turn
		apart FrameID // from those of the same methods in whole stacks
		whole bool
	}{
		"long enough to tell":   {longSites, 0, true},
		"too short":             {4, 0, false},
		"other calls, the same": {longSites, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			above := slices.Concat([]FrameID{1, 2, 3}, turn, row(40, 5)) // the turn comes twice
			below := row(100, FrameID(x.below))
			var samples []Sample
			for i := range FrameID(40) {
				s := Sample{Time: int64(i) * lookTime, Stack: tree.Add(sites(slices.Concat(above, turn, below, row(200+i, 1)), 0)...)}
				if samples = append(samples, s); i == 20 {
					s.Stack, s.Cut = tree.Add(sites(slices.Concat(turn, below, row(300, 1)), x.apart)...), Depth
					samples = append(samples, s)
				}
			}
			s := newSolver(tree, site{}, Options{Bridge: testBridge})
			w, _ := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
			s.newConsensus(w).find(false, nil)
			for b := range w.runs[0].all() {
				if b.cut == Depth {
					assert.Equal(t, x.whole, b.rooted)
					if x.whole {
						want := slices.Concat(sites(above, 0), sites(slices.Concat(turn, below, row(300, 1)), x.apart))
						assert.Equal(t, want, s.t.AppendFrames(nil, b.ext))
					}
				}
			}
		})
	}
}

// TestAnotherPhase holds that what other threads did at another time does not hide what a thread
// itself did before and after.
func TestAnotherPhase(t *testing.T) {
	row := func(from, n FrameID) (fs []FrameID) {
		for f := from; f < from+n; f++ {
			fs = append(fs, f)
		}
		return fs
	}
	const cutAt = 20 * lookTime
	below := row(100, outerSites)
	for name, x := range map[string]struct {
		own   int   // every so many of the stacks around are of the own thread
		other int64 // when other threads came another way
		whole bool
	}{
		"its own way":                      {1, cutAt + 3e9, true},
		"hardly seen on its own":           {20, cutAt + 3e9, false},
		"others come another way just now": {1, cutAt + phaseTime/2, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			threads := make([]recorded, 3)
			add := func(thread int, at int64, cut Cut, fs ...FrameID) {
				threads[thread].Samples = append(threads[thread].Samples, Sample{Time: at, Stack: tree.Add(fs...), Cut: cut})
			}
			for i := range FrameID(41) {
				leaf := row(200+i, 1)
				if i == 20 {
					add(0, cutAt, Depth, slices.Concat(below, leaf)...)
					continue
				}
				thread := 2
				if int(i)%x.own == x.own/2 {
					thread = 0
				}
				add(thread, int64(i)*lookTime, Whole, slices.Concat(row(1, 3), below, leaf)...)
			}
			for i := range FrameID(60) {
				add(1, x.other+int64(i)*lookTime, Whole, slices.Concat(row(11, 5), below, row(300+i, 1))...)
			}
			s := newSolver(tree, Names{}, Options{Bridge: testBridge})
			s.byName = false
			w, _ := s.load(streams(threads), []int{0, 1, 2}, math.MaxInt)
			s.newConsensus(w).find(false, nil)
			for b := range w.runs[0].all() {
				if b.cut == Depth {
					assert.Equal(t, x.whole, b.rooted)
					if x.whole {
						assert.Equal(t, slices.Concat(row(1, 3), below, row(220, 1)), s.t.AppendFrames(nil, b.ext))
					}
				}
			}
		})
	}
}

// foundOf asks a thread what is known of its one cut stack.
func foundOf(t *testing.T, tree *stacks.Tree, samples []Sample) (*consensus, *block) {
	s := newSolver(tree, Names{}, Options{Bridge: testBridge})
	s.byName = false
	w, _ := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	c := s.newConsensus(w)
	c.find(false, nil)
	for b := range w.runs[0].all() {
		if b.cut == Depth {
			return c, b
		}
	}
	require.Fail(t, "no stack is cut")
	return nil, nil
}

// TestCompiledAnew holds that a base shows what the nearest stacks show though others have a frame
// more that was inlined since, unless the nearest are all from after the cut one: it may be either.
func TestCompiledAnew(t *testing.T) {
	above := []FrameID{1, 2, 3, 4, 5}
	anew := []FrameID{1, 2, 4, 5} // 3 is part of 2 from then on
	var below []FrameID
	for f := range FrameID(outerSites) {
		below = append(below, 100+f)
	}
	for name, x := range map[string]struct {
		since int // which sample is the first with the new code
		cut   int // which one is cut; if it is that one, the stacks before are much older
		base  []FrameID
	}{
		"before and after it": {20, 60, anew},
		"only after it":       {40, 40, anew[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			var samples []Sample
			for i := range 120 {
				s := Sample{Time: int64(i) * lookTime}
				leaf := FrameID(200 + i)
				if x.cut == x.since && i < x.cut {
					s.Time -= 120 * lookTime
				}
				way := anew
				if i < x.since {
					way = above
				}
				s.Stack = tree.Add(append(slices.Concat(way, below), leaf)...)
				if i == x.cut {
					s.Stack, s.Cut = tree.Add(append(slices.Clone(below), leaf)...), Depth
				}
				samples = append(samples, s)
			}
			c, b := foundOf(t, tree, samples)
			if len(x.base) < len(anew) {
				assert.False(t, b.rooted)
				assert.Equal(t, x.base, c.t.AppendFrames(nil, c.parts[b].base))
			} else {
				assert.True(t, b.rooted)
				assert.Equal(t, append(slices.Concat(x.base, below), c.t.Frame(b.stack)), c.t.AppendFrames(nil, b.ext))
			}
		})
	}
}

// TestInlinedBefore holds that a base goes on to where all votes agree but for a frame that is not in the
// nearest ones, and is no surer than these make it; not where stacks with and without it take turns.
func TestInlinedBefore(t *testing.T) {
	base, inlined, next := []FrameID{1, 2, 3}, FrameID(4), FrameID(5)
	var below []FrameID
	for f := range FrameID(outerSites) {
		below = append(below, 100+f)
	}
	for name, x := range map[string]struct {
		turns int // of so many older or newer stacks one is without the frame, too
		want  []FrameID
		conf  float64
	}{
		"once":     {1000, append(base[:3:3], next), unanimous(mostVotes / 4)},
		"in turns": {6, base, unanimous(2 * localStacks)},
	} {
		t.Run(name, func(t *testing.T) {
			const n, near = 200, mostVotes / 6 // on either side
			tree := stacks.NewTree()
			var samples []Sample
			for i := range n {
				ago := max(i-n/2, n/2-i)
				way := append(base[:3:3], inlined, next)
				if ago <= near || ago%x.turns == 0 {
					way = append(base[:3:3], next)
				}
				leaf := FrameID(400 + i)
				s := Sample{Time: int64(i) * lookTime}
				s.Stack = tree.Add(slices.Concat(way, []FrameID{FrameID(200 + i%50)}, below, []FrameID{leaf})...)
				if i == n/2 {
					s.Stack, s.Cut = tree.Add(append(slices.Clone(below), leaf)...), Depth
				}
				samples = append(samples, s)
			}
			c, b := foundOf(t, tree, samples)
			assert.False(t, b.rooted)
			assert.Equal(t, x.want, c.t.AppendFrames(nil, c.parts[b].base))
			assert.InDelta(t, x.conf, c.parts[b].baseConf, 1e-9)
		})
	}
}
