package input

import (
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/tracefix/tracefix/internal/relay"
)

// Bytes are read, and unpacked, beside who takes them where that is worth a goroutine.
const (
	worthAhead  = 1 << 20 // stored bytes
	aheadSize   = 256 << 10
	aheadChunks = 4
)

// ahead reads r on a goroutine of its own, a few chunks ahead.
type ahead struct {
	r    io.ReadCloser
	full chan chunk
	free chan []byte
	left chunk  // of the one that is being read
	held []byte // its buffer

	closed atomic.Bool
	panics any // what r panicked with, once full is closed
}

// readAhead returns r, or what reads it ahead if there is a processor for that.
func readAhead(r io.ReadCloser, stored int64) io.ReadCloser {
	if stored < worthAhead || relay.Workers() == 1 {
		return r
	}
	a := &ahead{r: r, full: make(chan chunk, aheadChunks), free: make(chan []byte, aheadChunks+1)}
	for range aheadChunks {
		a.free <- make([]byte, aheadSize)
	}
	go a.fill()
	return a
}

func (a *ahead) fill() {
	defer close(a.full)
	defer func() { a.panics = recover() }()
	for buf := range a.free {
		if a.closed.Load() {
			return
		}
		n := 0
		var err error
		for more := 1; n < len(buf) && more > 0 && err == nil; n += more {
			// decoders give little at a time: to hand that over would take longer than to unpack it
			more, err = a.r.Read(buf[n:])
		}
		a.full <- chunk{buf[:n], err}
		if err != nil {
			return
		}
	}
}

// Read returns what the goroutine has read. An error comes behind the bytes before it, and stays.
func (a *ahead) Read(p []byte) (int, error) {
	if len(a.left.b) == 0 {
		if a.left.err != nil {
			return 0, a.left.err
		}
		if a.held != nil {
			a.free <- a.held
			a.held = nil
		}
		c, ok := <-a.full
		if !ok && a.panics != nil {
			panic(a.panics)
		}
		if !ok {
			return 0, fs.ErrClosed
		}
		a.left, a.held = c, c.b[:cap(c.b)]
	}
	n := copy(p, a.left.b)
	if a.left.b = a.left.b[n:]; n == 0 {
		return 0, a.left.err
	}
	return n, nil
}

// Close waits for the read that is going on.
func (a *ahead) Close() error {
	if a.closed.Swap(true) {
		return nil
	}
	a.free <- nil      // wakes it
	for range a.full { // until the goroutine has ended
	}
	return a.r.Close()
}
