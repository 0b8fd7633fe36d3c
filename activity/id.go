package activity

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// An ID is an activity id as 16 raw bytes, in the order in which nettrace stores it.
// All zero: no activity.
type ID [16]byte

// IsZero reports whether id names no activity.
func (id ID) IsZero() bool { return id == ID{} }

// String returns id as GUID text, lower case with hyphens. The text puts the first
// eight bytes in another order than they have in memory.
func (id ID) String() string {
	var b [36]byte
	return string(id.AppendText(b[:0]))
}

// AppendText appends the GUID text of id to dst.
func (id ID) AppendText(dst []byte) []byte {
	o := [16]byte{id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6], id[8], id[9],
		id[10], id[11], id[12], id[13], id[14], id[15]}
	dst = hex.AppendEncode(dst, o[0:4])
	for _, r := range [][2]int{{4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		dst = append(dst, '-')
		dst = hex.AppendEncode(dst, o[r[0]:r[1]])
	}
	return dst
}

// ParseID reads GUID text with hyphens, upper or lower case, in braces or without.
func ParseID(s string) (ID, error) {
	id, err := text.ParseGUID(s)
	if err != nil {
		return ID{}, fmt.Errorf("activity: %w", err)
	}
	return id, nil
}

// MaxDepth is the largest number of numbers that an id can hold.
const MaxDepth = 24

// Lost stands in a Path for a number that the encoder of .NET 10 did not write.
// No encoder writes the number 0.
const Lost = 0

// maxProcess is the highest process id of 64-bit Linux. Step 1 of activity-ids.md
// section 3 takes an id that yields a higher one for a foreign GUID.
const maxProcess = 4194304

// checkSeed is the constant K of the check word.
const checkSeed = 0x599D99AD

// Overflow says whether a path did not fit into the id.
type Overflow uint8

// Kinds of overflow. An overflowed id names an ancestor and a number that tells
// its descendants apart; the depth between the two is unknown.
const (
	Fits         Overflow = iota
	Overflowed            // Path.OverflowNumber is known
	OverflowLost          // the number was lost (.NET 10)
)

// A Path is a decoded activity id.
type Path struct {
	num      [MaxDepth]uint32
	n        uint8
	overflow Overflow
	old      bool
	proof    bool
	process  uint32
	overNum  uint32
}

// NewPath returns a path of nums; more than MaxDepth of them are cut off.
func NewPath(nums ...uint32) Path {
	var p Path
	p.n = uint8(copy(p.num[:], nums))
	return p
}

// WithProcess returns p with another process id.
func (p Path) WithProcess(pid uint32) Path { p.process = pid; return p }

// WithOverflow returns p as the ancestor of an overflowed activity; number 0 is one
// that was lost.
func (p Path) WithOverflow(number uint32) Path {
	p.overflow, p.overNum = Overflowed, number
	if number == 0 {
		p.overflow = OverflowLost
	}
	return p
}

// Len returns the number of numbers, without that of an overflow.
func (p *Path) Len() int { return int(p.n) }

// At returns number i, the root's being number 0; Lost if it was lost.
func (p *Path) At(i int) uint32 { return p.num[i] }

// Numbers returns the numbers, root first. They are p's own.
func (p *Path) Numbers() []uint32 { return p.num[:p.n] }

// Process returns the process id that the check word holds; 0 if it holds none
// (.NET Framework).
func (p *Path) Process() uint32 { return p.process }

// Overflow says whether the id is an overflowed one, and its number.
func (p *Path) Overflow() (Overflow, uint32) { return p.overflow, p.overNum }

// Old reports whether the id proves the encoder of .NET 5 to 9.
func (p *Path) Old() bool { return p.old }

// ProvesLossy reports whether the id, decoded as one that is not lossy, proves the encoder
// of .NET 10. All ids of its process are to be decoded as lossy from then on. What was
// decoded as lossy proves nothing: 1/1/192 of .NET 5 to 9 reads as 1/1/?/? then.
func (p *Path) ProvesLossy() bool { return p.proof }

// HasLost reports whether a number of p was lost, so that its id may name several
// activities.
func (p *Path) HasLost() bool {
	if p.overflow == OverflowLost {
		return true
	}
	for _, v := range p.Numbers() {
		if v == Lost {
			return true
		}
	}
	return false
}

