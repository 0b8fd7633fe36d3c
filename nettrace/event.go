package nettrace

import (
	"encoding/binary"
	"time"
)

// A GUID holds the 16 bytes of a GUID as they stand in the file: the first
// three groups are little-endian.
type GUID [16]byte

// IsZero reports whether all bytes are zero, which stands for "no id".
func (g GUID) IsZero() bool { return g == GUID{} }

// String returns the GUID in lower case with hyphens, in the order .NET prints:
// 01020304-0506-0708-090a-0b0c0d0e0f10.
func (g GUID) String() string { return string(g.AppendTo(make([]byte, 0, 36))) }

// Leaf returns the innermost address, 0 of an empty stack.
func (s Stack) Leaf() uint64 {
	if s.Len() == 0 {
		return 0
	}
	return s.At(0)
}

// AppendTo appends what String returns to dst.
func (g GUID) AppendTo(dst []byte) []byte {
	const hex = "0123456789abcdef"
	for i, at := range [16]byte{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hex[g[at]>>4], hex[g[at]&15])
	}
	return dst
}

// A KeyValue is a pair of strings attached to a v6 trace, thread or event type.
type KeyValue struct{ Key, Value string }

// A Header is what a file says about the whole recording.
type Header struct {
	// Version is the version of the format: 1 to 4, or 6. Files that .NET 5 and
	// later write are version 4; what is called V5 only adds metadata tags.
	Version      int
	MinorVersion int // v6 only

	// SyncTime is the wall clock (UTC, millisecond resolution) at SyncQPC. It is
	// the zero Time when the file holds no valid date (dotnet/runtime issue 123103), or one before 1970 or
	// after 2261.
	SyncTime time.Time
	// SyncTimeRaw is the SYSTEMTIME as stored: year, month, day of week, day,
	// hour, minute, second, millisecond.
	SyncTimeRaw [8]uint16
	// SyncQPC is the tick counter at the start of the recording: time zero.
	SyncQPC int64
	// Frequency is the number of ticks per second. It is always positive: where
	// the file holds none, 1e9 is assumed and reported to Options.Warn.
	Frequency int64

	// PointerSize is 4 or 8. v1 and v2 files do not tell it; it is then guessed
	// from the stacks.
	PointerSize int
	// ProcessID is 0 where the file does not tell it: v1, v2 and most v6 files.
	ProcessID int
	// Processors is the number of hardware threads, 0 if unknown.
	Processors int
	// SamplingInterval is the expected distance of CPU samples, 0 if unknown.
	SamplingInterval time.Duration

	// KeyValues are those of the Trace block of v6, in file order.
	KeyValues []KeyValue
	// Missing is set where the file has lost its head: everything here is assumed then.
	Missing bool
}

// An Event is one event of a trace. Slices and the Stack are valid until the
// next call of Reader.Read with this or another Event, unless Options.Hold says more; see also Batch.
type Event struct {
	// Time is in ticks of the trace's clock; see Reader.Nanos.
	Time int64
	// ThreadID is the OS id of the thread the event is about: for a CPU sample
	// the sampled one.
	ThreadID uint64
	// CaptureThreadID is the OS id of the thread that wrote the event. Sequence
	// numbers count per capture thread (v6: per thread index).
	CaptureThreadID uint64
	// Metadata describes the event's type. It is never nil; an event whose
	// metadata was lost has one with Provider "?" and Unknown set.
	Metadata *Metadata
	// Payload is what the provider wrote.
	Payload []byte
	// Offset is the position of the event's first byte in the file.
	Offset int64

	// Stack holds the instruction pointers, leaf first as in the file.
	Stack Stack
	// StackKey identifies the stack record within the file: two events with one
	// non-zero key have the same stack (the reverse need not hold). 0 is no
	// stack or an empty one.
	StackKey uint64
	// Processor is the number of the processor, -1 if unknown.
	Processor      int
	SequenceNumber uint32 // of the capture thread; 0 before v4
	// Lost is the number of events of the capture thread that were lost directly
	// before this one.
	Lost uint32
	// Sorted is the file's flag: no later event of the file is older.
	Sorted bool
	// Late is set on an event that is older than one delivered before it, which
	// only damaged files have.
	Late       bool
	pointer    uint8 // size, 0 is 8
	lostThread bool  // v6: it refers to a thread that the file does not hold
	fitted     bool  // the Reader has found that the payload, as it was, is one of the type

	// Version, Opcode, Level and Keywords are those of the metadata unless a
	// label of the event (v6) overrides them.
	Version  int
	Opcode   int
	Level    int
	Keywords uint64

	ActivityID        GUID
	RelatedActivityID GUID

	// ProcessID is that of the thread row (v6), else that of the header.
	ProcessID int
	// ThreadIndex is the index of the thread row, v6 only.
	ThreadIndex uint64
	// Thread is the v6 thread row; nil before v6 and for an unknown index.
	Thread  *Thread
	TraceID [16]byte // v6: W3C trace id
	SpanID  uint64   // v6
	// Labels are the key/value labels of v6; the other kinds of labels are in the fields above.
	Labels []Label
	// LabelKey identifies the v6 label list like StackKey a stack, 0 is none.
	LabelKey uint64

	losses []Loss  // see Losses
	values []Value // scratch of fits
}

