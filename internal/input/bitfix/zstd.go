package bitfix

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"sort"
	"sync"
)

var errZstd = errors.New("no zstd data")

const (
	zstdMagic    = 0xfd2fb528
	zstdBlockMax = 128 << 10
)

// A backward reader reads bits from the end of its data to the beginning, as zstd's streams are read.
type backward struct {
	b    []byte
	left int // bits
}

func newBackward(b []byte) (backward, error) {
	if len(b) == 0 || b[len(b)-1] == 0 {
		return backward{}, errZstd
	}
	return backward{b, 8*len(b) - 9 + bits.Len8(b[len(b)-1])}, nil
}

// read returns the next n bits, or zero behind the end, where left is less than zero.
func (r *backward) read(n uint8) uint64 {
	if r.left -= int(n); r.left < 0 {
		return 0
	}
	return look(r.b, int64(r.left)) & (1<<n - 1)
}

// A state is a row of a table of finite state entropy.
type state struct {
	base   uint16
	symbol uint8
	bits   uint8
}

type stateTable struct {
	log    uint8
	states []state
}

// newStateTable builds the table of symbols with these shares of 1<<log; -1 is less than one.
func newStateTable(shares []int16, log uint8) (*stateTable, error) {
	size := 1 << log
	t := &stateTable{log, make([]state, size)}
	var next [256]uint16
	high := size - 1
	for s, n := range shares {
		if n == -1 {
			t.states[high].symbol = uint8(s)
			high--
			n = 1
		}
		next[s] = uint16(n)
	}
	pos, step := 0, size>>1+size>>3+3
	for s, n := range shares {
		for range n {
			t.states[pos].symbol = uint8(s)
			for pos = (pos + step) & (size - 1); pos > high; pos = (pos + step) & (size - 1) {
			}
		}
	}
	if pos != 0 {
		return nil, errZstd
	}
	for i := range t.states {
		e := &t.states[i]
		x := next[e.symbol]
		next[e.symbol]++
		e.bits = log - uint8(bits.Len16(x)-1)
		e.base = x<<e.bits - uint16(size)
	}
	return t, nil
}

// readStateTable reads the description of a table for symbols below most, and returns its length.
func readStateTable(b []byte, maxLog uint8, most int) (*stateTable, int, error) {
	if len(b) == 0 {
		return nil, 0, errZstd
	}
	log := b[0]&15 + 5
	if log > maxLog {
		return nil, 0, errZstd
	}
	at := int64(4)
	remaining, threshold, width := 1<<log+1, 1<<log, int64(log)+1
	var shares []int16
	for zero := false; remaining > 1; {
		if at > int64(len(b))*8 {
			return nil, 0, errZstd
		}
		if zero {
			n := int(look(b, at) & 3)
			at += 2
			shares = append(shares, make([]int16, n)...)
			if zero = n == 3; len(shares) > most {
				return nil, 0, errZstd
			}
			if zero {
				continue
			}
		}
		v := int(look(b, at))
		small := 2*threshold - 1 - remaining
		n := v & (threshold - 1)
		if n < small {
			at += width - 1
		} else {
			if n = v & (2*threshold - 1); n >= threshold {
				n -= small
			}
			at += width
		}
		n--
		remaining -= max(n, -n)
		if shares = append(shares, int16(n)); len(shares) > most || remaining < 1 {
			return nil, 0, errZstd
		}
		for zero = n == 0; remaining < threshold; threshold >>= 1 {
			width--
		}
	}
	used := int(at+7) >> 3
	if used > len(b) {
		return nil, 0, errZstd
	}
	t, err := newStateTable(shares, log)
	return t, used, err
}

