//go:build unix

package output

// removesOpen says that a file can be removed while it is open.
const removesOpen = true
