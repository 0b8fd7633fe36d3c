//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/output"
)

// TestInterrupted sends signals to commands that wait for an input which gives nothing
// more: they end at once with the code for that, and leave nothing behind.
func TestInterrupted(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		args string // PIPE is a named pipe; - is standard input
		sig  os.Signal
	}{
		{"info -", os.Interrupt},
		{"events -", syscall.SIGTERM},
		{"repair - -o out.json", os.Interrupt},
		{"convert - -o out.json", syscall.SIGHUP},
		{"http -", os.Interrupt},
		{"top -", os.Interrupt},
		{"ipc - --extract new", os.Interrupt},
		{"batch - -o out", syscall.SIGTERM},
		{"info PIPE", os.Interrupt},
		{"repair PIPE -o out.json", os.Interrupt},
		{"batch PIPE -o out", os.Interrupt},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			skipIgnored(t, c.sig)
			dir, temp := t.TempDir(), t.TempDir()
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "PIPE"), 0o600))
			cmd := exec.Command(self)
			cmd.Args = append([]string{"tracefix"}, strings.Fields(c.args)...) // see testscript.Main
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			defer in.Close()
			require.NoError(t, cmd.Start())
			if strings.Contains(c.args, "PIPE") {
				w, err := os.OpenFile(filepath.Join(dir, "PIPE"), os.O_WRONLY, 0)
				require.NoError(t, err)
				defer w.Close()
				in = w
			}
			// More than a pipe holds: when it is written, it is being read.
			_, err = in.Write(bytes.Repeat([]byte("\n"), 1<<20))
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(c.sig))
			timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
			defer timer.Stop()
			cmd.Wait()
			assert.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), stderr.String())
			assert.Contains(t, stderr.String(), "interrupted")
			if strings.HasPrefix(c.args, "batch") {
				assert.Contains(t, stderr.String(), "what is done stays: 0 done\n")
			}
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			assert.Empty(t, left)
			for _, name := range []string{"out.json", "new"} {
				_, err = os.Stat(filepath.Join(dir, name))
				assert.ErrorIs(t, err, os.ErrNotExist, name)
			}
		})
	}
}

func init() { programs["stubborn"] = stubborn }

// stubborn is a program whose work hears of no signal: half an output stands, and it goes on.
func stubborn() {
	ctx, end := signals()
	switch {
	case slices.Contains(os.Args, "patient"):
		beInNoHurry(ctx, endless)
	case slices.Contains(os.Args, "told"):
		lastWords(ctx, func() string { return "half of it is done" })
	}
	os.Exit(end.watch(func() int {
		out, err := output.Create("out.json", nil)
		if err != nil {
			return exitFailed
		}
		fmt.Fprintln(out, "[")
		fmt.Println("at work")
		for {
			runtime.Gosched()
		}
	}))
}

// TestInterruptedAnywhere: a step that does not ask whether it is to end is cut off, and what it
// made is gone. Where there is something to say first, the second signal cuts that off.
func TestInterruptedAnywhere(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, args := range [][]string{{"stubborn"}, {"stubborn", "patient"}, {"stubborn", "told"}} {
		cmd := exec.Command(self)
		cmd.Args, cmd.Dir = args, t.TempDir()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer timer.Stop()
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		left, err := os.ReadDir(cmd.Dir)
		require.NoError(t, err)
		require.Len(t, left, 1, "half an output")
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		for ended := exited(out); slices.Contains(args, "patient") && !ended(100*time.Millisecond); {
			cmd.Process.Signal(os.Interrupt) // one that comes before the last was taken counts as the last
		}
		cmd.Wait()
		assert.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), args)
		want := interruptedText
		if slices.Contains(args, "told") {
			want = "tracefix: half of it is done"
		}
		assert.Equal(t, want+"\n", stderr.String(), args)
		left, err = os.ReadDir(cmd.Dir)
		require.NoError(t, err)
		assert.Empty(t, left, args)
	}
}

// exited tells whether a program has ended, after waiting for it for a while. What is behind its
// standard output ends with it.
func exited(out io.Reader) func(time.Duration) bool {
	end := make(chan struct{})
	go func() {
		io.Copy(io.Discard, out)
		close(end)
	}()
	return func(patience time.Duration) bool {
		select {
		case <-end:
			return true
		case <-time.After(patience):
			return false
		}
	}
}

// skipIgnored skips where a program starts with the signal ignored, as below nohup, and rightly
// goes on.
func skipIgnored(t *testing.T, sig os.Signal) {
	if signal.Ignored(sig) {
		t.Skipf("%s is ignored here, as nohup does", sig)
	}
}

