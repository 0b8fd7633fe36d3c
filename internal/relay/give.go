package relay

import "io"

// A Taker is a writer that can take memory over instead of copying what is in it.
type Taker interface {
	io.Writer
	// Take is Write, but b is the writer's from then on. It returns other memory for what comes
	// next, which holds nothing.
	Take(b []byte) ([]byte, error)
}

// Give writes b and returns memory for what comes next: to a Taker without a copy.
func Give(w io.Writer, b []byte) ([]byte, error) {
	if t, ok := w.(Taker); ok {
		return t.Take(b)
	}
	n, err := w.Write(b)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite // of a writer that does not keep to its contract
	}
	return b[:0], err
}
