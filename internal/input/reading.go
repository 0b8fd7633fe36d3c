package input

import (
	"context"
	"errors"
	"io"

	"github.com/tracefix/tracefix/nettrace"
)

// An Open returns the unpacked bytes of a trace from their start.
type Opener func() (io.ReadCloser, error)

// A Consumer takes the events of a reading, in order of time.
type Consumer interface {
	// Begin is called once, when the header has been read. r is for asking what it knows
	// (times, definitions, losses), also later; nobody but the reading reads from it.
	Begin(r *nettrace.Reader)
	// Event takes an event, which is valid during the call. ErrStop means that this consumer
	// has enough; any other error ends the reading for all.
	Event(ev *nettrace.Event) error
	// End is called once after the last event, damage or not, but not after an error.
	End()
}

// ErrStop is what a Consumer returns to get no more events.
var ErrStop = errors.New("enough")

// Read reads a trace for consumers. Each defect of the file goes to warn, which may be nil,
// and what is whole is read: an error means that nothing could be read, that a consumer
// failed, or that ctx has ended. The reader that it returns has been closed and knows all
// that there is to know about the file. The first reading of a file is told its defects;
// pass no warn for a second one.
func Read(ctx context.Context, open Opener, warn func(*nettrace.FormatError), consumers ...Consumer) (*nettrace.Reader, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if warn == nil {
		warn = func(*nettrace.FormatError) {}
	}
	r, err := nettrace.NewReader(in, &nettrace.Options{Warn: warn})
	if err != nil {
		return nil, err
	}
	for _, c := range consumers {
		c.Begin(r)
	}
	if err := events(ctx, r, warn, consumers); err != nil {
		return r, err
	}
	for _, c := range consumers {
		c.End()
	}
	return r, nil
}

// checkEvery is how many events go by before the context is asked.
const checkEvery = 1 << 12

func events(ctx context.Context, r *nettrace.Reader, warn func(*nettrace.FormatError), consumers []Consumer) error {
	var stopped []bool // by consumer; nil: none
	left := len(consumers)
	var ev nettrace.Event
	for n := 0; left > 0; n++ {
		if n&(checkEvery-1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.Read(&ev); err != nil {
			d, ok := Damage(r, err)
			if !ok {
				return err
			}
			if d != nil {
				warn(d)
			}
			return nil
		}
		for i, c := range consumers {
			if stopped != nil && stopped[i] {
				continue
			}
			err := c.Event(&ev)
			if err == nil {
				continue
			}
			if err != ErrStop {
				return err
			}
			if stopped == nil {
				stopped = make([]bool, len(consumers))
			}
			stopped[i] = true
			left--
		}
	}
	return nil
}

// Damage tells what the error that ended the reading of r says about the trace: a
// defect of its format or of the compression around it, after which what was read
// still counts. It is nil at the proper end, and where the defect was told to Warn
// before. What input does not take for broken is no damage: ok is false.
func Damage(r *nettrace.Reader, err error) (d *nettrace.FormatError, ok bool) {
	switch {
	case err == io.EOF:
		return nil, true
	case !Broken(err):
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
