package stackfix

// fewPlaces is at how many places two stacks are laid side by side frame by frame. In a recursion
// they may be so many that the frames of all of them together are the square of those of the
// stacks.
const fewPlaces = 16

// zArrays tell for each place of a stack how many frames from there on are the first ones of
// another one: what the Z algorithm finds in a time that grows with the frames of both.
type zArrays struct {
	own, at []int32 // of the other one on itself, and on the stack
}

// find returns the overlaps of the first frames, or methods, of o at each place of t. They are
// valid until the next call.
func (x *zArrays) find(o, t []uint32) []int32 {
	x.own = overlap(x.own[:0], nil, o, o)
	x.at = overlap(x.at[:0], x.own, o, t)
	return x.at
}

// overlap appends to at the overlaps of o at each place of t. own are those of o at its own places,
// or nil where t is o: then they are at.
func overlap(at, own []int32, o, t []uint32) []int32 {
	from, to := 0, 0 // the place whose overlap goes furthest, and how far
	for i := range t {
		k := 0
		switch {
		case own == nil && i == 0:
			at = append(at, int32(len(o)))
			continue
		case i >= to:
		case own == nil:
			k = min(to-i, int(at[i-from]))
		default:
			k = min(to-i, int(own[i-from]))
		}
		for k < len(o) && i+k < len(t) && o[k] == t[i+k] {
			k++
		}
		if i+k > to {
			from, to = i, i+k
		}
		at = append(at, int32(k))
	}
	return at
}
