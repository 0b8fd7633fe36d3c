//go:build unix

package ipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
)

// said are the bytes of each connection and direction of a recording.
type said map[string]string

func sayings(t *testing.T, rec []byte) said {
	s := said{}
	for at := 0; at < len(rec); {
		require.LessOrEqual(t, at+17, len(rec), "a recording ends at the end of a frame")
		n := int(binary.LittleEndian.Uint32(rec[at+13:]))
		require.LessOrEqual(t, at+17+n, len(rec))
		s[fmt.Sprintf("%d%c", binary.LittleEndian.Uint32(rec[at+1:]), rec[at])] += string(rec[at+17 : at+17+n])
		at += 17 + n
	}
	return s
}

// folderOf returns a folder whose name is short enough for a socket.
func folderOf(t *testing.T) string {
	dir, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// a runtime answers each connection by serve.
func runtime(t *testing.T, serve func(n int, c *net.UnixConn)) string {
	path := filepath.Join(folderOf(t), "dotnet-diagnostic-77-4711-socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(n, c)
			}()
		}
	}()
	return path
}

// snooping serves target in the background; end returns what it recorded.
func snooping(t *testing.T, target string) (path string, end func() (Stats, []byte)) {
	path, byPID := ProxyPath(target)
	require.True(t, byPID)
	p, err := Listen(target, path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var rec bytes.Buffer
	done := make(chan Stats)
	go func() {
		st, err := p.Serve(ctx, &rec)
		assert.NoError(t, err)
		done <- st
	}()
	return path, func() (Stats, []byte) {
		p.Close()
		st := <-done
		assert.NoFileExists(t, path)
		return st, rec.Bytes()
	}
}

func dial(t *testing.T, path string) *net.UnixConn {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// A conversation that was really held is held again through the proxy: both sides hear
// what they heard, and what is recorded is what was.
func TestProxyRecords(t *testing.T) {
	in, err := input.Open(t.Context(), filepath.Join("..", "..", "testdata", "ipc", "reverse.rec.zst"), nil)
	require.NoError(t, err)
	defer in.Close()
	r, err := in.Reader()
	require.NoError(t, err)
	old, err := io.ReadAll(r)
	require.NoError(t, err)
	want := sayings(t, old)
	heard := make(chan string, 100)
	target := runtime(t, func(n int, c *net.UnixConn) {
		const advertised = 34 // bytes of the record with which the runtime begins
		answer := []byte(want[fmt.Sprintf("%ds", n)])
		c.Write(answer[:min(advertised, len(answer))])
		b := make([]byte, len(want[fmt.Sprintf("%dc", n)]))
		_, err := io.ReadFull(c, b)
		assert.NoError(t, err)
		c.Write(answer[min(advertised, len(answer)):])
		rest, err := io.ReadAll(c)
		assert.NoError(t, err)
		heard <- string(b) + string(rest)
	})
	path, end := snooping(t, target)
	conns := 0
	for ; want[fmt.Sprintf("%dc", conns+1)]+want[fmt.Sprintf("%ds", conns+1)] != ""; conns++ {
		c := dial(t, path)
		_, err := c.Write([]byte(want[fmt.Sprintf("%dc", conns+1)]))
		require.NoError(t, err)
		answer := make([]byte, len(want[fmt.Sprintf("%ds", conns+1)]))
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
		assert.Equal(t, want[fmt.Sprintf("%ds", conns+1)], string(answer))
		c.CloseWrite()
		assert.Equal(t, want[fmt.Sprintf("%dc", conns+1)], <-heard)
	}
	require.Equal(t, 13, conns)
	st, rec := end()
	assert.Equal(t, want, sayings(t, rec))
	assert.Equal(t, Stats{Conns: conns, Bytes: int64(len(strings.Join(values(want), "")))}, st)

	messages := func(rec []byte) (names []string) {
		_, err := Read(bytes.NewReader(rec), nil, func(it *Item) error {
			names = append(names, fmt.Sprint(it.Conn, it.Kind, it.Name, it.Size))
			return nil
		})
		require.NoError(t, err)
		return names
	}
	assert.ElementsMatch(t, messages(old), messages(rec))
}

// However quick an answer is, it stands behind its request.
func TestProxyKeepsOrder(t *testing.T) {
	target := runtime(t, func(_ int, c *net.UnixConn) { io.Copy(c, c) })
	path, end := snooping(t, target)
	for range 300 {
		c := dial(t, path)
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
		c.Close()
	}
	_, rec := end()
	const frame = 17 + 1
	require.Len(t, rec, 300*2*frame)
	asked := map[uint32]uint64{}
	for b := rec; len(b) > 0; b = b[frame:] {
		conn, at := binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint64(b[5:])
		if b[0] == 'c' {
			asked[conn] = at
			continue
		}
		require.NotZero(t, asked[conn], "connection %d", conn)
		require.LessOrEqual(t, asked[conn], at)
	}
}

func values(s said) (v []string) {
	for _, x := range s {
		v = append(v, x)
	}
	return v
}

// A stream that is larger than all buffers comes through, and so does what follows the
// end of the other direction.
func TestProxyStreams(t *testing.T) {
	stream := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	target := runtime(t, func(_ int, c *net.UnixConn) {
		b, _ := io.ReadAll(c) // the tool has said all
		assert.Equal(t, "collect", string(b))
		c.Write(stream)
	})
	path, end := snooping(t, target)
	c := dial(t, path)
	_, err := c.Write([]byte("collect"))
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(stream, got))
	_, rec := end()
	assert.True(t, sayings(t, rec)["1s"] == string(stream))
}

// File descriptors are passed on: CollectTracing5 sends the one to write into.
func TestProxyPassesDescriptors(t *testing.T) {
	target := runtime(t, func(_ int, c *net.UnixConn) {
		b, control := make([]byte, 10), make([]byte, 100)
		n, rights, _, _, err := c.ReadMsgUnix(b, control)
		assert.NoError(t, err)
		assert.Equal(t, "x", string(b[:n]))
		ms, err := syscall.ParseSocketControlMessage(control[:rights])
		if !assert.NoError(t, err) || !assert.Len(t, ms, 1) {
			return
		}
		fds, err := syscall.ParseUnixRights(&ms[0])
		assert.NoError(t, err)
		f := os.NewFile(uintptr(fds[0]), "pipe")
		fmt.Fprint(f, "from the runtime")
		f.Close()
	})
	path, end := snooping(t, target)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := dial(t, path)
	_, _, err = c.WriteMsgUnix([]byte("x"), syscall.UnixRights(int(w.Fd())), nil)
	require.NoError(t, err)
	w.Close()
	b, err := io.ReadAll(r) // ends only if nobody keeps the other end
	require.NoError(t, err)
	assert.Equal(t, "from the runtime", string(b))
	c.Close()
	_, rec := end()
	assert.Equal(t, said{"1c": "x"}, sayings(t, rec))
}

// Told to end while a tool listens, it hangs up, and the recording is whole.
func TestProxyEnds(t *testing.T) {
	target := runtime(t, func(_ int, c *net.UnixConn) {
		c.Write([]byte("beginning"))
		io.Copy(io.Discard, c) // never ends by itself
	})
	path, _ := ProxyPath(target)
	p, err := Listen(target, path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var rec bytes.Buffer
	done := make(chan error)
	go func() {
		_, err := p.Serve(ctx, &rec)
		done <- err
	}()
	c := dial(t, path)
	b := make([]byte, 9)
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	cancel()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	assert.Equal(t, said{"1s": "beginning"}, sayings(t, rec.Bytes()))
	assert.NoFileExists(t, path)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// If the recording cannot be written, the error says so and everything ends.
func TestProxyDiskFull(t *testing.T) {
	target := runtime(t, func(_ int, c *net.UnixConn) { io.Copy(c, c) })
	path, _ := ProxyPath(target)
	p, err := Listen(target, path)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := p.Serve(context.Background(), full{})
		done <- err
	}()
	_, err = dial(t, path).Write([]byte("x"))
	require.NoError(t, err)
	assert.ErrorIs(t, <-done, syscall.ENOSPC)
}

func TestListen(t *testing.T) {
	target := runtime(t, func(int, *net.UnixConn) {})
	path, _ := ProxyPath(target)
	p, err := Listen(target, path)
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode().Perm(), "for the owner only")
	_, err = Listen(target, path)
	assert.ErrorContains(t, err, "another proxy")
	require.NoError(t, p.Close())
	require.NoFileExists(t, path)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	left.Close()
	require.FileExists(t, path, "left behind as by a kill")
	p, err = Listen(target, path)
	require.NoError(t, err)
	p.Close()
	_, err = Listen(target, target)
	assert.Error(t, err)

	// Without a listener behind it a proxy would wait for ever: a name that is mistaken, a
	// file that is not a socket, the socket of a process that was killed.
	dir := folderOf(t)
	file, stale := filepath.Join(dir, "file"), filepath.Join(dir, "dotnet-diagnostic-77-4712-socket")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	for _, target := range []string{filepath.Join(dir, "none"), file, stale} {
		path, _ := ProxyPath(target)
		_, err = Listen(target, path)
		assert.ErrorContains(t, err, target+": no diagnostics server listens there")
		assert.NoFileExists(t, path)
	}
}

// The way to the socket may be gone when it is removed: that into a container leads
// through its process.
func TestCloseWithoutPath(t *testing.T) {
	target := runtime(t, func(int, *net.UnixConn) {})
	way := filepath.Join(folderOf(t), "root")
	require.NoError(t, os.Symlink(filepath.Dir(target), way))
	path, _ := ProxyPath(target)
	p, err := Listen(target, filepath.Join(way, filepath.Base(path)))
	require.NoError(t, err)
	require.FileExists(t, path)
	require.NoError(t, os.Remove(way))
	require.NoError(t, p.Close())
	assert.NoFileExists(t, path)
}

// A process that is over but not yet waited for has no diagnostics server.
func TestAliveZombie(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no procfs")
	}
	cmd := exec.Command("sleep", "0")
	require.NoError(t, cmd.Start())
	assert.Eventually(t, func() bool { return !Alive(cmd.Process.Pid) }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, cmd.Wait())
	assert.True(t, Alive(os.Getpid()))
}

