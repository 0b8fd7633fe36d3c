package bitfix

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sort"
	"sync"
)

var errDeflate = errors.New("no deflate data")

// A huffman table is looked up with as many bits as the longest code has; an entry is the symbol and,
// in its low four bits, the length of its code, or zero.
type huffman struct {
	bits  uint
	table []uint16
}

// newHuffman builds the table of the codes with these lengths.
func newHuffman(lengths []uint8) (huffman, error) {
	var count [16]int
	longest := uint(0)
	for _, n := range lengths {
		count[n]++
		longest = max(longest, uint(n))
	}
	count[0] = 0
	if longest == 0 {
		return huffman{bits: 1, table: make([]uint16, 2)}, nil
	}
	var next [16]int
	code := 0
	for n := 1; n <= int(longest); n++ {
		code = (code + count[n-1]) << 1
		next[n] = code
	}
	// Codes that leave room are allowed where there is one only.
	if full := code + count[longest]; full != 1<<longest && (full != 1 || longest != 1) {
		return huffman{}, errDeflate
	}
	h := huffman{longest, make([]uint16, 1<<longest)}
	for s, n := range lengths {
		if n == 0 {
			continue
		}
		reversed := 0
		for i := range int(n) {
			reversed |= next[n] >> i & 1 << (int(n) - 1 - i)
		}
		next[n]++
		for i := reversed; i < len(h.table); i += 1 << n {
			h.table[i] = uint16(s)<<4 | uint16(n)
		}
	}
	return h, nil
}

// fixedCodes are those that the format itself defines, of literals and of distances.
var fixedCodes = sync.OnceValues(func() (huffman, huffman) {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	lit, _ := newHuffman(lengths[:])
	for i := range 32 {
		lengths[i] = 5
	}
	dist, _ := newHuffman(lengths[:32])
	return lit, dist
})

// A deflateBlock is one whose header was read.
type deflateBlock struct {
	start, body int64 // bits
	last        bool
	stored      int // bytes; -1: it has codes
	lit, dist   huffman
}

// A place is where a token or the header of a block begins.
type place struct {
	bit   uint32
	out   uint32 // bytes that are unpacked before it
	block int32
	op
	head bool
}

// An op is what a token unpacks to: a byte, or n bytes from dist before; the end of a block is neither.
type op struct {
	n, dist uint16
	literal uint8
}

// A deflateScan is what deflate data say of themselves, up to where they go wrong.
type deflateScan struct {
	b       []byte
	blocks  []deflateBlock
	places  []place
	end     int64 // the bit behind the last block, or where no data can be
	out     int64 // bytes unpacked
	died    bool
	over    bool // more than is looked at
	content []byte
	sums    []uint32 // of the content up to each multiple of sumStep
	trial   []op     // of the candidate, until data go on as they were read
	tokens  int64    // that candidates were read for since this was asked for last
	lost    lost
	scratch []byte
	local   []change
}

const (
	sumStep = 64 << 10
	window  = 32 << 10
)

// look returns at least 56 bits from a bit on; behind the end there are zeros.
func look(b []byte, bit int64) uint64 {
	at := bit >> 3
	if at+8 <= int64(len(b)) {
		return binary.LittleEndian.Uint64(b[at:]) >> (bit & 7)
	}
	var rest [8]byte
	if at < int64(len(b)) {
		copy(rest[:], b[at:])
	}
	return binary.LittleEndian.Uint64(rest[:]) >> (bit & 7)
}

