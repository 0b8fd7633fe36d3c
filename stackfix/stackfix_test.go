package stackfix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// site is a frame table in which frame f is a call site of method f/4.
type site struct{}

func (site) Method(f FrameID) MethodID { return f / 4 }

const (
	testBridge = FrameID(1 << 12)
	testLimit  = 40
)

// A recorded thread has its samples in a list.
type recorded struct {
	Process uint32
	Samples []Sample
	Breaks  []int64
	Spread  float32
}

// testEngine returns an engine for frames below n.
func testEngine(frames Frames, n FrameID) *engine {
	tree := stacks.NewTree()
	tree.Push(0, n-1)
	return newEngine(tree, frames, Options{})
}

// fix is Fix with a repair for each sample.
func fix(tree *stacks.Tree, frames Frames, threads []recorded, opts Options) Result {
	res := Fix(tree, frames, streams(threads), opts)
	for i, reps := range res.Repairs {
		res.Repairs[i] = nil
		for _, rep := range reps {
			for n := rep.N; n > 0; n-- {
				rep.N = 1
				res.Repairs[i] = append(res.Repairs[i], rep)
				rep.Index++
			}
		}
	}
	return res
}

func streams(threads []recorded) []Thread {
	list := make([]Thread, len(threads))
	for i, t := range threads {
		list[i] = Thread{Process: t.Process, Samples: Slice(t.Samples), Breaks: t.Breaks, Spread: t.Spread}
	}
	return list
}

// walk makes threads that call and return at random, most of it in a recursion of
// a few methods below a fixed base, recorded with a limit of testLimit frames. It
// returns the true stacks, too.
func walk(tree *stacks.Tree, seed uint64, threads, samples int) ([]recorded, [][]StackID) {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]recorded, threads)
	truth := make([][]StackID, threads)
	for i := range out {
		fs := []FrameID{400, 404, 408 + FrameID(4*(i%2))}
		base := len(fs)
		for j := range samples {
			if rng.IntN(3) > 0 {
				for range rng.IntN(12) {
					if len(fs) > base {
						fs = fs[:len(fs)-1]
					}
				}
				for range rng.IntN(14) {
					if len(fs) > base && len(fs) < 120 {
						fs[len(fs)-1] = fs[len(fs)-1]&^3 | rng.Uint32N(4)
					}
					fs = append(fs, rng.Uint32N(60))
				}
			}
			if len(fs) > 110 {
				fs = fs[:base+5]
			}
			s := Sample{Time: int64(j) * 1e6, Evidence: rng.IntN(10) == 0}
			cut := fs[max(0, len(fs)-testLimit):]
			if len(fs) >= testLimit {
				s.Cut = Depth
			}
			s.Stack = tree.Add(cut...)
			out[i].Samples = append(out[i].Samples, s)
			truth[i] = append(truth[i], tree.Add(fs...))
		}
		out[i].Breaks = []int64{int64(samples/2) * 1e6}
	}
	return out, truth
}

// TestSamplesOnly: what only evidence has no repair, and what is repaired by it is repaired as before.
func TestSamplesOnly(t *testing.T) {
	for seed := range uint64(6) {
		tree := stacks.NewTree()
		threads, _ := walk(tree, seed, 3, 1500)
		all := fix(tree, site{}, threads, Options{Bridge: testBridge})
		left, same := requireSamplesOnly(t, tree, site{}, threads, all)
		require.NotZero(t, left)
		require.NotZero(t, same)
	}
}

// requireSamplesOnly repairs samples only and holds that against all repairs. It returns how many
// of these are left out.
func requireSamplesOnly(t *testing.T, tree *stacks.Tree, by Frames, threads []recorded, all Result) (left, same int) {
	res := fix(tree, by, threads, Options{Bridge: testBridge, SamplesOnly: true})
	for i := range threads {
		reps := res.Repairs[i]
		for _, r := range all.Repairs[i] {
			if len(reps) > 0 && reps[0].Index == r.Index {
				require.Equal(t, r, reps[0])
				reps = reps[1:]
				same++
				continue
			}
			require.True(t, threads[i].Samples[r.Index].Evidence, "every cut sample has a repair")
			left++
		}
		require.Empty(t, reps)
	}
	return left, same
}

