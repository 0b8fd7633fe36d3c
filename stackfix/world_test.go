package stackfix

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// What a world says of a recording is what all its blocks say.
func TestWorldCountsWhatItDrops(t *testing.T) {
	for seed := range uint64(4) {
		tree := stacks.NewTree()
		rec, _ := walk(tree, seed, 3, 3000)
		bridged := tree.Add(1, testBridge, 2)
		for i := range rec { // what was seen comes again
			n := len(rec[i].Samples)
			for k := range 2 * n {
				s := rec[i].Samples[k%n]
				s.Time = int64(n+k) * 1e6
				if k >= n { // with empty and bridged stacks among them
					switch k % 7 {
					case 0:
						s.Stack, s.Cut = 0, Whole
					case 1:
						s.Stack, s.Cut = bridged, Depth
					}
				}
				rec[i].Samples = append(rec[i].Samples, s)
			}
		}
		threads, which := streams(rec), []int{0, 1, 2}
		e := newEngine(tree, site{}, Options{Bridge: testBridge})
		w, _ := e.load(threads, which, math.MaxInt)

		var all []run
		blocks, samples := 0, 0
		e.scan(position{begins: true}, func(thread int) { all = append(all, run{thread: thread}) }, func(b *block) bool {
			e.fill(b)
			r := &all[len(all)-1]
			r.blocks = append(r.blocks, *b)
			blocks++
			samples += int(b.n)
			return true
		})
		require.Equal(t, len(all), len(w.runs))
		assert.Equal(t, blocks, w.blocks)
		assert.Equal(t, samples, w.samples)
		assert.Equal(t, len(rec)*len(rec[0].Samples), w.samples)

		// read from a stretch on, it is the same
		type seenBlock struct {
			run int
			b   block
		}
		var flat []seenBlock
		for i := range all {
			for _, b := range all[i].blocks {
				flat = append(flat, seenBlock{i, b})
			}
		}
		require.Len(t, w.stretches, (blocks+stretch-1)/stretch)
		for i, at := range w.stretches {
			ri := at.run
			if at.begins {
				ri--
			}
			var got []seenBlock
			e.scan(at, func(thread int) {
				ri++
				require.Equal(t, all[ri].thread, thread)
			}, func(b *block) bool {
				e.fill(b)
				got = append(got, seenBlock{ri, *b})
				return len(got) < stretch+3
			})
			from := i * stretch
			require.Equal(t, flat[from:min(len(flat), from+stretch+3)], got)
		}

		// a copy that was cut can be cut once more
		once := e.copies(w, []int{40}, blocks, []*engine{e})[0]
		assert.Equal(t, w.stretches, once.stretches)
		twice := e.copies(once, []int{30}, blocks, []*engine{e})[0]
		assert.GreaterOrEqual(t, twice.blocks, blocks)
		assert.Equal(t, samples, twice.samples)

		kept := 0
		var pairs [9][9]float64
		known := map[int]map[StackID]int32{}
		seen := map[StackID]bool{}
		for i := range all {
			r, bs := &all[i], w.runs[i].blocks
			kept += len(bs)
			if known[r.thread] == nil {
				known[r.thread] = map[StackID]int32{}
			}
			for k := range r.blocks {
				b := &r.blocks[k]
				at := slices.IndexFunc(bs, func(x block) bool { return x.first == b.first })
				if !b.rooted || b.bridged || k > 0 && !r.blocks[k-1].rooted || k+1 < len(r.blocks) && !r.blocks[k+1].rooted {
					require.GreaterOrEqual(t, at, 0, "run %d block %d", i, k)
				}
				noted := slices.ContainsFunc(w.runs[i].firsts, func(x first) bool {
					return x.at == b.first && x.stack == b.stack && x.time == b.time
				})
				require.Equal(t, at < 0 && !seen[b.stack], noted, "run %d block %d", i, k)
				seen[b.stack] = seen[b.stack] || b.rooted
				if at >= 0 && k > 0 && !(b.given && r.blocks[k-1].given) {
					require.Equal(t, k > 0 && at > 0 && bs[at-1].first == r.blocks[k-1].first, bs[at].follows)
				}
				if b.rooted {
					known[r.thread][b.ext]++
				}
				if k > 0 && b.rooted && r.blocks[k-1].rooted {
					a := r.blocks[k-1].ext
					c := e.t.Depth(e.t.shared(a, b.ext))
					pairs[bucket(e.t.Depth(a)-c)][bucket(e.t.Depth(b.ext)-c)]++
				}
			}
			gaps := func(r *run) map[int32]StackID {
				m := map[int32]StackID{}
				(&bases{engine: e}).gaps(r, func(k int, shared StackID) { m[r.blocks[k].first] = shared })
				return m
			}
			require.Equal(t, gaps(r), gaps(&w.runs[i]))
			for k := range r.blocks {
				r.blocks[k].given = false
			}
			b := bases{engine: e}
			assert.Equal(t, b.root(r), b.root(&w.runs[i]))
			whole := func(b block) bool { return b.cut == Whole && b.dropped == 0 && b.orig != 0 }
			at, inOrder := int32(-1), 0
			for b := range w.runs[i].all() {
				require.Greater(t, b.first, at)
				var want neighbours
				for _, x := range r.blocks {
					if whole(x) && x.first < b.first {
						want.before = x.orig
					}
					if whole(x) && x.first > b.first {
						want.after = x.orig
						break
					}
				}
				require.Equal(t, want, b.neighbours, "run %d sample %d", i, b.first)
				at = b.first
				inOrder++
			}
			assert.Equal(t, len(bs)+len(w.runs[i].firsts), inOrder)
		}
		assert.Less(t, kept, blocks, "what repeats itself is not kept")
		assert.Equal(t, pairs, w.pairs)
		want := e.newBases(&world{runs: all}).calls
		e.called = callTable{} // or it would be the same memory
		assert.Equal(t, want, e.newBases(w).calls)
		for thread, stacks := range known {
			got := map[StackID]int32{}
			for _, h := range w.known[thread] {
				got[h.stack] = h.n
			}
			assert.Equal(t, stacks, got)
		}
	}
}
