package output

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
	"unicode/utf8"
)

// Temporary files are locked for as long as their run lives: a run that was killed gives its
// locks back, and the next one that makes a temporary file at the same place removes what has
// none. A live run's are locked, and never touched.

// TempFile makes a temporary file PREFIX*, in the system's folder if dir is "". Closing it gives
// its lock back: whoever needs the file keeps it open, and ends it with RemoveTemp.
func TempFile(dir, prefix string) (*os.File, error) {
	system := dir == ""
	if system {
		dir = os.TempDir()
	}
	sweepOnce(dir, prefixed(prefix))
	f, err := locked(func() (*os.File, error) { return os.CreateTemp(dir, prefix+"*") })
	switch {
	case err == nil:
		Temporary(f.Name(), f)
	case system:
		err = InTemp(err)
	}
	return f, err
}

// NamelessFile makes a temporary file in the system's folder that nobody else is to open: it is
// gone when it is closed, or nobody has it. It fails where a system has no such thing.
func NamelessFile(prefix string) (*os.File, error) { return namelessFile(prefix) }

// RemoveTemp closes and removes a file of TempFile.
func RemoveTemp(f *os.File) error {
	defer Settled(f.Name())
	if !removesOpen {
		return errors.Join(f.Close(), patiently(func() error { return os.Remove(f.Name()) }))
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// Rename is os.Rename, but for a file that somebody else has open for a moment, which Windows does
// not rename.
func Rename(from, to string) error { return patiently(func() error { return os.Rename(from, to) }) }

// A TempFolder is a temporary folder, with what keeps it.
type TempFolder struct {
	Path string
	lock *os.File // inside it
}

// TempDir makes a temporary folder PREFIX* in the system's.
func TempDir(prefix string) (*TempFolder, error) {
	sweepOnce(os.TempDir(), prefixed(prefix))
	dir := ""
	f, err := locked(func() (f *os.File, err error) {
		if dir != "" { // one that another run took for left
			os.RemoveAll(dir)
		}
		if dir, err = os.MkdirTemp("", prefix+"*"); err != nil {
			return nil, err
		}
		return os.OpenFile(filepath.Join(dir, folderLock), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	})
	if err != nil {
		if dir != "" {
			os.RemoveAll(dir)
		}
		return nil, InTemp(err)
	}
	Temporary(dir, f)
	return &TempFolder{dir, f}, nil
}

// folderLock is the file of a temporary folder that is locked while its run lives.
const folderLock = ".lock"

// Keep leaves the folder to the user.
func (t *TempFolder) Keep() {
	Settled(t.Path)
	if !removesOpen {
		t.lock.Close()
	}
	os.Remove(t.lock.Name())
	t.lock.Close()
}

// Remove removes the folder.
func (t *TempFolder) Remove() error {
	if !removesOpen {
		t.lock.Close()
	}
	err := os.RemoveAll(t.Path)
	Settled(t.Path)
	t.lock.Close()
	return err
}

// locked makes a file and locks it. Before it has its lock another run may take it for left: lock
// and remove it. Where that seems to happen again and again, it is a file system without locks.
func locked(create func() (*os.File, error)) (*os.File, error) {
	const tries = 10
	for try := 1; ; try++ {
		f, err := create()
		if err != nil || !locks {
			return f, err
		}
		err = Lock(f)
		if err == nil && linked(f) || err != nil && try == tries {
			return f, nil
		}
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}
}

// linked reports whether f still has its name.
func linked(f *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(a, b)
}

// restsClosed is how long a file of a live run may lie closed, and so without its lock, where only
// a closed one gets its name: between its last byte and that name, for which it may wait for
// another output.
const restsClosed = time.Hour

// removeLeft removes a file that no run has locked.
func removeLeft(name string) {
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() {
		return
	}
	if !removesOpen && time.Since(st.ModTime()) < restsClosed {
		return
	}
	f, err := os.OpenFile(name, os.O_RDWR|noFollow, 0)
	if err != nil {
		return // somebody else's
	}
	defer f.Close()
	if Lock(f) == nil && linked(f) {
		if !removesOpen {
			f.Close()
		}
		os.Remove(name)
	}
}

var (
	swept   = map[string]bool{} // folder and names
	sweptMu sync.Mutex
)

// prefixed are the names that os.CreateTemp makes of PREFIX*.
func prefixed(prefix string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "[0-9]+$")
}

// sweepOnce removes what killed runs left in a folder under names that are ours, once for each run.
func sweepOnce(dir string, ours *regexp.Regexp) {
	sweptMu.Lock()
	key := dir + "\x00" + ours.String()
	done := swept[key]
	swept[key] = true
	sweptMu.Unlock()
	if !done && locks {
		sweep(dir, ours)
	}
}

func sweep(dir string, ours *regexp.Regexp) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		name := filepath.Join(dir, e.Name())
		switch {
		case !ours.MatchString(e.Name()):
		case e.IsDir():
			removeFolder(name)
		default:
			removeLeft(name)
		}
	}
}

// removeFolder removes a temporary folder whose lock nobody holds. One without a lock was left to the user.
func removeFolder(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, folderLock), os.O_RDWR|noFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if Lock(f) == nil && linked(f) {
		if !removesOpen {
			f.Close()
		}
		os.RemoveAll(dir)
	}
}

// Beside an output its temporary file is called .NAME.tracefix-XXXXXXXX: nothing else is called so, and what
// killed runs left in a folder goes when another run writes there.
var besideName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.(.+)\.tracefix-[0-9a-f]{8}$`) })

// longestBeside is how much of NAME is kept, bytes: file systems take 255 for a name.
const longestBeside = 255 - len("..tracefix-01234567")

// beside returns NAME for an output. It ends with a whole character: some file systems take nothing else.
func beside(name string) string {
	base := filepath.Base(name)
	n := min(len(base), longestBeside)
	for n > longestBeside-utf8.UTFMax && n < len(base) && !utf8.RuneStart(base[n]) {
		n--
	}
	return base[:n]
}

// IsTemporary reports whether a file of this name, in the folder of an output, is a temporary one of it; of
// any output if name is empty.
func IsTemporary(file, name string) bool {
	m := besideName().FindStringSubmatch(file)
	return m != nil && (name == "" || m[1] == beside(name))
}

// createBeside makes a temporary file in the folder of name. Unlike os.CreateTemp it
// leaves the mode to the caller and the umask: a trace is made to be passed on.
func createBeside(name string, mode fs.FileMode) (*os.File, error) {
	dir := filepath.Dir(name)
	sweepOnce(dir, besideName())
	return locked(func() (*os.File, error) {
		for try := 0; ; try++ {
			t := filepath.Join(dir, fmt.Sprintf(".%s.tracefix-%08x", beside(name), rand.Uint32()))
			f, err := os.OpenFile(t, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
			if !os.IsExist(err) || try == 100 {
				return f, err
			}
		}
	})
}
