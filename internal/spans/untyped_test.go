package spans

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest/recorded"
	"github.com/tracefix/tracefix/profile"
)

// A recording whose runtime called each sample external has the same times in managed code after a
// conversion to Chromium JSON and to speedscope, also where only events told that a thread waited for a lock.
func TestUntypedStays(t *testing.T) {
	data := recorded.External(t, bytes.NewReader(unpack(t, "../../testdata/chain.nettrace.zst")))
	p, _, err := load.Profile(context.Background(), opener(data), nil)
	require.NoError(t, err)
	require.True(t, p.Meta.Untyped)
	free := managed(p)
	for _, th := range p.Threads { // waits from 0.5 s to 1 s, one of them between two samples
		th.Locked = []profile.Interval{{From: 0.5e9, To: 0.8e9}, {From: 0.8e9 + 1, To: 0.8e9 + 2}, {From: 0.9e9, To: 1e9}}
	}
	want := managed(p)
	require.Less(t, want, free-1e8)
	require.Greater(t, want, int64(5e9))

	own := readBytes(t, ownBytes(t, p), nil)
	assert.True(t, own.Profile.Meta.Untyped)
	assert.Contains(t, own.Profile.Meta.Notes, profile.UntypedNote)
	assert.Zero(t, own.Facts.Untold)
	assert.InEpsilon(t, want, managed(own.Profile), 0.005)

	var b bytes.Buffer
	require.NoError(t, export.Speedscope(&b, p, export.Options{}))
	as, err := Read(context.Background(), opener(b.Bytes()), &Options{Events: func(open func() (io.ReadCloser, error), _ func(*chromium.FormatError), frame func(*chromium.StackFrame) error) (Source, error) {
		return NewSpeedscopeReader(open, nil, frame)
	}})
	require.NoError(t, err)
	assert.True(t, as.Profile.Meta.Untyped)
	assert.InEpsilon(t, want, managed(as.Profile), 0.005)

	// Of one that told its types nothing is to be guessed.
	assert.NotContains(t, string(ownBytes(t, loadChain(t))), "untyped")
}

// managed is the time that threads of p are held to have been in managed code, ns.
func managed(p *profile.Profile) (ns int64) {
	timing := p.Timing()
	for _, th := range p.Threads {
		for st := range timing.Stretches(th) {
			if st.Type.OnCPU() {
				ns += st.Nanos()
			}
		}
	}
	return ns
}

// Numbers that tracefix does not write are not believed.
func TestReadLocked(t *testing.T) {
	assert.Equal(t, []profile.Interval{{From: 10, To: 15}, {From: 15, To: 16}}, readLocked([]int64{10, 5, 0, 1}))
	for _, list := range [][]int64{nil, {1}, {-1, 5}, {0, 0}, {0, -5}, {math.MaxInt64, 1}, {1, math.MaxInt64}, {1, 1, math.MaxInt64 - 1, 1}} {
		assert.Nil(t, readLocked(list), "%v", list)
	}
}