func TestNewest(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{
		"dotnet-diagnostic-26-900-socket", "dotnet-diagnostic-26-1000-socket", "dotnet-diagnostic-26-800-socket",
		"dotnet-diagnostic-26-1-socket", "dotnet-diagnostic-2675-2000-socket", "dotnet-diagnostic-dsrouter-9-5-socket", "x-dotnet-diagnostic-9-7-socket",
	} {
		f := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(f, nil, 0o600))
		at := time.Unix(1e9+int64(i), 0)
		if i == 2 {
			at = time.Unix(1e9-5, 0)
		}
		require.NoError(t, os.Chtimes(f, at, at))
	}
	for pid, want := range map[int]string{26: "dotnet-diagnostic-26-1000-socket", 2675: "dotnet-diagnostic-2675-2000-socket", 9: "dotnet-diagnostic-dsrouter-9-5-socket"} {
		got, err := newest(dir, pid, pid)
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, want), got)
	}
	_, err := newest(dir, 2, 2)
	assert.ErrorIs(t, err, ErrNoEndpoint)
	path, byPID := ProxyPath("/tmp/dotnet-diagnostic-26-1000-socket")
	assert.Equal(t, "/tmp/dotnet-diagnostic-26-1-socket", path)
	assert.True(t, byPID)
	path, byPID = ProxyPath("/tmp/port.sock")
	assert.Equal(t, "/tmp/port.sock.snoop", path)
	assert.False(t, byPID)
	_, err = Endpoint(1 << 30)
	assert.ErrorContains(t, err, "there is none")
}
