package stackfix

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestWithin holds that a base ends where it contradicts what the whole stacks around share, in
// recordings whose threads seldom leave that.
func TestWithin(t *testing.T) {
	tree := stacks.NewTree()
	between := tree.Add(1, 2, 3)
	for name, x := range map[string]struct {
		base, want []FrameID
		left       int // of 100
	}{
		"shorter":           {[]FrameID{1, 2}, []FrameID{1, 2}, 0},
		"goes on":           {[]FrameID{1, 2, 3, 4}, []FrameID{1, 2, 3, 4}, 0},
		"another way":       {[]FrameID{1, 2, 5, 6}, []FrameID{1, 2}, 0},
		"another root":      {[]FrameID{7, 2}, nil, 0},
		"often left, there": {[]FrameID{1, 2, 5, 6}, []FrameID{1, 2, 5, 6}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			base := tree.Add(x.base...)
			e := newEngine(tree, Names{}, Options{})
			e.cal.enclosing = doubtful{100, x.left}
			assert.Equal(t, tree.Add(x.want...), e.within(base, between))
		})
	}
	assert.Equal(t, between, newEngine(tree, Names{}, Options{}).within(between, 0), "nothing is known around")
}

// TestSteady holds that what a thread begins with all the time is known of its cut stacks too, at
// whatever call, and that none gets an answer that begins otherwise.
func TestSteady(t *testing.T) {
	const entry, pool, native, work = 4, 8, 12, 16 // methods, each with four call sites
	for name, x := range map[string]struct {
		roots []FrameID // of the whole stacks of the thread, again and again
		ways  int       // from the pool into the work
		alone bool      // the whole stack behind the cut one is in what it begins with
		want  []FrameID
	}{
		"an entry point that calls this and that":    {[]FrameID{entry, entry + 1, entry + 2}, 1, false, []FrameID{entry, testBridge}},
		"an entry point that calls nothing then":     {[]FrameID{entry, entry + 1, entry + 2}, 1, true, []FrameID{entry, testBridge}},
		"native code that calls now this, now that":  {[]FrameID{entry, entry + 1, native}, 1, false, []FrameID{pool, 904, 908, 920}},
		"an entry point, and several ways elsewhere": {[]FrameID{entry, entry + 1, entry + 2}, 9, false, []FrameID{entry, testBridge}},
		"what native code calls, and several ways":   {[]FrameID{entry, entry + 1, native}, 9, false, []FrameID{pool, 904, 908, testBridge}},
	} {
		t.Run(name, func(t *testing.T) {
			const samples, at = 90, 31
			tree := stacks.NewTree()
			lost := []FrameID{work, 20, 24, 28, 32, 36, 40, 44}
			var own, others []Sample
			for i := range FrameID(samples) {
				own = append(own, Sample{Time: int64(i) * lookTime, Stack: tree.Add(x.roots[int(i)%len(x.roots)], 200+4*i, 600)})
				for k := range FrameID(4) { // the same work where another thread begins
					others = append(others, Sample{Time: int64(i)*lookTime + int64(k)*1e6, Stack: tree.Add(append([]FrameID{pool, 904, 908, 920 + 4*(i%FrameID(x.ways))}, append(lost, 1604+16*i+4*k)...)...)})
				}
			}
			if x.alone {
				own[at].Stack = tree.Add(x.roots[0])
			}
			own = slices.Insert(own, at, Sample{Time: own[at].Time - 2e6, Stack: tree.Add(append(lost, 700)...), Cut: Depth})
			res := fix(tree, site{}, []recorded{{Samples: own}, {Samples: others}}, Options{Bridge: testBridge, MinConfidence: 0.3})
			got := tree.AppendFrames(nil, res.Repairs[0][0].Stack)
			assert.Equal(t, append(x.want, append(lost, 700)...), got)
		})
	}
}
