package output

import (
	"os"
	"sync"
)

// The temporary files and folders of this run. Who makes one says so, that a run which is cut
// short leaves none; the lock keeps an output from appearing while they are removed.
var (
	unfinished   = map[string]bool{}
	unfinishedMu sync.Mutex
)

// Temporary says that a file or a folder is temporary: Abandon removes it until Settled is told
// of it.
func Temporary(name string) {
	unfinishedMu.Lock()
	unfinished[name] = true
	unfinishedMu.Unlock()
}

// Settled says that what was Temporary is gone, or is none any more.
func Settled(name string) {
	unfinishedMu.Lock()
	delete(unfinished, name)
	unfinishedMu.Unlock()
}

// Abandon removes all that is unfinished, for a process that ends now, whatever its goroutines
// are at: from here on none of them can make a file appear, and whoever tries waits for the end.
func Abandon() {
	unfinishedMu.Lock()
	for name := range unfinished {
		os.RemoveAll(name)
	}
}
