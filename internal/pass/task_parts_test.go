package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// A repair has the outermost frames and as many markers as events tell, or is a bridge that has.
func TestHoldAgainstTasks(t *testing.T) {
	g := newHeld("R D D2 E B C U M X Y", "BCU", "U")
	x, stack := &g.x, g.stack
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

// Where nothing tells how many markers a stack has, a repair puts back as many as have begun at
// least, or none.
func TestHoldAgainstTasksUntold(t *testing.T) {
	g := newHeld("R D E B C U M X Y", "BCU", "U")
	recorded := g.stack("M C X Y")
	whole := profile.Repair{How: "both-sides", Confidence: 0.97, Restored: 4}
	bridge := func(restored int) profile.Repair {
		return profile.Repair{How: profile.HowBridge, Restored: restored, BaseConfidence: 0.97}
	}
	for _, tt := range []struct {
		name    string
		markers int32
		r       profile.Repair
		from    string
		want    profile.Repair
		to      string
	}{
		{"a number that nothing tells", 0, whole, "R D B M C B M C X Y", bridge(2), "R D ~ M C X Y"},
		{"fewer than have begun", 5, whole, "R D B M B M C X Y", bridge(2), "R D ~ M C X Y"},
		{"as many", 3, whole, "R D B M B M C X Y", whole, "R D B M B M C X Y"},
		{"some may be none", 2, whole, "R D B U M C X Y", whole, "R D B U M C X Y"},
		{"none is put back", 0, whole, "R D E M C X Y", whole, "R D E M C X Y"},
		{"a bridge", 0, bridge(3), "R D E ~ M C X Y", bridge(3), "R D E ~ M C X Y"},
		{"it only looked cut", 0, profile.Repair{How: "complete"}, "", profile.Repair{How: "complete"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Recorded, tt.want.Recorded = g.stack(tt.from), g.stack(tt.to)
			assert.Equal(t, tt.want, g.x.hold(tt.r, recorded, &taskAnswer{markers: tt.markers}))
		})
	}
}

// A held is what holds repairs against what is known of markers.
type held struct {
	x   taskParts
	ids map[string]profile.FrameID
}

// newHeld knows frames by their names, of which those that are in markers are markers, and nothing
// told that of those in maybe.
func newHeld(names, markers, maybe string) *held {
	tab := profile.NewTable()
	g := &held{ids: map[string]profile.FrameID{"~": BridgeFrame(tab)}}
	g.x = taskParts{tab: tab, bridge: g.ids["~"]}
	g.stack(names)
	known := &taskAnswers{confidence: 0.99, frames: &frames{marks: make([]bool, tab.Frames()), told: make([]bool, tab.Frames())}}
	for _, m := range markers {
		known.frames.marks[g.ids[string(m)]] = true
		known.frames.told[g.ids[string(m)]] = !strings.ContainsRune(maybe, m)
	}
	g.x.known = known
	return g
}

// stack is one of the frames of these names. The method of each is its first letter.
func (g *held) stack(names string) profile.StackID {
	var list []profile.FrameID
	for _, n := range strings.Fields(names) {
		f, ok := g.ids[n]
		if !ok {
			f = g.x.tab.AddFrame(profile.Frame{Method: g.x.tab.AddMethod(profile.Method{Name: n[:1]}), Addr: uint64(len(g.ids))})
			g.ids[n] = f
		}
		list = append(list, f)
	}
	return g.x.tab.Add(list...)
}
