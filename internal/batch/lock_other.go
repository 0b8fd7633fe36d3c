//go:build !unix

package batch

import "os"

// lock does nothing where there are no advisory locks that a crash gives back.
func lock(*os.File) error { return nil }
