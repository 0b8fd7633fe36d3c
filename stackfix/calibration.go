package stackfix

import (
	"maps"
	"math"
	"slices"
	"sort"
)

// How sure an answer is that evidence speaks for: what is true of recordings at large
// (priors.go), corrected by what a trial (trial.go) found out about this one. Nothing here
// knows of stacks.

// A count is of answers, and of those that are right.
type count struct{ n, right float64 }

// calibration is how often answers are right in one recording.
type calibration struct {
	seen map[evidence]count
	// how much more or less than usual is right in this recording, in logits:
	// in all, and of each group of evidence
	all, extShift float64
	group         [numGroups]float64
	flatter       [numSlopes]float64 // how much less than usual the strength of evidence tells
	learnt        [numGroups]int     // answers
	taught        bool               // the trial is over
	enclosing     doubtful           // that a cut stack begins with what the whole ones around it share
}

// weights are what evidence is worth in recordings at large: logistic functions of
// features, one for each kind. TestPriors learns them from recordings with known truth.
type weights struct {
	answer  []float64 // see answerFeatures
	overlap []float64 // see extFeatures
	caller  []float64 // that of all, and one that counts as often as the level of calls tells
	context []float64 // see extFeatures
	// What follows is chosen, not fitted.
	// strength is how many answers of a recording weigh as much as the prior.
	strength float64
	// variances, in logits, of how far a recording is from others, and a group
	// of its evidence from its others
	shiftVar, groupVar float64
	// variance of how much less than usual the strength of evidence tells
	slopeVar float64
}

// Features say where the weights of evidence are.
type features [5]int

const (
	numSideFeatures   = numMargins + numWins
	numAnswerFeatures = numRecs * (numVotes + numShares + numSides*numSideFeatures)
	numExtFeatures    = numRecs * (numBits + numLeads + numBoth + numDoubts + numShares)
)

// answerFeatures are those of evidence for an answer: by what the recursion is, and what
// overlaps counts by how many sides do.
func answerFeatures(v evidence) features {
	at := int(v.rec) * (numAnswerFeatures / numRecs)
	side := at + numVotes + numShares + int(v.sides)*numSideFeatures
	return features{at + int(v.votes), at + numVotes + int(v.share), side + int(v.margin), side + numMargins + int(v.win), -1}
}

// extFeatures are those of evidence by an overlap or a context: by what the recursion is.
func extFeatures(v evidence) features {
	at := int(v.rec) * (numExtFeatures / numRecs)
	f := features{at + int(v.bits)}
	at += numBits
	f[1] = at + int(v.lead)
	at += numLeads
	f[2] = at + int(v.both)
	at += numBoth
	f[3] = at + int(v.doubts)
	f[4] = at + numDoubts + int(v.share)
	return f
}

