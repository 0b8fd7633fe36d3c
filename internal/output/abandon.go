package output

import (
	"os"
	"sync"
)

// The temporary files and folders of this run. Who makes one says so, that a run which is cut
// short leaves none; the lock keeps an output from appearing while they are removed.
var (
	unfinished   = map[string]*os.File{}
	unfinishedMu sync.Mutex
)

// Temporary says that a file or a folder is temporary: Abandon removes it until Settled is told
// of it. f is the file, or that in the folder, which is open; nil if there is none.
func Temporary(name string, f *os.File) {
	unfinishedMu.Lock()
	unfinished[name] = f
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
	for name, f := range unfinished {
		if f != nil && !removesOpen {
			f.Close()
		}
		os.RemoveAll(name)
	}
}
