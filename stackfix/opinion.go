package stackfix

import (
	"math"
)

// A last opinion on answers that are not sure enough. Each thing that speaks for one or against it
// is weak alone: its own evidence, what all open stacks around are together (joint.go), and what
// stacks that are known as a whole show above the same call sites. Together they tell. TestOpinion
// learns the weights, from stacks that a recorder really cut and from some cut on purpose: of
// programs that were not learnt from seven of eight answers that are given were right of the
// former, and 99 of 100 of the latter. What is known by opinion is no evidence for other stacks.

// What an opinion is made of. All are numbers between -10 and 10.
const (
	byConfidence = iota // how sure the answer is by its own evidence, with all that makes it less sure, in logits
	byModel             // how likely the model of the open stacks around takes it to be, in logits
	byModelBoth         // the same, where stacks on both sides overlap it
	byNearest           // 1: the nearest whole stack before it, of those that hold its call sites, shows another one
	byShare             // the share of those whole stacks that show it
	byBoth              // 1: the nearest of them before and the nearest after show it, and no recursion is cut; less where most show another
	byTurn              // 1: what was recorded begins with a turn of a recursion
	byMargin            // by how much more it overlaps stacks around than other answers do: evidence.margin, 0 to 1
	byForeign           // how strange it is on its thread, 0 to 1
	byWay               // 1: it takes a way that a review of answers by names would doubt
	byWays              // 1: it takes none such though there are several
	numOpinions
)

const (
	// How sure the model can be, in logits: it believes itself too much.
	leastModel, mostModel = -6, 9
	// strangest is how many bits of strangeness count.
	strangest = 20
	// mostShow is the share of all from which on the nearest two count in full. By names, a way
	// that is always cut is told by none of them: what two happen to show was wrong in four of ten
	// answers that most others spoke against.
	mostShow = 0.5
	// mostInLongRow is how many open blocks the model looks at together where it only has a say among others.
	mostInLongRow = 400
)

// An opinion is what speaks for an answer.
type opinion [numOpinions]float64

// confidence is the probability that an answer is right.
func (x *opinion) confidence() float64 {
	z := opinionBias
	for i, w := range opinionWeights {
		z += w * x[i]
	}
	return sigmoid(z)
}

// logit is the logarithm of odds, for 0 and 1 too.
func logit(p float64) float64 { return math.Log((p + 1e-4) / (1 - p + 1e-4)) }

// A hearing is what whole stacks that hold the call sites of an answer say of it.
type hearing struct {
	share             float64 // of those that show it, as if two more did not
	otherwise         bool    // the nearest one before shows another one
	both              bool    // the nearest one before and the nearest one after show it
	comesAgain, heard bool
}

// hear asks the votes for the answer of b that was not sure enough.
func (q *inquiry) hear(b *block, votes *assembly) (h hearing) {
	guess := q.guess(b)
	shown, n := q.showing(votes, guess)
	h.heard, h.share = !q.fickle(votes, shown, n), float64(n)/float64(votes.n+2)
	var met, show [2]bool // before, after
	for _, v := range votes.votes {
		side := 0
		if v.ago < 0 {
			side = 1
		}
		if !met[side] {
			met[side], show[side] = true, shown[v.camp]
		}
	}
	h.otherwise, h.both = met[0] && !show[0], show[0] && show[1]
	q.fs = q.t.AppendFrames(q.fs[:0], b.stack)
	h.comesAgain = q.comesAgain(q.fs, turnSites)
	return h
}

// opinionOn is what speaks for the answer of b but for the model.
func opinionOn(b *block, h *hearing, d doubt) (x opinion) {
	x[byConfidence] = logit(float64(b.guessed))
	x[byShare] = h.share
	x[byMargin] = float64(b.guessMargin) / numMargins
	x[byForeign] = min(float64(b.guessForeign), strangest) / strangest
	if h.both && b.guessRec == 0 {
		x[byBoth] = min(1, h.share/mostShow)
	}
	for i, is := range [numOpinions]bool{byNearest: h.otherwise, byTurn: h.comesAgain, byWay: d.strays, byWays: d.known && !d.strays} {
		if is {
			x[i] = 1
		}
	}
	return x
}

// modelled adds how likely the model takes it to be.
func (x *opinion) modelled(b *block, p float64) {
	x[byModel] = max(leastModel, min(logit(p), mostModel))
	if b.guessSides == numSides-1 {
		x[byModelBoth] = x[byModel]
	}
}

// lastOpinion gives the answers that all that is known speaks for.
func (s *solver) lastOpinion(parts *consensus, d *review) {
	ready := false
	doubts := d.doubtsOn(func(b *block) bool { return s.mayBeSure(b, parts) })
	var given []*block
	var confs []float64
	for ri := range s.runs {
		bs := s.runs[ri].blocks
		for k := 0; k < len(bs); k++ {
			from, ask := k, false
			for ; k < len(bs) && !bs[k].rooted; k++ {
				_, may := doubts[&bs[k]]
				ask = ask || may
			}
			if !ask || k-from > mostInLongRow || s.stopped() {
				continue
			}
			if !ready {
				s.round++
				s.retain.finish()
				s.updateIndex()
				ready = true
			}
			s.learnThread(ri)
			s.weighRow(bs, from, k, func(m *moment) {
				if doubt, may := doubts[m.block]; may {
					x := opinionOn(m.block, &parts.parts[m.block].hearing, doubt)
					x.modelled(m.block, m.probability(m.guess))
					conf := surer(x.confidence(), s.guessFits(m.block))
					if m.block.guessSides == 0 && parts.tried {
						conf = min(conf, parts.trust) // it is what votes say
					}
					if s.observe != nil {
						s.observe(s.runs[ri].thread, m.block, x)
					}
					if conf >= s.neededOf(m.guessHow) {
						given, confs = append(given, m.block), append(confs, conf)
					}
				}
			})
		}
	}
	s.local.reset() // who comes next has the scratchpad
	for i, b := range given {
		s.o = s.t.AppendFrames(s.o[:0], b.ext)
		b.ext = s.t.Join(b.guess, s.o)
		b.rooted, b.how, b.conf = true, b.guessHow, float32(confs[i])
	}
}

// guessFits is fits of the answer of b that was not sure enough.
func (s *solver) guessFits(b *block) float64 {
	took := b.measure()
	if took.deviation == 0 {
		return 1
	}
	s.fs = s.t.AppendFrames(s.fs[:0], b.ext)
	return s.fits(took, b.guess, s.fs)
}

// mayBeSure tells whether b has an answer that the model may make sure enough: what a review finds
// makes none surer.
func (s *solver) mayBeSure(b *block, parts *consensus) bool {
	p := parts.parts[b]
	if p == nil || !p.heard || b.rooted || !b.guesses() || b.triedExt != b.ext {
		return false
	}
	x := opinionOn(b, &p.hearing, doubt{})
	x.modelled(b, 1)
	if surer(x.confidence(), s.guessFits(b)) < s.minConf && s.observe == nil {
		return false
	}
	s.o = s.t.AppendFrames(s.o[:0], b.ext)
	return !s.short.untimely(b.guess, s.o, b)
}
