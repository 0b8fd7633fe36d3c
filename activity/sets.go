package activity

import (
	"hash/maphash"
	"math/bits"

	"github.com/tracefix/tracefix/internal/spool"
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

// mostHashed is how many ids of rows are kept as hashes in memory, where there is a Spool for more.
const mostHashed = 1 << 19

// IDs returns the ids of the rows in s, which are rows of t, each with its process. Those without an id have none there.
func (t *Rows) IDs(s *RowSet) *IDSet { return t.idSet(s, mostHashed) }

func (t *Rows) idSet(s *RowSet, hashed int) *IDSet {
	if t.spool == nil || s.n <= hashed {
		ids := NewIDSet(s.n)
		t.idsOf(s, ids.Add)
		return ids
	}
	ids := NewIDSet(0)
	sorter := spool.SorterIn(t.spool, func(id *owned) int64 { return int64(ids.place(id)) })
	t.idsOf(s, func(process uint32, id ID) { sorter.Add(&owned{process, id}) })
	ids.sorted = sortIDs(ids, sorter, t.spool)
	return ids
}

// idsOf yields the ids of the rows in s.
func (t *Rows) idsOf(s *RowSet, each func(uint32, ID)) {
	for i, r := range t.All() {
		if s.Has(i) && !r.ID.IsZero() {
			each(r.Process, r.ID)
		}
	}
}

// An IDSet is a set of ids of processes: two that are process 1 of their containers have the same ids
// in the recording of their machine. It keeps 64 bits of a hash of each, in 10 bytes where their number was
// known: that an id is taken for one of a million others has a chance of one in 2^44. Of very many
// that Rows tell, the ids are where those have their Spool. A nil IDSet is empty. Any number of
// goroutines may ask when nothing is added any more.
type IDSet struct {
	seed   maphash.Seed
	slots  []uint64 // open addressing; 0: free
	n      int
	sorted *sortedIDs // others; nil: there are none
}

// NewIDSet returns an empty set with room for n ids.
func NewIDSet(n int) *IDSet {
	return &IDSet{seed: maphash.MakeSeed(), slots: make([]uint64, roomFor(n))}
}

// roomFor is the number of slots for n ids, of which a fifth stays free.
func roomFor(n int) int { return n + n/4 + 1 }

// Len returns the number of ids.
func (s *IDSet) Len() int {
	switch {
	case s == nil:
		return 0
	case s.sorted != nil:
		return s.n + s.sorted.n
	}
	return s.n
}

// Err returns the error of ids that a Spool could not read again: whether they are in s is not known.
func (s *IDSet) Err() error {
	if s == nil || s.sorted == nil {
		return nil
	}
	return s.sorted.pages.Err()
}

// Has reports whether an id of a process is in s.
func (s *IDSet) Has(process uint32, id ID) bool {
	if s == nil {
		return false
	}
	if s.n > 0 {
		if h := s.hash(process, &id); s.slots[s.slot(h)] == h {
			return true
		}
	}
	return s.sorted != nil && s.sorted.has(s, &owned{process, id})
}

// Add puts an id of a process into s.
func (s *IDSet) Add(process uint32, id ID) {
	if s.sorted != nil && s.sorted.has(s, &owned{process, id}) {
		return
	}
	h := s.hash(process, &id)
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

// hash is of an id, and of its process in a way that those of many of either differ in all bits.
func (s *IDSet) hash(process uint32, id *ID) uint64 {
	return max(1, maphash.Bytes(s.seed, id[:])^uint64(process)*0x9e3779b97f4a7c15)
}

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
