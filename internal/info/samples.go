package info

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/samples"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// ofSamples tells the facts of a file that holds stacks and no events.
func ofSamples(ctx context.Context, in *input.File, _ *Options) (*Facts, error) {
	r, err := in.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f := newFacts(in)
	content := &input.Counting{R: r}
	p, err := samples.Read(ctx, in.Kind, content, &samples.Options{Source: in.Name, Warn: func(e *samples.FormatError) {
		f.damaged(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	f.Content, f.DurationMs = content.N, text.Millis(p.Meta.End)
	if !p.Meta.Start.IsZero() {
		f.Start = &p.Meta.Start
	}
	pass.FixStacks(p, stackfix.DefaultConfidence) // tells which stacks at the limit are complete
	f.profileThreads(p)
	f.profileStacks(p)
	f.Verdicts = append(f.Verdicts, f.samplesVerdict(p), f.fileVerdict())
	for _, n := range p.Meta.Notes {
		f.Verdicts = append(f.Verdicts, Verdict{Topic: "note", State: Good, Text: n})
	}
	return f, nil
}

// profileThreads fills in processes, threads and the number of samples.
func (f *Facts) profileThreads(p *profile.Profile) {
	f.Samples = &Samples{}
	of := map[*profile.Process]*Process{}
	for _, q := range p.Processes {
		of[q] = &Process{PID: int(q.PID), Name: q.Name}
		f.Processes = append(f.Processes, of[q])
	}
	for _, t := range p.Threads {
		th := &Thread{PID: int(t.Process.PID), TID: uint64(t.TID), Name: t.Name, Events: int64(t.Samples.Len()), FirstMs: text.Millis(t.First), LastMs: text.Millis(t.Last)}
		var kept interval
		for _, s := range t.Samples.All() {
			f.Samples.count(s.Type)
			if s.Type == profile.SampleEvent {
				continue
			}
			if s.Type == profile.SampleOffCPU {
				th.Waits++
			} else {
				th.Samples++
				if s.Dur == 0 {
					kept.add(s.Time)
				}
			}
			if s.Cut != profile.Whole {
				th.Cut++
			}
		}
		th.IntervalMs = kept.medianMs()
		f.Events += th.Events
		of[t.Process].Events += th.Events
		of[t.Process].Samples += th.Samples
		f.Threads = append(f.Threads, th)
	}
	slices.SortStableFunc(f.Threads, func(a, b *Thread) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Events, a.Events))
	})
}

// count adds a sample of a type.
func (s *Samples) count(t profile.SampleType) {
	switch t {
	case profile.SampleManaged:
		s.Managed++
	case profile.SampleExternal:
		s.External++
	case profile.SampleCPU:
		s.CPU++
	case profile.SampleOffCPU:
		s.OffCPU++
		return
	case profile.SampleEvent:
		s.Other++
		return
	default:
		s.Unknown++
	}
	s.Count++
}

// profileStacks fills in Stacks: depths as they were recorded.
func (f *Facts) profileStacks(p *profile.Profile) {
	s := &Stacks{Cut: map[string]int64{}, Limit: p.Meta.DepthLimit}
	for _, t := range p.Threads {
		repairs := t.Repairs.Cursor()
		for i, x := range t.Samples.All() {
			if x.Type == profile.SampleEvent {
				continue
			}
			stack := x.Stack
			if r := repairs.Of(i); r != nil {
				stack = r.Recorded
			}
			d := p.Table.Depth(stack)
			for d >= len(s.Depths) {
				s.Depths = append(s.Depths, 0)
			}
			s.Depths[d]++
			if x.Cut != profile.Whole {
				s.Cut[x.Cut.String()]++
			}
			s.Frames += int64(d)
			for id := stack; id != 0; id = p.Table.Parent(id) {
				if p.Table.MethodOf(p.Table.Frame(id)).Kind != profile.Unresolved {
					s.Named++
				}
			}
		}
	}
	s.Max = max(0, len(s.Depths)-1)
	s.Median = median(s.Depths)
	f.Stacks = s
}

// median is the depth that half of the stacks do not exceed.
func median(depths []int64) int {
	all := int64(0)
	for _, n := range depths {
		all += n
	}
	half := (all + 1) / 2
	for d, n := range depths {
		if half -= n; half <= 0 && all > 0 {
			return d
		}
	}
	return 0
}

func (f *Facts) samplesVerdict(p *profile.Profile) Verdict {
	v := Verdict{Topic: "stacks", State: Good, of: "stacks"}
	if len(p.Weights) > 0 { // in place of time
		w := p.TopValues(0, 1, false)
		v.of, v.Text = w.Weight, fmt.Sprintf("%s (%s) of %s stack%s", w.Weight, cmp.Or(string(w.Unit), "no unit"), report.Count(w.Events), report.Plural(w.Events))
		if w.Events == 0 {
			v.State, v.of = None, ""
		}
		return v
	}
	if f.Samples.Looks() == 0 {
		v.State, v.Text = None, "no samples"
		return v
	}
	n := f.Samples.Looks()
	what := "sample"
	if p.Meta.Sums {
		what = "stack"
	}
	v.Text = fmt.Sprintf("%s %s%s of %s thread%s", count(n), what, report.Plural(int(n)), report.Count(len(f.Threads)), report.Plural(len(f.Threads)))
	switch cut := f.Stacks.CutTotal(); {
	case p.Meta.Repaired:
		known := int64(p.Counts().Known)
		v.Text += fmt.Sprintf("; of %s that were cut an earlier repair knew %s (%s)", count(cut), count(known), report.Percent(known, cut))
		v.wrong(float64(cut-known)/float64(n), tolerableCut, report.Percent(cut-known, n)+" of the stacks lack frames that an earlier repair could not know")
	case cut > 0:
		v.Do = "tracefix repair " + text.ShellWord(f.File)
		v.wrong(float64(cut)/float64(n), tolerableCut, report.Percent(cut, n)+" of the stacks are cut")
		v.Text += fmt.Sprintf("; %s cut (%s)", count(cut), report.Percent(cut, n))
	default:
		v.Text += "; none known to be cut"
	}
	if unnamed := f.Stacks.Frames - f.Stacks.Named; unnamed*20 > f.Stacks.Frames {
		if v.Problem == "" {
			v.wrong(float64(unnamed)/float64(f.Stacks.Frames), 0, report.Percent(unnamed, f.Stacks.Frames)+" of the frames have no name")
		}
		v.Text += "; " + report.Percent(f.Stacks.Named, f.Stacks.Frames) + " of the frames have a name"
	}
	if !p.Meta.Sums {
		v.few(n)
	}
	return v
}
