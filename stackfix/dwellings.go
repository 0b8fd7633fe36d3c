package stackfix

import "slices"

// A thread does all it does under the method that it was started for, and threads that are started in
// one way part a few frames further in only: below the frames of the runtime that start each of them.
// What nearly all whole stacks of a thread begin with, its cut ones begin with too, if it is a method
// that another thread stays under instead. In two runs of a program with threads of five kinds, which
// all do the same work, 12 of 5,000 cut stacks began with the method of another thread.

const (
	// dwellingFrames are looked at, from the root on.
	dwellingFrames = 8
	// A method that a thread waits in, or one that always leads so deep that stacks are cut, is not what the
	// thread was started for: below that stand dwellingDepth frames and more in fewKnown different whole stacks.
	dwellingDepth = dwellingFrames + innerSites
)

// dwellings tell what the threads of a world stay under, as the whole stacks that were recorded show.
type dwellings struct {
	*engine
	of    map[int]dwelling   // by thread
	ways  map[beginning]bool // all first parts of any of them
	asked map[visit]bool
}

// A beginning holds methods from the root on, with none behind them.
type beginning [dwellingFrames]MethodID

// addWays adds all that a stack of these methods begins with.
func addWays(to map[beginning]bool, methods []MethodID) {
	var b beginning
	for i, m := range methods {
		b[i] = m
		to[b] = true
	}
}

// A dwelling is that of one thread.
type dwelling struct {
	methods []MethodID         // from the root on; none: it is not known
	begins  map[beginning]bool // that its whole stacks have
}

// A visit is what a stack of a thread may begin with.
type visit struct {
	thread int
	head   StackID
}

// dwellings returns those of the threads of w.
func (e *engine) dwellings(w *world) *dwellings {
	if w.dwellings == nil {
		w.dwellings = &dwellings{e, map[int]dwelling{}, map[beginning]bool{}, map[visit]bool{}}
		for thread, known := range w.known {
			if x := e.dwelling(known); len(x.methods) > 0 {
				w.dwellings.of[thread] = x
				addWays(w.dwellings.ways, x.methods)
			}
		}
	}
	return w.dwellings
}

// dwelling finds that of the thread that has these whole stacks.
func (e *engine) dwelling(known []howOften) (x dwelling) {
	x.begins = map[beginning]bool{}
	type head struct {
		methods []MethodID
		n       int // blocks
		deep    int // stacks
	}
	var heads []head
	number := map[StackID]int{}
	all := 0
	for _, k := range known {
		if k.stack == 0 {
			continue
		}
		s := e.t.up(k.stack, dwellingFrames)
		i, met := number[s]
		if !met {
			i = len(heads)
			number[s] = i
			heads = append(heads, head{methods: e.methodsOf(s)})
			addWays(x.begins, heads[i].methods)
		}
		heads[i].n += int(k.n)
		if e.t.Depth(k.stack) >= dwellingDepth {
			heads[i].deep++
		}
		all += int(k.n)
	}
	if all < fewCalls {
		return x
	}
	for {
		d := len(x.methods)
		blocks := map[MethodID]int{} // by the method that they go on with
		for _, h := range heads {
			if len(h.methods) > d {
				blocks[h.methods[d]] += h.n
			}
		}
		most := MethodID(0)
		for m, n := range blocks {
			if float64(n) >= baseConfidence*float64(all) {
				most = m // there is one at most
			}
		}
		heads = slices.DeleteFunc(heads, func(h head) bool { return len(h.methods) <= d || h.methods[d] != most })
		n, deep := 0, 0
		for _, h := range heads {
			n, deep = n+h.n, deep+h.deep
		}
		if float64(n) < baseConfidence*float64(all) || deep < fewKnown {
			return x
		}
		x.methods = append(x.methods, most)
	}
}

// methodsOf returns the methods of s, from the root on.
func (e *engine) methodsOf(s StackID) []MethodID {
	ms := e.t.AppendFrames(nil, s)
	for i, f := range ms {
		ms[i] = e.method(f)
	}
	return ms
}

// strange tells whether s begins with what another thread stays under, and not as any whole stack of its own.
func (x *dwellings) strange(thread int, s StackID) bool {
	own := x.of[thread].methods
	if len(own) == 0 || s == 0 {
		return false
	}
	key := visit{thread, x.t.up(s, dwellingFrames)}
	is, met := x.asked[key]
	if met {
		return is
	}
	ms := x.methodsOf(key.head)
	if d := sameStart(own, ms); d < min(len(own), len(ms)) {
		var way beginning
		copy(way[:], ms[:d+1])
		is = x.ways[way] && !x.of[thread].begins[way]
	}
	x.asked[key] = is
	return is
}

// sameStart returns how many methods a and b begin with alike.
func sameStart(a, b []MethodID) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
