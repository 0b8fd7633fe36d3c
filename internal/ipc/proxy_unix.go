//go:build unix

package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxRights = 1 << 10 // bytes of control messages

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

// Deserted reports whether nobody listens any more where the process did.
func (p *Proxy) Deserted() bool {
	err := listens(p.target)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// connect connects with the server of a process.
func connect(ctx context.Context, target string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", target)
}

// closed reports whether err is that of a listener which was closed.
func closed(err error) bool { return errors.Is(err, net.ErrClosed) }

// endOf says that nothing more comes; the other direction goes on.
func endOf(c net.Conn) { c.(*net.UnixConn).CloseWrite() }

// copy records and passes on what from says, with the file descriptors that come with
// it, until it says no more. The error is that of to.
func (r *recorder) copy(ctx context.Context, conn int, d Direction, from, to net.Conn) error {
	fromUnix, toUnix := from.(*net.UnixConn), to.(*net.UnixConn)
	buf, control := make([]byte, chunkSize), make([]byte, maxRights)
	for {
		n, rights, _, _, err := fromUnix.ReadMsgUnix(buf, control)
		if n > 0 || rights > 0 {
			if n > 0 {
				if err := r.keep(ctx, conn, d, buf[:n]); err != nil {
					return err
				}
			}
			if err := pass(toUnix, buf[:n], control[:rights]); err != nil {
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
