//go:build !windows

package output

// patiently does what Windows may refuse for a moment.
func patiently(do func() error) error { return do() }
