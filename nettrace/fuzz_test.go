package nettrace

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzReader holds for any input: no panic, errors are FormatErrors, how the
// bytes arrive and how events are asked for does not matter, and what was read can be written and read again.
func FuzzReader(f *testing.F) {
	for _, data := range small(f) {
		f.Add(data)
	}
	f.Add(realV6(f, 60))
	for _, version := range []int{4, 6} {
		plain, _ := plainFile(f, version, 5, 3)
		f.Add(plain)
	}
	known := unhex(f, knownV6)
	f.Add(append(blockV6(blockV6(known[:len(known)-4:len(known)-4], 99, []byte("other")), 9, nil), known[len(known)-4:]...))
	old := unhex(f, knownV4)
	objects := otherObject(otherObject(bytes.Clone(old[:len(old)-1]), tagBegin, 1, 0, "Twice", []byte("contents")), tagBegin, 1, 0, "Twice", []byte("contents"))
	f.Add(append(otherObject(objects, tagBeginPrivate, 2, 2, "Empty", nil), tagNull))
	definitions, _ := plainMetadata(f, 5, 3)
	f.Add(definitions)
	f.Fuzz(func(t *testing.T, data []byte) {
		events, r, err := read(t, data)
		if r == nil {
			return
		}
		if once := copyAny(t, data); once != nil {
			require.Equal(t, once, copyAny(t, once), "a copy of the copy differs")
		}
		half, err2 := NewReader(iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(data))), &Options{Hold: 4 * 5})
		require.NoError(t, err2)
		again, _, err2 := describeBatches(t, half, 5, 4)
		require.Equal(t, events, again)
		require.Equal(t, err == io.EOF, err2 == io.EOF)

		copied := rewriteAny(t, data)
		if copied == nil {
			return
		}
		r2, err := NewReader(bytes.NewReader(copied), nil)
		require.NoError(t, err)
		got, err := describeAll(t, r2)
		if err != io.EOF {
			require.ErrorContains(t, err, "cannot be decoded")
		}
		require.Equal(t, len(events), len(got))
	})
}

// copyAny is a copy of a file that is whole, and whose events may go into another.
func copyAny(t *testing.T, data []byte) []byte {
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	if Copy(w, r, nil) != nil || w.Close() != nil || r.Stats().Defects > 0 {
		return nil
	}
	return out.Bytes()
}

