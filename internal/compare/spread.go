package compare

import (
	"encoding/binary"
	"sort"

	"github.com/tracefix/tracefix/internal/spool"
)

// A spread is what things cost each request. There may be dozens of things in each of millions of
// requests: what they cost is kept in runs that are sorted, most of them on disk.
type spread struct {
	aside   *spool.Spool
	request int32   // of which there is more in costs
	costs   []int64 // ns, by thing
	things  []int32 // that have some
	fresh   shares  // in no run yet
	runs    []*spreadRun
	rooms   spool.Rooms // for runs that are read
}

// A share is what a thing cost a request.
type share struct {
	of uint64 // the request, and in the lower 32 bits the thing
	ns int64
}

// A spreadRun is shares in order, and while it is read the one at hand: by how much each is of a
// later request or thing, and ns, as varints.
type spreadRun struct {
	share
	spool.Piece
	in         *spread
	rest, room []byte
	open       bool
}

// shares are sorted by what they are of.
type shares []share

func (s shares) Len() int           { return len(s) }
func (s shares) Less(i, k int) bool { return s[i].of < s[k].of }
func (s shares) Swap(i, k int)      { s[i], s[k] = s[k], s[i] }

// sharesInRun is how many are sorted at once: what some hundred requests cost.
const sharesInRun = 1 << 13

// newSpread returns one of so many things.
func newSpread(aside *spool.Spool, things int) *spread {
	return &spread{aside: aside, costs: make([]int64, things)}
}

// add counts what a thing, a number below that of all, cost a request.
func (s *spread) add(request, thing int32, ns int64) {
	if request != s.request {
		s.put()
		s.request = request
	}
	if s.costs[thing] == 0 {
		s.things = append(s.things, thing)
	}
	s.costs[thing] += ns
}

// put makes shares of what is in costs.
func (s *spread) put() {
	for _, thing := range s.things {
		s.fresh = append(s.fresh, share{uint64(uint32(s.request))<<32 | uint64(uint32(thing)), s.costs[thing]})
		s.costs[thing] = 0
	}
	if s.things = s.things[:0]; len(s.fresh) >= sharesInRun {
		s.run()
	}
}

// run makes a run of the shares that are in none.
func (s *spread) run() {
	sort.Sort(s.fresh)
	b, last := make([]byte, 0, 8*len(s.fresh)), uint64(0)
	for _, x := range s.fresh {
		b = binary.AppendUvarint(b, x.of-last)
		b = binary.AppendVarint(b, x.ns)
		last = x.of
	}
	s.runs = append(s.runs, &spreadRun{share: s.fresh[0], Piece: s.aside.Keep(b), in: s})
	s.fresh = s.fresh[:0]
}

// each calls f with what each thing cost each request, in the order of requests. Nothing is added any more.
func (s *spread) each(f func(request, thing int32, ns int64)) {
	if s.put(); len(s.fresh) > 0 {
		s.run()
	}
	runs := make([]spool.Run, len(s.runs))
	for i, r := range s.runs {
		runs[i] = r
	}
	s.fresh, s.runs = nil, nil
	var at share
	told := func() {
		if at.ns != 0 {
			f(int32(at.of>>32), int32(at.of), at.ns)
		}
	}
	spool.Merge(runs, func(r spool.Run) bool {
		if x := &r.(*spreadRun).share; x.of == at.of {
			at.ns += x.ns
		} else {
			told()
			at = *x
		}
		return true
	})
	told()
}

// Before implements spool.Run.
func (r *spreadRun) Before(other spool.Run) bool { return r.of < other.(*spreadRun).of }

// Next implements spool.Run.
func (r *spreadRun) Next() bool {
	if !r.open {
		r.room = r.in.rooms.Take()
		r.rest, r.open, r.of = r.in.aside.Read(&r.Piece, &r.room), true, 0
	}
	if len(r.rest) == 0 {
		r.in.rooms.Give(r.room)
		return false
	}
	more, n := binary.Uvarint(r.rest)
	ns, k := binary.Varint(r.rest[n:])
	r.of, r.ns, r.rest = r.of+more, ns, r.rest[n+k:]
	return true
}
