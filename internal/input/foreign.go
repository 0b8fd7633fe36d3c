package input

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"path"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

// Foreign says what content is that nobody here reads, written by other tools or by this one, and
// what opens it: "a .gcdump, ...; Visual Studio opens it". "" if it is not known.
func Foreign(head []byte) string {
	for _, f := range foreigners {
		if f.is(head) {
			return f.what
		}
	}
	return ourOwn(head)
}

// holds returns a check for JSON whose beginning has all of these.
func holds(words ...string) func([]byte) bool {
	return func(b []byte) bool {
		if b = bytes.TrimLeft(b, " \t\r\n\xef\xbb\xbf"); len(b) == 0 || b[0] != '{' || bytes.Contains(b, []byte(`"traceEvents"`)) {
			return false
		}
		for _, w := range words {
			if !bytes.Contains(b, []byte(w)) {
				return false
			}
		}
		return true
	}
}

func begins(with string) func([]byte) bool {
	return func(b []byte) bool { return bytes.HasPrefix(b, []byte(with)) }
}

// serialized returns a check for a file of FastSerialization that begins with an object of this type.
func serialized(name string) func([]byte) bool {
	return func(b []byte) bool {
		return bytes.HasPrefix(b, []byte("\x14\x00\x00\x00!FastSerialization.1")) && bytes.Contains(b[:min(len(b), 200)], []byte(name))
	}
}

// TextLines are the whole lines that text begins with, at most n of them, without empty ones.
func TextLines(b []byte, n int) (lines [][]byte) {
	more := len(b) >= SniffSize // is in the file: its last line here is a part
	b = bytes.TrimPrefix(b, BOM)
	for len(lines) < n {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole && more {
			break
		}
		if line = bytes.TrimRight(line, "\r"); len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, line)
		}
		if !whole {
			break
		}
		b = rest
	}
	return lines
}

// BOM may stand before text that Windows wrote.
var BOM = []byte("\ufeff")

// perfcollects reports whether a member of a zip is what perfcollect puts the text of perf
// script into.
func perfcollects(member string) bool { return path.Base(member) == "perf.data.txt" }

// Diagsession says what a zip is whose directory IsDiagsession holds for.
const Diagsession = "a .diagsession; Visual Studio opens it"

const diagsessionMember = "metadata.xml"

// IsDiagsession reports whether a zip of several members is a package of Visual Studio's profilers.
func IsDiagsession(z *zip.Reader) bool {
	return len(z.File) > 1 && slices.ContainsFunc(z.File, func(e *zip.File) bool { return e.Name == diagsessionMember })
}

const (
	counters       = "what `dotnet-counters collect` wrote, values and no trace; `tracefix counters` reads those of a trace, as `dotnet-trace collect -p PID --providers System.Runtime:0:1:EventCounterIntervalSec=1` records them"
	countersHeader = "Timestamp,Provider,Counter Name,Counter Type," // of its csv
)

const firefox = "a Firefox profile; https://profiler.firefox.com opens it"

