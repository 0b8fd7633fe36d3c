package nettrace

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shape spells a field list.
func shape(fields []Field) string {
	out := ""
	for _, f := range fields {
		out += fmt.Sprintf("%s:%d*%d{%s}", f.Name, f.Type, f.Count, shape(f.Fields))
		if f.Elem != nil {
			out += "[" + shape([]Field{*f.Elem}) + "]"
		}
	}
	return out
}

// describe tells all of an event that a Writer keeps.
func describe(ev *Event) string {
	m := ev.Metadata
	th := ""
	if ev.Thread != nil {
		th = fmt.Sprintf("%d/%d/%s/%v", ev.Thread.ProcessID, ev.Thread.ID, ev.Thread.Name, ev.Thread.KeyValues)
	}
	return fmt.Sprintf("%d tid %d by %d pid %d cpu %d lost %d %s|%s|%d v%d op %d level %d kw %x %s [%s] %v %v %x %x %v %x %x",
		ev.Time, ev.ThreadID, ev.CaptureThreadID, ev.ProcessID, ev.Processor, ev.Lost,
		m.Provider, m.Name, m.EventID, ev.Version, ev.Opcode, ev.Level, ev.Keywords, shape(m.Fields), th,
		ev.ActivityID, ev.RelatedActivityID, ev.TraceID, ev.SpanID, ev.Labels, ev.Stack.AppendTo(nil), ev.Payload)
}

// describeAll reads a file to its end.
func describeAll(t testing.TB, r *Reader) (events []string, err error) {
	var ev Event
	for {
		if err = r.Read(&ev); err != nil {
			return events, err
		}
		events = append(events, describe(&ev))
	}
}

// rewrite copies a file.
func rewrite(t testing.TB, data []byte) []byte {
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	_ = Copy(w, r, nil) // a damaged file is copied as far as it goes
	require.NoError(t, w.Close())
	return out.Bytes()
}

func checkRewrite(t *testing.T, data []byte) {
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	want, _ := describeAll(t, r)
	copied := rewrite(t, data)
	r2, err := NewReader(bytes.NewReader(copied), warnings(t))
	require.NoError(t, err)
	got, err := describeAll(t, r2)
	require.Equal(t, io.EOF, err)
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.Equal(t, want[i], got[i], "event %d", i)
	}
	h, h2 := *r.Header(), *r2.Header()
	if h.Version < 4 {
		h.Version = 4
	}
	assert.Equal(t, h, h2)
	s, s2 := r.Stats(), r2.Stats()
	assert.Equal(t, []any{s.Events, s.PayloadBytes, s.Lost, s.MaxDepth}, []any{s2.Events, s2.PayloadBytes, s2.Lost, s2.MaxDepth})
	assert.Zero(t, s2.Late+s2.UnknownMeta+s2.UnknownStacks+s2.UnknownThreads+s2.UnknownLabels)
	assert.Equal(t, copied, rewrite(t, copied), "a copy of the copy differs")
}

func TestRewrite(t *testing.T) {
	for _, name := range []string{"executioncheckpoints.nettrace", "tracelogging.netperf", "probe9.nettrace.gz", "arraytypes.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		t.Run(name, func(t *testing.T) { checkRewrite(t, testFile(t, name)) })
	}
	t.Run("known v4", func(t *testing.T) { checkRewrite(t, unhex(t, knownV4)) })
	t.Run("known v6", func(t *testing.T) { checkRewrite(t, unhex(t, knownV6)) })
}

func TestRewriteCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("large")
	}
	for _, name := range []string{
		"nettrace/microsoft-perfview/eventpipe-dotnetcore2.1-win-x86-objver3.netperf.gz",
		"nettrace/microsoft-perfview/eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.gz",
		"nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz",
		"dotnet10/dropped.nettrace", "dotnet10/v6-machine.nettrace",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) { checkRewrite(t, corpusFile(t, name)) })
	}
}

