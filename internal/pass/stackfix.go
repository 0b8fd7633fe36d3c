// Package pass holds what rewrites a profile between its reader and its writer.
package pass

import (
	"iter"

	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// FixStacks repairs the cut stacks of p with stackfix: samples get their repaired
// stacks and threads their Repairs. A sample that only looked cut becomes whole.
// minConfidence is what a repair needs to be taken, as in stackfix.Options. In a trace that was repaired
// before no answer is: what an earlier repair put back is no evidence for more.
func FixStacks(p *profile.Profile, minConfidence float64) stackfix.Stats {
	if p.Meta.Repaired {
		minConfidence = 2
	}
	opts := stackfix.Options{
		Bridge:        BridgeFrame(p.Table),
		MinConfidence: minConfidence,
	}
	processes := map[*profile.Process]uint32{}
	threads := make([]stackfix.Thread, len(p.Threads))
	for i, t := range p.Threads {
		id, ok := processes[t.Process]
		if !ok {
			id = uint32(len(processes))
			processes[t.Process] = id
		}
		threads[i] = stackfix.Thread{Process: id, Breaks: t.Breaks, Samples: samplesOf(t)}
	}
	res := stackfix.Fix(&p.Table.Tree, p.Table, threads, opts)
	for i, t := range p.Threads {
		apply(t, res.Repairs[i])
		res.Repairs[i] = nil
	}
	return res.Stats
}

// samplesOf yields the samples of t as stackfix wants them.
func samplesOf(t *profile.Thread) func(from int) iter.Seq[stackfix.Sample] {
	return func(from int) iter.Seq[stackfix.Sample] {
		return func(yield func(stackfix.Sample) bool) {
			c := t.Samples.Cursor()
			c.Seek(from)
			var s profile.Sample
			for c.Read(&s) && yield(stackfix.Sample{
				Time:     s.Time,
				Stack:    s.Stack,
				Cut:      cutOf[s.Cut],
				Suspect:  s.Suspect,
				Evidence: s.Type == profile.SampleEvent,
			}) {
			}
		}
	}
}

var cutOf = [...]stackfix.Cut{profile.Whole: stackfix.Whole, profile.CutDepth: stackfix.Depth, profile.CutBytes: stackfix.Bytes, profile.CutBroken: stackfix.Broken}

// BridgeFrame returns the frame that stands for lost frames, adding it if the table
// has none: a trace that was repaired before has one.
func BridgeFrame(t *profile.Table) profile.FrameID {
	m := t.AddMethod(profile.Method{Name: profile.Bridge, Kind: profile.Synthetic})
	for f := range t.Frames() {
		if t.Method(profile.FrameID(f)) == m {
			return profile.FrameID(f)
		}
	}
	return t.AddFrame(profile.Frame{Method: m})
}

// apply puts the repaired stacks into the samples of t.
func apply(t *profile.Thread, repairs []stackfix.Repair) {
	if len(repairs) == 0 {
		return
	}
	var r *stackfix.Repair
	rows := func(yield func(int, int) bool) {
		for i := range repairs {
			r = &repairs[i]
			if !yield(int(r.Index), int(r.N)) {
				return
			}
		}
	}
	t.Samples.Edit(rows, func(i int, s *profile.Sample) {
		if r.How == stackfix.Complete {
			s.Cut = profile.Whole
			return
		}
		if i == int(r.Index) {
			t.Repairs.AppendRun(profile.Repair{
				Index: i, Recorded: s.Stack, How: r.How.String(),
				Restored: int(r.Restored), Dropped: int(r.Dropped), Confidence: r.Confidence,
			}, int(r.N))
		}
		s.Stack = r.Stack
	})
}
