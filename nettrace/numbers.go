package nettrace

import (
	"fmt"
	"slices"
)

// The numbers of events. Each capture thread numbers its events, those that the recorder could not
// store among them, so a number that is missing tells of a loss (nettrace.md section 8.3). A number
// that comes later, at a time before what stands in front of it, is that of a block that stands out
// of its place; one that came before is that of a block that stands there twice.

// firstEpoch is Reader.seqEpoch as long as nothing is known to be missing.
const firstEpoch = 1

// A sequence is the state of one capture thread's numbering, and what it was before the
// run of events that is being decoded.
type sequence struct {
	numbering
	run    uint32
	before numbering
}

type numbering struct {
	last    uint32 // the highest number
	epoch   uint32
	back    uint32 // numbers went back by so many, which is damage: as many more are expected
	fresh   bool   // v4: no number of it was seen
	own     bool   // gaps are not those of sequence.before
	time    int64  // of last
	firstAt int64  // the offset of its first event
	gaps    []gap  // in the order of their numbers
}

// A gap is a run of numbers that did not come, from first on, to the one before end.
type gap struct {
	first, end uint32
	loss       int // the number, from 1, of what tells it in Reader.losses; 0: it is no loss
}

// maxGaps bounds those that are known of a thread. Of what the two oldest enclose it is forgotten
// whether it came.
const maxGaps = 256

// skip notes that n numbers behind the last one did not come.
func (s *numbering) skip(n uint32, loss int) {
	if n == 0 {
		return
	}
	s.change()
	if len(s.gaps) == maxGaps {
		s.gaps[1].first = s.gaps[0].first
		s.gaps = append(s.gaps[:0], s.gaps[1:]...)
	}
	s.gaps = append(s.gaps, gap{s.last + 1, s.last + 1 + n, loss})
}

// change makes gaps what may be changed.
func (s *numbering) change() {
	if !s.own {
		s.gaps, s.own = append([]gap(nil), s.gaps...), true
	}
}

// unknown notes that of the numbers before one it is not known which came.
func (s *numbering) unknown(seq uint32) {
	s.gaps, s.own = nil, true
	if seq > 1 {
		s.gaps = []gap{{first: 1, end: seq}}
	}
}

// take takes a number out of the gaps, and reports whether one had it.
func (s *numbering) take(seq uint32) (loss int, ok bool) {
	i := len(s.gaps) - 1
	for i >= 0 && s.last-s.gaps[i].first < s.last-seq {
		i--
	}
	if i < 0 || s.last-(s.gaps[i].end-1) > s.last-seq {
		return 0, false
	}
	s.change()
	g := &s.gaps[i]
	end := g.end
	switch loss = g.loss; {
	case seq == g.first:
		g.first++
	case seq+1 == end || len(s.gaps) < maxGaps:
		g.end = seq
	}
	if g.first == g.end {
		copy(s.gaps[i:], s.gaps[i+1:])
		s.gaps = s.gaps[:len(s.gaps)-1]
	} else if g.end == seq && end != seq+1 { // behind it the gap goes on
		s.gaps = append(s.gaps, gap{})
		copy(s.gaps[i+2:], s.gaps[i+1:])
		s.gaps[i+1] = gap{seq + 1, end, loss}
	}
	return loss, true
}

// odd counts events of a block that stand where they should not, the first one at an offset.
type odd struct {
	events int
	at     int64
}

func (o *odd) add(at int64) {
	if o.events == 0 {
		o.at = at
	}
	o.events++
}

// sequenceOf returns the numbering of a capture thread.
func (r *Reader) sequenceOf(thread uint64) *sequence {
	s := r.seq[thread]
	if s == nil {
		if len(r.seq) >= 1<<16 { // hostile: no process has that many
			clear(r.seq)
			r.seqEpoch++ // of a thread that comes again it is not known where it was
		}
		s = &sequence{numbering: numbering{time: r.h.SyncQPC}}
		s.fresh = r.h.Version == 4
		r.seq[thread] = s
	}
	return s
}

