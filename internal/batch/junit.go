package batch

import (
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// The elements of JUnit XML that every reader of it knows.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
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
// case for each gate.
func (r *Report) WriteJUnit(w io.Writer) error {
	name := "tracefix " + r.Do
	traces := junitSuite{Name: name}
	for _, t := range r.Traces {
		c := junitCase{Name: text.Lines(t.Input.Name), Class: text.Lines(className(r.Do, t.Input.Name)), Out: text.Lines(t.line())}
		switch t.Status {
		case Failed:
			traces.Failures++
			c.Failure = &junitText{text.Lines(t.why()), "failed", text.Lines(t.Error)}
		case Damaged:
			traces.Errors++
			var b strings.Builder
			for _, d := range t.Damage {
				fmt.Fprintf(&b, "offset %d: %s: %s\n", d.Offset, d.Where, d.What)
			}
			if more := t.Damages - len(t.Damage); more > 0 {
				fmt.Fprintf(&b, "... and %d more\n", more)
			}
			c.Error = &junitText{fmt.Sprintf("damaged in %d place%s, what could be saved was saved", t.Damages, report.Plural(t.Damages)), "damaged", text.Lines(b.String())}
		}
		traces.Cases = append(traces.Cases, c)
	}
	traces.Tests = len(traces.Cases)
	all := junitSuites{Name: "tracefix batch", Tests: traces.Tests, Failures: traces.Failures, Errors: traces.Errors, Suites: []junitSuite{traces}}
	if len(r.Gates) > 0 {
		gates := junitSuite{Name: "tracefix gates", Tests: len(r.Gates)}
		for _, g := range r.Gates {
			c := junitCase{Name: g.Gate, Class: "tracefix.gates", Out: text.Lines(g.Found + at(g.Where))}
			if g.Failed {
				gates.Failures++
				c.Failure = &junitText{text.Lines("found " + g.Found + at(g.Where)), "gate", g.Gate}
			}
			gates.Cases = append(gates.Cases, c)
		}
		all.Tests += gates.Tests
		all.Failures += gates.Failures
		all.Suites = append(all.Suites, gates)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
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
		return fmt.Sprintf("%s: %d requests, %d failed or canceled, %d with errors; p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, longest %.1f ms", t.Input.Name, q.Count, q.Failed, q.Errors, q.P50, q.P95, q.P99, q.Max)
	}
	return t.Summary()
}
