package nettrace

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const corpusDir = "../../shared/corpus"

// corpusFile returns a file of the corpus, unpacked; the test is skipped where there is none.
func corpusFile(t testing.TB, name string) []byte {
	t.Helper()
	path := filepath.Join(corpusDir, filepath.FromSlash(name))
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("no %s: the corpus is not here", path)
	}
	require.NoError(t, err)
	return unpack(t, b, name)
}

func unpack(t testing.TB, b []byte, name string) []byte {
	if !strings.HasSuffix(name, ".gz") {
		return b
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	b, err = io.ReadAll(z)
	require.NoError(t, err)
	return b
}

// testFile returns a file of testdata/nettrace, unpacked.
func testFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "nettrace", name))
	require.NoError(t, err)
	return unpack(t, b, name)
}

// TestCorpus holds the counts of real files against those of an independent
// reader (nettrace.md section 17).
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 300 MB")
	}
	const a, b, c = "nettrace/microsoft-perfview/eventpipe-dotnetcore", "nettrace/microsoft-perfview/speedscope/", "nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-"
	for _, want := range []struct {
		file              string
		version, pointer  int
		blocks            string // MetadataBlock, StackBlock, EventBlock, SPBlock
		events            int64
		metadata          int
		depth             int
		lost              uint64
		unended           bool
		late, unsupported int64
	}{
		{file: a + "2.0-linux.netperf.gz", version: 1, pointer: 8, events: 86_669, metadata: 61, depth: 100},
		{file: a + "2.0-linux-objver2.netperf.gz", version: 2, pointer: 8, events: 272_332, metadata: 35, depth: 100},
		{file: a + "2.1-linux-x64-tracelogging.netperf", version: 3, pointer: 8, blocks: "E1", events: 12, metadata: 8, depth: 9},
		{file: a + "2.1-win-x86-objver3.netperf.gz", version: 3, pointer: 4, blocks: "E102", events: 28_689, metadata: 30, depth: 8},
		{file: a + "3.0-win-x64-objver4.nettrace.gz", version: 4, pointer: 8, blocks: "M9 S44 E54 P18", events: 105_540, metadata: 39, depth: 24},
		{file: a + "5.0-win-x64-arraytypes.nettrace", version: 4, pointer: 8, blocks: "M3 S1 E7 P1", events: 1_970, metadata: 13, depth: 10},
		{file: a + "6.0-win-x64-executioncheckpoints.nettrace", version: 4, pointer: 8, blocks: "M1 S1 E1 P1", events: 3, metadata: 1},
		{file: b + "HeartRateMonitor.10068.nettrace.gz", version: 4, pointer: 4, blocks: "M7 S17 E319 P9", events: 114_565, metadata: 34, depth: 57},
		{file: b + "mixed_managed_external_samples.nettrace", version: 4, pointer: 8, blocks: "M8 S45 E90 P5", events: 32_247, metadata: 29, depth: 9},
		{file: b + "only_managed_samples.nettrace", version: 4, pointer: 8, blocks: "M6 S62 E105 P6", events: 37_603, metadata: 18, depth: 4},
		{file: c + "single-thread.golden.nettrace", version: 4, pointer: 8, blocks: "M4 S45 E85 P5", events: 27_951, metadata: 16, depth: 3},
		{file: c + "webapp.golden.nettrace.gz", version: 4, pointer: 8, blocks: "M4 S30 E292 P13", events: 92_019, metadata: 10, depth: 71, lost: 2236},
		{file: "dotnet10/chain.nettrace", version: 4, pointer: 8, blocks: "M12 S33 E39 P2", events: 17_069, metadata: 45, depth: 100},
		{file: "dotnet10/recursion.nettrace", version: 4, pointer: 8, blocks: "M7 S42 E45 P2", events: 23_107, metadata: 40, depth: 100},
		{file: "dotnet10/async.nettrace", version: 4, pointer: 8, blocks: "M6 S41 E47 P2", events: 23_668, metadata: 45, depth: 100},
		{file: "dotnet10/library.nettrace", version: 4, pointer: 8, blocks: "M10 S61 E71 P2", events: 31_271, metadata: 48, depth: 100},
		{file: "dotnet10/web.nettrace", version: 4, pointer: 8, blocks: "M12 S57 E84 P3", events: 43_134, metadata: 60, depth: 100},
		{file: "dotnet10/csc.nettrace", version: 4, pointer: 8, blocks: "M9 S58 E125 P4", events: 49_599, metadata: 55, depth: 100},
		{file: "dotnet10/shared.nettrace", version: 4, pointer: 8, blocks: "M7 S42 E47 P2", events: 24_960, metadata: 37, depth: 100},
		{file: "dotnet10/http-cpu.nettrace", version: 4, pointer: 8, blocks: "M16 S48 E102 P6", events: 116_854, metadata: 89, depth: 100},
		{file: "dotnet10/activities.nettrace", version: 4, pointer: 8, blocks: "M5 S15 E58 P2", events: 13_470, metadata: 25, depth: 42},
		{file: "dotnet10/counters.nettrace", version: 4, pointer: 8, blocks: "M7 S6 E14 P1", events: 3_279, metadata: 27, depth: 24},
		{file: "dotnet10/http-net8.nettrace", version: 4, pointer: 8, blocks: "M7 S3 E42 P1", events: 18_894, metadata: 40},
		{file: "dotnet10/http-net9.nettrace", version: 4, pointer: 8, blocks: "M10 S15 E52 P2", events: 20_155, metadata: 40},
		{file: "dotnet10/http-notpl.nettrace", version: 4, pointer: 8, blocks: "M10 S13 E50 P2", events: 17_851, metadata: 40},
		{file: "dotnet10/dropped.nettrace", version: 4, pointer: 8, events: 51_544, lost: 110_151},
		{file: "dotnet10/web-60s.nettrace", version: 4, pointer: 8, events: 463_251},
		{file: "dotnet10/v6-shared.nettrace", version: 6, pointer: 8, events: 11_312},
		{file: "dotnet10/v6-chain.nettrace", version: 6, pointer: 8, events: 19_372},
		{file: "dotnet10/v6-nosymbols.nettrace", version: 6, pointer: 8, events: 2_989},
		{file: "dotnet10/v6-machine.nettrace", version: 6, pointer: 8, events: 20_872},
		{file: "dotnet10/v6-web-faults.nettrace", version: 6, pointer: 8, events: 18_258},
		{file: "nettrace/dotnet-diagnostics/trace.nettrace.gz", version: 4, pointer: 8, unended: true},
		{file: "nettrace/getsentry-sentry-dotnet/sample.nettrace.gz", version: 4, pointer: 8},
		{file: "nettrace/erlendthune-RememberCalendar/trace.nettrace.gz", version: 4, pointer: 8},
	} {
		t.Run(filepath.Base(want.file), func(t *testing.T) {
			data := corpusFile(t, want.file)
			var warnings []string
			r, err := NewReader(bytes.NewReader(data), &Options{Warn: func(e *FormatError) { warnings = append(warnings, e.Error()) }})
			require.NoError(t, err)
			var ev Event
			events, last := int64(0), int64(-1<<63)
			for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
				events++
				require.LessOrEqual(t, last, ev.Time, "time goes back at offset %d", ev.Offset)
				last = ev.Time
			}
			s := r.Stats()
			t.Logf("%+v", s)
			if want.unended {
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			} else {
				require.Equal(t, io.EOF, err)
				assert.Empty(t, warnings)
				assert.True(t, s.Ended)
			}
			assert.Equal(t, want.version, r.Header().Version)
			assert.Equal(t, want.pointer, r.Header().PointerSize)
			assert.Equal(t, s.Events, events)
			if want.events > 0 {
				assert.Equal(t, want.events, events)
			}
			if want.metadata > 0 {
				assert.Equal(t, want.metadata, s.Metadata)
			}
			if want.blocks != "" {
				assert.Equal(t, want.blocks, blockCounts(s))
			}
			if want.depth > 0 {
				assert.Equal(t, want.depth, s.MaxDepth)
			}
			assert.Equal(t, want.lost, s.Lost)
			assert.Zero(t, s.UnknownMeta+s.UnknownStacks+s.UnknownThreads+s.UnknownLabels)
			assert.Equal(t, int64(len(data)), r.InputOffset())
		})
	}
}

func blockCounts(s Stats) string {
	var out []string
	for _, k := range []string{"MetadataBlock", "StackBlock", "EventBlock", "SPBlock"} {
		for _, b := range s.Blocks {
			if b.Kind == k {
				out = append(out, map[string]string{"MetadataBlock": "M", "StackBlock": "S", "EventBlock": "E", "SPBlock": "P"}[k]+strconv.Itoa(b.Count))
			}
		}
	}
	return strings.Join(out, " ")
}
