package ipc

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nobody is a user who owns nothing.
const nobody = 65534

// swapsEnv names the folder in which this program, run as nobody, puts links to victims where the
// proxy's socket is.
const swapsEnv = "TRACEFIX_TEST_SWAPS"

// swap replaces the name socket in dir, and the folder itself, by links to what belongs to root,
// until it is killed.
func swap(dir string) {
	victim := filepath.Join(filepath.Dir(dir), "victims")
	for {
		_ = os.Symlink(filepath.Join(victim, "socket"), filepath.Join(dir, "link"))
		_ = os.Rename(filepath.Join(dir, "link"), filepath.Join(dir, "socket"))
		_ = os.Remove(filepath.Join(dir, "socket"))
		_ = os.Link(filepath.Join(victim, "file"), filepath.Join(dir, "socket"))
		_ = os.Remove(filepath.Join(dir, "socket"))
		_ = os.Rename(dir, dir+"-away")
		_ = os.Symlink(victim, dir)
		_ = os.Remove(dir)
		_ = os.Rename(dir+"-away", dir)
	}
}

// TestRace holds, as root, that no other user gets what is root's by swapping names while a proxy
// hands its socket over.
func TestRace(t *testing.T) {
	if dir := os.Getenv(swapsEnv); dir != "" {
		swap(dir)
	}
	if os.Getuid() != 0 {
		t.Skip("only root hands sockets over")
	}
	top, err := os.MkdirTemp("", "tracefix-race-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	require.NoError(t, os.Chown(top, nobody, nobody)) // its folders can be renamed by nobody
	require.NoError(t, os.Chmod(top, 0o755))
	dir, victims, target := filepath.Join(top, "dir"), filepath.Join(top, "victims"), filepath.Join(top, "target")
	require.NoError(t, os.Mkdir(victims, 0o755))
	for _, name := range []string{"file", "socket"} {
		require.NoError(t, os.WriteFile(filepath.Join(victims, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chown(dir, nobody, nobody))
	l, err := net.Listen("unix", target)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Chown(target, nobody, nobody))

	swapper := exec.Command(os.Args[0], "-test.run=^TestRace$")
	swapper.Env = append(os.Environ(), swapsEnv+"="+dir)
	swapper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	program := filepath.Join(top, "test") // which nobody may run, wherever it was built
	data, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, data, 0o755))
	swapper.Path, swapper.Dir = program, top
	require.NoError(t, swapper.Start())
	defer func() {
		_ = swapper.Process.Kill()
		_ = swapper.Wait()
	}()

	long, err := time.ParseDuration(os.Getenv("TRACEFIX_TEST_RACE"))
	if err != nil {
		long = 2 * time.Second
	}
	tries, given := 0, 0
	for end := time.Now().Add(long); time.Now().Before(end); tries++ {
		p, err := Listen(target, filepath.Join(dir, "socket"))
		if err != nil {
			continue
		}
		given++
		_ = p.Close()
	}
	t.Logf("%d tries, of which %d came through", tries, given)
	assert.NotZero(t, given)
	assert.Greater(t, tries, given)
	for _, name := range []string{"", "file", "socket"} {
		st, err := os.Lstat(filepath.Join(victims, name))
		if assert.NoError(t, err, "victims/%s is gone", name) {
			assert.Zero(t, st.Sys().(*syscall.Stat_t).Uid, "victims/%s has user %s", name, strconv.Itoa(int(st.Sys().(*syscall.Stat_t).Uid)))
		}
	}
	names, err := os.ReadDir(victims)
	require.NoError(t, err)
	assert.Len(t, names, 2, "a socket was left in a folder of root")
}
