package tracefix

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/samples"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/nettrace"
)

// What a FormatError wraps, beside the errors of packages nettrace and chromium and io.ErrUnexpectedEOF.
var (
	// ErrNotATrace: the content is of no known format.
	ErrNotATrace = input.ErrNotATrace
	// ErrTooLarge: compressed content that unpacks to far more than a trace does, a decompression bomb.
	ErrTooLarge = input.ErrTooLarge
)

// A FormatError is an error of Open, NewFile or reading a File for which the content of the file is
// to blame, whatever its format: a bad upload, and not a failing disk, an error of the caller's
// function, an option or the end of a context. errors.As finds it.
type FormatError struct {
	// Name is that of the file.
	Name string
	// Offset is where the content is broken, in bytes from the start of the unpacked content; -1 if
	// unknown, as in content that could not be unpacked.
	Offset int64
	// Where is the part of the file: "StackBlock", "traceEvents[57]", "gzip"; empty if unknown.
	Where string
	// Err is the cause: a *nettrace.FormatError or *chromium.FormatError, ErrNotATrace, ...
	Err error
}

// Error returns the file, the place and what to do about it.
func (e *FormatError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

// formatError makes a FormatError of an error for which the content of a file is to blame. Others
// stay as they are.
func formatError(name string, err error) error {
	e := &FormatError{Name: name, Offset: -1, Err: err}
	var known *FormatError
	var nt *nettrace.FormatError
	var ch *chromium.FormatError
	var sa *samples.FormatError
	var sp *spans.SpeedscopeError
	var unpack *input.UnpackError
	var content input.ContentError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &nt):
		e.Offset, e.Where = nt.Offset, nt.Where
	case errors.As(err, &ch):
		e.Offset, e.Where = ch.Offset, ch.Where
	case errors.As(err, &sa):
		e.Offset, e.Where = sa.Offset, sa.Where
	case errors.As(err, &sp):
		e.Offset, e.Where = sp.Offset, sp.Where
	case errors.As(err, &unpack):
		e.Where = unpack.Layer
	case errors.Is(err, input.ErrNotATrace):
		e.Offset = 0
	case errors.As(err, &content), errors.Is(err, input.ErrTooLarge):
	default:
		return err
	}
	return e
}

// named makes an error of a reader name the file that it is about; readers know offsets
// only. Errors of an output name that, and those of a context stay as they are.
func (f *File) named(err error) error {
	if err == nil {
		return nil
	}
	told := formatError(f.in.Name, err)
	var of *FormatError
	var we *samples.WeightError
	if (errors.As(told, &of) || errors.As(err, &we) || errors.Is(err, input.ErrChanged)) && !strings.HasPrefix(err.Error(), f.in.Name+":") {
		err = fmt.Errorf("%s: %w", f.in.Name, err)
	}
	return formatError(f.in.Name, err)
}
