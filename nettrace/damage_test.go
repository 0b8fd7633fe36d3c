package nettrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read reads what there is to read and checks what must hold for any input.
func read(t testing.TB, data []byte) (events []string, r *Reader, err error) {
	var warned int
	r, err = NewReader(bytes.NewReader(data), &Options{Warn: func(e *FormatError) {
		warned++
		require.GreaterOrEqual(t, e.Offset, int64(0))
		require.LessOrEqual(t, e.Offset, int64(len(data)))
		require.NotEmpty(t, e.Where)
		require.Error(t, e.Err)
	}})
	if err != nil {
		var fe *FormatError
		require.ErrorAs(t, err, &fe)
		return nil, nil, err
	}
	events, err = describeAll(t, r)
	require.Equal(t, err, r.Read(&Event{}), "the error does not stick")
	s := r.Stats()
	require.Equal(t, int64(len(events)), s.Events)
	require.LessOrEqual(t, s.LostBytes, int64(len(data))*2)
	require.LessOrEqual(t, s.PayloadBytes, int64(len(data)))
	if err != io.EOF {
		var fe *FormatError
		require.ErrorAs(t, err, &fe)
		require.True(t, errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrDamaged), "%v", err)
		if errors.Is(err, ErrDamaged) {
			require.NotZero(t, warned)
		}
	}
	return events, r, err
}

// small are whole files of all versions that tests can afford to cut anywhere.
func small(t testing.TB) map[string][]byte {
	files := map[string][]byte{
		"v4 real":  testFile(t, "executioncheckpoints.nettrace"),
		"v3 real":  testFile(t, "tracelogging.netperf"),
		"v4 known": unhex(t, knownV4),
		"v6 known": unhex(t, knownV6),
		"v2":       oldFile(2),
		"v1":       oldFile(1),
		"v6 real":  realV6(t, 40),
	}
	return files
}

// Every prefix of a file gives the events that are whole in it, and says that the rest is missing.
func TestEveryPrefix(t *testing.T) {
	for name, data := range small(t) {
		t.Run(name, func(t *testing.T) {
			all, _, err := read(t, data)
			require.Equal(t, io.EOF, err)
			seen := 0
			for n := range data {
				events, _, err := read(t, data[:n])
				require.Error(t, err)
				require.NotEqual(t, io.EOF, err, "a file cut at %d passes for whole", n)
				require.GreaterOrEqual(t, len(all), len(events))
				require.GreaterOrEqual(t, len(events), seen, "cut at %d: fewer events than cut before", n)
				for i := range events {
					require.Equal(t, all[i], events[i], "cut at %d", n)
				}
				seen = len(events)
			}
			assert.Equal(t, len(all), seen, "the last events need the end of the file")
		})
	}
}

// Cuts of larger files lose at most the block that was cut.
func TestPrefixOfLargeFiles(t *testing.T) {
	for _, name := range []string{"probe9.nettrace.gz", "arraytypes.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		data := testFile(t, name)
		all, _, err := read(t, data)
		require.Equal(t, io.EOF, err)
		seen := 0
		for n := 1000; n < len(data); n += len(data)/23 + 1 {
			events, _, err := read(t, data[:n])
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.GreaterOrEqual(t, len(events), seen)
			seen = len(events)
		}
		assert.Greater(t, seen, len(all)/2)
	}
}