// TestWriteFarOffsets: blocks of a file of many GiB begin at multiples of 4 as those of a small one
// do, and its checksum tells all that stands before it.
func TestWriteFarOffsets(t *testing.T) {
	const far = 5 << 32
	r, err := NewReader(bytes.NewReader(testFile(t, "probe9.nettrace.gz")), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	w.offset += far
	require.NoError(t, Copy(w, r, nil))
	require.NoError(t, w.Close())
	want := rewrite(t, testFile(t, "probe9.nettrace.gz"))
	// The checksum's text is UTF-16.
	noted := func(b []byte) (n int64) {
		text := "bytes="
		i := bytes.LastIndex(b, appendStringUTF16(nil, text)[:2*len(text)])
		require.Positive(t, i)
		for k := i + 2*len(text); b[k] >= '0' && b[k] <= '9'; k += 2 {
			n = 10*n + int64(b[k]-'0')
		}
		return n
	}
	small := noted(want)
	assert.Equal(t, small+far, noted(out.Bytes()))
	assert.True(t, bytes.Equal(want[:small], out.Bytes()[:small]))
}

// Strict readers refuse a file of v6 that uses the index of a thread without a row, were it
// that of the capture thread, which the recorder never tells.
func TestWriteThreadRows(t *testing.T) {
	for _, data := range [][]byte{unhex(t, knownV6), testFile(t, "v6-nosymbols.nettrace.gz"), oneEventV6(t)} {
		rows, used := map[uint64]bool{}, 0
		for b := rewrite(t, data)[20:]; len(b) > 4; {
			kind, size := splitV6(b)
			c := Cursor{b: b[4 : 4+size]}
			b = b[4+size:]
			switch kind {
			case kindSequencePoint: // each of the Writer's flushes the threads
				clear(rows)
			case kindThread:
				for c.Len() > 0 {
					row := NewCursor(c.Bytes(int(c.U16())))
					index := row.Varuint()
					require.False(t, rows[index], "index %d is defined twice", index)
					rows[index] = true
				}
			case kindEvent:
				c.Skip(20)
				for s := (headerState{}); c.Len() > 0; c.Skip(int(s.size)) {
					require.NoError(t, s.next(&c, true))
					require.True(t, rows[s.thread], "thread %d", s.thread)
					require.True(t, rows[s.capture], "capture thread %d", s.capture)
					used++
				}
			}
		}
		require.Positive(t, used)
	}
}

// oneEventV6 is a file of v6 with an event that tells no thread at all.
func oneEventV6(t *testing.T) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	require.NoError(t, w.Write(&Event{Metadata: &Metadata{Provider: "P"}, Time: 1}))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// A sequence point that is due anyway is not written twice: a copy of a copy would differ.
func TestWriteSequencePointOnce(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	m := &Metadata{Provider: "P"}
	for size := 0; size < regionV4; size += 1 << 20 {
		require.NoError(t, w.Write(&Event{Metadata: m, Time: 1, Payload: make([]byte, 1<<20)}))
	}
	require.NoError(t, w.SequencePoint())
	require.NoError(t, w.Close())
	r, err := NewReader(&out, warnings(t))
	require.NoError(t, err)
	_, err = describeAll(t, r)
	require.Equal(t, io.EOF, err)
	assert.Equal(t, 1, r.Stats().SequencePoints)
}

// A stack may be replaced by a longer one; everything else stays.
func TestWriteLongStacks(t *testing.T) {
	for _, name := range []string{"probe9.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		data := testFile(t, name)
		long := make([]uint64, 400)
		for i := range long {
			long[i] = 0x7f00_0000_0000 + uint64(i)
		}
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		var out bytes.Buffer
		w, err := NewWriter(&out, r.Header())
		require.NoError(t, err)
		n := 0
		require.NoError(t, Copy(w, r, func(ev *Event) bool {
			if n++; n%3 == 0 {
				ev.Stack = NewStack(append(ev.Stack.AppendTo(nil), long...))
			}
			return true
		}))
		require.NoError(t, w.Close())
		r, err = NewReader(&out, warnings(t))
		require.NoError(t, err)
		orig, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(t, err)
		var a, b Event
		for i := 1; ; i++ {
			err, err2 := orig.Read(&a), r.Read(&b)
			require.Equal(t, err, err2)
			if err == io.EOF {
				break
			}
			want := a.Stack.AppendTo(nil)
			if i%3 == 0 {
				want = append(want, long...)
			}
			require.Equal(t, want, b.Stack.AppendTo(nil), "event %d", i)
			a.Stack, b.Stack = Stack{}, Stack{}
			require.Equal(t, describe(&a), describe(&b))
		}
	}
}

// The address of a 32-bit process does not get lost.
func TestWriteAddressTooLarge(t *testing.T) {
	w, err := NewWriter(io.Discard, &Header{Version: 4, PointerSize: 4, Frequency: 1e9})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Write(&Event{Metadata: &Metadata{Provider: "P"}, Stack: NewStack([]uint64{1 << 33})}), "32-bit")
}

