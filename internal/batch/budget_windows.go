package batch

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// machineMemory returns the memory of the machine in bytes; 0 if nobody tells.
func machineMemory() int64 {
	var status struct { // MEMORYSTATUSEX of sysinfoapi.h
		length, load uint32
		total        uint64
		_            [6]uint64 // of pages, and of this process
	}
	status.length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return 0
	}
	return int64(status.total)
}
