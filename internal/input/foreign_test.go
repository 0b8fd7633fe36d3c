package input

import (
	"os"
	"path/filepath"
	"strings"
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
		`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}`:                                                      ".cpuprofile",
		`{"meta":{"interval":1,"preprocessedProfileVersion":48},"threads":[]}`:                                            "Firefox",
		`{"meta":{"interval":1,"startTime":1,"processType":0},"threads":[]}`:                                              "Firefox",
		`{"libs":[],"threads":[{"processType":"default","processStartupTime":0,"pausedRanges":[],"name":"x"}],"meta":{}}`: "Firefox", // our own
		`{"head":{"functionName":"(root)","callUID":1},"samples":[1]}`:                                                    ".cpuprofile",
		`{"snapshot":{"meta":{"node_fields":["type"]}},"nodes":[1]}`:                                                      "heap snapshot",
		`{"log":{"version":"1.2","creator":{"name":"x"},"entries":[]}}`:                                                   "HAR",
		"\x7fELF\x02\x01\x01": "core dump",
		"c\x01\x00\x00\x00\xfc\x00\xbc\xac\xad\xc2\xec\x18\x14\x00\x00\x00DOTNET_IPC_V1\x00\x14\x00\x04\x00\x00\x00": "tracefix ipc",
		"s\x01\x00\x00\x00\xfc\x00\xbc\xac\xad\xc2\xec\x18\x22\x00\x00\x00ADVR_V1\x00":                               "tracefix ipc",
		"DOTNET_IPC_V1\x00\x14\x00\x04\x00\x00\x00":                                                                  "tracefix ipc",
		"PERFILE2": "perf.data",
		"# captured on: x\n   perf 29456/29456 [000] 81319.990348: sched:sched_switch: prev_comm=perf prev_pid=29456 prev_prio=120 prev_state=D ==> next_comm=b next_pid=18 next_prio=0\n": "perf record -g",
		" b 7/9 81319.990348:          1 page-faults: \n":                                                   "perf record -g",
		"hot \n\tffffffff8225fd19 pvm_irq_enable ([kernel.kallsyms])\n\t            11e6 spin (/bin/hot)\n": "perf script -F +pid",
		"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<StackWindow>\r\n <StackSource>":         "PerfView saved",
		"<StackWindow>\n <StackSource>\n  <Frames Count=\"1\">":                                             "PerfView saved",
		"\xef\xbb\xbfTimestamp,Provider,Counter Name,Counter Type,Mean/Increment\r\n":                       "dotnet-counters",
		`{ "TargetProcess": "App", "StartTime": "2026-01-15T10:20:30", "Events": [{ "timestamp": "2026-01-`: "dotnet-counters",
		`{"id":1,"pid":7,"outcome":"ok"}`:                                                                   "tracefix http",
		"{\n \"title\": \"x\",\n \"processes\": []}":                                                        "tracefix gc",
		`{"command":"batch","totals":{},"traces":[{"status"`:                                                "a report of `tracefix batch`",
		`{"resourceSpans":[{"resource":{"attributes":[]}}]}`:                                                "OTLP",
		`{"ms":1.5,"pid":7,"provider":"A","name":"B","id":3}`:                                               "tracefix events",
		"\x0a\x90\x02\x08abcdefgh":                                                                          "Perfetto",
	} {
		assert.Equal(t, Unknown, Sniff([]byte(text)), want)
		assert.Contains(t, Describe([]byte(text)), "this is ")
		assert.Contains(t, Foreign([]byte(text)), want)
	}
	for _, ours := range []string{`{"id":1,"outcome":2,"ph":"X","ts":1}`, `{"command":"a","status":1,"traceEvents":[]}`, `{"traceEvents":[{"ts":1,"frames":[]}]}`, `[{"ts":1}]`, "\n[{\"ts\":1}]", `{"$schema":"https://www.speedscope.app/file-format-schema.json"}`, serial + "\x05\x00\x00\x00Trace", "Nettrace"} {
		assert.NotEqual(t, Unknown, Sniff([]byte(ours)), ours)
	}
}

// What is not known is described by what can be done about it.
func TestDescribe(t *testing.T) {
	for head, want := range map[string]string{
		"":                           "the file is empty",
		"\x00":                       "begins with zero bytes",
		strings.Repeat("\x00", 100):  "begins with zero bytes",
		"\x00\x00\x01":               "expected ",
		"\x01\x00\x00":               "expected ",
		"<svg xmlns='x'>":            "an SVG picture",
		"<?xml?>\n<svg>":             "an SVG picture",
		"<?xml?>\n<Report/>":         "XML and no trace",
		"<?xml?>\n<html>":            "looks like HTML",
		"\xef\xbb\xbf\n <html><svg>": "looks like HTML",
		"<!doctype html>":            "looks like HTML",
		"# tracer: nop":              "an ftrace text",
		"\xff\xfea\x00":              "UTF-16 text",
		"\xfe\xff\x00a":              "UTF-16 text",
		"hello":                      `found "hello" and no more; give the file`,
		"hello, this is some text":   `found "hello, this is s"...; give the file`,
	} {
		assert.Contains(t, Describe([]byte(head)), want, "%q", head)
	}
}

// TestDiagsession holds that Visual Studio's sessions, which are zips, are named.
func TestDiagsession(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diagsession")
	require.NoError(t, os.WriteFile(name, zipped(t, map[string]string{"metadata.xml": "<Package/>", "a/sc.user_aux.etl": "x"}), 0o600))
	_, err := Open(t.Context(), name, nil)
	require.ErrorIs(t, err, ErrNotATrace)
	assert.ErrorContains(t, err, ".diagsession; Visual Studio opens it")
}
