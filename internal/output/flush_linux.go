package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// startFlush has the system begin to write a part of f to the disk, and does not wait for it. It is
// advice: where it fails, Sync has more to do.
func startFlush(f *os.File, from, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, n, unix.SYNC_FILE_RANGE_WRITE)
}
