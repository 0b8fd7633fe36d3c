package profile

import (
	"iter"

	"github.com/tracefix/tracefix/internal/relay"
)

// Counts are how many samples a profile has, and what a repair did with those that were cut.
type Counts struct {
	Threads  int            // with samples
	Samples  int            // wanted ones, other events left out
	Cut      int            // of Samples
	CutBy    map[string]int // Cut by what cut them: depth, bytes, broken
	Repaired map[string]int // Cut by how the missing frames are known: stackfix's words
	Known    int            // of Repaired, those whose missing frames are known
	Bridged  int            // and those of which they could not be known
	Restored int            // frames put back

	// Stacks of other events, which are repaired as well.
	CutEvents, RepairedEvents int
}

// HowBridge is the word of a repair that could not know the missing frames.
const HowBridge = "bridge"

// Counts counts the samples of p.
func (p *Profile) Counts() Counts {
	c := Counts{CutBy: map[string]int{}, Repaired: map[string]int{}}
	for _, t := range p.Threads {
		n := t.Samples.Written()
		c.Samples += n
		if n > 0 {
			c.Threads++
		}
		for cut, n := range t.Samples.cutBy {
			if n > 0 {
				c.Cut += n
				c.CutBy[Cut(cut).String()] += n
			}
		}
		c.CutEvents += t.Samples.cutEvents
	}
	for _, own := range relay.Shares(len(p.Threads), func(own *Counts, i int) { own.addRepairs(p.Threads[i]) }) {
		for how, n := range own.Repaired {
			c.Repaired[how] += n
		}
		c.Restored += own.Restored
		c.RepairedEvents += own.RepairedEvents
	}
	c.Bridged = c.Repaired[HowBridge]
	for _, n := range c.Repaired {
		c.Known += n
	}
	c.Known -= c.Bridged
	return c
}

// addRepairs counts what a repair did with the cut samples of t.
func (c *Counts) addRepairs(t *Thread) {
	if t.Repairs.Len() == 0 {
		return
	}
	if c.Repaired == nil {
		c.Repaired = map[string]int{}
	}
	for s := range t.Cuts() {
		switch {
		case s.Repair == nil:
		case s.Type != SampleEvent:
			c.Repaired[s.Repair.How]++
			c.Restored += s.Repair.Restored
		case s.Repair.How != HowBridge:
			c.RepairedEvents++
		}
	}
}

// A CutSample is a sample whose stack was cut, with what a repair did about it.
type CutSample struct {
	Sample
	Repair *Repair // nil: nothing. It is valid until the next sample
}

// Cuts yields the wanted samples that were cut, each with its thread, by thread and time. Stacks
// of other events are among them.
func (p *Profile) Cuts() iter.Seq2[*Thread, CutSample] {
	return func(yield func(*Thread, CutSample) bool) {
		for _, t := range p.Threads {
			for s := range t.Cuts() {
				if !yield(t, s) {
					return
				}
			}
		}
	}
}

// Cuts yields the samples of t as Profile.Cuts does.
func (t *Thread) Cuts() iter.Seq[CutSample] {
	return func(yield func(CutSample) bool) {
		if t.Samples.Cuts() == 0 {
			return
		}
		samples, repairs := t.Samples.Cursor(), t.Repairs.Cursor()
		var s Sample
		for i := 0; samples.Read(&s); i++ {
			if s.Cut != Whole && !s.Hidden && !yield(CutSample{s, repairs.Of(i)}) {
				return
			}
		}
	}
}
