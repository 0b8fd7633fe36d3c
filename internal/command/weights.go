package command

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// isTime says of a weight whether it is the time of the samples.
func isTime(weight string) bool {
	return weight == "cpu" || weight == "wall" || weight == profile.TimeWeight
}

// time reports whether the samples are wanted.
func (c *Config) time() bool { return c.Weights == nil || slices.ContainsFunc(c.Weights, isTime) }

// values are the weights that are not the time of samples.
func (c *Config) values() []string {
	return slices.DeleteFunc(slices.Clone(c.Weights), isTime)
}

// shown are the weights as writers know them.
func (c *Config) shown() []string {
	if c.Weights == nil {
		return nil
	}
	list := c.values()
	if c.time() {
		list = append([]string{profile.TimeWeight}, list...)
	}
	return list
}

// cpuOnly reports whether of the samples only those on a CPU are wanted.
func (c *Config) cpuOnly() bool {
	return c.Select.CPUOnly || slices.Contains(c.Weights, "cpu") && !slices.Contains(c.Weights, "wall")
}

// checkWeights refuses weights that say nothing.
func checkWeights(weights []string) error {
	for i, w := range weights {
		event, field, found := strings.Cut(w, "=")
		switch {
		case event == "" || found && (field == "" || isTime(event)):
			return fmt.Errorf("--weight %q: must be cpu, wall, alloc, exceptions, contention, wait, EVENT, EVENT=FIELD or a sample type of a pprof", w)
		case slices.Contains(weights[:i], w):
			return fmt.Errorf("--weight %s: is there twice", w)
		}
	}
	return nil
}

// describeWeights tells what the weights add up to. A weight of which the trace has nothing
// is an error: the output would be empty, or lack what was asked for.
func describeWeights(p *profile.Profile, c *Config, rep *report.Trace) error {
	sel := &c.Select
	var told []string
	for i, w := range p.Weights {
		n, sum := 0, 0.0
		for _, t := range p.Threads {
			for v := range p.Values(t, i) {
				n++
				sum += v.Amount
			}
		}
		if n == 0 && c.all && (i < len(p.Weights)-1 || len(told) > 0 || sampled(p)) {
			continue // it is zero in the file
		}
		if n == 0 {
			if w.Sums {
				why := "nothing weighs anything by --weight " + w.Name
				if !sel.IsZero() {
					why = "the filters drop all, or " + why
				}
				return fmt.Errorf("%w: %s", ErrNothing, strings.Join(append([]string{why}, p.Meta.Notes...), "; "))
			}
			left := ""
			if w.Unended > 0 && sel.IsZero() {
				return fmt.Errorf("%w: %s", ErrNothing, w.Lacks())
			}
			if !sel.IsZero() {
				left = ": the filters drop all, or none were recorded" + droppedRequest(p, sel)
			}
			return fmt.Errorf("%w: no events of --weight %s%s%s", ErrNothing, w.Name, left, recordedBy(w.Name, p))
		}
		what := "event"
		if w.Sums {
			what = "stack"
		}
		text := fmt.Sprintf("%s: %s in %s %s%s", w.Name, amount(sum, w.Unit), report.Count(n), what, report.Plural(n))
		if w.Sampled {
			text += ", drawn at random: an estimate"
		}
		told = append(told, text)
	}
	if c.all && sampled(p) { // nobody asked for these: what is done is told of the samples
		if len(told) > 0 {
			rep.Notes = append(rep.Notes, "the profile's other sample types are kept too: "+strings.Join(told, "; "))
		}
		return nil
	}
	rep.Done = strings.Join(told, "; ")
	return nil
}

func amount(v float64, unit profile.Unit) string {
	switch unit {
	case profile.Bytes:
		if v >= 1<<63 {
			return fmt.Sprintf("%.4g bytes", v)
		}
		return report.Count(int(v+0.5)) + " bytes"
	case profile.Nanoseconds:
		return fmt.Sprintf("%.3f ms", v/1e6)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return report.Count(int(v))
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}

// recordsOffCPU says how the waits of threads are recorded on Linux.
func recordsOffCPU() string {
	return "`" + collect.OffCPU.String() + "` records when threads were off their CPUs"
}

// recordedBy says how such events are recorded.
func recordedBy(weight string, p *profile.Profile) string {
	linux := p.Meta.Version >= 6
	if linux && weight == "wait" {
		// The events of the runtime tell what was waited for, and not of every wait.
		for _, th := range p.Threads {
			if th.Samples.Count(profile.SampleOffCPU) > 0 {
				return "; the time off the CPUs is recorded, and no weight: `tracefix top --wait`"
			}
		}
		return "; " + recordsOffCPU() + ", which `tracefix top --wait` tells"
	}
	var line *collect.Line
	what := ""
	switch weight {
	case "alloc":
		line, what = &collect.Allocations, "allocations"
	case "exceptions":
		line, what = &collect.Common, "exceptions"
	case "contention":
		line, what = &collect.Contentions, "contention"
	case "wait":
		line, what = &collect.WaitEvents, "waits, from .NET 9 on"
	default:
		return "; `tracefix events` lists what the trace has; EVENT=FIELD needs a numeric field"
	}
	return "; `" + line.For(p.Meta.Version) + "` records " + what
}
