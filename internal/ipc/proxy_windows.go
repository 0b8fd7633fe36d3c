package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// pipes is what the names of all pipes begin with.
const pipes = `\\.\pipe\`

// Endpoint returns the diagnostics pipe of a process, as the tools of .NET find it.
func Endpoint(pid int) (string, error) {
	if !Alive(pid) {
		return "", fmt.Errorf("process %d: there is none", pid)
	}
	return pipes + "dotnet-diagnostic-" + strconv.Itoa(pid), nil
}

// ProxyPath returns where a proxy for a pipe listens. No tool finds it by the id of the process,
// whose pipe has the one name that they look for.
func ProxyPath(target string) (path string, byPID bool) { return pipePath(target) + ".snoop", false }

// pipePath is the full name of a pipe.
func pipePath(name string) string {
	if strings.HasPrefix(name, `\\`) {
		return name
	}
	return pipes + name
}

// Alive reports whether there is such a process, and it is not over.
func Alive(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// Listen makes a proxy for the pipe target, which listens on path. Only the user of this process
// and administrators may open it, as the runtime has it.
func Listen(target, path string) (*Proxy, error) {
	target, path = pipePath(target), pipePath(path)
	if path == target {
		return nil, fmt.Errorf("%s: the proxy needs another pipe than the process", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := connect(ctx, target)
	switch {
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return nil, fmt.Errorf("%s: belongs to another user: run as that user, or as administrator", target)
	case err != nil:
		return nil, fmt.Errorf("%s: no diagnostics server listens there: is it a .NET process of this user, without DOTNET_EnableDiagnostics=0? %w", target, err)
	}
	c.Close()
	l, err := winio.ListenPipe(path, &winio.PipeConfig{InputBufferSize: chunkSize, OutputBufferSize: chunkSize})
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen there: %w", path, err)
	}
	return &Proxy{Path: path, target: target, listener: l, close: sync.OnceValue(l.Close)}, nil
}

// Deserted reports whether nobody listens any more where the process did. Only to who opens it would
// a pipe tell that, but the name of a runtime's own has the id of its process.
func (p *Proxy) Deserted() bool {
	pid, err := strconv.Atoi(strings.TrimPrefix(p.target, pipes+"dotnet-diagnostic-"))
	return err == nil && !Alive(pid)
}

// connect connects with the server of a process.
func connect(ctx context.Context, target string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, target)
}

// closed reports whether err is that of a listener which was closed.
func closed(err error) bool { return errors.Is(err, winio.ErrPipeListenerClosed) }

// endOf ends both directions: a pipe of bytes knows no end of one.
func endOf(c net.Conn) { c.Close() }

// copy records and passes on what from says, until it says no more. The error is that of to.
func (r *recorder) copy(ctx context.Context, conn int, d Direction, from, to net.Conn) error {
	buf := make([]byte, chunkSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := r.keep(ctx, conn, d, buf[:n]); err != nil {
				return err
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}