// One flipped bit costs at most some events of one block, never the rest.
func TestBitFlips(t *testing.T) {
	for name, data := range small(t) {
		t.Run(name, func(t *testing.T) {
			for at := range data {
				for _, bit := range []byte{1, 0x80} {
					hit := bytes.Clone(data)
					hit[at] ^= bit
					read(t, hit)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"probe9.nettrace.gz", "arraytypes.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		t.Run(name, func(t *testing.T) {
			data := testFile(t, name)
			all, _, _ := read(t, data)
			rounds, lost := 40, 0
			for range rounds {
				hit := bytes.Clone(data)
				at := 200 + rng.IntN(len(data)-200)
				hit[at] ^= 1 << rng.IntN(8)
				events, r, err := read(t, hit)
				if s := r.Stats(); err == io.EOF && s.Lost == 0 && s.UnknownMeta == 0 {
					assert.GreaterOrEqual(t, len(events), len(all), "hit at %d: events are missing without a word", at)
				}
				lost += max(0, len(all)-len(events))
				require.NotNil(t, r)
			}
			t.Logf("%d of %d events lost on average", lost/rounds, len(all))
		})
	}
}

// A hole of zeros costs the blocks it touches; what follows is found again.
func TestHole(t *testing.T) {
	for _, name := range []string{"probe9.nettrace.gz", "arraytypes.nettrace.gz"} {
		data := testFile(t, name)
		all, _, _ := read(t, data)
		for _, at := range []int{50_000, 100_003, 200_001, 300_000} {
			hit := bytes.Clone(data)
			clear(hit[at : at+8192])
			events, r, err := read(t, hit)
			require.ErrorIs(t, err, ErrDamaged)
			assert.Greater(t, len(events), len(all)/2, "%s: hole at %d", name, at)
			assert.Equal(t, all[len(all)-1], events[len(events)-1], "%s: hole at %d: the end is lost", name, at)
			assert.NotZero(t, r.Stats().LostBytes)
			assert.Zero(t, r.Stats().Lost, "%s: hole at %d: the runtime lost none", name, at)

			// The same, but the bytes are gone: blocks behind are misaligned.
			for cut := 4090; cut < 4094; cut++ {
				hit = append(bytes.Clone(data[:at]), data[at+cut:]...)
				events, r, err = read(t, hit)
				require.ErrorIs(t, err, ErrDamaged)
				assert.Zero(t, r.Stats().Lost, "%s: %d bytes missing at %d: the runtime lost none", name, cut, at)
				assert.Equal(t, all[len(all)-1], events[len(events)-1], "%s: %d bytes missing at %d: the end is lost", name, cut, at)
			}
		}
	}
	data := testFile(t, "v6-nosymbols.nettrace.gz")
	hit := bytes.Clone(data)
	clear(hit[20:4096]) // the Trace block and more
	_, _, err := read(t, hit)
	require.Error(t, err)
}

// Zeros among the frames of a stack cost that stack; its samples stay, and so do the other stacks.
func TestHoleInStack(t *testing.T) {
	for _, version := range []int{4, 6} {
		var out bytes.Buffer
		w, err := NewWriter(&out, &Header{Version: version, Frequency: 1e9, PointerSize: 8, SyncQPC: 1})
		require.NoError(t, err)
		deep := make([]uint64, 60)
		for i := range deep {
			deep[i] = 0x7fff12345678 + uint64(i)
		}
		m := &Metadata{Provider: "P", Name: "E", EventID: 1}
		for i, frames := range [][]uint64{{0x7fff00001111}, deep, {0x7fff00002222}, deep, {}} {
			require.NoError(t, w.Write(&Event{Time: int64(100 + i), ThreadID: 9, ProcessID: 8, Metadata: m, Stack: NewStack(frames)}))
		}
		require.NoError(t, w.Close())
		data := out.Bytes()
		first := bytes.Index(data, binary.LittleEndian.AppendUint64(nil, deep[0]))
		require.Positive(t, first)
		stacks := func(data []byte) (depths []int, last error) {
			r, err := NewReader(bytes.NewReader(data), nil)
			require.NoError(t, err)
			var ev Event
			for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
				depths = append(depths, ev.Stack.Len())
			}
			if errors.Is(err, ErrDamaged) && !onlySum(err) {
				assert.Positive(t, r.Stats().LostBytes)
			}
			return depths, err
		}
		depths, err := stacks(data)
		require.Equal(t, io.EOF, err)
		require.Equal(t, []int{1, 60, 1, 60, 0}, depths)
		for at := range len(deep)*8 - zeroRun {
			hit := bytes.Clone(data)
			clear(hit[first+at : first+at+zeroRun])
			depths, err := stacks(hit)
			require.ErrorIs(t, err, ErrDamaged, "version %d, hole at frame byte %d", version, at)
			require.Equal(t, []int{1, 0, 1, 0, 0}, depths, "version %d, hole at frame byte %d", version, at)
		}
		for _, at := range []int{0, 8, 100} { // some frames of address 0 are none
			hit := bytes.Clone(data)
			clear(hit[first+at : first+at+zeroRun-8])
			depths, err := stacks(hit)
			require.True(t, onlySum(err))
			require.Equal(t, 60, depths[1])
		}
	}
}

// onlySum reports whether nothing but the checksum of a Writer tells of damage.
func onlySum(err error) bool {
	var e *FormatError
	return errors.As(err, &e) && e.Where == sumWhere
}

// TestWrittenIsChecked holds that whatever happens to a file of a Writer is told: blocks that are
// dropped or come twice, pages of zeros or 0xFF, flipped bits. What is not told changes nothing.
func TestWrittenIsChecked(t *testing.T) {
	for _, name := range []string{"probe9.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		r, err := NewReader(bytes.NewReader(testFile(t, name)), nil)
		require.NoError(t, err)
		var out bytes.Buffer
		w, err := NewWriter(&out, r.Header())
		require.NoError(t, err)
		require.NoError(t, Copy(w, r, nil))
		list := strings.Repeat("a repair;", 9000)
		require.NoError(t, w.Note("Repairs", list))
		require.NoError(t, w.Close())
		data := out.Bytes()
		all, r, err := read(t, data)
		require.Equal(t, io.EOF, err)
		require.Equal(t, list, r.Note("Repairs"))

		tried, silent := 0, 0
		try := func(what string, at int, hit []byte) {
			tried++
			r, err := NewReader(bytes.NewReader(hit), nil)
			var ev Event
			for err == nil {
				err = r.Read(&ev)
			}
			if err != io.EOF {
				return
			}
			silent++
			events, r, _ := read(t, hit)
			require.Equal(t, all, events, "%s: %s at offset %d is not told", name, what, at)
			require.Equal(t, list, r.Note("Repairs"), "%s: %s at offset %d is not told", name, what, at)
			require.GreaterOrEqual(t, at, len(data)-256, "%s: %s at offset %d is not told", name, what, at)
		}
		spans, kinds := blocksOf(t, data)
		for i, s := range spans {
			if kinds[i] != kindTrace && kinds[i] != kindEnd {
				try("a dropped block", s[0], append(bytes.Clone(data[:s[0]]), data[s[1]:]...))
				try("a doubled block", s[0], append(bytes.Clone(data[:s[1]]), data[s[0]:]...))
				if name[0] != 'v' {
					try("a dropped block, aligned", s[0], without(t, data, spans, i))
				}
			}
		}
		for _, fill := range []byte{0, 0xff} {
			for at := 0; at < len(data); at += 3 * 4096 {
				hit := bytes.Clone(data)
				for i := at; i < min(at+4096, len(data)); i++ {
					hit[i] = fill
				}
				try(fmt.Sprintf("a page of %#x", fill), at, hit)
			}
		}
		rng := rand.New(rand.NewPCG(7, 7))
		for i := range 150 {
			at := rng.IntN(len(data))
			if i < 50 {
				at = len(data) - 1 - rng.IntN(256) // in the checksum's own block
			}
			hit := bytes.Clone(data)
			hit[at] ^= 1 << rng.IntN(8)
			try("a flipped bit", at, hit)
		}
		t.Logf("%s: %d of %d changed nothing", name, silent, tried)
		assert.Greater(t, tried, 200)
		assert.Less(t, silent, 50)
	}
}

// blocksOf are the places of the blocks of a whole file.
func blocksOf(t testing.TB, data []byte) (spans [][2]int, kinds []blockKind) {
	at := bytes.Index(data, signatureV4)
	if v6 := at < 0; v6 {
		for at = 20; at < len(data); at = spans[len(spans)-1][1] {
			kind, size := splitV6(data[at:])
			spans, kinds = append(spans, [2]int{at, at + 4 + size}), append(kinds, kind)
		}
		return spans, kinds
	}
	return objectsOf(t, data, at)
}

// objectsOf is blocksOf for a file of v4, from a block on.
func objectsOf(t testing.TB, data []byte, at int) (spans [][2]int, kinds []blockKind) {
	for at < len(data)-1 {
		o, ok := parseObject(data[at:])
		require.True(t, ok)
		end := at + o.size
		if o.kind == kindTrace {
			end += 48
		} else {
			size := int(binary.LittleEndian.Uint32(data[end:]))
			end = (end+4+3)&^3 + size
		}
		require.EqualValues(t, tagEnd, data[end])
		spans, kinds = append(spans, [2]int{at, end + 1}), append(kinds, o.kind)
		at = end + 1
	}
	return spans, kinds
}

// Bytes between two blocks are told, with their place and number, and cost no event. An end in the
// middle is one that was hit: what follows is read.
func TestBytesBetweenBlocks(t *testing.T) {
	type junk struct {
		where string // as the reader calls the place
		bytes []byte
	}
	for _, c := range []struct {
		name string
		junk []junk
	}{
		{"probe9.nettrace.gz", []junk{{"object header", bytes.Repeat([]byte{0xee}, 36)}, {"end tag", []byte{tagNull, 0, 0, 0}}}},
		{"v6-nosymbols.nettrace.gz", []junk{{"block header", bytes.Repeat([]byte{1}, 36)}, {"end of stream", make([]byte, 4)}}},
	} {
		data := testFile(t, c.name)
		spans, _ := blocksOf(t, data)
		all, _, err := read(t, data)
		require.Equal(t, io.EOF, err)
		for _, put := range c.junk {
			for _, at := range []int{spans[len(spans)/4][0], spans[len(spans)/2][0]} {
				hit := slices.Concat(data[:at], put.bytes, data[at:])
				var told []*FormatError
				r, err := NewReader(bytes.NewReader(hit), &Options{Warn: func(e *FormatError) { told = append(told, e) }})
				require.NoError(t, err)
				events, err := describeAll(t, r)
				assert.ErrorIs(t, err, ErrDamaged, "%s: %s at %d", c.name, put.where, at)
				assert.Len(t, events, len(all), "%s: %s at %d", c.name, put.where, at)
				require.NotEmpty(t, told)
				assert.Equal(t, int64(at), told[0].Offset, "%s: %v", c.name, told[0])
				assert.Equal(t, put.where, told[0].Where, "%s: %v", c.name, told[0])
				assert.Equal(t, int64(len(put.bytes)), r.Stats().LostBytes, "%s: %s at %d", c.name, put.where, at)
			}
		}
	}
}

// A block that comes twice is told and changes nothing, whatever its kind; one of events that is
// missing is no loss of the recorder.
func TestBlocksTwiceAndMissing(t *testing.T) {
	for name, data := range map[string][]byte{"v4": testFile(t, "probe9.nettrace.gz"), "v6": testFile(t, "v6-nosymbols.nettrace.gz")} {
		spans, kinds := blocksOf(t, data)
		all, _, err := read(t, data)
		require.Equal(t, io.EOF, err)
		tried := map[blockKind]int{}
		for i, s := range spans {
			kind := kinds[i]
			if tried[kind]++; kind == kindTrace || kind == kindEnd || tried[kind] > 3 {
				continue
			}
			twice := append(append(bytes.Clone(data[:s[1]]), data[s[0]:s[1]]...), data[s[1]:]...)
			events, _, err := read(t, twice)
			require.ErrorIs(t, err, ErrDamaged, "%s: block %d, %s", name, i, kind)
			assert.Equal(t, all, events, "%s: block %d, %s", name, i, kind)
			if kind != kindEvent || name == "v4" && (s[1]-s[0])%4 == 0 {
				continue // only the sequence numbers tell
			}
			_, r, err := read(t, append(bytes.Clone(data[:s[0]]), data[s[1]:]...))
			require.ErrorIs(t, err, ErrDamaged, "%s: block %d is missing", name, i)
			assert.Zero(t, r.Stats().Lost, "%s: block %d is missing", name, i)
		}
		assert.GreaterOrEqual(t, len(tried), 4)
	}
}

// without drops a block of a file of v4.
func without(t *testing.T, data []byte, spans [][2]int, block int) []byte {
	return arrange(t, data, spans, slices.Concat(spans[:block], spans[block+1:]))
}

// arrange has these blocks of a file of v4 in place of all, each aligned where it stands.
func arrange(t *testing.T, data []byte, all, blocks [][2]int) []byte {
	out := bytes.Clone(data[:all[0][0]])
	for _, s := range blocks {
		o, ok := parseObject(data[s[0]:])
		require.True(t, ok)
		body := s[0] + o.size + 4
		out = append(out, data[s[0]:body]...)
		for body%4 != 0 {
			body++
		}
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
		out = append(out, data[body:s[1]]...)
	}
	return append(out, data[all[len(all)-1][1]:]...)
}

// TestMissingEvents holds that a block of events that a recording of the runtime lacks is never
// passed over in silence: as damage where stacks, definitions or a thread's events show that it was
// there, and else as a loss, also in front of a thread's first event.
func TestMissingEvents(t *testing.T) {
	for name, want := range map[string]struct{ damage, loss int }{
		"probe9.nettrace.gz":            {6, 0},
		"arraytypes.nettrace.gz":        {6, 1},
		"executioncheckpoints.nettrace": {1, 0},
	} {
		data := testFile(t, name)
		spans, kinds := blocksOf(t, data)
		all, _, err := read(t, data)
		require.Equal(t, io.EOF, err)
		damage, loss := 0, 0
		for i := range spans {
			if kinds[i] != kindEvent {
				continue
			}
			events, r, err := read(t, without(t, data, spans, i))
			require.Less(t, len(events), len(all))
			if errors.Is(err, ErrDamaged) {
				damage++
				assert.Zero(t, r.Stats().Lost, "%s: block %d: the recorder lost none", name, i)
				continue
			}
			require.Equal(t, io.EOF, err)
			assert.EqualValues(t, len(all)-len(events), r.Stats().Lost, "%s: block %d", name, i)
			loss++
		}
		assert.Equal(t, want, struct{ damage, loss int }{damage, loss}, name)
	}
}

// TestFirstNumber holds that events in front of a thread's first one are told as lost, before an
// event and at a sequence point.
func TestFirstNumber(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8, SyncQPC: 1})
	require.NoError(t, err)
	m := &Metadata{Provider: "P", Name: "E", EventID: 1}
	require.NoError(t, w.Write(&Event{Time: 5, ThreadID: 1, CaptureThreadID: 1, Metadata: m}))
	require.NoError(t, w.Write(&Event{Time: 6, ThreadID: 2, CaptureThreadID: 2, Metadata: m, Lost: 40}))
	w.AddLoss(3, 7)
	require.NoError(t, w.Close())
	events, r, err := read(t, out.Bytes())
	require.Equal(t, io.EOF, err)
	require.Len(t, events, 2)
	assert.EqualValues(t, 47, r.Stats().Lost)
	losses := r.Losses()
	require.Len(t, losses, 2)
	assert.Equal(t, []uint64{2, 40, 3, 7}, []uint64{losses[0].CaptureThreadID, uint64(losses[0].Count), losses[1].CaptureThreadID, uint64(losses[1].Count)})
	assert.Equal(t, []int64{1, 6}, []int64{losses[0].After, losses[0].Before})
}

