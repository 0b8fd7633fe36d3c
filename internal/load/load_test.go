package load

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

const corpus = "../../../shared/corpus"

const testdata = "../../testdata/nettrace"

// unpack opens a file that may be compressed.
func unpack(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(path) {
	case ".gz":
		return gzip.NewReader(f)
	case ".zst":
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return f, nil
}

// find returns the path of a file of testdata, else of the corpus; it skips the test
// where there is none.
func find(t testing.TB, name string) string {
	t.Helper()
	for _, ext := range []string{"", ".gz", ".zst"} {
		for _, p := range []string{filepath.Join(testdata, filepath.Base(name)+ext), filepath.Join(corpus, name+ext)} {
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
	}
	t.Skipf("no %s in testdata, and no corpus beside the project", name)
	return ""
}

func opener(t testing.TB, name string) input.Opener {
	t.Helper()
	path := find(t, name)
	return func() (io.ReadCloser, error) { return unpack(path) }
}

// refSample is a line of the reference's samples.
type refSample struct {
	TS     float64  `json:"ts"`
	PID    int64    `json:"pid"`
	TID    int64    `json:"tid"`
	Type   string   `json:"type"`
	Frames []string `json:"frames"`
}

func reference(t testing.TB, name string) []refSample {
	t.Helper()
	z, err := unpack(find(t, "dotnet10/reference/"+name))
	require.NoError(t, err)
	defer z.Close()
	var out []refSample
	d := json.NewDecoder(z)
	for {
		var s refSample
		err := d.Decode(&s)
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out = append(out, s)
	}
}

type sampleKey struct {
	tid int64
	ts  int64
}

// frames renders a stack.
func frames(p *profile.Profile, s profile.StackID) string {
	var b strings.Builder
	for _, f := range p.Table.AppendFrames(nil, s) {
		b.WriteString(p.Table.MethodOf(f).Full())
		b.WriteByte('\n')
	}
	return b.String()
}

// Every sample of the reference library, with the same names, and no other.
func TestSamplesEqualReference(t *testing.T) {
	for _, name := range []string{"chain", "shared", "recursion", "async", "library", "noise", "csc", "web",
		"v6-chain", "v6-shared", "v6-nosymbols", "v6-web-faults", "v6-machine"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "csc" || name == "web" || name == "v6-chain") {
				t.Skip("large")
			}
			p, info, err := Profile(context.Background(), opener(t, "dotnet10/"+name+".nettrace"), &Options{Rules: Reference})
			require.NoError(t, err)
			assert.Zero(t, info.BadNames)
			ours := map[sampleKey][]string{}
			n := 0
			for _, th := range p.Threads {
				for _, s := range th.Samples.All() {
					k := sampleKey{th.TID, s.Time}
					ours[k] = append(ours[k], frames(p, s.Stack))
					n++
				}
			}
			ref := reference(t, name+".samples.ndjson")
			assert.Equal(t, len(ref), n)
			bad := 0
			for _, r := range ref {
				k := sampleKey{r.TID, int64(math.Round(r.TS * 1e6))}
				want := strings.Join(r.Frames, "\n") + "\n"
				if len(r.Frames) == 0 {
					want = ""
				}
				found := false
				for i, got := range ours[k] {
					if got == want {
						ours[k] = append(ours[k][:i:i], ours[k][i+1:]...)
						found = true
						break
					}
				}
				if !found {
					if bad++; bad < 4 {
						t.Errorf("thread %d at %v ms:\nours %q\nreference %q", r.TID, r.TS, ours[k], want)
					}
				}
			}
			assert.Zero(t, bad)
		})
	}
}

// Whatever the bytes are, the loader returns, and what it returns holds together.
func FuzzProfile(f *testing.F) {
	for _, name := range []string{"executioncheckpoints.nettrace", "tracelogging.netperf"} {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add(smallTrace(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, rules := range []Rules{ByTime, Reference} {
			p, _, err := Profile(context.Background(), bytesOpener(b), &Options{Rules: rules, Evidence: true, Tracks: Groups})
			if err != nil {
				continue
			}
			for _, th := range p.Threads {
				last := int64(math.MinInt64)
				for _, s := range th.Samples.All() {
					if s.Time < last {
						t.Fatalf("sample at %d after %d", s.Time, last)
					}
					last = s.Time
					for _, fr := range p.Table.AppendFrames(nil, s.Stack) {
						if p.Table.MethodOf(fr).Full() == "" {
							t.Fatal("a frame without a name")
						}
					}
				}
			}
			for _, tr := range p.Tracks {
				checkTrack(t, tr)
			}
		}
		_, _, _ = Rewrite(context.Background(), bytesOpener(b), io.Discard, &Options{}, graft)
	})
}

// smallTrace writes a few events of every kind that the loader looks at.
func smallTrace(t testing.TB) []byte {
	var out bytes.Buffer
	h := &nettrace.Header{Version: 4, SyncQPC: 1000, Frequency: 1e9, PointerSize: 8, ProcessID: 7, SyncTime: time.Unix(1e9, 0)}
	w, err := nettrace.NewWriter(&out, h)
	require.NoError(t, err)
	meta := map[[2]any]*nettrace.Metadata{}
	event := func(at int64, provider string, id int, payload []byte, stack ...uint64) {
		m := meta[[2]any{provider, id}]
		if m == nil {
			m = &nettrace.Metadata{Index: len(meta), ID: uint32(len(meta) + 1), Provider: provider, EventID: id}
			meta[[2]any{provider, id}] = m
		}
		require.NoError(t, w.Write(&nettrace.Event{Time: 1000 + at, ThreadID: 9, CaptureThreadID: 9, Processor: -1, Metadata: m, Payload: payload, Stack: nettrace.NewStack(stack)}))
	}
	for i := range int64(20) {
		event(100*i, "Microsoft-DotNETCore-SampleProfiler", 0, []byte{byte(i % 3), 0, 0, 0}, 0x1010, 0x1020, 0x1030)
		event(100*i+1, nettrace.ProviderRuntime, runtimeevents.IDExceptionThrown, []byte{'E', 0, 0, 0}, 0x1010)
		event(100*i+2, nettrace.ProviderRuntime, runtimeevents.IDExceptionStop, nil)
		event(100*i+3, nettrace.ProviderRuntime, runtimeevents.IDContentionStart, []byte{0, 0, 0})
		event(100*i+4, nettrace.ProviderRuntime, runtimeevents.IDContentionStop, []byte{0, 0, 0})
		event(100*i+5, nettrace.ProviderRuntime, runtimeevents.IDGCStart, make([]byte, 18))
		event(100*i+6, nettrace.ProviderRuntime, runtimeevents.IDGCEnd, make([]byte, 10))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// How many CPU samples of the lab process are complete. For EventPipe these are the
// stacks of exactly 100 frames that begin where threads begin, for collect-linux all
// that reach a thread root (dotnet-trace-convert.md section 3.6, nettrace.md 12.3).
func TestCutsOfRecordings(t *testing.T) {
	tests := []struct {
		file         string
		samples      int
		suspects     int     // stacks of exactly 100 frames; 0 for collect-linux
		whole        int     // of these; of all for collect-linux
		share        float64 // percent of whole ones in the document
		trimmedShare float64 // percent with garbage at the root end
	}{
		{"chain", 8505, 4304, 13, 0, 0},
		{"shared", 9257, 3261, 42, 0, 0},
		{"async", 12700, 3556, 11, 0, 0},
		{"library", 5202, 1803, 6, 0, 0},
		{"v6-chain", 4868, 0, 553, 11.4, 38.9},
		{"v6-shared", 3883, 0, 1039, 26.8, 11.7},
		{"v6-nosymbols", 1068, 0, 139, 13.0, 69.7},
		{"v6-machine", 2981, 0, 1337, 44.9, 5.5},
		{"v6-web-faults", 3847, 0, 1907, 49.6, 6.2},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			p, _, err := Profile(context.Background(), opener(t, "dotnet10/"+tt.file+".nettrace"), nil)
			require.NoError(t, err)
			n, suspects, whole, cut, trimmed := 0, 0, 0, 0, 0
			for _, th := range p.Threads {
				if th.Process.Name != "Lab" {
					continue
				}
				for _, s := range th.Samples.All() {
					if s.Type == profile.SampleOffCPU {
						continue
					}
					n++
					if tt.suspects > 0 && p.Table.Depth(s.Stack) != 100 {
						assert.Equal(t, profile.Whole, s.Cut)
						continue
					}
					suspects++
					switch s.Cut {
					case profile.Whole:
						whole++
						assert.Zero(t, s.Suspect)
					case profile.CutBytes:
						if s.Suspect < 2 {
							trimmed++
						}
						fallthrough
					default:
						cut++
					}
				}
			}
			assert.Equal(t, tt.samples, n)
			assert.Equal(t, tt.whole, whole)
			assert.Equal(t, suspects, whole+cut)
			if tt.suspects > 0 {
				assert.Equal(t, tt.suspects, suspects)
				return
			}
			assert.InDelta(t, tt.share, 100*float64(whole)/float64(n), 0.1)
			assert.InDelta(t, tt.trimmedShare, 100*float64(trimmed)/float64(n), 0.3)
		})
	}
}

// What is remembered of the stack records grows with what is used of them.
func TestRecords(t *testing.T) {
	r := records{other: map[uint64]profile.StackID{}}
	key := func(region, n uint64) uint64 { return region<<32 | n }
	for region := uint64(1); region < 4; region++ {
		for n := uint64(1); n < 3000; n += region {
			r.add(key(region, n), profile.StackID(region*10_000+n))
		}
		for n := uint64(1); n < 3000; n++ {
			id, ok := r.get(key(region, n))
			if (n-1)%region != 0 {
				require.False(t, ok, "%d of %d", n, region)
				continue
			}
			require.True(t, ok)
			require.EqualValues(t, region*10_000+n, id)
		}
	}
	r.clear()
	for n := uint64(1); n < 3000; n++ {
		_, ok := r.get(key(3, n))
		require.False(t, ok)
	}
	r.add(key(9, 1<<14), 1)
	require.Less(t, len(r.dense), 8192)
	id, _ := r.get(key(9, 1<<14))
	require.EqualValues(t, 1, id)
}

// A thread that is off its processor leaves no event: that tells from which side of the event its time is.
func TestSwitchedOut(t *testing.T) {
	p, _, err := Profile(context.Background(), opener(t, "dotnet10/v6-machine.nettrace"), nil)
	require.NoError(t, err)
	n, off := 0, time.Duration(0)
	for _, th := range p.Threads {
		until := int64(math.MinInt64)
		for _, s := range th.Samples.All() {
			require.LessOrEqual(t, until, s.Time, "thread %d", th.TID)
			if s.Type == profile.SampleOffCPU {
				until = s.Time + s.Dur
				off += time.Duration(s.Dur)
				n++
			}
		}
	}
	assert.Equal(t, 2253, n)
	assert.Equal(t, 19665*time.Millisecond, off.Round(time.Millisecond))
}
