package stackfix

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// An inquiry is for one block at a time. It adds no stack to the tree, which others read.
type inquiry struct {
	*consensus
	found *finding

	// scratch
	fs, gs []FrameID
	way    []FrameID // see compare
	path   []StackID // of way: the stack down to each frame
	votes  assembly
	heard  []bool // by camp; see agreed and showing
	turns  []turn // see fickle
	parts  []parting
	partAt []int32  // by camp: 1 + where it parts from the first; see firm
	met    []uint32 // by spot: when it was met
	now    uint32
}

// A finding is frames that are to be put above a block.
type finding struct {
	whole []FrameID // the stack, if that is all
	inner []FrameID // else what is known of it, root first; empty: no more than before
	how   How       // whole is known
	conf  float32   // of whole
	voted bool      // whole is what votes alone say
}

// A camp is witnesses that show the same above a context.
type camp struct {
	above StackID
	n     int
	first int // witnesses of other camps that are nearer than all of these
	whole bool
}

// An assembly is the witnesses of a context that vote, the nearest first.
type assembly struct {
	camps   []camp     // the one with the nearest witness first
	votes   []ballot   // of all of them
	n       int        // witnesses
	looks   []glimpse  // at which they saw it, by lookTime, up to fewLooks
	differs int        // how many of the nearest have fewLooks; more than n if all have fewer
	shared  []int32    // of each camp: how many frames it begins with as the first does, by method; see compare
	common  []int32    // of each camp: how many of these are the same frames
	at      [256]uint8 // 1 + the number of a camp, by a hash; 0 is free
}

// assemble calls the nearest witnesses of a context. It leaves off where one of the first so many
// shows more or fewer frames than the nearest.
func (q *inquiry) assemble(a *assembly, id int32, time int64, whole bool, alike int) {
	a.camps, a.votes, a.n, a.looks, a.differs = a.camps[:0], a.votes[:0], 0, a.looks[:0], math.MaxInt
	if id == 0 {
		return
	}
	a.at = [len(a.at)]uint8{}
	q.now++
	now, met, times := q.now, q.met, q.times
	view := &q.views[id-1]
	before, after := nearest(view.all, times, time)
	if whole && view.few {
		before, after = among(view.whole, before), among(view.whole, after)
	}
	for a.n < mostVotes {
		for len(before) > 0 && !q.recorded && met[before[len(before)-1].spot] == now {
			before = before[:len(before)-1]
		}
		for len(after) > 0 && !q.recorded && met[after[0].spot] == now {
			after = after[1:]
		}
		var s sighting
		switch n := len(before); {
		case n == 0 && len(after) == 0:
			return
		case len(after) == 0 || n > 0 && time-times[before[n-1].witness] <= times[after[0].witness]-time:
			s, before = before[n-1], before[:n-1]
		default:
			s, after = after[0], after[1:]
		}
		if whole && !q.isWhole[s.witness] {
			continue
		}
		met[s.spot] = now
		x := &q.witnesses[s.witness]
		above := q.spots[s.spot].above
		if above == 0 && !x.whole {
			continue // what is above it was cut off
		}
		if a.n > 0 && a.n < alike && q.t.Depth(above) != q.t.Depth(a.votes[0].above) {
			return
		}
		ago := time - x.time
		a.votes = append(a.votes, ballot{above, ago, x.stack, x.restored, x.thread, x.hearsay, x.surrounding, a.add(above, x.whole)})
		if len(a.looks) < fewLooks {
			a.look(ago, x.thread)
		}
	}
}

// nearest returns the sightings that are nearest to a time, up to mostSeen: those before it and
// those after it.
func nearest(all []sighting, times []int64, time int64) (before, after []sighting) {
	at := func(i int) int64 { return times[all[i].witness] }
	mid := sort.Search(len(all), func(i int) bool { return at(i) >= time })
	if len(all) <= mostSeen {
		return all[:mid], all[mid:]
	}
	from := max(0, mid-mostSeen)
	from += sort.Search(min(mid, len(all)-mostSeen)-from, func(i int) bool {
		return time-at(from+i) <= at(from+i+mostSeen)-time
	})
	return all[from:mid], all[mid : from+mostSeen]
}