// v6 has no signatures; blocks behind damage are found by their chain.
func TestResyncV6(t *testing.T) {
	// Three flushes of one event each.
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 6, Frequency: 1e9, PointerSize: 8, SyncQPC: 1})
	require.NoError(t, err)
	m := &Metadata{Provider: providerEvents, Name: "cpu", EventID: 1}
	var offsets []int
	for i := range 12 {
		offsets = append(offsets, out.Len())
		require.NoError(t, w.Write(&Event{Time: int64(100 + i), ThreadID: 9, ProcessID: 8, Metadata: m, Payload: []byte{byte(i)}, Stack: NewStack([]uint64{0x1000, 0x2000, uint64(i)})}))
		require.NoError(t, w.SequencePoint())
	}
	require.NoError(t, w.Close())
	all, _, err := read(t, out.Bytes())
	require.Equal(t, io.EOF, err)
	for at := offsets[4]; at < offsets[5]; at++ {
		for _, x := range []byte{0xff, 0x55} {
			hit := bytes.Clone(out.Bytes())
			hit[at] ^= x
			events, _, err := read(t, hit)
			require.GreaterOrEqual(t, len(events), 10, "hit at %d", at)
			assert.True(t, err != io.EOF || len(events) == len(all), "hit at %d: events are missing without a word", at)
			assert.Equal(t, all[11][:3], events[len(events)-1][:3], "hit at %d: the end is lost", at)
			assert.Equal(t, all[:4], events[:4], "hit at %d", at)
		}
	}
}

