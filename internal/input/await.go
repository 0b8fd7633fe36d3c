package input

import (
	"context"
	"io"
	"os"
)

// Await reads what open gives until ctx ends. A pipe or a terminal may give nothing for
// as long as it likes, and so may the opening of a named pipe; neither can be called
// back. Therefore a goroutine does both, into buffers of its own, and closes what it
// opened. If ctx ends or Close is called while it is blocked, it stays so, and what it
// still gets is dropped.
func Await(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	ctx, stop := context.WithCancel(ctx)
	a := &awaited{ctx: ctx, stop: stop, chunks: make(chan chunk)}
	go a.fill(open)
	return a
}

type awaited struct {
	ctx    context.Context
	stop   context.CancelFunc
	chunks chan chunk
	left   chunk // of the one that is being read
}

// A chunk is what one read gave. Its bytes are the reader's until it takes the next.
type chunk struct {
	b   []byte
	err error
}

func (a *awaited) fill(open func() (io.ReadCloser, error)) {
	r, err := open()
	if err != nil {
		a.hand(chunk{err: err})
		return
	}
	defer r.Close()
	// While one chunk is read the other is filled, and it is handed over when the first
	// is done with.
	var bufs [2][64 << 10]byte
	for i := 0; ; i = 1 - i {
		n, err := r.Read(bufs[i][:])
		if !a.hand(chunk{bufs[i][:n], err}) || err != nil {
			return
		}
	}
}

func (a *awaited) hand(c chunk) bool {
	select {
	case a.chunks <- c:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// Read reads what has come, and waits if that is nothing.
func (a *awaited) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	for len(a.left.b) == 0 {
		if a.left.err != nil {
			return 0, a.left.err
		}
		select {
		case a.left = <-a.chunks:
		case <-a.ctx.Done():
			return 0, a.ctx.Err()
		}
	}
	n := copy(p, a.left.b)
	a.left.b = a.left.b[n:]
	return n, nil
}

// Close ends the reading. It does not wait for it.
func (a *awaited) Close() error {
	a.stop()
	return nil
}

// AwaitFile is Await for a file that is opened by its name, such as a named pipe. Its
// errors leave the name out.
func AwaitFile(ctx context.Context, name string) io.ReadCloser {
	return Await(ctx, func() (io.ReadCloser, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, Plain(err)
		}
		return f, nil
	})
}

// AwaitStdin is Await for a standard input; nil means os.Stdin. Nothing has to be
// awaited of a regular file, which is read as it is. stop ends the reading.
func AwaitStdin(ctx context.Context, in io.Reader) (r io.Reader, stop func()) {
	if in == nil {
		in = os.Stdin
	}
	if f, ok := in.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return f, func() {}
		}
	}
	a := Await(ctx, func() (io.ReadCloser, error) { return io.NopCloser(in), nil })
	return a, func() { a.Close() }
}