// Metadata made by hand is written with all its fields.
// TestWriteWhatReaderTakes: nothing is written that a Reader refuses or reads as something else.
func TestWriteWhatReaderTakes(t *testing.T) {
	for version, name := range map[int]string{4: "Na\uFFFDme", 6: "Na\x00me"} {
		var out bytes.Buffer
		w, err := NewWriter(&out, &Header{Version: version, Frequency: 1e9, PointerSize: 8})
		require.NoError(t, err)
		m := &Metadata{Provider: "Lab", Name: "Na\x00me", EventID: 1}
		require.ErrorIs(t, w.Write(&Event{Metadata: m, Payload: make([]byte, defaultMaxBlock)}), ErrTooLarge)
		require.NoError(t, w.Write(&Event{Metadata: m, Payload: []byte{1}}))
		for _, text := range []string{"a\x00b", "\u00e4"} {
			require.ErrorContains(t, w.Note("lab", text), "must be ASCII without NUL", version)
		}
		require.NoError(t, w.Note("lab", "text"))
		require.NoError(t, w.Close())

		r, err := NewReader(bytes.NewReader(out.Bytes()), nil)
		require.NoError(t, err)
		var ev Event
		require.NoError(t, r.Read(&ev))
		assert.Equal(t, []byte{1}, ev.Payload)
		assert.Equal(t, name, ev.Metadata.Name, version)
		require.Equal(t, io.EOF, r.Read(&ev))
		assert.Equal(t, "text", r.Note("lab"))
	}
}

// The start time of a header is the one that was set, and a date.
func TestWriteStartTime(t *testing.T) {
	recorded := time.Date(2026, 1, 15, 10, 20, 30, 4e6, time.UTC)
	raw := [8]uint16{2026, 1, 0, 15, 10, 20, 30, 4} // with another day of the week than it has
	unix := appendSystemTime(time.Unix(0, 0))
	moved := recorded.Add(-48*time.Hour + 5*time.Microsecond)
	for _, x := range []struct {
		set  time.Time
		raw  [8]uint16
		want [8]uint16
	}{
		{recorded, raw, raw},
		{time.Time{}, raw, raw},
		{moved, raw, appendSystemTime(moved)},
		{moved.In(time.FixedZone("", 3600)), [8]uint16{}, appendSystemTime(moved)},
		{time.Time{}, [8]uint16{}, unix},
		{time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), raw, unix},
		{time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), [8]uint16{}, unix},
		{time.Date(1<<16+2026, 1, 1, 0, 0, 0, 0, time.UTC), [8]uint16{}, unix},
	} {
		for _, version := range []int{4, 6} {
			var out bytes.Buffer
			w, err := NewWriter(&out, &Header{Version: version, SyncTime: x.set, SyncTimeRaw: x.raw})
			require.NoError(t, err)
			require.NoError(t, w.Close())
			r, err := NewReader(bytes.NewReader(out.Bytes()), nil)
			require.NoError(t, err)
			assert.Equal(t, x.want, r.Header().SyncTimeRaw, x.set)
		}
	}
}

