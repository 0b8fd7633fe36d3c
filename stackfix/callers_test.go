package stackfix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeAbove counts for c that frames stand above its context.
func seeAbove(e *engine, x *index, c *callers, above []FrameID, whole bool) {
	x.lay(e, e.t.Add(append(slices.Clone(above), 0)...), len(above)+1)
	x.see(e, c, len(above), e.callerOf(e.t.Add(above...)), whole, 0)
}

func TestCallersSee(t *testing.T) {
	type seen struct {
		above []FrameID // root first
		whole bool
	}
	for _, tc := range []struct {
		name           string
		seen           []seen
		callers, total int32
		agreed, second []FrameID // innermost frames above the context
	}{
		{"nothing", nil, 0, 0, nil, nil},
		{"one stack is no agreement", []seen{{[]FrameID{1, 2, 3}, true}}, 1, 1, []FrameID{1, 2, 3}, nil},
		{"the same twice", []seen{{[]FrameID{1, 2, 3}, true}, {[]FrameID{1, 2, 3}, true}}, 1, 2, []FrameID{1, 2, 3}, []FrameID{1, 2, 3}},
		{"a cut stack agrees as far as it goes", []seen{{[]FrameID{1, 2, 3}, true}, {[]FrameID{2, 3}, false}}, 1, 2, []FrameID{1, 2, 3}, []FrameID{2, 3}},
		{"a longer one goes on", []seen{{[]FrameID{2, 3}, false}, {[]FrameID{1, 2, 3}, true}}, 1, 2, []FrameID{1, 2, 3}, []FrameID{2, 3}},
		{"they part", []seen{{[]FrameID{1, 2, 3}, true}, {[]FrameID{9, 8, 3}, true}, {[]FrameID{1, 2, 3}, true}}, 1, 3, []FrameID{3}, []FrameID{3}},
		{"they part at once", []seen{{[]FrameID{1, 2}, true}, {[]FrameID{1, 3}, true}}, 2, 2, nil, nil},
		{"a thread begins with it", []seen{{nil, true}}, 1, 1, nil, nil},
		{"what was cut off tells nothing", []seen{{nil, false}}, 0, 0, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := testEngine(Names{}, 16)
			var c callers
			var x index
			for _, s := range tc.seen {
				seeAbove(e, &x, &c, s.above, s.whole)
			}
			inner := func(n int32) (out []FrameID) {
				for s := c.ref; n > 0; n-- {
					out = append([]FrameID{e.t.Frame(s)}, out...)
					s = e.t.Parent(s)
				}
				return out
			}
			assert.Equal(t, tc.callers, c.len)
			assert.Equal(t, tc.total, c.total)
			assert.Equal(t, tc.agreed, inner(c.agreed))
			assert.Equal(t, tc.second, inner(c.second))
		})
	}
}

// TestCallersAgree: how far all stacks above a context agree is what one finds by comparing each
// with the longest frame by frame, however long they are and in whatever order they come.
func TestCallersAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parted, shorter := 0, 0
	for range 2000 {
		e := testEngine(Names{}, 16)
		var c callers
		var x index
		base := make([]FrameID, 40)
		for i := range base {
			base[i] = FrameID(r.IntN(2))
		}
		var longest []FrameID // innermost first, as far as all agree
		var ref []FrameID
		open := true // ref may be made longer
		for range 1 + r.IntN(6) {
			above := slices.Clone(base[r.IntN(len(base)):])
			if r.IntN(8) == 0 {
				above[r.IntN(len(above))] = 2
			}
			seeAbove(e, &x, &c, above, false)
			slices.Reverse(above)
			n := 0
			for n < min(len(longest), len(above)) && longest[n] == above[n] {
				n++
			}
			switch {
			case ref == nil || open && n == len(longest) && len(above) > n:
				ref, longest = above, above
			case n < min(len(longest), len(above)):
				longest, open = longest[:n], false
				parted++
			case n < len(longest):
				shorter++
			}
			require.EqualValues(t, len(longest), c.agreed)
			got := e.t.AppendFrames(nil, c.ref)
			slices.Reverse(got)
			require.Equal(t, ref, got)
		}
	}
	require.Greater(t, min(parted, shorter), 300)
}

// TestCallersKnown: a longer context finds what it finds by itself, where it is told what a shorter
// one found, which has seen all that it has.
func TestCallersKnown(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	spared := 0
	for range 2000 {
		e := testEngine(Names{}, 16)
		var shorter, longer, alone callers
		var x index
		base := make([]FrameID, 40)
		for i := range base {
			base[i] = FrameID(r.IntN(2))
		}
		for range 1 + r.IntN(10) {
			above := slices.Clone(base[r.IntN(len(base)):])
			if r.IntN(8) == 0 {
				above[r.IntN(len(above))] = 2
			}
			q, m := len(above), e.callerOf(e.t.Add(above...))
			x.lay(e, e.t.Add(append(above, 0)...), q+1)
			known := x.see(e, &shorter, q, m, true, 0)
			if r.IntN(2) == 0 {
				continue
			}
			if longer.stacks > 0 && min(longer.agreed, int32(q)) <= known {
				spared++
			}
			x.see(e, &alone, q, m, true, 0)
			told := x.see(e, &longer, q, m, true, known)
			require.Equal(t, min(alone.agreed, int32(q)), told)
			longer.hashed, longer.hash, longer.rest = alone.hashed, alone.hash, alone.rest // a cache
			require.Equal(t, alone, longer)
		}
	}
	require.Greater(t, spared, 1000)
}
