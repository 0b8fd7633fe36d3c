package activity

import (
	"hash/maphash"
	"math/bits"
)

// A RowSet is a set of rows, in a bit each.
type RowSet struct {
	rows bitSet
	n    int
}

// Below returns the rows that roots wants, and all below them.
func (t *Rows) Below(roots func(i int, r *Row) bool) *RowSet {
	s := &RowSet{rows: make(bitSet, (t.n+63)/64)}
	for i, r := range t.All() { // parents come first
		if r.Parent >= 0 && s.Has(r.Parent) || roots(i, r) {
			s.rows.set(int32(i), true)
			s.n++
		}
	}
	return s
}

// Has reports whether row i is in s.
func (s *RowSet) Has(i int) bool { return s.rows.has(int32(i)) }

// Len returns how many rows there are.
func (s *RowSet) Len() int { return s.n }

// IDs returns the ids of the rows in s, which are rows of t. Those without an id have none there.
func (t *Rows) IDs(s *RowSet) *IDSet {
	ids := NewIDSet(s.n)
	for i, r := range t.All() {
		if s.Has(i) && !r.ID.IsZero() {
			ids.Add(r.ID)
		}
	}
	return ids
}

// An IDSet is a set of ids. It keeps 64 bits of a hash of each, in 10 bytes where their number was known: that an id
// is taken for one of a million others has a chance of one in 2^44. A nil IDSet is empty.
type IDSet struct {
	seed  maphash.Seed
	slots []uint64 // open addressing; 0: free
	n     int
}

// NewIDSet returns an empty set with room for n ids.
func NewIDSet(n int) *IDSet {
	return &IDSet{seed: maphash.MakeSeed(), slots: make([]uint64, roomFor(n))}
}

// roomFor is the number of slots for n ids, of which a fifth stays free.
func roomFor(n int) int { return n + n/4 + 1 }

// Len returns the number of ids.
func (s *IDSet) Len() int {
	if s == nil {
		return 0
	}
	return s.n
}

// Has reports whether id is in s.
func (s *IDSet) Has(id ID) bool {
	if s == nil {
		return false
	}
	h := s.hash(id)
	return s.slots[s.slot(h)] == h
}

// Add puts id into s.
func (s *IDSet) Add(id ID) {
	h := s.hash(id)
	i := s.slot(h)
	if s.slots[i] == h {
		return
	}
	if roomFor(s.n+1) > len(s.slots) {
		s.grow()
		i = s.slot(h)
	}
	s.slots[i] = h
	s.n++
}

func (s *IDSet) hash(id ID) uint64 { return max(1, maphash.Bytes(s.seed, id[:])) }

// slot returns where h is, or the free slot where it would be.
func (s *IDSet) slot(h uint64) int {
	at, _ := bits.Mul64(h, uint64(len(s.slots)))
	for i := int(at); ; i++ {
		if i == len(s.slots) {
			i = 0
		}
		if x := s.slots[i]; x == h || x == 0 {
			return i
		}
	}
}

// grow makes room for half as many more.
func (s *IDSet) grow() {
	old := s.slots
	s.slots = make([]uint64, roomFor(s.n+s.n/2+16))
	for _, h := range old {
		if h != 0 {
			s.slots[s.slot(h)] = h
		}
	}
}
