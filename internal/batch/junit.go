package batch

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// The elements of JUnit XML that every reader of it knows.
type junitSkip struct {
	Message string `xml:"message,attr"`
}

type junitCase struct {
	XMLName xml.Name   `xml:"testcase"`
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Skipped *junitSkip `xml:"skipped,omitempty"`
	Failure *junitText `xml:"failure,omitempty"`
	Error   *junitText `xml:"error,omitempty"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML: one case for each trace, a failure for
// one that failed, an error for one that was damaged (its output stands); and one
// case for each gate. Of more traces than viewers of tests can take, those that are well are
// one case together.
func (r *Report) WriteJUnit(out io.Writer) error {
	w := bufio.NewWriterSize(out, 64<<10)
	t, cases := r.Totals, r.Totals.Traces
	fold := cases > maxInline && t.OK > 0
	if fold {
		cases += 1 - t.OK
	}
	nothing, skipped := r.Nothing(), 0
	if nothing != "" { // a viewer of tests takes a suite without any for one that is well
		cases, skipped = 1, 1
	}
	failedGates := 0
	for _, g := range r.Gates {
		if g.Failed {
			failedGates++
		}
	}
	fmt.Fprintf(w, "%s<testsuites name=\"tracefix batch\" tests=\"%d\" failures=\"%d\" errors=\"%d\">\n", xml.Header, cases+len(r.Gates), t.Failed+failedGates, t.Damaged)
	fmt.Fprintf(w, "  <testsuite name=\"tracefix %s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n", r.Do, cases, t.Failed, t.Damaged, skipped)
	e := xml.NewEncoder(w)
	e.Indent("    ", "  ")
	if fold {
		all := junitCase{Name: fmt.Sprintf("%d traces without failure or damage", t.OK), Class: "tracefix." + r.Do}
		if err := e.Encode(all); err != nil {
			return err
		}
	}
	if nothing != "" {
		c := junitCase{Name: noTrace, Class: "tracefix." + r.Do, Skipped: &junitSkip{text.Lines(nothing)}}
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	told := r.All()
	if fold {
		told = r.Troubled()
	}
	for x, err := range told {
		if err == nil {
			err = e.Encode(x.junit(r.Do))
		}
		if err != nil {
			return err
		}
	}
	io.WriteString(w, "\n  </testsuite>\n")
	if len(r.Gates) > 0 {
		fmt.Fprintf(w, "  <testsuite name=\"tracefix gates\" tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"0\">\n", len(r.Gates), failedGates)
		e := xml.NewEncoder(w) // begins on a line of its own
		e.Indent("    ", "  ")
		for _, g := range r.Gates {
			if err := e.Encode(g.junit()); err != nil {
				return err
			}
		}
		io.WriteString(w, "\n  </testsuite>\n")
	}
	io.WriteString(w, "</testsuites>\n")
	return w.Flush()
}

func (g *GateResult) junit() junitCase {
	c := junitCase{Name: g.Gate, Class: "tracefix.gates", Out: text.Lines(g.Told())}
	if g.Failed {
		c.Failure = &junitText{text.Lines("found " + g.Told()), "gate", g.Gate}
	}
	return c
}

func (t *Result) junit(do string) junitCase {
	c := junitCase{Name: text.Lines(t.Input.Name), Class: text.Lines(className(do, t.Input.Name)), Out: text.Lines(t.line())}
	switch t.Status {
	case Failed:
		c.Failure = &junitText{text.Lines(t.why()), "failed", text.Lines(t.Error)}
	case Damaged:
		var b strings.Builder
		for _, d := range t.Damage {
			fmt.Fprintf(&b, "offset %d: %s: %s\n", d.Offset, d.Where, d.What)
		}
		if more := t.Damages - len(t.Damage); more > 0 {
			fmt.Fprintf(&b, "... and %d more\n", more)
		}
		c.Error = &junitText{fmt.Sprintf("damaged in %d place%s, what could be saved was saved", t.Damages, report.Plural(t.Damages)), "damaged", text.Lines(b.String())}
	}
	return c
}

func at(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

// className groups cases by folder in the viewers of CI systems.
func className(do, name string) string {
	d := strings.Trim(path.Dir(strings.ReplaceAll(name, `\`, "/")), "/.")
	d = strings.NewReplacer(".", "_", "/", ".", ":", "").Replace(d)
	if d == "" {
		return "tracefix." + do
	}
	return "tracefix." + do + "." + d
}

// line tells a trace's outcome in one line.
func (t *Result) line() string {
	switch q := t.Requests; {
	case t.Status == Failed:
		return ""
	case q != nil:
		line := fmt.Sprintf("%s: %s, %d failed or canceled, %d with errors", t.Input.Name, q.Told(), q.Failed, q.Errors)
		for _, side := range []struct {
			name string
			of   *report.Side
		}{{"made", q.Made}, {"served", q.Served}} {
			if d := side.of; d != nil && d.Max > 0 {
				line += fmt.Sprintf("; %s: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, longest %.1f ms", side.name, d.P50, d.P95, d.P99, d.Max)
			}
		}
		return line
	}
	return t.Summary()
}