// What looks like a block that reaches to the end of a file of v6 cut there is a part of the
// block that was cut.
func TestPrefixChanceV6(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	m := &Metadata{Provider: "P"}
	for i := range 20 {
		payload := []byte("\x00\x00\x00\x03\x00\x00payload") // the header of a metadata block
		require.NoError(t, w.Write(&Event{Metadata: m, Time: int64(i), Payload: payload}))
	}
	require.NoError(t, w.Close())
	data := out.Bytes()
	at, cut := bytes.Index(data, []byte("payload"))-6, bytes.LastIndex(data, []byte("payload"))
	binary.LittleEndian.PutUint16(data[at:], uint16(cut-at-4))
	events, _, err := read(t, data[:cut])
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Len(t, events, 19)
}

// A missing head leaves the events.
func TestHeadless(t *testing.T) {
	data := testFile(t, "probe9.nettrace.gz")
	all, _, _ := read(t, data)
	for _, cut := range []int{1, 9, 33, 100, 5000} {
		events, r, err := read(t, data[cut:])
		require.ErrorIs(t, err, ErrDamaged)
		assert.True(t, r.Header().Missing)
		assert.Greater(t, len(events), len(all)/2, "cut %d", cut)
	}
	_, err := NewReader(bytes.NewReader([]byte(`{"traceEvents":[]}`)), nil)
	assert.ErrorIs(t, err, ErrFormat)
	_, err = NewReader(bytes.NewReader(nil), nil)
	assert.ErrorIs(t, err, ErrFormat)
}

func TestTrailing(t *testing.T) {
	for name, data := range small(t) {
		_, r, err := read(t, append(bytes.Clone(data), "and something else"...))
		assert.Equal(t, io.EOF, err, name)
		assert.Equal(t, int64(18), r.Stats().TrailingBytes, name)
		n, r, err := read(t, append(bytes.Clone(data), data...))
		assert.Equal(t, io.EOF, err, name)
		assert.Equal(t, int64(len(data)), r.Stats().TrailingBytes, name)
		assert.NotEmpty(t, n)
	}
}

// The date of a recording must not decide over its events (dotnet/runtime issue 123103).
func TestBadDate(t *testing.T) {
	for _, data := range [][]byte{unhex(t, knownV4), unhex(t, knownV6)} {
		at := bytes.Index(data, []byte{0xea, 0x07, 1, 0})
		zeroed := bytes.Clone(data)
		clear(zeroed[at : at+16])
		odd := bytes.Clone(data)
		odd[at+15] = 0x40 // more than 999 ms
		early, late := bytes.Clone(data), bytes.Clone(data)
		early[at+1] ^= 1 // 1770, of which no format of others holds the nanoseconds
		late[at+1] ^= 8  // 4074
		for _, data := range [][]byte{zeroed, odd, early, late} {
			events, r, err := read(t, data)
			assert.Equal(t, io.EOF, err)
			assert.Len(t, events, 2)
			assert.True(t, r.Header().SyncTime.IsZero())
			assert.Equal(t, int64(1), r.Stats().Defects)
		}
	}
}

// Unknown kinds of blocks are passed over.
func TestUnknownBlocks(t *testing.T) {
	v4 := unhex(t, knownV4)
	at := bytes.Index(v4, signatureV4)
	block := append(append([]byte{}, v4[at:at+11]...), "\x08\x00\x00\x00NewBlock\x06"...)
	block = append(block, 3, 0, 0, 0)
	for (at+len(block))%4 != 0 {
		block = append(block, 0)
	}
	block = append(block, "abc\x06"...)
	for len(block)%4 != 0 { // keep what follows aligned: not part of the format
		block = append(block[:len(block)-4], "abcd\x06"...)
		block[len(block)-5-4-1]++
		break
	}
	data := append(append(append([]byte{}, v4[:at]...), block...), v4[at:]...)
	events, r, err := read(t, data)
	assert.Len(t, events, 2)
	assert.True(t, errors.Is(err, ErrDamaged) || err == io.EOF)
	assert.NotZero(t, r.Stats().Defects)

	v6 := unhex(t, knownV6)
	at = 20 + 4 + 0x35
	data = append(append(append([]byte{}, v6[:at]...), 5, 0, 0, 99, 1, 2, 3, 4, 5), v6[at:]...)
	events, r, err = read(t, data)
	assert.Equal(t, io.EOF, err)
	assert.Len(t, events, 2)
	assert.Zero(t, r.Stats().Defects)
	assert.Equal(t, []int64{1, int64(at)}, []int64{r.Stats().Newer, r.Stats().NewerOffset})
}

// A block whose kind was hit is no newer one: what it held is missed.
func TestKindHit(t *testing.T) {
	data := testFile(t, "v6-nosymbols.nettrace.gz")
	spans, kinds := blocksOf(t, data)
	for i, span := range spans {
		for bit := range 8 {
			at := span[0] + 3
			if kinds[i] == kindTrace || data[at]^1<<bit < byte(kindUnknown) {
				continue
			}
			hit := bytes.Clone(data)
			hit[at] ^= 1 << bit
			r, err := NewReader(bytes.NewReader(hit), nil)
			require.NoError(t, err)
			_, err = describeAll(t, r)
			assert.True(t, err != io.EOF || r.Stats().Defects > 0, "%s at %d, kind %d", kinds[i], span[0], hit[at])
		}
	}
}

