package load

import (
	"math"
	"sort"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Rules chooses between our way of naming and that of dotnet-trace.
type Rules uint8

const (
	// ByTime names an address by the method that was there when it was seen.
	// What has no name keeps its module and address.
	ByTime Rules = iota
	// Reference does exactly what dotnet-trace-convert.md section 2 describes: the
	// first event to claim an address names it, and what has no name is `?!?`. The
	// Name of a Method is then the full name and Module is empty.
	Reference
)

// Class tells about the code of a frame what its name does not; known after Finish.
type Class uint8

// Bits of a Class.
const (
	// Garbage: no code can be there. The unwinder read a wrong word.
	Garbage Class = 1 << iota
	// Root: a thread begins in this function.
	Root
	// Entry: the way from user code into the kernel.
	Entry
	// InKernel: kernel code.
	InKernel
	// JIT: code that the just-in-time compiler made.
	JIT
)

// A place is a code address for as long as it belongs to one method.
type place struct {
	addr   uint64
	born   int64 // when it was first seen
	frame  profile.FrameID
	method int32 // claimed by; -1: not yet
}

// symbols names the code addresses of one process: by the method and module events that a
// .NET runtime writes, and by the mappings and symbols of collect-linux.
//
// Names come last in a file, so it hands out frames for addresses first and names them when
// Finish is called. An address that belongs to one method after another gets a frame for each
// (nettrace.md section 10.4).
type symbols struct {
	table  *profile.Table
	rules  Rules
	bridge uint64 // where the bridge of an earlier repair is, if not 0

	places []place
	live   map[uint64]int32   // address -> index in places
	pages  map[uint64][]int32 // address>>12 -> live places
	gen    int
	late   *[1 << lateBits]lateFrame // that were asked for lately; nil while there are few: a trace may have many processes

	text    []byte // names of methods and symbols, one after the other
	methods []method
	byStart map[uint64]int32 // start -> method loaded there and not unloaded
	modules map[uint64]int32 // id -> 1 + number in paths
	paths   []module

	images   *Images
	maps     []mapping
	finished bool
	renewed  uint64 // pages looked at for new mappings
	mapIDs   map[uint64]int32
	symbols  []nativeSymbol

	unknown profile.MethodID
	event   nettrace.Method // the newest

	// clipped are the ends of code whose size was no size, by the offsets of the events that told it.
	clipped   map[int64]uint64
	respelled []respelled

	lines *lines // nil: no PDB is in reach
}

const (
	lateBits  = 9
	fewPlaces = 64
)

// A lateFrame is what an address meant in a generation.
type lateFrame struct {
	addr  uint64
	gen   int
	frame profile.FrameID // 0: none is kept
}

// When a method without a known time was there.
const (
	beforeAll = math.MinInt64
	afterAll  = math.MaxInt64
)

// newSymbols returns symbols that adds its frames to table. Images may be nil.
func newSymbols(table *profile.Table, rules Rules, images *Images) *symbols {
	m := profile.Method{Module: "?", Name: "?", Kind: profile.Unresolved}
	if rules == Reference {
		m = profile.Method{Name: "?!?", Kind: profile.Unresolved}
	}
	if images == nil {
		images = newImages(nil)
	}
	return &symbols{
		table:   table,
		rules:   rules,
		live:    map[uint64]int32{},
		pages:   map[uint64][]int32{},
		byStart: map[uint64]int32{},
		clipped: map[int64]uint64{},
		modules: map[uint64]int32{},
		mapIDs:  map[uint64]int32{},
		images:  images,
		lines:   newLines(rules, images),
		unknown: table.AddMethod(m),
	}
}

// Frame returns the frame of addr at the time now.
func (p *symbols) Frame(addr uint64, now int64) profile.FrameID {
	if p.late == nil {
		if len(p.places) < fewPlaces {
			return p.frame(addr, now)
		}
		p.late = new([1 << lateBits]lateFrame)
	}
	late := &p.late[addr*0x9E3779B97F4A7C15>>(64-lateBits)]
	if late.addr == addr && late.gen == p.gen && late.frame != 0 {
		return late.frame
	}
	f := p.frame(addr, now)
	*late = lateFrame{addr, p.gen, f}
	return f
}

func (p *symbols) frame(addr uint64, now int64) profile.FrameID {
	if i, ok := p.live[addr]; ok {
		return p.places[i].frame
	}
	i := int32(len(p.places))
	f := p.table.AddFrame(profile.Frame{Method: p.unknown, Addr: addr})
	p.places = append(p.places, place{addr: addr, born: now, frame: f, method: -1})
	p.live[addr] = i
	p.pages[addr>>12] = append(p.pages[addr>>12], i)
	return f
}

// Generation changes whenever an address that was asked for has got a new meaning:
// stacks that were made of frames before must be made again.
func (p *symbols) Generation() int { return p.gen }

// retire calls f for the live places in [start, start+size); each for which it
// returns true gets a new frame when it is seen again.
func (p *symbols) retire(start, size uint64, f func(*place) bool) {
	if size == 0 {
		return
	}
	end := start + size - 1
	if end < start {
		end = ^uint64(0)
	}
	page := func(k uint64) {
		l := p.pages[k]
		kept := l[:0]
		for _, i := range l {
			pl := &p.places[i]
			if pl.addr < start || pl.addr > end || !f(pl) {
				kept = append(kept, i)
				continue
			}
			delete(p.live, pl.addr)
			p.gen++
		}
		if len(kept) < len(l) {
			p.pages[k] = kept
		}
	}
	if first, last := start>>12, end>>12; last-first < uint64(len(p.pages)) {
		for k := first; k <= last; k++ {
			page(k)
		}
		return
	}
	for k := range p.pages { // a range larger than all we know
		page(k)
	}
}

// seen reports whether a live place lies in [start, start+size).
func (p *symbols) seen(start uint64, size uint32) bool {
	hit := false
	p.retire(start, uint64(size), func(*place) bool { hit = true; return false })
	return hit
}

// Finish names all frames handed out so far. If class is not nil it is told of
// every frame.
func (p *symbols) Finish(class func(profile.FrameID, Class)) {
	p.finished = true
	if p.rules == Reference {
		p.claimJitted()
	}
	ranges := p.index()
	if p.rules == ByTime {
		p.respell()
	}
	natives := p.indexNative()
	p.lines.begin()
	ids := make(map[int32]profile.MethodID)
	for i := range p.places {
		pl := &p.places[i]
		if pl.addr == p.bridge && p.bridge != 0 && p.rules == ByTime {
			p.table.SetMethod(pl.frame, p.table.AddBridge())
			continue
		}
		if pl.method < 0 && p.rules == ByTime {
			pl.method = ranges.at(pl.addr, pl.born)
		}
		if pl.method >= 0 {
			id, ok := ids[pl.method]
			if !ok {
				id = p.table.AddMethod(p.methodName(pl.method))
				ids[pl.method] = id
			}
			p.table.SetMethod(pl.frame, id)
			p.place(pl, id)
			if class != nil {
				class(pl.frame, p.methods[pl.method].class())
			}
			continue
		}
		m, c := p.native(natives, pl.addr, pl.born)
		p.table.SetMethod(pl.frame, p.table.AddMethod(m))
		if class != nil {
			class(pl.frame, c)
		}
	}
}

// A span is a range of addresses with both ends, valid for a time.
type span struct {
	first, last uint64
	from, to    int64
	id          int32
}

// spans are sorted by first; reach holds the largest last up to each of them.
type spans struct {
	list  []span
	reach []uint64
}

// byFirst orders spans by where they begin. slices.SortStableFunc takes 13 KB of program, and
// sort.SliceStable swaps them by reflection, which takes three times as long: a small program has
// 10,000 methods.
type byFirst []span

func (l byFirst) Len() int           { return len(l) }
func (l byFirst) Less(i, k int) bool { return l[i].first < l[k].first }
func (l byFirst) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }

func newSpans(list []span) spans {
	sort.Stable(byFirst(list))
	return sortedSpans(list)
}

// sortedSpans makes a list that is in order searchable.
func sortedSpans(list []span) spans {
	reach := make([]uint64, len(list))
	var top uint64
	for i, s := range list {
		top = max(top, s.last)
		reach[i] = top
	}
	return spans{list, reach}
}

// Code lies where no other code is: what was compiled later may lie where other code was, if nobody
// told that this was gone, but not where much code was. Nor is the code of one method that large.
// Of what begins inside a span maxLooks are looked at.
const (
	maxReplaced = 8
	maxLooks    = 8 * maxReplaced
	maxCode     = 1 << 20
)

// clip ends spans of code that would reach over others, which were there before and stayed at least
// as long, before the next one, and reports each: a bit of the size was flipped. What is too large
// then is left out.
func clip(list []span, report func(id int32, last uint64)) spans {
	sort.Stable(byFirst(list))
	for i := range list {
		s := &list[i]
		over, next := 0, uint64(0)
		for j := i + 1; j < len(list) && j <= i+maxLooks && list[j].first <= s.last && over < maxReplaced; j++ {
			o := &list[j]
			if o.first == s.first {
				continue
			}
			if next == 0 {
				next = o.first
			}
			if o.from == math.MinInt64 && s.to < math.MaxInt64 {
				continue // nobody tells when it came: that may have been after s was gone
			}
			if o.from <= s.from && o.to >= s.to {
				over++
			}
		}
		if over == maxReplaced {
			if s.last = next - 1; s.last-s.first > maxCode {
				s.last = s.first
			}
			report(s.id, s.last)
		}
	}
	return sortedSpans(list)
}

// at returns the id of the span that covered addr at the time t, else that of the one
// which came next, else of the last one; -1 if no span covers addr. Of equals the
// first in the order of the file wins.
func (s *spans) at(addr uint64, t int64) int32 {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].first > addr })
	best, rank := int32(-1), 0
	var key int64
	for i--; i >= 0 && s.reach[i] >= addr; i-- {
		c := &s.list[i]
		if c.last < addr {
			continue
		}
		r, k := 1, c.to // it was gone: the later it went the better
		switch {
		case c.from <= t && t < c.to:
			r, k = 3, c.from
		case c.from > t:
			r, k = 2, -c.from
		}
		// Walking backwards: an equal one stands earlier in the file.
		if r > rank || r == rank && (k > key || k == key && c.id < best) {
			best, rank, key = c.id, r, k
		}
	}
	return best
}
