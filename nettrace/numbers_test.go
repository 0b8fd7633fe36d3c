package nettrace

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbered is a file of v4 of three threads and four regions, each of a stack and a block of events.
func numbered(t *testing.T) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8, SyncQPC: 1})
	require.NoError(t, err)
	m := &Metadata{Provider: "P", Name: "E", EventID: 1}
	for i := range 40 {
		require.NoError(t, w.Write(&Event{Time: int64(10 + i), ThreadID: 7, CaptureThreadID: uint64(i % 3), Metadata: m, Stack: NewStack([]uint64{uint64(i / 10)})}))
		if i%10 == 9 {
			require.NoError(t, w.SequencePoint())
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// eventsByNumber are the events of a file, sorted.
func eventsByNumber(t *testing.T, data []byte) (keys []string, stats Stats, err error) {
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var ev Event
	for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
		keys = append(keys, fmt.Sprint(ev.CaptureThreadID, ev.SequenceNumber, ev.Time))
	}
	slices.Sort(keys)
	return keys, r.Stats(), err
}

// TestBlocksOutOfOrder holds that blocks which stand in another order cost no event, tell no loss and
// are told: an event is left out only where its number came before.
func TestBlocksOutOfOrder(t *testing.T) {
	for name, data := range map[string][]byte{"recorded": testFile(t, "arraytypes.nettrace.gz"), "regions": numbered(t)} {
		spans, kinds := blocksOf(t, data)
		all, _, _ := eventsByNumber(t, data)
		for i := range spans {
			for j := range i {
				moved := slices.Clone(spans)
				moved[i], moved[j] = moved[j], moved[i]
				events, stats, err := eventsByNumber(t, arrange(t, data, spans, moved))
				assert.Equal(t, all, events, "%s: blocks %d and %d", name, j, i)
				assert.Zero(t, stats.Lost, "%s: blocks %d and %d", name, j, i)
				if kinds[i] == kindEvent && kinds[j] == kindEvent {
					assert.ErrorIs(t, err, ErrDamaged, "%s: blocks %d and %d", name, j, i)
				}
			}
		}
	}
}

// An event from before a sequence point that stands behind it has none of the stacks there, which
// have the same ids.
func TestStacksOutOfPlace(t *testing.T) {
	data := unhex(t, knownV4)
	spans, _ := blocksOf(t, data) // definitions, stacks, events, sequence point
	other := bytes.Clone(data[spans[1][0]:spans[1][1]])
	i := bytes.Index(other, []byte{0x10, 0x10, 0, 0})
	require.Positive(t, i)
	other[i] = 0x30
	data = slices.Concat(data, other)
	spans = append(spans, [2]int{len(data) - len(other), len(data)})
	moved := arrange(t, data, spans, [][2]int{spans[0], spans[1], spans[3], spans[4], spans[2]})
	r, err := NewReader(bytes.NewReader(append(moved, tagNull)), nil)
	require.NoError(t, err)
	events := 0
	for ev := (Event{}); r.Read(&ev) == nil; events++ {
		assert.Zero(t, ev.Stack.Len())
	}
	assert.Equal(t, 2, events)
	assert.Zero(t, r.Stats().Lost)
	assert.EqualValues(t, 2, r.Stats().UnknownStacks)
}

// TestGaps holds that a number is new once, also where numbers begin again behind 2^32.
func TestGaps(t *testing.T) {
	for _, last := range []uint32{1000, 601, 600, 300, 3, 0} { // the last number of all
		first := last - 600
		s := numbering{last: first - 1}
		s.skip(300, 1)
		s.last += 301
		s.skip(299, 2)
		s.last += 300
		require.Equal(t, last, s.last)
		for _, step := range []uint32{7, 1} {
			for n := uint32(0); n <= 600; n += step {
				loss, ok := s.take(first + n)
				came := n == 300 || n == 600 || step == 1 && n%7 == 0
				require.Equal(t, !came, ok, "%d of %d", n, last)
				if ok {
					require.Equal(t, 1+int(n/301), loss)
				}
			}
		}
		require.Empty(t, s.gaps)
	}
}

// Behind damage, ids that stand for other stacks than before are those of another region: a sequence point
// was lost, and events that refer to the rest have no stacks.
func TestStacksOfAnotherRegion(t *testing.T) {
	data := unhex(t, knownV4)
	spans, _ := blocksOf(t, data) // definitions, stacks, events, sequence point
	for _, other := range []uint64{0x1010, 0x3030} {
		file := slices.Concat(data[:spans[0][1]], bytes.Repeat([]byte{0xee}, 36), data[spans[1][0]:spans[1][1]])
		stack := le64(le64(le32(le32(le32(nil, 2), 1), 16), other), 0x2020)
		file = append(objectV4(file, "StackBlock", stack), data[spans[2][0]:]...)
		events, r, err := read(t, file)
		require.ErrorIs(t, err, ErrDamaged)
		require.Len(t, events, 2)
		assert.Equal(t, other == 0x3030, r.Stats().UnknownStacks == 1, "%x", other) // the second event has stack 1
	}
}
