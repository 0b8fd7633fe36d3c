package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestAdviseHugePages holds that the kernel was asked for as many huge pages as are told, and for
// no more, whatever they cost here.
func TestAdviseHugePages(t *testing.T) {
	assert.Zero(t, adviseHugePages(make([]byte, 4*hugePage)), "too little to probe")

	block, err := unix.Mmap(-1, 0, 24*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer func() { assert.NoError(t, unix.Munmap(block)) }()
	from := uintptr(unsafe.Pointer(&block[0]))
	n := adviseHugePages(block)
	if n == 0 {
		t.Skip("the kernel has no huge pages")
	}
	assert.Equal(t, n*hugePage, int(advisedWithin(t, from, from+uintptr(len(block)))))
	for i := 0; i < len(block); i += smallPage {
		require.Zero(t, block[i], "what was touched is as it was")
	}
}

// advisedWithin returns how many bytes of the addresses from begin to end the kernel was asked to
// put on huge pages.
func advisedWithin(t *testing.T, begin, end uintptr) (n uintptr) {
	f, err := os.Open("/proc/self/smaps")
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	var from, to uintptr
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok {
			if strings.Contains(flags+" ", " hg ") && from < end && to > begin {
				n += min(to, end) - max(from, begin)
			}
		} else if at, _, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasSuffix(at, ":") {
			_, err := fmt.Sscanf(at, "%x-%x", &from, &to)
			require.NoError(t, err, lines.Text())
		}
	}
	return n
}
