package nettrace

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// What stands twice in a file, and what is missing between two sequence points.

// A stretch is what was read since a sequence point.
type stretch struct {
	point         uint64           // its sum
	pointAt       int64            // its offset
	blocks        int              // since then
	parts, events bool             // there was a block with stacks, threads or label lists; with events, or numbers of threads
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
	s := &r.stretch
	if kind >= kindUnknown { // two alike may be meant, and sequence points around it, too
		s.blocks++
	}
	if r.h.Version < 4 || len(data) < 8 {
		return false
	}
	sum := maphash.Bytes(sumSeed, data)
	first, ok := int64(0), false
	switch kind {
	case kindSequencePoint:
		first, ok = s.pointAt, s.blocks == 0 && s.point == sum
		if !ok {
			s.events = s.events || r.listsThreads(data)
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

// listsThreads reports whether a sequence point of v6 has numbers of threads, which tell of events
// that are missing.
func (r *Reader) listsThreads(data []byte) bool {
	return r.h.Version == 6 && len(data) >= 16 && !zero(data[12:16])
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
	r.endOwed(at)
	s := &r.stretch
	if s.parts && !s.events && s.epoch == r.seqEpoch {
		r.damaged(at, "EventBlock", fmt.Errorf("%w: between two sequence points stand stacks or threads, and no events: a block of events is missing", ErrDamaged), 0)
	}
	clear(s.sums)
	*s = stretch{sums: s.sums, epoch: r.seqEpoch}
}

// An owed is what stands in front of a block of events. The runtime writes a stack and a definition
// for the first event that has it, and both before the block that this event is in: all of them are
// used in it, but for the last ones, whose event may begin the block behind.
type owed struct {
	stacks []owedStacks
	metas  []*Metadata
	at     int64 // the offset of the first of both
	epoch  uint32
	proven bool // the writer of the file keeps to that
}

// owedStacks are stacks by their numbers in a refTable.
type owedStacks struct{ first, n uint32 }

// maxOwed bounds the blocks of stacks in front of one block of events: a full one is written by itself.
const maxOwed = 256

func (o *owed) clear() {
	clear(o.metas)
	o.stacks, o.metas, o.at = o.stacks[:0], o.metas[:0], 0
}

// owe notes what the next block of events must use.
func (r *Reader) owe(at int64) *owed {
	o := &r.owed
	if o.at == 0 {
		o.at, o.epoch = at, r.seqEpoch
	}
	return o
}

// oweStacks notes the stacks of a block, n from an id on.
func (r *Reader) oweStacks(first, n uint32, at int64) {
	from, to := r.stacks.find(first), r.stacks.find(first+n-1)
	if r.h.Version != 4 || n < 2 || from == 0 || to-from != n-1 || len(r.owed.stacks) == maxOwed {
		return
	}
	o := r.owe(at)
	o.stacks = append(o.stacks, owedStacks{from, n - 1})
}

// oweMetas notes the definitions of a block. Those of notes are never used.
func (r *Reader) oweMetas(metas []*Metadata, at int64) {
	metas = slices.DeleteFunc(metas, func(m *Metadata) bool { return m.Provider == noteProvider })
	if r.h.Version != 4 || len(metas) < 2 || len(r.owed.metas) > maxOwed {
		return
	}
	o := r.owe(at)
	o.metas = append(o.metas, metas[:len(metas)-1]...)
}

// follows reports whether a block of events is missing in front of one in which so many events are
// lost. It is told.
func (r *Reader) follows(blk *block, lost uint32) (missing bool) {
	if r.h.Version != 4 {
		return false
	}
	// A row that is not marked as sorted goes on with what its thread wrote just before, where
	// the recorder loses events between buffers only.
	first := &blk.rows[0]
	why := ""
	if r.unused(blk, lost) {
		why = "stacks or definitions are written for it"
	} else if !first.sorted && first.lost > 0 {
		why = "this one goes on with the events of a thread"
	}
	if why == "" {
		return false
	}
	r.damaged(blk.offset, "EventBlock", fmt.Errorf("%w: a block of events is missing in front of this one: %s%s", ErrDamaged, why, missingEvents(lost)), 0)
	return true
}

// missingEvents adds to a message how many events are missing. The numbers need not tell: the threads
// of a missing block may have no events in the one behind it.
func missingEvents(n uint32) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and an event is missing by the sequence numbers"
	}
	return fmt.Sprintf(", and %d events are missing by the sequence numbers", n)
}

// unused reports whether a block, in front of or in which so many events are missing, does not use what is
// owed. Of a writer that is not known to keep to the rule, that is said only where nothing of it is
// used or events are missing.
func (r *Reader) unused(blk *block, lost uint32) bool {
	o := &r.owed
	if o.at == 0 || o.epoch != r.seqEpoch {
		return false
	}
	used, all := 0, 0
	for _, s := range o.stacks {
		seen := make([]bool, s.n)
		for i := range blk.rows {
			if k := blk.rows[i].stack - s.first; k < s.n && !seen[k] {
				seen[k] = true
				used++
			}
		}
		all += int(s.n)
	}
	if len(o.metas) > 0 {
		seen := make(map[*Metadata]bool, len(o.metas))
		for _, m := range o.metas {
			seen[m] = false
		}
		for i := range blk.rows {
			m := blk.rows[i].meta
			if before, ok := seen[m]; ok && !before {
				seen[m] = true
				used++
			}
		}
		all += len(seen)
	}
	if used == all {
		o.proven = true
		return false
	}
	return o.proven || used == 0 || lost > 0
}

// endOwed looks at what no block of events followed, in front of a sequence point or the end at an offset.
func (r *Reader) endOwed(at int64) {
	if o := &r.owed; o.at > 0 && o.epoch == r.seqEpoch {
		r.damaged(at, "EventBlock", fmt.Errorf("%w: stacks or definitions at offset %d are written for a block of events that is missing", ErrDamaged, o.at), 0)
	}
	r.owed.clear()
}
