package load

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A compressed file that was cut gives the tracks of what could be unpacked.
func TestTracksOfCutGzip(t *testing.T) {
	in, err := opener(t, "dotnet10/http-full.nettrace")()
	require.NoError(t, err)
	defer in.Close()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = io.Copy(z, in)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	cut := b.Bytes()[:b.Len()*3/4]

	told := 0
	p, _, err := Profile(context.Background(), func() (io.ReadCloser, error) {
		return gzip.NewReader(bytes.NewReader(cut))
	}, &Options{Tracks: Groups, Warn: func(*nettrace.FormatError) { told++ }})
	require.NoError(t, err)
	assert.Positive(t, told)
	assert.NotEmpty(t, p.Tracks)
}

// A limit that is reached and a caller that gives up are no damage.
func TestLimitIsNoDamage(t *testing.T) {
	b := smallTrace(t)
	for _, err := range []error{input.ErrTooLarge, context.DeadlineExceeded} {
		_, _, got := Profile(context.Background(), func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(err))), nil
		}, nil)
		assert.ErrorIs(t, got, err)
	}
}

// A thread has no more breaks than samples: births and losses are both as many as a file
// may hold.
func TestBreaksOfManyLosses(t *testing.T) {
	const threads, losses = 200, 3000
	sample := &nettrace.Metadata{Provider: "Microsoft-DotNETCore-SampleProfiler"}
	created := &nettrace.Metadata{Provider: nettrace.ProviderRuntime, EventID: 85}
	stack := nettrace.NewStack([]uint64{0x10})
	b := written(t, 4, func(write func(nettrace.Event)) {
		for i := range threads {
			write(nettrace.Event{ThreadID: uint64(100 + i), CaptureThreadID: 7, Metadata: sample, Payload: []byte{2, 0, 0, 0}, Stack: stack})
		}
		for range losses {
			write(nettrace.Event{ThreadID: 7, CaptureThreadID: 7, Metadata: sample, Payload: []byte{2, 0, 0, 0}, Lost: 1, Stack: stack})
		}
		for i := range threads {
			p := binary.LittleEndian.AppendUint32(make([]byte, 24), uint32(100+i))
			write(nettrace.Event{ThreadID: 8, CaptureThreadID: 8, Metadata: created, Payload: p})
		}
	})
	p, _, err := Profile(context.Background(), bytesOpener(b), nil)
	require.NoError(t, err)
	require.Len(t, p.Losses, losses)
	breaks, samples := 0, 0
	for _, th := range p.Threads {
		breaks += len(th.Breaks)
		samples += th.Samples.Len()
	}
	assert.Equal(t, threads+losses, samples)
	assert.Equal(t, threads+losses-1, breaks, "one behind each sample but the last")
	assert.Equal(t, []int64{threads + 1}, p.Threads[0].Breaks)
}

// A stop without a start does not look for one among all that is open.
func TestStopsWithoutStart(t *testing.T) {
	for _, tt := range []struct {
		group       string
		start, stop int
		payload     []byte // of the starts
	}{
		{"gc", runtimeevents.IDGCStart, runtimeevents.IDGCEnd, make([]byte, 16)},
		{"exceptions", runtimeevents.IDExceptionThrown, runtimeevents.IDExceptionCatchStop, []byte{0, 0}},
	} {
		l := newLoader(&Options{Tracks: []string{tt.group}})
		k := newTracker(context.Background(), l, nil)
		th := l.threadOf(1, 1)
		event := func(id int, payload []byte) {
			k.event(&nettrace.Event{Metadata: &nettrace.Metadata{Index: -1, Provider: nettrace.ProviderRuntime, Source: nettrace.SourceRuntime, EventID: id}, Payload: payload}, 1, th)
		}
		for range 3 {
			event(tt.start, tt.payload)
		}
		require.Len(t, k.order, 1)
		open := k.order[0].open
		open[0], open[1] = -1, -1 // not to be looked at
		assert.NotPanics(t, func() { event(tt.stop, []byte{9, 0, 0, 0}) }, tt.group)
	}
}

// What a row tells is of its own start, also where many are of one time and thread.
func TestStartsOfOneTime(t *testing.T) {
	const n = 5000
	m := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "WorkStart", Opcode: 1}
	l := newLoader(&Options{Tracks: []string{"activities"}})
	a := newActivities(newTracker(context.Background(), l, nil))
	for i := range n {
		ev := &nettrace.Event{Metadata: m, Opcode: 1, Version: 1, Payload: binary.LittleEndian.AppendUint32(nil, uint32(i))}
		ev.ActivityID[0], ev.ActivityID[1], ev.ActivityID[15] = byte(i), byte(i>>8), 0xff
		a.event(ev, 5, l.threadOf(1, 1))
	}
	a.arrange(10)
	payloads := payloadReader{log: &a.payloads}
	for row := range n {
		ev := payloads.read(a.at(row).payload - 1)
		require.Equal(t, m, ev.Metadata)
		require.Equal(t, 1, ev.Version)
		require.EqualValues(t, row, binary.LittleEndian.Uint32(ev.Payload))
	}
	require.Len(t, a.tracks, 1)
}

func TestPayloadLog(t *testing.T) {
	var l payloadLog
	var places []int64
	var metas [5]nettrace.Metadata
	payload := func(i int) (b []byte) {
		for k := range i % 40 * (i % 7) {
			b = append(b, byte(k*i)&byte(-(k*i>>3)&1))
		}
		if i%1000 == 0 {
			b = append(b, make([]byte, 200_000)...)
			b[len(b)-1] = 1
		}
		return b
	}
	for i := range 20_000 {
		places = append(places, l.add(&nettrace.Event{Metadata: &metas[i%5], Version: i % 3, Payload: payload(i)}))
	}
	r := payloadReader{log: &l}
	for i, at := range places {
		ev := r.read(at)
		require.Same(t, &metas[i%5], ev.Metadata)
		require.Equal(t, i%3, ev.Version)
		require.True(t, bytes.Equal(payload(i), ev.Payload), i)
	}
}

// A process may begin as many programs as a file can tell of: each costs little more than its event.
func TestManyExecs(t *testing.T) {
	const programs = 20_000
	create := &nettrace.Metadata{Provider: "Universal.System", EventID: systemProcessCreate, Name: "ProcessCreate"}
	exit := &nettrace.Metadata{Provider: "Universal.System", EventID: systemProcessExit, Name: "ProcessExit"}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	row, main := &nettrace.Thread{Index: 1, ProcessID: 7}, &nettrace.Thread{Index: 2, ProcessID: 7, ID: 70}
	for _, exits := range []bool{false, true} {
		b := written(t, 6, func(write func(nettrace.Event)) {
			for i := range programs {
				write(nettrace.Event{Thread: row, Metadata: create, Payload: []byte{7, 1, 0, 'a' + byte(i&1), 0, 0}})
				write(nettrace.Event{Thread: main, Metadata: cpu, Payload: []byte{1}, Stack: nettrace.NewStack([]uint64{0x10})})
				if exits {
					write(nettrace.Event{Thread: row, Metadata: exit})
				}
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, _, err := Profile(context.Background(), bytesOpener(b), nil)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		assert.Len(t, p.Processes, programs)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
	}
}