// numbersOf returns the numbering of the capture thread of an event, and its id (v6: that of its row, 0
// if it has none): where one flipped bit makes a new thread of one whose next number this is, it is
// that. A thread whose first events were lost is as new. But an event also tells whose it is, which
// but for samples is its capture thread, or nobody's, where the thread is ending.
func (r *Reader) numbersOf(thread uint64, cur *row, seq uint32, at int64) (*sequence, uint64) {
	s := r.seq[thread]
	if s == nil && r.h.Version < 6 && seq > 1 {
		sample := cur.meta != nil && cur.meta.Role == RoleSample
		for bit := range 64 {
			other := thread ^ 1<<bit
			if q := r.seq[other]; q != nil && q.epoch == r.seqEpoch && q.last+1 == seq && (other == cur.thread || sample) {
				r.told(at, "event", fmt.Errorf("%w: capture thread %d is not known and its number %d is the next of thread %d, which it is read as", ErrDamaged, thread, seq, other), 0)
				s, thread = q, other
				break
			}
		}
	}
	if s == nil {
		s = r.sequenceOf(thread)
	}
	if s.run != r.run {
		s.run, s.before, s.own = r.run, s.numbering, false
		r.ran = append(r.ran, s)
	}
	if r.h.Version < 6 {
		return s, thread
	}
	if th := r.threads[thread]; th != nil {
		return s, th.ID
	}
	return s, 0
}

// jump takes an event, at an offset of the file, whose number is not the next one of its capture
// thread, or that is the first since numbers may be missing. It reports whether the event came
// before.
func (r *Reader) jump(cur *row, s *sequence, seq uint32, captured uint64, time, at int64) (again bool) {
	ahead, known := seq-s.last-1, s.epoch == r.seqEpoch
	if ahead >= 1<<31 && time <= s.time {
		if loss, ok := s.take(seq); ok {
			r.late.add(at)
			r.came(cur.capture, loss)
			return false
		}
		if known && r.h.Version < 6 {
			r.doubled.add(at)
			return true
		}
	}
	loss := 0
	if !known && s.fresh {
		s.fresh, s.firstAt = false, at
		r.firsts = r.firsts || seq > 1
	} else if known {
		if cur.lost = r.skipped(s, cur.capture, ahead, at); cur.lost > 0 {
			loss = r.loseBefore(cur, s, captured, time, at)
		}
	}
	if ahead < 1<<31 {
		s.skip(ahead, loss)
	} else {
		s.unknown(seq)
	}
	s.last, s.time, s.epoch = seq, time, r.seqEpoch
	return false
}

// skipped tells how many events are missing where a number does not follow the one before. A
// number that goes back is damage: as many as it goes back by did not go missing before, and will
// not where it goes on.
func (r *Reader) skipped(s *sequence, thread uint64, gap uint32, at int64) uint32 {
	if gap < 1<<31 {
		back := min(gap, s.back)
		s.back -= back
		return gap - back
	}
	if r.h.Version == 6 || s.last+gap+1 == 1 { // the system gave the id to another thread
		return 0
	}
	by := -gap
	left := by
	if r.effort(len(r.losses) + r.queue.bytes/rowSize) {
		left -= r.found(thread, by)
	}
	s.back = left
	r.told(at, "event", fmt.Errorf("%w: sequence numbers of thread %d go back by %d", ErrDamaged, thread, by), 0)
	return 0
}

// found takes up to n events of a capture thread out of the newest losses: they were not lost. It
// returns how many.
func (r *Reader) found(thread uint64, n uint32) uint32 {
	r.changeLosses()
	left := n
	for i := len(r.losses) - 1; i >= 0 && i >= len(r.losses)-256 && left > 0; i-- {
		if l := &r.losses[i]; l.CaptureThreadID == thread {
			left -= r.unlose(l, left)
		}
	}
	r.queue.found(thread, n-left)
	return n - left
}

// changeLosses makes losses what may be changed: events hold them as they were when these were delivered.
func (r *Reader) changeLosses() {
	if r.lossesHeld {
		r.losses, r.lossesHeld = slices.Clone(r.losses), false
	}
}

// unlose takes up to n events out of a loss, and returns how many.
func (r *Reader) unlose(l *Loss, n uint32) uint32 {
	n = min(n, l.Count)
	l.Count -= n
	r.stats.Lost -= uint64(n)
	if n > 0 && l.Count == 0 {
		r.stats.LostGaps--
	}
	return n
}

// came takes an event that comes late out of the loss that told it.
func (r *Reader) came(thread uint64, loss int) {
	if loss == 0 || loss > len(r.losses) || r.losses[loss-1].CaptureThreadID != thread || r.lossesHeld && !r.effort(len(r.losses)) {
		return // no loss, or one that was taken back
	}
	r.changeLosses()
	r.unlose(&r.losses[loss-1], 1)
}

