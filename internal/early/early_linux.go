package early

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func init() {
	if len(os.Args) == 2 && (os.Args[1] == "--help" || os.Args[1] == "-h") && os.Getenv("COLUMNS") == "" && !terminal(1) {
		if _, err := os.Stdout.WriteString(Help); err == nil { // else the program tries, and tells
			os.Exit(0)
		}
	}
	touchHeap()
}

// firstHeap is by how much the heap of Go grows at least, and what it begins with: mostly at a
// multiple of that. Where it begins elsewhere the kernel may refuse, and nothing is gained.
const firstHeap = 4 << 20

// populate is MADV_POPULATE_WRITE, which package syscall does not know.
const populate = 23

// touchHeap has the kernel give the first pages of the heap at once. Each would be given when it is
// touched first, and most are before a command begins: five hundred faults, of which each takes
// longer than the page does, most of all in virtual machines. A kernel before 5.14 refuses, and
// then they are given one by one.
func touchHeap() {
	somewhere := new([64]byte)
	start := uintptr(unsafe.Pointer(somewhere)) &^ (firstHeap - 1)
	runtime.KeepAlive(somewhere)
	syscall.RawSyscall(syscall.SYS_MADVISE, start, firstHeap, populate)
}

// terminal reports whether a file is one that tells how wide it is.
func terminal(fd uintptr) bool {
	var size [4]uint16
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return e == 0
}
