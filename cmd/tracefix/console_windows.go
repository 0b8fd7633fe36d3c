package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// takesEscapes reports whether a terminal draws by escape sequences. A console of Windows does so, from
// Windows 10 on, where a program asks for it.
func takesEscapes(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	const vt = windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	return mode&vt != 0 || windows.SetConsoleMode(h, mode|vt) == nil
}
