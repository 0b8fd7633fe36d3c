//go:build unix && !linux

package ipc

import (
	"os"

	"golang.org/x/sys/unix"
)

// inFolder returns path: a socket has no other name here.
func inFolder(_ *os.File, _, path string) string { return path }

// give makes the socket base in dir another user's. It follows no link.
func give(dir *os.File, base string, uid, gid int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if !isSocket(&st) {
		return errSwapped
	}
	return unix.Fchownat(int(dir.Fd()), base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}