// readWeights reads the description of a Huffman table, and returns its length.
func readWeights(b []byte) (*huffman, int, error) {
	if len(b) == 0 {
		return nil, 0, errZstd
	}
	n := int(b[0])
	used := 1 + n
	var w []uint8
	if n >= 128 {
		n -= 127
		if used = 1 + (n+1)/2; used > len(b) {
			return nil, 0, errZstd
		}
		for i := range n {
			w = append(w, b[1+i/2]>>(4*(1-i&1))&15)
		}
	} else {
		if used > len(b) {
			return nil, 0, errZstd
		}
		t, head, err := readStateTable(b[1:used], 6, 256)
		if err != nil {
			return nil, 0, err
		}
		r, err := newBackward(b[1+head : used])
		if err != nil {
			return nil, 0, err
		}
		s := [2]uint64{r.read(t.log), r.read(t.log)}
		for i := 0; len(w) < 256 && r.left >= 0; i ^= 1 {
			e := t.states[s[i]]
			w = append(w, e.symbol)
			if r.left < int(e.bits) {
				w = append(w, t.states[s[i^1]].symbol)
				break
			}
			s[i] = uint64(e.base) + r.read(e.bits)
		}
	}
	sum := 0
	for _, x := range w {
		if x > 11 {
			return nil, 0, errZstd
		}
		sum += 1 << x >> 1
	}
	longest := bits.Len(uint(sum))
	rest := 1<<longest - sum
	if sum == 0 || longest > 11 || len(w) > 255 || rest&(rest-1) != 0 {
		return nil, 0, errZstd
	}
	w = append(w, uint8(bits.Len(uint(rest))))
	h := &huffman{uint(longest), make([]uint16, 0, 1<<longest)}
	for x := uint8(1); x <= uint8(longest); x++ {
		for s, y := range w {
			for range 1 << x >> 1 {
				if x == y {
					h.table = append(h.table, uint16(s)<<4|uint16(longest)+1-uint16(x))
				}
			}
		}
	}
	return h, used, nil
}

// stream checks that a stream holds n symbols.
func (h *huffman) stream(b []byte, n int) error {
	r, err := newBackward(b)
	if err != nil {
		return err
	}
	width := int(h.bits)
	mask := uint64(1)<<width - 1
	for range n {
		var v uint64
		if r.left >= width {
			v = look(b, int64(r.left-width)) & mask
		} else {
			v = look(b, 0) << (width - r.left) & mask
		}
		if r.left -= int(h.table[v] & 15); r.left < 0 {
			return errZstd
		}
	}
	if r.left != 0 {
		return errZstd
	}
	return nil
}

// zstdTables are what blocks take over from those before.
type zstdTables struct {
	literals *huffman
	codes    [3]*stateTable // literal lengths, offsets, match lengths
}

// The codes of lengths: the base and the bits behind it, where they are not the code itself.
var (
	literalBase = [36]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}
	literalBits = [36]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matchBase   = [53]uint32{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539}
	matchBits   = [53]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

// defaults are the tables that the format itself defines.
var defaults = sync.OnceValue(func() (t [3]*stateTable) {
	t[0], _ = newStateTable([]int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}, 6)
	t[1], _ = newStateTable([]int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}, 5)
	t[2], _ = newStateTable([]int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}, 6)
	return t
})

// A zstdBlock is a block of a frame.
type zstdBlock struct {
	at      int // of its header, in the file
	end     int
	kind    uint8 // 0 as it is, 1 one byte many times, 2 compressed
	last    bool
	out     int64 // bytes that are unpacked before it
	size    int   // what it unpacks to
	before  zstdTables
	streams [4][2]int // where the streams of literals are, behind the header
	counts  [4]int    // of their symbols
	nlit    int
	lit     *huffman // of the literals
	coded   int      // where the sequences' section begins, behind the header
	bits    int      // where the bits of the sequences begin; 0 if it is not known
}

// A mark is where the bits of a sequence end, and what is unpacked before it. Bits go backward.
type mark struct {
	bit int64
	out int64
}

// A zstdScan is what a frame says of itself.
type zstdScan struct {
	b      []byte
	blocks []zstdBlock
	died   bool
	full   int // what blocks unpack to, but for the last
}

