package command

import (
	"slices"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// A Pass is a row of the table of passes: a change to a profile between reading and writing.
type Pass struct {
	Name string
	// Flags makes the flags of the pass, which are those of every command that takes samples.
	// nil: Wanted and Apply go by the flags that all have.
	Flags  func() PassFlags
	Wanted func(c *Config) bool
	Apply  func(p *profile.Profile, c *Config)
	// Rewrites is set where tracefix.File.Rewrite does the same to a copy of the recording.
	Rewrites bool
}

// PassFlags are what a pass takes of the command line: a pointer to a struct whose fields are
// flags, as kong reads them. It serves any number of traces at once, so Apply changes nothing
// in it.
type PassFlags interface {
	// Check refuses what would be passed over without a word.
	Check() error
	// Wanted reports whether the pass was asked for.
	Wanted() bool
	// Reads asks the reader for what the pass needs.
	Reads(o *tracefix.ReadOptions)
	// Apply changes p. warn takes what the user should know.
	Apply(p *profile.Profile, warn func(string))
}

// Passes run in this order. A repair comes first: what is not selected is evidence all the same.
var Passes = []Pass{
	{Name: "repair", Wanted: func(c *Config) bool { return c.Repair }, Apply: repair, Rewrites: true},
	{Name: "logical stacks", Flags: func() PassFlags { return &logicalFlags{} }},
	{Name: "select", Wanted: func(c *Config) bool { return !c.Select.IsZero() || c.cpuOnly() },
		Apply: selected},
	{Name: "by activity", Wanted: func(c *Config) bool { return c.ByActivity },
		Apply: func(p *profile.Profile, _ *Config) { p.ByActivity() }},
}

// passFlags are those of all passes that have some, in the order of the table.
func passFlags() (list kong.Plugins) {
	for _, p := range Passes {
		if p.Flags != nil {
			list = append(list, p.Flags())
		}
	}
	return list
}

// byPass gives flags back to their passes: list is what passFlags returned, read or not.
func byPass(list kong.Plugins) map[string]PassFlags {
	own := map[string]PassFlags{}
	for _, p := range Passes {
		if p.Flags != nil && len(own) < len(list) {
			own[p.Name] = list[len(own)].(PassFlags)
		}
	}
	return own
}

func (p *Pass) wanted(c *Config) bool {
	if p.Flags == nil {
		return p.Wanted(c)
	}
	own := c.passes[p.Name]
	return own != nil && own.Wanted()
}

func (p *Pass) apply(to *profile.Profile, c *Config) {
	if p.Flags == nil {
		p.Apply(to, c)
		return
	}
	c.passes[p.Name].Apply(to, c.warn)
}

// wantsOwn reports whether a pass with flags of its own was asked for.
func (c *Config) wantsOwn() bool {
	for _, own := range c.passes {
		if own.Wanted() {
			return true
		}
	}
	return false
}

// needsProfile reports whether c asks for more than a copy of the recording can hold.
func (c *Config) needsProfile() bool {
	return c.Weights != nil || slices.ContainsFunc(Passes, func(p Pass) bool { return !p.Rewrites && p.wanted(c) })
}

func selected(p *profile.Profile, c *Config) {
	sel := c.Select
	sel.CPUOnly = c.cpuOnly()
	p.Select(sel)
}

func repair(p *profile.Profile, c *Config) {
	if slices.Contains(c.Tracks, "cpu") && sampled(p) || len(p.Weights) > 0 {
		o := c.repairOptions()
		o.SamplesOnly = !c.wantsOwn() // which may look at the stacks of other events before these are dropped
		tracefix.Repair(p, o)
	}
}

// sampled reports whether p holds more than stacks of events.
func sampled(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return t.Samples.Len() > t.Samples.Count(profile.SampleEvent) })
}
