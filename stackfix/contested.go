package stackfix

import "slices"

// Whole stacks are the shallow ones. Where two ways lead to the same frames, and one of them so deep
// that its stacks are cut, whole stacks show the other one only, and so do the answers that are made
// of them: they let the thread pool resume a method that in cut stacks is resumed by what it awaits.
// Cut stacks that hold the same further in show by whom it is called there. A single stack that shows
// it otherwise does not outweigh several of them: an answer that takes its way is taken back, unless
// a whole stack around it goes that way, too.
//
// The numbers are set by hand. Of 57 runs of programs that were made to be hard 2.2 in a hundred
// stacks were wrong, and are 1.8; for each of these one that was right is taken back. Of ten real
// programs 0.17 instead of 0.21 in a hundred are wrong, and 61.7 instead of 61.8 exact.
const (
	// contestedFrames is how many methods other stacks must hold, too, to count.
	contestedFrames = 16
	// fewShow is how many stacks may show a way that is not believed, and leastContest how many cut
	// ones must show another one.
	fewShow      = 1
	leastContest = 2
)

// A contest is where others come another way to what an answer holds.
type contest struct {
	asked bool
	lost  int // the innermost place to which the way is not believed; 0: there is none
	open  int // the innermost one to which more than otherWays of the cut stacks come another way
}

// contests find those of answers. Only samples count: other events come from few places, again and
// again.
type contests struct {
	w     *world
	cut   callings           // of cut stacks
	whole callings           // of whole ones, once they are asked
	of    map[uint64]contest // of an answer, of which so much was recorded
}

// takeBackContested takes back the answers that take a way which is not believed. What is known
// further in remains.
func (d *review) takeBackContested() {
	all := slices.DeleteFunc(d.answered(), func(x suspect) bool { return d.weighed[x.block] })
	ways := callings{engine: d.engine, length: contestedFrames, byMethod: true}
	c := contests{d.w, ways, ways, map[uint64]contest{}}
	// by answer, and how much of it was recorded
	key := func(x *suspect) uint64 { return edgeKey(x.ext, uint32(d.t.Depth(x.stack))) }
	for i := range all {
		x := &all[i]
		if _, met := c.of[key(x)]; met {
			continue
		}
		c.of[key(x)] = contest{}
		c.cut.stack(x.ext)
		for at := range c.cut.places(x.block) {
			c.cut.ask(at)
		}
	}
	if len(c.cut.of) == 0 {
		return
	}
	c.cut.count(d.w.cutStacks(true))
	for i := range all {
		x := &all[i]
		y := c.of[key(x)]
		if !y.asked {
			y = c.contest(x.block)
			c.of[key(x)] = y
		}
		if y.lost == 0 || max(d.alike(x.before, x.ext), d.alike(x.after, x.ext)) > y.lost {
			d.weighed[x.block] = true
			continue
		}
		d.left[x.block] = remnant{d.t.Add(d.t.AppendFrames(nil, x.ext)[y.open:]...), float64(x.conf)}
		x.takeBack() // it may be answered again
	}
}

// contest finds where the answer of b is contested.
func (c *contests) contest(b *block) contest {
	y := contest{asked: true}
	t := &c.cut
	t.stack(b.ext)
	for at := range t.places(b) {
		way, caller := t.ids.get(t.at(at)), t.method(t.fs[at-1])
		cut, others := t.tally(way, caller)
		if cut <= fewShow && others >= leastContest && cut+c.shown(way, caller) <= fewShow {
			y.lost = at
		}
		if float64(others) > otherWays*float64(cut+others) {
			y.open = at
		}
	}
	return y
}

// shown is how many whole stacks show a way called by a caller.
func (c *contests) shown(way int, caller MethodID) int {
	if c.whole.of == nil {
		c.whole.ids, c.whole.of, c.whole.all = c.cut.ids, make([][]vote, len(c.cut.of)), make([]int32, len(c.cut.of))
		c.whole.count(c.w.wholeStacks())
	}
	n, _ := c.whole.tally(way, caller)
	return n
}

// alike is how many frames, from the root on, are of the same methods in both stacks.
func (d *review) alike(a, b StackID) int {
	d.fs, d.gs = d.t.AppendFrames(d.fs[:0], a), d.t.AppendFrames(d.gs[:0], b)
	return d.same(d.fs, d.gs, 0)
}
