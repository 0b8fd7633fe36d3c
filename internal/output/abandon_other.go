//go:build !unix

package output

const removesOpen = false
