package ipc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func content(t testing.TB, name string) []byte {
	in, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer in.Close()
	r, err := in.Reader()
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

type buffer struct{ bytes.Buffer }

func (b *buffer) Close() error { return nil }

// read decodes b, and returns the items in order and the traces by connection.
func read(t testing.TB, r io.Reader) (items []*Item, traces map[int]*buffer, res *Result) {
	traces = map[int]*buffer{}
	o := &Options{Trace: func(conn int, format string) (io.WriteCloser, error) {
		traces[conn] = &buffer{}
		return traces[conn], nil
	}}
	res, err := Read(r, o, func(it *Item) error {
		items = append(items, it)
		return nil
	})
	require.NoError(t, err)
	return items, traces, res
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "M", hex.EncodeToString([]byte(magic))))
	require.NoError(t, err)
	return b
}

func field(it *Item, name string) any {
	for _, f := range it.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

const collect2 = "M 8700 02030000 00010000 01000000 01 01000000 0000000000000000 04000000" +
	"0f000000 530079007300740065006d002e00520075006e00740069006d0065000000" +
	"1a000000 4500760065006e00740043006f0075006e0074006500720049006e00740065007200760061006c005300650063003d0031000000"

// TestVectors decodes the messages of diagnostics-ipc.md section 9.5.
func TestVectors(t *testing.T) {
	for _, c := range []struct{ name, hex, want string }{
		{"ProcessInfo3", "M 1400 04080000", "request ProcessInfo3 []"},
		{"StopTracing", "M 1c00 02010000 0100000000000000", "request StopTracing [{session 0x1 false}]"},
		{"OK session", "M 1c00 ff000000 0100000000000000", "response OK [{session 0x1 false}]"},
		{"OK", "M 1800 ff000000 00000000", "response OK []"},
		{"Error", "M 1800 ffff0000 85131380", "response Error [{result UNKNOWN_COMMAND (0x80131385) false}]"},
		{"advertise", "414456525f563100 00112233445566778899aabbccddeeff 9210000000000000 0000", "advertise advertise [{cookie 33221100-5544-7766-8899-aabbccddeeff false} {pid 4242 false}]"},
		{"CollectTracing2", collect2, "request CollectTracing2 [{buffer_mb 256 false} {format nettrace false} {rundown true false} {providers [{System.Runtime 0 0x0 4 EventCounterIntervalSec=1 }] false}]"},
		{"CollectTracing6", "M 3100 02070000 00000000 00010000 01000000 0200000000000000 01 00000000 01000000",
			"request CollectTracing6 [{session_type 0 false} {buffer_mb 256 false} {format nettrace false} {rundown_keyword 0x2 false} {stackwalk true false} {buffering block false}]"},
		{"CollectTracing5 of user events", "M 2400 02060000 01000000 0200000000000000 00000000",
			"request CollectTracing5 [{session_type 1 false} {rundown_keyword 0x2 false}]"},
		{"CollectTracing5 with tracepoints", "M 5d00 02060000 01000000 0000000000000000 01000000 0300000000000000 05000000 02000000 50000000 00000000 00 00000000 02000000 74000000 01000000 02000000 75000000 01000000 04000000",
			"request CollectTracing5 [{session_type 1 false} {rundown_keyword 0x0 false} {providers [{P 3 0x3 5  tracepoint t tracepoint u for 4}] false}]"},
	} {
		items, _, _ := read(t, bytes.NewReader(unhex(t, c.hex)))
		require.Len(t, items, 1, c.name)
		it := items[0]
		assert.Equal(t, c.want, fmt.Sprint(it.Kind, " ", it.Name, " ", it.Fields), c.name)
		assert.Empty(t, it.Notes, c.name)
	}
}

// TestShortPayloads decodes messages whose payload ends anywhere: what it does not hold is absent,
// and that it ends early is said.
func TestShortPayloads(t *testing.T) {
	for _, c := range []struct{ name, hex string }{
		{"CollectTracing2", collect2[len("M 8700 02030000"):]},
		{"GenerateCoreDump2", "02000000 61000000 02000000 01000000"},
		{"AttachProfiler", "05000000 33221100554477668899aabbccddeeff 02000000 61000000 02000000 0102"},
		{"SetEnvironmentVariable", "02000000 61000000 02000000 62000000"},
		{"EnablePerfMap", "01000000"},
		{"StopTracing", "0100000000000000"},
	} {
		payload := unhex(t, c.hex)
		var command [2]int
		for k, name := range commands {
			if name == c.name {
				command = k
			}
		}
		decoded := func(n int) *Item {
			message := binary.LittleEndian.AppendUint16([]byte(magic), uint16(20+n))
			message = append(message, byte(command[0]), byte(command[1]), 0, 0)
			items, _, _ := read(t, bytes.NewReader(append(message, payload[:n]...)))
			require.Len(t, items, 1, c.name)
			require.Equal(t, c.name, items[0].Name)
			return items[0]
		}
		assert.Empty(t, decoded(0).Fields, c.name)
		whole := decoded(len(payload))
		assert.Empty(t, whole.Notes, c.name)
		for n := range payload {
			short := decoded(n)
			for i, f := range short.Fields {
				if f.Name == "providers" {
					continue // as many of them, and of the last as much, as there are
				}
				require.Less(t, i, len(whole.Fields), "%s of %d bytes", c.name, n)
				require.Equal(t, whole.Fields[i], f, "%s of %d bytes", c.name, n)
			}
			if c.name != "CollectTracing2" { // clients leave out the end of it
				assert.Equal(t, []string{"the payload ends early"}, short.Notes, "%s of %d bytes", c.name, n)
			}
		}
	}
	for name, hex := range map[string]string{"Error": "M 1400 ffff0000", "OK": "M 1400 ff000000"} {
		items, _, _ := read(t, bytes.NewReader(unhex(t, hex)))
		require.Len(t, items, 1)
		assert.Equal(t, name, items[0].Name)
		assert.Empty(t, items[0].Fields, "%s without a payload", name)
	}
}

// TestMixed decodes both directions one after the other, and several connections in one file.
func TestMixed(t *testing.T) {
	trace := append([]byte("Nettrace\x14\x00\x00\x00!FastSerialization.1 and "+magic+" inside"), 6, 1)
	b := unhex(t, "M 1400 04010000 M 1800 ff000000 00000000")
	b = append(b, unhex(t, collect2)...)
	b = append(b, unhex(t, "M 1c00 ff000000 0100000000000000")...)
	b = append(b, trace...)
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(b), "bytes": iotest.OneByteReader(bytes.NewReader(b)), "halves": iotest.HalfReader(bytes.NewReader(b))} {
		items, traces, res := read(t, r)
		var names []string
		for _, it := range items {
			names = append(names, it.Kind+" "+it.Name)
		}
		assert.Equal(t, []string{"request ResumeRuntime", "response OK", "request CollectTracing2", "response OK", "trace "}, names, name)
		assert.Equal(t, trace, traces[1].Bytes(), name)
		assert.Empty(t, items[4].Notes, name)
		assert.EqualValues(t, len(b), res.Bytes)
		assert.EqualValues(t, len(b)-len(trace), items[4].Offset)
	}
}

