package pass

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// DefaultConfidence is what a repair needs where nothing else is asked for.
const DefaultConfidence = stackfix.DefaultConfidence

// FixStacks repairs the cut stacks of p with stackfix: samples get their repaired
// stacks and threads their Repairs. A sample that only looked cut becomes whole.
// minConfidence is what a repair needs to be taken, as in stackfix.Options. In a trace that was repaired
// before no answer is: what an earlier repair put back is no evidence for more.
// Where the trace still holds those repairs one by one, with what they bridged, they stay as they are,
// and so does a stack with a bridge.
func FixStacks(p *profile.Profile, minConfidence float64) stackfix.Stats {
	st, _ := FixStacksContext(context.Background(), p, FixOptions{MinConfidence: minConfidence}) // it does not end
	return st
}

// FixOptions are how FixStacksContext repairs.
type FixOptions struct {
	MinConfidence float64 // as in FixStacks
	// SamplesOnly leaves the stacks of other events as they are, but for those of threads that have
	// Values: they are evidence only.
	SamplesOnly bool
}

// FixStacksContext is FixStacks until ctx ends: then no sample and no thread was changed, and its
// error is returned.
func FixStacksContext(ctx context.Context, p *profile.Profile, o FixOptions) (stackfix.Stats, error) {
	if err := ctx.Err(); err != nil {
		return stackfix.Stats{}, err
	}
	if p.Meta.Earlier.Samples == 0 && slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return t.Repairs.Len() > 0 }) {
		return stackfix.Stats{}, nil
	}
	if p.Meta.Repaired {
		o.MinConfidence = 2
	}
	bridged := p.Table.Bridged()
	opts := o.options(p)
	nested := map[*profile.Thread]*taskAnswers{}
	if !p.Meta.Repaired {
		var err error
		if nested, err = resolveTasks(ctx, p, cmp.Or(o.MinConfidence, DefaultConfidence)); err != nil {
			return stackfix.Stats{}, err
		}
	}
	cut := map[*profile.Process]bool{} // those in which an answer is missing: of others the samples need not be read
	for _, t := range p.Threads {
		if t.Samples.Cuts() > nested[t].len() {
			cut[t.Process] = true
		}
	}
	processes := map[*profile.Process]uint32{}
	// votes that are equal go by the order of the threads, which is the reader's own
	ordered := slices.Clone(p.Threads)
	slices.SortStableFunc(ordered, func(a, b *profile.Thread) int {
		return cmp.Or(cmp.Compare(a.Owner().PID, b.Owner().PID), cmp.Compare(a.TID, b.TID))
	})
	threads := make([]stackfix.Thread, len(ordered))
	paces := pacesOf(p.Table, ordered, cut)
	unread := 0
	for i, t := range ordered {
		id, ok := processes[t.Process]
		if !ok {
			id = uint32(len(processes))
			processes[t.Process] = id
		}
		threads[i] = stackfix.Thread{Process: id, Breaks: t.Breaks}
		if cut[t.Process] {
			pace := paces[t.Process]
			threads[i].Samples = samplesOf(t, nested[t], bridged, pace)
			if pace != nil {
				threads[i].Spread = float32(pace.spread)
			}
		} else {
			unread += t.Samples.Len()
		}
	}
	found := make([]profile.Repairs, len(ordered))
	for i, t := range ordered {
		found[i] = t.NewRepairs()
	}
	opts.Found = func(i int, repairs []stackfix.Repair) { keepFound(&found[i], repairs) }
	res, err := stackfix.FixContext(ctx, &p.Table.Tree, p.Table, threads, opts)
	if err != nil {
		return stackfix.Stats{}, err
	}
	// what follows is done whole
	for i, t := range ordered {
		if known := nested[t]; known != nil && known.parts.len() > 0 {
			found[i] = holdAgainst(p.Table, t, &found[i], known)
		}
	}
	relay.Each(len(ordered), func(i int) {
		apply(p.Table, ordered[i], &found[i], nested[ordered[i]])
		found[i] = profile.Repairs{}
		ordered[i].Walks = profile.Walks{}
	})
	res.Stats.Samples += unread
	return res.Stats, nil
}

