package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
			for _, s := range tc.seen {
				p := e.t.Add(s.above...)
				c.see(e, p, e.callerOf(p), s.whole)
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
