package info

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spans"
)

// unitsPerMs tells how many of a unit of speedscope make a millisecond.
var unitsPerMs = map[string]float64{"nanoseconds": 1e6, "microseconds": 1e3, "milliseconds": 1, "seconds": 1e-3}

// Speedscope tells the facts of a speedscope file.
func Speedscope(ctx context.Context, in *input.File, o *Options) (*Facts, error) {
	f := newFacts(in)
	var r *spans.SpeedscopeReader
	events := func(open func() (io.ReadCloser, error), warn func(*chromium.FormatError), stackFrame func(*chromium.StackFrame) error) (spans.Source, error) {
		var err error
		r, err = spans.NewSpeedscopeReader(open, func(e *spans.SpeedscopeError) {
			warn(&chromium.FormatError{Offset: e.Offset, Where: e.Where, Err: e.Err})
		}, stackFrame)
		return r, err
	}
	t, err := spans.Read(ctx, in.Reader, &spans.Options{Source: in.Name, Salvage: len(in.Layers) > 0, Lean: true, Events: events,
		Warn: func(e *chromium.FormatError, _ int64) {
			f.damaged(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
		}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	f.Content = r.InputOffset()
	w := r.Facts()
	if w.Exporter != "" {
		f.Properties = append(f.Properties, Property{"exporter", w.Exporter})
	}
	if w.Name != "" {
		f.Properties = append(f.Properties, Property{"name", w.Name})
	}
	f.Properties = append(f.Properties, Property{"frames", report.Count(w.Frames)})
	amounts := 0
	for i, p := range w.Profiles {
		per, known := unitsPerMs[p.Unit]
		start, end := p.Start, p.End
		if !p.Ended && p.Events > 0 {
			end = p.Last // the rest of it is not there
		}
		if !known { // amounts have no times
			start, end, per = 0, 0, 1
			amounts++
		}
		th := &Thread{TID: uint64(i + 1), Name: p.Name, Events: int64(p.Events), Samples: int64(p.Weights), FirstMs: start / per, LastMs: end / per}
		f.Threads = append(f.Threads, th)
		f.Events += th.Events
		f.DurationMs = max(f.DurationMs, th.LastMs-th.FirstMs)
	}
	if n := len(w.Profiles); n == 0 {
		f.Verdicts = append(f.Verdicts, Verdict{Topic: "stacks", State: None, Text: "the file holds no profiles"})
	} else {
		f.speedscopeThreads(&t.Facts, w.Profiles)
		f.speedscopeStacks(t)
		v := Verdict{Topic: "stacks", State: Good, of: "stacks", Text: fmt.Sprintf("%d profile%s, one for each thread", n, report.Plural(n))}
		if f.Events == 0 && !slices.ContainsFunc(w.Profiles, func(p *spans.SpeedscopeProfile) bool { return p.Weights > 0 }) {
			v.State, v.Text = None, v.Text+"; none has any events"
		}
		if amounts > 0 {
			v.Text += fmt.Sprintf("; %d of amounts (unit %q), not of time", amounts, w.NoTime)
		}
		if f.Stacks != nil {
			v.Text += "; "
			f.spanStacks(&v)
			if amounts == 0 {
				v.few(f.Samples.Count)
			}
		}
		f.Verdicts = append(f.Verdicts, v)
	}
	if f.Damages > 0 {
		f.Verdicts = append(f.Verdicts, f.fileVerdict())
	}
	return f, nil
}

// speedscopeThreads gives threads the numbers by which filters know them, and tells the processes of
// a file that has them.
func (f *Facts) speedscopeThreads(s *spans.Facts, profiles []*spans.SpeedscopeProfile) {
	if len(s.Threads) != len(f.Threads) {
		return
	}
	processes := map[string]*Process{} // by the number that the reader gave: two programs may have had one
	for i, th := range f.Threads {
		t := &s.Threads[i]
		if tid, err := strconv.ParseUint(t.TID, 10, 64); err == nil {
			th.TID = tid
		}
		if t.Process == "" && !profiles[i].Owned {
			continue
		}
		th.PID = int(t.ProcessID())
		if profiles[i].Owned {
			th.Name = cmp.Or(t.Name, "Thread "+t.TID)
		}
		p := processes[t.PID]
		if p == nil {
			p = &Process{PID: th.PID, Name: t.Process}
			processes[t.PID] = p
			f.Processes = append(f.Processes, p)
		}
		p.Events += th.Events
		p.Samples += int64(t.Samples)
	}
	slices.SortStableFunc(f.Processes, func(a, b *Process) int { return cmp.Compare(b.Samples, a.Samples) })
}

// speedscopeStacks counts the sampled stacks as for a Chromium trace.
func (f *Facts) speedscopeStacks(t *spans.Trace) {
	s := &t.Facts
	f.stacksOf(t)
	if f.Stacks == nil || len(s.Threads) != len(f.Threads) {
		return
	}
	for i, th := range f.Threads {
		th.Samples, th.Cut, th.Spikes = int64(s.Threads[i].Samples), int64(s.Threads[i].Cut), int64(s.Threads[i].Spikes)
		th.IntervalMs = merged(s.Threads[i].Sampled)
	}
}