var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readBlock reads the header of the block at a bit.
func (s *deflateScan) readBlock(at int64) (blk deflateBlock, err error) {
	v := look(s.b, at)
	blk = deflateBlock{start: at, last: v&1 != 0, stored: -1}
	bit := at + 3
	switch v >> 1 & 3 {
	case 0:
		bit = (bit + 7) &^ 7
		v := look(s.b, bit)
		if uint16(v) != ^uint16(v>>16) || bit>>3+4+int64(uint16(v)) > int64(len(s.b)) {
			return blk, errDeflate
		}
		blk.stored, blk.body = int(uint16(v)), bit+32
		return blk, nil
	case 1:
		blk.lit, blk.dist = fixedCodes()
		blk.body = bit
		return blk, nil
	case 3:
		return blk, errDeflate
	}
	v >>= 3
	lits, dists, codes := int(v&31)+257, int(v>>5&31)+1, int(v>>10&15)+4
	bit += 14
	if lits > 286 || dists > 30 {
		return blk, errDeflate
	}
	var lengths [320]uint8
	for _, i := range codeOrder[:codes] {
		lengths[i] = uint8(look(s.b, bit) & 7)
		bit += 3
	}
	h, err := newHuffman(lengths[:19])
	if err != nil {
		return blk, err
	}
	clear(lengths[:19])
	for n := 0; n < lits+dists; {
		v := look(s.b, bit)
		e := h.table[v&uint64(len(h.table)-1)]
		if e == 0 || bit > int64(len(s.b))*8 {
			return blk, errDeflate
		}
		bit += int64(e & 15)
		v >>= e & 15
		repeat, value := 1, uint8(e>>4)
		switch e >> 4 {
		case 16:
			if n == 0 {
				return blk, errDeflate
			}
			repeat, value, bit = int(v&3)+3, lengths[n-1], bit+2
		case 17:
			repeat, value, bit = int(v&7)+3, 0, bit+3
		case 18:
			repeat, value, bit = int(v&127)+11, 0, bit+7
		}
		if n+repeat > lits+dists {
			return blk, errDeflate
		}
		for range repeat {
			lengths[n] = value
			n++
		}
	}
	if lengths[256] == 0 {
		return blk, errDeflate
	}
	if blk.lit, err = newHuffman(lengths[:lits]); err == nil {
		blk.dist, err = newHuffman(lengths[lits : lits+dists])
	}
	blk.body = bit
	return blk, err
}

var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [29]uint8{8: 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
)

// token reads what stands at a bit, where out bytes are unpacked before, and where the next one begins.
func (s *deflateScan) token(blk *deflateBlock, bit, out int64) (o op, next int64, err error) {
	v := look(s.b, bit)
	e := blk.lit.table[v&uint64(len(blk.lit.table)-1)]
	if e == 0 {
		return o, bit, errDeflate
	}
	used := uint(e & 15)
	switch sym := int(e >> 4); {
	case sym < 256:
		o = op{n: 1, literal: uint8(sym)}
	case sym == 256:
	case sym > 285:
		return o, bit, errDeflate
	default:
		extra := uint(lengthBits[sym-257])
		o.n = lengthBase[sym-257] + uint16(v>>used&(1<<extra-1))
		used += extra
		d := blk.dist.table[v>>used&uint64(len(blk.dist.table)-1)]
		if d == 0 || d>>4 > 29 {
			return o, bit, errDeflate
		}
		used += uint(d & 15)
		dist := int64(d>>4) + 1
		if d>>4 >= 4 {
			extra := uint(d>>4)/2 - 1
			dist = 1 + (2+int64(d>>4)&1)<<extra + int64(v>>used&(1<<extra-1))
			used += extra
		}
		if dist > out {
			return o, bit, errDeflate
		}
		o.dist = uint16(dist)
	}
	if next = bit + int64(used); next > int64(len(s.b))*8 {
		return o, bit, errDeflate
	}
	return o, next, nil
}

// scanDeflate reads deflate data that should fill b, to no more than limit unpacked bytes.
func scanDeflate(b []byte, limit int64) *deflateScan {
	s := &deflateScan{b: b}
	bit := int64(0)
	for {
		index := int32(len(s.blocks))
		s.places = append(s.places, place{bit: uint32(bit), out: uint32(s.out), block: index, head: true})
		blk, err := s.readBlock(bit)
		if err != nil {
			s.end, s.died = bit, true
			return s
		}
		s.blocks = append(s.blocks, blk)
		bit = blk.body
		for {
			p := place{bit: uint32(bit), out: uint32(s.out), block: index}
			if blk.stored >= 0 {
				s.places = append(s.places, p)
				s.content = s.unpack(s.content, op{}, &blk)
				bit += int64(blk.stored) * 8
			} else if p.op, bit, err = s.token(&blk, bit, s.out); err != nil || s.out > limit || len(s.places) > maxPlaces {
				s.over = err == nil
				s.places = append(s.places, p)
				s.end, s.died = bit, true
				return s
			} else {
				s.places = append(s.places, p)
				s.content = s.unpack(s.content, p.op, &blk)
			}
			s.out = int64(len(s.content))
			if p.n == 0 {
				break
			}
		}
		if blk.last {
			s.end = bit
			s.died = (bit+7)>>3 != int64(len(b))
			return s
		}
	}
}

