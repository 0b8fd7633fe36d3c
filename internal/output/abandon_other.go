//go:build !unix && !windows

package output

import (
	"errors"
	"os"
)

const removesOpen = false

func namelessFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
