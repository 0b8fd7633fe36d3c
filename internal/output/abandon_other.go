//go:build !unix

package output

import "os"

const removesOpen = false

func leave([]*os.File) {}
