package output

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/windows"
)

const removesOpen = false

// namelessFile makes a file that has a name, but that the system removes when its last handle is
// closed, as it does where a process is killed.
func namelessFile(prefix string) (*os.File, error) {
	for try := 1; ; try++ {
		name := filepath.Join(os.TempDir(), prefix+strconv.FormatUint(rand.Uint64(), 36))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0o600)
		if try < 100 && errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, err
	}
}