func TestReverse(t *testing.T) {
	b := content(t, "../../testdata/ipc/reverse.rec.zst")
	items, traces, res := read(t, bytes.NewReader(b))
	assert.True(t, res.Framed)
	assert.Equal(t, 13, res.Conns)
	assert.Empty(t, res.Damage)
	assert.Len(t, traces, 1)
	assert.Equal(t, 26714, traces[6].Len())
	adverts := 0
	for _, it := range items {
		if it.Kind == "advertise" {
			adverts++
			assert.Equal(t, "31f951d2-8ef4-457a-88a7-6b6a199158fe", field(it, "cookie"))
			assert.EqualValues(t, 8863, field(it, "pid"))
		}
		assert.Empty(t, it.Notes)
	}
	assert.Equal(t, 12, adverts)

	for _, format := range []string{"text", "ndjson"} {
		var out bytes.Buffer
		w := NewWriter(&out, format, false, 0)
		for _, it := range items {
			require.NoError(t, w.Item(it))
		}
		name := filepath.Join("testdata", "reverse."+format)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o777))
			require.NoError(t, os.WriteFile(name, out.Bytes(), 0o666))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), out.String())
		assert.NotContains(t, out.String(), "/usr/bin", "values of the environment are hidden")
		if format == "ndjson" {
			for line := range bytes.Lines(out.Bytes()) {
				require.True(t, json.Valid(line))
			}
		}
	}
	var out bytes.Buffer
	w := NewWriter(&out, "text", true, 0)
	for _, it := range items {
		require.NoError(t, w.Item(it))
	}
	assert.Contains(t, out.String(), "PATH=/usr/bin")
}

