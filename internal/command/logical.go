package command

import (
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

// What is missing, for who asks for logical stacks.
const (
	recordTasks = "; `--providers System.Threading.Tasks.TplEventSource:0x3A:4` records them"
	noTasks     = "no task events tell who awaits whom, and only callers that never vary are shown" + recordTasks
	noWork      = "no events of synchronous work (0x20) tell who awaits what Task.Run, Task.WhenAll and the like join" + recordTasks
)

// Apply implements PassFlags.
func (l *logicalFlags) Apply(p *profile.Profile, warn func(string)) {
	tasks, work := false, false
	for _, t := range p.Threads {
		for m := range t.Tasks.All() {
			tasks = true
			if work = work || m.Kind == profile.TaskBegins; work {
				break
			}
		}
	}
	switch {
	case !tasks:
		warn(noTasks)
	case !work:
		warn(noWork)
	}
	tracefix.Logical(p)
}
