package stackfix

import (
	"slices"
	"sync"
)

// stretches tell what calls each stretch of so many methods, in all that the witnesses show. They
// are learned when they are asked for.
type stretches struct {
	length  int
	learned sync.Once
	ids     numbering // of stretches, and of such with a further caller, by hashes
	of      []calledStretch
}

// A calledStretch tells in how many stacks a stretch is, and in how many of these its first caller
// calls it: most have no other.
type calledStretch struct {
	n, byFirst int32
	first      MethodID
}

// learn counts the stretches of different stacks. Their innermost frames are no call sites.
func (x *stretches) learn(c *consensus) {
	innermost := powers[x.length-1] // what a method weighs in the hash of a stretch that it is the innermost one of
	seen := stackSet{of: make([]uint8, c.t.Len())}
	seen.reset()
	var ms []MethodID
	for _, y := range c.stacks {
		ms = ms[:0]
		n, s := 0, c.t.Parent(y.stack)
		for ; s != 0 && seen.add(s); s = c.t.Parent(s) {
			ms = append(ms, c.method(c.t.Frame(s)))
			n++
		}
		if n == 0 {
			continue
		}
		for ; s != 0 && len(ms) < n+x.length; s = c.t.Parent(s) {
			ms = append(ms, c.method(c.t.Frame(s)))
		}
		h := uint64(0)
		for k := -x.length; k < n && k+x.length < len(ms); k++ {
			caller := ms[k+x.length] // of the stretch from k on, once it is one
			if k >= 0 {
				x.count(h, caller)
				h -= (uint64(ms[k]) + 1) * innermost
			}
			h = hashOn(h, caller)
		}
	}
}

// count counts a stretch that a method calls.
func (x *stretches) count(h uint64, caller MethodID) {
	y := x.at(h, caller)
	y.n++
	if y.first == caller {
		y.byFirst++
	} else {
		x.at(hashOn(h, caller), caller).n++
	}
}

// at returns what is counted of a hash, which caller is the first to call if it is new.
func (x *stretches) at(h uint64, caller MethodID) *calledStretch {
	id := x.ids.add(h)
	if id == len(x.of) {
		x.of = append(x.of, calledStretch{first: caller})
	}
	return &x.of[id]
}

// seen returns what was counted of a hash.
func (x *stretches) seen(h uint64) (y calledStretch) {
	if id := x.ids.get(h); id >= 0 {
		y = x.of[id]
	}
	return y
}

// alsoCalled tells whether other methods than m call the stretch that fs begins with, too.
func (x *stretches) alsoCalled(c *consensus, fs []FrameID, m MethodID) bool {
	if len(fs) < x.length {
		return false
	}
	x.learned.Do(func() { x.learn(c) })
	h := uint64(0)
	for _, f := range slices.Backward(fs[:x.length]) {
		h = hashOn(h, c.method(f))
	}
	all := x.seen(h)
	byM := all.byFirst
	if all.first != m {
		byM = x.seen(hashOn(h, m)).n
	}
	return float64(all.n-byM) > otherWays*float64(all.n)
}
