package nettrace

import (
	"fmt"
	"hash/maphash"
)

// What stands twice in a file, and what is missing between two sequence points.

// A stretch is what was read since a sequence point.
type stretch struct {
	point         uint64           // its sum
	pointAt       int64            // its offset
	blocks        int              // since then
	parts, events bool             // there was a block with stacks, threads or label lists; with events
	sums          map[uint64]int64 // offsets of other blocks than those of events, by their sums
	epoch         uint32           // seqEpoch at its start
}

// maxSums bounds the blocks that are remembered.
const maxSums = 1 << 16

var sumSeed = maphash.MakeSeed()

// again reports whether a whole block came before, which is told: it must be left out. A block of
// events may stand anywhere before it, another block since the last sequence point, behind
// which ids begin anew and threads are told again, and a sequence point just before it.
func (r *Reader) again(kind blockKind, data []byte, at int64) bool {
	if r.h.Version < 4 || len(data) < 8 {
		return false
	}
	s, sum := &r.stretch, maphash.Bytes(sumSeed, data)
	first, ok := int64(0), false
	switch kind {
	case kindSequencePoint:
		first, ok = s.pointAt, s.blocks == 0 && s.point == sum
		if !ok {
			r.endStretch(at)
			s.point, s.pointAt = sum, at
		}
	case kindEvent:
		s.blocks++
		s.events = true
		first, ok = remember(&r.eventSums, sum, at)
	case kindStack, kindMetadata, kindThread, kindLabelList:
		s.blocks++
		s.parts = s.parts || kind != kindMetadata && len(data) > 8
		first, ok = remember(&s.sums, sum, at)
	}
	if ok {
		r.told(at, kind.String(), fmt.Errorf("%w: the block at offset %d comes a second time; it is left out", ErrDamaged, first), int64(len(data)))
	}
	return ok
}

// remember notes where a block with a sum stands, and returns where one stood before.
func remember(sums *map[uint64]int64, sum uint64, at int64) (first int64, ok bool) {
	if *sums == nil {
		*sums = map[uint64]int64{}
	}
	if first, ok = (*sums)[sum]; !ok && len(*sums) < maxSums {
		(*sums)[sum] = at
	}
	return first, ok
}

// endStretch looks at what stood before a sequence point at an offset: what events refer to is
// written with them.
func (r *Reader) endStretch(at int64) {
	s := &r.stretch
	if s.parts && !s.events && s.epoch == r.seqEpoch {
		r.damaged(at, "EventBlock", fmt.Errorf("%w: between two sequence points stand stacks or threads, and no events: a block of events is missing", ErrDamaged), 0)
	}
	clear(s.sums)
	*s = stretch{sums: s.sums, epoch: r.seqEpoch}
}