// What a later minor version of v6 adds is passed over, and counted. In 6.0 it is damage.
func TestNewerKinds(t *testing.T) {
	const (
		metadata = "28000003000024000110556e6976657273616c2e4576656e74730103637075010007000556616c7565150000"
		more     = "2b000003000027000110556e6976657273616c2e4576656e74730103637075010007000556616c7565150300630102"
	)
	for name, c := range map[string]struct{ old, new string }{
		"thread":                   {"07000006050001022a034d", "09000006070001022a034d0901"},
		"metadata":                 {metadata, more},
		"labels":                   {"0d000008010000000100000085016b0176", "0d00000801000000010000008b016b0176"},
		"label behind another one": {"0d000008010000000100000085016b0176", "0f0000080100000001000000" + "05016b0176" + "8b01"},
	} {
		for minor := range byte(2) {
			t.Run(fmt.Sprintf("%s 6.%d", name, minor), func(t *testing.T) {
				v6 := unhex(t, knownV6)
				data := bytes.Replace(v6, unhex(t, c.old), unhex(t, c.new), 1)
				require.NotEqual(t, v6, data)
				data[16] = minor
				events, r, err := read(t, data)
				assert.Equal(t, io.EOF, err)
				assert.Len(t, events, 2)
				assert.Equal(t, minor == 0, r.Stats().Defects > 0)
				assert.Equal(t, int64(minor), r.Stats().Newer)
			})
		}
	}
}

// Ids that nothing explains cost events their names or stacks: they are told, if only as a count.
func TestUnknownIDs(t *testing.T) {
	v4 := bytes.Replace(unhex(t, knownV4), []byte("\xcf\x01\x00\x4d\x03\x4d\x02"), []byte("\xcf\x06\x00\x4d\x03\x4d\x07"), 1)
	v6 := bytes.Replace(unhex(t, knownV6), []byte("\xdf\x01\x00\x01\x03\x01\x01\xd0\x0f\x01"), []byte("\xdf\x01\x00\x01\x03\x05\x01\xd0\x0f\x06"), 1)
	for _, c := range []struct {
		data []byte
		want []string
	}{
		{v4, []string{"the file does not hold the metadata of 2 of its events", "the file does not hold the stacks of 1 of its events"}},
		{v6, []string{"the file does not hold the threads of 2 of its events", "the file does not hold the label lists of 2 of its events"}},
	} {
		var told []string
		r, err := NewReader(bytes.NewReader(c.data), &Options{Warn: func(e *FormatError) { told = append(told, e.Err.Error()) }})
		require.NoError(t, err)
		events, err := describeAll(t, r)
		assert.Equal(t, io.EOF, err)
		assert.Len(t, events, 2)
		assert.Equal(t, c.want, told)
	}
}

func TestVersions(t *testing.T) {
	v6 := unhex(t, knownV6)
	v6[12] = 7
	_, err := NewReader(bytes.NewReader(v6), nil)
	assert.ErrorIs(t, err, ErrVersion)
	v4 := unhex(t, knownV4)
	v4[35] = 9
	_, err = NewReader(bytes.NewReader(v4), nil)
	assert.ErrorIs(t, err, ErrVersion)
}

// What begins like a trace and goes on otherwise is not called cut off, and what is cut off in front
// of its first block is told what to do.
func TestNoTraceObject(t *testing.T) {
	for _, begin := range []string{magic + serialMagic, serialMagic} {
		_, err := NewReader(strings.NewReader(begin+strings.Repeat("other words ", 99)), nil)
		assert.ErrorIs(t, err, ErrDamaged)
		assert.NotErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.ErrorContains(t, err, "no Trace object is here, and no block of events behind it; copy the file again")
		for _, rest := range []string{"", "\x04\x04\x01\x03\x00\x00"} {
			_, err := NewReader(strings.NewReader(begin+rest), nil)
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.ErrorContains(t, err, "header: the file ends within it, before the first event")
		}
	}
}

// Readers that give one byte at a time, or data together with the error, do not matter.
func TestReaders(t *testing.T) {
	for name, data := range small(t) {
		want, _, _ := read(t, data)
		for kind, wrap := range map[string]func(io.Reader) io.Reader{"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with error": iotest.DataErrReader} {
			r, err := NewReader(wrap(bytes.NewReader(data)), nil)
			require.NoError(t, err)
			got, err := describeAll(t, r)
			assert.Equal(t, io.EOF, err, "%s: %s", name, kind)
			assert.Equal(t, want, got, "%s: %s", name, kind)
		}
		broken := errors.New("disk on fire")
		for n := range data {
			r, err := NewReader(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken)), nil)
			if err == nil {
				_, err = describeAll(t, r)
			}
			var fe *FormatError
			require.ErrorIs(t, err, broken, "%s: cut at %d", name, n)
			require.False(t, errors.As(err, &fe), "a failing reader is no format error")
		}
	}
}

// oldFile builds a file of v1 or v2: one metadata event, two events, the trailer.
func oldFile(version int) []byte {
	b := []byte(serialMagic)
	b = append(b, tagBegin, tagBegin, tagNull)
	b = append(b, byte(version), 0, 0, 0, 0, 0, 0, 0, 38, 0, 0, 0)
	b = append(b, oldTraceName...)
	b = append(b, tagEnd, 0, 0, 0, 0)
	for _, u := range []uint16{2026, 1, 4, 15, 10, 20, 30, 400} {
		b = le16(b, u)
	}
	b = le64(le64(b, 1000), 1e9)
	event := func(id uint32, t uint64, payload []byte, stack ...uint64) {
		at := len(b)
		b = le32(le32(le32(b, 0), id), 77)
		b = append(le64(b, t), make([]byte, 32)...)
		b = append(le32(b, uint32(len(payload))), payload...)
		b = le32(b, uint32(8*len(stack)))
		for _, a := range stack {
			b = le64(b, a)
		}
		size := len(b) - at - 4
		b[at], b[at+1] = byte(size), byte(size>>8)
	}
	id := uint32(len(b))
	var meta []byte
	if version == 1 {
		meta = append(meta, "\x30\xc5\x44\x3c\xae\x97\x3a\x51\x1e\x6d\x78\x3e\x8f\x8e\x03\xa9"...)
	} else {
		meta = appendStringUTF16(meta, "My-Source")
	}
	blob := appendStringUTF16(le32(nil, 7), "E")
	blob = le32(le32(le64(blob, 0x30), 1), 4)
	meta = append(le32(le32(le32(meta, 7), 1), uint32(len(blob))), blob...)
	event(0, 2000, meta)
	event(id, 2001, []byte{1, 2, 3}, 0x1010, 0x2020)
	event(id, 2002, nil)
	end := uint32(len(b))
	b = append(b, tagEnd)
	return le32(le32(le32(le32(b, 1), end), end+1), end+9)
}

func le16(b []byte, v uint16) []byte { return append(b, byte(v), byte(v>>8)) }
func le32(b []byte, v uint32) []byte { return le16(le16(b, uint16(v)), uint16(v>>16)) }
func le64(b []byte, v uint64) []byte { return le32(le32(b, uint32(v)), uint32(v>>32)) }

