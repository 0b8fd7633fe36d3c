package profile

import "iter"

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
	}
	for _, s := range p.Cuts() {
		c.add(&s)
	}
	c.Bridged = c.Repaired[HowBridge]
	for _, n := range c.Repaired {
		c.Known += n
	}
	c.Known -= c.Bridged
	return c
}

func (c *Counts) add(s *CutSample) {
	if s.Type == SampleEvent {
		c.CutEvents++
		if s.Repair != nil && s.Repair.How != HowBridge {
			c.RepairedEvents++
		}
		return
	}
	c.Cut++
	c.CutBy[s.Cut.String()]++
	if s.Repair != nil {
		c.Repaired[s.Repair.How]++
		c.Restored += s.Repair.Restored
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
			if t.Samples.Cuts() == 0 {
				continue
			}
			repairs := t.Repairs.Cursor()
			for i, s := range t.Samples.All() {
				r := repairs.Of(i)
				if s.Cut != Whole && !s.Hidden && !yield(t, CutSample{s, r}) {
					return
				}
			}
		}
	}
}
