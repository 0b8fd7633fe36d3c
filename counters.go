package tracefix

import (
	"cmp"
	"math"

	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// drawnCounters are the values of EventCounters and Meters that tracks show.
type drawnCounters struct {
	input.Consumer
	series map[counterKey]*drawnSeries
	order  []*drawnSeries
}

type counterKey struct {
	pid                  int
	provider, name, tags string
	instrument           int
}

// A drawnSeries is one counter over time.
type drawnSeries struct {
	counterKey
	title  string
	values []drawnValue
}

type drawnValue struct {
	start, end int64 // ns
	value      float64
}

func newDrawnCounters(o *ReadOptions) *drawnCounters {
	d := &drawnCounters{series: map[counterKey]*drawnSeries{}}
	d.Consumer = events.NewCounterConsumer(func(p *events.Point) error {
		if p.Ns >= int64(o.From) && (o.To == 0 || p.Ns <= int64(o.To)) {
			d.add(p)
		}
		return nil
	})
	return d
}

// add notes a value: of what grows the growth in a second, of a histogram its median.
func (d *drawnCounters) add(p *events.Point) {
	v, unit := p.Value, p.Unit
	if per := p.PerSecond(); !math.IsNaN(per) {
		v, unit = per, unit+"/s"
	}
	for _, q := range p.Quantiles {
		if q.Share == 0.5 {
			v = q.Value
		}
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	key := counterKey{p.PID, p.Provider, p.Name, p.Tags, p.Instrument}
	s := d.series[key]
	if s == nil {
		s = &drawnSeries{counterKey: key, title: cmp.Or(p.Display, p.Name)}
		if unit != "" {
			s.title += " (" + unit + ")"
		}
		if p.Tags != "" {
			s.title += " " + p.Tags
		}
		d.series[key] = s
		d.order = append(d.order, s)
	}
	start := max(0, p.Ns-int64(p.Interval*1e9))
	if n := len(s.values); n > 0 {
		start = max(start, s.values[n-1].end)
	}
	s.values = append(s.values, drawnValue{min(start, p.Ns), p.Ns, v})
}

// tracks are one for each counter: a slice for each interval, whose argument "value" is the figure.
func (d *drawnCounters) tracks(p *profile.Profile) (list []*profile.Track) {
	for _, s := range d.order {
		list = append(list, &profile.Track{Name: s.title, Group: "counters", Process: processOf(p, s.pid), Slices: func(yield func(*profile.Slice) bool) {
			for _, v := range s.values {
				if !yield(&profile.Slice{Start: v.start, Dur: v.end - v.start, Name: s.title, Category: s.provider, Args: []profile.Arg{{Key: "value", Value: v.value}}}) {
					return
				}
			}
		}})
	}
	return list
}

// processOf is the process of that id, nil if the profile has none.
func processOf(p *profile.Profile, pid int) *profile.Process {
	for _, of := range p.Processes {
		if of.PID == int64(pid) {
			return of
		}
	}
	return nil
}