// TestReverseFromTheRuntime decodes what a proxy before a tool that waits records: there it is the
// runtime that connects, and says first who it is.
func TestReverseFromTheRuntime(t *testing.T) {
	b := content(t, "../../testdata/ipc/reverse.rec.zst")
	want, traces, _ := read(t, bytes.NewReader(b))
	calls := map[int]bool{}
	for _, it := range want {
		calls[it.Conn] = calls[it.Conn] || it.Kind == "advertise"
	}
	for at := 0; at < len(b); at += frameHeader + int(binary.LittleEndian.Uint32(b[at+13:])) {
		if calls[int(binary.LittleEndian.Uint32(b[at+1:]))] {
			b[at] ^= 'c' ^ 's'
		}
	}
	items, swapped, _ := read(t, bytes.NewReader(b))
	assert.Equal(t, want, items)
	assert.Equal(t, traces, swapped)
}

// TestLate takes the requests out of a recording, as if it had begun after them: what is a
// trace shows in its first bytes, which may come in pieces.
func TestLate(t *testing.T) {
	b := content(t, "../../testdata/ipc/reverse.rec.zst")
	_, want, _ := read(t, bytes.NewReader(b))
	var late, raw []byte
	for at := 0; at < len(b); {
		end := at + frameHeader + int(binary.LittleEndian.Uint32(b[at+13:]))
		if b[at] == 's' {
			late = append(late, b[at:end]...)
			if b[at+1] == 6 {
				raw = append(raw, b[at+frameHeader:end]...)
			}
		}
		at = end
	}
	_, traces, _ := read(t, bytes.NewReader(late))
	require.Contains(t, traces, 6)
	assert.Equal(t, want[6].Bytes(), traces[6].Bytes())
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(raw), "bytes": iotest.OneByteReader(bytes.NewReader(raw))} {
		items, traces, _ := read(t, r)
		require.Len(t, items, 3, name)
		require.Contains(t, traces, 1, name)
		assert.Equal(t, want[6].Bytes(), traces[1].Bytes(), name)
	}
}

// TestSession decodes the recording of diagnostics-ipc.md section 9.6.
func TestSession(t *testing.T) {
	b := content(t, tracetest.Corpus(t, "dotnet10", "ipc", "session"))
	items, traces, res := read(t, bytes.NewReader(b))
	assert.Equal(t, 3, res.Conns)
	require.Len(t, items, 7)
	want := content(t, tracetest.Corpus(t, "dotnet10", "ipc", "collected.nettrace"))
	assert.True(t, bytes.Equal(want, traces[1].Bytes()), "the trace is the file that the tool wrote")
	assert.Equal(t, "CollectTracing2", items[0].Name)
	assert.Equal(t, []Provider{
		{Name: "Microsoft-Windows-DotNETRuntime", Keywords: 0x100003801D, Hex: "0x100003801D", Level: 4},
		{Name: "Microsoft-DotNETCore-SampleProfiler", Keywords: 0xF00000000000, Hex: "0xF00000000000", Level: 4},
	}, field(items[0], "providers"))
	assert.Equal(t, "0x7FAAD4001480", field(items[1], "session"))
	last := items[6]
	assert.Equal(t, "trace", last.Kind)
	assert.InDelta(t, 131.408, float64(last.Ns)/1e6, 0.001)
	assert.InDelta(t, 2264.443, float64(last.EndNs)/1e6, 0.001)
	assert.False(t, last.Cut)

	// The same connection as bare bytes of one direction.
	_, traces, _ = read(t, bytes.NewReader(content(t, tracetest.Corpus(t, "dotnet10", "ipc", "session.1.s2c"))))
	assert.True(t, bytes.Equal(want, traces[1].Bytes()))
}

