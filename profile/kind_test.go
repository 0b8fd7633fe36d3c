package profile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKindOf(t *testing.T) {
	for _, x := range []struct {
		module, name string
		want         FrameKind
	}{
		{"lab", "Lab.Chain.Walk::Mix(int64)", Managed}, {"System.Private.CoreLib", "System.String.Concat(class System.String)", Managed}, {"", "main", Managed},
		{"libc.so.6", "__clone3", Native}, {"libcoreclr.so", "Thread::Run(int)", Native}, {"[vdso]", "__vdso_clock_gettime", Native}, {"unknown", "stub X", Native},
		{"vmlinux", "schedule", Kernel}, {"[kernel.kallsyms]", "do_syscall_64", Kernel},
		{"libcoreclr.so", "0x7f10", Unresolved}, {"", "?!?", Unresolved}, {"", "libcoreclr.so!?", Unresolved}, {"", "0xyz", Managed},
	} {
		assert.Equal(t, x.want, KindOf(Method{Module: x.module, Name: x.name}), x.module+"!"+x.name)
	}
}