// scanZstd reads the blocks of the first frame.
func scanZstd(b []byte) (*zstdScan, bool) {
	s := &zstdScan{b: b}
	if len(b) < 9 || binary.LittleEndian.Uint32(b) != zstdMagic {
		return nil, false
	}
	d := b[4]
	at := 5 + [4]int{0, 1, 2, 4}[d&3] + [4]int{0, 2, 4, 8}[d>>6]
	if d&0x20 == 0 || d>>6 == 0 {
		at++
	}
	if d&4 == 0 {
		return nil, false // without a checksum nothing can be known
	}
	var t zstdTables
	for out := int64(0); ; {
		blk := zstdBlock{at: at, out: out, before: t}
		err := s.block(&blk, &t, nil)
		s.blocks = append(s.blocks, blk)
		if err != nil || s.full > 0 && !blk.last && blk.size != s.full {
			s.died = true
			return s, true
		}
		if at, out = blk.end, out+int64(blk.size); blk.last {
			return s, true
		}
		s.full = blk.size
	}
}

// block reads a block, and what later ones take over from it.
func (s *zstdScan) block(blk *zstdBlock, t *zstdTables, marks *[]mark) error {
	if blk.at+3 > len(s.b) {
		return errZstd
	}
	h := uint32(s.b[blk.at]) | uint32(s.b[blk.at+1])<<8 | uint32(s.b[blk.at+2])<<16
	size := int(h >> 3)
	blk.last, blk.kind, blk.size = h&1 != 0, uint8(h>>1&3), size
	stored := size
	if blk.kind == 1 {
		stored = 1
	}
	if blk.end = blk.at + 3 + stored; blk.kind == 3 || size > zstdBlockMax || blk.end > len(s.b) {
		return errZstd
	}
	if blk.kind != 2 {
		return nil
	}
	data := s.b[blk.at+3 : blk.end]
	if err := s.literals(blk, t, data); err != nil {
		return err
	}
	return s.sequences(blk, t, data, marks)
}

// literals reads the section of literals.
func (s *zstdScan) literals(blk *zstdBlock, t *zstdTables, data []byte) error {
	if len(data) < 2 {
		return errZstd
	}
	v := look(data, 0)
	kind, form := v&3, v>>2&3
	if kind < 2 {
		head := [4]int{1, 2, 1, 3}[form]
		n := int(v >> [4]int{3, 4, 3, 4}[form] & (1<<[4]int{5, 12, 5, 20}[form] - 1))
		stored := n
		if kind == 1 {
			stored = 1
		}
		blk.nlit, blk.coded = n, head+stored
		if n > zstdBlockMax || blk.coded > len(data) {
			return errZstd
		}
		return nil
	}
	width := [4]int{10, 10, 14, 18}[form]
	head := [4]int{3, 3, 4, 5}[form]
	n, stored := int(v>>4&(1<<width-1)), int(v>>(4+width)&(1<<width-1))
	blk.nlit, blk.coded = n, head+stored
	if n > zstdBlockMax || blk.coded > len(data) {
		return errZstd
	}
	if kind == 2 {
		h, used, err := readWeights(data[head:blk.coded])
		if err != nil {
			return err
		}
		t.literals, head = h, head+used
	} else if t.literals == nil {
		return errZstd
	}
	blk.lit = t.literals
	if form == 0 {
		blk.streams[0], blk.counts[0] = [2]int{head, blk.coded}, n
	} else {
		if head+6 > blk.coded {
			return errZstd
		}
		at := head + 6
		for i := range 3 {
			end := at + int(binary.LittleEndian.Uint16(data[head+2*i:]))
			blk.streams[i], blk.counts[i] = [2]int{at, end}, (n+3)/4
			at = end
		}
		blk.streams[3], blk.counts[3] = [2]int{at, blk.coded}, n-3*((n+3)/4)
		if at > blk.coded || blk.counts[3] < 0 {
			return errZstd
		}
	}
	for i := range blk.streams {
		if blk.counts[i] == 0 {
			continue
		}
		if err := blk.stream(data, i); err != nil {
			return err
		}
	}
	return nil
}

// stream checks one stream of literals.
func (blk *zstdBlock) stream(data []byte, i int) error {
	return blk.lit.stream(data[blk.streams[i][0]:blk.streams[i][1]], blk.counts[i])
}

