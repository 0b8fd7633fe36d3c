//go:build !linux

package output

import "os"

// startFlush does nothing: there is no such call.
func startFlush(*os.File, int64, int64) {}
