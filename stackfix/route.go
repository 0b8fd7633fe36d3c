package stackfix

import (
	"math"
	"slices"
)

// Where several ways lead into what a stack holds, the whole stacks before and after it may
// show which one its thread took. Whether they tell is seen in the witnesses: these were
// recorded whole between whole stacks, too. Of the bases found so on ten recordings of real
// programs none was wrong.
const (
	// routeVotes is how many witnesses, between stacks that agree in a way, must have taken it.
	routeVotes = 12
	// strayRoutes is the part of them that may not have.
	strayRoutes = 0.02
	// ownVotes is how many witnesses of the way that was found must agree how it goes on.
	ownVotes = 4

	// wholeVotes is how many witnesses must agree in all that stands above a stack, to the last
	// frame, so that nothing else is missing of it. One in two hundred of such answers was wrong.
	wholeVotes = 16
	// methodVotes is that of who hold its methods, whatever calls these are at. Of 16 to 31 a few
	// in a hundred were wrong where two clients call one middle.
	methodVotes = 32
	// turnSites is how many frames that come again later in the stack may be another turn of a
	// recursion, of which nobody knows how many turns are missing.
	turnSites = 8

	// phaseTime is how far away votes from before a stack only, or from after it, may be.
	phaseTime = 200e6 // ns

	// Where the nearest phaseVotes agree, ownPhase of them from before on the same thread and as
	// many from after, others that are further away than phaseTime, all of other threads, came
	// another way in another phase: a service serves the first request of a connection below other
	// frames than the next ones. Of ten programs no more were wrong; of twelve runs of a service
	// two had 15 in a hundred more that were exact, the others none.
	phaseVotes = 24
	ownPhase   = 2

	// An answer that is at least half sure, and that the nearest witness and the part sameVotes
	// of all give too, is as sure as confirmed: of 49 such ones one was wrong.
	halfSure  = 0.6
	sameVotes = 0.5
	confirmed = 0.95
	// Nor is it so where of the votes of a thread that follow each other more than the part
	// fickleVotes, and at least fewChanges, go over to the answer or away from it. In two runs of a
	// service some requests of which come to one middle by a detour, a third of such answers were
	// wrong; of 86 that were right in ten programs two are not given for it.
	fickleVotes = 0.15
	fewChanges  = 4
)

// A surrounding says how many root frames the recorded whole stacks before and after a stack
// share, their innermost ones left out, and with how many of these the stack begins; and with how many
// of either, which only a review asks for.
type surrounding struct{ shared, kept, either int32 }

// between notes that x stands between two whole stacks.
func (x *witness) between(q *inquiry, before, after StackID) {
	if before == 0 || after == 0 {
		return
	}
	s := q.t.shared(q.t.Parent(before), q.t.Parent(after))
	n := q.t.Depth(s)
	x.shared, x.kept = int32(n), int32(q.shared(s, n, x.stack, 0))
	if q.recorded {
		for _, s := range [...]StackID{q.t.Parent(before), q.t.Parent(after)} {
			x.either = max(x.either, int32(q.shared(s, q.t.Depth(s), x.stack, 0)))
		}
	}
}

// A ballot is what a witness shows above a context.
type ballot struct {
	above    StackID
	ago      int64 // before the stack that asks, ns
	stack    StackID
	restored int32 // see witness
	thread   int
	hearsay  bool // see witness
	surrounding
	camp int32 // of those who show the same
}

// followRoute finds more of the base of b where the votes differ, if the whole stacks before and
// after show which way to go.
func (q *inquiry) followRoute(b *block, p *part, votes []ballot) {
	between := q.t.AppendFrames(nil, b.between)
	sure := math.MaxInt
	for {
		d := q.agreed(votes)
		if sure < math.MaxInt && d > q.t.Depth(p.base) {
			if q.believeVotes(b, p, votes, d, turnSites) {
				return
			}
			p.base, p.baseConf = q.t.up(votes[0].above, d), min(unanimous(sure), q.firm(votes))
		}
		if d >= len(between) || q.shared(votes[0].above, d, b.between, 0) < d {
			return
		}
		n, right := followed(votes, d)
		if n < routeVotes || float64(n-right) > strayRoutes*float64(n) {
			return
		}
		sure = min(sure, right)
		votes = slices.DeleteFunc(votes, func(v ballot) bool {
			return q.t.Depth(v.above) <= d || q.method(q.t.Frame(q.t.up(v.above, d+1))) != q.method(between[d])
		})
		if len(votes) < ownVotes {
			return
		}
	}
}

// agreed is how many frames all begin with.
func (q *inquiry) agreed(votes []ballot) int {
	first := votes[0].above
	n := q.t.Depth(first)
	q.heard = append(q.heard[:0], make([]bool, len(q.votes.camps))...)
	for _, v := range votes {
		if v.above != first && !q.heard[v.camp] {
			q.heard[v.camp] = true
			n = min(n, q.sharedWith(votes[0], v))
		}
	}
	return n
}

