package runtimeevents

import (
	"github.com/tracefix/tracefix/nettrace"
)

// An Exception is the payload of ExceptionThrown. Since .NET 9 `throw;` writes no event,
// while every await that an exception passes writes one more. Texts are valid as long
// as the event.
type Exception struct {
	Type, Message nettrace.Text
	HResult       uint32
	Flags         ExceptionFlags
}

// ExceptionFlags are those of ExceptionThrown.
type ExceptionFlags uint16

// Flags.
const (
	ExceptionHasInner ExceptionFlags = 1 << iota
	ExceptionNested                  // thrown while another is handled
	ExceptionRethrown                // `throw;`, before .NET 9
	ExceptionCorrupted
	ExceptionCLSCompliant
)

// IsException reports whether ev is an ExceptionThrown.
func IsException(ev *nettrace.Event) bool { return runtimeID(ev) == IDExceptionThrown }

// ReadException decodes the event. Old runtimes write nothing but the event itself.
func ReadException(ev *nettrace.Event) (e Exception, err error) {
	if ev.Version == 0 {
		return e, nil
	}
	c := ev.Cursor()
	e.Type, e.Message = c.UTF16(), c.UTF16()
	c.Pointer()
	e.HResult, e.Flags = c.U32(), ExceptionFlags(c.U16())
	return e, c.Err()
}
