package stackfix

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// baseRun makes a world of one run as a repair leaves it: known stacks, one that is not
// known, and a known one behind it.
func baseRun(e *engine, known [][]FrameID, lost []FrameID, after []FrameID) *world {
	r := run{}
	add := func(rooted bool, fs []FrameID) {
		s := e.t.Add(fs...)
		r.blocks = append(r.blocks, block{n: 1, stack: s, ext: s, rooted: rooted})
	}
	for _, fs := range known {
		add(true, fs)
	}
	add(false, lost)
	if after != nil {
		add(true, after)
	}
	return &world{runs: []run{r}}
}

func TestBase(t *testing.T) {
	const root, loop, work, other, head, leaf = 4, 8, 12, 16, 20, 24
	// calls of head and what it calls, under loop in n different ways
	under := func(n int, prefix ...FrameID) (out [][]FrameID) {
		for i := range n {
			out = append(out, append(slices.Clone(prefix), 1000+FrameID(4*i), head, leaf))
		}
		return out
	}
	open := []FrameID{root, loop, work, 100}
	for _, tc := range []struct {
		name  string
		known [][]FrameID // the last one is the nearest before
		lost  []FrameID
		after []FrameID
		want  []FrameID
	}{
		{"all known calls of the head", append(under(fewCalls, root, loop, work), []FrameID{root}, open), []FrameID{head, 200}, open, []FrameID{root, loop, work}},
		{"too few of them", append(under(fewCalls-1, root, loop, work), []FrameID{other}, open), []FrameID{head, 200}, open, nil},
		{"one is elsewhere", append(under(fewCalls, root, loop, work), []FrameID{root, loop, other, head}, []FrameID{other}, open), []FrameID{head, 200}, open, []FrameID{root, loop}},
		{"only what is open on both sides", append(under(fewCalls, root, loop, work), []FrameID{other}, open), []FrameID{head, 200}, []FrameID{root, loop}, []FrameID{root, loop}},
		{"nothing behind", append(under(fewCalls, root, loop, work), open), []FrameID{head, 200}, nil, nil},
		{"nothing in front", nil, []FrameID{head, 200}, open, nil},
		{"nothing is known of the head: its callee tells", append(under(fewCalls, root, loop, work), []FrameID{other}, open), []FrameID{200, leaf}, open, []FrameID{root, loop, work}},
		{"the callee tells nothing if the head is known elsewhere", append(under(fewCalls, root, loop, work), []FrameID{other, 200}, open), []FrameID{200, leaf}, open, nil},
		{"what all known stacks share", append(under(fewKnown, root, loop), open), []FrameID{200, 204}, open, []FrameID{root, loop}},
		{"too few known stacks", append(under(fewKnown-2, root, loop), open), []FrameID{200, 204}, open, nil},
		{"the head may follow at once: one frame is left to the bridge", append(under(fewCalls, root, loop, work), []FrameID{root, loop, work, head}, []FrameID{other}, open), []FrameID{head, 200}, open, []FrameID{root, loop}},
		{"never into what is recorded", append(under(fewKnown, root, loop, work, 96, 100), []FrameID{root, loop, work, 96, 100}), []FrameID{work, 96, 101, 200}, []FrameID{root, loop, work, 96, 100, 104}, []FrameID{root}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := testEngine(site{}, 2000)
			w := baseRun(e, tc.known, tc.lost, tc.after)
			got := e.newBases(w).of(&w.runs[0])
			assert.ElementsMatch(t, tc.want, e.t.AppendFrames(nil, got[len(tc.known)]))
			for k, s := range got {
				assert.True(t, k == len(tc.known) || s == 0, "known stacks have none")
			}
		})
	}
}

// Where the trial went wrong, more is asked for.
func TestBaseLearns(t *testing.T) {
	e := testEngine(site{}, 2000)
	known := [][]FrameID{{16}, {4, 8, 12}}
	for i := range FrameID(20) {
		known = append(known, []FrameID{4, 8, 1000 + 4*i, 20})
	}
	w := baseRun(e, append(known, known[0], known[1]), []FrameID{20, 24}, known[1])
	x := &w.runs[0].blocks[len(known)+2]
	x.whole, x.truth = true, e.t.Add(4, 8, 28, 20, 24)
	assert.EqualValues(t, fewCalls, e.learnBases(w), "it was right")
	x.truth = e.t.Add(16, 28, 32, 36, 20, 24)
	e.least = e.learnBases(w)
	assert.Greater(t, e.least, int32(20), "twenty calls misled")
	assert.Zero(t, e.newBases(w).of(&w.runs[0])[len(known)+2])
}

