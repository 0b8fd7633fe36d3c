//go:build unix || windows

package ipc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Sizes.
const (
	chunkSize = 64 << 10
	// maxQueued is how many bytes may wait for the recording to be written. Until then
	// a slow disk does not slow the conversation, which would make the runtime drop events.
	maxQueued = 256 << 20
)

// A Proxy stands for the diagnostic server of a process.
type Proxy struct {
	// Path is the socket, or on Windows the pipe, on which it listens.
	Path     string
	target   string
	listener net.Listener
	close    func() error
}

// Stats tell what a Proxy recorded.
type Stats struct {
	Conns   int   // that a tool opened
	Refused int   // of these: those that the process did not take
	Bytes   int64 // of both directions
}

// Close removes the socket or the pipe. Connections that are open go on to their end.
func (p *Proxy) Close() error { return p.close() }

// Serve relays connections and writes what is said on them to w as frames, until the
// proxy is closed and they are over, or ctx is done, which ends them. Neither is an error.
func (p *Proxy) Serve(ctx context.Context, w io.Writer) (Stats, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &recorder{w: w, room: semaphore.NewWeighted(maxQueued), queue: make(chan frame, 1024), failed: cancel}
	written := make(chan struct{})
	go func() { r.run(); close(written) }()

	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	var wg sync.WaitGroup
	var refused atomic.Int32
	conns := 0
	for {
		tool, err := p.listener.Accept()
		if err != nil {
			if !closed(err) {
				cancel(err)
			}
			break
		}
		conns++
		n := conns
		wg.Go(func() {
			if !p.relay(ctx, n, tool, r) {
				refused.Add(1)
			}
		})
	}
	p.Close()
	wg.Wait()
	close(r.queue)
	<-written
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return Stats{conns, int(refused.Load()), r.bytes}, err
}

// relay connects a tool with the process until both are silent or ctx is done. It returns
// false if the process does not take the connection; one that ctx ends it might have taken.
func (p *Proxy) relay(ctx context.Context, n int, tool net.Conn, r *recorder) bool {
	defer tool.Close()
	runtime, err := connect(ctx, p.target)
	if err != nil {
		return ctx.Err() != nil
	}
	defer runtime.Close()
	defer context.AfterFunc(ctx, func() { tool.Close(); runtime.Close() })()

	var wg sync.WaitGroup
	pipe := func(d Direction, from, to net.Conn) {
		if err := r.copy(ctx, n, d, from, to); err != nil {
			from.Close() // nobody listens: what is said from here on would wait for ever
			to.Close()
			return
		}
		endOf(to)
	}
	wg.Go(func() { pipe(ToRuntime, tool, runtime) })
	wg.Go(func() { pipe(ToTool, runtime, tool) })
	wg.Wait()
	return true
}

// A frame is what was read at once.
type frame struct {
	conn int
	d    Direction
	at   time.Time
	b    []byte
}

// A recorder writes frames in the order in which they come.
type recorder struct {
	w      io.Writer
	room   *semaphore.Weighted
	queue  chan frame
	failed func(error)
	bytes  int64
}

func (r *recorder) run() {
	var err error
	for f := range r.queue {
		if err == nil {
			if err = WriteFrame(r.w, f.conn, f.d, f.at, f.b); err != nil {
				r.failed(err)
			} else {
				r.bytes += int64(len(f.b))
			}
		}
		r.room.Release(int64(len(f.b)))
	}
}

// keep records what is about to be passed on: afterwards its answer could be first, or the end come between.
func (r *recorder) keep(ctx context.Context, conn int, d Direction, b []byte) error {
	at := time.Now()
	if err := r.room.Acquire(ctx, int64(len(b))); err != nil {
		return err
	}
	r.queue <- frame{conn, d, at, bytes.Clone(b)}
	return nil
}
