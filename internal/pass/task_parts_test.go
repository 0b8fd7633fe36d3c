package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// A repair has the outermost frames and as many markers as events tell, or is a bridge that has.
func TestHoldAgainstTasks(t *testing.T) {
	tab := profile.NewTable()
	ids := map[string]profile.FrameID{"~": BridgeFrame(tab)}
	stack := func(names string) profile.StackID {
		var list []profile.FrameID
		for _, n := range strings.Fields(names) {
			f, ok := ids[n]
			if !ok { // the method is the first letter
				f = tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Name: n[:1]}), Addr: uint64(len(ids))})
				ids[n] = f
			}
			list = append(list, f)
		}
		return tab.Add(list...)
	}
	stack("R D D2 E B C U M X Y")
	known := &taskAnswers{confidence: 0.99, frames: &frames{marks: make([]bool, tab.Frames()), told: make([]bool, tab.Frames())}}
	for _, n := range []string{"B", "C", "U"} {
		known.frames.marks[ids[n]], known.frames.told[ids[n]] = true, n != "U"
	}
	x := taskParts{tab: tab, known: known, bridge: ids["~"]}
	part, recorded := &taskAnswer{stack: stack("R D"), markers: 3}, stack("X Y")
	bridge := func(restored, above int) profile.Repair {
		r := profile.Repair{How: profile.HowBridge, Restored: restored, Above: above, BaseConfidence: 0.99}
		if above > 0 {
			r.AboveConfidence = 0.95
		}
		return r
	}
	whole := profile.Repair{How: "both-sides", Confidence: 0.97, Restored: 7}
	for _, tt := range []struct {
		name string
		r    profile.Repair
		from string
		want profile.Repair
		to   string
	}{
		{"it agrees", whole, "R D B M C B M X Y", whole, "R D B M C B M X Y"},
		{"from another call", whole, "R D2 B M C B M X Y", whole, "R D2 B M C B M X Y"},
		{"too few markers", whole, "R D B M X Y", bridge(2, 0), "R D ~ X Y"},
		{"too many", whole, "R D B M C B C M X Y", bridge(2, 0), "R D ~ X Y"},
		{"some may be none", whole, "R D B M U C U M X Y", whole, "R D B M U C U M X Y"},
		{"other outermost frames", whole, "R E B M C B M X Y", bridge(2, 0), "R D ~ X Y"},
		{"a bridge agrees", bridge(4, 1), "R D B ~ M X Y", bridge(4, 1), "R D B ~ M X Y"},
		{"its base is short", bridge(2, 1), "R ~ M X Y", bridge(3, 1), "R D ~ M X Y"},
		{"its base is another", bridge(3, 1), "R E ~ M X Y", bridge(3, 1), "R D ~ M X Y"},
		{"what stands above reaches the base", bridge(5, 4), "R ~ B C B M X Y", bridge(2, 0), "R D ~ X Y"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Recorded, tt.want.Recorded = stack(tt.from), stack(tt.to)
			assert.Equal(t, tt.want, x.hold(tt.r, recorded, part))
		})
	}
}