// Losses are those of the Reader when it delivered the event; see Reader.Losses.
func (ev *Event) Losses() []Loss { return ev.losses }

// Whole reports whether the file holds all that belongs to the event: its definition, its
// thread, and of an event of the runtime, whose layout is known, a payload that can be decoded. What
// is not whole is the remainder of damage; Copy leaves it out.
func (ev *Event) Whole() bool { return ev.whole(false) }

// whole is Whole where it may be known that the payload fits.
func (ev *Event) whole(fits bool) bool {
	if ev.Metadata.Unknown || ev.lostThread {
		return false
	}
	return fits || ev.Metadata.open() || ev.fits()
}

// A Label is a key/value pair of v6. Numeric labels have a Number and no Value.
type Label struct {
	Key       string
	Value     string
	Number    int64
	IsNumeric bool
}

// A Thread is a row of a v6 thread table.
type Thread struct {
	Index     uint64
	ProcessID int
	ID        uint64 // OS thread id; 0 stands for the process as a whole (Universal.System)
	Name      string
	KeyValues []KeyValue
	Offset    int64 // of the row
}

// A Stack is a list of instruction pointers, leaf first. The zero Stack is empty.
type Stack struct {
	raw  []byte
	size int // 4 or 8
}

// NewStack returns a stack of these addresses, leaf first, for a Writer.
func NewStack(addrs []uint64) Stack {
	return Stack{raw: make([]byte, 0, 8*len(addrs))}.Again(addrs)
}

// Again is NewStack in the memory of a stack that NewStack or Again returned and that is not used any more.
func (s Stack) Again(addrs []uint64) Stack {
	raw := s.raw[:0]
	for _, a := range addrs {
		raw = binary.LittleEndian.AppendUint64(raw, a)
	}
	return Stack{raw, 8}
}

// same reports whether s and t are one stack in memory.
func (s Stack) same(t Stack) bool { return s.size == t.size && same(s.raw, t.raw) }

// same reports whether a and b are one slice in memory.
func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Len returns the number of frames.
func (s Stack) Len() int {
	switch s.size {
	case 8:
		return len(s.raw) / 8
	case 4:
		return len(s.raw) / 4
	}
	return 0
}

// At returns the address of frame i, 0 being the leaf.
func (s Stack) At(i int) uint64 {
	if s.size == 8 {
		return binary.LittleEndian.Uint64(s.raw[8*i:])
	}
	return uint64(binary.LittleEndian.Uint32(s.raw[4*i:]))
}

// AppendTo appends the addresses to dst, leaf first.
func (s Stack) AppendTo(dst []uint64) []uint64 {
	for i, n := 0, s.Len(); i < n; i++ {
		dst = append(dst, s.At(i))
	}
	return dst
}

// Metadata describes a type of event. The pointer is stable for the life of
// the Reader, so consumers may key caches by it or by Index.
type Metadata struct {
	// Index counts the definitions of the file from 0 in file order.
	Index int
	// ID is the file's own number for it; v6 and damaged files may reuse one.
	ID       uint32
	Provider string
	// ProviderID is told by v1 and some v6 files only.
	ProviderID GUID
	// Name is the name in the file, "" for the runtime's own events; see EventName.
	Name     string
	EventID  int
	Version  int
	Opcode   int
	Level    int
	Keywords uint64
	// Fields are the field list of the file; empty for the runtime's own events. See Layout.
	Fields []Field
	// HasFieldList tells an event without fields from one whose list is missing.
	HasFieldList bool

	Description string     // v6
	Message     string     // v6: message template
	KeyValues   []KeyValue // v6

	// Unknown is set where the file refers to metadata that it does not hold.
	Unknown bool
	// Raw is the metadata as it stands in the file, without the id and the
	// provider's name in v3 to v5, so that a Writer can repeat it. It must not be changed.
	Raw []byte
	// Offset of the definition in the file.
	Offset int64

	Source Source // whose event it is, SourceOther for most
	Role   Role   // what the event is to this package, RoleNone for most

	layout   *Layout // for Version
	name     string  // EventName for Version and Opcode
	shown    string  // display name by which the event is known, if not by Name
	noopcode bool    // the file tells none
	row      bool    // Raw is a row of v6
	damaged  bool    // Raw is, and is not written again
	mended   bool    // what Raw says was put right, and it is not written again
	garbled  bool    // Provider is no text

	lengths lengths
	// Payloads of the type that could be decoded, and those that could not, until that is told.
	fit        bool
	unfit      int
	unfitAt    int64 // offset of the first of them
	unfitBytes int64
}

