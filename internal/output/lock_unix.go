//go:build unix

package output

import (
	"os"
	"syscall"
)

// locks says that Lock takes files.
const locks = true

// noFollow opens a file and no link, and waits for nobody at a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// Lock takes f for this process; it is given back when the process ends, however it does.
func Lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
