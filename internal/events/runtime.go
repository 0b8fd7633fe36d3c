package events

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A Report says what collections, compilation, locks or the thread pool of processes cost:
// verdicts and tables for people, rows for programs. What the four have in common stands here
// once: sections, tables, plots and rows, and a writer for each format.
type Report struct {
	Title    string
	Sections []Section // one for each process
	Rows     Rows      // structs with a json tag for each field: a line of ndjson each
	CSV      Rows      // those of Rows, all of one type, that a spreadsheet wants
	Done     string    // what was found, in a few words
	Missing  string    // what would record such events, where there are none

	// What a thing's row and the totals look like where there is nothing.
	row, stats any
	// What is on disk of what it is about. If that has an error, nothing of the report is to be believed.
	aside *spool.Spool
}

// A Section is what there is to say of one process.
type Section struct {
	Process string   // empty where the trace holds one process
	Verdict []string // sentences; the answer first
	Plots   func() []Plot
	Tables  []Table
}

// Rows are made when they are written: there may be millions.
type Rows struct {
	parts []rowsPart
	n     int
}

type rowsPart struct {
	n   int
	row func(i int) any
}

func (r *Rows) add(n int, row func(i int) any) {
	if n > 0 {
		r.parts, r.n = append(r.parts, rowsPart{n, row}), r.n+n
	}
}

// Len returns how many there are.
func (r *Rows) Len() int { return r.n }

// each calls f for each.
func (r *Rows) each(f func(row any) error) error {
	for _, p := range r.parts {
		for i := range p.n {
			if err := f(p.row(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// A Table is for people.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	// Left is the number of the first column that is text; those before are figures.
	Left  int
	Spare []string // columns that a narrow screen does without, the first one first
	More  int      // rows left out
}

// Context is what a report knows beside the events.
type Context struct {
	Name string // of the trace
	End  int64  // ns: time of the last event, or how much of the trace is wanted
	// In is what is wanted of the trace. Sums are of it alone; single times are whole.
	In interval.Interval
	// Process returns the name of a process, empty if it is not known.
	Process func(pid int) string
	// Frames returns the full names of a stack, root first.
	Frames func(stack uint32) []string
	Limit  int  // rows in the tables of text and html; 0 is all
	Many   bool // the trace holds several processes
	// Partial says that some of what the processes did is left out, as that of other threads.
	Partial bool
	Version int   // of the nettrace
	Events  int64 // of the trace
	Lost    int64 // events that the recorder could not keep
}

// lossy reports whether so many events were lost that little of something does not say that there was little.
func (c *Context) lossy() bool { return c.Lost > 0 && c.Lost >= c.Events/20 }

// lostNote says that what is told of the trace is not all there was.
func lostNote(lost int64) []string {
	if lost == 0 {
		return nil
	}
	return []string{count(int(lost), "event") + " of the trace could not be kept by who recorded it: counts and sums are of the others."}
}

func (c *Context) section(pid int) Section {
	if !c.Many {
		return Section{}
	}
	return Section{Process: strings.TrimSpace(c.Process(pid) + " (" + strconv.Itoa(pid) + ")")}
}

// cutNote says, where the time that is wanted cuts some of what it is about, what sums and lengths are of.
func cutNote(cut int, thing string) []string {
	if cut == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s at an edge of the time chosen: sums of time hold the part inside; counts, sizes, means, percentiles and the longest are of whole ones.", count(cut, thing))}
}

func (c *Context) frames(stack uint32) []string {
	if stack == 0 || c.Frames == nil {
		return nil
	}
	return c.Frames(stack)
}

// cut returns how many of n rows stand in a table.
func (c *Context) cut(n int) int {
	if c.Limit > 0 {
		return min(n, c.Limit)
	}
	return n
}

// RuntimeFormats of Report.Write.
var RuntimeFormats = []string{"text", "json", "csv", "html", "ndjson"}

// Write writes r in one of RuntimeFormats. Lines of text are no wider than width where names can
// be shortened; 0 is any width.
func (r *Report) Write(w io.Writer, format string, width int) error {
	return cmp.Or(r.write(w, format, width), r.aside.Err())
}

func (r *Report) write(w io.Writer, format string, width int) error {
	switch format {
	case "text":
		return r.text(w, width)
	case "json":
		return r.json(w)
	case "csv":
		return r.csv(w)
	case "html":
		return r.html(w)
	case "ndjson":
		return r.ndjson(w)
	}
	return fmt.Errorf("no such format: %q", format)
}

// told is a time in milliseconds, nil where the time is not known.
func told(ns int64) *float64 {
	if ns < 0 {
		return nil
	}
	v := text.Millis(ns)
	return &v
}

// rank is the index of the nearest-rank percentile of n sorted values.
func rank(p float64, n int) int { return max(0, int(math.Ceil(p/100*float64(n)))-1) }

// duration prints a time for people, with three digits or so.
func duration(ns int64) string {
	switch v := float64(ns); {
	case v == 0:
		return "0"
	case v < 999.5e3:
		return digits(v/1e3) + " µs"
	case v < 999.5e6:
		return digits(v/1e6) + " ms"
	default:
		return digits(v/1e9) + " s"
	}
}

// size prints bytes for people.
func size(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for ; math.Abs(n) >= 999.5 && i < len(units)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return strconv.FormatFloat(n, 'f', 0, 64) + " B"
	}
	return digits(n) + " " + units[i]
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// count prints a number of things: count(1, "method") is "1 method".
func count(n int, thing string) string {
	s := thousands(n) + " " + thing
	if n != 1 {
		s += "s"
	}
	return s
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// at prints a time of the trace.
func at(ns int64) string { return strconv.FormatFloat(text.Millis(ns), 'f', 1, 64) + " ms" }

// short is a method without its arguments.
func short(method string) string {
	name, _, _ := strings.Cut(method, "(")
	return name
}

// caller returns the innermost frame of a stack, root first, that is no machinery.
func caller(frames []string) string {
	for _, f := range slices.Backward(frames) {
		_, name, found := strings.Cut(f, "!")
		if !found {
			name = f
		}
		if !profile.IsMachinery(name) {
			return f
		}
	}
	if len(frames) > 0 {
		return frames[len(frames)-1]
	}
	return ""
}
