package profile

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
)

// A SliceLog keeps slices in few bytes until somebody asks for them; of their threads it keeps
// nothing. The zero value is empty.
type SliceLog struct {
	// Spool takes what some megabytes of memory have no room for; nil: all stays there. It is set
	// before the first Add.
	Spool *Spool

	log    spool.Log
	made   []byte
	words  []string // that came first: names of details, routes, hosts
	number map[string]uint32
}

// A SlicePlace is where slices are in a SliceLog.
type SlicePlace int64

const (
	sliceMemory = 4 << 20
	// firstRead is how many bytes are read of slices whose size is not known: as many as a request
	// and its phases take.
	firstRead = 256
	// maxWords and maxWord bound what is kept once of many strings that may all differ.
	maxWords = 4096
	maxWord  = 96
)

// Flags of a slice in a SliceLog.
const (
	sliceInstant = 1 << iota
	sliceOpen
	sliceIDs // has ID, FlowOut, FlowIn, Ties
)

// Kinds of values in a SliceLog.
const (
	valueString = iota
	valueHex    // a string of lower-case hexadecimal digits
	valueFalse
	valueTrue
	valueInt
	valueUint
	valueFloat
	valueJSON
	valueNone
)

// Add appends slices, which a SliceReader returns together.
func (l *SliceLog) Add(list []Slice) SlicePlace {
	if l.log.Len() == 0 && l.Spool != nil {
		l.log = spool.LogIn(l.Spool, sliceMemory)
	}
	const head = binary.MaxVarintLen64 // in which the size is told
	b := slices.Grow(l.made[:0], head)[:head]
	b = binary.AppendUvarint(b, uint64(len(list)))
	before := int64(0)
	for i := range list {
		b = l.appendSlice(b, &list[i], before)
		before = list[i].Start
	}
	l.made = b
	var size [head]byte
	n := binary.PutUvarint(size[:], uint64(len(b)-head))
	b = b[head-n:]
	copy(b, size[:n])
	return SlicePlace(l.log.Add(b))
}

func (l *SliceLog) appendSlice(b []byte, s *Slice, before int64) []byte {
	flags := byte(0)
	if s.Instant {
		flags |= sliceInstant
	}
	if s.Open {
		flags |= sliceOpen
	}
	if s.ID != 0 || s.FlowOut != 0 || s.FlowIn != 0 {
		flags |= sliceIDs
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, s.Start-before)
	b = binary.AppendVarint(b, s.Dur)
	b = l.appendString(b, s.Name)
	b = l.appendString(b, s.Category)
	if flags&sliceIDs != 0 {
		b = binary.AppendUvarint(b, s.ID)
		b = binary.AppendUvarint(b, s.FlowOut)
		b = binary.AppendUvarint(b, s.FlowIn)
		b = binary.AppendUvarint(b, uint64(s.Ties))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Args)))
	for _, a := range s.Args {
		b = l.appendValue(l.appendString(b, a.Key), a.Value)
	}
	return b
}

// appendString appends the number of a word, or the string.
func (l *SliceLog) appendString(b []byte, s string) []byte {
	n, ok := l.number[s]
	if !ok && len(l.words) < maxWords && len(s) <= maxWord {
		if l.number == nil {
			l.number = map[string]uint32{}
		}
		n, ok = uint32(len(l.words)), true
		l.words, l.number[s] = append(l.words, s), n
	}
	if ok {
		return binary.AppendUvarint(b, uint64(n)<<1|1)
	}
	return append(binary.AppendUvarint(b, uint64(len(s))<<1), s...)
}

