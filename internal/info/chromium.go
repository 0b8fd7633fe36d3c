package info

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// Spans are the facts that only Chromium traces have.
type Spans struct {
	Form          string           `json:"form"` // object, array, unterminated array, bare events
	ByteOrderMark bool             `json:"byte_order_mark,omitempty"`
	Producer      string           `json:"producer,omitempty"` // if it is recognised
	Keys          []string         `json:"top_level_keys,omitempty"`
	Phases        map[string]int64 `json:"phases"`                 // events by ph
	StackFrames   int              `json:"stack_frames,omitempty"` // entries of that table
	Spikes        int              `json:"spikes"`                 // runs of cut samples
	NoTime        int64            `json:"without_time,omitempty"` // begins and ends that have none
	Unmatched     int              `json:"unmatched,omitempty"`    // ends without a begin, begins without an end
	Unsorted      int              `json:"unsorted_threads,omitempty"`
}

// Stacks reports whether there are spans that stacks can be made of, whoever wrote them.
func (s *Spans) Stacks() bool { return s.Phases["B"]+s.Phases["X"] > 0 }

// Chromium tells the facts of a Chromium trace.
func Chromium(ctx context.Context, in *input.File, _ *Options) (*Facts, error) {
	f := newFacts(in)
	t, err := spans.Read(ctx, in.Reader, &spans.Options{
		Source:  in.Name,
		Salvage: len(in.Layers) > 0,
		Lean:    true,
		Warn: func(e *chromium.FormatError, _ int64) {
			f.damaged(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	s := &t.Facts
	f.stacksOf(t)
	f.Content, f.Events = s.Size, s.Events()
	f.DurationMs = max(0, text.Millis(s.Last-s.First))
	f.Spans = &Spans{
		Form: s.Form.String(), ByteOrderMark: s.BOM, Producer: s.Producer, Keys: s.Keys, Phases: s.Phases,
		StackFrames: s.StackFrames, Spikes: s.Spikes, NoTime: s.NoTime,
	}
	f.chromiumThreads(s)
	for _, p := range f.Processes {
		for _, q := range t.Profile.Processes {
			if int64(p.PID) == q.PID && p.Name == q.Name {
				p.CommandLine = q.CommandLine
			}
		}
	}
	f.chromiumProperties()
	f.Verdicts = f.chromiumVerdicts()
	return f, nil
}

// stacksOf fills in Samples and Stacks.
func (f *Facts) stacksOf(t *spans.Trace) {
	s := &t.Facts
	bridged := bridges(t.Profile)
	if s.Cut > 0 {
		// Which of the stacks at the limit are complete is known from all evidence
		// of a repair together, and by nothing less.
		pass.FixStacks(t.Profile, stackfix.DefaultConfidence)
		t.Recount()
		f.Forecast = &Forecast{All: true}
		f.Forecast.count(t.Profile)
	}
	f.spikes = s.Spikes
	if s.Samples > 0 {
		f.Samples = &Samples{Count: int64(s.Samples), Managed: int64(s.Managed), External: int64(s.Samples - s.Managed - s.Untold), Unknown: int64(s.Untold), Untyped: t.Profile.Meta.Untyped}
		f.Stacks = &Stacks{Depths: s.Depths, Max: len(s.Depths) - 1, Limit: t.Profile.Meta.DepthLimit, Cut: map[string]int64{}, Untold: int64(s.CutUntold), Bridged: bridged, Before: repairedBefore(t.Profile)}
		for _, x := range t.Profile.Cuts() {
			f.Stacks.Cut[x.Cut.String()]++
		}
		half := int64(s.Samples+1) / 2
		for d, n := range s.Depths {
			if f.Stacks.Frames += int64(d) * n; half > 0 {
				if half -= n; half <= 0 {
					f.Stacks.Median = d
				}
			}
		}
		f.Stacks.Named = f.Stacks.Frames
	}
}

// bridges counts the samples in which an earlier repair put a bridge for frames that it
// could not know.
func bridges(p *profile.Profile) (n int64) {
	tab := p.Table
	is := make([]bool, tab.Frames())
	any := false
	for f := range is {
		m := tab.MethodOf(profile.FrameID(f))
		is[f] = m.Module == "" && m.Name == profile.Bridge
		any = any || is[f]
	}
	if !any {
		return 0
	}
	has := make([]bool, tab.Stacks()) // callers stand before what they call
	for s := 1; s < len(has); s++ {
		callers, f := tab.Node(profile.StackID(s))
		has[s] = is[f] || has[callers]
	}
	for _, t := range p.Threads {
		for _, s := range t.Samples.All() {
			if has[s.Stack] {
				n++
			}
		}
	}
	return n
}

// chromiumThreads fills in processes and threads. Times count from the first event.
func (f *Facts) chromiumThreads(s *spans.Facts) {
	processes := map[string]*Process{}
	for i := range s.Threads {
		t := &s.Threads[i]
		f.Spans.Unmatched += t.Unmatched
		if t.Unsorted {
			f.Spans.Unsorted++
		}
		pid := t.ProcessID()
		key := fmt.Sprint(t.PID, "/", pid)
		p := processes[key]
		if p == nil {
			p = &Process{PID: int(pid), Name: t.Process}
			processes[key] = p
			f.Processes = append(f.Processes, p)
		}
		p.Events += t.Events
		p.Samples += int64(t.Samples)
		th := &Thread{PID: int(pid), Name: t.Name, Events: t.Events, Samples: int64(t.Samples), Cut: int64(t.Cut), Spikes: int64(t.Spikes), IntervalMs: merged(t.Sampled)}
		tid, err := strconv.ParseUint(strings.Trim(t.TID, `"`), 10, 64)
		if _, perr := strconv.ParseInt(strings.Trim(t.PID, `"`), 10, 64); err != nil || perr != nil {
			th.ID = cmp.Or(t.PID, "-") + "/" + cmp.Or(t.TID, "-")
		}
		th.TID = tid
		if t.Timed() {
			th.FirstMs, th.LastMs = text.Millis(t.First-s.First), text.Millis(t.Last-s.First)
		}
		f.Threads = append(f.Threads, th)
	}
	slices.SortStableFunc(f.Threads, func(a, b *Thread) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Events, a.Events))
	})
	slices.SortStableFunc(f.Processes, func(a, b *Process) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Events, a.Events))
	})
}