// MayStart reports whether a thread that works for p may start q: q lies below p as far as its path
// tells. Of an overflowed path nobody knows the end. .NET Core 3.1 refreshes the id of a thread
// late, so that the id to which a start relates may be of what the thread did before; the path that
// it got is right then.
func (p *Path) MayStart(q *Path) bool {
	if p.overflow != Fits || q.overflow != Fits || p.process != q.process {
		return true
	}
	return p.n < q.n && slices.Equal(p.Numbers(), q.num[:p.n])
}

// String returns the numbers with slashes between: 1/4/2000. A lost number is "?",
// an overflow is appended as "$" and its number.
func (p Path) String() string { return string(p.AppendText(nil)) }

// AppendText appends what String returns to dst.
func (p *Path) AppendText(dst []byte) []byte {
	for i, v := range p.Numbers() {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = appendNumber(dst, v)
	}
	if p.overflow != Fits {
		dst = append(dst, '$')
		dst = appendNumber(dst, p.overNum)
	}
	return dst
}

func appendNumber(dst []byte, v uint32) []byte {
	if v == Lost {
		return append(dst, '?')
	}
	return strconv.AppendUint(dst, uint64(v), 10)
}

// ParsePath reads what String writes, with or without slashes at its ends.
func ParsePath(s string) (Path, error) {
	var p Path
	body := strings.Trim(s, "/")
	body, over, hasOver := strings.Cut(body, "$")
	for _, f := range strings.Split(body, "/") {
		v, err := parseNumber(f)
		if err != nil || p.n == MaxDepth {
			return Path{}, fmt.Errorf("activity: %q is not a path", s)
		}
		p.num[p.n] = v
		p.n++
	}
	if hasOver {
		v, err := parseNumber(over)
		if err != nil {
			return Path{}, fmt.Errorf("activity: %q is not a path", s)
		}
		p = p.WithOverflow(v)
	}
	return p, nil
}

func parseNumber(s string) (uint32, error) {
	if s == "?" {
		return Lost, nil
	}
	v, err := strconv.ParseUint(s, 10, 32)
	if err == nil && v == 0 {
		err = strconv.ErrRange
	}
	return uint32(v), err
}

func (id *ID) check() (sum, word uint32) {
	w := func(o int) uint32 { return binary.LittleEndian.Uint32(id[o:]) }
	return w(0) + w(4) + w(8) + checkSeed, w(12)
}

// process returns the process that the check word holds, of an id that is a path.
func (id *ID) process() uint32 {
	sum, word := id.check()
	return sum ^ word
}

func (id *ID) nibble(i int) byte {
	if i&1 == 0 {
		return id[i/2] >> 4
	}
	return id[i/2] & 15
}

// Decode returns the path that id holds. lossy says that the id comes from the
// encoder of .NET 10, which must be known from elsewhere: a Decoder finds it out. It returns false for the
// zero id and for GUIDs that are no activity path; a random GUID passes with a
// probability of about 3 in 100,000.
func Decode(id ID, lossy bool) (Path, bool) {
	var p Path
	if id.IsZero() {
		return p, false
	}
	if p.process = id.process(); p.process > maxProcess {
		return p, false
	}
	i := 0 // in nibbles
	for i < 24 {
		n := id.nibble(i)
		if n == 0 {
			break
		}
		if n <= 10 {
			if !p.push(uint32(n)) {
				return p, false
			}
			i++
			continue
		}
		mark := n == 11
		if mark {
			if i++; i == 24 || id.nibble(i) < 12 {
				return p, false
			}
			n = id.nibble(i)
		}
		size := int(n) - 11 // bytes of the value
		high := i&1 == 0
		o := i/2 + 1
		if high && size == 1 && id.nibble(i+1) == 0 && (lossy || id.valueLost(o)) {
			p.proof = !lossy
			i += 2
			if mark {
				p.overflow = OverflowLost
				break
			}
			if !p.push(Lost) {
				return p, false
			}
			continue
		}
		if o+size > 12 {
			return p, false
		}
		var v uint32
		for k := size - 1; k >= 0; k-- {
			v = v<<8 | uint32(id[o+k])
		}
		if high {
			h := uint32(id.nibble(i + 1))
			if size == 1 {
				v |= h << 8
			} else if h != 0 {
				return p, false
			}
		}
		if !minimal(v, size, high, mark) {
			return p, false
		}
		i = 2 * (o + size)
		if mark {
			p.overflow, p.overNum = Overflowed, v
			break
		}
		if !p.push(v) {
			return p, false
		}
		// Bug 1: .NET 5 to 9 leave a zero byte behind a 12-bit number.
		if high && size == 1 && v >= 256 && i < 24 && id[i/2] == 0 && anySet(id[i/2+1:12]) {
			i += 2
			p.old = true
		}
	}
	for ; i < 24; i++ {
		if id.nibble(i) != 0 {
			return p, false
		}
	}
	return p, p.n > 0
}

