package input

import (
	"bytes"
	"sort"
	"strings"
)

// Kind is what a file's content is.
type Kind uint8

// Kinds of content that hold more than sampled stacks. Register adds the others.
const (
	Unknown    Kind = iota
	Nettrace        // EventPipe, "Nettrace" magic: v4 to v6
	Netperf         // EventPipe before .NET Core 3.0: v1 to v3
	Chromium        // trace event JSON in any of its forms
	Speedscope      // speedscope JSON
)

// How files begin that others do not.
const (
	nettraceMagic = "Nettrace"
	netperfMagic  = "\x14\x00\x00\x00!FastSerialization.1"
	gzipMagic     = "\x1f\x8b"
	zstdMagic     = "\x28\xb5\x2f\xfd"
	bzip2Magic    = "BZh"
)

// A Format says what a kind of content is.
type Format struct {
	Name   string // in reports
	Called string // in messages
	Own    string // the output format that is the same, or holds as much
	Is     func(head []byte) bool
}

// A row of the table of inputs.
type row struct {
	kind Kind
	Format
}

// kinds is the table of inputs. Content is what the first row says whose Is holds: JSON of other
// tools comes last.
var kinds = []row{
	{Nettrace, Format{"nettrace", "nettrace", "nettrace", beginsWith(nettraceMagic)}},
	{Netperf, Format{"netperf", "netperf", "nettrace", beginsWith(netperfMagic)}},
	{Speedscope, Format{"speedscope", "speedscope JSON", "speedscope", isSpeedscope}},
	{Chromium, Format{"chromium", "Chromium trace JSON", "chromium", isChromium}},
}

// jsonKinds are at the end of kinds: the last of them takes any JSON.
const jsonKinds = 2

// Register adds a kind of content to those that are known, before all JSON of other tools. It is for
// the packages that read it, before main begins.
func Register(f Format) Kind {
	k := Kind(len(kinds) + 1)
	n := len(kinds) - jsonKinds
	kinds = append(append(kinds[:n:n], row{k, f}), kinds[n:]...)
	return k
}

// row is the one of k.
func (k Kind) row() row {
	for _, r := range kinds {
		if r.kind == k {
			return r
		}
	}
	return row{Format: Format{Name: "unknown", Own: "chromium"}}
}

func (k Kind) String() string { return k.row().Name }

// Own is the output format that a file of kind k has itself, or that holds as much.
func (k Kind) Own() string { return k.row().Own }

// Kinds are all that can be read, in the order in which they are told.
func Kinds() (list []Kind) {
	for _, r := range kinds {
		list = append(list, r.kind)
	}
	sort.Slice(list, func(i, k int) bool { return list[i] < list[k] }) // slices.Sort has code of its own for bytes
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
		if r.Is(head) {
			return r.kind
		}
	}
	return Unknown
}

// expected lists what could have been there, for messages.
func expected() string {
	var list []string
	for _, k := range Kinds() {
		list = append(list, k.row().Called)
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
