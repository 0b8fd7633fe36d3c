package compat

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// referenceExporter is what dotnet-trace 10.0.750501 writes.
const referenceExporter = "Microsoft.Diagnostics.Tracing.TraceEvent@3.1.23.0"

// A sampler makes what the reference's writers get out of sampler events, by
// dotnet-trace-convert.md section 1.4.
type sampler struct {
	tr      *Trace
	roots   []string
	names   map[string]profile.FrameID
	threads map[string]*building
}

type building struct {
	th    *Thread
	time  float64
	stack profile.StackID
	begun bool
}

func newSampler(roots ...string) *sampler {
	return &sampler{
		tr: &Trace{Table: profile.NewTable()}, roots: roots,
		names: map[string]profile.FrameID{}, threads: map[string]*building{},
	}
}

func (b *sampler) frame(full string) profile.FrameID {
	id, ok := b.names[full]
	if !ok {
		m := profile.Method{Name: full}
		if i := strings.IndexByte(full, '!'); i > 0 {
			m = profile.Method{Module: full[:i], Name: full[i+1:]}
		}
		id = b.tr.Table.AddFrame(profile.Frame{Method: b.tr.Table.AddMethod(m)})
		b.names[full] = id
	}
	return id
}

func (b *sampler) sample(thread string, tid int64, ms float64, managed bool, frames ...string) {
	t := b.threads[thread]
	if t == nil {
		t = &building{th: &Thread{Name: thread, TID: tid}}
		b.threads[thread] = t
	}
	var s profile.StackID
	for _, f := range slices.Concat(b.roots, []string{thread}, frames) {
		s = b.tr.Table.Push(s, b.frame(f))
	}
	leaf := "UNMANAGED_CODE_TIME"
	if managed {
		leaf = "CPU_TIME"
	}
	s = b.tr.Table.Push(s, b.frame(leaf))
	if t.begun {
		if len(t.th.Samples) == 0 {
			b.tr.Threads = append(b.tr.Threads, t.th)
		}
		t.th.Samples = append(t.th.Samples, Sample{Time: t.time, Metric: float32(ms - t.time), Stack: t.stack})
	}
	t.begun, t.time, t.stack = true, ms, s
}

// TestWorkedExample is section 7 of dotnet-trace-convert.md; its hashes are
// those of files that the reference's algorithm made.
func TestWorkedExample(t *testing.T) {
	b := newSampler("Process64 demo (42) Args: app.dll", "(Non-Activities)", "Threads")
	const (
		main  = "app!Demo.Main(class System.String[])"
		work  = "app!Demo.Work(int32)"
		sleep = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)"
	)
	b.sample("Thread (7)", 7, 10, true, main, work)
	b.sample("Thread (7)", 7, 11, true, main, work)
	b.sample("Thread (7)", 7, 12.5, false, main, sleep)
	b.sample("Thread (7)", 7, 13.5, true, main, work)
	b.sample("Thread (7)", 7, 14.75, true, main)

	var out bytes.Buffer
	require.NoError(t, Chromium(&out, b.tr, Options{Name: "demo.chromium", Exporter: referenceExporter}))
	assert.Equal(t, 3150, out.Len())
	assert.Equal(t, "a2b2d1c61a7b1803738ac2b16c3bc3a16f5f3cb5f0d953d6f42e62ad2e93df87", hash(out.Bytes()), out.String())
	out.Reset()
	require.NoError(t, Speedscope(&out, b.tr, Options{Name: "demo.speedscope", Exporter: referenceExporter}))
	assert.Equal(t, 1590, out.Len())
	assert.Equal(t, "bddf7462def10ca8fd9003f005b7af08130d1d8ebcad3c33717d79412b338f68", hash(out.Bytes()), out.String())
}

