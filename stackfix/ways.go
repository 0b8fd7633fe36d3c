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
	ids     numbering // of stretches, and of such with their caller, by hashes
	n       []int32   // of each: in how many stacks it is
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
				x.count(h)
				x.count(hashOn(h, caller))
				h -= (uint64(ms[k]) + 1) * innermost
			}
			h = hashOn(h, caller)
		}
	}
}

func (x *stretches) count(h uint64) {
	id := x.ids.add(h)
	if id == len(x.n) {
		x.n = append(x.n, 0)
	}
	x.n[id]++
}

// seen returns how often a hash was counted.
func (x *stretches) seen(h uint64) int32 {
	if id := x.ids.get(h); id >= 0 {
		return x.n[id]
	}
	return 0
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
	return float64(all-x.seen(hashOn(h, m))) > otherWays*float64(all)
}
