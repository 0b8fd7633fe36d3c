package ipc

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// inFolder returns a name for base in the folder that is held as dir, whatever path leads
// to meanwhile; path where there is no such name, for want of /proc.
func inFolder(dir *os.File, base, path string) string {
	held := "/proc/self/fd/" + strconv.Itoa(int(dir.Fd()))
	if _, err := os.Stat(held); err != nil {
		return path
	}
	return filepath.Join(held, base)
}

// give makes the socket base in dir another user's. What it looked at is what it gives:
// the name is looked up once.
func give(dir *os.File, base string, uid, gid int) error {
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !isSocket(&st) {
		return errSwapped
	}
	return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
}
