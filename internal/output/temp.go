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
)

// Temporary files are locked for as long as their run lives: a run that was killed gives its
// locks back, and the next one that makes a temporary file at the same place removes what has
// none. A live run's are locked, and never touched.

// TempFile makes a temporary file PREFIX*, in the system's folder if dir is "". Closing it gives
// its lock back: whoever needs the file keeps it open, and ends it with RemoveTemp.
func TempFile(dir, prefix string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	sweepOnce(dir, prefix)
	f, err := locked(func() (*os.File, error) { return os.CreateTemp(dir, prefix+"*") })
	if err == nil {
		Temporary(f.Name(), f)
	}
	return f, err
}

// RemoveTemp closes and removes a file of TempFile.
func RemoveTemp(f *os.File) error {
	defer Settled(f.Name())
	if !removesOpen {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// A TempFolder is a temporary folder, with what keeps it.
type TempFolder struct {
	Path string
	lock *os.File // inside it
}

// TempDir makes a temporary folder PREFIX* in the system's.
func TempDir(prefix string) (*TempFolder, error) {
	sweepOnce(os.TempDir(), prefix)
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
		return nil, err
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

// removeLeft removes a file that no run has locked.
func removeLeft(name string) {
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() {
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
	swept   = map[string]bool{} // folder and prefix
	sweptMu sync.Mutex
)

// sweepOnce removes what killed runs left of PREFIX* in a folder, once for each run.
func sweepOnce(dir, prefix string) {
	sweptMu.Lock()
	done := swept[dir+"\x00"+prefix]
	swept[dir+"\x00"+prefix] = true
	sweptMu.Unlock()
	if !done && locks {
		sweep(dir, prefix)
	}
}

func sweep(dir, prefix string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "[0-9]+$")
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

// Beside an output its temporary file is called .NAME.tmp-XXXXXXXX. What killed runs left is listed
// once for each folder, and removed when the same output is written again.
var (
	leftovers   = map[string]map[string][]string{} // by folder, by NAME
	leftoversMu sync.Mutex
	besideName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.(.+)\.tmp-[0-9a-f]{8}$`) })
)

// sweepBeside removes what killed runs left of an output.
func sweepBeside(name string) {
	if !locks {
		return
	}
	dir, base := filepath.Dir(name), filepath.Base(name)
	leftoversMu.Lock()
	of, ok := leftovers[dir]
	if !ok {
		of = map[string][]string{}
		list, err := os.ReadDir(dir)
		for _, e := range list {
			if m := besideName().FindStringSubmatch(e.Name()); err == nil && m != nil {
				of[m[1]] = append(of[m[1]], filepath.Join(dir, e.Name()))
			}
		}
		leftovers[dir] = of
	}
	left := of[base]
	delete(of, base)
	leftoversMu.Unlock()
	for _, t := range left {
		removeLeft(t)
	}
}

// createBeside makes a temporary file in the folder of name. Unlike os.CreateTemp it
// leaves the mode to the caller and the umask: a trace is made to be passed on.
func createBeside(name string, mode fs.FileMode) (*os.File, error) {
	sweepBeside(name)
	return locked(func() (*os.File, error) {
		for try := 0; ; try++ {
			t := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.tmp-%08x", filepath.Base(name), rand.Uint32()))
			f, err := os.OpenFile(t, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
			if !os.IsExist(err) || try == 100 {
				return f, err
			}
		}
	})
}