// realV6 is a file of the first events of a recording of dotnet-trace collect-linux.
func realV6(t testing.TB, events int) []byte {
	r, err := NewReader(bytes.NewReader(testFile(t, "v6-nosymbols.nettrace.gz")), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	var ev Event
	for range events {
		require.NoError(t, r.Read(&ev))
		require.NoError(t, w.Write(&ev))
		if ev.SequenceNumber%20 == 19 {
			require.NoError(t, w.SequencePoint())
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// rewriteAny is rewrite for files whose contents may not fit the format's limits.
func rewriteAny(t *testing.T, data []byte) []byte {
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	var ev Event
	for r.Read(&ev) == nil {
		if w.Write(&ev) != nil {
			return nil
		}
	}
	if w.Close() != nil {
		return nil
	}
	return out.Bytes()
}

// FuzzHeaders holds the fast decoder of compressed event headers against the plain one.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("\xcf\x01\x00\x4d\x03\x4d\x02\xd0\x0f\x04\x05\x00\x00\x00\x08\x01\x0a\x06\x00\x00\x00"), false)
	f.Add([]byte("\xdf\x01\x00\x01\x03\x01\x01\xd0\x0f\x01\x01\x01\x01\x0a\x02"), true)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) {
		r := &Reader{h: Header{Version: 4, PointerSize: 8}, seq: map[uint64]*sequence{}, seqEpoch: 1}
		if v6 {
			r.h.Version = 6
		}
		blk := r.newBlock(b, 0)
		end, err := r.compressed(blk, 0, len(b), math.MinInt64, math.MaxInt64, headerState{})
		require.LessOrEqual(t, end, len(b))
		c := Cursor{b: b}
		var s headerState
		left := r.doubled.events
		again := func() { // an event that came before has no row
			require.NoError(t, s.next(&c, v6))
			c.Skip(int(s.size))
			left--
		}
		for i := range blk.rows {
			row := &blk.rows[i]
			for left > 0 && c.Pos() < int(row.at()) {
				again()
			}
			require.Equal(t, int(row.at()), c.Pos())
			require.NoError(t, s.next(&c, v6))
			require.Equal(t, int(row.payload), c.Pos())
			require.Equal(t, []uint64{uint64(row.time), uint64(row.seq), uint64(row.size)}, []uint64{s.time, uint64(s.seq), uint64(s.size)})
			require.Equal(t, row.sorted, s.sorted)
			if !v6 {
				require.Equal(t, s.thread, row.thread)
				if r.stats.Defects == 0 {
					require.Equal(t, s.capture, row.capture)
				}
				require.LessOrEqual(t, bits.OnesCount64(row.capture^s.capture), 1, "a capture thread is put right by one bit, and told")
				var ids activityIDs
				if row.ids > 0 {
					ids = blk.ids[row.ids-1]
				}
				require.Equal(t, activityIDs{s.activity, s.related}, ids)
			}
			c.Skip(int(row.size))
			require.NoError(t, c.Err())
		}
		for left > 0 {
			again()
		}
		if err != nil && err != errZeros {
			bad := s.next(&c, v6) != nil
			require.True(t, bad || uint64(s.size) > uint64(c.Len()), "%v", err)
		}
	})
}

// FuzzPayload decodes any payload by any field list: no panic, no more than the payload.
func FuzzPayload(f *testing.F) {
	for _, data := range small(f) {
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(f, err)
		for ev, err := range r.All() {
			require.NoError(f, err)
			m := ev.Metadata
			f.Add(append(binary.LittleEndian.AppendUint32(nil, 1), append(appendStringUTF16(nil, m.Provider), m.Raw...)...), m.row, ev.Payload)
		}
	}
	f.Fuzz(func(t *testing.T, meta []byte, row bool, payload []byte) {
		var m *Metadata
		if row {
			m, _ = parseRow(meta, 0)
		} else {
			m, _ = parseMetadata(meta, 0)
		}
		if m == nil {
			return
		}
		m.complete()
		require.NotEmpty(t, m.EventName())
		for _, pointer := range []uint8{4, 8} {
			ev := &Event{Metadata: m, Version: m.Version, Opcode: m.Opcode, Payload: payload, pointer: pointer}
			values, err := ev.AppendValues(nil)
			l := ev.Layout()
			if l == nil {
				require.Empty(t, values)
				continue
			}
			require.Len(t, values, len(l.Fields))
			for i := range values {
				if err == nil {
					require.NotEqual(t, KindNone, values[i].Kind())
				}
				walk(t, &values[i], 0)
			}
			var method Method
			_ = ev.Method(&method)
			var module Module
			_ = ev.Module(&module)
			var symbol Symbol
			_ = ev.Symbol(&symbol)
		}
		// A definition written again is the same.
		if !m.row && m.HasFieldList {
			again := &Metadata{}
			raw := m.Raw
			m.Raw = nil
			again.parseBlob(m.rawV4())
			m.Raw = raw
			require.Equal(t, shape(m.Fields), shape(again.Fields))
		}
	})
}

func walk(t *testing.T, v *Value, depth int) {
	require.LessOrEqual(t, depth, 2*maxTypeDepth+4)
	require.LessOrEqual(t, len(v.Bytes()), len(v.payload))
	switch v.Kind() {
	case KindArray:
		n := 0
		for e := range v.Elems() {
			if n++; n < 100 {
				walk(t, &e, depth+1)
			}
		}
		require.Equal(t, v.Len(), n)
	case KindObject:
		n := 0
		for _, m := range v.Members() {
			n++
			walk(t, &m, depth+1)
		}
		require.Equal(t, v.Len(), n)
	default:
		_ = v.String()
	}
}

// FuzzWriterRoundTrip writes events made from the input and reads them back.
func FuzzWriterRoundTrip(f *testing.F) {
	f.Add([]byte("a few bytes to make events of, neither too many nor too few"), false)
	f.Add(bytes.Repeat([]byte{0xff, 0x80, 1, 0}, 60), true)
	f.Fuzz(func(t *testing.T, data []byte, v6 bool) {
		h := &Header{Version: 4, PointerSize: 8, Frequency: 1e9, SyncQPC: 1, SyncTimeRaw: [8]uint16{2026, 1, 4, 15}}
		if v6 {
			h.Version = 6
		}
		events := makeEvents(data, v6)
		var out bytes.Buffer
		w, err := NewWriter(&out, h)
		require.NoError(t, err)
		var want []string
		for i := range events {
			require.NoError(t, w.Write(&events[i]))
			want = append(want, describe(&events[i]))
			if len(events[i].Payload)%7 == 6 {
				require.NoError(t, w.SequencePoint())
			}
		}
		require.NoError(t, w.Close())
		r, err := NewReader(&out, warnings(t))
		require.NoError(t, err)
		got, err := describeAll(t, r)
		require.Equal(t, io.EOF, err)
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	})
}

// makeEvents turns bytes into events in order of time.
func makeEvents(data []byte, v6 bool) []Event {
	metas := []*Metadata{
		{Provider: "A", Name: "One", EventID: 1},
		{Provider: "B", EventID: 2, Version: 1, Level: 4, Keywords: 0xff, Fields: []Field{{Name: "x", Type: TypeUint16}}},
		{Provider: ProviderSampler, Level: 4, Opcode: 1, noopcode: true}, // the file does not tell the opcode
	}
	c := Cursor{b: data}
	var events []Event
	begun := map[uint64]bool{} // capture threads: before the first event of one nothing can be known to be lost
	now := int64(10)
	for c.Len() > 0 && len(events) < 500 {
		a, b := c.U8(), c.U8()
		m := metas[int(a)%len(metas)]
		now += int64(b) * int64(b) * int64(a)
		ev := Event{Time: now, ThreadID: 1 + uint64(a>>4), CaptureThreadID: uint64(1 + b&1), Processor: int(b>>5) - 1,
			Metadata: m, Version: m.Version, Level: m.Level, Keywords: m.Keywords, Opcode: m.Opcode, Payload: c.Bytes(min(int(b&15), c.Len()))}
		// What cannot be decoded would be told as damage.
		switch m {
		case metas[1]:
			ev.Payload = append(ev.Payload[:len(ev.Payload):len(ev.Payload)], 0, 0)
		case metas[2]:
			ev.Payload = []byte{b & 1, 0, 0, 0}
		}
		if a&4 != 0 {
			ev.ActivityID[3], ev.RelatedActivityID[a&15] = b, 1
		}
		for i := range int(a & 7) {
			ev.Stack = NewStack(append(ev.Stack.AppendTo(nil), uint64(b)<<32|uint64(i)))
		}
		if v6 {
			ev.Thread = &Thread{Index: uint64(a >> 4), ProcessID: int(a & 3), ID: ev.ThreadID, Name: []string{"", "main"}[b&1]}
			ev.ProcessID = ev.Thread.ProcessID
			ev.CaptureThreadID = 0
			if a&8 != 0 {
				ev.SpanID, ev.Version, ev.Opcode = uint64(b), int(b), int(a)
				ev.Labels = []Label{{Key: "k", Value: "v"}, {Key: "n", Number: -int64(b), IsNumeric: true}}
			}
		} else {
			ev.ProcessID = 0
			if len(events) > 100 && begun[ev.CaptureThreadID] {
				ev.Lost = uint32(a & 3)
			}
			begun[ev.CaptureThreadID] = true
		}
		events = append(events, ev)
	}
	return events
}