// sharedWith tells how many frames v begins with as another one of q.votes does.
func (q *inquiry) sharedWith(other, v ballot) int {
	if other.camp == 0 {
		return int(q.votes.shared[v.camp]) // compare has found out
	}
	return q.shared(other.above, q.t.Depth(other.above), v.above, 0)
}

// A parting is a place where votes part from the first.
type parting struct {
	depth int32
	votes int
	look  glimpse
	again bool // other looks show it too
}

// firm is how sure it is that a further stack goes with the votes as far as these go with each
// other. Where each of them parts from the first in a place of its own, the next one may anywhere:
// the share of those that part where no other look shows it (after Good and Turing) is the risk.
func (q *inquiry) firm(votes []ballot) float64 {
	first := votes[0].above
	q.parts = q.parts[:0]
	q.partAt = append(q.partAt[:0], make([]int32, len(q.votes.camps))...)
	for _, v := range votes {
		if v.above == first {
			continue
		}
		d := q.partAt[v.camp]
		if d == 0 {
			d = 1 + int32(q.sharedWith(votes[0], v))
			q.partAt[v.camp] = d
		}
		look := lookOf(v.ago, v.thread)
		i := slices.IndexFunc(q.parts, func(x parting) bool { return x.depth == d })
		if i < 0 {
			i = len(q.parts)
			q.parts = append(q.parts, parting{depth: d, look: look})
		}
		x := &q.parts[i]
		x.votes++
		x.again = x.again || x.look != look
	}
	alone := 0
	for _, x := range q.parts {
		if !x.again {
			alone += x.votes
		}
	}
	return 1 - float64(alone+1)/float64(len(votes)+2)
}

// followed tells how many witnesses are between stacks that share more than what the votes
// agree in, d frames, and how many of them went on as these do.
func followed(votes []ballot, d int) (n, right int) {
	for _, v := range votes {
		if int(v.shared) > d && int(v.kept) >= d {
			n++
			if int(v.kept) > d {
				right++
			}
		}
	}
	return n, right
}

// believeVotes roots b if the votes agree, to the last, in d frames that stand above it, and
// nothing speaks against them, nor do so many call sites come again. It reports whether it does.
func (q *inquiry) believeVotes(b *block, p *part, votes []ballot, d, sites int) bool {
	if !slices.ContainsFunc(votes, func(v ballot) bool { return v.thread == p.thread }) {
		return false // its thread may begin otherwise
	}
	if len(votes) < q.by.votes || slices.ContainsFunc(votes, func(v ballot) bool { return q.t.Depth(v.above) != d }) {
		return false
	}
	q.fs = q.t.AppendFrames(q.fs[:0], votes[0].above)
	return q.believe(b, p, votes, q.fs, sites, unanimous(len(votes)))
}

// confirm gives b the answer that was not sure enough, if the votes are for it.
func (q *inquiry) confirm(b *block, p *part, all *assembly) bool {
	if !b.guesses() || b.guessed < halfSure || p.stack != b.stack {
		return false
	}
	guess := q.guess(b)
	if !q.shows(all.camps[0].above, guess) {
		return false // the nearest
	}
	shown, n := q.showing(all, guess)
	return float64(n) >= sameVotes*float64(all.n) && !q.fickle(all, shown, n) && q.believe(b, p, all.votes, guess, turnSites, confirmed)
}

// second gives b the answer that a second opinion gives too, if a vote is for it: the nearest
// one from before or from after, or one that is near. The code may have been compiled anew since it was
// last called so.
func (q *inquiry) second(b *block, p *part, all *assembly) bool {
	if !b.seconded || p.stack != b.stack || confirmed < q.minConf {
		return false
	}
	guess := q.guess(b)
	var met [2]bool // a vote from before, from after
	for _, v := range all.votes {
		side := &met[0]
		if v.ago < 0 {
			side = &met[1]
		}
		if (!*side || max(v.ago, -v.ago) < phaseTime) && q.shows(v.above, guess) {
			if shown, n := q.showing(all, guess); q.fickle(all, shown, n) {
				return false
			}
			q.found.whole = q.t.AppendFrames(append(q.found.whole[:0], guess...), p.stack)
			q.found.how, q.found.conf = b.guessHow, confirmed
			return true
		}
		*side = true
	}
	return false
}

// showing tells which camps show an answer, and how many witnesses these are.
func (q *inquiry) showing(all *assembly, guess []FrameID) (shown []bool, n int) {
	q.heard = reach(q.heard[:0], len(all.camps))
	for i, x := range all.camps {
		if q.heard[i] = q.shows(x.above, guess); q.heard[i] {
			n += x.n
		}
	}
	return q.heard, n
}

// A turn is what the newest stack of a thread shows, of those that were looked at.
type turn struct {
	thread          int
	ago             int64
	was, is, goesOn bool // what the one before shows, if there is one, and this one
}