// TestCommands holds the table of the README of the recordings.
func TestCommands(t *testing.T) {
	b := content(t, tracetest.Corpus(t, "dotnet10", "ipc", "commands.rec"))
	items, traces, res := read(t, bytes.NewReader(b))
	assert.Equal(t, 86, res.Conns)
	assert.Empty(t, res.Damage)
	requests, answers, other := map[int]*Item{}, map[int]*Item{}, map[int]*Item{}
	for _, it := range items {
		switch it.Kind {
		case "request":
			requests[it.Conn] = it
		case "response":
			answers[it.Conn] = it
		default:
			other[it.Conn] = it
		}
	}
	for conn, want := range map[int]struct {
		name, answer string
		trace        int
	}{
		1: {"ProcessInfo", "OK", 0}, 19: {"CollectTracing", "OK", 607838}, 21: {"CollectTracing2", "OK", 18462}, 23: {"CollectTracing2", "OK", 30014},
		25: {"CollectTracing3", "OK", 18162}, 27: {"CollectTracing4", "OK", 45910}, 31: {"CollectTracing5", "OK", 18166}, 41: {"CollectTracing6", "UNKNOWN_COMMAND (0x80131385)", 0},
		9: {"SetEnvironmentVariable", "ENVVAR_NOT_FOUND (0x800700CB)", 0}, 46: {"CollectTracing2", "BAD_ENCODING (0x80131384)", 0},
		64: {"(unknown command 7F 00)", "UNKNOWN_COMMAND (0x80131385)", 0}, 66: {"(unknown command FF 00)", "UNKNOWN_COMMAND (0x80131385)", 0},
		70: {"ProcessInfo", "UNKNOWN_MAGIC (0x80131386)", 0}, 81: {"CollectTracing5", "FAIL (0x80004005)", 0}, 61: {"CollectTracing2", "OK", 10146},
	} {
		require.NotNil(t, requests[conn], conn)
		assert.Equal(t, want.name, requests[conn].Name, conn)
		require.NotNil(t, answers[conn], conn)
		if want.answer == "OK" {
			assert.Equal(t, "OK", answers[conn].Name, conn)
		} else {
			assert.Equal(t, want.answer, field(answers[conn], "result"), conn)
		}
		if want.trace > 0 {
			require.NotNil(t, traces[conn], conn)
			assert.Equal(t, want.trace, traces[conn].Len(), conn)
			assert.Empty(t, other[conn].Notes)
		}
	}
	assert.Equal(t, "netperf", other[23].Format)
	assert.True(t, other[42].Cut, "the tool closed it")
	assert.Equal(t, "junk", other[75].Kind)
	assert.EqualValues(t, 64, other[76].Size)
	assert.Equal(t, "junk", other[81].Kind, "the byte with the descriptor")
	assert.Len(t, other[7].Fields, 5)
	assert.Equal(t, Field{"IPC_EMPTY", "", true}, other[7].Fields[4])
	for _, conn := range []int{83, 85, 86} {
		assert.NotNil(t, requests[conn])
		assert.Nil(t, answers[conn], "the process died")
		assert.Empty(t, requests[conn].Fields, "it has no payload")
	}
	for conn, note := range map[int]string{55: "without its count", 57: "missing", 59: "missing", 61: "4 spare bytes", 72: "less than a header", 78: "24 of 28", 79: "10 of 20", 70: "DOTNET_IPC_V2", 53: "without its zero", 76: "44 spare"} {
		assert.Contains(t, strings.Join(requests[conn].Notes, "; "), note, conn)
	}
	providers := field(requests[37], "providers").([]Provider)
	assert.Equal(t, "only 4,7", providers[0].Filter)
	assert.Equal(t, "all but 4", field(requests[35], "providers").([]Provider)[0].Filter)
	assert.Equal(t, "no events", field(requests[39], "providers").([]Provider)[0].Filter)
}

