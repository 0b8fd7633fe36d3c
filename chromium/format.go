package chromium

import (
	"errors"
	"fmt"
)

// A FormatError reports input that breaks the format.
// A failing io.Reader is not a FormatError: its error is returned wrapped.
type FormatError struct {
	Offset int64  // of the first byte of Where that is at fault, in the uncompressed stream
	Where  string // "traceEvents[57]", "stackFrames", "document"
	Err    error  // ErrSyntax, ErrTooLarge, ErrComma, ..., io.ErrUnexpectedEOF
}

// Error returns for instance "offset 41: traceEvents[3]: unexpected EOF": whoever knows the
// name of the input puts it in front.
func (e *FormatError) Error() string {
	return fmt.Sprintf("offset %d: %s: %v", e.Offset, e.Where, e.Err)
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

// What a FormatError wraps. More is said in its text.
var (
	ErrSyntax   = errors.New("invalid JSON")                      // and could not be put right: the bytes were skipped
	ErrNotEvent = errors.New("not an object")                     // an element of traceEvents; skipped
	ErrTooLarge = errors.New("larger than the limit")             // passed on to Outside as no event
	ErrTooDeep  = errors.New("nested deeper than the limit")      // Read cannot go on
	ErrComma    = errors.New("stray or missing comma")            // put right
	ErrString   = errors.New("faulty text in a string or number") // put right
	ErrUTF8     = errors.New("not UTF-8")                         // put right: U+FFFD stands for each such byte
	ErrTrailing = errors.New("bytes after the end of the trace")  // left out, but for events: see Options.Behind
	ErrNested   = errors.New("traceEvents inside traceEvents")    // read as if it stood once
	ErrNoTrace  = errors.New("not trace event JSON")              // nothing of it can be read
)

// A Form is one of the shapes of a trace file.
type Form uint8

const (
	FormUnknown Form = iota // not read so far
	FormObject              // {"traceEvents":[...], ...}
	FormArray               // [...]
	FormOpen                // [... without an end, which is legal; Outside gets one
	FormBare                // events in sequence without a bracket; Outside gets those of an array
)

// String returns the form in words: "object", "unterminated array".
func (f Form) String() string {
	if names := [...]string{"unknown", "object", "array", "unterminated array", "bare events"}; int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("Form(%d)", uint8(f))
}

// Limits in effect where Options leaves them zero.
const (
	DefaultMaxEventSize = 16 << 20
	DefaultMaxDepth     = 1 << 20
)