// What stands before a bridge is open in the nearest known stacks on both sides, and
// leaves something to the bridge.
func TestBaseProperties(t *testing.T) {
	frames := 0
	for seed := range uint64(4) {
		tree := stacks.NewTree()
		threads, truth := walk(tree, seed, 4, 1000)
		// few answers are that sure: the others become bridges
		res := fix(tree, site{}, threads, Options{Bridge: testBridge, MinConfidence: baseConfidence})
		for i, th := range threads {
			got := make([]StackID, len(th.Samples))
			bridged := make([]bool, len(got))
			for j, s := range th.Samples {
				got[j] = s.Stack
			}
			for _, r := range res.Repairs[i] {
				got[r.Index], bridged[r.Index] = r.Stack, r.How == Bridge
			}
			half := slices.IndexFunc(th.Samples, func(s Sample) bool { return s.Time >= th.Breaks[0] })
			for _, r := range res.Repairs[i] {
				if r.How != Bridge {
					continue
				}
				fs := tree.AppendFrames(nil, r.Stack)
				n := slices.Index(fs, testBridge)
				require.Equal(t, n, int(r.Restored))
				if n == 0 {
					continue
				}
				frames += n
				j := int(r.Index)
				full := tree.AppendFrames(nil, truth[i][j])
				require.Equal(t, full[:n], fs[:n], "the base is true")
				require.Less(t, len(fs)-1, len(full), "the bridge stands for something")
				from, to := 0, len(got)
				if j < half {
					to = half
				} else {
					from = half
				}
				p, q := j, j
				for p >= from && bridged[p] {
					p--
				}
				for q < to && bridged[q] {
					q++
				}
				require.True(t, p >= from && q < to, "known on both sides")
				for _, k := range []int{p, q} {
					require.Equal(t, fs[:n], tree.AppendFrames(nil, got[k])[:n], "open in the neighbour")
				}
			}
		}
	}
	require.Positive(t, frames)
}

// TestCallsAreForgotten holds that bases know nothing of what was asked for before them.
func TestCallsAreForgotten(t *testing.T) {
	tree := stacks.NewTree()
	world := func(cut ...FrameID) *world {
		samples := []Sample{{Stack: tree.Add(1, 2, 3)}, {Time: 1, Stack: tree.Add(cut...), Cut: Depth}}
		w, _ := newSolver(tree, Names{}, Options{}).load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
		return w
	}
	first, second := world(2, 3), world(3)
	e := newEngine(tree, Names{}, Options{})
	e.newBases(first)
	again := e.newBases(second).calls
	assert.Equal(t, newEngine(tree, Names{}, Options{}).newBases(second).calls, again)
	assert.EqualValues(t, 1, again[1][3].n)
	assert.Zero(t, again[1][2])
}

// Direct calls are known of every caller, are told again and again, and are forgotten with the world.
func TestDirectCalls(t *testing.T) {
	const n = 16
	e := testEngine(site{}, 64)
	s := e.t.Add(4)
	for range n {
		s = e.t.Push(s, 8)
	}
	x := &e.called
	x.begin(e)
	for m := range MethodID(n) {
		x.add(s, m)
	}
	x.add(0, n)
	for m := range MethodID(n + 1) {
		assert.Equal(t, m < n, x.has(s, m), m)
		assert.Equal(t, m == n, x.has(0, m), m)
		assert.False(t, x.has(s-1, m), m)
	}
	assert.False(t, x.has(e.t.Push(s, 12), 0), "the stack is newer than the calls")
	x.begin(e)
	x.add(s, n)
	for m := range MethodID(n + 1) {
		assert.Equal(t, m == n, x.has(s, m), m)
		assert.False(t, x.has(0, m), m)
	}
}

// TestBaseIsSure holds that what stands around a bridge is as sure as is asked for, too.
func TestBaseIsSure(t *testing.T) {
	based := map[float64]int{}
	for _, least := range []float64{0.5, DefaultConfidence, baseConfidence, 0.999, 1} {
		tree := stacks.NewTree()
		threads, _ := walk(tree, 1, 4, 1000)
		res := fix(tree, site{}, threads, Options{Bridge: testBridge, MinConfidence: least})
		for i := range res.Repairs {
			for _, r := range res.Repairs[i] {
				if r.Restored > r.Above {
					require.GreaterOrEqual(t, max(r.Confidence, r.BaseConfidence), float32(least), "%+v", r)
				}
				if r.Above > 0 {
					require.GreaterOrEqual(t, r.AboveConfidence, float32(least), "%+v", r)
				}
				if r.How == Bridge && r.BaseConfidence > 0 {
					based[least]++
				}
			}
		}
	}
	assert.Positive(t, based[baseConfidence])
	assert.Zero(t, based[0.999])
}