// Stacks before v4 are numbered as they come. The table of numbers is emptied when it
// is large, but events that wait for their turn keep theirs: a number must not stand
// for another stack, in no region.
func TestStackNumbersGoOn(t *testing.T) {
	r := &Reader{h: Header{Version: 3, PointerSize: 8}}
	first, region := r.intern([]byte("stack 1.")), r.region
	require.Equal(t, first, r.intern([]byte("stack 1.")))
	r.internB = 1 << 30
	second := r.intern([]byte("stack 2."))
	assert.Len(t, r.interns, 1, "emptied")
	assert.NotEqual(t, first, second)
	assert.Equal(t, region, r.region)
}

// A layout of many fields and payloads that end early: what is behind the end is none,
// also in memory that had other values.
func TestShortPayload(t *testing.T) {
	l := &Layout{Fields: make([]Field, 3000)}
	for i := range l.Fields {
		l.Fields[i] = Field{Type: TypeUint8}
	}
	values, err := l.AppendValues(nil, bytes.Repeat([]byte{7}, 3000), 8)
	require.NoError(t, err)
	values, err = l.AppendValues(values[:1], []byte{1, 2}, 8)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, values, 1+3000)
	assert.Equal(t, uint64(7), values[0].Uint())
	assert.Equal(t, uint64(2), values[2].Uint())
	for _, v := range values[3:] {
		require.Equal(t, Value{}, v)
	}
}

// TestUTF8CodeUnit holds that a field of code 23 is a string where that fits the payload,
// and one byte where it does not, be it shorter or longer.
func TestUTF8CodeUnit(t *testing.T) {
	m := &Metadata{Provider: "P", Name: "E", row: true, Fields: []Field{{Name: "a", Type: TypeUTF8}, {Name: "n", Type: TypeInt32}}}
	m.complete()
	for payload, want := range map[string]string{"0200 6162 09000000": "ab", "61 09000000": "a", "00 09000000 0000": "\x00"} {
		values, err := m.Layout().AppendValues(nil, unhex(t, payload), 8)
		require.NoError(t, err, payload)
		assert.Equal(t, want, values[0].String())
		assert.Equal(t, int64(9), values[1].Int())
	}
}

// TestNullEventName holds that a log message whose event has no name keeps its text:
// .NET before 5 wrote nothing for the name, not even the end of a string.
func TestNullEventName(t *testing.T) {
	fields := []Field{{Name: "EventId", Type: TypeInt32}, {Name: "EventName", Type: TypeString}, {Name: "FormattedMessage", Type: TypeString}}
	for provider, want := range map[string]string{"Microsoft-Extensions-Logging": "[7  hi]", "P": "[7 hi ]"} {
		m := &Metadata{Provider: provider, Name: "FormattedMessage", Fields: fields}
		m.complete()
		for payload, want := range map[string]string{"07000000 68006900 0000": want, "07000000 6e00 0000 68006900 0000": "[7 n hi]"} {
			values, _ := m.Layout().AppendValues(nil, unhex(t, payload), 8)
			var got []string
			for i := range values {
				got = append(got, values[i].String())
			}
			assert.Equal(t, want, fmt.Sprint(got), "%s %s", provider, payload)
		}
	}
}

// TestOtherForms holds that what EventSource writes otherwise than it declares is read
// as it was written, and everything else as declared.
func TestOtherForms(t *testing.T) {
	num, text, yes := Field{Name: "n", Type: TypeInt32}, Field{Name: "s", Type: TypeString}, Field{Name: "b", Type: TypeBool32}
	money, small := Field{Name: "m", Type: TypeDecimal}, Field{Name: "e", Type: TypeUint8}
	short, char := Field{Name: "h", Type: TypeInt16}, Field{Name: "c", Type: TypeChar}
	plus, big := Field{Name: "u", Type: TypeUint32}, Field{Name: "l", Type: TypeInt64}
	pair := Field{Type: TypeObject, Fields: []Field{yes, num}}
	for _, c := range []struct {
		fields  []Field
		payload string
		want    string
	}{
		{[]Field{yes, num}, "01000000 05000000", "[true 5]"},
		{[]Field{yes, num}, "01 05000000", "[true 5]"},
		{[]Field{yes, text, yes}, "01 78007900 0000 00", "[true xy false]"},
		{[]Field{pair}, "01 05000000", "[{b:true n:5}]"},
		{[]Field{{Type: TypeArray, Elem: &pair}, num}, "0200 01 05000000 00 06000000 07000000", "[[{b:true n:5} {b:false n:6}] 7]"},
		{[]Field{money, num}, "000000000000f83f 05000000", "[1.5 5]"},
		{[]Field{money, num}, "00000000000000000000000000000002 05000000", "[00000000000000000000000000000002 5]"},
		{[]Field{small, text}, "c8 78000000", "[200 x]"},
		{[]Field{small, text}, "c8000000 78000000", "[200 x]"},
		{[]Field{{Type: TypeObject, Fields: []Field{yes, yes, text}}}, "01 00 6100 6200 6300 0000", "[{b:true b:false s:abc}]"},
		{[]Field{yes, yes, text}, "00 01 6100 6200 6300 0000", "[false true abc]"},
		{[]Field{yes, small, text}, "01000000 c8000000 78000000", "[true 200 x]"},
		{[]Field{num, big}, "fbffffffffffffff 0200000001000000", "[-5 4294967298]"}, // WriteEvent(long, long)
		{[]Field{num, big}, "fbffffff 0200000001000000", "[-5 4294967298]"},
		{[]Field{plus, text}, "fffffffe00000000 78000000", "[4278190079 x]"},
		{[]Field{text, plus}, "78000000 05000000 00000000", "[x 5]"},
		{[]Field{char, num, big}, "6100000000000000 feffffffffffffff 0300000000000000", "[a -2 3]"},
		{[]Field{num, big, text, text}, "05000000 0600000000000000 0000 0000", "[5 6  ]"},
		{[]Field{char, text}, "ac200000 78000000", "[€ x]"}, // WriteEvent(int, string)
		{[]Field{char, char, small}, "61000000 ac200000 03000000", "[a € 3]"},
		{[]Field{small, small}, "c8000000 03", "[200 3]"}, // only one is an enumeration
		{[]Field{small, small}, "c8 03000000", "[200 3]"},
		{[]Field{text, small, short, text}, "0000 c8000000 fdff 6500 0000", "[ 200 -3 e]"},
		{[]Field{small, short, small, char}, "c8000000 fdffffff 03 6100", "[200 -3 3 a]"},
		{[]Field{small, small, small, small, small}, "01000000 02000000 03000000 04000000 05000000", "[1 2 3 4 5]"},
		{[]Field{yes, num}, "01000000 05000000 09", "[true 5]"},
		{[]Field{num, yes}, "05000000 0100", "[5 ]"}, // cut
	} {
		m := &Metadata{Provider: "P", Name: "E", Fields: c.fields}
		m.complete()
		values, _ := m.Layout().AppendValues(nil, unhex(t, c.payload), 8)
		var got []string
		for i := range values {
			got = append(got, values[i].String())
		}
		assert.Equal(t, c.want, fmt.Sprint(got), "%s", c.payload)
	}
}