// among returns those of some sightings that are in a stretch of all. A witness may have several:
// they are in the order of their spots.
func among(some, stretch []sighting) []sighting {
	if len(stretch) == 0 {
		return nil
	}
	compare := func(a, b sighting) int { return cmp.Or(cmp.Compare(a.witness, b.witness), cmp.Compare(a.spot, b.spot)) }
	from, _ := slices.BinarySearchFunc(some, stretch[0], compare)
	to, found := slices.BinarySearchFunc(some, stretch[len(stretch)-1], compare)
	if found {
		to++
	}
	return some[from:to]
}

// look notes when the newest witness saw the context.
func (a *assembly) look(ago int64, thread int) {
	if l := lookOf(ago, thread); !slices.Contains(a.looks, l) {
		a.looks = append(a.looks, l)
	}
	if len(a.looks) == fewLooks {
		a.differs = a.n
	}
}

// lookOf is that of which a glimpse so long ago was part: whatever the zero of time is, looks are the same.
func lookOf(ago int64, thread int) glimpse {
	if ago < 0 {
		ago -= lookTime - 1
	}
	return glimpse{ago / lookTime, thread}
}

// add adds a witness, and returns its camp.
func (a *assembly) add(above StackID, whole bool) int32 {
	a.n++
	for h := uint8(above * (mul >> 32) >> 24); ; h++ {
		i := int32(a.at[h]) - 1
		if i < 0 {
			a.camps = append(a.camps, camp{above, 1, a.n - 1, whole})
			a.at[h] = uint8(len(a.camps))
			return int32(len(a.camps) - 1)
		}
		if x := &a.camps[i]; x.above == above && x.whole == whole {
			x.n++
			return i
		}
	}
}

// enough tells whether at least so many witnesses vote, and not all of one call.
func (a *assembly) enough(votes int) bool { return a.n >= votes && len(a.looks) == fewLooks }

// extend looks for more of p, and for frames that call what is known of b.
func (q *inquiry) extend(b *block, p *part, x *finding) {
	x.whole, x.inner, x.voted = x.whole[:0], x.inner[:0], false
	q.found, q.met = x, reach(q.met, len(q.spots))
	ids := q.of[p.stack]
	if !q.by.methods {
		q.outer(b, p, ids[0])
	}
	if len(x.whole) > 0 || q.complete(b, p, ids) {
		return
	}
	if q.by.methods {
		// where call sites do not tell the turns of a recursion apart, the deepest ones only have
		// so many methods above
		q.fs = q.t.AppendFrames(q.fs[:0], p.stack)
		if q.comesAgain(q.fs, innerSites) {
			return
		}
	}
	for _, id := range slices.Backward(q.by.inner(ids)) {
		if q.assemble(&q.votes, id, b.time, false, 0); q.votes.enough(innerVotes) {
			q.inner(b, p, &q.votes)
			return
		}
	}
}

// outer finds the frames that all whole stacks begin with: as the nearest ones show them,
// and the others but for what is inlined; or those on the way that the thread takes. If that is
// all, the whole stack is found.
func (q *inquiry) outer(b *block, p *part, context int32) {
	all := &q.votes
	q.assemble(all, context, b.time, true, 0)
	known := q.t.Depth(p.stack) - q.t.Depth(b.stack)
	for _, x := range all.camps {
		p.shortest = min(p.shortest, q.t.Depth(x.above)+known)
	}
	if b.guesses() && p.stack == b.stack {
		p.hearing = q.hear(b, all)
	}
	if q.second(b, p, all) {
		return
	}
	if !all.enough(outerVotes) || !q.fair || !samePhase(all.votes) {
		return
	}
	if !q.agree(b, p, all, outerSites) && !q.confirm(b, p, all) && b.between != 0 {
		q.followRoute(b, p, all.votes)
	}
}

// complete finds the whole stack if the whole stacks that hold one of the longer contexts of b show the same above
// it, and reports whether they do. Where code repeats itself, as a chain of middleware does, a short
// one is there more than once.
func (q *inquiry) complete(b *block, p *part, ids contexts) bool {
	all := &q.votes
	for i := len(ids) - 1; i > 0 && q.fair; i-- {
		if q.assemble(all, ids[i], b.time, true, q.by.votes); !all.enough(q.by.votes) || !samePhase(all.votes) {
			continue
		}
		base, conf := p.base, p.baseConf
		if q.agree(b, p, all, contextSites[i]) {
			return true
		}
		p.base, p.baseConf = base, conf // fewer agree in it than of a shorter context
	}
	return false
}

