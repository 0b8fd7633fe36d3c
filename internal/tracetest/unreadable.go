package tracetest

import "errors"

// Unreadable is a file that takes what is written, and cannot be read.
type Unreadable struct{}

// WriteAt implements io.WriterAt.
func (Unreadable) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// ReadAt implements io.ReaderAt.
func (Unreadable) ReadAt([]byte, int64) (int, error) { return 0, errors.New("gone") }
