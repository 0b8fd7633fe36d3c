package batch

import "golang.org/x/sys/unix"

// machineMemory returns the memory of the machine in bytes; 0 if nobody tells.
func machineMemory() int64 {
	n, _ := unix.SysctlUint64("hw.memsize")
	return int64(n)
}
