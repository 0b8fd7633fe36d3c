package events

import (
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/spool"
)

// A spread is the distribution of times.
type spread struct {
	Count         int
	Sum           int64
	P50, P95, P99 int64
	Max, Mean     int64
}

// durations are times of which the distribution is wanted, up to millions. The zero value keeps all
// in memory.
type durations struct {
	times    quantile.Numbers
	sum, max int64
}

func newDurations(s *spool.Spool) *durations { return &durations{times: quantile.Numbers{Spool: s}} }

func (d *durations) add(v int64) {
	d.times.Add(v)
	d.sum += v
	d.max = max(d.max, v)
}

// spread is the distribution of all of them.
func (d *durations) spread() (s spread) {
	n := d.times.Len()
	if n == 0 {
		return s
	}
	shares := make([]float64, 0, 3)
	for _, p := range []float64{50, 95, 99} {
		shares = append(shares, (float64(rank(p, n))+0.5)/float64(n))
	}
	at := quantile.Of(shares, &d.times)
	return spread{Count: n, Sum: d.sum, P50: at[0], P95: at[1], P99: at[2], Max: d.max, Mean: d.sum / int64(n)}
}

// peaks are the largest values of each part of the time, which is what a plot shows of millions.
type peaks struct {
	list  []peak // in order of time
	width int64  // ns that one of them stands for; 0: each stands for itself
}

// A peak is a value at a time, and the number of what has it.
type peak struct {
	at    int64
	value float64
	n     int
}

// mostPeaks is how many there are at most: several for each column of pixels.
const mostPeaks = 1 << 14

// add adds a value. They come in order of time.
func (s *peaks) add(at int64, value float64, n int) {
	s.list = s.with(s.list, peak{at, value, n})
	for len(s.list) == mostPeaks {
		if s.width == 0 {
			s.width = 1 << 16 // ns; what lies nearer together is one pixel of any plot
		}
		s.width *= 2
		kept := s.list[:0]
		for _, p := range s.list {
			kept = s.with(kept, p)
		}
		s.list = kept
	}
}

// with appends p, or leaves the larger one of it and the last one, if it is in the same part of the
// time or, as in a damaged trace, before it.
func (s *peaks) with(list []peak, p peak) []peak {
	k := len(list) - 1
	if s.width == 0 || k < 0 || list[k].at/s.width < p.at/s.width {
		return append(list, p)
	}
	if p.value > list[k].value {
		list[k] = p
	}
	return list
}

// series is what a plot draws of them; tip says what a pointer shows.
func (s *peaks) series(name string, style Style, tip func(p *peak) string) PlotSeries {
	out := PlotSeries{Name: name, Style: style}
	for i := range s.list {
		p := &s.list[i]
		out.add(p.at, p.value, tip(p))
	}
	return out
}
