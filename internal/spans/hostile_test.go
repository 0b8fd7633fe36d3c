package spans

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// A trace with a thread in each event costs a small multiple of its size.
func TestManyThreads(t *testing.T) {
	const n = 100_000
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"ph":"B","name":"a","ts":%d,"pid":1,"tid":%d},`, i, i)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr, err := Read(context.Background(), open, &Options{Lean: true})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, tr.Facts.Threads, n)
	per := (after.TotalAlloc - before.TotalAlloc) / n
	t.Logf("%d bytes are allocated for a thread, in all", per)
	assert.Less(t, per, uint64(1300))
}

// cutTrace is a thread whose stack is cut again and again, below so many outer frames.
func cutTrace(t *testing.T, b *bytes.Buffer, outer, samples int) {
	d := tracetest.NewDotnetWriter(b)
	d.Thread(1)
	for i := range samples {
		s := stack(b90)
		if i%2 == 1 {
			s = stack(d120)
		}
		d.Sample(float64(10+i), 1, append(slices.Repeat([]string{"o"}, outer), withRoots(1, s[max(0, len(s)-100):])...))
	}
	require.NoError(t, d.Close())
}

// What a transition costs does not grow with the frames that stay open through it.
func TestOuterFramesCostNothing(t *testing.T) {
	work := func(outer int) (frames int) {
		var b bytes.Buffer
		cutTrace(t, &b, outer, 21)
		tr := readBytes(t, b.Bytes(), nil)
		pass.FixStacks(tr.Profile, 0.9)
		rw := &rewriter{Trace: tr, ctx: context.Background()}
		zones := rw.plan()
		require.NotEmpty(t, zones)
		for _, z := range zones {
			m := rw.machine(z)
			frames += len(m.oldRA.list) + len(m.newRB.list)
		}
		return frames
	}
	assert.Equal(t, work(10), work(10_000))
}

// What is known of a stack is not looked for again in each that is one frame deeper.
func TestStitchedLooksOnce(t *testing.T) {
	d := &reading{Trace: &Trace{table: &frameTable{table: profile.NewTable(), frames: make([]frame, 4)}}}
	d.table.frames[2].kind = kindStitch
	var s [4]profile.StackID
	for i := range s {
		at := profile.StackID(0)
		if i > 0 {
			at = s[i-1]
		}
		s[i] = d.table.table.Push(at, profile.FrameID(i))
	}
	assert.False(t, d.stitched(s[0]))
	d.table.frames[0].kind = kindStitch // not to be looked at
	assert.False(t, d.stitched(s[1]))
	assert.True(t, d.stitched(s[3]))
}

func TestCovers(t *testing.T) {
	zones := []*zone{{start: 3, last: 5}, {start: 6, last: 6}, {start: 9, last: 12}}
	for at := range int64(15) {
		want := slices.ContainsFunc(zones, func(z *zone) bool { return z.start <= at && at <= z.last })
		assert.Equal(t, want, covers(zones, at), at)
	}
	assert.False(t, covers(nil, 1))
}

// Times at the ends of what a number holds do not make the trace end before it begins.
func TestAbsurdTimes(t *testing.T) {
	tr := readBytes(t, []byte(`[{"ph":"X","name":"a","ts":9000000000000000,"dur":9000000000000000,"pid":1,"tid":1},`+
		`{"ph":"X","name":"b","ts":-9000000000000000,"dur":1,"pid":1,"tid":1}]`), &Options{Weighted: true})
	assert.Less(t, tr.Facts.First, tr.Facts.Last)
	require.Len(t, tr.Profile.Threads, 1)
	th := tr.Profile.Threads[0]
	require.Equal(t, 2, th.Samples.Len())
	for _, s := range th.Samples.All() {
		assert.Positive(t, s.Dur)
		assert.LessOrEqual(t, th.First, s.Time)
		assert.LessOrEqual(t, s.Time+s.Dur, th.Last)
	}

	const year2100 int64 = 4_102_444_800_000_000 // µs, as of tools that count from 1970
	tr = readBytes(t, fmt.Appendf(nil, `[{"ph":"X","name":"a","ts":%d,"dur":7,"pid":1,"tid":1}]`, year2100), nil)
	assert.EqualValues(t, year2100*1000, tr.Facts.First)
	assert.EqualValues(t, year2100*1000+7000, tr.Facts.Last)
}

// Ends may be earlier than the begins behind them. What is put in keeps to their time, also
// if the ends before it are passed on unread, however many frames are open outside.
func TestEndsBeforeBegins(t *testing.T) {
	begin := regexp.MustCompile(`("ph": "B", "ts": [0-9]+)`)
	for outer := 24; outer < 40; outer++ {
		var b bytes.Buffer
		cutTrace(t, &b, outer, 10)
		in := begin.ReplaceAll(b.Bytes(), []byte("$1.5"))
		require.False(t, bytes.Equal(b.Bytes(), in))
		tr := readBytes(t, in, nil)
		newFixer(tr.Profile).fix(func(_ *profile.Thread, s profile.Sample) []string {
			return append([]string{profile.Bridge}, names(tr.Profile.Table, s.Stack)...)
		})
		checkSpans(t, parse(t, rewriteBytes(t, tr, true))) // compares with what is read throughout
	}
}

// A speedscope file of many small profiles costs a small multiple of its size, not a large buffer for each.
func TestManyProfiles(t *testing.T) {
	const n = 2000
	one := `{"type":"evented","name":"t","unit":"none","startValue":0,"endValue":5,"events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":5}]}`
	in := `{"shared":{"frames":[{"name":"a"}]},"profiles":[` + strings.Repeat(one+",", n-1) + one + "]}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list, defect, err := events(t, in)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Nil(t, defect)
	assert.Len(t, list, 3*n)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(in)))
}
