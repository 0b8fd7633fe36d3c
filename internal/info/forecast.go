package info

import (
	"context"
	"math"
	"slices"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// A Forecast is what a repair would do for the cut samples: it was tried, on all of them or
// on those of a stretch of time.
type Forecast struct {
	Tried    int64 `json:"tried"`    // cut samples
	Repaired int64 `json:"repaired"` // of Tried
	Restored int64 `json:"restored_frames"`
	All      bool  `json:"all"` // all cut samples were tried
}

// mostTried bounds the time that a forecast takes: more samples and waits are not repaired,
// but those of a stretch in the middle of the cut ones.
const mostTried = 40_000

// framesPerLook is how many frames take as long as a sample does: of deeper stacks fewer are
// repaired. EventPipe records up to 100.
const framesPerLook = 128

// forecast repairs p, or a part of it, to tell what that brings, given how many samples and waits there
// are and how many frames these have. p is not used after it. An error is of ctx.
func forecast(ctx context.Context, p *profile.Profile, looks, frames int64) (*Forecast, error) {
	looks = max(looks, frames/framesPerLook)
	f := &Forecast{All: looks <= mostTried}
	if !f.All {
		p = middle(p, looks)
	}
	if _, err := pass.FixStacksContext(ctx, p, pass.FixOptions{SamplesOnly: true}); err != nil {
		return nil, err
	}
	f.count(p)
	return f, nil
}

func (f *Forecast) count(p *profile.Profile) {
	c := p.Counts()
	f.Tried, f.Repaired, f.Restored = int64(c.Cut), int64(c.Known), int64(c.Restored)
}

// cutsByTime counts cut samples by time, in as many stretches of equal length.
type cutsByTime [4096]int64

// medianCut is the time of the cut sample that as many are taken before as after. There may be
// millions: they are counted first, and only those near it are put in order.
func medianCut(p *profile.Profile) int64 {
	var counts cutsByTime
	width := p.Meta.End/int64(len(counts)) + 1
	at := func(s *profile.Sample) int64 { return max(0, min(s.Time/width, int64(len(counts))-1)) }
	for _, own := range relay.Shares(len(p.Threads), func(own *cutsByTime, i int) {
		for s := range p.Threads[i].Cuts() {
			own[at(&s.Sample)]++
		}
	}) {
		for k, n := range own {
			counts[k] += n
		}
	}
	all := int64(0)
	for _, n := range counts {
		all += n
	}
	before, near := all/2, int64(0) // how many of its stretch come before it, and which one that is
	for ; before >= counts[near]; near++ {
		before -= counts[near]
	}
	var times []int64
	for _, t := range p.Threads {
		c := t.Samples.Cursor()
		c.SkipTo(near * width)
		var s profile.Sample
		for c.Read(&s) {
			switch k := at(&s); {
			case k > near:
				c.SkipTo(math.MaxInt64)
			case k == near && s.Cut != profile.Whole && !s.Hidden:
				times = append(times, s.Time)
			}
		}
	}
	slices.Sort(times)
	return times[before]
}

// middle is the part of p around the time at which half of the cut samples were taken, so
// long that it holds about mostTried of them all.
func middle(p *profile.Profile, looks int64) *profile.Profile {
	at := medianCut(p)
	length := int64(float64(p.Meta.End) * mostTried / float64(looks))
	from := max(0, min(at-length/2, p.Meta.End-length))
	end := from + length
	part := *p
	part.Threads = make([]*profile.Thread, len(p.Threads))
	relay.Each(len(p.Threads), func(i int) {
		few := *p.Threads[i]
		few.Samples, few.Tasks, few.Walks = profile.Samples{}, profile.TaskMarks{}, profile.Walks{}
		c, marks := p.Threads[i].Samples.Cursor(), p.Threads[i].Tasks.Cursor()
		c.SkipTo(from)
		walks := p.Threads[i].Walks.From(c.Index())
		var s profile.Sample
		for at := c.Index(); c.Read(&s); at = c.Index() {
			walk := walks.Next()
			switch {
			case s.Time >= end:
				c.SkipTo(math.MaxInt64) // of samples in order none behind it is wanted
			case s.Time >= from:
				for m := marks.Before(at + 1); m != nil; m = marks.Before(at + 1) {
					if int(m.Sample) == at { // or it tells of one that is not wanted
						own := *m
						own.Sample = int32(few.Samples.Len())
						few.Tasks.Append(own)
					}
				}
				few.Walks.Add(few.Samples.Len(), walk)
				few.Samples.Append(s)
			}
		}
		part.Threads[i] = &few
	})
	return &part
}
