package chromium_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// What is passed on or left out unread is what is written or dropped where each event is read.
func TestUnread(t *testing.T) {
	var in bytes.Buffer
	in.WriteString(`{"a":1,"traceEvents":[`)
	for i := range 20_000 {
		if i > 0 {
			in.WriteString([]string{",", ",\n", " , "}[i%3])
		}
		fmt.Fprintf(&in, `{"ph":"B","ts":%d,"pid":1,"tid":1,"name":"n%d"}`, i, i%100)
	}
	in.WriteString(`],"b":2}`)
	opened := func(w *chromium.Writer) *chromium.Reader {
		r, err := chromium.NewReader(bytes.NewReader(in.Bytes()), &chromium.Options{Outside: w.Outside()})
		require.NoError(t, err)
		return r
	}
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		// Runs of events, each with what happens to them.
		var want, got bytes.Buffer
		w := chromium.NewWriter(&want)
		type run struct {
			from, to int64
			drop     bool
		}
		var runs []run
		left := 1 // the first event is read
		for ev, err := range opened(w).All() {
			require.NoError(t, err)
			from := ev.Offset - int64(len(ev.Lead))
			if left--; left == 0 {
				left = 1 + random.IntN(1<<random.IntN(14))
				runs = append(runs, run{from: from, drop: len(runs) > 0 && random.IntN(2) > 0})
			}
			last := &runs[len(runs)-1]
			last.to = ev.Offset + int64(len(ev.Raw))
			if last.drop {
				w.Drop(ev)
			} else {
				require.NoError(t, w.Write(ev))
			}
		}
		w = chromium.NewWriter(&got)
		r := opened(w)
		var ev chromium.Event
		require.NoError(t, r.Read(&ev))
		require.NoError(t, w.Write(&ev))
		for _, x := range runs {
			if x.drop {
				require.NoError(t, r.LeaveOut(x.from, x.to))
				assert.Equal(t, x.to, r.InputOffset())
			}
		}
		r.PassTo(runs[len(runs)-1].to)
		require.Equal(t, io.EOF, r.Read(&ev))
		assert.True(t, bytes.Equal(want.Bytes(), got.Bytes()), "seed %d", seed)
		assert.Less(t, got.Len(), in.Len())
	}
	r := opened(chromium.NewWriter(io.Discard))
	var ev chromium.Event
	require.NoError(t, r.Read(&ev))
	require.ErrorIs(t, r.LeaveOut(100, int64(in.Len())+1), io.ErrUnexpectedEOF, "the input has become shorter")
	require.ErrorIs(t, r.LeaveOut(100, 200), io.ErrUnexpectedEOF, "errors stick")
}
