//go:build !linux && !darwin

package input

// freeSpace is not known here.
func freeSpace(string) (int64, bool) { return 0, false }