// open reports whether any payload may be one of the type: its source says what it writes, and need
// not keep to it.
func (m *Metadata) open() bool {
	return (m.layout == nil || !m.layout.BuiltIn) && m.Role == RoleNone
}

// odd reports whether the definition is missing or was hit by damage.
func (m *Metadata) odd() bool { return m.Unknown || m.damaged || m.garbled }

// A TypeCode is the type of a field: those of the format, and from 0x100 on those that
// only built-in layouts use.
type TypeCode uint16

// Types of fields. The sizes are those in a payload; nothing is aligned.
const (
	TypeObject   TypeCode = 1  // its Fields, one after the other
	TypeBool32   TypeCode = 3  // 4 bytes
	TypeChar     TypeCode = 4  // UTF-16 code unit
	TypeInt8     TypeCode = 5  //
	TypeUint8    TypeCode = 6  //
	TypeInt16    TypeCode = 7  //
	TypeUint16   TypeCode = 8  //
	TypeInt32    TypeCode = 9  //
	TypeUint32   TypeCode = 10 //
	TypeInt64    TypeCode = 11 //
	TypeUint64   TypeCode = 12 //
	TypeFloat32  TypeCode = 13 //
	TypeFloat64  TypeCode = 14 //
	TypeDecimal  TypeCode = 15 // 16 bytes
	TypeDateTime TypeCode = 16 // 8 bytes: FILETIME
	TypeGUID     TypeCode = 17 //
	TypeString   TypeCode = 18 // UTF-16, ends in a zero unit
	TypeArray    TypeCode = 19 // u16 count, then that many Elem
	TypeVarint   TypeCode = 20 // v6: zigzag
	TypeVaruint  TypeCode = 21 // v6
	TypeFixed    TypeCode = 22 // v6: Count times Elem
	TypeUTF8     TypeCode = 23 // v6: UTF-8 code unit
	TypeRelLoc   TypeCode = 24 // v6: u32: offset from behind this field | size<<16
	TypeDataLoc  TypeCode = 25 // v6: u32: offset in the payload | size<<16
	TypeBool8    TypeCode = 26 // v6

	TypePointer  TypeCode = 0x100 // 4 or 8 bytes by Header.PointerSize
	TypeString8  TypeCode = 0x101 // UTF-8, ends in a zero byte
	TypeString16 TypeCode = 0x102 // u16 byte count, UTF-8
	TypeCounted  TypeCode = 0x103 // Elem, as often as the field number Count before it says
	TypeHex32    TypeCode = 0x105 // as TypeUint32; shown in hexadecimal by convention
	TypeHex64    TypeCode = 0x106 // as TypeUint64; likewise
	TypeEnum32   TypeCode = 0x107 // as TypeUint32; the reference library shows it as text: "1"

	typeWide TypeCode = 0x108 // the integer or char Elem in Count bytes; see widened
)

// A Field is a field of a payload.
type Field struct {
	Name string
	Type TypeCode
	// Elem is the element of an array, RelLoc or DataLoc.
	Elem *Field
	// Count is the number of elements of TypeFixed, and for TypeCounted the
	// index of the field that holds it.
	Count int
	// Fields are those of TypeObject.
	Fields []Field
}

// A Layout says how the payload of an event is to be read.
type Layout struct {
	Fields []Field
	// BuiltIn is set where the layout comes from this package's tables since
	// the file's metadata has none.
	BuiltIn bool

	name    string // display name
	opcode  int
	version int
	// lengthUTF8 is set where fields of code 23 stand alone: drafts of v6 meant
	// strings by it, nettrace.md section 5.4.
	lengthUTF8 bool
	// located is set where numbers may tell where a text stands; see locate.
	located bool
	// forms are the fields in the ways in which they may have been written, the first
	// one that fits a payload being right; see writtenForms. Nil: as declared.
	forms [][]Field
}

// A Loss is a gap in the sequence numbers of one capture thread: events that the
// runtime could not store. The lost events lie between After and Before.
type Loss struct {
	// CaptureThreadID is the OS thread id; in v6 ProcessID belongs to it.
	CaptureThreadID uint64
	ProcessID       int
	Count           uint32
	// After is the time of the last event of that thread before the gap, or
	// SyncQPC; Before is that of the event or sequence point that shows the gap.
	After, Before int64
	// AtSequencePoint is set where a sequence point shows the gap.
	AtSequencePoint bool
	Offset          int64

	thread *Thread // v6, if its row is known
}
