package input

import (
	"bytes"
	"encoding/binary"
	"regexp"
)

// foreign says what content is that other tools wrote, and what opens it; "" if it is not known.
func foreign(head []byte) string {
	for _, f := range foreigners {
		if f.is(head) {
			return f.what
		}
	}
	return ""
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

var foldedLine = regexp.MustCompile(`^[^\n{}<>]+(;[^\n;]+)+ \d+\r?\n`)

var foreigners = []struct {
	is   func(head []byte) bool
	what string
}{
	{serialized("GCHeapDump"), "this is a .gcdump, a picture of the heap and no trace; Visual Studio, PerfView and `dotnet-gcdump report` open it"},
	{serialized("TraceLog"), "this is an .etlx, PerfView's own copy of a trace; give the .nettrace that it was made of, or open it with PerfView"},
	{isETL, "this is an .etl of Windows; PerfView and Windows Performance Analyzer open it"},
	{begins("\xfd7zXZ\x00"), "this is xz; unpack it with `xz -d` first"},
	{begins("7z\xbc\xaf\x27\x1c"), "this is a 7z archive; unpack it first"},
	{isTar, "this is a tar archive; `tracefix batch` works on archives"},
	{isPprof, "this is a pprof profile, which tracefix writes but does not read; `go tool pprof` opens it"},
	{holds(`"nodes"`, `"callFrame"`), "this is a .cpuprofile of V8; browser devtools and speedscope open it"},
	{holds(`"meta"`, `"preprocessedProfileVersion"`), "this is a Firefox profile; https://profiler.firefox.com opens it"},
	{holds(`{"ts":`, `"frames":[`, `"depth":`), "this is ndjson of samples, which tracefix writes but does not read; give the recording that it was made of"},
	{foldedLine.Match, "this looks like folded stacks, which tracefix writes but does not read; flamegraph.pl and speedscope open them"},
}

func isTar(b []byte) bool { return len(b) > 262 && string(b[257:262]) == "ustar" }

// isPprof recognises the first field of a profile: a sample type of two small string numbers.
func isPprof(b []byte) bool {
	return len(b) > 8 && b[0] == 0x0a && b[1] == 4 && b[2] == 0x08 && b[4] == 0x10 && (b[6] == 0x0a || b[6] == 0x12)
}

// isETL recognises a buffer of Windows' event log whose first event is the system's header.
func isETL(b []byte) bool {
	if len(b) < 0x50 {
		return false
	}
	size, saved := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return size >= 1024 && size <= 16<<20 && size%1024 == 0 && saved <= size && b[0x4b] == 0xc0 && (b[0x4a] == 1 || b[0x4a] == 2)
}
