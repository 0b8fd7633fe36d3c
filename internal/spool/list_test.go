package spool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Records come back as they were, from memory and from disk, also where one lies on two pages.
func TestList(t *testing.T) {
	type record struct {
		at   int64
		some [7]uint32
		is   bool
	}
	of := func(i int) record {
		return record{at: int64(i), some: [7]uint32{uint32(i), 6: uint32(i * i)}, is: i%3 == 0}
	}
	var zero List[record]
	on, file := aside(t)
	for _, l := range []*List[record]{&zero, ListIn[record](on, 1<<18)} {
		const n = 50_000
		for i := range n {
			require.Equal(t, i, l.Len())
			x := of(i)
			l.Add(&x)
		}
		l.Done()
		for i := range n {
			require.Equal(t, of(i), l.At(i))
			require.Equal(t, of(n-1-i), l.At(n-1-i))
		}
	}
	there, err := file.Stat()
	require.NoError(t, err)
	assert.NotZero(t, there.Size(), "some of them are on disk")
}