// compare finds out how many frames each camp begins with as the first one does.
func (q *inquiry) compare(all *assembly) {
	above := all.camps[0].above
	depth := q.t.Depth(above)
	q.way, q.path = q.t.appendNodes(q.way[:0], q.path[:0], above)
	all.shared = append(all.shared[:0], int32(depth))
	all.common = append(all.common[:0], int32(depth))
	for _, x := range all.camps[1:] {
		d, next := q.t.sharedOn(x.above, q.path)
		all.common = append(all.common, int32(d))
		if d < depth && next != 0 && q.method(q.t.Frame(next)) == q.method(q.way[d]) {
			d = q.sharedFrom(d, above, depth, x.above, 0)
		}
		all.shared = append(all.shared, int32(d))
	}
}

// agree takes what all votes agree in, of the nearest ones to the last frame, and reports whether
// that is all that was missing. The votes are for a context of so many sites.
func (q *inquiry) agree(b *block, p *part, all *assembly, sites int) bool {
	q.compare(all)
	above := all.camps[0].above
	depth := q.t.Depth(above)
	last := 0
	sure := 0.0 // of what all agree in, once there is a base
	for most := mostVotes; most >= nearVotes; most /= 2 {
		near := min(most, all.n)
		if near == last {
			continue // the same votes
		}
		last = near
		if all.differs > near {
			return false
		}
		own := near >= phaseVotes && q.aroundOwn(p, all.votes[:near])
		inlined := mostInlined
		if !seenAround(all.votes[:near]) {
			inlined = 0 // the code may have been compiled anew between it and these
		}
		n := depth
		for i, x := range all.camps {
			switch same := int(all.shared[i]); {
			case same >= n:
			case x.first < near:
				n = same
			case own && q.ofAnotherPhase(p, all.votes[near:], int32(i)):
			default:
				n = q.sharedFrom(int(all.common[i]), above, n, x.above, inlined)
			}
		}
		if q.believeVotes(b, p, all.votes[:near], n, sites) {
			return true
		}
		if n > q.t.Depth(p.base) && all.inTurns(n) {
			return false // others lack no frame that was inlined: they come another way
		}
		if n > q.t.Depth(p.base) {
			if sure == 0 {
				sure = min(unanimous(all.n), q.firm(all.votes))
			}
			p.base, p.baseConf = q.t.up(above, n), min(sure, unanimous(near))
		}
	}
	return false
}

// inTurns tells whether votes that begin otherwise than with the first n frames of the nearest one take turns
// with those that begin so: the code was not compiled anew in between.
func (a *assembly) inTurns(n int) bool {
	var others, again [2]int // before and after: votes from the nearest that begins otherwise on; of these, who begin so
	for _, v := range a.votes {
		side := 0
		if v.ago < 0 {
			side = 1
		}
		switch so := int(a.shared[v.camp]) >= n; {
		case !so:
			others[side]++
		case others[side] > 0:
			others[side]++
			again[side]++
		}
	}
	return float64(again[0]+again[1]) > turnVotes*float64(others[0]+others[1])
}

// shared tells how many of the outermost n frames of a, in a row, b begins with too. See same.
func (q *inquiry) shared(a StackID, n int, b StackID, inlined int) int {
	return q.sharedFrom(q.t.Depth(q.t.shared(a, b)), a, n, b, inlined)
}

// nextFrames is how many frames are looked at first where stacks part: most are at different
// methods from there on.
const nextFrames = 8

// sharedFrom is shared of two stacks that have their outermost d frames in common, and no more.
func (q *inquiry) sharedFrom(d int, a StackID, n int, b StackID, inlined int) int {
	if d >= n || a == b {
		return n
	}
	for most := nextFrames; ; most = math.MaxInt - d {
		endA, endB := min(n, d+most), min(q.t.Depth(b), d+most)
		q.fs = q.t.appendInner(q.fs[:0], q.t.up(a, endA), d)
		q.gs = q.t.appendInner(q.gs[:0], q.t.up(b, endB), d)
		i, j := q.sameUntil(q.fs, q.gs, inlined)
		if (i+inlined < endA-d || endA == n) && (j+inlined < endB-d || endB == q.t.Depth(b)) {
			return d + i // what is further in was not asked for
		}
	}
}