// sequences reads the section of sequences.
func (s *zstdScan) sequences(blk *zstdBlock, t *zstdTables, data []byte, marks *[]mark) error {
	at := blk.coded
	if at >= len(data) {
		return errZstd
	}
	v := look(data, int64(at)*8)
	n := int(v & 255)
	switch at++; {
	case n == 255:
		n, at = int(v>>8&0xffff)+0x7f00, at+2
	case n >= 128:
		n, at = (n-128)<<8+int(v>>8&255), at+1
	}
	if blk.size = blk.nlit; n == 0 {
		if at != len(data) {
			return errZstd
		}
		return nil
	}
	if at >= len(data) || data[at]&3 != 0 {
		return errZstd
	}
	modes := data[at]
	at++
	for i := range t.codes {
		switch modes >> (6 - 2*i) & 3 {
		case 0:
			t.codes[i] = defaults()[i]
		case 1:
			if at >= len(data) || data[at] >= [3]uint8{36, 32, 53}[i] {
				return errZstd
			}
			t.codes[i] = &stateTable{states: []state{{symbol: data[at]}}}
			at++
		case 2:
			table, used, err := readStateTable(data[at:], [3]uint8{9, 8, 9}[i], [3]int{36, 32, 53}[i])
			if err != nil {
				return err
			}
			t.codes[i], at = table, at+used
		case 3:
			if t.codes[i] == nil {
				return errZstd
			}
		}
	}
	blk.bits = at
	return s.follow(blk, t, data[at:], n, marks)
}

// follow goes through n sequences.
func (s *zstdScan) follow(blk *zstdBlock, t *zstdTables, b []byte, n int, marks *[]mark) error {
	r, err := newBackward(b)
	if err != nil {
		return err
	}
	ll, of, ml := t.codes[0], t.codes[1], t.codes[2]
	l, o, m := r.read(ll.log), r.read(of.log), r.read(ml.log)
	literals, size := 0, 0
	for i := range n {
		if marks != nil {
			*marks = append(*marks, mark{int64(r.left), blk.out + int64(size)})
		}
		sl, so, sm := ll.states[l], of.states[o], ml.states[m]
		far := uint64(1)<<so.symbol + r.read(so.symbol)
		length := uint64(matchBase[sm.symbol]) + r.read(matchBits[sm.symbol])
		lits := uint64(literalBase[sl.symbol]) + r.read(literalBits[sl.symbol])
		literals += int(lits)
		size += int(lits) + int(length)
		if r.left < 0 || literals > blk.nlit || size > zstdBlockMax || far > 3 && int64(far)-3 > blk.out+int64(size) {
			return errZstd
		}
		if i < n-1 {
			l = uint64(sl.base) + r.read(sl.bits)
			m = uint64(sm.base) + r.read(sm.bits)
			o = uint64(so.base) + r.read(so.bits)
		}
	}
	if r.left != 0 {
		return errZstd
	}
	blk.size = size + blk.nlit - literals
	return nil
}

// Zstd looks for the flipped bit in the first frame of zstd data, which must have a checksum. near
// is a place in what is unpacked where it was seen that something is wrong, -1 if none was. check
// is asked, with the bit of a candidate flipped in b, whether all can be unpacked and the checksum
// agrees. Zstd returns the number of the bit, which is not left flipped. It finds none once ctx has
// ended.
func Zstd(ctx context.Context, b []byte, near int64, check func() bool) (bit int64, ok bool) {
	if len(b) > MaxPacked {
		return 0, false
	}
	s, ok := scanZstd(b)
	if !ok {
		return 0, false
	}
	f := &zstdSearch{zstdScan: s, ctx: ctx, effort: maxEffort / 4, check: check}
	if s.died {
		for i := len(s.blocks) - 1; i >= max(0, len(s.blocks)-2); i-- {
			if bit, v := f.dead(&s.blocks[i]); v != no {
				return bit, v == yes
			}
		}
		return 0, false
	}
	if near < 0 {
		return 0, false
	}
	i := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].out > near }) - 1
	for ; i >= 0 && near-s.blocks[i].out-int64(s.blocks[i].size) < around; i-- {
		if bit, v := f.alive(&s.blocks[i], near); v != no {
			return bit, v == yes
		}
	}
	return 0, false
}