// More labels than a Reader takes are refused: it would drop all of the event.
func TestWriteManyLabels(t *testing.T) {
	w, err := NewWriter(io.Discard, &Header{Version: 6})
	require.NoError(t, err)
	m := &Metadata{Provider: "Lab", EventID: 1}
	require.NoError(t, w.Write(&Event{Metadata: m, Labels: make([]Label, maxLabels)}))
	require.ErrorIs(t, w.Write(&Event{Metadata: m, Labels: make([]Label, maxLabels+1)}), ErrTooLarge)
	require.ErrorIs(t, w.Write(&Event{Metadata: m, Labels: []Label{{Value: strings.Repeat("v", maxLabelBytes)}}}), ErrTooLarge)
	require.NoError(t, w.Write(&Event{Metadata: m}))
	require.NoError(t, w.Close())
}

func TestWriteNewMetadata(t *testing.T) {
	fields := []Field{
		{Name: "a", Type: TypeInt32},
		{Name: "b", Type: TypeObject, Fields: []Field{{Name: "c", Type: TypeString}}},
	}
	array := append(fields[:2:2], Field{Name: "d", Type: TypeArray, Elem: &Field{Type: TypeUint16}})
	for _, version := range []int{4, 6} {
		for _, f := range [][]Field{nil, fields, array} {
			m := &Metadata{Provider: "My-Provider 𝄞", Name: "ThingStart", EventID: 7, Version: 3, Level: 4, Opcode: 11, Keywords: 0xf00000000005, Fields: f}
			var out bytes.Buffer
			w, err := NewWriter(&out, &Header{Version: version, Frequency: 1e7, PointerSize: 8, SyncQPC: 5})
			require.NoError(t, err)
			ev := Event{Time: 9, ThreadID: 3, CaptureThreadID: 3, Metadata: m, Payload: []byte{1, 2, 3, 4}, Version: 3, Level: 4, Opcode: 11, Keywords: m.Keywords}
			require.NoError(t, w.Write(&ev))
			require.NoError(t, w.Close())
			r, err := NewReader(&out, warnings(t))
			require.NoError(t, err)
			var got Event
			require.NoError(t, r.Read(&got))
			g := got.Metadata
			assert.Equal(t, []any{m.Provider, m.Name, m.EventID, m.Version, m.Level, m.Opcode, m.Keywords},
				[]any{g.Provider, g.Name, g.EventID, g.Version, g.Level, g.Opcode, g.Keywords})
			assert.Equal(t, shape(f), shape(g.Fields))
			assert.Equal(t, []uint64{3, 3, 9}, []uint64{got.ThreadID, got.CaptureThreadID, uint64(got.Time)})
			assert.Equal(t, io.EOF, r.Read(&got))
		}
	}
}

// What edit makes of stacks arrives, whatever stack of the same number was copied before it, over
// many regions of the input and of the copy.
func TestCopyEditedStacks(t *testing.T) {
	for _, name := range []string{"probe9.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(bytes.NewReader(testFile(t, name)), nil)
			require.NoError(t, err)
			var out bytes.Buffer
			w, err := NewWriter(&out, r.Header())
			require.NoError(t, err)
			var want [][]uint64
			n, edited := 0, 0
			require.NoError(t, Copy(w, r, func(ev *Event) bool {
				if n++; n%100 == 0 {
					require.NoError(t, w.SequencePoint())
				}
				if n%3 == 0 && ev.Stack.Len() > 1 {
					ev.Stack = NewStack(ev.Stack.AppendTo(nil)[1:])
					edited++
				}
				want = append(want, ev.Stack.AppendTo(nil))
				return true
			}))
			require.NoError(t, w.Close())
			require.NotZero(t, edited)
			r, err = NewReader(&out, nil)
			require.NoError(t, err)
			var got [][]uint64
			for ev, err := range r.All() {
				require.NoError(t, err)
				got = append(got, ev.Stack.AppendTo(nil))
			}
			require.Equal(t, want, got)
		})
	}
}

