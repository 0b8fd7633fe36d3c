// Package otlp writes OTLP as JSON, in the lines that the file exporter of the
// OpenTelemetry specification writes: each is a whole TracesData or MetricsData.
//
// Sources: opentelemetry-specification: specification/protocol/file-exporter.md;
// opentelemetry-proto: docs/specification.md (JSON: hexadecimal ids, 64-bit integers as
// text, enumerations as numbers).
package otlp

import (
	"cmp"
	"io"
	"math"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
)

// A Resource is what the telemetry is of. Empty values are left out.
type Resource struct {
	Service        string // service.name
	PID            int
	Command        string // the command line
	RuntimeVersion string // of .NET
	Source         string // name of the trace
}

func (r *Resource) append(b []byte) []byte {
	a := Attributes{B: append(b, `{"attributes":[`...)}
	// An unknown service has this name by the semantic conventions.
	a.Text("service.name", cmp.Or(r.Service, "unknown_service"))
	if r.PID != 0 {
		a.Int("process.pid", int64(r.PID))
	}
	a.Text("process.command_line", r.Command)
	a.Text("process.runtime.name", "dotnet")
	a.Text("process.runtime.version", r.RuntimeVersion)
	a.Text("tracefix.source", r.Source)
	return append(a.B, "]}"...)
}

// Attributes appends key and value pairs to B.
type Attributes struct {
	B []byte
	n int
}

func (a *Attributes) key(k string) {
	if a.n > 0 {
		a.B = append(a.B, ',')
	}
	a.n++
	a.B = text.AppendJSON(append(a.B, `{"key":`...), k)
	a.B = append(a.B, `,"value":{`...)
}

// Text appends a string; one that is empty is not known, and left out.
func (a *Attributes) Text(k, v string) {
	if v != "" {
		a.String(k, v)
	}
}

// String appends a string, which may be empty.
func (a *Attributes) String(k, v string) {
	a.key(k)
	a.B = text.AppendJSON(append(a.B, `"stringValue":`...), v)
	a.B = append(a.B, "}}"...)
}

// Int appends an integer.
func (a *Attributes) Int(k string, v int64) {
	a.key(k)
	a.B = AppendInt(append(a.B, `"intValue":`...), v)
	a.B = append(a.B, "}}"...)
}

// Bool appends true.
func (a *Attributes) Bool(k string) {
	a.key(k)
	a.B = append(a.B, `"boolValue":true}}`...)
}

// Texts appends an array of strings.
func (a *Attributes) Texts(k string, v []string) {
	if len(v) == 0 {
		return
	}
	a.key(k)
	a.B = append(a.B, `"arrayValue":{"values":[`...)
	for i, s := range v {
		if i > 0 {
			a.B = append(a.B, ',')
		}
		a.B = append(text.AppendJSON(append(a.B, `{"stringValue":`...), s), '}')
	}
	a.B = append(a.B, "]}}}"...)
}

// AppendInt appends a 64-bit integer, which is text in JSON.
func AppendInt(b []byte, v int64) []byte {
	return append(strconv.AppendInt(append(b, '"'), v, 10), '"')
}

// AppendFloat appends a double. What JSON has no number for is text.
func AppendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 0):
		return append(b, map[bool]string{true: `"Infinity"`, false: `"-Infinity"`}[v > 0]...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// perLine is how many items stand in one line, so that no reader needs the whole file.
const perLine = 512

// A Signal says what the items of a Writer are.
type Signal struct{ resources, scopes, items string }

// The signals.
var (
	Spans   = Signal{"resourceSpans", "scopeSpans", "spans"}
	Metrics = Signal{"resourceMetrics", "scopeMetrics", "metrics"}
)

// A Writer writes lines.
type Writer struct {
	W        io.Writer
	Signal   Signal
	Version  string           // of the scope: of this program, unless Scope names another
	Resource func() *Resource // asked for each line: what it tells may grow
	scope    string
	b        []byte
	n        int
	err      error
}

// Scope begins a line for what another library has measured than this program.
func (w *Writer) Scope(name, version string) error {
	err := w.line()
	w.scope, w.Version = name, version
	return err
}

// Item begins an item: its JSON is to be appended to the bytes returned and handed to
// Done.
func (w *Writer) Item() []byte {
	if w.n == 0 {
		w.b = append(w.b[:0], `{"`...)
		w.b = append(append(w.b, w.Signal.resources...), `":[{"resource":`...)
		w.b = w.Resource().append(w.b)
		w.b = append(append(append(w.b, `,"`...), w.Signal.scopes...), `":[{"scope":{"name":`...)
		w.b = text.AppendJSON(w.b, cmp.Or(w.scope, "tracefix"))
		if w.Version != "" {
			w.b = text.AppendJSON(append(w.b, `,"version":`...), w.Version)
		}
		w.b = append(append(append(w.b, `},"`...), w.Signal.items...), `":[`...)
	} else {
		w.b = append(w.b, ',')
	}
	w.n++
	return w.b
}

// Done takes the bytes of Item back with the item.
func (w *Writer) Done(b []byte) error {
	if w.b = b; w.n >= perLine {
		return w.line()
	}
	return w.err
}

func (w *Writer) line() error {
	if w.n > 0 && w.err == nil {
		_, w.err = w.W.Write(append(w.b, "]}]}]}\n"...))
	}
	w.n = 0
	return w.err
}

// Close writes what is left; a line without items if there were none.
func (w *Writer) Close() error {
	if w.n == 0 && w.b == nil {
		w.Item()
	}
	return w.line()
}
