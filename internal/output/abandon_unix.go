//go:build unix

package output

import "os"

// removesOpen says that a file can be removed while it is open.
const removesOpen = true

func namelessFile(prefix string) (*os.File, error) {
	f, err := os.CreateTemp("", prefix+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