// lostFirst notes the gaps in front of threads that are new in a block. The runtime numbers the
// events of each from 1 on, in every session: where nothing is known to be damaged, what is below a
// first number was lost.
func (r *Reader) lostFirst(blk *block) {
	if !r.firsts || r.seqEpoch != firstEpoch {
		return
	}
	for i := range blk.rows {
		row := &blk.rows[i]
		if s := r.seq[row.capture]; s != nil && row.seq > 1 && s.firstAt == blk.offset+int64(row.at()) {
			row.lost = row.seq - 1
			loss := r.loseBefore(row, &sequence{numbering: numbering{time: r.h.SyncQPC}}, row.capture, row.time, s.firstAt)
			if s.change(); len(s.gaps) > 0 && s.gaps[0].first == 1 {
				s.gaps[0].loss = loss
			}
		}
	}
}

// loseBefore notes a gap in front of an event, and returns what gap.loss is.
func (r *Reader) loseBefore(cur *row, s *sequence, captured uint64, t, at int64) int {
	l := Loss{CaptureThreadID: cur.capture, ProcessID: r.h.ProcessID, Count: cur.lost, After: s.time, Before: t, Offset: at}
	if r.h.Version == 6 {
		if th := r.threads[captured]; th != nil {
			l.ProcessID = th.ProcessID
		}
	}
	return r.lose(l)
}

// lose notes lost events, and returns what gap.loss is.
func (r *Reader) lose(l Loss) int {
	r.stats.Lost += uint64(l.Count)
	r.stats.LostGaps++
	if len(r.losses) == maxLosses {
		return 0
	}
	r.losses = append(r.losses, l)
	return len(r.losses)
}

// notLost takes back the losses that a block told, of which those from a number on are: what the file
// lost the recorder did not.
func (r *Reader) notLost(blk *block, from int) {
	for i := range blk.rows {
		if row := &blk.rows[i]; row.lost > 0 {
			r.stats.Lost -= uint64(row.lost)
			r.stats.LostGaps--
			row.lost = 0
		}
	}
	r.losses = r.losses[:from]
	for _, s := range r.ran {
		for i := range s.gaps {
			if s.gaps[i].loss > from {
				s.gaps[i].loss = 0 // made in this block, so they are its own
			}
		}
	}
}

// outOfPlace tells of events of a block that were missing before it. Those from before the last sequence
// point have numbers of stacks that it ended.
func (r *Reader) outOfPlace(blk *block) {
	for i := range blk.rows {
		if row := &blk.rows[i]; row.time < r.pointTime && row.stack != 0 && !r.summed { // a copy numbers them anew
			row.stack = 0
			r.stats.UnknownStacks++
		}
	}
	r.told(r.late.at, "EventBlock", fmt.Errorf("%w: blocks stand out of their order: what was missing before is here, %s", ErrDamaged, events(r.late.events)), 0)
}

// syncSequence compares the number that a sequence point tells with the last one seen.
func (r *Reader) syncSequence(thread uint64, seq uint32, t, at int64) {
	s := r.sequenceOf(thread)
	gap := seq - s.last
	if gap >= 1<<31 && t < s.time {
		r.early.add(at)
		return
	}
	loss := 0
	if (s.epoch == r.seqEpoch || s.fresh && r.seqEpoch == firstEpoch) && gap != 0 && gap < 1<<31 {
		if missing := r.skipped(s, thread, gap, at); missing > 0 {
			l := Loss{CaptureThreadID: thread, ProcessID: r.h.ProcessID, Count: missing, After: s.time, Before: t, AtSequencePoint: true, Offset: at}
			if r.h.Version == 6 {
				l.CaptureThreadID = 0
				if th := r.threads[thread]; th != nil {
					l.CaptureThreadID, l.ProcessID, l.thread = th.ID, th.ProcessID, th
				}
			}
			loss = r.lose(l)
		}
	}
	s.own = false // a run that was undone may have them
	if gap < 1<<31 {
		s.skip(gap, loss)
	} else {
		s.unknown(seq + 1)
	}
	s.last, s.epoch, s.fresh = seq, r.seqEpoch, false
	s.time = t
}

// endRegion follows the threads of a sequence point.
func (r *Reader) endRegion(t, at int64) {
	if r.early.events > 0 {
		r.told(at, "SPBlock", fmt.Errorf("%w: blocks stand out of their order: events in front of this sequence point belong behind it, and may have stacks of others", ErrDamaged), 0)
		r.early = odd{}
	}
	r.pointTime = t
	r.newRegion()
}