// valueLost reports whether a value that should begin at byte o cannot be there:
// the mark of the encoder of .NET 10.
func (id *ID) valueLost(o int) bool { return o >= 12 || id[o] == 0 && !anySet(id[o:12]) }

func (p *Path) push(v uint32) bool {
	if p.n == MaxDepth {
		return false
	}
	p.num[p.n] = v
	p.n++
	return true
}

// minimal reports whether an encoder would have written v in this form.
func minimal(v uint32, size int, high, mark bool) bool {
	switch {
	case size == 1 && mark:
		return v >= 1
	case size == 1:
		return v >= 11
	case size == 2 && high:
		return v >= 4096
	case size == 2:
		return v >= 256
	case size == 3:
		return v >= 1<<16
	}
	return v >= 1<<24
}

func anySet(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return true
		}
	}
	return false
}

// Encoder names an encoder of the runtime.
type Encoder uint8

// The encoders. EncoderIdeal is what the correction in .NET 10 was meant to be;
// no known runtime has it.
const (
	EncoderOld Encoder = iota // .NET 5 to 9
	EncoderNew                // .NET 10
	EncoderIdeal
)

// ErrOverflow is returned by Encode for a path that does not fit.
var ErrOverflow = errors.New("activity: path does not fit into an id")

// Encode returns the id that an encoder writes for p.
func Encode(p Path, e Encoder) (ID, error) {
	w := idWriter{encoder: e}
	for _, v := range p.Numbers() {
		w.number(v, false)
	}
	if p.overflow != Fits {
		w.nibble(11)
		w.number(p.overNum, true)
	}
	if w.failed {
		return ID{}, ErrOverflow
	}
	sum, _ := w.id.check()
	binary.LittleEndian.PutUint32(w.id[12:], sum^p.process)
	return w.id, nil
}

type idWriter struct {
	id      ID
	i       int // in nibbles
	encoder Encoder
	failed  bool
}

func (w *idWriter) nibble(v byte) {
	if w.i >= 24 {
		w.failed = true
		return
	}
	if w.i&1 == 0 {
		v <<= 4
	}
	w.id[w.i/2] |= v
	w.i++
}

func (w *idWriter) number(v uint32, overflow bool) {
	if v != Lost && v <= 10 && !overflow {
		w.nibble(byte(v))
		return
	}
	high := w.i&1 == 0
	size := 1
	switch {
	case v >= 1<<24:
		size = 4
	case v >= 1<<16:
		size = 3
	case v >= 4096, v >= 256 && !high:
		size = 2
	}
	w.nibble(byte(11 + size))
	if !high {
		w.bytes(v, size)
		return
	}
	if size > 1 {
		w.nibble(0)
		w.bytes(v, size)
		return
	}
	w.nibble(byte(v >> 8))
	switch {
	case v == Lost, v < 256 && w.encoder == EncoderNew:
	case v >= 256 && w.encoder == EncoderOld:
		w.bytes(v&0xff, 2)
	default:
		w.bytes(v&0xff, 1)
	}
}

func (w *idWriter) bytes(v uint32, size int) {
	if w.failed || w.i/2+size > 12 {
		w.failed = true
		return
	}
	for range size {
		w.id[w.i/2] = byte(v)
		v >>= 8
		w.i += 2
	}
}
