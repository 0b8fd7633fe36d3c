package spans

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// A rewriting that has the log of the first reading writes the same bytes, and reads the trace once less.
func TestLog(t *testing.T) {
	files := corpus(t)
	for seed := range uint64(3) {
		cut, _, _ := walk(t, tracetest.Walk{Seed: seed, Threads: 3, Bytes: 1 << 20, Deep: 0.5})
		files["walk"+string('0'+rune(seed))] = cut
	}
	saved := 0
	for name, in := range files {
		t.Run(name, func(t *testing.T) {
			repaired := func(log bool) (out []byte, opened int) {
				open := func() (io.ReadCloser, error) { opened++; return opener(in)() }
				tr, err := Read(context.Background(), open, &Options{Lean: true, Log: log})
				require.NoError(t, err)
				pass.FixStacks(tr.Profile, 0.9)
				var b bytes.Buffer
				require.NoError(t, tr.Rewrite(context.Background(), &b, false))
				return b.Bytes(), opened
			}
			want, often := repaired(false)
			got, opened := repaired(true)
			assert.True(t, bytes.Equal(want, got), "the log makes a difference")
			saved += often - opened
		})
	}
	assert.GreaterOrEqual(t, saved, 3, "a reading saved for each trace with a repair")
}

// What is parsed on another goroutine is followed as what is parsed on this one.
func TestBeside(t *testing.T) {
	files := corpus(t)
	cut, _, _ := walk(t, tracetest.Walk{Seed: 1, Threads: 3, Bytes: 1 << 20, Deep: 0.5})
	files["walk"] = cut
	files["cut"] = cut[:len(cut)/2]
	files["broken"] = bytes.Replace(bytes.Clone(cut), []byte(`"ph"`), []byte(`"ph\`), 100)
	files["lacking"] = bytes.ReplaceAll(cut, []byte(`"ts":`), []byte(`"tz":`))
	for name, in := range files {
		t.Run(name, func(t *testing.T) {
			type told struct {
				what string
				at   int64
			}
			read := func(processors int, weighted bool) (*Trace, []told) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				var all []told
				o := &Options{Weighted: weighted, Log: true, Warn: func(e *chromium.FormatError, at int64) { all = append(all, told{e.Error(), at}) }}
				return readBytes(t, in, o), all
			}
			for _, weighted := range []bool{false, true} {
				want, wantTold := read(1, weighted)
				got, gotTold := read(2, weighted)
				assert.Equal(t, wantTold, gotTold)
				assert.Equal(t, want.Facts, got.Facts)
				assert.Equal(t, want.Profile, got.Profile)
				assert.Equal(t, want.zones, got.zones)
				assert.Equal(t, want.log, got.log)
			}
		})
	}
}

// What does not fit into a log is read again.
func TestLogFull(t *testing.T) {
	g := &spanLog{chunks: make([][]byte, mostLogged)}
	ev := brief{phase: 'B'}
	assert.Nil(t, g.add(&ev, 1))
	assert.Nil(t, (*spanLog)(nil).add(&ev, 1))
}
