package output

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

// patiently tries again for a second what fails since somebody has the file open: a virus scanner
// or an indexer looks at each that is new, and another run of ours asks whether it was left.
func patiently(do func() error) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := do()
		held := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !held || wait > 512*time.Millisecond {
			return err
		}
		time.Sleep(wait)
	}
}
