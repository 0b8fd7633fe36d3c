package command

import (
	"slices"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// A Pass is a row of the table of passes: a change to a profile between reading and writing.
type Pass struct {
	Name   string
	Wanted func(c *Config) bool
	Apply  func(p *profile.Profile, c *Config)
	// Rewrites is set where tracefix.File.Rewrite does the same to a copy of the recording.
	Rewrites bool
}

// Passes run in this order. A repair comes first: what is not selected is evidence all the same.
var Passes = []Pass{
	{Name: "repair", Wanted: func(c *Config) bool { return c.Repair }, Apply: repair, Rewrites: true},
	{Name: "logical stacks", Wanted: func(c *Config) bool { return c.Logical }, Apply: logical},
	{Name: "select", Wanted: func(c *Config) bool { return !c.Select.IsZero() || c.cpuOnly() },
		Apply: selected},
	{Name: "by activity", Wanted: func(c *Config) bool { return c.ByActivity },
		Apply: func(p *profile.Profile, _ *Config) { p.ByActivity() }},
}

// needsProfile reports whether c asks for more than a copy of the recording can hold.
func (c *Config) needsProfile() bool {
	return c.Weights != nil || slices.ContainsFunc(Passes, func(p Pass) bool { return !p.Rewrites && p.Wanted(c) })
}

func selected(p *profile.Profile, c *Config) {
	sel := c.Select
	sel.CPUOnly = c.cpuOnly()
	p.Select(sel)
}

func repair(p *profile.Profile, c *Config) {
	if slices.Contains(c.Tracks, "cpu") && sampled(p) || len(p.Weights) > 0 {
		tracefix.Repair(p, c.repairOptions())
	}
}

// noTasks tells who asks for logical stacks what is missing.
const noTasks = "no task events tell who awaits whom, and only callers that never vary are shown; `--providers System.Threading.Tasks.TplEventSource:0x2A:4` records them"

func logical(p *profile.Profile, c *Config) {
	if !slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return len(t.Tasks) > 0 }) {
		c.warn(noTasks)
	}
	tracefix.Logical(p)
}

// sampled reports whether p holds more than stacks of events.
func sampled(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return t.Samples.Len() > t.Samples.Count(profile.SampleEvent) })
}
