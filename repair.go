package tracefix

import (
	"context"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/profile"
)

// DefaultConfidence is what an answer needs unless RepairOptions.MinConfidence is set: 0.9.
const DefaultConfidence = pass.DefaultConfidence

// RepairOptions say how sure a repair must be. nil and the zero value are what the command
// does.
type RepairOptions struct {
	// MinConfidence is what an answer needs to be taken, up to 1; 0 means
	// DefaultConfidence, less takes every answer and more none. Below it the missing frames
	// become the one frame profile.Bridge.
	MinConfidence float64
	// SamplesOnly leaves the stacks of other events as they are, but for those of threads that have Values: they are evidence
	// only, and DropEvidence drops them. Of a trace with more of them than samples that takes a quarter less time. Logical, if
	// it follows, knows fewer callers then.
	SamplesOnly bool
}

// Repair puts back the frames that are missing from the cut stacks of p. Its samples get
// their repaired stacks, and its threads a Repair for each. A sample that only looked cut
// becomes whole. What was read as evidence only is in p until DropEvidence; Profile.Counts
// tells what came of it.
//
// Repair comes before Select: what is not wanted is evidence all the same. In a trace that
// was repaired before nothing is put back: what an earlier repair did is no evidence for more.
func Repair(p *profile.Profile, o *RepairOptions) {
	_ = RepairContext(context.Background(), p, o) // it does not end
}

// RepairContext is Repair that gives up when ctx ends: soon after that its error is returned, and the samples and threads of p
// are as they were. An error is of ctx.
func RepairContext(ctx context.Context, p *profile.Profile, o *RepairOptions) error {
	if o == nil {
		o = &RepairOptions{}
	}
	_, err := pass.FixStacksContext(ctx, p, pass.FixOptions(*o))
	return err
}

// Logical puts logical stacks in place of those that were recorded: who awaits whom, from the
// outermost method that waits for the result to the one that runs, each async method once and
// nothing of what resumed it. Where it is not known who awaits, profile.CallerUnknown stands
// for them. Events of the task library tell most: p must have been read with
// ReadOptions.Evidence. It comes after Repair and before Select.
func Logical(p *profile.Profile) { pass.LogicalStacks(p) }