func TestFixProperties(t *testing.T) {
	for seed := range uint64(6) {
		tree := stacks.NewTree()
		threads, truth := walk(tree, seed, 3, 1500)
		res := fix(tree, site{}, threads, Options{Bridge: testBridge})

		cut, right, wrong := 0, 0, 0
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
				cut++
				got, recorded := tree.AppendFrames(nil, r.Stack), tree.AppendFrames(nil, s.Stack)
				require.GreaterOrEqual(t, len(got), len(recorded))
				require.Equal(t, recorded, got[len(got)-len(recorded):], "a repaired stack ends with the recorded frames")
				require.GreaterOrEqual(t, r.Confidence, float32(0))
				require.LessOrEqual(t, r.Confidence, float32(1))
				switch r.How {
				case Complete:
					require.Equal(t, s.Stack, r.Stack, "a complete stack is left alone")
				case Bridge:
					require.Contains(t, got, testBridge)
					continue
				default:
					require.NotContains(t, got, testBridge)
					require.Equal(t, len(got)-len(recorded), int(r.Restored))
				}
				if r.Stack == truth[i][j] {
					right++
				} else {
					wrong++
				}
			}
			require.Len(t, res.Repairs[i], n)
		}
		assert.Greater(t, right, cut/4, "seed %d", seed)
		assert.LessOrEqual(t, wrong*20, cut, "seed %d: few answers are wrong", seed)

		// deterministic, in a fresh tree too
		again := stacks.NewTree()
		threads2, _ := walk(again, seed, 3, 1500)
		res2 := fix(again, site{}, threads2, Options{Bridge: testBridge, Each: atOnce})
		assert.Equal(t, res, res2, "however much runs at once")
		require.Equal(t, tree.Len(), again.Len())

		// idempotent: repaired stacks are whole, and bridged ones stay as they are
		for i := range threads {
			for _, r := range res.Repairs[i] {
				s := &threads[i].Samples[r.Index]
				s.Stack = r.Stack
				if r.How != Bridge {
					s.Cut = Whole
				}
			}
		}
		for i, reps := range fix(tree, site{}, threads, Options{Bridge: testBridge}).Repairs {
			for _, r := range reps {
				assert.Equal(t, threads[i].Samples[r.Index].Stack, r.Stack)
			}
		}
	}
}

