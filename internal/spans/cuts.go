package spans

import (
	"math"
	"sort"

	"github.com/tracefix/tracefix/profile"
)

// toldCuts are the stretches of a thread of tracefix's own output in which its stacks were cut
// without being as deep as a limit, in order of time. The file tells them with four numbers each:
// ns from the end of the stretch before, ns that it lasts, frames, and how the stacks were cut.
type toldCuts []toldCut

// A toldCut is a stretch whose stacks were cut in one way.
type toldCut struct {
	from, to int64 // ns
	depth    int64 // frames that were recorded
	cut      profile.Cut
	suspect  uint8
}

// readCuts reads the numbers of a file. It returns nil if they are not what tracefix writes.
func readCuts(list []int64) toldCuts {
	if len(list) == 0 || len(list)%4 != 0 {
		return nil
	}
	cuts := make(toldCuts, 0, len(list)/4)
	at := int64(0)
	for ; len(list) > 0; list = list[4:] {
		gap, length, depth, kind := list[0], list[1], list[2], list[3]
		if gap < 0 || length <= 0 || depth <= 0 || kind < 0 || kind > 7 || gap > math.MaxInt64-at || length > math.MaxInt64-at-gap {
			return nil
		}
		c := toldCut{from: at + gap, to: at + gap + length, depth: depth, cut: profile.CutBytes, suspect: uint8(kind / 2)}
		if kind%2 == 1 {
			c.cut = profile.CutBroken
		}
		cuts = append(cuts, c)
		at = c.to
	}
	return cuts
}

// at returns how a stack of so many frames that is open at ns was cut, nil if it was not: one that
// has more frames than were recorded was repaired since.
func (c toldCuts) at(ns int64, depth int) *toldCut {
	i := sort.Search(len(c), func(i int) bool { return c[i].to > ns })
	if i == len(c) || c[i].from > ns || c[i].depth != int64(depth) {
		return nil
	}
	return &c[i]
}

// bridged reports whether a stack holds the bridge of an earlier repair.
func (t *frameTable) bridged(s profile.StackID) bool {
	for ; s != 0; s = t.table.Parent(s) {
		if t.kind(t.table.Frame(s)) == kindBridge {
			return true
		}
	}
	return false
}
