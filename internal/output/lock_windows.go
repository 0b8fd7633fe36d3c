package output

import (
	"os"

	"golang.org/x/sys/windows"
)

// locks says that Lock takes files.
const locks = true

// noFollow is 0: what temporary names lead to is looked at first.
const noFollow = 0

// Lock takes f for this process; it is given back when the process ends, however it does. The byte
// that is locked lies behind all data: nobody else could read or write what is locked here.
func Lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}