// unpack appends what a token of a block, or a stored block, unpacks to.
func (s *deflateScan) unpack(out []byte, o op, blk *deflateBlock) []byte {
	switch from := len(out) - int(o.dist); {
	case blk.stored >= 0:
		return append(out, s.b[blk.body>>3:blk.body>>3+int64(blk.stored)]...)
	case o.n == 0 || from < 0: // of a candidate that cannot be
	case o.dist == 0:
		return append(out, o.literal)
	case o.dist >= o.n:
		return append(out, out[from:from+int(o.n)]...)
	default:
		for i := range int(o.n) {
			out = append(out, out[from+i])
		}
	}
	return out
}

// lost are the bits, from one on, at which candidates went on reading with the codes of a block. They led
// nowhere, and whoever comes to one of them does not either: each is read from once. In a long hole of zeros
// each candidate would be read to the end of the hole.
type lost struct {
	from  int64
	block int32
	bits  []uint64
}

// met reports whether a candidate was here before; from now on one was.
func (l *lost) met(block int32, bit int64) bool {
	if block != l.block {
		l.block = block
		clear(l.bits)
	}
	k := bit - l.from
	if k < 0 || k>>6 >= int64(len(l.bits)) {
		return false
	}
	was := l.bits[k>>6]
	l.bits[k>>6] |= 1 << (k & 63)
	return was == l.bits[k>>6]
}

const headBits = 3 + 14 + 19*3 + 320*(7+7) // of the longest header of a block

const patience = 1 << 14 // tokens after which what goes well is believed

// try reads on with a bit flipped, which is in the token at place i, until the data come back to
// what was read before, and returns the places where they left it and where they are back. ok says
// that the bit may be the one: as many bytes more as are missing were unpacked meanwhile, or, with
// back less than zero, where the data died before, they can be read to their end and are as long as they should be.
// To get beyond where they died is not enough: in a long hole of zeros nearly every bit does, and to unpack
// the file for each of them took minutes.
func (s *deflateScan) try(c int64, i int, missing int64) (left, back int, ok bool) {
	left, p := i, s.places[i]
	bit, out := int64(p.bit), int64(p.out)
	s.trial = s.trial[:0]
	var blk deflateBlock
	if !p.head {
		if blk = s.blocks[p.block]; blk.stored >= 0 {
			return 0, 0, false // what is stored as it is refers to nothing
		}
	}
	flip(s.b, c)
	defer flip(s.b, c)
	same, head := !p.head, p.head // the codes are those of the block as it was read; a header is next
	for n := 0; n < patience || s.died; n++ {
		s.tokens++
		for i < len(s.places) && int64(s.places[i].bit) < bit {
			i++
		}
		if bit > c && i < len(s.places) && int64(s.places[i].bit) == bit && s.places[i].head == head && (head || same && s.places[i].block == p.block) {
			return left, i, !s.died && out-int64(s.places[i].out) == missing
		}
		if same && bit > c && out >= window && s.lost.met(p.block, bit) { // before, a distance may be too long for one and not for another
			return 0, 0, false
		}
		if head {
			var err error
			if blk, err = s.readBlock(bit); err != nil || blk.stored >= 0 && !s.died {
				return 0, 0, false
			}
			bit, head, same = blk.body, false, false
		}
		var o op
		if blk.stored >= 0 {
			out += int64(blk.stored)
			bit += int64(blk.stored) * 8
		} else {
			var err error
			if o, bit, err = s.token(&blk, bit, out); err != nil {
				return 0, 0, false
			}
			if !s.died { // else it does not come back
				s.trial = append(s.trial, o)
			}
			out += int64(o.n)
		}
		if o.n == 0 {
			if head, same = true, false; blk.last {
				clear(s.lost.bits) // that it is of another length says nothing of others
				return 0, -1, s.died && (bit+7)>>3 == int64(len(s.b)) && out-s.out == missing
			}
		}
	}
	return 0, -1, false
}