// TestEveryPrefix cuts recordings everywhere: what was decoded whole stays the same, and
// bytes are neither lost nor counted twice.
func TestEveryPrefix(t *testing.T) {
	b := content(t, "../../testdata/ipc/reverse.rec.zst")
	for n := 0; n < len(b); n += 1 + n/300 {
		if !IsRecording(b[:n]) {
			continue
		}
		items, _, res := read(t, bytes.NewReader(b[:n]))
		sum := int64(0)
		for _, it := range items {
			sum += it.Size
		}
		data := int64(0)
		for at := 0; at+frameHeader <= n; {
			size := int(binary.LittleEndian.Uint32(b[at+13:]))
			data += int64(min(size, n-at-frameHeader))
			at += frameHeader + size
		}
		require.Equal(t, data, sum, "cut to %d bytes", n)
		require.LessOrEqual(t, res.Bytes, int64(n))
	}
	mixed := append(unhex(t, collect2), unhex(t, "M 1c00 ff000000 0100000000000000")...)
	for n := 14; n < len(mixed); n++ {
		items, _, _ := read(t, bytes.NewReader(mixed[:n]))
		require.NotEmpty(t, items)
		last := items[len(items)-1]
		whole := n == 135
		require.Equal(t, whole, !last.Cut && last.Kind == "request", "cut to %d bytes: %+v", n, last)
	}
}

// TestControlCharacters: what a recording holds writes neither lines of its own nor to the
// terminal.
// What waits for its end takes no more memory than a recording of any program needs, on however many
// connections it waits.
// Damage costs the frames that it hits, wherever it is, and none behind it.
func TestDamagedFrames(t *testing.T) {
	b := content(t, "../../testdata/ipc/reverse.rec.zst")
	whole, _, _ := read(t, bytes.NewReader(b))
	starts := []int{0} // of frames
	for at := 0; at < len(b); starts = append(starts, at) {
		at += frameHeader + int(binary.LittleEndian.Uint32(b[at+13:]))
	}
	for _, at := range []int{starts[3] + frameHeader + 5, 15_000, starts[len(starts)-6] + frameHeader + 2} {
		items, _, res := read(t, bytes.NewReader(slices.Delete(bytes.Clone(b), at, at+10)))
		require.Len(t, res.Damage, 1, at)
		assert.Contains(t, res.Damage[0].What, "not a frame")
		assert.EqualValues(t, len(b)-10, res.Bytes)
		assert.GreaterOrEqual(t, len(items), len(whole)-2, at)
		last := 0
		for _, it := range items {
			last = max(last, it.Conn)
		}
		assert.Equal(t, 13, last, at)
	}
	junk := append(bytes.Clone(b), bytes.Repeat([]byte("sc"), 5000)...)
	_, _, res := read(t, bytes.NewReader(junk))
	require.Len(t, res.Damage, 1)
	assert.EqualValues(t, len(junk), res.Bytes)
}

func TestHeldBytes(t *testing.T) {
	const conns, each = 20, maxBlock / 2
	start := time.Unix(0, 0)
	head := func(w io.Writer, conn int) {
		require.NoError(t, WriteFrame(w, conn, ToRuntime, start, unhex(t, "M 1400 04 02 0000")))
		// an environment of which the last byte never comes
		answer := append(unhex(t, "M 1a00 ff 00 0000"), binary.LittleEndian.AppendUint32(nil, each+1)...)
		require.NoError(t, WriteFrame(w, conn, ToTool, start, append(answer, 0, 0)))
	}
	var b bytes.Buffer
	for conn := 1; conn <= conns; conn++ {
		head(&b, conn)
		require.NoError(t, WriteFrame(&b, conn, ToTool, start, make([]byte, each)))
	}
	var most int64
	items, _, res := read(t, &b)
	for _, it := range items {
		if it.Kind == "environment" {
			most += it.Size
		}
	}
	require.Len(t, res.Damage, 1)
	assert.Contains(t, res.Damage[0].What, "wait for the rest of their messages")
	assert.LessOrEqual(t, most, int64(maxHeld+64<<10))

	// Whole ones wait for nothing.
	b.Reset()
	for conn := 1; conn <= conns; conn++ {
		head(&b, conn)
		require.NoError(t, WriteFrame(&b, conn, ToTool, start, make([]byte, each+1)))
	}
	_, _, res = read(t, &b)
	assert.Empty(t, res.Damage)
	assert.Equal(t, conns, res.Conns)
}