// TestFloatNoise is the second example of section 7: times that float32 tears.
func TestFloatNoise(t *testing.T) {
	b := newSampler("P", "(Non-Activities)", "Threads")
	for i, at := range []float64{3.1324, 4.2337, 5.3351, 6.1, 7.3} {
		inner := "m!W"
		if i == 2 {
			inner = "m!S"
		}
		b.sample("Thread (7)", 7, at, i != 2, "m!M", inner)
	}
	require.Len(t, b.tr.Threads, 1)
	assert.Equal(t, []float32{1.1013, 1.1014, 0.7649, 1.2}, []float32{
		b.tr.Threads[0].Samples[0].Metric, b.tr.Threads[0].Samples[1].Metric, b.tr.Threads[0].Samples[2].Metric, b.tr.Threads[0].Samples[3].Metric,
	})
	var out bytes.Buffer
	require.NoError(t, Chromium(&out, b.tr, Options{}))
	for _, want := range []string{
		`"ph": "B", "ts": 3132.4, `,
		`{"name": "CPU_TIME", "cat": "sampleEvent", "ph": "E", "ts": 5335.100138092042, `,
		`{"name": "S", "cat": "sampleEvent", "ph": "B", "ts": 5335.100138092042, `,
		`{"name": "W", "cat": "sampleEvent", "ph": "B", "ts": 6100.000028705596, `,
		`{"name": "W", "cat": "sampleEvent", "ph": "E", "ts": 7300.000047683716, `,
		`{"name": "M", "cat": "sampleEvent", "ph": "E", "ts": 7300.0001548767095, `,
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestEmpty(t *testing.T) {
	tr := &Trace{Table: profile.NewTable()}
	var out bytes.Buffer
	require.NoError(t, Speedscope(&out, tr, Options{Name: "trace.speedscope", Exporter: referenceExporter}))
	assert.Equal(t, 230, out.Len(), "the size that users of the reference report")
	out.Reset()
	require.NoError(t, Chromium(&out, tr, Options{Name: "http-bridge.chromium", Exporter: referenceExporter}))
	assert.Equal(t, 177, out.Len())
}

func TestNames(t *testing.T) {
	b := newSampler("P")
	for i := range 2 {
		b.sample("Thread (1)", 1, float64(i), true, `C:\a"b!Foo<T>&'`+"\u0085\u2028\x01\n", "!lead", "a!b!c", "?!?")
	}
	b.sample("Thread (1)", 1, 2, true)
	var out bytes.Buffer
	require.NoError(t, Chromium(&out, b.tr, Options{}))
	assert.Contains(t, out.String(), `"name": "Foo\u003cT\u003e\u0026\u0027\u0085\u2028\u0001\n", "category": "C:\a"b", "parent": 1`, "the category is raw: a fault of the reference")
	assert.Contains(t, out.String(), `{"name": "!lead", "category": "", "parent": 2}`)
	assert.Contains(t, out.String(), `{"name": "b!c", "category": "a", "parent": 3}`)
	assert.Contains(t, out.String(), `{"name": "?", "category": "?", "parent": 4}`)
}

func TestReferenceNumbers(t *testing.T) {
	ms := 26.75595
	for want, v := range map[string]float64{
		"0": 0, "100": 100, "0.0001": 0.0001, "1E-05": 1e-5, "1.5E-05": 1.5e-5, "7823421.551037414": 7823421.551037414,
		"580.1020000000001": 580.1020000000001, "0.00025": 0.00025, "123456789012345": 123456789012345, "1.2E+16": 1.2e16,
		"26755.949999999997": ms * 1000,
	} {
		assert.Equal(t, want, string(appendReference(nil, v)))
	}
}

// TestOnRealFiles rebuilds the reference's files from its own list of samples:
// every byte behind the header is the same.
func TestOnRealFiles(t *testing.T) {
	names := []string{"recursion", "chain", "shared"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			chromium := string(reference(t, name+".chromium.json.zst"))
			b := compatFromReference(t, name, chromium)
			var out bytes.Buffer
			require.NoError(t, Chromium(&out, b.tr, Options{Name: name + ".chromium", Exporter: referenceExporter}))
			sameText(t, chromium, out.String())
			out.Reset()
			require.NoError(t, Speedscope(&out, b.tr, Options{Name: name + ".speedscope", Exporter: referenceExporter}))
			sameText(t, string(reference(t, name+".speedscope.json.zst")), out.String())
		})
	}
}

// compatFromReference feeds the reference's samples to a builder. The process and the
// thread frames, which the samples do not have, are taken from the expected file.
func compatFromReference(t testing.TB, name, chromium string) *sampler {
	table := struct {
		StackFrames map[string]struct{ Name string }
	}{}
	require.NoError(t, json.Unmarshal([]byte(chromium), &table))
	threads := map[int64]string{}
	for _, f := range table.StackFrames {
		if rest, ok := strings.CutPrefix(f.Name, "Thread ("); ok {
			num, _, _ := strings.Cut(rest, ")")
			tid, err := strconv.ParseInt(num, 10, 64)
			require.NoError(t, err)
			threads[tid] = f.Name
		}
	}
	b := newSampler(table.StackFrames["0"].Name, "(Non-Activities)", "Threads")
	lines := bufio.NewScanner(bytes.NewReader(reference(t, name+".samples.ndjson.zst")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s struct {
			TS     float64
			TID    int64
			Type   string
			Frames []string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		thread := threads[s.TID]
		if thread == "" {
			thread = fmt.Sprintf("Thread (%d)", s.TID)
		}
		b.sample(thread, s.TID, s.TS, s.Type == "Managed", s.Frames...)
	}
	require.NoError(t, lines.Err())
	return b
}

func reference(t testing.TB, name string) []byte {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "corpus", "dotnet10", "reference", name))
	if err != nil {
		t.Skip("the corpus is not beside the project: ", err)
	}
	defer f.Close()
	r, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

// sameText compares long texts and shows the first difference only.
func sameText(t *testing.T, want, got string) {
	t.Helper()
	n := min(len(want), len(got))
	for i := range n {
		if want[i] != got[i] {
			require.Equal(t, want[max(0, i-200):min(len(want), i+200)], got[max(0, i-200):min(len(got), i+200)], "first difference at byte %d", i)
		}
	}
	require.Equal(t, len(want), len(got))
}

func hash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func BenchmarkWrite(b *testing.B) {
	tr := sampledCalls(10000)
	for name, write := range Writers {
		b.Run(name, func(b *testing.B) {
			var out bytes.Buffer
			require.NoError(b, write(&out, tr, Options{}))
			b.SetBytes(int64(out.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if err := write(io.Discard, tr, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sampledCalls makes n samples of a thread whose stacks grow and shrink.
func sampledCalls(n int) *Trace {
	b := newSampler("P", "(Non-Activities)", "Threads")
	var frames []string
	for i := range 60 {
		frames = append(frames, "app!Demo.Method"+strconv.Itoa(i)+"(class System.String[])")
	}
	for i := range n {
		b.sample("Thread (7)", 7, float64(i)*1.100123, i%3 > 0, frames[:20+i*7%40]...)
	}
	return b.tr
}