// A zstdSearch tries bits of the blocks of a scan.
type zstdSearch struct {
	*zstdScan
	ctx    context.Context
	effort int64
	check  func() bool
}

// spend takes what a test costs, and reports whether there was so much, and time for it.
func (f *zstdSearch) spend(n int) bool {
	f.effort -= int64(n)
	return f.effort >= 0 && f.ctx.Err() == nil
}

// bits tests those of the bytes from one offset to another, from the end.
func (f *zstdSearch) bits(from, to int, test func() bool) (int64, verdict) {
	return search(int64(to)*8-1, int64(from)*8, int64(len(f.b))*8, func(c int64) verdict {
		flip(f.b, c)
		defer flip(f.b, c)
		if !f.spend(64) {
			return stop
		}
		if !test() {
			return no
		}
		if !f.spend(f.unpacked()) {
			return stop
		}
		if f.check() {
			return yes
		}
		return no
	})
}

// unpacked is what a check unpacks, about.
func (f *zstdSearch) unpacked() int {
	last := f.blocks[len(f.blocks)-1]
	return int(last.out) + last.size
}

// whole tests a block from its header on.
func (f *zstdSearch) whole(blk *zstdBlock) func() bool {
	return func() bool {
		t := blk.before
		again := zstdBlock{at: blk.at, out: blk.out}
		f.spend(again.size * 2)
		return f.block(&again, &t, nil) == nil && (again.last || f.full == 0 || again.size == f.full)
	}
}

// dead looks in a block that cannot be unpacked, or unpacks to a size that it cannot have.
func (f *zstdSearch) dead(blk *zstdBlock) (int64, verdict) {
	whole := f.whole(blk)
	if bit, v := f.bits(blk.at, blk.at+3, whole); v != no {
		return bit, v
	}
	if blk.kind != 2 || blk.end > len(f.b) {
		return 0, no
	}
	at := blk.at + 3
	data := f.b[at:blk.end]
	t := blk.before
	again := zstdBlock{at: blk.at, out: blk.out}
	if err := f.literals(&again, &t, data); err != nil {
		// The bits before the streams first, then those of the first stream that is wrong.
		head := len(data)
		if again.lit != nil {
			head = again.streams[0][0]
		}
		if bit, v := f.bits(at, at+head, whole); v != no {
			return bit, v
		}
		for i := range again.streams {
			if again.counts[i] == 0 || again.streams[i][1] > len(data) || again.streams[i][0] > again.streams[i][1] || again.stream(data, i) == nil {
				continue
			}
			return f.bits(at+again.streams[i][0], at+again.streams[i][1], func() bool { return f.spend(again.counts[i]*2) && again.stream(data, i) == nil })
		}
		return 0, no
	}
	lit := t
	return f.bits(at, blk.end, func() bool {
		t := lit
		try := again
		return f.spend(blk.size) && f.sequences(&try, &t, data, nil) == nil && (blk.last || f.full == 0 || try.size == f.full)
	})
}

// alive looks in a block that can be unpacked, from a place backward.
func (f *zstdSearch) alive(blk *zstdBlock, near int64) (int64, verdict) {
	if blk.kind != 2 {
		return 0, no
	}
	var marks []mark
	t := blk.before
	again := zstdBlock{at: blk.at, out: blk.out}
	if f.block(&again, &t, &marks) != nil || len(marks) == 0 {
		return 0, no
	}
	at := blk.at + 3
	data := f.b[at:blk.end]
	test := func() bool {
		t := blk.before
		try := again
		return f.spend(blk.size) && f.sequences(&try, &t, data, nil) == nil && try.size == again.size
	}
	// The marks' bits go down while what is unpacked goes up.
	i := sort.Search(len(marks), func(i int) bool { return marks[i].out > near })
	first := int64(0)
	if i < len(marks) {
		first = marks[i].bit
	}
	base := int64(at+again.bits) * 8
	for c := base + first; c < base+marks[0].bit+32 && c < int64(blk.end)*8; c += 8 {
		if bit, v := f.bits(int(c>>3), int(c>>3)+1, test); v != no {
			return bit, v
		}
	}
	return 0, no
}