// sum is the checksum of the content with the trial in place of what stands between two places.
func (s *deflateScan) sum(left, back int) uint32 {
	if len(s.sums) == 0 {
		s.sums = append(s.sums, 0)
		for i := 0; i+sumStep <= len(s.content); i += sumStep {
			s.sums = append(s.sums, crc32.Update(s.sums[len(s.sums)-1], crc32.IEEETable, s.content[i:i+sumStep]))
		}
	}
	out := int(s.places[left].out)
	n := out / sumStep
	sum := crc32.Update(s.sums[n], crc32.IEEETable, s.content[n*sumStep:out])
	buf := append(s.scratch[:0], s.content[max(0, out-window):out]...)
	told := len(buf)
	var coded = deflateBlock{stored: -1}
	for _, o := range s.trial {
		buf = s.unpack(buf, o, &coded)
	}
	for i := back; i < len(s.places); i++ {
		if p := &s.places[i]; !p.head {
			buf = s.unpack(buf, p.op, &s.blocks[p.block])
		}
		if len(buf) > 16*window {
			sum = crc32.Update(sum, crc32.IEEETable, buf[told:])
			told = copy(buf, buf[len(buf)-window:])
			buf = buf[:told]
		}
	}
	s.scratch = buf
	return crc32.Update(sum, crc32.IEEETable, buf[told:])
}

func flip(b []byte, bit int64) { b[bit>>3] ^= 1 << (bit & 7) }

// Deflate looks for the flipped bit in deflate data that should fill b, unpack to length bytes and
// have a checksum. near is a place in what is unpacked where it was seen that something is
// wrong, -1 if none was. check is asked, with the bit of a candidate flipped in b, whether it can
// be unpacked. Deflate returns the number of the bit, which is not left flipped. It finds none once
// ctx has ended.
func Deflate(ctx context.Context, b []byte, length, near int64, sum uint32, check func() bool) (bit int64, ok bool) {
	if len(b) > MaxPacked || length > MaxUnpacked {
		return 0, false
	}
	s := scanDeflate(b, MaxUnpacked)
	if s.over {
		return 0, false
	}
	effort := int64(maxEffort)
	if s.died { // what is looked at is near there, and some of it may be read to the end
		effort = min(effort, reach*perBit+perByte*(int64(len(b))+length))
	}
	spent := func() bool {
		effort -= max(perBit, perToken*s.tokens)
		s.tokens = 0
		return effort < 0 || ctx.Err() != nil
	}
	missing := length - s.out
	agrees := func(c int64) verdict {
		flip(b, c)
		defer flip(b, c)
		if check() {
			return yes
		}
		return no
	}
	test := func(c int64) verdict {
		if spent() {
			return stop
		}
		i := sort.Search(len(s.places), func(i int) bool { return int64(s.places[i].bit) > c }) - 1
		left, back, ok := s.try(c, i, missing)
		if !ok {
			return no
		}
		if back < 0 {
			effort -= length
		} else if effort -= s.out - int64(s.places[left].out); s.sum(left, back) != sum {
			return no
		}
		return agrees(c)
	}
	bits := int64(len(b)) * 8
	switch {
	case s.died:
		s.lost = lost{max(0, s.end-reach), -1, make([]uint64, 2*reach/64)}
		from := s.end + 64
		if s.places[len(s.places)-1].head {
			from = s.end + headBits // the codes may be read wrong from any of its bits on
		}
		bit, v := search(from, s.end-reach, bits, test)
		return bit, v == yes
	case missing == 0:
		bit, v := s.linear(sum, func(c int64, ok bool) verdict {
			if spent() {
				return stop
			}
			if !ok {
				return no
			}
			return agrees(c)
		})
		return bit, v == yes
	case near < 0:
		near = 0
	}
	at := func(out int64) int64 {
		i := sort.Search(len(s.places), func(i int) bool { return int64(s.places[i].out) > out })
		if i == len(s.places) {
			return s.end
		}
		return int64(s.places[i].bit)
	}
	// Where it was seen, and outward from there.
	middle := at(near)
	for away := int64(0); away <= max(middle, bits-middle); away++ {
		for _, c := range [2]int64{middle + away, middle - away - 1} {
			if c < 0 || c >= bits {
				continue
			}
			if v := test(c); v != no {
				return c, v == yes
			}
		}
	}
	return 0, false
}
