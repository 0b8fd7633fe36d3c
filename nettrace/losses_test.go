package nettrace

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lossesOf reads a file and returns its events, the losses without their offsets, and the Stats.
func lossesOf(t *testing.T, data []byte) (events []string, losses []Loss, s Stats) {
	r, err := NewReader(bytes.NewReader(data), warnings(t))
	require.NoError(t, err)
	events, err = describeAll(t, r)
	require.Equal(t, io.EOF, err)
	for _, l := range r.Losses() {
		l.Offset, l.thread = 0, nil
		losses = append(losses, l)
	}
	return events, losses, r.Stats()
}

// lossyV6 is a file of v6 that loses events in each way in which it can be told.
func lossyV6(t *testing.T) []byte {
	file := unhex(t, knownV6)
	head, metadata := 20+4+0x35, 4+0x28
	file = file[:head+metadata] // with the definition of event 1
	row := func(index, process, id byte) []byte { return []byte{5, 0, index, 2, process, 3, id} }
	events := func(times []byte, numbers ...byte) []byte {
		b := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
		last := byte(0)
		for i, n := range numbers {
			if i == 0 {
				b = append(b, 0xc7, 1, n-1, 1, 3, 1, times[i], 1, 7)
			} else {
				b = append(b, 0x42, n-numbers[i-1]-1, 1, 3, times[i]-last, 7)
			}
			last = times[i]
		}
		return b
	}
	point := func(time, flags byte, pairs ...byte) []byte {
		b := append(le32(le64(nil, uint64(time)), uint32(flags)), byte(len(pairs)/2), 0, 0, 0)
		return append(b, pairs...)
	}
	file = blockV6(file, kindThread, append(row(1, 42, 77), row(2, 43, 78)...))
	file = blockV6(file, kindEvent, events([]byte{10, 20}, 3, 7)) // 2 in front of the first, 3 between
	file = blockV6(file, kindSequencePoint, point(30, 0, 1, 9, 2, 4))
	file = blockV6(file, kindSequencePoint, point(40, 0, 1, 10)) // another one before the next event
	file = blockV6(file, kindEvent, events([]byte{50}, 12))
	file = blockV6(file, kindRemoveThread, []byte{1, 17, 2, 5})
	file = blockV6(file, kindSequencePoint, point(60, 1))
	file = blockV6(file, kindThread, row(1, 42, 77))
	file = blockV6(file, kindEvent, events([]byte{70}, 1))
	file = blockV6(file, kindRemoveThread, []byte{1, 3}) // behind the last sequence point
	return append(file, 0, 0, 0, 0)
}

// A copy tells of all lost events that the file tells of, wherever it does.
func TestCopyTellsLosses(t *testing.T) {
	data := lossyV6(t)
	events, want, stats := lossesOf(t, data)
	require.Equal(t, uint64(2+3+2+4+1+1+5+1+2), stats.Lost)
	copied := rewrite(t, data)
	again, losses, copiedStats := lossesOf(t, copied)
	assert.Len(t, again, len(events))
	assert.Equal(t, stats.Lost, copiedStats.Lost)
	assert.Equal(t, stats.LostGaps, copiedStats.LostGaps)
	require.Len(t, losses, len(want))
	for i := range want {
		a, b := &want[i], &losses[i]
		assert.Equal(t, []any{a.CaptureThreadID, a.ProcessID, a.Count, a.After == a.Before}, []any{b.CaptureThreadID, b.ProcessID, b.Count, b.After == b.Before}, "loss %d", i)
	}
	assert.Equal(t, copied, rewrite(t, copied), "a copy of the copy")
}

// What was lost in front of an event that is left out stays lost.
func TestCopyTellsLossesOfDroppedEvents(t *testing.T) {
	for name, data := range map[string][]byte{"v6": lossyV6(t), "v4": lossyV4(t)} {
		t.Run(name, func(t *testing.T) {
			_, _, stats := lossesOf(t, data)
			require.NotZero(t, stats.Lost)
			for keep := range 2 {
				r, err := NewReader(bytes.NewReader(data), nil)
				require.NoError(t, err)
				var out bytes.Buffer
				w, err := NewWriter(&out, r.Header())
				require.NoError(t, err)
				n := 0
				require.NoError(t, Copy(w, r, func(*Event) bool { n++; return n%2 == keep }))
				require.NoError(t, w.Close())
				_, _, copied := lossesOf(t, out.Bytes())
				assert.Equal(t, stats.Lost, copied.Lost)
			}
		})
	}
}

// lossyV4 is a file of v4 with gaps in the numbers of two threads.
func lossyV4(t *testing.T) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	m := &Metadata{Provider: "P", EventID: 1}
	for i := range 6 {
		require.NoError(t, w.Write(&Event{Metadata: m, Time: int64(i + 1), CaptureThreadID: uint64(i%2 + 1), Lost: uint32(i)}))
	}
	w.AddLoss(1, 7)
	require.NoError(t, w.SequencePoint())
	w.AddLoss(1, 2)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// A Writer tells the losses of any number of threads.
func TestAddLoss(t *testing.T) {
	for _, version := range []int{4, 6} {
		for threads := range 300 {
			var out bytes.Buffer
			w, err := NewWriter(&out, &Header{Version: version, Frequency: 1e9, PointerSize: 8, ProcessID: 42})
			require.NoError(t, err)
			for i := range threads {
				w.AddLoss(uint64(i+1), 2)
			}
			require.NoError(t, w.Close())
			r, err := NewReader(&out, warnings(t))
			require.NoError(t, err)
			var ev Event
			require.Equal(t, io.EOF, r.Read(&ev))
			if version == 6 { // in v4 what a thread without events numbers from is not known
				require.EqualValues(t, 2*threads, r.Stats().Lost)
			}
		}
	}
}

// A thread whose first events were lost is a thread of its own, also where its number is the next of
// one whose id differs by a bit: where threads come and go by the hundred, one such is always there.
func TestLostFirstEvents(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	m := &Metadata{Provider: "P", EventID: 1}
	for i, ev := range []Event{
		{ThreadID: 0x100, CaptureThreadID: 0x100}, {ThreadID: 0x100, CaptureThreadID: 0x100},
		{ThreadID: 0x180, CaptureThreadID: 0x180, Lost: 2}, {CaptureThreadID: 0x140, Lost: 2},
	} {
		ev.Metadata, ev.Time = m, int64(i+1)
		require.NoError(t, w.Write(&ev))
	}
	require.NoError(t, w.Close())
	r, err := NewReader(&out, warnings(t))
	require.NoError(t, err)
	var threads []uint64
	for ev := (Event{}); r.Read(&ev) == nil; {
		threads = append(threads, ev.CaptureThreadID)
	}
	assert.Equal(t, []uint64{0x100, 0x100, 0x180, 0x140}, threads)
	assert.Zero(t, r.Stats().Defects)
}
