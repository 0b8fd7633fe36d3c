package tracefix

import (
	"context"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/profile"
)

// DefaultConfidence is what an answer needs unless RepairOptions.MinConfidence is set: 0.9.
const DefaultConfidence = pass.DefaultConfidence

// RepairOptions configure a repair. nil and the zero value are the defaults of the command.
type RepairOptions struct {
	// MinConfidence is the lowest confidence of an accepted answer, up to 1. 0 means
	// DefaultConfidence, a negative value accepts every answer. Below it one frame, profile.Bridge,
	// stands for the missing ones.
	MinConfidence float64
	// SamplesOnly does not repair the stacks of other events, except on threads that have Values:
	// they are evidence only, and DropEvidence drops them. For a trace with more of them than
	// samples this takes a quarter less time. A Logical that follows then knows fewer callers.
	SamplesOnly bool
}

// Repair restores the missing frames of the cut stacks of p. Its samples get their repaired stacks,
// and its threads a Repair for each. A sample that only looked cut becomes whole. What was read as
// evidence only stays in p until DropEvidence; Profile.Counts sums up the result.
//
// Call it before Select, because samples that are not selected are evidence, too. A trace that was
// repaired before is left as it is: an earlier repair is no evidence for more.
func Repair(p *profile.Profile, o *RepairOptions) {
	_ = RepairContext(context.Background(), p, o) // it does not end
}

// RepairContext is Repair that stops when ctx ends: it then returns the error of ctx, its only one,
// and leaves the samples and threads of p as they were.
func RepairContext(ctx context.Context, p *profile.Profile, o *RepairOptions) error {
	if o == nil {
		o = &RepairOptions{}
	}
	_, err := pass.FixStacksContext(ctx, p, pass.FixOptions(*o))
	return err
}

// Logical replaces the recorded stacks of p by logical ones: who awaits whom, from the outermost
// method that waits for the result to the one that runs, each async method once, without the
// machinery that resumed it. profile.CallerUnknown stands for unknown awaiters, and profile.Started
// between a method and one that it called, if nobody is told to await that. It needs task
// events: p must have been read with ReadOptions.Evidence. Call it after Repair and before Select.
func Logical(p *profile.Profile) { pass.LogicalStacks(p) }
