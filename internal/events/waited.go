package events

import (
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/runtimeevents"
)

// waited is how long work stood in a queue, millions of times: their distribution, and the longest of each part of the
// time, which is what a plot shows. Its memory does not grow.
type waited struct {
	times    quantile.Numbers
	sum, max int64
	longest  []runtimeevents.Delay // in order of time
	width    int64                 // ns that one of longest stands for; 0: each stands for itself
}

func newWaited(s *spool.Spool) *waited { return &waited{times: quantile.Numbers{Spool: s}} }

// mostLongest is how many of them there are at most: several for each column of pixels of a plot.
const mostLongest = 1 << 14

// add adds a wait. They come in order of their ends.
func (w *waited) add(d runtimeevents.Delay) {
	w.times.Add(d.Wait)
	w.sum += d.Wait
	w.max = max(w.max, d.Wait)
	w.longest = w.with(w.longest, d)
	for len(w.longest) == mostLongest {
		if w.width == 0 {
			w.width = 1 << 16 // ns; what lies nearer together is one pixel of any plot
		}
		w.width *= 2
		kept := w.longest[:0]
		for _, d := range w.longest {
			kept = w.with(kept, d)
		}
		w.longest = kept
	}
}

// with appends d, or leaves the longer one of it and the last one, if it is in the same part of the time or, as in a damaged
// trace, before it.
func (w *waited) with(list []runtimeevents.Delay, d runtimeevents.Delay) []runtimeevents.Delay {
	k := len(list) - 1
	if w.width == 0 || k < 0 || list[k].Time/w.width < d.Time/w.width {
		return append(list, d)
	}
	if d.Wait > list[k].Wait {
		list[k] = d
	}
	return list
}

// spread is the distribution, by nearest rank.
func (w *waited) spread() (s spread) {
	n := w.times.Len()
	if n == 0 {
		return s
	}
	shares := make([]float64, 0, 3)
	for _, p := range []float64{50, 95, 99} {
		shares = append(shares, (float64(rank(p, n))+0.5)/float64(n))
	}
	at := quantile.Of(shares, &w.times)
	return spread{Count: n, Sum: w.sum, P50: at[0], P95: at[1], P99: at[2], Max: w.max, Mean: w.sum / int64(n)}
}
