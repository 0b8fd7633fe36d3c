package spool

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type numbers [100]uint64

func aside(t *testing.T) (*Spool, *os.File) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return &Spool{Memory: 1, Create: func() (File, error) { return f, nil }}, f
}

// Pages are what they were changed to, wherever they are, for many who look at once, too.
func TestPages(t *testing.T) {
	s, _ := aside(t)
	for name, s := range map[string]*Spool{"in memory": nil, "on disk": s, "no disk": {Memory: 1}} {
		p := PagesIn[numbers](s, 1)
		r := rand.New(rand.NewPCG(1, 2))
		var want []numbers
		for i := range 5000 {
			if i%50 == 0 {
				require.Equal(t, numbers{}, *p.Add(), "a new page is empty")
				want = append(want, numbers{})
			}
			a, b := r.IntN(len(want)), r.IntN(len(want))
			x, y := p.Mut(a), p.Mut(b)
			require.Equal(t, want[a], *x, name)
			require.Equal(t, want[b], *y, name)
			_ = p.At(r.IntN(len(want))) // takes neither away
			k := r.IntN(len(x))
			x[k], want[a][k] = uint64(i), uint64(i)
			y[k]++
			want[b][k]++
			if i%7 == 0 {
				p.Trim()
			}
		}
		p.Cut(90)
		p.Done()
		require.Equal(t, 90, p.Len())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				var room numbers
				for i := range 90 {
					assert.Equal(t, want[i], *p.At(i), name)
					assert.Equal(t, want[i], *p.View(i, &room), name)
				}
			})
		}
		all.Wait()
		if name == "on disk" {
			assert.LessOrEqual(t, len(p.pages.here), 5)
		}
	}
	require.NoError(t, s.Err())
}

// What cannot be read again is zeros, and Err tells.
func TestPagesLost(t *testing.T) {
	s, f := aside(t)
	p := PagesIn[numbers](s, 1)
	for range 50 {
		p.Add()[3] = 7
	}
	p.Done()
	require.NoError(t, f.Truncate(0))
	assert.Equal(t, numbers{}, *p.At(0))
	require.Error(t, s.Err())
}

// Pages that there is no room for on disk stay.
func TestPagesStay(t *testing.T) {
	p := PagesIn[numbers](&Spool{Memory: 1, Create: func() (File, error) { return nil, errors.New("no file") }}, 1)
	for i := range 50 {
		p.Add()[0] = uint64(i)
	}
	for i := range 50 {
		assert.EqualValues(t, i, p.At(i)[0])
	}
}

func TestLog(t *testing.T) {
	s, _ := aside(t)
	for _, s := range []*Spool{nil, s} {
		l := LogIn(s, 1)
		r := rand.New(rand.NewPCG(1, 2))
		piece := func(i int) []byte {
			b := make([]byte, i*i%3000)
			for k := range b {
				b[k] = byte(i + k)
			}
			return b
		}
		var places []int64
		for i := range 2000 {
			places = append(places, l.Add(piece(i)))
			at := r.IntN(i + 1)
			b := piece(at)
			clear(b)
			l.Get(b, places[at])
			require.Equal(t, piece(at), b)
		}
	}
}
