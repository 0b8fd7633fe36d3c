package httpreport

import (
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/text"
)

// besideTimes is where what has a time begins, in columns.
const besideTimes = 15

// method is a method's name as long as the line has room for it.
func (w *tableWriter) method(name string) string {
	if w.o.Width == 0 {
		return name
	}
	return export.Shorten(name, max(w.o.Width-besideTimes, 24))
}

// within is a text as long as the line has room for it.
func (w *tableWriter) within(s string) string {
	if w.o.Width == 0 {
		return s
	}
	return text.Fit(s, max(w.o.Width-besideTimes, 24))
}

// explain prints where the time of a request went. from is its start, total its duration, ns.
func (w *tableWriter) explain(why *httpphases.Explanation, from, total int64) {
	if why == nil {
		return
	}
	w.section("where its time went")
	for name, ns := range why.Time.Causes {
		if ns > 0 {
			share := float64(ns) / float64(max(total, 1))
			w.print("    %9s  %5.1f %%  %-10s %s\n", cell(ns), 100*share, causeText(name), strings.Repeat("█", int(share*40+0.5)))
		}
	}
	if why.CPUTotal > why.Time.CPU {
		w.print("    all its threads together ran for %s ms\n", cell(why.CPUTotal))
	}
	if why.Compiled > 0 {
		in := ""
		if why.CompileTotal > 0 {
			in = ", in " + cell(why.CompileTotal) + " ms"
		}
		w.print("    methods compiled for it: %d%s\n", why.Compiled, in)
	}
	if len(why.Hot) > 0 {
		w.section("what ran")
		for _, h := range why.Hot {
			w.print("    %9s  %s\n", cell(h.Time), w.method(h.Method))
		}
	}
	if len(why.Blocked) > 0 {
		w.section("what it stood blocked in")
		for _, b := range why.Blocked {
			w.print("    %9s  %s\n", cell(b.Time), b.Kind)
			for _, f := range b.Frames[:min(len(b.Frames), textFrames)] {
				w.print("               %s\n", w.method(f))
			}
		}
	}
	if len(why.Exceptions) > 0 {
		w.section("exceptions")
		for _, x := range why.Exceptions {
			text := x.Type + ": " + firstLine(x.Message)
			if x.Count > 1 {
				text += fmt.Sprintf(" (%d times)", x.Count)
			}
			w.print("    %9s  %s\n", "+"+cell(x.At-from), w.within(text))
			if x.Cause != "" {
				w.print("               caused by %s\n", w.within(firstLine(x.Cause)))
			}
		}
	}
	if len(why.Children) > 0 {
		w.section("activities inside")
		for _, c := range why.Children {
			d := "open"
			if c.HasDuration {
				d = cell(c.Duration)
			}
			w.print("    %9s  %9s  %s %s\n", "+"+cell(c.Start-from), d, c.Name, c.Path)
		}
	}
	if n := len(why.Steps); n > 1 || n == 1 && why.Steps[0].Cause != "unknown" { // else all is said
		w.section("step by step")
		for _, s := range why.Steps {
			on := ""
			if s.Thread != 0 {
				on = fmt.Sprintf(" on thread %d", s.Thread)
			}
			w.print("    %9s  %9s  %s%s\n", "+"+cell(s.From-from), cell(s.To-s.From), causeText(s.Cause), on)
		}
	}
	if s := why.Server; s != nil {
		how := "the other side"
		if why.ServerGuessed {
			how = "the other side (guessed: the only request that fits)"
		}
		w.section(fmt.Sprintf(how+": request %d, %s %s, %s ms", s.ID, s.Method, s.Target, cell(s.Duration)))
		w.explain(s.Why, s.Start, s.Duration)
	}
}

// textFrames are the frames of a stack that a terminal shows.
const textFrames = 12

func (w *tableWriter) section(title string) { w.print("  %s\n", title) }

// print writes a line below the row before it.

func (w *tableWriter) print(format string, args ...any) {
	line := text.Line(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")) + "\n"
	if n := len(w.held); w.holding && n > 0 {
		w.held[n-1].below = append(w.held[n-1].below, line...)
		return
	}
	w.str(line)
}

// causeText is a cause in words.
func causeText(cause string) string {
	switch cause {
	case "pool":
		return "pool queue"
	case "other_side":
		return "other side"
	case "gc":
		return "GC pause"
	case "cpu":
		return "CPU"
	}
	return cause
}