var foreigners = []struct {
	is   func(head []byte) bool
	what string
}{
	{serialized("GCHeapDump"), "a .gcdump, a picture of the heap and no trace; Visual Studio, PerfView and `dotnet-gcdump report` open it"},
	{serialized("TraceLog"), "an .etlx, PerfView's own copy of a trace; give the .nettrace that it was made from, or open it with PerfView"},
	{isETL, "an .etl of Windows; PerfView and Windows Performance Analyzer open it"},
	{begins("\xfd7zXZ\x00"), "xz; unpack it with `xz -d` first"},
	{begins("7z\xbc\xaf\x27\x1c"), "a 7z archive; unpack it first"},
	{begins("PERFILE2"), "a perf.data file; `perf script -F +pid` gives the text that tracefix reads"},
	{isPerfText, "the text of perf script, but without stacks or without who ran, so that there is nothing to profile; `perf record -g` records stacks, and `perf script -F +pid` tells both"},
	{begins("MDMP"), "a memory dump and no trace; WinDbg and Visual Studio open it"},
	{isPerfetto, "a Perfetto protobuf, which tracefix writes but does not read; https://ui.perfetto.dev opens it"},
	{isTar, "a tar archive; `tracefix batch` works on archives"},
	{holds(`"nodes"`, `"callFrame"`), "a .cpuprofile of V8; browser devtools and speedscope open it"},
	{holds(`"head"`, `"callUID"`), "a .cpuprofile of an old V8; browser devtools and speedscope open it"},
	{holds(`"snapshot"`, `"node_fields"`), "a heap snapshot of V8 and no trace; browser devtools open it"},
	{holds(`"meta"`, `"preprocessedProfileVersion"`), firefox},
	{holds(`"meta"`, `"interval"`, `"processType"`), firefox},              // as the browser's own recorder writes it
	{holds(`"libs":[`, `"processStartupTime"`, `"pausedRanges"`), firefox}, // as tracefix writes it
	{holds(`"log"`, `"creator"`, `"entries"`), "a HAR, which `tracefix http` writes; browser devtools open it"},
	{isPerfView, "a view that PerfView saved, and opens; give the trace that it was made from, or save it there as speedscope"},
	{func(b []byte) bool { return begins(countersHeader)(bytes.TrimPrefix(b, BOM)) }, counters},
	{holds(`"TargetProcess":`, `"StartTime":`, `"Events":`), counters},
	{isConversation, "a recording of what tools said to a process, by `tracefix snoop`; `tracefix ipc FILE --extract DIR` takes the traces out of it"},
	{begins("\x7fELF"), "an ELF file: a program, or a core dump, which `dotnet-dump analyze` opens"},
}

// isConversation recognizes the first frame of a recording by snoop, and the bytes of one connection.
func isConversation(b []byte) bool {
	const header = 17 // direction, connection, time, length
	if len(b) > header && (b[0] == 'c' || b[0] == 's') && binary.LittleEndian.Uint32(b[1:]) > 0 {
		b = b[header:]
	}
	return begins("DOTNET_IPC_V1\x00")(b) || begins("ADVR_V1\x00")(b)
}

var perfTextLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:.*\s\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?(?:\S{1,8}\s+)?\d+\.\d{6,9}:\s+(?:\d+\s+)?[a-z][^\s:]*:\S*(?:\s|$)|\t[ \da-f]{15}[\da-f] \S)`)
})

// isPerfText recognizes what perf script prints of events whose stacks nobody asked for, and of stacks
// alone.
func isPerfText(b []byte) bool {
	is := func(line []byte) bool { return line[0] != '#' && perfTextLine().Match(line) }
	return slices.ContainsFunc(TextLines(b, 50), is) && !slices.ContainsFunc(kinds, func(r row) bool { return r.Is(b) })
}

// isPerfView recognizes a .perfView.xml, which is in a zip of that name most often.
func isPerfView(b []byte) bool {
	b = bytes.TrimLeft(bytes.TrimPrefix(b, BOM), " \t\r\n")
	return begins("<")(b) && bytes.Contains(b[:min(len(b), 200)], []byte("<StackWindow>"))
}

func isTar(b []byte) bool { return len(b) > 262 && string(b[257:262]) == "ustar" }

// isPerfetto recognises packets, which are messages of field 1, and which a pprof profile is not.
// Text may begin with that byte, too.
func isPerfetto(b []byte) bool {
	head := b[:min(len(b), 256)]
	isText := bytes.IndexFunc(head, func(r rune) bool { return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' }) < 0
	return len(b) > 0 && b[0] == 0x0a && !isText && !slices.ContainsFunc(kinds[:len(kinds)-jsonKinds], func(r row) bool { return r.Is(b) })
}

// isETL recognises a buffer of Windows' event log whose first event is the system's header.
func isETL(b []byte) bool {
	if len(b) < 0x50 {
		return false
	}
	size, saved := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return size >= 1024 && size <= 16<<20 && size%1024 == 0 && saved <= size && b[0x4b] == 0xc0 && (b[0x4a] == 1 || b[0x4a] == 2)
}
