package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const data = "../../testdata/nettrace"

// open returns an input.Opener for a file.
func open(t testing.TB, name string) input.Opener {
	in, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	t.Cleanup(func() { in.Close() })
	return in.Reader
}

// opened returns an input.Opener for bytes.
func opened(b []byte) input.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func content(t testing.TB, name string) []byte {
	rc, err := open(t, name)()
	require.NoError(t, err)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	require.NoError(t, err)
	return b
}

func listing(t testing.TB, o input.Opener, opts *Options) (string, *Result) {
	var out bytes.Buffer
	res, err := Write(context.Background(), o, &out, opts)
	require.NoError(t, err)
	return out.String(), res
}

// TestGolden holds the lines of the test traces. Of long ones those that the options
// select.
func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		o    Options
	}{
		"tracelogging.ndjson":         {"tracelogging.netperf", Options{}},
		"executioncheckpoints.ndjson": {"executioncheckpoints.nettrace", Options{}},
		"executioncheckpoints.txt":    {"executioncheckpoints.nettrace", Options{Format: "text"}},
		"arraytypes.ndjson":           {"arraytypes.nettrace.gz", Options{Select: profile.Selection{Providers: []string{"Test*", "*EventPipe"}}}},
		"arraytypes.txt":              {"arraytypes.nettrace.gz", Options{Format: "text", Select: profile.Selection{Providers: []string{"Test*", "*EventPipe"}}}},
		"counters.txt":                {"counters.nettrace.zst", Options{Format: "text", Width: 100, Select: profile.Selection{Providers: []string{"System.*"}}, Limit: 60}},
		"counters.colour.txt":         {"counters.nettrace.zst", Options{Format: "text", Width: 80, Color: true, Limit: 8}},
		"probe10.ndjson":              {"probe10.nettrace.zst", Options{Limit: 60}},
		"v6.ndjson":                   {"v6-nosymbols.nettrace.gz", Options{Select: profile.Selection{Events: []string{"ExistingProcess", "cpu", "cswitch", "ProcessMapping*"}}, Limit: 40}},
		"v6.txt":                      {"v6-nosymbols.nettrace.gz", Options{Format: "text", Select: profile.Selection{Events: []string{"ExistingProcess", "cpu"}}, Limit: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := listing(t, open(t, filepath.Join(data, c.file)), &c.o)
			golden := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o777))
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// An eventLine is a line of ndjson as the tests read it.
type eventLine struct {
	MS       json.Number    `json:"ms"`
	PID      int            `json:"pid"`
	TID      uint64         `json:"tid"`
	Provider string         `json:"provider"`
	ID       int            `json:"id"`
	Version  int            `json:"version"`
	Name     string         `json:"name"`
	Level    int            `json:"level"`
	Keywords string         `json:"keywords"`
	Opcode   int            `json:"opcode"`
	Activity string         `json:"activity"`
	Path     string         `json:"path"`
	Related  string         `json:"related"`
	Payload  map[string]any `json:"payload"`
}

// eventKey is by what events of two lists are matched.
type eventKey struct {
	ns       int64
	tid      uint64
	provider string
	id       int
	version  int
}

// dynamicID is the id under which the reference library lists GCDynamicEvent.
const dynamicID = 65524

// TestEqualsReference compares the lists of all recordings with those of the
// reference library, event by event: time, thread, provider, id, version, name, opcode,
// activity ids and payloads. It differs where the library departs from the file:
//
//   - Event 39 of the runtime, GCDynamicEvent, carries a name and a block of bytes. The
//     library gives some of these names an id of their own, 65524 for CommittedUsage,
//     which no file contains. We list what is in the file.
//   - Payloads of the runtime's own providers have no names in the file. The library's
//     are older and others than those of the runtime's manifest (MethodStartAddress,
//     numbers of enumerations as text); they are not compared here.
//   - Three events of the TplEventSource: it leaves out the field appDomain of event 7,
//     calls ContinueWithTaskId of event 12 ContinuationId, and reads the three longs of
//     event 21 as the two ints and the long that are declared, the halves of the first two.
//   - IncreaseMemoryPressure and DecreaseMemoryPressure (200, 201) are unknown to it.
func TestEqualsReference(t *testing.T) {
	lists, err := filepath.Glob(filepath.Join(tracetest.Corpus(t, "dotnet10", "reference"), "*.events.ndjson.zst"))
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	short := map[string]bool{"counters": true, "activities": true, "v6-machine": true, "chain": true}
	for _, list := range lists {
		name := strings.TrimSuffix(filepath.Base(list), ".events.ndjson.zst")
		if testing.Short() && !short[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ours := map[eventKey][]*eventLine{}
			text, res := listing(t, open(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")), nil)
			n := 0
			for line := range strings.Lines(text) {
				var e eventLine
				require.NoError(t, json.Unmarshal([]byte(line), &e), line)
				ref := tracetest.ReferenceEvent{MS: e.MS}
				k := eventKey{ref.Nanos(t), e.TID, e.Provider, e.ID, e.Version}
				ours[k] = append(ours[k], &e)
				n++
			}
			require.EqualValues(t, res.Written, n)
			wrong := 0
			tracetest.ReferenceEvents(t, name, func(want *tracetest.ReferenceEvent) {
				n--
				k := eventKey{want.Nanos(t), want.TID, want.Provider, want.ID, want.Version}
				if want.ID == dynamicID {
					k.id = 39
				}
				for i, e := range ours[k] {
					if difference(e, want) == "" {
						ours[k] = append(ours[k][:i:i], ours[k][i+1:]...)
						return
					}
				}
				if wrong++; wrong < 5 {
					if len(ours[k]) == 0 {
						t.Errorf("%+v is missing", k)
						return
					}
					t.Errorf("%+v: %s", k, difference(ours[k][0], want))
				}
			})
			assert.Zero(t, wrong)
			assert.Zero(t, n, "events more than the reference has")
		})
	}
}

// difference tells in what a line differs from the reference, "" if in nothing.
func difference(e *eventLine, want *tracetest.ReferenceEvent) string {
	runtime := strings.HasPrefix(e.Provider, "Microsoft-Windows-DotNETRuntime")
	switch {
	case e.Activity != strings.ToLower(want.Activity):
		return "activity " + e.Activity + " is not " + want.Activity
	case e.Related != strings.ToLower(want.Related):
		return "related " + e.Related + " is not " + want.Related
	case want.ID == dynamicID:
		return ""
	case e.Opcode != want.Opcode && !strings.HasPrefix(e.Provider, "Universal."):
		return "opcode " + strconv.Itoa(e.Opcode) + " is not " + strconv.Itoa(want.Opcode)
	case e.Name != want.Name && !(runtime && (e.ID == 200 || e.ID == 201)):
		return "name " + e.Name + " is not " + want.Name
	case runtime:
		return ""
	}
	if e.Provider == "System.Threading.Tasks.TplEventSource" {
		switch e.ID {
		case 7:
			delete(e.Payload, "appDomain")
		case 12:
			e.Payload["ContinuationId"] = e.Payload["ContinueWithTaskId"]
			delete(e.Payload, "ContinueWithTaskId")
		case 21:
			return ""
		}
	}
	if len(e.Payload) != len(want.Payload) {
		return "number of fields"
	}
	for k, raw := range want.Payload {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err.Error()
		}
		if !equal(e.Payload[k], v) {
			return "field " + k + ": not " + string(raw)
		}
	}
	return ""
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && (a == b || len(a) == 36 && strings.EqualFold(a, b))
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if !equal(v, b[k]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// TestPathsEqualReference compares activity paths on a trace of .NET 8, whose ids are
// not ambiguous. The library writes a slash at the end, and the process always.
func TestPathsEqualReference(t *testing.T) {
	text, _ := listing(t, open(t, tracetest.Corpus(t, "dotnet10", "http-net8.nettrace")), nil)
	ours := map[string]string{}
	for line := range strings.Lines(text) {
		var e eventLine
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		ours[e.Activity] = e.Path
	}
	seen := 0
	in := tracetest.Corpus(t, "dotnet10", "reference", "http-net8.events.ndjson.zst")
	for line := range bytes.Lines(content(t, in)) {
		var e eventLine
		require.NoError(t, json.Unmarshal(line, &e))
		if e.Path == "" {
			continue
		}
		seen++
		want := strings.TrimPrefix(strings.TrimSuffix(e.Path, "/"), "/#"+strconv.Itoa(e.PID))
		require.Equal(t, "/"+want, ours[strings.ToLower(e.Activity)])
	}
	assert.NotZero(t, seen)
}

// TestPathsOfEveryRuntime holds that each id of an activity has a path, and none that its runtime
// did not write, also where the events that prove how ids are to be read are not among those that
// are wanted.
func TestPathsOfEveryRuntime(t *testing.T) {
	for name, lossy := range map[string]bool{"probe9.nettrace.gz": false, "probe10.nettrace.zst": true} {
		text, _ := listing(t, open(t, filepath.Join(data, name)), nil)
		lost, paths := 0, map[string]string{}
		for line := range strings.Lines(text) {
			var e eventLine
			require.NoError(t, json.Unmarshal([]byte(line), &e))
			paths[e.Activity] = e.Path
			if e.Activity != "" {
				require.NotEmpty(t, e.Path, "%s: %s", name, e.Activity)
			}
			if strings.Contains(e.Path, "?") {
				lost++
			}
		}
		assert.Equal(t, lossy, lost > 0, name)

		for _, o := range []*Options{
			{Select: profile.Selection{Events: []string{"*Stop"}}},
			{Select: profile.Selection{Events: []string{"*Stop"}}, Format: "text"},
		} {
			text, _ = listing(t, open(t, filepath.Join(data, name)), o)
			if o.Format == "text" {
				assert.Equal(t, lossy, strings.Contains(text, "?/"), name)
				continue
			}
			for line := range strings.Lines(text) {
				var e eventLine
				require.NoError(t, json.Unmarshal([]byte(line), &e))
				require.Equal(t, paths[e.Activity], e.Path, "%s: %s", name, e.Activity)
			}
		}
	}
}

// TestDamageIsTold reads every prefix of small files: each lists what the whole file
// lists first, and never is a loss silent.
func TestDamageIsTold(t *testing.T) {
	for _, name := range []string{"executioncheckpoints.nettrace", "tracelogging.netperf"} {
		whole := content(t, filepath.Join(data, name))
		want, _ := listing(t, opened(whole), nil)
		told := 0
		for n := range len(whole) {
			var out bytes.Buffer
			told = 0
			o := &Options{Warn: func(e *nettrace.FormatError) {
				told++
				assert.LessOrEqual(t, e.Offset, int64(n))
			}}
			_, err := Write(context.Background(), opened(whole[:n]), &out, o)
			if err != nil {
				require.Zero(t, out.Len())
				continue
			}
			require.NotZero(t, told, "%s cut to %d bytes", name, n)
			require.True(t, strings.HasPrefix(want, out.String()), "%s cut to %d bytes: %s", name, n, out.String())
		}
	}
}

// TestFlippedBytes flips each byte of a small file: no panic, and every line stays JSON.
func TestFlippedBytes(t *testing.T) {
	whole := content(t, filepath.Join(data, "executioncheckpoints.nettrace"))
	b := make([]byte, len(whole))
	for i := range whole {
		for _, mask := range []byte{0xff, 1, 0x80} {
			copy(b, whole)
			b[i] ^= mask
			var out bytes.Buffer
			if _, err := Write(context.Background(), opened(b), &out, nil); err != nil {
				continue
			}
			for line := range bytes.Lines(out.Bytes()) {
				require.True(t, json.Valid(line), "byte %d: %s", i, line)
			}
			_, err := Write(context.Background(), opened(b), io.Discard, &Options{Format: "text", Width: 80})
			require.NoError(t, err)
		}
	}
}

// failing is a disk that fails.
type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestFailingOutput(t *testing.T) {
	_, err := Write(context.Background(), open(t, filepath.Join(data, "counters.nettrace.zst")), &failing{300 << 10}, nil)
	assert.ErrorContains(t, err, "no space left")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Write(ctx, open(t, filepath.Join(data, "probe10.nettrace.zst")), io.Discard, nil)
	_ = err // a short trace may end before the context is looked at
	_, err = Write(context.Background(), opened([]byte("hello")), io.Discard, nil)
	assert.ErrorIs(t, err, nettrace.ErrFormat)
}

// TestEqualNames holds that of fields with one name, such as the structs that a
// self-describing event has as arguments, none hides another.
func TestEqualNames(t *testing.T) {
	x := nettrace.Field{Name: "x", Type: nettrace.TypeInt32}
	pair := nettrace.Field{Type: nettrace.TypeObject, Fields: []nettrace.Field{x}}
	m := &nettrace.Metadata{ID: 1, EventID: 1, Provider: "P", Name: "E", Fields: []nettrace.Field{x, pair, pair, pair}}
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	payload := []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
	require.NoError(t, w.Write(&nettrace.Event{Metadata: m, ThreadID: 1, Sorted: true, Payload: payload}))
	require.NoError(t, w.Close())
	text, _ := listing(t, opened(out.Bytes()), nil)
	assert.Contains(t, text, `"payload":{"x":1,"":{"x":2},"_2":{"x":3},"_3":{"x":4}}`)
}

// TestAllocations holds that events are listed without garbage.
func TestAllocations(t *testing.T) {
	for _, format := range Formats {
		for _, name := range []string{"counters.nettrace.zst", "probe10.nettrace.zst", "v6-nosymbols.nettrace.gz"} {
			b := content(t, filepath.Join(data, name))
			var res *Result
			allocs := testing.AllocsPerRun(2, func() {
				var err error
				res, err = Write(context.Background(), opened(b), io.Discard, &Options{Format: format})
				require.NoError(t, err)
			})
			// What is left is made once for each type of event.
			assert.Less(t, allocs, float64(30*res.Stats.Metadata+1000), "%s of %s: %d events", format, name, res.Events)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	name := filepath.Join(data, "counters.nettrace.zst")
	if p := os.Getenv("TRACEFIX_BENCH_TRACE"); p != "" {
		name = p
	}
	in := content(b, name)
	for _, format := range Formats {
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			events := int64(0)
			for b.Loop() {
				res, err := Write(context.Background(), opened(in), io.Discard, &Options{Format: format})
				require.NoError(b, err)
				events = res.Events
			}
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
