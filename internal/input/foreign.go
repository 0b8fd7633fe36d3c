package input

import (
	"bytes"
	"encoding/binary"
	"path"
	"regexp"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Foreign says what content is that other tools wrote and nobody here reads, and what opens it:
// "a .gcdump, ...; Visual Studio opens it". "" if it is not known.
func Foreign(head []byte) string {
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

// textLines are the whole lines that text begins with, at most n of them, without empty ones.
func textLines(b []byte, n int) (lines [][]byte) {
	for len(lines) < n {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole && len(b) >= sniffSize {
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

var foldedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\x00-\x1f{}]+ \d+(\.\d+)?$`) })

// isFolded recognises lines of a stack and a count, one of them of more than one frame. Two of
// ten may be something else.
func isFolded(b []byte) bool {
	lines := textLines(b, 10)
	good, deep := 0, false
	for _, l := range lines {
		if foldedLine().Match(l) {
			good++
			deep = deep || bytes.IndexByte(l, ';') > 0
		}
	}
	return deep && good*10 >= len(lines)*8
}

// isSamples recognises tracefix's own ndjson: the first or the second line is one of a sample.
func isSamples(b []byte) bool {
	for _, l := range textLines(b, 2) {
		if bytes.HasPrefix(l, []byte(`{"ts":`)) && bytes.Contains(l, []byte(`,"tid":`)) && bytes.Contains(l, []byte(`,"frames":[`)) {
			return true
		}
	}
	// A stack may be longer than what is looked at.
	return len(b) >= sniffSize && bytes.HasPrefix(b, []byte(`{"ts":`)) && bytes.Contains(b[:1<<10], []byte(`,"frames":[`))
}

var (
	perfEvent = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\S.*?\s+-?\d+(/-?\d+)?\s+(\[\d+\]\s+)?(\S{4,8}\s+)??(\d+\.\d+:\s+)?(\d+\s+)?[^\s\d\[(]\S*:(\s|$)`)
	})
	perfFrame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s+[0-9a-f]+ \S`) })
)

// isPerfScript recognises an event of perf script with a frame behind it, comments before it left
// out.
func isPerfScript(b []byte) bool {
	event := false
	for _, l := range textLines(b, 200) {
		switch {
		case l[0] == '#':
		case event && perfFrame().Match(l):
			return true
		default:
			if event = perfEvent().Match(l); !event {
				return false
			}
		}
	}
	return false
}

// perfcollects reports whether a member of a zip is what perfcollect puts the text of perf
// script into.
func perfcollects(member string) bool { return path.Base(member) == "perf.data.txt" }

var foreigners = []struct {
	is   func(head []byte) bool
	what string
}{
	{serialized("GCHeapDump"), "a .gcdump, a picture of the heap and no trace; Visual Studio, PerfView and `dotnet-gcdump report` open it"},
	{serialized("TraceLog"), "an .etlx, PerfView's own copy of a trace; give the .nettrace that it was made of, or open it with PerfView"},
	{isETL, "an .etl of Windows; PerfView and Windows Performance Analyzer open it"},
	{begins("\xfd7zXZ\x00"), "xz; unpack it with `xz -d` first"},
	{begins("7z\xbc\xaf\x27\x1c"), "a 7z archive; unpack it first"},
	{begins("PERFILE2"), "a perf.data file; `perf script -F +pid` gives the text that tracefix reads"},
	{begins("MDMP"), "a memory dump and no trace; WinDbg and Visual Studio open it"},
	{isPerfetto, "a Perfetto protobuf, which tracefix writes but does not read; https://ui.perfetto.dev opens it"},
	{isTar, "a tar archive; `tracefix batch` works on archives"},
	{holds(`"nodes"`, `"callFrame"`), "a .cpuprofile of V8; browser devtools and speedscope open it"},
	{holds(`"meta"`, `"preprocessedProfileVersion"`), "a Firefox profile; https://profiler.firefox.com opens it"},
}

func isTar(b []byte) bool { return len(b) > 262 && string(b[257:262]) == "ustar" }

// isPerfetto recognises packets, which are messages of field 1, and which a profile is not.
// Text may begin with that byte, too.
func isPerfetto(b []byte) bool {
	head := b[:min(len(b), 256)]
	isText := bytes.IndexFunc(head, func(r rune) bool { return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' }) < 0
	return len(b) > 0 && b[0] == 0x0a && !isText && !isPprof(b)
}

// isPprof recognises profile.proto: nothing but its fields as far as b goes, with a sample type of
// two numbers of strings among them, and something else.
func isPprof(b []byte) bool {
	const varints, packed = 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<12 | 1<<14 | 1<<15, 1 << 13
	sampleType, more := false, false
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(num, typ, b[n:])
		}
		if n < 0 || size < 0 {
			return sampleType && more && len(b) < sniffSize // it goes on behind what is looked at
		}
		asVarint := num <= 15 && 1<<num&(varints|packed) != 0
		if num > 15 || typ != protowire.VarintType && typ != protowire.BytesType || typ == protowire.VarintType != asVarint && num != 13 {
			return false
		}
		if num == 1 {
			msg, _ := protowire.ConsumeBytes(b[n:])
			sampleType = isValueType(msg)
			if !sampleType {
				return false
			}
		} else {
			more = true
		}
		b = b[n+size:]
	}
	return sampleType && more
}

// isValueType recognises a message of at most two small numbers.
func isValueType(msg []byte) bool {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 || num > 2 || typ != protowire.VarintType {
			return false
		}
		v, m := protowire.ConsumeVarint(msg[n:])
		if m < 0 || v > 1<<31 {
			return false
		}
		msg = msg[n+m:]
	}
	return true
}

// isETL recognises a buffer of Windows' event log whose first event is the system's header.
func isETL(b []byte) bool {
	if len(b) < 0x50 {
		return false
	}
	size, saved := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return size >= 1024 && size <= 16<<20 && size%1024 == 0 && saved <= size && b[0x4b] == 0xc0 && (b[0x4a] == 1 || b[0x4a] == 2)
}
