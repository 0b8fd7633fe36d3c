package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// FuzzFix repairs whatever stacks bytes make: nothing may panic, every sample with a
// cut gets one answer, and a repaired stack ends with the frames that were recorded. Whether threads are
// searched side by side makes no difference, nor to samples whether other stacks are repaired, too.
//
// Each byte is one step of a thread: it returns from calls, calls, is sampled, or ends. The first one
// makes the limit, and how far what the recorder took is off.
func FuzzFix(f *testing.F) {
	walk := func(n int, step func(i int) byte) []byte {
		b := []byte{6}
		for i := range n {
			b = append(b, step(i))
		}
		return b
	}
	f.Add([]byte{})
	f.Add(walk(600, func(i int) byte { return byte(i*7 + i/13) }))
	f.Add(walk(600, func(i int) byte { return byte([]int{0x11, 0x12, 0x13, 0xc0, 0x81}[i%5]) }))   // recursion
	f.Add(walk(600, func(i int) byte { return byte(0x10 + i%9 + 0x70*(i%17/16) + 0xb0*(i%4/3)) })) // a chain
	timed := walk(900, func(i int) byte { return byte([]int{0x11, 0x12, 0x13, 0xd0, 0xe1, 0x81}[i*i%6]) })
	timed[0] = 0x46
	f.Add(timed)                        // what the recorder took is told
	f.Add(walk(4000, func(i int) byte { // four threads
		if i%1000 == 999 {
			return 0xbf
		}
		return byte(0x10 + i%9 + 0x70*(i%17/16) + 0xb0*(i%4/3))
	}))
	defer func(room, least int) { handRoom, leastOpen = room, least }(handRoom, leastOpen)
	handRoom, leastOpen = 16, 1
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		limit, spread := 8, float32(0)
		if len(data) > 0 {
			limit, spread, data = 4+int(data[0]%32), fuzzedSpreads[data[0]>>5], data[1:]
		}
		record := func() (*stacks.Tree, []recorded) {
			tree := stacks.NewTree()
			threads := []recorded{{Spread: spread}}
			var stack []FrameID
			for i, b := range data {
				th := &threads[len(threads)-1]
				switch b >> 6 {
				case 0, 1: // two call sites each
					if len(stack) < 200 {
						stack = append(stack, FrameID(b&0x7f))
					}
				case 2:
					stack = stack[:max(0, len(stack)-1-int(b&7))]
					if b&0x3f == 0x3f {
						threads = append(threads, recorded{Process: uint32(len(threads) % 2), Spread: spread})
					} else if b&0x3f == 0x3e {
						th.Breaks = append(th.Breaks, int64(i))
					}
				default:
					s := Sample{Time: int64(i), Cut: Whole, Evidence: b&8 != 0}
					fs := stack
					if len(fs) >= limit {
						fs = fs[len(fs)-limit:]
						s.Cut = 1 + Cut(b&1)
						s.Suspect = b >> 1 & 3 * (b & 1)
						if e := b >> 4 & 3; e > 0 {
							s.Effort = float32(Work(len(stack), len(methodsOf(stack)))) * [...]float32{1, 1.2, 100}[e-1]
						}
					}
					s.Stack = tree.Add(fs...)
					th.Samples = append(th.Samples, s)
				}
			}
			return tree, threads
		}
		for _, by := range []Frames{site{}, Names{}} {
			tree, threads := record()
			alone := fix(tree, by, threads, Options{Bridge: testBridge})
			n := tree.Len()
			tree, threads = record()
			require.Equal(t, alone, fix(tree, by, threads, Options{Bridge: testBridge, Each: atOnce, Workers: 3}))
			require.Equal(t, n, tree.Len())
			requireSamplesOnly(t, tree, by, threads, alone)
		}
		tree, threads := record()
		for _, by := range []struct {
			Frames
			confidence float64
		}{{site{}, 0}, {site{}, -1}, {Names{}, 0}, {Names{}, -1}} {
			res := fix(tree, by.Frames, threads, Options{Bridge: testBridge, MinConfidence: by.confidence})
			for i, th := range threads {
				reps := res.Repairs[i]
				for j, s := range th.Samples {
					if s.Cut == Whole {
						continue
					}
					require.NotEmpty(t, reps, "every cut sample is told of")
					r := reps[0]
					reps = reps[1:]
					require.EqualValues(t, j, r.Index)
					was, is := tree.AppendFrames(nil, s.Stack), tree.AppendFrames(nil, r.Stack)
					require.LessOrEqual(t, int(r.Dropped), int(s.Suspect))
					was = was[r.Dropped:]
					require.GreaterOrEqual(t, len(is), len(was))
					require.Equal(t, was, is[len(is)-len(was):])
				}
				require.Empty(t, reps)
			}
		}
	})
}

// fuzzedSpreads are what a caller may give as [Thread].Spread.
var fuzzedSpreads = [8]float32{0, 0.05, 0.3, 1, -1, float32(math.Inf(1)), float32(math.NaN()), 1e-30}

func methodsOf(stack []FrameID) map[FrameID]bool {
	of := map[FrameID]bool{}
	for _, f := range stack {
		of[site{}.Method(f)] = true
	}
	return of
}
