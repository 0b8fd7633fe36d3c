package profile

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What was put aside on disk is read, edited and deleted like what is in memory.
func TestSpool(t *testing.T) {
	var file *os.File
	spool := &Spool{Memory: 2 * chunkSize, Create: func() (SpoolFile, error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
		file = f
		return f, err
	}}
	defer func() { file.Close() }() // Windows removes no open file
	held, aside := Samples{}, SamplesIn(spool)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 300_000 {
		s := Sample{Time: int64(i)*1e6 + rng.Int64N(1000), Stack: StackID(rng.IntN(50_000)), Type: SampleType(rng.IntN(4))}
		held.Append(s)
		aside.Append(s)
	}
	require.NotNil(t, file)
	size := func() int64 {
		st, err := file.Stat()
		require.NoError(t, err)
		return st.Size()
	}
	require.Greater(t, size(), int64(20*chunkSize))
	require.Greater(t, len(aside.chunks), manyChunks+10)
	same := func() {
		t.Helper()
		require.Equal(t, held.Len(), aside.Len())
		require.Equal(t, held.Cuts(), aside.Cuts())
		a, b := held.Cursor(), aside.Cursor()
		var x, y Sample
		for a.Read(&x) {
			if !b.Read(&y) || x != y {
				t.Fatalf("%v, want %v", y, x)
			}
		}
		require.False(t, b.Read(&y))
		for i := 0; i < held.Len(); i += 1 + rng.IntN(5000) {
			a, b := held.Cursor(), aside.Cursor()
			a.Seek(i)
			b.Seek(i)
			x, _ := a.Next()
			y, _ := b.Next()
			require.Equal(t, x, y)
		}
	}
	same()
	require.Zero(t, aside.chunks[0].at, "what came first is in memory")
	p := &Profile{Threads: []*Thread{{Samples: held}, {Samples: aside}}}
	p.PutAside()
	for k, c := range aside.chunks[:len(aside.chunks)-1] {
		require.Positive(t, c.at, k)
		require.Nil(t, c.b)
	}
	same()
	before := size()
	for _, l := range []*Samples{&held, &aside} {
		l.Change(func(s *Sample) bool {
			s.Cut = CutDepth
			return s.Stack%3 == 0
		})
	}
	same()
	assert.LessOrEqual(t, size(), before+before/10, "most changes find room where the samples were")
	for _, l := range []*Samples{&held, &aside} {
		l.Edit(func(yield func(int, int) bool) {
			for i := 5; i < 290_000 && yield(i, 3); i += 777 {
			}
		}, func(i int, s *Sample) { s.Stack, s.Suspect = StackID(1_000_000_000+i), 2 })
	}
	same()
	for _, l := range []*Samples{&held, &aside} {
		l.Delete(func(s *Sample) bool { return s.Type == SampleCPU || s.Time > 3e10 && s.Time < 4e10 })
	}
	same()
	require.NoError(t, spool.Err())

	// Of a file that breaks there are as many samples, and an error.
	require.NoError(t, file.Truncate(0))
	n, c := 0, aside.Cursor()
	for _, ok := c.Next(); ok; _, ok = c.Next() {
		n++
	}
	assert.Equal(t, aside.Len(), n)
	require.Error(t, spool.Err())
	require.Error(t, (&Profile{Threads: []*Thread{{Samples: aside}}}).Err())
}

// Without a file, or room in it, samples stay in memory.
func TestSpoolWithoutRoom(t *testing.T) {
	for _, create := range []func() (SpoolFile, error){
		nil,
		func() (SpoolFile, error) { return nil, errors.New("no file") },
		func() (SpoolFile, error) { return fullFile{}, nil },
	} {
		spool := &Spool{Memory: 1, Create: create}
		l := SamplesIn(spool)
		for i := range 20_000 {
			l.Append(Sample{Time: int64(i), Stack: StackID(i * 7)})
		}
		for i, s := range l.All() {
			require.Equal(t, Sample{Time: int64(i), Stack: StackID(i * 7)}, s)
		}
		require.NoError(t, spool.Err())
	}
}

type fullFile struct{}

func (fullFile) ReadAt([]byte, int64) (int, error)  { return 0, errors.New("nothing was written") }
func (fullFile) WriteAt([]byte, int64) (int, error) { return 0, errors.New("no space left") }

// TestRepairsAside: repairs that were put aside on disk are read like those in memory, and where the
// file cannot be read they end and the error is told.
func TestRepairsAside(t *testing.T) {
	var file *os.File
	spool := &Spool{Memory: 1, Create: func() (SpoolFile, error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
		file = f
		return f, err
	}}
	defer func() { file.Close() }() // Windows removes no open file
	thread := &Thread{Samples: SamplesIn(spool)}
	var held Repairs
	aside := thread.NewRepairs()
	rng := rand.New(rand.NewPCG(1, 1))
	index := 0
	for range 150_000 {
		index += 1 + rng.IntN(100)
		r := Repair{Index: index, Recorded: rng.Uint32N(1 << 30), How: []string{"before", "after"}[rng.IntN(2)], Restored: rng.IntN(500)}
		n := 1 + rng.IntN(3)
		held.AppendRun(r, n)
		aside.AppendRun(r, n)
		index += n
	}
	require.NotNil(t, file)
	left := 0
	for _, c := range aside.chunks {
		left += cap(c.b)
	}
	assert.Less(t, left, 2*largeChunk)
	require.Greater(t, len(aside.chunks), manyChunks+2)
	same := func() {
		want := held.Cursor()
		got := aside.Cursor()
		for i := 0; i < index; i += 1 + rng.IntN(3) {
			require.Equal(t, want.Of(i), got.Of(i))
		}
	}
	same()
	below := thread.NewRepairs()
	below.Append(Repair{Index: 3, How: "earlier"})
	aside = aside.Over(&below)
	assert.Equal(t, held.Len()+1, aside.Len())
	for r := range aside.All() {
		assert.Equal(t, "earlier", r.How)
		break
	}

	require.NoError(t, spool.Err())
	require.NoError(t, file.Truncate(sizeOf(t, file)/2))
	n := 0
	for range aside.All() {
		n++
	}
	assert.Less(t, n, aside.Len())
	assert.ErrorContains(t, spool.Err(), "cannot be read again")
	c := aside.Cursor()
	assert.Nil(t, c.Of(index))
	assert.Nil(t, c.Of(index+1))
}

func sizeOf(t *testing.T, f *os.File) int64 {
	st, err := f.Stat()
	require.NoError(t, err)
	return st.Size()
}