// TestUndecodablePayload holds that a payload that cannot be decoded is told as damage, and that a source
// which always writes other fields than it declares is not damaged.
func TestUndecodablePayload(t *testing.T) {
	declared := &Metadata{Provider: "A", Name: "One", EventID: 1, HasFieldList: true, Fields: []Field{{Name: "x", Type: TypeString}}}
	runtime := &Metadata{Provider: ProviderRuntime, EventID: 143, Version: 2}
	good, bad := []byte{'x', 0, 0, 0}, []byte{'x'}
	for name, c := range map[string]struct {
		meta    *Metadata
		payload [][]byte
		damaged int64
	}{
		"one that fits before":    {declared, [][]byte{good, bad, good}, 1},
		"one that fits behind":    {declared, [][]byte{bad, bad, good}, 2},
		"none fits":               {declared, [][]byte{bad, bad, bad}, 0},
		"an event of the runtime": {runtime, [][]byte{bad}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w, err := NewWriter(&out, &Header{Version: 4, PointerSize: 8, Frequency: 1e9, SyncQPC: 1, SyncTimeRaw: [8]uint16{2026, 1, 4, 15}})
			require.NoError(t, err)
			for i, p := range c.payload {
				require.NoError(t, w.Write(&Event{Time: int64(i), ThreadID: 1, CaptureThreadID: 1, Processor: -1, Metadata: c.meta, Version: c.meta.Version, Payload: p}))
			}
			require.NoError(t, w.Close())
			r, err := NewReader(bytes.NewReader(out.Bytes()), nil)
			require.NoError(t, err)
			_, err = describeAll(t, r)
			if c.damaged == 0 {
				require.Equal(t, io.EOF, err)
				return
			}
			require.ErrorIs(t, err, ErrDamaged)
			assert.ErrorContains(t, err, "cannot be decoded")
			assert.Equal(t, c.damaged*int64(len(bad)), r.Stats().LostBytes)
			r, err = NewReader(bytes.NewReader(out.Bytes()), nil)
			require.NoError(t, err)
			var clean bytes.Buffer
			w, err = NewWriter(&clean, r.Header())
			require.NoError(t, err)
			require.Error(t, Copy(w, r, nil))
			require.NoError(t, w.Close())
			r, err = NewReader(bytes.NewReader(clean.Bytes()), nil)
			require.NoError(t, err)
			left, err := describeAll(t, r)
			require.Equal(t, io.EOF, err)
			assert.Len(t, left, len(c.payload)-int(c.damaged))
		})
	}
}

// A loop that stops early leaves the rest to the next one.
func TestAllStops(t *testing.T) {
	data := testFile(t, "executioncheckpoints.nettrace")
	want, _, _ := read(t, data)
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var got []string
	for ended := false; !ended; {
		ended = true
		for ev, err := range r.All() {
			require.NoError(t, err)
			got, ended = append(got, describe(ev)), false
			break
		}
	}
	assert.Equal(t, want, got)
}

// Where a block of stacks is missing, events of its stacks have none, and no event has another one:
// the ids of the blocks behind it are not taken for ids of which a bit was flipped.
func TestMissingStacks(t *testing.T) {
	type event struct {
		time   int64
		thread uint64
		number uint32
	}
	stacks := func(data []byte) map[event]string {
		of := map[event]string{}
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		var ev Event
		for r.Read(&ev) == nil {
			of[event{ev.Time, ev.CaptureThreadID, ev.SequenceNumber}] = string(ev.Stack.raw)
		}
		return of
	}
	for _, name := range []string{"runtime/gc.nettrace", "runtime/threads.nettrace", "dotnet10/async.nettrace", "dotnet10/v6-nosymbols.nettrace"} {
		data := corpusFile(t, name)
		whole := stacks(data)
		spans, kinds := blocksOf(t, data)
		for i, span := range spans {
			if kinds[i] != kindStack {
				continue
			}
			got := stacks(slices.Concat(data[:span[0]], data[span[1]:]))
			assert.Len(t, got, len(whole))
			other := 0
			for ev, stack := range got {
				if stack != "" && stack != whole[ev] {
					other++
				}
			}
			assert.Zero(t, other, "%s without the block at %d", name, span[0])
		}
	}
}

// A bit of the header inside a block of events costs no event: it is read as the header that all
// writers write, and in v6 the block not as one of definitions or threads, which begin with anything.
func TestEventHeaderHit(t *testing.T) {
	for name, every := range map[string]int{"v6-nosymbols.nettrace.gz": 1, "probe9.nettrace.gz": 4} {
		data := testFile(t, name)
		all, _, err := read(t, data)
		require.Equal(t, io.EOF, err)
		spans, kinds := blocksOf(t, data)
		for i, span := range spans {
			if kinds[i] != kindEvent || i%every > 0 {
				continue
			}
			at := span[0] + bytes.Index(data[span[0]:span[1]], []byte{usualHeader, 0, 1, 0})
			for bit := range 17 { // its size, and whether headers are compressed
				hit := bytes.Clone(data)
				flip(hit[at:], bit)
				events, _, err := read(t, hit)
				require.ErrorIs(t, err, ErrDamaged)
				assert.Equal(t, len(all), len(events), "%s: bit %d of the block at %d", name, bit, span[0])
			}
		}
	}
}

// A block may have a header of any size: later versions may add to it.
func TestLongEventHeaderV6(t *testing.T) {
	file := unhex(t, knownV6)
	i := bytes.Index(file, []byte{20, 0, 1, 0, 0xd0, 7}) // the header of the block of events
	long := slices.Concat(file[:i], []byte{220, 0}, file[i+2:i+20], bytes.Repeat([]byte{0xff}, 200), file[i+20:])
	binary.LittleEndian.PutUint32(long[i-4:], binary.LittleEndian.Uint32(long[i-4:])+200)
	want, _, err := read(t, file)
	require.Equal(t, io.EOF, err)
	got, _, err := read(t, long)
	require.Equal(t, io.EOF, err)
	assert.Len(t, got, len(want))
}

