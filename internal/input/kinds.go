package input

import (
	"bytes"
	"slices"
	"strings"
)

// Kind is what a file's content is.
type Kind uint8

// Kinds of content.
const (
	Unknown    Kind = iota
	Nettrace        // EventPipe, "Nettrace" magic: v4 to v6
	Netperf         // EventPipe before .NET Core 3.0: v1 to v3
	Chromium        // trace event JSON in any of its forms
	Speedscope      // speedscope JSON
	Pprof           // profile.proto
	Folded          // lines of "root;leaf count"
	NDJSON          // tracefix's own lines of samples
	PerfScript      // the text of `perf script`
)

// A row of the table of inputs.
type row struct {
	kind   Kind
	name   string // in reports
	called string // in messages
	own    string // the output format that is the same, or holds as much
	is     func(head []byte) bool
}

// kinds is the table of inputs. Content is what the first row says whose is holds.
var kinds = []row{
	{Nettrace, "nettrace", "nettrace", "nettrace", beginsWith("Nettrace")},
	{Netperf, "netperf", "netperf", "nettrace", beginsWith("\x14\x00\x00\x00!FastSerialization.1")},
	{Pprof, "pprof", "pprof", "pprof", isPprof},
	{NDJSON, "ndjson", "ndjson of samples", "ndjson", isSamples},
	{PerfScript, "perf script", "the text of perf script", "chromium", isPerfScript},
	{Folded, "folded", "folded stacks", "folded", isFolded},
	{Speedscope, "speedscope", "speedscope JSON", "speedscope", isSpeedscope},
	{Chromium, "chromium", "Chromium trace JSON", "chromium", isChromium},
}

// row is the one of k.
func (k Kind) row() row {
	for _, r := range kinds {
		if r.kind == k {
			return r
		}
	}
	return row{name: "unknown", own: "chromium"}
}

func (k Kind) String() string { return k.row().name }

// Own is the output format that a file of kind k has itself, or that holds as much.
func (k Kind) Own() string { return k.row().own }

// Kinds are all that can be read, in the order in which they are told.
func Kinds() (list []Kind) {
	for _, r := range kinds {
		list = append(list, r.kind)
	}
	slices.Sort(list)
	return list
}

// IsRecording reports whether a file of kind k is one of events, and not of what was made of them.
func (k Kind) IsRecording() bool { return k == Nettrace || k == Netperf }

// Sniff tells what content is by its first bytes.
func Sniff(head []byte) Kind {
	if Foreign(head) != "" {
		return Unknown
	}
	for _, r := range kinds {
		if r.is(head) {
			return r.kind
		}
	}
	return Unknown
}

// expected lists what could have been there, for messages.
func expected() string {
	var list []string
	for _, k := range Kinds() {
		list = append(list, k.row().called)
	}
	n := len(list) - 1
	return strings.Join(list[:n], ", ") + " or " + list[n]
}

func beginsWith(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// jsonOf is where the JSON of head begins.
func jsonOf(head []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n,")
}

// isChromium takes any array and object: rows of other JSON stand before it.
func isChromium(head []byte) bool {
	b := jsonOf(head)
	return len(b) > 0 && (b[0] == '[' || b[0] == '{')
}

// isSpeedscope reports whether head is an object with speedscope's schema or tables before any
// trace event.
func isSpeedscope(head []byte) bool {
	b := jsonOf(head)
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	schema := bytes.Index(b, []byte(`speedscope.app/file-format-schema.json`))
	events := bytes.Index(b, []byte(`"traceEvents"`))
	if schema >= 0 {
		return events < 0 || schema < events
	}
	frames := bytes.Index(b, []byte(`"frames"`))
	shared := bytes.Index(b, []byte(`"shared"`))
	return events < 0 && shared >= 0 && frames > shared
}
