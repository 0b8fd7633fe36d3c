package ipc

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who owns the folder may swap the socket for a link before it is given away.
func TestGiveFollowsNoLink(t *testing.T) {
	dir := folderOf(t)
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, nil, 0o600))
	require.NoError(t, os.Symlink("victim", filepath.Join(dir, "link")))
	require.NoError(t, os.Link(victim, filepath.Join(dir, "hard")))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Symlink("socket", filepath.Join(dir, "tosocket")))
	held, err := os.Open(dir)
	require.NoError(t, err)
	defer held.Close()
	uid := os.Getuid() // only root can give to another
	if uid == 0 {
		uid = 65534
	}
	for _, name := range []string{"victim", "link", "hard", "tosocket"} {
		assert.ErrorIs(t, give(held, name, uid, -1), errSwapped, name)
	}
	owner := func(name string) int {
		st, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		return int(st.Sys().(*syscall.Stat_t).Uid)
	}
	assert.Equal(t, os.Getuid(), owner("victim"))
	require.NoError(t, give(held, "socket", uid, -1))
	assert.Equal(t, uid, owner("socket"))

	require.NoError(t, os.Link(filepath.Join(dir, "socket"), filepath.Join(dir, "second")))
	assert.ErrorIs(t, give(held, "second", uid, -1), errSwapped, "a socket of another folder, linked here")
}

// The folder itself may be swapped as well.
func TestListensInTheFolderThatIsHeld(t *testing.T) {
	top := folderOf(t)
	dir, moved := filepath.Join(top, "d"), filepath.Join(top, "m")
	require.NoError(t, os.Mkdir(dir, 0o700))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	held, err := root.Open(".")
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, os.Rename(dir, moved))
	require.NoError(t, os.Mkdir(dir, 0o700))
	l, err := listenIn(root, held, "s", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer l.Close()
	assert.NoFileExists(t, filepath.Join(dir, "s"))
	assert.FileExists(t, filepath.Join(moved, "s"))
	c, err := net.Dial("unix", filepath.Join(moved, "s"))
	require.NoError(t, err)
	c.Close()
}