// fickle tells whether those who vote show an answer or another one as it happens, given what
// showing returned for it: where a thread goes over from one to the other again and again, the
// nearest vote says nothing of the next.
func (q *inquiry) fickle(all *assembly, shown []bool, n int) bool {
	if min(n, all.n-n) == 0 {
		return false
	}
	q.turns = q.turns[:0]
	pairs, changes := 0, 0
	count := func(x *turn) {
		if x.goesOn {
			pairs++
		}
		if x.goesOn && x.is != x.was {
			changes++
		}
	}
	see := func(v *ballot) {
		i := 0
		for i < len(q.turns) && q.turns[i].thread != v.thread {
			i++
		}
		if i == len(q.turns) {
			q.turns = append(q.turns, turn{thread: v.thread, ago: v.ago})
		}
		x := &q.turns[i]
		if x.ago != v.ago {
			count(x)
			*x = turn{thread: v.thread, ago: v.ago, was: x.is, goesOn: true}
		}
		x.is = x.is || shown[v.camp] // one stack may hold what is asked for in several places
	}
	// in order of time: the nearest come first, on either side
	for i := range slices.Backward(all.votes) {
		if v := &all.votes[i]; v.ago < 0 {
			see(v)
		}
	}
	for i := range all.votes {
		if v := &all.votes[i]; v.ago >= 0 {
			see(v)
		}
	}
	for i := range q.turns {
		count(&q.turns[i])
	}
	return changes >= fewChanges && float64(changes) > fickleVotes*float64(pairs)
}

// guess returns what stands above the recorded frames of b in the answer that was not sure enough.
func (q *inquiry) guess(b *block) []FrameID {
	above := q.t.AppendFrames(nil, b.guess)
	above = q.t.AppendFrames(above, b.ext)
	return above[:len(above)-q.t.Depth(b.stack)]
}

// shows tells whether s is these frames, by method.
func (q *inquiry) shows(s StackID, fs []FrameID) bool {
	if q.t.Depth(s) != len(fs) {
		return false
	}
	for _, g := range slices.Backward(fs) {
		callers, f := q.t.Node(s)
		if f != g && q.method(f) != q.method(g) {
			return false
		}
		s = callers
	}
	return true
}

// believe takes what stands above b for all that is missing of it, if nothing speaks against that. What was seen
// before it only, or after it, may be another phase of the program: all such answers were wrong
// in a service that starts.
func (q *inquiry) believe(b *block, p *part, votes []ballot, above []FrameID, sites int, conf float64) bool {
	n := len(above)
	if q.tried {
		conf = min(conf, q.trust)
	}
	q.found.whole = q.t.AppendFrames(append(q.found.whole[:0], above...), p.stack)
	if conf < q.minConf || q.comesAgain(q.found.whole[n:], sites) || !seenAround(votes) || q.short.untimely(0, q.found.whole, b) ||
		q.cal.enclosing.rare(rarelyLeft) && q.leaves(0, q.found.whole, b.between) {
		q.found.whole = q.found.whole[:0]
		return false
	}
	q.found.how, q.found.conf, q.found.voted = Elsewhere, float32(conf), true
	return true
}

// seenAround tells whether some votes are from before the stack that asks and some from after it.
// What only repairs speak for is no witness of its time: one wrong answer would bring it.
func seenAround(votes []ballot) bool {
	return slices.ContainsFunc(votes, func(v ballot) bool { return !v.hearsay && v.ago < 0 }) &&
		slices.ContainsFunc(votes, func(v ballot) bool { return !v.hearsay && v.ago >= 0 })
}

// samePhase tells whether votes, the nearest first, are from around the stack that asks or from
// right before or after it.
func samePhase(votes []ballot) bool {
	near := func(v ballot) bool { return !v.hearsay && max(v.ago, -v.ago) < phaseTime }
	return slices.ContainsFunc(votes, near) || seenAround(votes)
}

// aroundOwn tells whether some votes are of the thread of p itself, from before and from after.
func (q *inquiry) aroundOwn(p *part, votes []ballot) bool {
	var n [2]int
	for _, v := range votes {
		if v.thread == p.thread && !v.hearsay {
			if v.ago < 0 {
				n[1]++
			} else {
				n[0]++
			}
		}
	}
	return min(n[0], n[1]) >= ownPhase
}

// ofAnotherPhase tells whether those of votes that are of a camp are from other threads than that
// of p, and not from right before or after.
func (q *inquiry) ofAnotherPhase(p *part, votes []ballot, camp int32) bool {
	return !slices.ContainsFunc(votes, func(v ballot) bool {
		return v.camp == camp && (v.thread == p.thread || max(v.ago, -v.ago) < phaseTime)
	})
}

// comesAgain tells whether so many methods that fs begins with come again in it.
func (q *inquiry) comesAgain(fs []FrameID, sites int) bool {
	same := func(a, b FrameID) bool { return q.method(a) == q.method(b) }
	for i := 1; i+sites <= len(fs); i++ {
		if slices.EqualFunc(fs[:sites], fs[i:i+sites], same) {
			return true
		}
	}
	return false
}
