package nettrace

import (
	"errors"
	"io"
	"iter"
	"time"
)

// Options of a Reader. The zero value works.
type Options struct {
	// MaxBlockSize limits the size of one block; zero means 64 MiB.
	MaxBlockSize int
	// MaxBuffered limits the bytes of events held back for sorting in one region
	// between sequence points; zero means 256 MiB. Beyond it events are
	// delivered although an older one may follow.
	MaxBuffered int
	// Warn is told of each defect of the file that was skipped; nil drops them.
	Warn func(*FormatError)
}

// A Reader reads events.
type Reader struct{}

// NewReader reads the header.
func NewReader(r io.Reader, opts *Options) (*Reader, error) { return nil, errors.New("not yet") }

// Header of the file.
func (r *Reader) Header() *Header { return nil }

// Read decodes the next event into ev.
func (r *Reader) Read(ev *Event) error { return io.EOF }

// All is a loop over Read.
func (r *Reader) All() iter.Seq2[*Event, error] { return nil }

// InputOffset is the number of bytes consumed.
func (r *Reader) InputOffset() int64 { return 0 }

// Nanos converts ticks to nanoseconds since Header.SyncQPC, rounding down.
func (r *Reader) Nanos(qpc int64) int64 { return 0 }

// Metadata lists all event types defined so far, by Metadata.Index.
func (r *Reader) Metadata() []*Metadata { return nil }

// Stats tells what was read so far; after the end of the stream, of the whole file.
func (r *Reader) Stats() Stats { return Stats{} }

// Losses lists the gaps in sequence numbers found so far, the first 65,536 of them.
func (r *Reader) Losses() []Loss { return nil }

// BlockStats counts the blocks of one kind.
type BlockStats struct {
	Kind       string // as the file names it: "EventBlock", "SPBlock", ...
	Count      int
	Bytes      int64 // contents
	MaxBytes   int
	FirstStart int64 // offset of the first one
}

// Stats are counts over the part of a file read so far.
type Stats struct {
	Blocks         []BlockStats // in order of first appearance
	Events         int64
	PayloadBytes   int64
	Metadata       int
	Stacks         int64 // stack records
	MaxDepth       int   // of a stack record
	SequencePoints int
	Lost           uint64 // events lost by the runtime, by sequence numbers
	UnknownMeta    int64  // events whose metadata is missing
	UnknownStacks  int64  // events whose stack is missing
	Late           int64  // events older than one delivered before
	Defects        int64  // calls of Options.Warn
	LostBytes      int64  // skipped because of damage
	// Ended is set when the end of the stream was marked as such.
	Ended bool
	// TrailingBytes is the number of bytes behind the end mark.
	TrailingBytes int64
}

// EventName is the display name as TraceEvent prints it: "GC/Start", "Request/Start".
func (ev *Event) EventName() string { return "" }

// Layout returns the field list of the event: that of the file's metadata, else
// a built-in one by provider, id and version, else nil.
func (ev *Event) Layout() *Layout { return nil }

// A Kind is the sort of a Value.
type Kind uint8

// Kinds of values.
const (
	KindNone   Kind = iota // beyond the end of a short payload
	KindBool               // Bool
	KindInt                // Int
	KindUint               // Uint
	KindFloat              // Float
	KindString             // String, AppendText
	KindGUID               // GUID
	KindTime               // Time
	KindBytes              // Bytes
	KindArray              // Elems
	KindObject             // Members
)

// A Value is one decoded field. It refers to the event's payload and is valid as long as that.
type Value struct{}

// Kind tells which of the accessors applies.
func (v *Value) Kind() Kind { return 0 }

// Int returns a signed or unsigned integer as int64.
func (v *Value) Int() int64 { return 0 }

// Uint returns an integer as uint64.
func (v *Value) Uint() uint64 { return 0 }

// Float returns a float.
func (v *Value) Float() float64 { return 0 }

// Bool returns a boolean.
func (v *Value) Bool() bool { return false }

// String returns the text of a KindString, of other kinds a readable form.
func (v *Value) String() string { return "" }

// AppendText appends the text of a KindString as UTF-8, lone surrogates as U+FFFD.
func (v *Value) AppendText(dst []byte) []byte { return dst }

// GUID returns a GUID.
func (v *Value) GUID() GUID { return GUID{} }

// Time returns a time in UTC.
func (v *Value) Time() time.Time { return time.Time{} }

// Bytes returns the bytes of a KindBytes.
func (v *Value) Bytes() []byte { return nil }

// Len is the number of elements of a KindArray or of fields of a KindObject.
func (v *Value) Len() int { return 0 }

// Elems yields the elements of a KindArray.
func (v *Value) Elems() iter.Seq[Value] { return nil }

// Members yields the fields of a KindObject.
func (v *Value) Members() iter.Seq2[*Field, Value] { return nil }

// AppendValues decodes the payload by its Layout and appends one Value per
// field of the layout to dst. Fields beyond the end of a short payload have
// KindNone; the error tells so. Without a layout it appends nothing.
func (ev *Event) AppendValues(dst []Value) ([]Value, error) { return dst, nil }

// A Cursor reads a payload field by field; the first failure sticks and later reads return zero.
type Cursor struct{}

// Cursor returns a Cursor at the start of the payload.
func (ev *Event) Cursor() Cursor { return Cursor{} }
