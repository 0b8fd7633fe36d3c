package load

import (
	"errors"
	"io"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// Damage tells what the error that ended the reading of r says about the trace: a
// defect of its format or of the compression around it, after which what was read
// still counts. It is nil at the proper end, and where the defect was told to Warn
// before. What input does not take for broken is no damage: ok is false.
func Damage(r *nettrace.Reader, err error) (d *nettrace.FormatError, ok bool) {
	switch {
	case err == io.EOF:
		return nil, true
	case !input.Broken(err):
		return nil, false
	case errors.As(err, &d):
		if errors.Is(err, nettrace.ErrDamaged) {
			return nil, true // Warn was told of each place
		}
		return d, true
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // nettrace put the offset before it
	}
	return &nettrace.FormatError{Offset: r.InputOffset(), Where: "compressed data", Err: err}, true
}