// A part of an environment is not passed off as all of it.
func TestLargeEnvironment(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteFrame(&b, 1, ToRuntime, time.Unix(0, 0), unhex(t, "M 1400 04 02 0000")))
	answer := append(unhex(t, "M 1a00 ff 00 0000"), binary.LittleEndian.AppendUint32(nil, maxBlock+1)...)
	require.NoError(t, WriteFrame(&b, 1, ToTool, time.Unix(0, 0), append(answer, 0, 0)))
	require.NoError(t, WriteFrame(&b, 1, ToTool, time.Unix(0, 0), make([]byte, maxBlock+1)))
	items, _, _ := read(t, &b)
	assert.Equal(t, []string{"only its first 16777216 bytes were read"}, items[len(items)-1].Notes)
}

func TestControlCharacters(t *testing.T) {
	const odd = "a\x1b[31m\nb"
	var out bytes.Buffer
	w := NewWriter(&out, "text", true, 0)
	for _, it := range []*Item{
		{Kind: "request", Name: "GenerateCoreDump", Fields: []Field{{Name: "path", Value: odd}}},
		{Kind: "request", Name: "CollectTracing", Fields: []Field{{Name: "providers", Value: []Provider{{Name: odd, Hex: "0x1", Arguments: odd}}}}},
		{Kind: "environment", Fields: []Field{{Name: odd, Value: odd, Secret: true}}},
	} {
		require.NoError(t, w.Item(it))
	}
	assert.Equal(t, 6, strings.Count(out.String(), "\n"), out.String()) // the first is the head
	assert.NotContains(t, out.String(), "\x1b")
	assert.Equal(t, 5, strings.Count(out.String(), `a\x1b[31m\nb`))
}

func TestNoRecording(t *testing.T) {
	for _, s := range []string{"", "hello", "Nettrace\x14\x00\x00\x00", "c\x01\x00\x00\x00", strings.Repeat("c", 100)} {
		assert.False(t, IsRecording([]byte(s)))
		_, err := Read(strings.NewReader(s), nil, func(*Item) error { return nil })
		assert.ErrorIs(t, err, ErrNoRecording)
	}
}

// FuzzRead holds that no bytes make it panic, and that all are accounted for.
func FuzzRead(f *testing.F) {
	f.Add(append(unhex(f, collect2), unhex(f, "M 1c00 ff000000 0100000000000000")...))
	f.Add(unhex(f, "M 1400 04020000 M 1a00 ff000000 12000000 0000 01000000 06000000 41003d0062006300 0000"))
	f.Add(unhex(f, "63 01000000 0000000000000000 14000000 M 1400 04080000 73 01000000 0000000000000000 18000000 M 1800 ffff0000 85131380"))
	f.Add(unhex(f, "M 6b00 02060000 01000000 0000000000000000 01000000 0000000000000000 04000000 02000000 41000000 00000000 00 00000000 02000000 42000000 00000000 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var sum int64
		w := NewWriter(io.Discard, "ndjson", true, 0)
		x := NewWriter(io.Discard, "text", true, 0)
		res, err := Read(bytes.NewReader(b), nil, func(it *Item) error {
			sum += it.Size
			require.NoError(t, w.Item(it))
			return x.Item(it)
		})
		if err != nil {
			require.ErrorIs(t, err, ErrNoRecording)
			return
		}
		if !res.Framed {
			require.EqualValues(t, len(b), sum)
		}
	})
}