// A header that is longer than usual is read as what it says where the block reads so, though it reads as
// events behind the usual one, too: what is more of it goes on as an event into the first one here.
func TestLongEventHeaderV4(t *testing.T) {
	file := unhex(t, knownV4)
	i := bytes.Index(file, []byte("EventBlock\x06")) + 15
	for ; file[i] != 20; i++ {
	}
	long := slices.Concat(file[:i], []byte{24, 0}, file[i+2:i+20], []byte{0xcf, 0x81, 0x81, 0x81}, file[i+20:])
	size := bytes.Index(file, []byte("EventBlock\x06")) + 11
	binary.LittleEndian.PutUint32(long[size:], binary.LittleEndian.Uint32(long[size:])+4)
	want, _, err := read(t, file)
	require.Equal(t, io.EOF, err)
	got, _, err := read(t, long)
	require.Equal(t, io.EOF, err)
	assert.Len(t, got, len(want))
}

// Stacks that are empty are no hole of zeros where the block says how many it has.
func TestEmptyStacks(t *testing.T) {
	file := unhex(t, knownV4)
	spans, _ := blocksOf(t, file)
	stacks := le32(le32(nil, 1), 6)
	for i := range 6 {
		stacks = le32(stacks, uint32(i%2*(i/3)*8))
		stacks = append(stacks, bytes.Repeat([]byte{7}, i%2*(i/3)*8)...)
	}
	file = append(objectV4(bytes.Clone(file[:spans[1][0]]), "StackBlock", stacks), file[spans[2][0]:]...)
	_, r, _ := read(t, file)
	assert.EqualValues(t, 6, r.Stats().Stacks)
	assert.Zero(t, r.Stats().UnknownStacks)
	assert.Zero(t, r.Stats().LostBytes)
}

// A block that is missing is told with the number of its events only where numbers are missing.
func TestMissingBlockWithoutNumbers(t *testing.T) {
	file := unhex(t, knownV4)
	file = file[:bytes.Index(file, []byte("StackBlock"))-15]
	stacks := le32(le32(nil, 1), 2)
	for _, frame := range []uint64{0x10, 0x20} {
		stacks = le64(le32(stacks, 8), frame)
	}
	file = objectV4(file, "StackBlock", stacks)
	event := []byte{0xcf, 1, 0, 7, 0, 7, 2, 5, 4, 1, 0, 0, 0} // number 1 of thread 7, with the second stack
	file = objectV4(file, "EventBlock", append(append([]byte{20, 0, 1, 0}, make([]byte, 16)...), event...))
	var told []string
	r, err := NewReader(bytes.NewReader(append(file, tagNull)), &Options{Warn: func(e *FormatError) { told = append(told, e.Err.Error()) }})
	require.NoError(t, err)
	for range r.All() {
	}
	assert.Equal(t, []string{"damaged: a block of events is missing in front of this one: stacks or definitions are written for it"}, told)
}

// An event whose definition is not in front of it is not read as one of a type whose id is a bit away
// and whose payload is only a part of its own.
func TestDefinitionBehind(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	finalizers := &Metadata{Provider: ProviderRuntime, EventID: 14, Version: 1}
	for i := range 5 {
		m := &Metadata{Provider: ProviderRuntime, EventID: 280 + i}
		if i == 0 {
			m = finalizers
		}
		require.NoError(t, w.Write(&Event{Metadata: m, Time: int64(i + 1), ThreadID: 7, CaptureThreadID: 7, Payload: make([]byte, 2+8*i)}))
	}
	require.NoError(t, w.Close())
	data := out.Bytes()
	at := func(id uint32) (offset int64) {
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		for ev := (Event{}); r.Read(&ev) == nil; {
			if ev.Metadata.ID == id {
				offset = ev.Offset
			}
		}
		return offset
	}
	require.Positive(t, at(6))
	data[at(6)+1] = 2 | 16 // behind its flags; 2 is that of the finalizers
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	unknown := 0
	for ev := (Event{}); r.Read(&ev) == nil; {
		if ev.Metadata.Unknown {
			unknown++
			assert.Len(t, ev.Payload, 34)
		}
	}
	assert.Equal(t, 1, unknown)
}

// Where a definition cannot be read, or is missing with its block, its events are of no type, or of the right one where that can be
// told from what they look like, and all others are what they were: the missing id is not taken for
// another one of which a bit was flipped.
func TestMissingDefinition(t *testing.T) {
	type event struct {
		time   int64
		thread uint64
		number uint32
	}
	types := func(data []byte) (of map[event]string, defined map[int64]string) {
		of, defined = map[event]string{}, map[int64]string{}
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		var ev Event
		for r.Read(&ev) == nil {
			m := ev.Metadata
			name := fmt.Sprint(m.Provider, " ", m.EventID)
			if m.Unknown {
				name = ""
			}
			of[event{ev.Time, ev.CaptureThreadID, ev.SequenceNumber}], defined[m.Offset] = name, name
		}
		return of, defined
	}
	for _, name := range []string{"probe9.nettrace.gz", "arraytypes.nettrace.gz"} {
		data := testFile(t, name)
		whole, defined := types(data)
		require.Greater(t, len(defined), 5)
		for at, missing := range defined {
			provider, _, _ := strings.Cut(missing, " ")
			text, err := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune(provider)))
			require.NoError(t, err)
			i := int(at) + bytes.Index(data[at:], text)
			got, _ := types(slices.Concat(data[:i], bytes.Repeat([]byte{1, 0}, len(text)/2), data[i+len(text):]))
			assert.Len(t, got, len(whole))
			for ev, as := range got {
				if as != whole[ev] && (as != "" || whole[ev] != missing) {
					t.Errorf("%s without %s: %s is read as %q", name, missing, whole[ev], as)
					break
				}
			}
		}
		spans, kinds := blocksOf(t, data)
		for i, span := range spans {
			if kinds[i] != kindMetadata {
				continue
			}
			got, _ := types(slices.Concat(data[:span[0]], data[span[1]:]))
			assert.Len(t, got, len(whole))
			for ev, as := range got {
				if as != "" && as != whole[ev] {
					t.Errorf("%s without the block at %d: %s is read as %q", name, span[0], whole[ev], as)
					break
				}
			}
		}
	}
}

// TestTooManyStacks holds that a block with more stacks than its count says, and a broken one behind
// them, loses none: no bit is put right so that none follow.
func TestTooManyStacks(t *testing.T) {
	rows := le32(le32(nil, 1), 1)
	for i := range byte(3) {
		rows = append(le32(rows, 8), i+1, 0, 0, 0, 0, 0, 0, 0)
	}
	rows = append(le32(rows, 1<<20), "broken"...)
	r, err := NewReader(bytes.NewReader(objectV4(unhex(t, knownV4)[:102], "StackBlock", rows)), nil)
	require.NoError(t, err)
	var ev Event
	for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
	}
	assert.EqualValues(t, 3, r.Stats().Stacks)
}