// samplesOf yields the samples of t as stackfix wants them: those whose whole stack is known
// already are evidence like any other. bridged stacks are as whole as they can be.
func samplesOf(t *profile.Thread, known *taskAnswers, bridged []bool, pace *pace) func(from int) iter.Seq[stackfix.Sample] {
	weighs := t.Values.Len() > 0
	return func(from int) iter.Seq[stackfix.Sample] {
		return func(yield func(stackfix.Sample) bool) {
			c := t.Samples.Cursor()
			c.Seek(from)
			answers := known.from(from)
			var walks profile.WalkCursor
			if pace != nil {
				walks = t.Walks.From(from)
			}
			var s profile.Sample
			for i := from; c.Read(&s); i++ {
				out := stackfix.Sample{
					Time:     s.Time,
					Stack:    s.Stack,
					Cut:      cutOf[s.Cut],
					Suspect:  s.Suspect,
					Evidence: s.Type == profile.SampleEvent && !weighs,
				}
				if w := walks.Next(); w != 0 {
					out.Effort = float32(pace.work(s.Time, w))
				}
				if bridged != nil && bridged[s.Stack] {
					out.Cut = stackfix.Whole
				}
				if a := answers.Peek(); a != nil && int(a.index) == i {
					out.Stack, out.Cut = a.stack, stackfix.Whole
					answers.Next()
				}
				if !yield(out) {
					return
				}
			}
		}
	}
}

var cutOf = [...]stackfix.Cut{profile.Whole: stackfix.Whole, profile.CutDepth: stackfix.Depth, profile.CutBytes: stackfix.Bytes, profile.CutBroken: stackfix.Broken}

// options are those for p, on all processors that there are.
func (o *FixOptions) options(p *profile.Profile) stackfix.Options {
	return stackfix.Options{
		Bridge:        BridgeFrame(p.Table),
		MinConfidence: o.MinConfidence,
		SamplesOnly:   o.SamplesOnly,
		Each:          relay.Each,
		Workers:       relay.Workers(),
	}
}

// BridgeFrame returns the frame that stands for lost frames, adding it if the table
// has none: a trace that was repaired before has one.
func BridgeFrame(t *profile.Table) profile.FrameID {
	m := t.AddBridge()
	for f := range t.Frames() {
		if t.Method(profile.FrameID(f)) == m {
			return profile.FrameID(f)
		}
	}
	return t.AddFrame(profile.Frame{Method: m})
}

// keepFound adds repairs to those of a thread. They have the stack that is to be put in as the recorded one.
func keepFound(found *profile.Repairs, repairs []stackfix.Repair) {
	for i := range repairs {
		r := &repairs[i]
		found.AppendRun(profile.Repair{
			Index: int(r.Index), Recorded: r.Stack, How: r.How.String(),
			Restored: int(r.Restored), Above: int(r.Above), Dropped: int(r.Dropped),
			Confidence: r.Confidence, BaseConfidence: r.BaseConfidence, AboveConfidence: r.AboveConfidence,
		}, int(r.N))
	}
}

// apply puts the repaired stacks into the samples of t: see keepFound.
func apply(tab *profile.Table, t *profile.Thread, found *profile.Repairs, known *taskAnswers) {
	if found.Len()+known.len() == 0 {
		return
	}
	earlier := t.Repairs
	t.Repairs = t.NewRepairs()
	defer func() { t.Repairs = t.Repairs.Over(&earlier) }()
	var r profile.Repair
	var a *taskAnswer // in place of r
	told := known.from(0)
	rows := func(yield func(int, int) bool) {
		answers := func(before int) bool {
			for a = told.Peek(); a != nil && int(a.index) < before; a = told.Peek() {
				if !yield(int(a.index), 1) {
					return false
				}
				told.Next()
			}
			a = nil
			return true
		}
		for run, n := range found.Runs() {
			if !answers(run.Index) {
				return
			}
			if r = run; !yield(run.Index, n) {
				return
			}
		}
		answers(math.MaxInt)
	}
	complete := stackfix.Complete.String()
	t.Samples.Edit(rows, func(i int, s *profile.Sample) {
		switch {
		case a != nil:
			t.Repairs.Append(profile.Repair{
				Index: i, Recorded: s.Stack, How: taskHow,
				Restored: tab.Depth(a.stack) - tab.Depth(s.Stack), Confidence: known.confidence,
			})
			s.Stack = a.stack
		case r.How == complete:
			s.Cut = profile.Whole
		default:
			done := r
			done.Index, done.Recorded = i, s.Stack
			t.Repairs.Append(done)
			s.Stack = r.Recorded
		}
	})
}
