package load

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/tracefix/tracefix/internal/load/pdb"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// lines know which instruction of IL a code address was made of, as far as the runtime told:
// of what the just-in-time compiler made, by MethodILToNativeMap and by the same event of the
// rundown. The methods of nil are of no use.
type lines struct {
	files *pdb.Finder

	maps   []byte          // pairs of offsets, one event after the other
	byCode map[int32]ilMap // by method: a number in symbols.methods
	tokens map[int32]uint32
	newest map[uint64]int32 // by method id, what was loaded last: its map comes next
	ahead  ilMap            // of the rundown: it comes before its method
	of     uint64           // the method id of ahead

	pairs  map[int32][]pair      // by method, as they are asked for
	points map[int32][]pdb.Point // likewise
}

// An ilMap is where in lines.maps the pairs of a method are.
type ilMap struct{ from, pairs int }

// pairSize is what the two offsets of a pair take.
const pairSize = 8

// What stands for an offset of IL where there is none (ICorDebugInfo of the runtime).
const (
	ilEpilog  = 0xfffffffd // -3
	ilProlog  = 0xfffffffe // -2
	ilUnknown = 0xffffffff // -1
)

// newLines returns nil where nothing can be found.
func newLines(rules Rules, images *Images) *lines {
	if rules != ByTime || !images.pdbs.Any() {
		return nil
	}
	return &lines{files: &images.pdbs, byCode: map[int32]ilMap{}, tokens: map[int32]uint32{}, newest: map[uint64]int32{}}
}

// take keeps the map of an event: u64 method, u64 rejit, u8 extent, u16 count, then count offsets
// of IL and as many of code.
func (l *lines) take(ev *nettrace.Event) error {
	if l == nil {
		return nil
	}
	c := ev.Cursor()
	id := c.U64()
	c.U64()
	extent, n := c.U8(), int(c.U16())
	b := c.Bytes(n * pairSize)
	if c.Err() != nil {
		return fmt.Errorf("map of IL of %d bytes: %w", len(ev.Payload), c.Err())
	}
	if extent != 0 {
		return nil // cold code: its offsets are not from the start of its method
	}
	m := ilMap{len(l.maps), n}
	l.maps = append(reserve(l.maps, len(b)), b...)
	if ev.Metadata.Source == nettrace.SourceRundown {
		l.ahead, l.of = m, id
	} else if i, ok := l.newest[id]; ok {
		l.byCode[i] = m
	}
	return nil
}

// loaded takes a method whose map comes after it.
func (l *lines) loaded(e *nettrace.Method, byStart map[uint64]int32, err error) {
	if i, ok := l.method(e, byStart, err); ok {
		l.newest[e.MethodID] = i
	}
}

// rundown takes a method whose map came before it.
func (l *lines) rundown(e *nettrace.Method, byStart map[uint64]int32, err error) {
	if i, ok := l.method(e, byStart, err); ok && l.of == e.MethodID && l.ahead.pairs > 0 {
		l.byCode[i], l.ahead = l.ahead, ilMap{}
	}
}

func (l *lines) method(e *nettrace.Method, byStart map[uint64]int32, err error) (int32, bool) {
	if l == nil || err != nil || e.Flags.Extent() != 0 {
		return 0, false
	}
	i, ok := byStart[e.StartAddress]
	if ok {
		l.tokens[i] = e.Token
	}
	return i, ok
}

// begin gets ready for the names of frames.
func (l *lines) begin() {
	if l != nil {
		l.pairs, l.points = map[int32][]pair{}, map[int32][]pdb.Point{}
	}
}

// A pair says of which instruction of IL the code from an offset on was made.
type pair struct{ native, il uint32 }

// pairsOf returns the pairs of a method by ascending offset of its code.
func (l *lines) pairsOf(method int32) []pair {
	list, ok := l.pairs[method]
	if ok {
		return list
	}
	m := l.byCode[method]
	ils, natives := l.maps[m.from:], l.maps[m.from+m.pairs*pairSize/2:]
	for i := range m.pairs {
		list = append(list, pair{binary.LittleEndian.Uint32(natives[4*i:]), binary.LittleEndian.Uint32(ils[4*i:])})
	}
	// Of several that begin at one place, the last is one that names an instruction.
	text.SortRows(list, func(a, b *pair) int {
		return cmp.Or(cmp.Compare(a.native, b.native), cmp.Compare(min(b.il, ilEpilog), min(a.il, ilEpilog)))
	})
	l.pairs[method] = list
	return list
}

// il returns the offset of IL that the code at an offset was made of.
func (l *lines) il(method int32, offset uint64) (uint32, bool) {
	list := l.pairsOf(method)
	i := sort.Search(len(list), func(i int) bool { return uint64(list[i].native) > offset }) - 1
	if i < 0 || list[i].il == ilUnknown {
		return 0, false
	}
	switch il := list[i].il; il {
	case ilProlog:
		return 0, true
	case ilEpilog:
		return ilEpilog - 1, true // behind all
	default:
		return il, true
	}
}

// pointsOf returns the sequence points of a method, nil where its PDB is not at hand.
func (p *symbols) pointsOf(i int32) []pdb.Point {
	l := p.lines
	points, ok := l.points[i]
	if ok {
		return points
	}
	m := &p.methods[i]
	if paths := cmp.Or(m.paths, p.modules[m.module]); paths > 0 && m.flags&nettrace.MethodDynamic == 0 {
		mod := &p.paths[paths-1]
		if last := &p.paths[p.modules[m.module]-1]; last.il == mod.il {
			mod = last // the event that was there first may not have told of the PDB
		}
		if f := l.files.Find(mod.id, mod.il, mod.pdb); f != nil {
			points = f.Points(l.tokens[i])
		}
	}
	l.points[i] = points
	return points
}

// place says where in the source a frame of managed code stands, as far as it is known.
func (p *symbols) place(pl *place, id profile.MethodID) {
	if p.lines == nil {
		return
	}
	points := p.pointsOf(pl.method)
	begin, ok := pdb.Begin(points)
	if !ok {
		return
	}
	p.table.SetBegin(id, profile.Place(begin))
	// A frame is where its callee returns to: the call is before that.
	offset := pl.addr - p.methods[pl.method].start
	if il, ok := p.lines.il(pl.method, max(offset, 1)-1); ok {
		if at, ok := pdb.At(points, il); ok {
			p.table.SetPlace(pl.frame, profile.Place(at))
		}
	}
}