func (l *SliceLog) appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		if packed, ok := packHex(v); ok {
			return append(append(b, valueHex, byte(len(packed))), packed...)
		}
		return l.appendString(append(b, valueString), v)
	case bool:
		if v {
			return append(b, valueTrue)
		}
		return append(b, valueFalse)
	case int64:
		return binary.AppendVarint(append(b, valueInt), v)
	case uint64:
		return binary.AppendUvarint(append(b, valueUint), v)
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, valueFloat), math.Float64bits(v))
	case json.RawMessage:
		return append(binary.AppendUvarint(append(b, valueJSON), uint64(len(v))), v...)
	}
	return append(b, valueNone)
}

// packHex returns the bytes that an id of 16 or 32 lower-case hexadecimal digits stands for.
func packHex(s string) ([]byte, bool) {
	if len(s) != 16 && len(s) != 32 {
		return nil, false
	}
	b := make([]byte, 0, 16)
	for i := 0; i < len(s); i += 2 {
		high, ok1 := digit(s[i])
		low, ok2 := digit(s[i+1])
		if !ok1 || !ok2 {
			return nil, false
		}
		b = append(b, high<<4|low)
	}
	return b, true
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// Done says that nothing is added any more: there may be readers.
func (l *SliceLog) Done() { l.log.Done() }

// A SliceReader reads a SliceLog. Each goroutine needs one of its own.
type SliceReader struct {
	l    *SliceLog
	room []byte
	b    []byte // what is not read yet
	made []Slice
}

// Reader returns a reader of l, which is done.
func (l *SliceLog) Reader() *SliceReader { return &SliceReader{l: l} }

// Read returns what Add was given, until the next Read. It is nothing if the Spool has an error.
func (r *SliceReader) Read(at SlicePlace) []Slice {
	r.get(int64(at), int(min(firstRead, r.l.log.Len()-int64(at))))
	size := int(r.uvarint())
	if size > len(r.b) {
		head := len(r.room) - len(r.b)
		r.get(int64(at), int(min(int64(head+size), r.l.log.Len()-int64(at))))
		r.b = r.b[head:]
	}
	if r.l.log.Err() != nil {
		return nil
	}
	n := int(r.uvarint())
	dst := r.made[:cap(r.made)]
	for len(dst) < n {
		dst = append(dst, Slice{})
	}
	r.made = dst[:n]
	before := int64(0)
	for i := range r.made {
		r.slice(&r.made[i], before)
		before = r.made[i].Start
	}
	return r.made
}

// get reads n bytes.
func (r *SliceReader) get(at int64, n int) {
	r.room = slices.Grow(r.room[:0], n)[:n]
	r.l.log.Peek(r.room, at)
	r.b = r.room
}

func (r *SliceReader) slice(s *Slice, before int64) {
	args := s.Args[:0]
	flags := r.b[0]
	r.b = r.b[1:]
	*s = Slice{Instant: flags&sliceInstant != 0, Open: flags&sliceOpen != 0}
	s.Start = before + r.varint()
	s.Dur = r.varint()
	s.Name = r.string()
	s.Category = r.string()
	if flags&sliceIDs != 0 {
		s.ID, s.FlowOut, s.FlowIn, s.Ties = r.uvarint(), r.uvarint(), r.uvarint(), int(r.uvarint())
	}
	for range r.uvarint() {
		args = append(args, Arg{r.string(), r.value()})
	}
	s.Args = args
}

func (r *SliceReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *SliceReader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *SliceReader) bytes(n uint64) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *SliceReader) string() string {
	n := r.uvarint()
	if n&1 != 0 {
		return r.l.words[n>>1]
	}
	return string(r.bytes(n >> 1))
}

func (r *SliceReader) value() any {
	switch r.bytes(1)[0] {
	case valueString:
		return r.string()
	case valueHex:
		return hex.EncodeToString(r.bytes(uint64(r.bytes(1)[0])))
	case valueFalse:
		return false
	case valueTrue:
		return true
	case valueInt:
		return r.varint()
	case valueUint:
		return r.uvarint()
	case valueFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
	case valueJSON:
		return json.RawMessage(slices.Clone(r.bytes(r.uvarint())))
	}
	return nil
}
