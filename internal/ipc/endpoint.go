//go:build unix

package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNoEndpoint says that a process has no diagnostics socket.
var ErrNoEndpoint = errors.New("no diagnostics socket: is it a .NET process of this user, without DOTNET_EnableDiagnostics=0?")

// proxyKey is the key in the name of a proxy's socket. Tools take the newest socket of a
// process, some the first by name: a small key serves both.
const proxyKey = "1"

var socketName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(dotnet-diagnostic-(?:dsrouter-)?)(\d+)-(\d+)(-socket)$`)
})

// Endpoint returns the diagnostics socket of a process, as the tools of .NET find it.
func Endpoint(pid int) (string, error) {
	if !Alive(pid) {
		return "", fmt.Errorf("process %d: there is none", pid)
	}
	dir, inner := folder(pid)
	return newest(dir, pid, inner)
}

// folder returns where the runtime of a process puts its socket, and the number that the
// process has there: both are others in a container.
func folder(pid int) (dir string, inner int) {
	dir, inner = os.TempDir(), pid
	proc := "/proc/" + strconv.Itoa(pid)
	if env, err := os.ReadFile(proc + "/environ"); err == nil {
		dir = "/tmp"
		for _, v := range bytes.Split(env, []byte{0}) {
			if tmp, ok := strings.CutPrefix(string(v), "TMPDIR="); ok && tmp != "" {
				dir = tmp
			}
		}
	}
	status, _ := os.ReadFile(proc + "/status")
	for line := range strings.Lines(string(status)) {
		if pids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(pids); len(f) > 1 {
				if n, err := strconv.Atoi(f[len(f)-1]); err == nil {
					dir, inner = proc+"/root"+dir, n
				}
			}
		}
	}
	return dir, inner
}

// newest returns the newest socket of a process in a folder that is no proxy's.
func newest(dir string, pid, inner int) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	best, at := "", time.Time{}
	for _, e := range entries {
		m := socketName().FindStringSubmatch(e.Name())
		if m == nil || m[2] != strconv.Itoa(inner) || m[3] == proxyKey {
			continue
		}
		if st, err := e.Info(); err == nil && (best == "" || st.ModTime().After(at)) {
			best, at = filepath.Join(dir, e.Name()), st.ModTime()
		}
	}
	if best == "" {
		return "", fmt.Errorf("process %d in %s: %w", pid, dir, ErrNoEndpoint)
	}
	return best, nil
}

// ProxyPath returns where a proxy for a socket listens: where tools that look for the
// process find it, if the socket has a name that they look for.
func ProxyPath(target string) (path string, byPID bool) {
	dir, name := filepath.Split(target)
	if m := socketName().FindStringSubmatch(name); m != nil && m[3] != proxyKey {
		return dir + m[1] + m[2] + "-" + proxyKey + m[4], true
	}
	return target + ".snoop", false
}

// Alive reports whether there is such a process, and it is not over. One that nobody waits
// for keeps its number for ever, as below a shell that is process 1 of a container.
func Alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		// "pid (name) state ...", and a name may hold anything
		if rest := stat[bytes.LastIndexByte(stat, ')')+1:]; bytes.HasPrefix(rest, []byte(" Z")) || bytes.HasPrefix(rest, []byte(" X")) {
			return false
		}
	}
	err := syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}
