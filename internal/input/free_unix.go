//go:build linux || darwin

package input

import "syscall"

// freeSpace is how many bytes this user may still write in dir.
func freeSpace(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(min(st.Bavail, 1<<40)) * int64(st.Bsize), true
}
