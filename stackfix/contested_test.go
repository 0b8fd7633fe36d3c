package stackfix

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An answer that takes a way which at most one stack shows is taken back as far as that way leads,
// where cut stacks show another one.
func TestContested(t *testing.T) {
	const limit = 100
	pool, resumed, task, other := FrameID(4), FrameID(8), FrameID(12), FrameID(16) // of a method each
	var way, deep []FrameID
	for m := range FrameID(contestedFrames + 4) {
		way = append(way, 100+4*m)
	}
	for m := range FrameID(limit) {
		deep = append(deep, 400+4*m)
	}
	leaf := func(i int) []FrameID { return []FrameID{1000 + 4*FrameID(i)} }
	answer := slices.Concat([]FrameID{pool}, way, deep)
	// What is recorded of stacks in which the way is called by the task, and as in the answer.
	byTask := slices.Concat([]FrameID{task}, way, deep[:limit-1-len(way)])
	byPool := slices.Concat([]FrameID{pool}, way, deep[:limit-1-len(way)])
	contested := func(n int) (cut [][]FrameID) {
		for range n {
			cut = append(cut, byTask)
		}
		return cut
	}
	whole := func(n int) (all [][]FrameID) {
		for i := range n {
			all = append(all, slices.Concat([]FrameID{pool}, way, leaf(97+i)))
		}
		return all
	}
	for name, x := range map[string]struct {
		cut    [][]FrameID // what others recorded
		events [][]FrameID // what cut stacks of other events did
		whole  [][]FrameID // stacks that were recorded whole, elsewhere
		known  int         // how many of these are of samples
		after  []FrameID   // a whole stack
		keeps  bool
		left   []FrameID // of the answer
	}{
		"all are called otherwise": {cut: contested(2), left: answer[1:]},
		"some are called so":       {cut: append(contested(9), byPool, byPool), keeps: true},
		"one is":                   {cut: append(contested(11), byPool), left: answer[1:]},
		"whole ones are":           {cut: contested(9), whole: whole(2), known: 2, keeps: true},
		"one whole one is":         {cut: contested(9), whole: whole(2), known: 1, left: answer[1:]},
		"one is called otherwise":  {cut: contested(1), keeps: true},
		"nobody tells":             {keeps: true},
		"only other events tell":   {events: contested(9), keeps: true},
		"further in they come from elsewhere too": {
			cut:  append(contested(9), slices.Concat([]FrameID{other}, way[3:], deep[:limit-1-len(way[3:])])),
			left: answer[4:],
		},
		"a whole stack goes the same way": {cut: contested(2), after: slices.Concat([]FrameID{pool}, way, leaf(95)), keeps: true},
		"a whole stack goes up to there":  {cut: contested(2), after: slices.Concat([]FrameID{pool, resumed}, leaf(95)), left: answer[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEngine(site{}, 8192)
			var r run
			add := func(b block, fs []FrameID, known int) { addBlock(e, &r, b, fs, known) }
			for i, fs := range x.cut {
				add(block{cut: Depth}, slices.Concat(fs[:limit-1], leaf(i)), 0)
			}
			for i, fs := range x.events {
				add(block{cut: Depth, evidence: true}, slices.Concat(fs[:limit-1], leaf(i)), 0)
			}
			at := len(r.blocks)
			add(block{cut: Depth, rooted: true}, answer, len(answer)-limit)
			if x.after != nil {
				add(block{rooted: true, given: true}, x.after, 0)
			}
			w := &world{runs: []run{r}, known: map[int][]howOften{}}
			for i, fs := range x.whole {
				w.known[i] = []howOften{{stack: e.t.Add(fs...), n: 1, sampled: i < x.known}}
			}
			d := e.newReview(w)
			d.takeBackContested()
			b := &w.runs[0].blocks[at]
			assert.Equal(t, x.keeps, b.rooted)
			if x.keeps {
				assert.Empty(t, d.left)
				return
			}
			assert.Equal(t, b.stack, b.ext)
			assert.Equal(t, x.left, e.t.AppendFrames(nil, d.left[b].stack))
			assert.InDelta(t, 1, d.left[b].conf, 1e-6)
		})
	}
}
