package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestSearchStages holds that stacks are answered as they were recorded before any is made longer, and
// that one which a recursion cuts waits for that.
func TestSearchStages(t *testing.T) {
	tree := stacks.NewTree()
	var samples []Sample
	add := func(cut Cut, frames ...FrameID) int {
		samples = append(samples, Sample{Time: int64(len(samples)), Stack: tree.Add(frames...), Cut: cut})
		return len(samples) - 1
	}
	turns := func(n int) (fs []FrameID) {
		fs = append(fs, 1, 2)
		for range n {
			for i := range FrameID(20) {
				fs = append(fs, 100+i)
			}
		}
		return append(fs, 99)
	}
	whole := func() {
		for i := range FrameID(6) {
			add(Whole, 1, 2, 3, 4, 5, 6, 7, 8, 20+i)
			add(Whole, 1, 2, 3, 10, 11, 12, 13, 14, 20+i)
		}
		add(Whole, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		add(Whole, turns(2)...)
	}
	whole()
	plain := add(Depth, 4, 5, 6, 7, 8, 9)
	whole()
	add(Whole, turns(3)...)
	recursion := add(Depth, turns(3)[14:]...)
	add(Whole, turns(3)...)
	whole()
	for i := range FrameID(8) {
		add(Depth, 40, 41, 42, 43, 44, 60+i)
	}
	lost := add(Depth, 42, 43, 44, 45, 46)
	whole()
	s := newSolver(tree, Names{}, Options{Bridge: 1000, MinConfidence: -1})
	w, _ := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	s.begin(w)
	at := func(sample int) *block {
		for i := range s.runs {
			for k := range s.runs[i].blocks {
				if b := &s.runs[i].blocks[k]; b.first == int32(sample) {
					return b
				}
			}
		}
		return nil
	}
	s.learnModel()
	s.prepare()
	s.search(asRecorded)
	assert.True(t, at(plain).rooted)
	assert.Equal(t, at(lost).stack, at(lost).ext, "nothing is made longer yet")
	assert.False(t, at(recursion).rooted, "longer ones may tell the number of turns")
	s.search(longer)
	assert.Equal(t, []FrameID{40, 41, 42, 43, 44, 45, 46}, tree.AppendFrames(nil, at(lost).ext))
	assert.True(t, at(recursion).rooted)
}

// TestNeeded holds how sure an answer must be, of all and by the model alone, where nine of ten is asked for.
func TestNeeded(t *testing.T) {
	for name, x := range map[string]struct {
		byName, recursive, extended bool
		cut                         Cut
		overlap                     int
		how                         How
		own, all                    float64
	}{
		"between two neighbours":               {cut: Depth, overlap: 40, how: BothSides, own: 0.9, all: 0.9},
		"in a recursion":                       {cut: Depth, overlap: 40, how: BothSides, recursive: true, own: 0.95, all: 0.9},
		"of one neighbour":                     {cut: Depth, overlap: 40, how: After, own: 0.9, all: 0.95},
		"of one neighbour, cut by size":        {cut: Bytes, overlap: 40, how: After, own: 0.9, all: 0.9},
		"nothing overlaps what was extended":   {cut: Depth, extended: true, how: Chain, own: 0.9, all: 0.975},
		"callers that never vary":              {cut: Depth, overlap: 40, extended: true, how: Caller, own: 0.9, all: 0.9},
		"callers that never vary, by names":    {cut: Depth, overlap: 40, extended: true, how: Caller, byName: true, own: 0.9, all: 0.95},
		"the same, and nothing overlaps":       {cut: Depth, extended: true, how: Caller, byName: true, own: 0.9, all: 0.975},
		"between two neighbours, by names":     {cut: Depth, overlap: 40, how: BothSides, byName: true, own: 0.9, all: 0.9},
		"callers that never vary, cut by size": {cut: Bytes, how: Caller, extended: true, own: 0.9, all: 0.9},
	} {
		e := &solver{engine: &engine{minConf: 0.9, byName: x.byName}}
		blk := &block{cut: x.cut, stack: 1, ext: 1}
		if x.extended {
			blk.ext = 2
		}
		own, all := e.needed(blk, &cand{kf: x.overlap}, x.recursive, x.how)
		assert.InDelta(t, x.own, own, 1e-9, name)
		assert.InDelta(t, x.all, all, 1e-9, name)
	}
}
