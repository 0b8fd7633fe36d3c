//go:build unix

package batch

import (
	"os"
	"syscall"
)

// lock takes f for this process; it is given back when the process ends, however it does.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