// TestCopyEditedPayload: what edit makes of payloads is looked at, although those of the Reader are
// known to fit.
func TestCopyEditedPayload(t *testing.T) {
	r, err := NewReader(bytes.NewReader(testFile(t, "probe9.nettrace.gz")), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	all, short := 0, int64(0)
	require.NoError(t, Copy(w, r, func(ev *Event) bool {
		if all++; ev.fitted && ev.Metadata.Role.NamesMethods() {
			ev.Payload = ev.Payload[:3]
			short++
		}
		return true
	}))
	require.NoError(t, w.Close())
	require.NotZero(t, short)
	r, err = NewReader(&out, nil)
	require.NoError(t, err)
	left := 0
	for _, err := range r.All() {
		require.NoError(t, err)
		left++
	}
	require.Equal(t, all-int(short), left)
	require.Equal(t, short, r.Salvage().LeftOut)
}

// TestCopyOfHeaders: a copy of which nobody looks at the events is the same as one that is made of
// them, damage or not.
func TestCopyOfHeaders(t *testing.T) {
	copied := func(data []byte, edit func(*Event) bool) []byte {
		r, err := NewReader(bytes.NewReader(data), nil)
		if err != nil {
			return nil
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, r.Header())
		require.NoError(t, err)
		_ = Copy(w, r, edit) // as far as it goes
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	leave := func(*Event) bool { return true }
	for _, name := range []string{"executioncheckpoints.nettrace", "tracelogging.netperf", "probe9.nettrace.gz", "arraytypes.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		data := testFile(t, name)
		require.Equal(t, copied(data, leave), copied(data, nil), name)
		if len(data) < 1<<17 {
			continue // damage needs room
		}
		rng := rand.New(rand.NewPCG(3, 5))
		for _, d := range damages {
			for range 4 {
				hit := d.do(bytes.Clone(data), rng)
				require.Equal(t, copied(hit, leave), copied(hit, nil), "%s: %s", name, d.name)
			}
		}
	}
}

// TestWriteOfTwoReaders: definitions of one index are not taken for one another.
func TestWriteOfTwoReaders(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, Frequency: 1e7, PointerSize: 8, SyncQPC: 5})
	require.NoError(t, err)
	metas := []*Metadata{{Index: 3, Provider: "A", EventID: 1}, {Index: 3, Provider: "B", EventID: 1}, {Index: -1, Provider: "C", EventID: 1}}
	var want, got []string
	for i := range 9 {
		m := metas[i%len(metas)]
		want = append(want, m.Provider)
		require.NoError(t, w.Write(&Event{Time: int64(9 + i), Metadata: m}))
	}
	require.NoError(t, w.Close())
	r, err := NewReader(&out, warnings(t))
	require.NoError(t, err)
	for ev, err := range r.All() {
		require.NoError(t, err)
		got = append(got, ev.Metadata.Provider)
	}
	require.Equal(t, want, got)
}

// TestStackAgain holds that the memory of a stack is used again, and that what has more frames gets more.
func TestStackAgain(t *testing.T) {
	s := NewStack([]uint64{1, 2, 3})
	a := s.Again([]uint64{7, 8})
	assert.Equal(t, []uint64{7, 8}, a.AppendTo(nil))
	assert.Equal(t, []uint64{7, 8, 3}, s.AppendTo(nil), "one memory")
	assert.Equal(t, []uint64{1, 2, 3, 4, 5}, a.Again([]uint64{1, 2, 3, 4, 5}).AppendTo(nil))
	assert.Zero(t, a.Again(nil).Len())
	assert.Equal(t, []uint64{9}, Stack{}.Again([]uint64{9}).AppendTo(nil))
}

// TestWriteManyDefinitions: definitions of 70 MB before the first block of events is full are
// several blocks, none larger than a Reader takes.
func TestWriteManyDefinitions(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, PointerSize: 8, Frequency: 1e9, SyncQPC: 1})
	require.NoError(t, err)
	name := strings.Repeat("n", 500<<10)
	const n = 70
	for i := range n {
		m := &Metadata{Provider: "P", EventID: i + 1, Name: name}
		require.NoError(t, w.Write(&Event{Time: int64(i + 2), ThreadID: 1, CaptureThreadID: 1, Metadata: m}))
	}
	require.NoError(t, w.Close())
	r, err := NewReader(&out, warnings(t))
	require.NoError(t, err)
	events := 0
	for ev, err := range r.All() {
		require.NoError(t, err)
		events++
		require.Equal(t, events, ev.Metadata.EventID)
	}
	assert.Equal(t, n, events)
}
