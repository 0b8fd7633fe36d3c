package spans

import (
	"github.com/tracefix/tracefix/chromium"
)

// Facts are what Read finds out about a trace besides its samples.
type Facts struct {
	Form   chromium.Form
	BOM    bool
	NoTime int64 // begins and ends without a time
	phases [256]int64
	depths []int64 // samples by number of frames
	first  int64
	last   int64
	timed  bool
}

func (f *Facts) time(ns int64) {
	if !f.timed || ns < f.first {
		f.first = ns
	}
	if !f.timed || ns > f.last {
		f.last = ns
	}
	f.timed = true
}

func (f *Facts) depth(n int) {
	n = min(n, 1<<16)
	for n >= len(f.depths) {
		f.depths = append(f.depths, make([]int64, 16+len(f.depths))...)
	}
	f.depths[n]++
}

func (f *Facts) other(ev *chromium.Event, r *chromium.Reader) {}

func (f *Facts) finish(d *reading, frames int) {
	for _, l := range d.all {
		f.time(l.t.First)
		f.time(l.t.Last)
	}
}

// metadata notes what an M event tells.
func (d *reading) metadata(ev *chromium.Event) {}

// Events returns the number of events.
func (f *Facts) Events() int64 {
	var n int64
	for _, c := range f.phases {
		n += c
	}
	return n
}
