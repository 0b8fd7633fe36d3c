package nettrace

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Known-answer files, built by hand from the description of the format and read
// by an independent decoder and by TraceEvent (nettrace.md section 16).
const (
	knownV4 = `
4e6574747261636514000000214661737453657269616c697a6174696f6e2e31050501040000000400000005000000547261
636506ea07010004000f000a0014001e009001e80300000000000000ca9a3b00000000080000002a0000000400000040420f
000605050102000000020000000d0000004d65746164617461426c6f636b06440000000014000100d007000000000000d007
000000000000c0d00f2c01000000500000000700000045000000000000000000000000000000040000000100000009000000
780000000605050102000000020000000a000000537461636b426c6f636b0620000000000100000002000000000000001000
0000101000000000000020200000000000000605050102000000020000000a0000004576656e74426c6f636b062900000000
14000100d007000000000000da07000000000000cf01004d034d02d00f040500000008010a06000000060505010200000002
000000070000005350426c6f636b0618000000000000db07000000000000010000004d00000000000000020000000601`
	knownV6 = `
4e6574747261636500000000060000000000000035000001ea07010004000f000a0014001e009001e80300000000000000ca
9a3b0000000008000000010000000950726f63657373496402343228000003000024000110556e6976657273616c2e457665
6e74730103637075010007000556616c756515000007000006050001022a034d1c0000050100000001000000100000001010
00000000000020200000000000000d000008010000000100000085016b01762300000214000100d007000000000000da0700
0000000000df010001030101d00f010101000a0212000004db070000000000000000000001000000010200000000`
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func TestKnownAnswerV4(t *testing.T) {
	r, err := NewReader(bytes.NewReader(unhex(t, knownV4)), warnings(t))
	require.NoError(t, err)
	h := r.Header()
	assert.Equal(t, 4, h.Version)
	assert.Equal(t, time.Date(2026, 1, 15, 10, 20, 30, 400e6, time.UTC), h.SyncTime)
	assert.Equal(t, int64(1000), h.SyncQPC)
	assert.Equal(t, int64(1e9), h.Frequency)
	assert.Equal(t, []int{8, 42, 4, 1e6}, []int{h.PointerSize, h.ProcessID, h.Processors, int(h.SamplingInterval)})

	var ev Event
	require.NoError(t, r.Read(&ev))
	m := ev.Metadata
	assert.Equal(t, "P/E 7", fmt.Sprintf("%s/%s %d", m.Provider, m.EventName(), m.EventID))
	assert.Equal(t, []Field{{Name: "x", Type: TypeInt32}}, m.Fields)
	assert.Equal(t, []uint64{2000, 77, 77, 42, 3, 1}, []uint64{uint64(ev.Time), ev.ThreadID, ev.CaptureThreadID, uint64(ev.ProcessID), uint64(ev.Processor), uint64(ev.SequenceNumber)})
	assert.True(t, ev.Sorted)
	assert.Equal(t, []uint64{0x1010, 0x2020}, ev.Stack.AppendTo(nil))
	assert.NotZero(t, ev.StackKey)
	assert.Equal(t, []byte{5, 0, 0, 0}, ev.Payload)
	v, err := ev.AppendValues(nil)
	require.NoError(t, err)
	require.Len(t, v, 1)
	assert.Equal(t, int64(5), v[0].Int())
	assert.Equal(t, int64(1000), r.Nanos(ev.Time))

	require.NoError(t, r.Read(&ev))
	assert.Equal(t, int64(2010), ev.Time)
	assert.Zero(t, ev.StackKey)
	assert.Zero(t, ev.Stack.Len())
	assert.Equal(t, []byte{6, 0, 0, 0}, ev.Payload)
	assert.False(t, ev.Sorted)
	assert.Same(t, m, ev.Metadata)
	assert.Equal(t, io.EOF, r.Read(&ev))
	assert.Equal(t, io.EOF, r.Read(&ev))
	assert.Zero(t, r.Stats().Lost)
}

func TestKnownAnswerV6(t *testing.T) {
	r, err := NewReader(bytes.NewReader(unhex(t, knownV6)), warnings(t))
	require.NoError(t, err)
	assert.Equal(t, 42, r.Header().ProcessID)
	assert.Equal(t, []KeyValue{{"ProcessId", "42"}}, r.Header().KeyValues)
	var ev Event
	for i, at := range []int64{2000, 2010} {
		require.NoError(t, r.Read(&ev))
		assert.Equal(t, at, ev.Time)
		assert.Equal(t, RoleCPU, ev.Metadata.Role)
		assert.Equal(t, []uint64{77, 42, 1, 3}, []uint64{ev.ThreadID, uint64(ev.ProcessID), ev.ThreadIndex, uint64(ev.Processor)})
		assert.Equal(t, []uint64{0x1010, 0x2020}, ev.Stack.AppendTo(nil))
		assert.Equal(t, []Label{{Key: "k", Value: "v"}}, ev.Labels)
		assert.Equal(t, uint32(i+1), ev.SequenceNumber)
		value, err := ev.UniversalValue()
		require.NoError(t, err)
		assert.Equal(t, uint64(i+1), value)
	}
	assert.Equal(t, io.EOF, r.Read(&ev))
}

// warnings returns options under which a warning fails the test.
func warnings(t testing.TB) *Options {
	return &Options{Warn: func(e *FormatError) { t.Errorf("unexpected warning: %v", e) }}
}

func TestNanos(t *testing.T) {
	for _, c := range []struct{ sync, freq, qpc, want int64 }{
		{0, 1e9, 5, 5},
		{100, 1e9, 50, -50},
		{0, 1e7, 3, 300},
		{0, 3_124_099, 1, 320}, // 320.09 rounded down
		{1, 3_124_099, 0, -321},
		{0, 2_533_315, 1 << 50, 444437390076885030},
		{0, 1e9, MaxNanos - 1, MaxNanos - 1},
		{0, 1e9, MaxNanos + 1, MaxNanos}, // limited
		{-1 << 63, 1e9, 1<<63 - 1, MaxNanos},
		{1<<63 - 1, 1e9, -1 << 63, -MaxNanos},
		{0, 1, 1 << 62, MaxNanos},
	} {
		h := &Header{SyncQPC: c.sync, Frequency: c.freq}
		assert.Equal(t, c.want, h.Nanos(c.qpc), "%+v", c)
	}
}

func TestGUIDString(t *testing.T) {
	g := GUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	assert.Equal(t, "04030201-0605-0807-090a-0b0c0d0e0f10", g.String())
}

// Scopes of the log in .NET Core 3.1 have no field list.
func TestScopesOfOldLogs(t *testing.T) {
	r, err := NewReader(bytes.NewReader(corpusFile(t, "dotnet10/net31-log4.nettrace")), warnings(t))
	require.NoError(t, err)
	scopes := 0
	for ev, err := range r.All() {
		require.NoError(t, err)
		if ev.Metadata.Provider != providerLogging || ev.Metadata.Name != "ActivityStart" {
			continue
		}
		scopes++
		require.Empty(t, ev.Metadata.Fields)
		var names []string
		values, err := ev.AppendValues(nil)
		require.NoError(t, err)
		for i := range values {
			names = append(names, ev.Layout().Fields[i].Name)
		}
		assert.EqualValues(t, scopes, values[0].Int())
		require.Equal(t, []string{"ID", "FactoryID", "LoggerName", "Arguments"}, names)
	}
	assert.Equal(t, 177, scopes)
}
