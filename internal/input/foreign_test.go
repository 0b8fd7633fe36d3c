package input

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestForeign holds that what other tools write is named, and none of ours is taken for it.
func TestForeign(t *testing.T) {
	const serial = "\x14\x00\x00\x00!FastSerialization.1\x04\x04\x01\x01\x00\x00\x00\x00\x00\x00\x00"
	tar := make([]byte, 512)
	copy(tar[257:], "ustar")
	etl := make([]byte, 4096)
	etl[1], etl[4], etl[0x4a], etl[0x4b] = 0x10, 0x80, 2, 0xc0
	for text, want := range map[string]string{
		serial + "\x0c\x00\x00\x00GCHeapDump":                        ".gcdump",
		serial + "\x2a\x00\x00\x00Diagnostics.Tracing.Etlx.TraceLog": ".etlx",
		string(etl):       ".etl of Windows",
		"\xfd7zXZ\x00abc": "xz",
		string(tar):       "tar",
		`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}`:           ".cpuprofile",
		`{"meta":{"interval":1,"preprocessedProfileVersion":48},"threads":[]}`: "Firefox",
		"PERFILE2":                 "perf.data",
		"\x0a\x90\x02\x08abcdefgh": "Perfetto",
	} {
		assert.Equal(t, Unknown, Sniff([]byte(text)), want)
		assert.Contains(t, Describe([]byte(text)), "this is ")
		assert.Contains(t, Foreign([]byte(text)), want)
	}
	for _, ours := range []string{`{"traceEvents":[{"ts":1,"frames":[]}]}`, `[{"ts":1}]`, "\n[{\"ts\":1}]", `{"$schema":"https://www.speedscope.app/file-format-schema.json"}`, serial + "\x05\x00\x00\x00Trace", "Nettrace"} {
		assert.NotEqual(t, Unknown, Sniff([]byte(ours)), ours)
	}
}

// TestSniffSamples holds that files of samples are known by their content, and that other text is
// not taken for them.
func TestSniffSamples(t *testing.T) {
	const event = "dotnet  7/9 [001]  12.500000:  1001001 cpu-clock:ppp: \n\t  1149 leaf+0x20 (/app/spin)\n\n"
	for text, want := range map[string]Kind{
		"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x01\x01\x12":                                 Pprof,
		`{"ts":1.5,"pid":1,"tid":2,"type":"managed","depth":1,"cut":false,"frames":["a"]}`: NDJSON,
		"main;a;b 12\nmain;c 3\n":       Folded,
		"main;a (b);c 12\r\n":           Folded,
		"main;a;b 0.5":                  Folded,
		event:                           PerfScript,
		"# captured on: x\n#\n" + event: PerfScript,
		"java  3244 cpu-clock: \n\t    7f1e214c24d9 SpinPause (/lib/libjvm.so)\n":   PerfScript,
		".NET TP Worker  10/12 1.5: cycles:u: \n\t ffff [unknown] ([unknown])\n":    PerfScript,
		"2026-01-01 10:00:00 info: started 12\n":                                    Unknown,
		"port 80\nport 443\n":                                                       Unknown,
		"a;b\nc;d\n":                                                                Unknown,
		"to whom it may concern; we are 12\nand more text follows here\nand here\n": Unknown,
	} {
		assert.Equal(t, want, Sniff([]byte(text)), text)
	}
}

// TestPerfcollect holds that of a perfcollect archive the text of perf script is taken.
func TestPerfcollect(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.trace.zip")
	require.NoError(t, os.WriteFile(name, zipped(t, map[string]string{
		"x.trace/perfcollect.log": "log", "x.trace/perf.data": "PERFILE2", "x.trace/perf.data.txt": "java  3244 cpu-clock: \n\t    7f1e214c24d9 SpinPause (/lib/libjvm.so)\n",
	}), 0o600))
	f, err := Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, PerfScript, f.Kind)
	assert.Equal(t, []string{"zip:x.trace/perf.data.txt"}, f.Layers)
}

// TestDiagsession holds that Visual Studio's sessions, which are zips, are named.
func TestDiagsession(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diagsession")
	require.NoError(t, os.WriteFile(name, zipped(t, map[string]string{"metadata.xml": "<Package/>", "a/sc.user_aux.etl": "x"}), 0o600))
	_, err := Open(t.Context(), name, nil)
	require.ErrorIs(t, err, ErrNotATrace)
	assert.ErrorContains(t, err, ".diagsession; Visual Studio opens it")
}
