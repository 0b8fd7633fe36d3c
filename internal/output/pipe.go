package output

import (
	"context"
	"io"
	"os"
)

// An interruptible writes to a pipe or a device, which may take as long as they like to be
// opened and to take bytes: it ends with ctx instead. Whoever is blocked then stays so until the
// process ends.
type interruptible struct {
	ctx context.Context
	w   io.Writer
}

// Write writes p, and returns the error of the context if that ends first: p may be read for as
// long as the pipe likes then, so it must stay as it is.
func (i interruptible) Write(p []byte) (n int, err error) {
	done := make(chan struct{})
	var k int
	var failed error
	go func() {
		k, failed = i.w.Write(p)
		close(done)
	}()
	select {
	case <-done:
		return k, failed
	case <-i.ctx.Done():
		return 0, context.Cause(i.ctx)
	}
}

// A copier writes copies, in one piece of memory after another.
type copier struct {
	w    io.Writer
	copy []byte
}

// Write writes a copy of p, which stays as it is if that fails.
func (c *copier) Write(p []byte) (int, error) {
	c.copy = append(c.copy[:0], p...)
	n, err := c.w.Write(c.copy)
	if err != nil {
		c.copy = nil
	}
	return n, err
}

// openPipe opens a pipe or a device for writing; a named pipe waits for a reader.
func openPipe(ctx context.Context, name string) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// waits reports whether writing to f may take as long as somebody else likes.
func waits(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && !st.Mode().IsRegular()
}
