package load

import (
	"time"

	"github.com/tracefix/tracefix/profile"
)

// A window leaves out samples that a selection by time hides: of a thread it keeps those
// inside, the one before them and the first behind, which say where the others end. How the
// sampler ticked outside is kept as sums.
type window struct {
	from, to int64 // ns; to 0: to the end
	gaps     profile.Gaps
}

// A windowed thread is what a window knows of it.
type windowed struct {
	held   profile.Sample // the newest before the window
	isHeld bool
	past   bool  // one behind the window was kept
	tick   int64 // time of the newest sample of the sampler, kept or not
	ticks  bool  // there was one
	kept   bool  // and one was kept: from then on the samples themselves tell the gaps
}

// pauses is for how long behind the window other threads' samples tell whether one holds: see
// profile.Timing, which looks no further than a second or 200 periods.
const pauses = int64(5 * time.Second)

// newWindow returns the window of o, nil if all samples are wanted. A repair learns from all,
// and a weight is spread over all.
func newWindow(o *Options) *window {
	if o.Evidence || len(o.Weights) > 0 || o.From == 0 && o.To == 0 {
		return nil
	}
	return &window{from: o.From, to: o.To}
}

// take appends s to the samples of t, unless it is outside.
func (w *window) take(t *thread, s *profile.Sample, interval time.Duration) {
	before := s.Time < w.from && s.Time+s.Dur <= w.from
	x := &t.window
	if x.isHeld && !before {
		t.append(x.held)
		x.kept, x.isHeld = x.kept || ticks(&x.held), false
	}
	behind := w.to != 0 && s.Time > w.to && s.Time-w.to > max(pauses, 1000*int64(interval)) // to may be the last there is
	keep := !before && !(behind && x.past)
	if ticks(s) {
		if x.ticks && !(keep && x.kept) {
			w.gaps.Add(s.Time - x.tick)
		}
		x.tick, x.ticks, x.kept = s.Time, true, x.kept || keep
	}
	switch {
	case before:
		x.held, x.isHeld = *s, true
	case keep:
		t.append(*s)
		x.past = x.past || behind
	}
}

// ticks reports whether s came when the sampler ticked.
func ticks(s *profile.Sample) bool {
	return s.Type != profile.SampleEvent && s.Type != profile.SampleOffCPU
}

// finish keeps one sample of threads that have none in the window: they were sampled.
func (w *window) finish(l *loader) {
	for _, p := range l.order {
		for _, t := range p.threads {
			if t.window.isHeld {
				t.append(t.window.held)
			}
		}
	}
	l.profile.Skipped = &w.gaps
}