// TestSnoopEnds: a signal is how a recording ends. The proxy's socket goes with it, since
// tools would take it for that of the process.
func TestSnoopEnds(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		said string
		end  string
	}{
		{syscall.SIGINT, "DOTNET_IPC_V1", "1 connection, 13 bytes; `tracefix ipc out.rec` tells what was said\n"},
		{syscall.SIGTERM, "", "1 connection, 0 bytes; nothing was said; was a tool run with --diagnostic-port port.sock.snoop,connect?\n"},
		{syscall.SIGHUP, "DOTNET_IPC_V1", "1 connection, 13 bytes; `tracefix ipc out.rec` tells what was said\n"},
	} {
		skipIgnored(t, c.sig)
		dir, l, cmd, stderr := snooping(t)
		tool, err := net.Dial("unix", filepath.Join(dir, "port.sock.snoop"))
		require.NoError(t, err)
		defer tool.Close()
		_, err = tool.Write([]byte(c.said))
		require.NoError(t, err)
		runtime, err := l.Accept()
		require.NoError(t, err)
		defer runtime.Close()
		_, err = io.ReadFull(runtime, make([]byte, len(c.said)))
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(c.sig))
		rest, err := io.ReadAll(stderr)
		require.NoError(t, err)
		assert.NoError(t, cmd.Wait(), c.sig)
		assert.Contains(t, string(rest), "out.rec: "+c.end, c.sig)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		names := []string{}
		for _, f := range left {
			names = append(names, f.Name())
		}
		assert.Equal(t, []string{"out.rec", "port.sock"}, names, c.sig)
	}
}

// snooping starts tracefix snoop in front of port.sock in a new folder, where l listens.
func snooping(t *testing.T) (dir string, l *net.UnixListener, cmd *exec.Cmd, stderr *bufio.Reader) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err = os.MkdirTemp("", "s") // a socket's name is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "port.sock"), Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	cmd = exec.Command(self)
	cmd.Args = []string{"tracefix", "snoop", "-o", "out.rec", "port.sock"}
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	stderr = bufio.NewReader(out)
	line, err := stderr.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "port.sock.snoop stands for port.sock.\n", line)
	return dir, l, cmd, stderr
}

// TestSnoopEndedTwice: timeout(1) sends its signal to the command and to its group, so that it comes
// twice at once. That is no reason to drop a recording.
func TestSnoopEndedTwice(t *testing.T) {
	skipIgnored(t, syscall.SIGTERM)
	dir, l, cmd, stderr := snooping(t)
	tool, err := net.Dial("unix", filepath.Join(dir, "port.sock.snoop"))
	require.NoError(t, err)
	defer tool.Close()
	_, err = tool.Write([]byte("DOTNET_IPC_V1"))
	require.NoError(t, err)
	runtime, err := l.Accept()
	require.NoError(t, err)
	defer runtime.Close()
	_, err = io.ReadFull(runtime, make([]byte, 13))
	require.NoError(t, err)
	for range 20 { // those that come while one waits are one
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		time.Sleep(time.Millisecond / 10)
	}
	rest, err := io.ReadAll(stderr)
	require.NoError(t, err)
	assert.NoError(t, cmd.Wait())
	assert.Contains(t, string(rest), "out.rec: 1 connection, 13 bytes; ")
	assert.FileExists(t, filepath.Join(dir, "out.rec"))
}

// TestSnoopEndsWithItsSocket: the process behind a path has no number that could be asked for.
func TestSnoopEndsWithItsSocket(t *testing.T) {
	for _, unlinked := range []bool{true, false} { // a process that is killed leaves its socket behind
		_, l, cmd, stderr := snooping(t)
		l.SetUnlinkOnClose(unlinked)
		require.NoError(t, l.Close())
		rest, err := io.ReadAll(stderr)
		require.NoError(t, err)
		assert.NoError(t, cmd.Wait())
		assert.Contains(t, string(rest), "out.rec: 0 connections, 0 bytes; ", unlinked)
	}
}

// TestInterruptedOutput: what went to standard output before a signal is a part, and
// nobody says that there was none.
func TestInterruptedOutput(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Args = []string{"tracefix", "events", filepath.Join("..", "..", "testdata", "chain.nettrace.zst")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	b := make([]byte, 1000)
	_, err = out.Read(b) // the rest waits: a pipe holds less than there is
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	time.Sleep(100 * time.Millisecond)
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	cmd.Wait()
	assert.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
	assert.Equal(t, "tracefix: interrupted; no unfinished file is left, and what went to standard output is not all\n", stderr.String())
}

// TestReaderGoesAway: behind `| head` a command ends as others do, by the signal for that
// (141 to a shell), and says nothing, also where standard output has a name.
func TestReaderGoesAway(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, args := range []string{"events IN", "convert IN -o - --format ndjson", "convert IN -o /dev/stdout --format ndjson"} {
		cmd := exec.Command(self)
		cmd.Args = append([]string{"tracefix"}, strings.Fields(strings.ReplaceAll(args, "IN", filepath.Join("..", "..", "testdata", "chain.nettrace.zst")))...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, out.Close())
		cmd.Wait()
		assert.Equal(t, syscall.SIGPIPE, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), args)
		assert.Empty(t, stderr.String(), args)
	}
}
