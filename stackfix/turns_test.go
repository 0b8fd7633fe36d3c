package stackfix

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An answer may lack turns of a recursion where nearly all cut stacks that hold what it begins with
// came there by another turn.
func TestTurns(t *testing.T) {
	const limit = 100
	root, entry, again, other := FrameID(4), FrameID(8), FrameID(12), FrameID(16) // of a method each
	var turn []FrameID
	for m := range FrameID(turnFrames + 2) {
		turn = append(turn, 100+4*m)
	}
	leaf := func(i int) []FrameID { return []FrameID{1000 + 4*FrameID(i)} }
	// The innermost frames that are recorded of a stack.
	recorded := func(fs []FrameID) []FrameID { return fs[max(0, len(fs)-limit):] }
	deep := slices.Concat([]FrameID{root, entry}, turn, []FrameID{again}, turn, []FrameID{again}, turn, []FrameID{again}, turn)
	answer := slices.Concat([]FrameID{root, entry}, turn, []FrameID{again}, turn, []FrameID{again}, turn, leaf(0))
	put := len(answer) - limit
	for name, x := range map[string]struct {
		cut   [][]FrameID // what others recorded
		after []FrameID   // a whole stack
		keeps bool
	}{
		"nearly all came by another turn": {cut: [][]FrameID{deep, deep, deep, deep, deep, deep, deep, deep, deep}},
		"as many came from outside": {
			cut: [][]FrameID{
				deep, deep, deep, deep,
				slices.Concat([]FrameID{other, root, entry}, turn), slices.Concat([]FrameID{other, root, entry}, turn, leaf(90)), slices.Concat([]FrameID{other, root, entry}, turn, leaf(91)),
			},
			keeps: true,
		},
		"few tell anything":               {cut: [][]FrameID{deep}, keeps: true},
		"a deeper whole stack tells it":   {cut: [][]FrameID{deep, deep, deep, deep, deep, deep, deep, deep, deep}, after: slices.Concat(answer[:len(answer)-1], leaf(95), leaf(96)), keeps: true},
		"a whole stack that is no deeper": {cut: [][]FrameID{deep, deep, deep, deep, deep, deep, deep, deep, deep}, after: slices.Concat([]FrameID{root, entry}, turn, leaf(95))},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEngine(site{}, 8192)
			var r run
			add := func(b block, fs []FrameID, known int) { addBlock(e, &r, b, fs, known) }
			for i, fs := range x.cut {
				add(block{cut: Depth}, recorded(append(slices.Clip(fs), leaf(i)...)), 0)
			}
			add(block{cut: Depth, rooted: true}, answer, put)
			if x.after != nil {
				add(block{rooted: true, given: true}, x.after, 0)
			}
			w := &world{runs: []run{r}}
			e.newReview(w).takeBackTurns()
			b := &w.runs[0].blocks[len(x.cut)]
			assert.Equal(t, x.keeps, b.rooted)
			if !x.keeps {
				assert.Equal(t, b.stack, b.ext)
			}
		})
	}
}

// addBlock adds a block of a stack to r, whose outermost frames, so many, were not recorded.
func addBlock(e *engine, r *run, b block, fs []FrameID, lost int) {
	b.first, b.n, b.time, b.conf = int32(len(r.blocks)), 1, int64(len(r.blocks))*1e6, 1
	b.stack = e.t.Add(fs[lost:]...)
	b.ext = b.stack
	if b.rooted {
		b.ext = e.t.Add(fs...)
	}
	r.blocks = append(r.blocks, b)
}
