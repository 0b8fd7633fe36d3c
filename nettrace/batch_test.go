package nettrace

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// describeBatches reads a file to its end in batches of n events, each of which is looked at when
// all of held batches, as many as Options.Hold allows, have been read.
func describeBatches(t testing.TB, r *Reader, n, held int) (events []string, late int, err error) {
	batches := make([]Batch, held)
	var ev Event // one for all: nothing of an earlier event may stay
	read := 0
	look := func(b *Batch) {
		for range 2 {
			b.Rewind()
			seen := 0
			for b.Next(&ev) {
				if seen++; seen > b.Len() {
					require.Fail(t, "more events than Len tells")
				}
			}
			require.Equal(t, b.Len(), seen)
		}
		for b.Rewind(); b.Next(&ev); {
			events = append(events, describe(&ev))
			if ev.fitted && !ev.fits() {
				require.Fail(t, "a payload is said to fit that does not")
			}
			if ev.Late {
				late++
			}
		}
	}
	for ; err == nil; read++ {
		if read >= held {
			look(&batches[read%held])
		}
		b := &batches[read%held]
		if err = r.ReadBatch(b, n); err == nil {
			require.Equal(t, n, b.Len())
		}
	}
	for i := max(0, read-held); i < read; i++ {
		look(&batches[i%held])
	}
	return events, late, err
}

// Batches hold the events that Read delivers, also when others have been read since.
func TestReadBatch(t *testing.T) {
	files := small(t)
	for _, name := range []string{"probe9.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		files[name] = testFile(t, name)
	}
	damaged := bytes.Clone(files["probe9.nettrace.gz"])
	for i := len(damaged) / 3; i < len(damaged)/3+40; i++ {
		damaged[i] ^= 0x55
	}
	files["damaged"] = damaged
	for name, data := range files {
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		want, wantErr := describeAll(t, r)
		require.NotEmpty(t, want)
		for _, c := range []struct{ n, held int }{{1, 1}, {7, 1}, {1000, 1}, {3, 50}, {256, 4}} {
			t.Run(fmt.Sprintf("%s by %d, %d held", name, c.n, c.held), func(t *testing.T) {
				b, err := NewReader(bytes.NewReader(data), &Options{Hold: c.n * c.held})
				require.NoError(t, err)
				got, late, err := describeBatches(t, b, c.n, c.held)
				require.Equal(t, wantErr == io.EOF, err == io.EOF)
				require.Equal(t, want, got)
				require.Equal(t, r.Stats(), b.Stats())
				require.EqualValues(t, r.Stats().Late, late)
				var none Batch
				require.Equal(t, err, b.ReadBatch(&none, 10), "the error does not stick")
				require.Zero(t, none.Len())
				require.False(t, none.Next(&Event{}))
			})
		}
	}
}

// Read and ReadBatch may be mixed, without Options.Hold too.
func TestReadThenBatch(t *testing.T) {
	data := testFile(t, "probe9.nettrace.gz")
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	want, _ := describeAll(t, r)
	r, err = NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var got []string
	var b Batch
	var ev Event
	for i := 1; err == nil; i++ {
		if err = r.ReadBatch(&b, i%50+1); err != nil {
			require.Equal(t, io.EOF, err)
		}
		for b.Next(&ev) {
			got = append(got, describe(&ev))
		}
		if err == nil {
			if err = r.Read(&ev); err == nil {
				got = append(got, describe(&ev))
			}
		}
	}
	require.Equal(t, want, got)
}

// TestRowSize holds that a row is one line of a cache.
func TestRowSize(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(row{}), uintptr(64))
}