// chromiumProperties are the rows of the text that say what only such a file has.
func (f *Facts) chromiumProperties() {
	s := f.Spans
	add := func(key, value string) { f.Properties = append(f.Properties, Property{key, value}) }
	add("producer", cmp.Or(s.Producer, "not recognised"))
	form := s.Form
	if s.ByteOrderMark {
		form += ", with a byte order mark"
	}
	if len(s.Keys) > 0 {
		form += ": " + list(s.Keys, 12)
	}
	add("form", form)
	type phase struct {
		ph string
		n  int64
	}
	var phases []phase
	for ph, n := range s.Phases {
		phases = append(phases, phase{cmp.Or(ph, "none"), n})
	}
	text.SortRows(phases, func(a, b *phase) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.ph, b.ph)) })
	var text []string
	for _, p := range phases {
		text = append(text, p.ph+" "+count(p.n))
	}
	if len(text) > 0 {
		add("phases", strings.Join(text, ", "))
	}
}

// spanStacks says in v how many of the stacks are cut.
func (f *Facts) spanStacks(v *Verdict) {
	switch n := f.Stacks.Untold; {
	case f.spikes == 0 && n > 0:
		v.wrong(float64(n)/float64(f.Samples.Count), 0, report.Percent(n, f.Samples.Count)+" of the stacks were cut by the recorder, and the file does not tell which")
		v.Do = "the .nettrace that this file was made from tells which: repair that"
		v.Text += fmt.Sprintf("%s stacks; %s samples were cut by the recorder, and this file does not tell which", count(f.Samples.Count), count(n))
	case f.spikes == 0:
		v.Text += fmt.Sprintf("%s stack%s, none cut", count(f.Samples.Count), report.Plural(int(f.Samples.Count)))
	default:
		cut := f.Stacks.CutTotal()
		v.Text += fmt.Sprintf("%s stack%s; %s in %s spike%s", count(f.Samples.Count), report.Plural(int(f.Samples.Count)), f.Stacks.cutText(f.Samples.Count), report.Count(f.spikes), report.Plural(f.spikes))
		v.cut(f, cut, f.Samples.Count)
	}
	if n := f.Stacks.Bridged; n > 0 {
		v.Text += fmt.Sprintf("; %s bridged by an earlier repair (%s), which could not know their outer frames", count(n), report.Percent(n, f.Samples.Count))
		if v.State == Good {
			v.wrong(float64(n)/float64(f.Samples.Count), tolerableCut, report.Percent(n, f.Samples.Count)+" of the stacks lack frames that an earlier repair could not know")
			v.Do = "the .nettrace that this file was made from tells more: repair that"
		}
	}
	v.Text += f.Stacks.beforeText()
}

// chromiumVerdicts answers what people want to know first.
func (f *Facts) chromiumVerdicts() []Verdict {
	s := f.Spans
	var v []Verdict
	cpu := Verdict{Topic: "CPU stacks", State: Good, of: "CPU stacks"}
	switch {
	case f.Samples == nil && s.Stacks():
		cpu.State = None
		cpu.Text = "spans, which view, top and convert take for stacks, but no sampled stacks of dotnet-trace: nothing here is cut"
	case f.Samples == nil && f.Events > s.Phases["M"] && !strings.HasPrefix(s.Producer, "dotnet-trace"):
		cpu.State = None
		cpu.Text = "no spans of threads, which stacks are made of: nothing here is cut"
	case f.Samples == nil:
		cpu.State, cpu.Do = None, collect.Samples.String()
		cpu.Text = "no spans; dotnet-trace converts nothing but the samples of its CPU profiler"
	default:
		f.spanStacks(&cpu)
		cpu.few(f.Samples.Count)
	}
	v = append(v, cpu)
	if s.Unmatched+s.Unsorted > 0 || s.NoTime > 0 {
		n := Verdict{Topic: "nesting", State: Partly, Problem: "begins and ends do not match"}
		var text []string
		if s.Unmatched > 0 {
			text = append(text, fmt.Sprintf("%s begin or end event%s without the other", report.Count(s.Unmatched), report.Plural(s.Unmatched)))
		}
		if s.Unsorted > 0 {
			text = append(text, fmt.Sprintf("%d thread%s whose events are not in order of time", s.Unsorted, report.Plural(s.Unsorted)))
		}
		if s.NoTime > 0 {
			text = append(text, fmt.Sprintf("%s begin or end events without a usable time", count(s.NoTime)))
		}
		n.Text = strings.Join(text, "; ")
		v = append(v, n)
	}
	return append(v, f.fileVerdict())
}
