//go:build unix

package ipc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// Sizes.
const (
	chunkSize = 64 << 10
	// maxQueued is how many bytes may wait for the recording to be written. Until then
	// a slow disk does not slow the conversation, which would make the runtime drop events.
	maxQueued = 256 << 20
	maxRights = 1 << 10 // bytes of control messages
)

// A Proxy stands for the diagnostic server of a process.
type Proxy struct {
	// Path is the socket on which it listens.
	Path     string
	target   string
	listener *net.UnixListener
	close    func() error
}

// Stats tell what a Proxy recorded.
type Stats struct {
	Conns   int   // that a tool opened
	Refused int   // of these: those that the process did not take
	Bytes   int64 // of both directions
}

// Listen makes a proxy for the socket target, which listens on path. A socket that an
// earlier proxy left at path is replaced.
func Listen(target, path string) (*Proxy, error) {
	if path == target {
		return nil, fmt.Errorf("%s: the proxy needs another socket than the process", path)
	}
	if err := listens(target); errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("%s: belongs to another user: run as that user, or as root", target)
	} else if err != nil {
		return nil, fmt.Errorf("%s: no diagnostics server listens there: %w", target, err)
	}
	// The way to the folder may go through the process, if that is in a container, and
	// end with it; and another user may own the folder, and put something else under a name
	// at any time. So the folder is held, and all is done in the one that is held.
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	base := filepath.Base(path)
	l, err := listenIn(root, dir, base, path)
	if err != nil {
		dir.Close()
		root.Close()
		return nil, err
	}
	p := &Proxy{Path: path, target: target, listener: l}
	p.close = sync.OnceValue(func() error {
		return errors.Join(root.Remove(base), l.Close(), dir.Close(), root.Close())
	})
	if st, err := os.Stat(target); err == nil {
		if s, ok := st.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() {
			// of another user, whose tools must get in; only root comes this far
			if err := give(dir, base, int(s.Uid), int(s.Gid)); err != nil {
				p.Close()
				return nil, fmt.Errorf("%s: cannot be given to the user of the process: %w", path, err)
			}
		}
	}
	return p, nil
}

// listenIn makes the socket path, which is base in the folder dir, also held as root.
func listenIn(root *os.Root, dir *os.File, base, path string) (*net.UnixListener, error) {
	if st, err := root.Lstat(base); err == nil && st.Mode()&os.ModeSocket != 0 {
		if listens(path) == nil {
			return nil, fmt.Errorf("%s: another proxy listens there", path)
		}
		if err := root.Remove(base); err != nil {
			return nil, err
		}
	}
	// The runtime makes its socket for the owner only; so is this one, from the start.
	old := syscall.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: inFolder(dir, base, path), Net: "unix"})
	syscall.Umask(old)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the rest is the way through the folder
		}
		return nil, fmt.Errorf("%s: cannot listen there: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

var errSwapped = errors.New("another file has taken the place of the socket")

// isSocket reports whether st is a socket with one name, as one just made: a link to
// another file, of either kind, is not.
func isSocket(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFSOCK && st.Nlink == 1 }

// listens returns why nobody could be reached on a socket. Who listens need not see a
// connection for that: one of another type is refused in another way than by nobody.
func listens(path string) error {
	c, err := net.Dial("unixgram", path)
	if errors.Is(err, syscall.EPROTOTYPE) {
		return nil
	}
	if err == nil {
		c.Close()
	}
	if c, err = net.Dial("unix", path); err == nil {
		c.Close()
		return nil
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // the rest is the path again
	}
	return err
}

// Close removes the socket. Connections that are open go on to their end.
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
		tool, err := p.listener.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
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
// false if the process does not take the connection.
func (p *Proxy) relay(ctx context.Context, n int, tool *net.UnixConn, r *recorder) bool {
	defer tool.Close()
	c, err := net.Dial("unix", p.target)
	if err != nil {
		return false
	}
	runtime := c.(*net.UnixConn)
	defer runtime.Close()
	defer context.AfterFunc(ctx, func() { tool.Close(); runtime.Close() })()

	var wg sync.WaitGroup
	pipe := func(d Direction, from, to *net.UnixConn) {
		if err := r.copy(ctx, n, d, from, to); err != nil {
			from.Close() // nobody listens: what is said from here on would wait for ever
			to.Close()
			return
		}
		to.CloseWrite() // the other direction goes on
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

// copy records and passes on what from says, with the file descriptors that come with
// it, until it says no more. The error is that of to.
func (r *recorder) copy(ctx context.Context, conn int, d Direction, from, to *net.UnixConn) error {
	buf, control := make([]byte, chunkSize), make([]byte, maxRights)
	for {
		n, rights, _, _, err := from.ReadMsgUnix(buf, control)
		if n > 0 || rights > 0 {
			// It is recorded before it is passed on: afterwards its answer could be first,
			// or the end come between.
			if n > 0 {
				at := time.Now()
				if err := r.room.Acquire(ctx, int64(n)); err != nil {
					return err
				}
				r.queue <- frame{conn, d, at, bytes.Clone(buf[:n])}
			}
			if err := pass(to, buf[:n], control[:rights]); err != nil {
				return err
			}
		}
		if err != nil || n == 0 && rights == 0 {
			return nil
		}
	}
}

// pass sends bytes and the file descriptors in a control message.
func pass(to *net.UnixConn, b, control []byte) error {
	var rights []byte
	if len(control) > 0 {
		var fds []int
		messages, err := syscall.ParseSocketControlMessage(control)
		for i := range messages {
			if fd, err := syscall.ParseUnixRights(&messages[i]); err == nil {
				fds = append(fds, fd...)
			}
		}
		defer func() {
			for _, fd := range fds {
				syscall.Close(fd)
			}
		}()
		if err != nil {
			return err
		}
		if len(fds) > 0 {
			rights = syscall.UnixRights(fds...)
		}
	}
	if len(rights) > 0 {
		n, _, err := to.WriteMsgUnix(b, rights, nil)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if len(b) == 0 {
		return nil
	}
	_, err := to.Write(b)
	return err
}
