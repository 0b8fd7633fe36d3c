//go:build unix

package output

import (
	"os"
	"syscall"
)

// removesOpen says that a file can be removed while it is open.
const removesOpen = true

// slow is the size from which on it takes a while to give back what a file takes.
const slow = 64 << 20

// leave hands large files that have no name any more to a process that ends by itself: the system
// gives back what a file takes when the last who has it open ends, which of 1 GB takes a third of
// a second, and who interrupted this process waits for its end.
func leave(files []*os.File) {
	held := []*os.File{nil, nil, nil}
	for _, f := range files {
		if st, err := f.Stat(); err == nil && st.Size() >= slow {
			held = append(held, f)
		}
	}
	if exe, err := os.Executable(); err == nil && len(held) > 3 {
		if p, err := os.StartProcess(exe, []string{"tracefix", "--version"}, &os.ProcAttr{Files: held, Sys: &syscall.SysProcAttr{Setsid: true}}); err == nil {
			p.Release()
		}
	}
}