func (f features) sum(w []float64) float64 {
	z := 0.0
	for _, i := range f {
		if i >= 0 {
			z += w[i]
		}
	}
	return z
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// usual is what evidence is worth in recordings at large, in logits.
func usual(v evidence) float64 {
	switch v.kind {
	case forAnswer:
		return answerFeatures(v).sum(prior.answer)
	case byOverlap:
		return extFeatures(v).sum(prior.overlap)
	case byContext:
		return extFeatures(v).sum(prior.context)
	}
	return prior.caller[0] + prior.caller[1]*float64(v.calls)
}

// confidence is the probability that an answer or an extension with this evidence is right.
func (c *calibration) confidence(v evidence) float64 {
	z := usual(v)
	if v.kind != byCallers {
		g := groupOf(v)
		z = c.slope(slopeOf(g))*z + c.shift(g)
	}
	k := c.seen[v]
	p := (prior.strength*sigmoid(z) + k.right) / (prior.strength + k.n)
	if v.kind == forAnswer && c.turnOpen(v) {
		p = min(p, openTurn)
	}
	return p
}

// openTurn is the most that an answer is worth that leaves the turn of a recursion open.
const openTurn = 0.8

// turnOpen tells whether evidence for an answer leaves the turn of a recursion open, whatever
// the sum of its weights says: they cannot tell that one kind of evidence counts for nothing
// without another one.
func (c *calibration) turnOpen(v evidence) bool {
	switch {
	case v.rec == 0:
		return false
	case v.share < rareCaller && v.margin < numMargins-1:
		return true
	case v.rec == 1:
		return false
	case c.taught && c.learnt[groupOf(v)] < fewAnswers:
		return true
	}
	return v.margin < tells[v.win/(numWins-1)][v.sides] && c.seen[v].n < fewAnswers
}

// rareCaller is the share, as a strength, of a caller in its context that it takes to tell
// the turn of a recursion by less than the largest margin. Below it most answers are wrong
// even where a trial on shallower stacks went well.
const rareCaller = 2

// tells is the least margin, as a strength, by which overlaps with none, one or both
// neighbours tell the depth of a recursion: of answers that lead by little and of those that
// lead by most. An overlap by chance is no rare thing there, and a wrong depth misleads all
// stacks that overlap.
var tells = [2][numSides]level{{numMargins, 6, 4}, {numMargins, 4, 4}}

// fewAnswers is how many of the trial show how good evidence is where overlaps do not tell,
// and without how many like it the depth of a recursion is not believed at all.
const fewAnswers = 5

// Answers are grouped by what recursion says and by how many neighbours overlap.
const (
	numGroups = numRecs * numSides
	noGroup   = -1 // that of an extension
)

func groupOf(v evidence) int {
	if v.kind != forAnswer {
		return noGroup
	}
	return int(v.rec)*numSides + int(v.sides)
}

// shift is how much more or less than usual a group is right, in logits.
func (c *calibration) shift(group int) float64 {
	if group == noGroup {
		return c.extShift
	}
	return c.all + c.group[group]
}

// Kinds of evidence by overlaps. Where much repeats itself, as in a compiler, a long overlap
// is found by chance, and strong evidence is not as much better than weak evidence as usual.
const (
	answerSlope    = iota // for an answer
	recursionSlope        // for an answer where the cut goes through a recursion
	extSlope              // for an extension
	numSlopes

	noSlope = -1 // evidence of other kinds
)

// slopeOf returns the kind of evidence of a group, or of noGroup.
func slopeOf(group int) int {
	switch {
	case group == noGroup:
		return extSlope
	case group%numSides == 0:
		return noSlope
	case group < numSides:
		return answerSlope
	}
	return recursionSlope
}

// slope is how much evidence of a kind tells, of what it tells in recordings at large: at
// most 1, since few answers of a trial are wrong, and those that were right say little.
func (c *calibration) slope(kind int) float64 {
	if kind == noSlope {
		return 1
	}
	return 1 - c.flatter[kind]
}

// trialSlopes are how much evidence tells in a trial, of what it tells in the recording. The
// stacks of a trial are shallower, and so is the recursion that it goes through: what overlaps
// there is a smaller part of its turns.
var trialSlopes = [numSlopes]float64{1, 0.75, 1}

// independent is how many answers with equal evidence count at most: they are not
// independent of each other. Set by hand.
const independent = 30

// The numerics of fit: steps are kept short since the likelihood is flat far from its top.
const (
	mostSteps     = 200
	mostShiftStep = 2.0 // logits
	mostSlopeStep = 0.2
	converged     = 1e-6
)

// fit finds the shifts and slopes that make what was learnt most likely, held near those of
// recordings at large.
func (c *calibration) fit() {
	type known struct {
		group          int
		n, right, w, z float64
	}
	var rows []known
	seen := slices.Collect(maps.Keys(c.seen))
	sort.Slice(seen, func(i, k int) bool { return seen[i].compare(seen[k]) < 0 }) // slices.SortFunc takes 13 KB of program
	for _, v := range seen {
		if k := c.seen[v]; v.kind != byCallers {
			rows = append(rows, known{groupOf(v), k.n, k.right, min(1, independent/k.n), usual(v)})
		}
	}
	// Newton's method: of the group shifts each is tied to that of all only.
	step := func(x *float64, by float64) float64 {
		*x += max(-mostShiftStep, min(by, mostShiftStep))
		return math.Abs(by)
	}
	for range mostSteps {
		ext, he := -c.extShift/prior.shiftVar, 1/prior.shiftVar
		var g, h [numGroups]float64
		var gs, hs [numSlopes]float64
		for _, k := range rows {
			shift, z := c.shift(k.group), k.z
			kind := slopeOf(k.group)
			if kind != noSlope {
				z *= trialSlopes[kind]
			}
			p := sigmoid(c.slope(kind)*z + shift)
			d, q := k.w*(k.right-k.n*p), k.w*k.n*p*(1-p)
			if kind != noSlope {
				gs[kind] -= d * z
				hs[kind] += q * z * z
			}
			if k.group == noGroup {
				ext += d
				he += q
				continue
			}
			g[k.group] += d
			h[k.group] += q
		}
		all, ha := -c.all/prior.shiftVar, 1/prior.shiftVar
		for k := range g {
			own, ho := g[k]-c.group[k]/prior.groupVar, h[k]+1/prior.groupVar
			all += g[k] - h[k]/ho*own
			ha += h[k] - h[k]/ho*h[k]
		}
		by := all / ha
		far := max(step(&c.extShift, ext/he), step(&c.all, by))
		for k := range g {
			own, ho := g[k]-c.group[k]/prior.groupVar, h[k]+1/prior.groupVar
			far = max(far, step(&c.group[k], (own-h[k]*by)/ho))
		}
		for k := range gs {
			by := (gs[k] - c.flatter[k]/prior.slopeVar) / (hs[k] + 1/prior.slopeVar)
			x := max(0, c.flatter[k]+max(-mostSlopeStep, min(by, mostSlopeStep)))
			far = max(far, math.Abs(x-c.flatter[k]))
			c.flatter[k] = x
		}
		if far < converged {
			break
		}
	}
}

// wholeWorth is what an answer of a trial for a stack that was whole counts, of what one counts for a
// stack that was cut before: ways that always lead too deep are in the latter only. Set by hand: of
// programs with such ways up to a fifth of the answers for cut stacks were wrong in a trial, and none
// for whole ones. Of 57 runs of programs that were made to be hard 1.6 in a hundred stacks are wrong
// instead of 1.8, of ten real ones as many as before. By names, where calls cannot be told apart and the
// trial is wrong for whole stacks, too, more are wrong: there all count alike.
const wholeWorth = 0.3

// learn counts the answers of a trial, those for stacks that were whole as so much, and fits the
// shifts and slopes to them.
func (c *calibration) learn(rows []row, whole float64) {
	c.taught = true
	c.seen = map[evidence]count{}
	met := map[row]bool{}
	for _, r := range rows {
		if met[r] {
			continue // the same answer to the same question
		}
		met[r] = true
		k, worth := c.seen[r.evidence], 1.0
		if r.whole {
			worth = whole
		}
		k.n += worth
		if r.right {
			k.right += worth
		}
		c.seen[r.evidence] = k
		if r.kind == forAnswer {
			c.learnt[groupOf(r.evidence)]++
		}
	}
	c.fit()
}
