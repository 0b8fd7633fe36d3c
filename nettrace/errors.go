package nettrace

import (
	"errors"
	"fmt"
)

// Errors that a FormatError wraps, beside io.ErrUnexpectedEOF.
var (
	// ErrFormat: this is no nettrace or netperf file at all.
	ErrFormat = errors.New("not a nettrace file")
	// ErrVersion: a version of the format that this package does not know.
	ErrVersion = errors.New("unknown version")
	// ErrDamaged: bytes that break the rules of the format.
	ErrDamaged = errors.New("damaged")
	// ErrTooLarge: a length beyond what Options allow.
	ErrTooLarge = errors.New("too large")
)

// A FormatError reports input that breaks the format. A failing io.Reader is
// not a FormatError: its error is returned wrapped.
type FormatError struct {
	// Offset of the first byte of Where, in the uncompressed stream.
	Offset int64
	// Where is the part of the file: "StackBlock", "Trace", "event", ...
	Where string
	Err   error
	// Lost is the number of bytes that were skipped because of it, if known.
	Lost int64
}

// Error returns for instance "nettrace: offset 41: StackBlock: unexpected EOF".
func (e *FormatError) Error() string {
	return fmt.Sprintf("nettrace: offset %d: %s: %v", e.Offset, e.Where, e.Err)
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }
