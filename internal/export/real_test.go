package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pprofile "github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/profile"
)

// TestRealTraces writes real recordings, repaired and with all their tracks, in every
// format, and reads each back by the rules of what opens it.
func TestRealTraces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "nettrace", "*.nettrace*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	corpus := filepath.Join("..", "..", "..", "shared", "corpus", "dotnet10")
	if !testing.Short() {
		for _, name := range []string{"library", "v6-machine"} {
			if f := filepath.Join(corpus, name+".nettrace"); fileExists(f) {
				files = append(files, f)
			}
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return openReal(file) }, &load.Options{Evidence: true, Tracks: []string{"cpu", "activities", "gc", "exceptions", "contention", "faults", "events"}})
			require.NoError(t, err)
			pass.FixStacks(p, -1)
			checkOutputs(t, p)
		})
	}
}

// checkOutputs writes p in every format and checks that nothing is broken or lost.
func checkOutputs(t *testing.T, p *profile.Profile) {
	samples, stretched := 0, int64(0)
	timing := p.Timing()
	for _, th := range p.Threads {
		sts := timing.Cursor(th)
		for st, ok := sts.Next(); ok; st, ok = sts.Next() {
			samples++
			stretched += st.Nanos()
		}
	}
	slices, instants := 0, 0
	for _, tr := range p.Tracks {
		for s := range tr.Slices {
			if s.Instant {
				instants++
			} else {
				slices++
			}
		}
	}
	slices += len(p.Losses)
	checkTime(t, p)
	want := expectedSpans(p)

	var out bytes.Buffer
	require.NoError(t, NDJSON(&out, p, Options{}))
	assert.Equal(t, samples, bytes.Count(out.Bytes(), []byte{'\n'}))
	for line := range bytes.Lines(out.Bytes()) {
		if !json.Valid(line) {
			require.Fail(t, "not JSON", string(line))
		}
	}

	out.Reset()
	require.NoError(t, Chromium(&out, p, Options{}))
	chromium := out.Len()
	events := readChromium(t, out.Bytes())
	assert.Len(t, spansOf(t, events), len(want)+slices)
	checkSpeedscope(t, events)
	seen := 0
	for _, e := range events {
		if e.Ph == "i" {
			seen++
		}
	}
	assert.Equal(t, instants, seen)

	out.Reset()
	require.NoError(t, Perfetto(&out, p, Options{}))
	pt := readPerfetto(t, out.Bytes())
	if pt.deepest < perfettoDepth {
		assert.Len(t, pt.spans, len(want)+slices)
	}
	assert.Equal(t, instants, pt.instants)
	if samples > 1000 {
		assert.Less(t, out.Len(), chromium/3)
	}

	out.Reset()
	require.NoError(t, Speedscope(&out, p, Options{}))
	var doc speedscopeFile
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
	opened := 0
	for _, pr := range doc.Profiles {
		depth, last := 0, pr.StartValue
		for _, e := range pr.Events {
			if e.Type == "O" {
				opened++
				depth++
			} else {
				depth--
			}
			if e.At < last || depth < 0 {
				require.Fail(t, "speedscope would refuse it")
			}
			last = e.At
		}
		require.Zero(t, depth)
	}
	assert.Equal(t, len(want), opened)

	out.Reset()
	require.NoError(t, Pprof(&out, p, Options{}))
	prof, err := pprofile.ParseData(out.Bytes())
	if samples > 0 {
		require.NoError(t, err)
		require.NoError(t, prof.CheckValid())
		var n, wall int64
		for _, s := range prof.Sample {
			n += s.Value[0]
			wall += s.Value[1]
		}
		assert.EqualValues(t, samples, n)
		assert.Equal(t, stretched, wall)
	}

	shown, markers := 0, 0
	for _, th := range writeFirefox(t, p, Options{}).Threads {
		markers += th.Markers.Length
		for _, s := range th.Samples.Stack {
			if s != nil {
				shown++
			}
		}
	}
	assert.Equal(t, samples, shown)
	assert.Equal(t, slices+instants, markers)

	out.Reset()
	require.NoError(t, Folded(&out, p, Options{Counts: true}))
	n := 0
	for line := range strings.Lines(out.String()) {
		v := 0
		require.NoError(t, json.Unmarshal([]byte(line[strings.LastIndexByte(line, ' ')+1:]), &v))
		n += v
	}
	assert.Equal(t, samples, n)

	top := p.Top(profile.TopOptions{})
	assert.Equal(t, samples, top.Samples)
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func openReal(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(name) {
	case ".gz":
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{z, f}, nil
	case ".zst":
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{z, f}, nil
	}
	return f, nil
}

// A filter takes no time from the samples that it leaves, and gives them none.
func TestFilterKeepsTime(t *testing.T) {
	read := func() *profile.Profile {
		p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) {
			return openReal(filepath.Join("..", "..", "testdata", "chain.nettrace.zst"))
		}, nil)
		require.NoError(t, err)
		return p
	}
	// sum is the time of the samples that want wants, and how many there are.
	sum := func(p *profile.Profile, want func(*profile.Thread, *profile.Stretch) bool) (ns int64, n int) {
		timing := p.Timing()
		for _, th := range p.Threads {
			sts := timing.Cursor(th)
			for st, ok := sts.Next(); ok; st, ok = sts.Next() {
				if want(th, &st) {
					ns += st.Nanos()
					n++
				}
			}
		}
		return ns, n
	}
	all := read()
	holds := func(name string) func(*profile.Thread, *profile.Stretch) bool {
		return func(_ *profile.Thread, st *profile.Stretch) bool {
			for s := st.Stack; s != 0; s = all.Table.Parent(s) {
				if strings.Contains(all.Table.MethodOf(all.Table.Frame(s)).Name, name) {
					return true
				}
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		s    profile.Selection
		want func(*profile.Thread, *profile.Stretch) bool
	}{
		"frame":  {profile.Selection{Frame: "*Mix*"}, holds("Mix")},
		"on CPU": {profile.Selection{CPUOnly: true}, func(_ *profile.Thread, st *profile.Stretch) bool { return st.Type == profile.SampleManaged }},
		// Alone it does not show how the sampler ticked.
		"thread": {profile.Selection{Threads: []string{"*Finalizer*"}}, func(th *profile.Thread, _ *profile.Stretch) bool { return strings.Contains(th.Name, "Finalizer") }},
		"time": {profile.Selection{From: 1_000_000_000, To: 1_100_000_000}, func(_ *profile.Thread, st *profile.Stretch) bool {
			return st.Time >= 1_000_000_000 && st.Time < 1_100_000_000
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ns, n := sum(all, c.want)
			everything, total := sum(all, func(*profile.Thread, *profile.Stretch) bool { return true })
			require.NotZero(t, n)
			require.Less(t, n, total)
			require.Less(t, ns, everything)
			p := read()
			p.Select(c.s)
			gotNS, got := sum(p, func(*profile.Thread, *profile.Stretch) bool { return true })
			assert.Equal(t, n, got)
			assert.Equal(t, ns, gotNS)
			checkOutputs(t, p)
		})
	}
}
