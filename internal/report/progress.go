package report

import (
	"io"
	"sync/atomic"

	"github.com/tracefix/tracefix/internal/relay"
)

// A Progress tells others how far a run is, while it is at work. nil is one that nobody watches.
type Progress struct {
	// Tell is called with what the user should know before it is done; nil drops it.
	Tell func(string)

	written, expected atomic.Int64
}

// Writer counts what goes to w, before it is compressed.
func (p *Progress) Writer(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return counting{w, p}
}

type counting struct {
	io.Writer
	p *Progress
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.p.written.Add(int64(n))
	return n, err
}

// Take implements relay.Taker.
func (c counting) Take(b []byte) ([]byte, error) {
	c.p.written.Add(int64(len(b)))
	return relay.Give(c.Writer, b)
}

// Expect says about how many bytes will be written.
func (p *Progress) Expect(n int64) {
	if p != nil {
		p.expected.Store(n)
	}
}

// Announce tells the user something.
func (p *Progress) Announce(what string) {
	if p != nil && p.Tell != nil {
		p.Tell(what)
	}
}

// Written returns how many bytes were written, and how many are expected in all; 0: not known.
func (p *Progress) Written() (written, expected int64) { return p.written.Load(), p.expected.Load() }
