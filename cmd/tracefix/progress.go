package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// A course is all that a command does with one trace: what part of the whole each stage is, and
// how far it is. It only goes forward.
type course struct {
	name     string
	read     func() int64 // stored bytes that were read, by all readings
	stored   int64
	out      *report.Progress
	readings float64 // how often the trace is read before anything is written
	again    bool    // writing goes along with one more reading
	work     float64 // part of the whole between reading and writing, about
	write    float64 // part of the whole that is writing, about

	began, ended time.Time // of the readings
	done         float64
}

// courseOf knows what a row of the table does. The parts are those of usual recordings; where a
// trace is another, the bar is faster or slower in that stage.
func (r *traceRun) courseOf(in *input.File, out *report.Progress) *course {
	c := &course{name: filepath.Base(in.Name), read: in.BytesRead, stored: in.Stored, out: out, readings: 1, began: time.Now()}
	switch job := r.job.(type) {
	case *command.Repair:
		c.work, c.write = 0.35, 0.35
	case *command.Convert:
		c.write = 0.5
	case *command.HTTP:
		if job.Explain || job.Summary {
			c.work = 0.7
		}
	case *command.Activities:
		if job.Explain {
			c.readings = 2
		}
	case *command.Info, *command.Top:
		c.work = 0.4
	}
	if format, err := r.row.Resolve(&r.opts); err == nil && r.row.Rewrites != nil {
		c.again = format == "" || format == in.Kind.Own()
		if _, repairs := r.job.(*command.Repair); repairs && c.again && in.Kind == input.Chromium {
			c.readings = 2 // stacks are looked for first, and what moves with them after that
		}
	}
	return c
}

// at returns how much of the whole is done, 0 to 1, and the name of the stage.
func (c *course) at(now time.Time) (float64, string) {
	full := float64(c.read()) / float64(c.stored) / c.readings
	written, expected := c.out.Written()
	reading := 1 - c.work - c.write
	f, stage := 0.0, "reading"
	switch {
	case full < 1:
		f = reading * full
	case written == 0 || c.write == 0 || c.again && full == 1:
		part := 0.0
		if full > 1.05 && !c.again { // more than looking at its head: read again, for as many requests as memory does not hold
			part = min(1, full-1)
		} else {
			part = c.byTime(now, c.work)
		}
		f, stage = reading+c.work*part, "working"
		if c.write > 0 && c.work > 0 {
			stage = "repairing"
		}
	default:
		part := c.byTime(now, c.work+c.write)
		switch {
		case c.again:
			part = (full - 1) * c.readings
		case expected > 0:
			part = float64(written) / float64(expected)
		}
		f, stage = reading+c.work+c.write*min(1, part), "writing"
	}
	c.done = max(c.done, min(f, 0.995)) // the end is when it is over
	return c.done, stage
}

// byTime is how far a stage is that does not tell: by the time that reading took, as a part of
// the whole. It slows down where it takes longer than that.
func (c *course) byTime(now time.Time, part float64) float64 {
	if c.ended.IsZero() {
		c.ended = now
	}
	usual := c.ended.Sub(c.began).Seconds() * part / (1 - c.work - c.write)
	x := now.Sub(c.ended).Seconds() / max(usual, 0.1)
	return x / (1 + x) // an exponential would soon stand still
}

// rate is what was read in a second, in words.
func (c *course) rate(now time.Time) string {
	s := now.Sub(c.began).Seconds()
	if s < 0.2 {
		return ""
	}
	return fmt.Sprintf(" %.0f MB/s", float64(c.read())/s/1e6)
}

// showProgress draws one bar on stderr for all that a command does, if stderr is a terminal. The
// time that is left goes by how fast it was so far.
func showProgress(cli *CLI, std streams, c *course) (stop func()) {
	if cli.Quiet || c.stored < 1<<20 || !draws(std.err) {
		return func() {}
	}
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				io.WriteString(std.err, clearLine(std.err))
				return
			case now := <-t.C: // a terminal may get another width at any time
				io.WriteString(std.err, clearLine(std.err)+c.bar(now, widthOf(std.err)))
			}
		}
	}()
	return func() { close(done); <-finished }
}

// barWidth is the length of a bar where there is room.
const barWidth = 30

// bar draws how far it is in one line of a terminal: a longer one would be drawn anew below itself.
func (c *course) bar(now time.Time, width int) string {
	f, stage := c.at(now)
	if stage == "reading" {
		stage += c.rate(now)
	}
	name := []rune(text.Line(c.name))
	head := fmt.Sprintf(": %s %3.0f %% ", stage, f*100)
	gone := now.Sub(c.began)
	end := fmt.Sprintf(" %s", gone.Round(time.Second))
	if f > 0 && gone > time.Second {
		left := time.Duration(float64(gone) * (1 - f) / f)
		end += fmt.Sprintf(", %s left", max(time.Second, left.Round(time.Second)))
	}
	if width <= 0 {
		width = 80
	}
	room := width - 1 - utf8.RuneCountInString(head+end) // in the last column the cursor would go to the next line
	if len(name) > room {
		name = append([]rune("…"), name[min(len(name)-room+1, len(name)):]...)
	}
	if n := min(barWidth, room-len(name)-2); n >= 5 {
		full := int(f * float64(n))
		head += "|" + strings.Repeat("█", full) + strings.Repeat(" ", n-full) + "|"
	}
	return string(name) + head + end
}

// clearLine is what takes a bar off a terminal.
func clearLine(w any) string {
	if draws(w) {
		return "\r\x1b[K"
	}
	return ""
}