// same tells how many frames a begins with that b begins with too, by method. Either may
// lack some in a row, up to so many.
func (e *engine) same(a, b []FrameID, inlined int) int {
	n, _ := e.sameUntil(a, b, inlined)
	return n
}

// sameUntil is same, and tells how many frames of either it takes.
func (e *engine) sameUntil(a, b []FrameID, inlined int) (i, j int) {
	is := func(i, j int) bool { return i < len(a) && j < len(b) && e.method(a[i]) == e.method(b[j]) }
	for i < len(a) && j < len(b) {
		k := 0
		for ; !is(i+k, j) && !is(i, j+k); k++ {
			if k == inlined {
				return i, j
			}
		}
		if is(i+k, j) {
			i, j = i+k+1, j+1
		} else {
			i, j = i+1, j+k+1
		}
	}
	return i, j
}

// unanimous is how sure is what n witnesses agree in, by the rule of succession. What
// was measured is better.
func unanimous(n int) float64 { return float64(n+1) / float64(n+2) }

// inner puts frames above p, what is known of b, as long as all witnesses show them, and nothing else in
// the recording calls what they call.
func (q *inquiry) inner(b *block, p *part, a *assembly) {
	up := q.fs[:0]
	votes := a.n
	for len(up) < mostFrames {
		left, f := q.next(a.camps)
		if left < innerVotes {
			break
		}
		votes = left
		up = append(up, f)
	}
	slices.Reverse(up)
	q.fs = q.t.AppendFrames(up, p.stack)
	n := len(up)
	overlapped := n - q.overlapped(b, p, n)
	from := n
	for ; from > 0; from-- {
		fs, m := q.fs[from:], q.method(q.fs[from-1])
		if q.ways.alsoCalled(q.consensus, fs, m) && (from <= overlapped || q.longWays.alsoCalled(q.consensus, fs, m)) {
			break
		}
	}
	if from == n {
		return
	}
	own := len(q.fs) - q.t.Depth(b.stack)
	if q.repeatsTooFar(q.fs[from:own], q.fs[own:]) {
		p.stack = b.stack // what was put above it before may be such turns, too
		return
	}
	q.found.inner = append(q.found.inner, q.fs[from:]...)
	p.conf = min(p.conf, unanimous(votes))
}

// repeatsTooFar tells whether what is put above recorded frames may be further turns of a recursion,
// of which nobody knows how many there are: a recorded method comes again, and they are more than
// was recorded, or many above few methods.
func (e *engine) repeatsTooFar(above, recorded []FrameID) bool {
	if len(above) < innerSites || len(above) <= len(recorded) && e.methodsIn(recorded, fewMethods) == fewMethods {
		return false
	}
	return slices.ContainsFunc(above, func(f FrameID) bool {
		return slices.ContainsFunc(recorded, func(g FrameID) bool { return e.method(f) == e.method(g) })
	})
}

// overlapped returns how many of the innermost n frames that all witnesses show above p, q.fs, are
// those that b was extended by.
func (q *inquiry) overlapped(b *block, p *part, n int) int {
	if float64(b.conf) < sureOverlap {
		return 0
	}
	known := q.t.Depth(p.stack) - q.t.Depth(b.stack)
	above := q.t.up(b.ext, q.t.Depth(b.ext)-q.t.Depth(b.stack))
	k := 0
	for ; above != 0 && k < n+known; k++ {
		callers, f := q.t.Node(above)
		if q.method(f) != q.method(q.fs[n+known-k-1]) {
			break
		}
		above = callers
	}
	return max(0, k-known)
}

// next returns the frame that calls what the camps have seen so far, and how many know it;
// 0 if they disagree. Each camp goes on to it.
func (q *inquiry) next(camps []camp) (votes int, f FrameID) {
	for i := range camps {
		x := &camps[i]
		switch {
		case x.n == 0:
			continue
		case x.above == 0 && x.whole:
			return 0, 0
		case x.above == 0:
			x.n = 0 // what is above was cut off
			continue
		}
		callers, g := q.t.Node(x.above)
		if votes > 0 && g != f && q.method(g) != q.method(f) {
			return 0, 0
		}
		if votes == 0 {
			f = g
		}
		votes += x.n
		x.above = callers
	}
	return votes, f
}
