package profile

import "strings"

// SampledCPUs is what a file of sums says that has no other place for it: samples were taken on
// CPUs, whatever code ran.
const SampledCPUs = "samples were taken on CPUs"

// KindOf says what code a method is by its names, for files that tell nothing else. What has
// arguments is managed code; what lies in an image of Linux is not, whatever it is called.
func KindOf(m Method) FrameKind {
	switch {
	case isAddress(m.Name), m.Name == "?", strings.HasSuffix(m.Name, "!?"):
		return Unresolved
	case m.Module == "vmlinux", strings.HasPrefix(m.Module, "[kernel"), strings.HasSuffix(m.Module, ".ko"):
		return Kernel
	case m.Module == "[vdso]", m.Module == "unknown", // a stub of the runtime
		strings.HasSuffix(m.Module, ".so"), strings.Contains(m.Module, ".so."), strings.HasPrefix(m.Module, "ld-musl-"), strings.HasSuffix(m.Module, ".dylib"):
		return Native
	}
	return Managed
}

// isAddress reports whether a name is an address, 0x7f10.
func isAddress(name string) bool {
	digits, ok := strings.CutPrefix(name, "0x")
	return ok && digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}
