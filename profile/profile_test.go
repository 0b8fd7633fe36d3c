package profile

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableInternsStacks(t *testing.T) {
	tab := NewTable()
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]StackID{}
	for range 20000 {
		n := rng.IntN(6)
		var id StackID
		key := ""
		want := []FrameID{}
		for range n {
			f := FrameID(rng.IntN(9))
			id = tab.Push(id, f)
			key += string(rune('a' + f))
			want = append(want, f)
		}
		if prev, ok := seen[key]; ok {
			require.Equal(t, prev, id, "the same frames are the same stack")
		}
		seen[key] = id
		require.Equal(t, n, tab.Depth(id))
		require.Equal(t, want, tab.AppendFrames([]FrameID{}, id))
	}
	ids := map[StackID]bool{}
	for _, id := range seen {
		assert.False(t, ids[id], "different frames are different stacks")
		ids[id] = true
	}
}

func TestSamplesKeepEverything(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var l Samples
	var want []Sample
	now := int64(-5000)
	cuts := 0
	for range 50000 {
		now += rng.Int64N(3_000_000) - 1000 // not sorted: a list keeps what it is given
		s := Sample{Time: now, Stack: rng.Uint32(), Type: SampleType(rng.IntN(6)), Cut: Cut(rng.IntN(4)), Suspect: uint8(rng.IntN(4)), Fresh: uint16(rng.IntN(3) * rng.IntN(1<<rng.IntN(16))), Hidden: rng.IntN(5) == 0}
		if rng.IntN(10) == 0 {
			s.Dur = rng.Int64()
		}
		if s.Cut != Whole {
			cuts++
		}
		want = append(want, s)
		l.Append(s)
	}
	require.Equal(t, len(want), l.Len())
	assert.Equal(t, cuts, l.Cuts())
	n := 0
	for i, s := range l.All() {
		require.Equal(t, n, i)
		require.Equal(t, want[i], s)
		n++
	}
	assert.Equal(t, len(want), n)

	// Reading from anywhere on.
	c := l.Cursor()
	for i := rng.IntN(50); i < len(want); i += rng.IntN(300) {
		c.Seek(i)
		for range 1 + rng.IntN(3) {
			s, ok := c.Next()
			require.Equal(t, i < len(want), ok)
			if ok {
				require.Equal(t, want[i], s)
			}
			i++
		}
	}

	// Changing some.
	rows := func(yield func(int, int) bool) {
		for i := rng.IntN(3000); i < len(want); i += rng.IntN(9000) {
			n := min(rng.IntN(30), len(want)-i)
			for k := range want[i : i+n] {
				s := &want[i+k]
				s.Stack, s.Cut, s.Hidden = s.Stack>>rng.IntN(30), Cut(rng.IntN(4)), rng.IntN(3) == 0
			}
			if !yield(i, n) {
				return
			}
			i += n
		}
	}
	l.Edit(rows, func(i int, s *Sample) { s.Stack, s.Cut, s.Hidden = want[i].Stack, want[i].Cut, want[i].Hidden })
	l.Append(want[7])
	want = append(want, want[7])
	for _, rare := range []int{1, 5, 4000, len(want) * 2} {
		k := -1
		l.Change(func(s *Sample) bool {
			k++
			require.Equal(t, want[k], *s)
			if rng.IntN(rare) > 0 {
				return false
			}
			s.Cut, s.Hidden, s.Time = Cut(rng.IntN(4)), rng.IntN(3) == 0, s.Time+rng.Int64N(3)-1
			want[k] = *s
			return true
		})
		require.Equal(t, len(want)-1, k)
		l.Append(want[9])
		want = append(want, want[9])
	}
	for _, rare := range []int{3, 5000, 1} {
		var left []Sample
		k := -1
		l.Delete(func(s *Sample) bool {
			k++
			require.Equal(t, want[k], *s)
			if rng.IntN(rare) == 0 {
				return true
			}
			left = append(left, *s)
			return false
		})
		require.Equal(t, len(want)-1, k)
		want = left
		for range 3 {
			s := Sample{Time: rng.Int64N(1e9), Stack: rng.Uint32(), Cut: Cut(rng.IntN(4))}
			l.Append(s)
			want = append(want, s)
		}
		c := l.Cursor()
		for i := 0; i < len(want); i += 1 + rng.IntN(2000) {
			c.Seek(i)
			s, ok := c.Next()
			require.True(t, ok)
			require.Equal(t, want[i], s)
		}
	}
	cuts = 0
	written := 0
	for i, s := range l.All() {
		require.Equal(t, want[i], s)
		if s.Cut != Whole {
			cuts++
		}
		if s.Written() {
			written++
		}
	}
	assert.Equal(t, written, l.Written())
	assert.Equal(t, cuts, l.Cuts())
	assert.Equal(t, len(want), l.Len())
}

func BenchmarkTablePush(b *testing.B) {
	tab := NewTable()
	rng := rand.New(rand.NewPCG(1, 2))
	frames := make([]FrameID, 1<<12)
	for i := range frames {
		frames[i] = rng.Uint32N(200)
	}
	b.ReportAllocs()
	for b.Loop() {
		var id StackID
		for _, f := range frames[:100] {
			id = tab.Push(id, f)
		}
	}
}

func TestUvarint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		want := rng.Uint64() >> rng.IntN(64)
		b := binary.AppendUvarint(nil, want)
		size := len(b)
		for range i % 6 {
			b = append(b, byte(rng.Uint32()))
		}
		v, n := uvarint(b)
		require.Equal(t, want, v)
		require.Equal(t, size, n)
	}
	for _, b := range [][]byte{nil, {0x80}, {0x80, 0x80, 0x80, 0x80}} {
		_, n := uvarint(b)
		require.Zero(t, n, "it ends early")
	}
}

// BenchmarkCursor reads samples of which all, or one in eight, have another stack than the one
// before, as threads that work and such that wait do.
func BenchmarkCursor(b *testing.B) {
	for _, bench := range []struct {
		name string
		each int // samples of one stack
	}{{"works", 1}, {"waits", 8}} {
		b.Run(bench.name, func(b *testing.B) {
			const samples = 100_000
			rng := rand.New(rand.NewPCG(1, 2))
			var l Samples
			s := Sample{Type: SampleManaged}
			bytes := 0
			for i := range samples {
				s.Time += 900_000 + rng.Int64N(200_000)
				if i%bench.each == 0 {
					s.Stack = StackID(rng.IntN(10_000))
					if rng.IntN(3) == 0 {
						s.Type = SampleManaged + SampleType(rng.IntN(2))
					}
				}
				l.Append(s)
			}
			for i := range l.chunks {
				bytes += len(l.chunks[i].b)
			}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				c := l.Cursor()
				for c.Read(&s) {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/samples, "ns/sample")
		})
	}
}
