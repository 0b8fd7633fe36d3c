package command

import (
	"slices"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// logicalFlags are the flags of the pass that puts who awaits whom in place of the stacks as
// they were recorded.
type logicalFlags struct {
	Stacks string `enum:"physical,logical" default:"physical" placeholder:"logical" help:"Stacks to show: physical, as they ran on their threads (the default), or logical, who awaits whom."`
}

// Check implements PassFlags.
func (l *logicalFlags) Check() error { return nil }

// Wanted implements PassFlags.
func (l *logicalFlags) Wanted() bool { return l.Stacks == "logical" }

// Reads implements PassFlags.
func (l *logicalFlags) Reads(o *tracefix.ReadOptions) { o.Evidence = true }

// noTasks tells who asks for logical stacks what is missing.
const noTasks = "no task events tell who awaits whom, and only callers that never vary are shown; `--providers System.Threading.Tasks.TplEventSource:0x3A:4` records them"

// Apply implements PassFlags.
func (l *logicalFlags) Apply(p *profile.Profile, warn func(string)) {
	if !slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return t.Tasks.Len() > 0 }) {
		warn(noTasks)
	}
	tracefix.Logical(p)
}