// atOnce is an Options.Each.
func atOnce(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// Whether threads are searched side by side or one after the other, all is the same, the numbers of
// stacks included: by call sites and by names, with whatever room hands have, and as many of them
// as there are threads or fewer.
func TestHands(t *testing.T) {
	defer func(n int) { handRoom = n }(handRoom)
	for seed := range uint64(3) {
		for _, by := range []Frames{site{}, Names{}} {
			const threads = 4
			alone := stacks.NewTree()
			recording, _ := walk(alone, seed, threads, 500)
			want := fix(alone, by, recording, Options{Bridge: testBridge, Each: atOnce})
			for workers, room := range map[int]int{2: 1, 3: 64, 64: 32 << 10} {
				handRoom = room
				tree := stacks.NewTree()
				recording, _ := walk(tree, seed, threads, 500)
				got := fix(tree, by, recording, Options{Bridge: testBridge, Each: atOnce, Workers: workers})
				require.Equal(t, want, got, "seed %d, %d workers", seed, workers)
				require.Equal(t, alone.Len(), tree.Len())
			}
		}
	}
	// and there are hands
	tree := stacks.NewTree()
	recording, _ := walk(tree, 1, 3, 800)
	s := newSolver(tree, site{}, Options{Bridge: testBridge, Workers: 2})
	w, _ := s.load(streams(recording), []int{0, 1, 2}, mostCuts)
	s.cal.learn(s.trial(w).rows, s.worthOfWhole())
	s.solve()
	require.Len(t, s.hands, 2)
	for _, h := range s.hands[1:] { // the first has the memory of s
		for _, n := range h.pad {
			require.Zero(t, n, "what was counted of a thread is forgotten")
		}
		for _, x := range h.doubts.used {
			require.Less(t, int(x), tree.Len(), "and what was known of its own stacks")
		}
	}
}

// middles makes threads that reach one of four middle parts by one of three ways, in no order, and
// go on at random: of a cut stack the middle part can be known, and not the way.
func middles(tree *stacks.Tree) []recorded {
	rng := rand.New(rand.NewPCG(5, 5))
	threads := make([]recorded, 2)
	for i := range threads {
		for j := range 4000 {
			fs := []FrameID{4, 400 + 4*rng.Uint32N(3), 500 + 4*rng.Uint32N(5)}
			middle := 1000 + 200*rng.Uint32N(4)
			for k := range FrameID(30) {
				fs = append(fs, middle+4*k)
			}
			for range rng.IntN(18) {
				fs = append(fs, 2000+4*rng.Uint32N(40))
			}
			s := Sample{Time: int64(j) * 1e6}
			if len(fs) > testLimit {
				fs, s.Cut = fs[len(fs)-testLimit:], Depth
			}
			s.Stack = tree.Add(fs...)
			threads[i].Samples = append(threads[i].Samples, s)
		}
	}
	return threads
}

// However few sightings are held at a time, what is found is the same.
func TestPortions(t *testing.T) {
	defer func(n int) { mostSightings = n }(mostSightings)
	stacksOf := func(most int) (found [][]FrameID, above int) {
		mostSightings = most
		tree := stacks.NewTree()
		threads := middles(tree)
		for _, reps := range fix(tree, site{}, threads, Options{Bridge: testBridge}).Repairs {
			for _, r := range reps {
				found = append(found, tree.AppendFrames(nil, r.Stack))
				above += int(r.Above)
			}
		}
		return found, above
	}
	want, above := stacksOf(1 << 30)
	require.Positive(t, above, "some parts are found")
	for _, most := range []int{0, 1000, 100_000} {
		got, _ := stacksOf(most)
		require.Equal(t, want, got, "%d", most)
	}
}

func TestFixWithoutCuts(t *testing.T) {
	tree := stacks.NewTree()
	s := tree.Add(1, 2, 3)
	n := tree.Len()
	res := fix(tree, site{}, []recorded{{Samples: []Sample{{Stack: s}, {Stack: 0}}}, {}}, Options{Bridge: testBridge})
	assert.Equal(t, [][]Repair{nil, nil}, res.Repairs)
	assert.Equal(t, n, tree.Len(), "no stack is added")
	assert.Equal(t, 2, res.Stats.Samples)
	assert.Zero(t, res.Stats.Cut)
}

func TestFixOddInput(t *testing.T) {
	tree := stacks.NewTree()
	one := tree.Add(7)
	threads := []recorded{
		{Samples: []Sample{{Stack: 0, Cut: Depth}, {Stack: one, Cut: Bytes, Suspect: 9}, {Stack: one, Cut: Broken}, {Stack: one, Cut: Depth}}},
		{Samples: []Sample{{Time: 5, Stack: one, Cut: Depth}, {Time: 3, Stack: one, Cut: Depth}}, Breaks: []int64{-1, 4, 4}},
	}
	res := fix(tree, site{}, threads, Options{Bridge: testBridge})
	require.Len(t, res.Repairs[0], 4)
	require.Len(t, res.Repairs[1], 2)
	for _, r := range res.Repairs[0] {
		assert.Contains(t, []How{Bridge, Complete}, r.How)
	}
}

// A suspect that nothing confirms goes, one that other stacks confirm stays.
func TestSuspects(t *testing.T) {
	tree := stacks.NewTree()
	var samples []Sample
	for i := range 20 {
		samples = append(samples, Sample{Time: int64(i), Stack: tree.Add(0, 4, 8, 12, 16, 20+FrameID(4*(i%3)))})
	}
	garbage := tree.Add(80, 8, 12, 16, 24, 28, 32)
	real := tree.Add(4, 8, 12, 16, 24, 28, 32)
	samples = append(samples,
		Sample{Time: 30, Stack: garbage, Cut: Bytes, Suspect: 1},
		Sample{Time: 31, Stack: real, Cut: Bytes, Suspect: 1})
	res := fix(tree, site{}, []recorded{{Samples: samples}}, Options{Bridge: testBridge})
	require.Len(t, res.Repairs[0], 2)
	assert.Equal(t, uint8(1), res.Repairs[0][0].Dropped)
	assert.Equal(t, uint8(0), res.Repairs[0][1].Dropped)
	for _, r := range res.Repairs[0] {
		assert.NotContains(t, tree.AppendFrames(nil, r.Stack), FrameID(80))
	}
}

func Example() {
	// main > serve > handle > f0 > f1 ..., recorded with a limit of 5 frames
	names := []string{"main", "serve", "handle", "f0", "f1", "f2", "f3", "f4", "[frames lost]"}
	tree := stacks.NewTree()
	var samples []Sample
	for i := range 40 {
		depth := 3 + min(i%10, 10-i%10)
		var frames []FrameID
		for f := range depth {
			frames = append(frames, FrameID(f))
		}
		s := Sample{Time: int64(i) * 1e6}
		if depth >= 5 {
			frames, s.Cut = frames[depth-5:], Depth
		}
		s.Stack = tree.Add(frames...)
		samples = append(samples, s)
	}
	res := Fix(tree, Names{}, []Thread{{Samples: Slice(samples)}}, Options{Bridge: 8})
	r := res.Repairs[0][3]
	fmt.Print(r.How, ":")
	for _, f := range tree.AppendFrames(nil, r.Stack) {
		fmt.Print(" ", names[f])
	}
	fmt.Println()
	// Output: both-sides: main serve handle f0 f1 f2 f3 f4
}

// Half of the samples are cut. The time per sample must not grow with their number.
func BenchmarkFix(b *testing.B) {
	for _, n := range []int{20_000, 200_000, 2_000_000} {
		b.Run(fmt.Sprintf("samples=%d", n), func(b *testing.B) {
			tree := stacks.NewTree()
			threads, _ := walk(tree, 1, 10, min(n, 50_000)/10)
			for i := range threads { // long recordings repeat themselves
				th := &threads[i]
				th.Breaks = nil
				for k := len(th.Samples); len(th.Samples) < n/10; {
					s := th.Samples[len(th.Samples)%k]
					s.Time = int64(len(th.Samples)) * 1e6
					th.Samples = append(th.Samples, s)
				}
			}
			list := streams(threads)
			b.ReportAllocs()
			for b.Loop() {
				Fix(tree, site{}, list, Options{Bridge: testBridge})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
		})
	}
}

// A bridge leaves the root frames open that all known stacks around it share, and a
// process is no evidence for another.
func TestBridgeKeepsSharedRoot(t *testing.T) {
	tree := stacks.NewTree()
	const root, loop, bridge = 1, 2, 999
	var known []Sample
	for i := range 20 {
		known = append(known, Sample{Time: int64(i), Stack: tree.Add(root, loop, FrameID(10+i))})
	}
	var deep []FrameID
	for i := range 50 {
		deep = append(deep, FrameID(500+i))
	}
	lost := Sample{Time: 20, Stack: tree.Add(deep...), Cut: Depth}
	after := Sample{Time: 21, Stack: tree.Add(root, loop, 10)}

	res := fix(tree, Names{}, []recorded{{Samples: append(append(known[:20:20], lost), after)}}, Options{Bridge: bridge})
	r := res.Repairs[0][0]
	if r.How != Bridge || r.Restored != 2 {
		t.Fatalf("how %v, restored %d", r.How, r.Restored)
	}
	got := tree.AppendFrames(nil, r.Stack)
	want := append([]FrameID{root, loop, bridge}, deep...)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got[:5], want[:5])
	}

	// Nothing is known behind it: nothing is claimed.
	res = fix(tree, Names{}, []recorded{{Samples: append(known[:20:20], lost)}}, Options{Bridge: bridge})
	if r := res.Repairs[0][0]; r.Restored != 0 {
		t.Errorf("restored %d without a stack behind", r.Restored)
	}

	// The whole stack is known, but in another process.
	whole := tree.Add(append([]FrameID{root, loop}, deep...)...)
	other := recorded{Process: 2}
	for i := range 20 {
		other.Samples = append(other.Samples, Sample{Time: int64(i), Stack: whole})
	}
	one := recorded{Process: 1, Samples: []Sample{lost}}
	if r := fix(tree, Names{}, []recorded{one, other}, Options{Bridge: bridge, MinConfidence: -1}).Repairs[0][0]; r.How != Bridge {
		t.Errorf("%v: taken from another process", r.How)
	}
	other.Process = 1
	if r := fix(tree, Names{}, []recorded{one, other}, Options{Bridge: bridge, MinConfidence: -1}).Repairs[0][0]; r.How != Elsewhere {
		t.Errorf("%v: not taken from another thread", r.How)
	}
}
