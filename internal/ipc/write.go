package ipc

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// A Writer writes what Read yields.
type Writer struct {
	w      io.Writer
	json   bool
	values bool
	width  int
	head   bool
}

// NewWriter returns a Writer of text or, for "ndjson", of a line of JSON for each item.
// values shows the values of environment variables, which may be secrets. Lines of text are broken
// at width characters; 0 is any width.
func NewWriter(w io.Writer, format string, values bool, width int) *Writer {
	return &Writer{w: w, json: format == "ndjson", values: values, width: width}
}

// beside is how wide the columns are in front of what a message says.
const beside = 34

const hidden = "(hidden)"

func (w *Writer) show(f Field) any {
	if f.Secret && !w.values {
		return hidden
	}
	return f.Value
}

// Item writes one item.
func (w *Writer) Item(it *Item) error {
	if w.json {
		return w.line(it)
	}
	var b strings.Builder
	if !w.head {
		w.head = true
		b.WriteString("conn            ms     bytes\n")
	}
	at := "-"
	if it.Ns >= 0 {
		at = ms(it.Ns)
	}
	arrow := ">"
	if it.Direction == ToTool {
		arrow = "<"
	}
	fmt.Fprintf(&b, "%4d  %12s  %8s  %s ", it.Conn, at, report.Count(int(it.Size)), arrow)
	var below []string
	switch it.Kind {
	case "trace":
		b.WriteString("trace")
		if it.Format != "" {
			b.WriteString(", " + it.Format)
		}
		if it.EndNs > it.Ns {
			b.WriteString(", until " + ms(it.EndNs))
		}
	case "environment":
		fmt.Fprintf(&b, "%d variables", len(it.Fields))
		for _, f := range it.Fields {
			below = append(below, oneLine(fmt.Sprintf("%s=%v", f.Name, w.show(f))))
		}
	case "junk":
		b.WriteString("bytes")
	default:
		b.WriteString(text.Line(it.Name))
		for _, f := range it.Fields {
			if list, ok := f.Value.([]Provider); ok {
				for _, p := range list {
					s := fmt.Sprintf("%s:%s:%d", p.Name, p.Hex, p.Level)
					if p.Arguments != "" {
						s += ":" + p.Arguments
					}
					if p.Filter != "" {
						s += "  (" + p.Filter + ")"
					}
					below = append(below, oneLine(s))
				}
				continue
			}
			v := fmt.Sprint(w.show(f))
			if strings.ContainsAny(v, " \"") || v == "" {
				v = strconv.Quote(v)
			}
			b.WriteString("  " + f.Name + "=" + oneLine(v))
		}
	}
	b.WriteByte('\n')
	for _, s := range below {
		fmt.Fprintf(&b, "%*s%s\n", beside, "", s)
	}
	for _, n := range it.Notes {
		fmt.Fprintf(&b, "%*s! %s\n", beside, "", text.Line(n))
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w.w, text.Wrapped(strings.TrimSuffix(line, "\n"), w.width, beside)); err != nil {
			return err
		}
	}
	return nil
}

// oneLine quotes what holds characters that are not to be shown as they are: a recording writes its
// own lines only, and does not write to the terminal.
func oneLine(s string) string {
	if text.Line(s) != s {
		return text.Line(strconv.Quote(s))
	}
	return s
}

func ms(ns int64) string { return fmt.Sprintf("%.3f", text.Millis(ns)) }

func (w *Writer) line(it *Item) error {
	x := struct {
		Conn      int            `json:"conn"`
		Ms        *float64       `json:"ms,omitempty"`
		EndMs     *float64       `json:"end_ms,omitempty"`
		Direction string         `json:"from"` // tool, runtime
		Offset    int64          `json:"offset"`
		Bytes     int64          `json:"bytes"`
		Kind      string         `json:"kind"`
		Name      string         `json:"name,omitempty"`
		Set       *int           `json:"set,omitempty"`
		ID        *int           `json:"id,omitempty"`
		Format    string         `json:"format,omitempty"`
		Fields    map[string]any `json:"fields,omitempty"`
		Cut       bool           `json:"cut,omitempty"`
		Notes     []string       `json:"notes,omitempty"`
	}{Conn: it.Conn, Direction: "tool", Offset: it.Offset, Bytes: it.Size, Kind: it.Kind, Name: it.Name, Format: it.Format, Cut: it.Cut, Notes: it.Notes}
	if it.Direction == ToTool {
		x.Direction = "runtime"
	}
	if it.Ns >= 0 {
		at := text.Millis(it.Ns)
		x.Ms = &at
		if it.EndNs > it.Ns {
			end := text.Millis(it.EndNs)
			x.EndMs = &end
		}
	}
	if it.Kind == "request" || it.Kind == "response" {
		x.Set, x.ID = &it.Set, &it.ID
	}
	for _, f := range it.Fields {
		if x.Fields == nil {
			x.Fields = map[string]any{}
		}
		x.Fields[f.Name] = w.show(f)
	}
	return text.WriteDocument(w.w, x, "")
}

// WriteFrame writes one frame of a recording: what was sent at once on a connection.
func WriteFrame(w io.Writer, conn int, d Direction, at time.Time, b []byte) error {
	var h [frameHeader]byte
	h[0] = byte(d)
	binary.LittleEndian.PutUint32(h[1:], uint32(conn))
	binary.LittleEndian.PutUint64(h[5:], uint64(at.UnixNano()))
	binary.LittleEndian.PutUint32(h[13:], uint32(len(b)))
	if _, err := w.Write(h[:]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}
