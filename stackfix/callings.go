package stackfix

import "iter"

// callings tell who calls what goes on in one way.
type callings struct {
	*engine
	length   int  // frames of a way, from a place in a stack on
	byMethod bool // frames of one method are equal
	ids      numbering
	of       [][]vote  // callers, by number of a way
	all      []int32   // by number of a way: the stacks that show it called
	pairs    numbering // of a way and a caller of it
	nth      []int32   // of these: the place of the caller among those of the way
	fs       []FrameID // of one stack
	sums     []uint64  // hashes of the first so many of them
}

// stack turns to a stack.
func (t *callings) stack(s StackID) {
	t.fs = t.t.AppendFrames(t.fs[:0], s)
	t.sums = append(t.sums[:0], 0)
	for i, f := range t.fs {
		if t.byMethod {
			f = t.method(f)
		}
		t.sums = append(t.sums, hashOn(t.sums[i], f))
	}
}

// places yields the places in the answer of b, to which t turned, from the frame behind the outermost
// one that was put back to the first one that was recorded, as far as ways begin there.
func (t *callings) places(b *block) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 1; at <= len(t.fs)-t.t.Depth(b.stack) && !t.ends(at) && yield(at); at++ {
		}
	}
}

// ends tells whether no way begins at a place or further in: the innermost frame is no call site.
func (t *callings) ends(place int) bool { return place+t.length >= len(t.fs) }

// at returns the hash of the way from a place on.
func (t *callings) at(place int) uint64 {
	return t.sums[place+t.length] - t.sums[place]*powers[t.length]
}

// ask makes count count who calls the way from a place on.
func (t *callings) ask(place int) {
	if t.ids.add(t.at(place)) == len(t.of) {
		t.of, t.all = append(t.of, nil), append(t.all, 0)
	}
}

// callers returns who calls the way from a place on, which was asked for.
func (t *callings) callers(place int) []vote { return t.of[t.ids.get(t.at(place))] }

// tally returns how many stacks show a way called by a caller, and how many by others.
func (t *callings) tally(way int, caller MethodID) (own, others int) {
	if k := t.pairs.get(edgeKey(uint32(way), caller)); k >= 0 {
		own = int(t.of[way][t.nth[k]].n)
	}
	return own, int(t.all[way]) - own
}

// count counts the callers of the ways that were asked for, in different stacks.
func (t *callings) count(stacks iter.Seq[StackID]) {
	seen := map[StackID]bool{}
	for s := range stacks {
		if seen[s] {
			continue
		}
		seen[s] = true
		t.stack(s)
		for at := 1; !t.ends(at); at++ {
			if id := t.ids.get(t.at(at)); id >= 0 {
				t.add(id, t.method(t.fs[at-1]))
			}
		}
	}
}

// add counts a caller of a way.
func (t *callings) add(way int, caller MethodID) {
	k := t.pairs.add(edgeKey(uint32(way), caller))
	if k == len(t.nth) {
		t.nth = append(t.nth, int32(len(t.of[way])))
		t.of[way] = append(t.of[way], vote{of: caller})
	}
	t.of[way][t.nth[k]].n++
	t.all[way]++
}
