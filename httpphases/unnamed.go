package httpphases

import (
	"math"
	"strings"
)

// unnamed holds the requests of a process whose start Hosting told without an activity id, and what is
// known of how long such requests take. A stop without an id may be of any that is open: each ends at a
// rate that is known of its route, by how long it has been open, and the stop is of the one with the highest
// rate. What is open for longer than others of its route ends soon, so that a wrong choice is made up for.
type unnamed struct {
	open    []*server // in order of start; some have ended
	ended   int       // how many of these
	threads map[uint64]struct{}
	all     pace
	routes  map[string]*pace
	may     []candidate
}

// A pace is how long requests take, by the logarithm of their duration in ns.
type pace struct {
	n, sum, squares float64
	failed          float64 // how many of n
	// What was next on the thread: an end, which may be its own, or the begin of another one.
	stayed, left float64
}

// Bounds of what unnamed keeps.
const (
	maxPaces   = 4096
	maxRoute   = 200 // bytes of its name
	maxThreads = 1024
	maxOpen    = 64 // that a stop may be of, those that have been open for longest
)

// add takes a request that took so long, as far as it is believed.
func (p *pace) add(took int64, failed bool, share float64) {
	x := math.Log(float64(max(took, 1000)))
	p.n, p.sum, p.squares = p.n+share, p.sum+share*x, p.squares+share*x*x
	if failed {
		p.failed += share
	}
}

// spread returns mean and standard deviation of the logarithm, drawn to those of all where few are known.
func (p *pace) spread(all *pace) (mean, sigma float64) {
	const few, wide = 2, 1.0
	mean, sigma = math.Log(5e6), wide
	if all.n > 0 {
		mean = all.sum / all.n
		sigma = math.Sqrt((max(0, all.squares-all.n*mean*mean) + few*wide*wide) / (all.n + few))
	}
	if p == all || p.n == 0 {
		return mean, sigma
	}
	m := (p.sum + few/2*mean) / (p.n + few/2)
	square := max(0, p.squares-2*m*p.sum+p.n*m*m)
	return m, max(0.05, math.Sqrt((square+few*sigma*sigma/2)/(p.n+few)))
}

// rate is how likely a request that has been open for a time ends in the next ns. Behind the median it
// only grows.
func rate(took int64, mean, sigma float64) float64 {
	x := math.Log(float64(max(took, 1000)))
	z := (x - mean) / sigma
	hazard := z // for a large z
	if z < 6 {
		hazard = math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) / (math.Erfc(z/math.Sqrt2) / 2)
	}
	return max(hazard, 1e-12) / (sigma * math.Exp(min(x, mean)))
}

// of returns the pace of a request's route, that of all beyond some thousand routes.
func (r *unnamed) of(s *server) *pace {
	if s.pace == nil { // its target is told behind its start
		key := s.Method + " " + Route(s.Target)
		key = strings.Clone(key[:min(len(key), maxRoute)])
		s.pace = r.routes[key]
		if s.pace == nil && len(r.routes) >= maxPaces {
			s.pace = &r.all
		}
		if s.pace == nil {
			s.pace = &pace{}
			r.routes[key] = s.pace
		}
	}
	return s.pace
}

// begins takes a request that begins on a thread.
func (r *unnamed) begins(th *thread, s *server) {
	if r.routes == nil {
		r.routes, r.threads = map[string]*pace{}, map[uint64]struct{}{}
	}
	if before := th.serving; before != nil && before.open && before.hash == 0 && before.thread == s.thread {
		if !before.left {
			r.of(before).left++
		}
		before.left = true // the thread has other things to do
	}
	if len(r.threads) < maxThreads {
		r.threads[s.thread] = struct{}{}
	}
	r.open = append(r.open, s)
}

// ends notes that one of the requests has ended, however that was told.
func (r *unnamed) ends() {
	if r.ended++; r.ended > len(r.open)/2 {
		kept := r.open[:0]
		for _, x := range r.open {
			if x.open {
				kept = append(kept, x)
			}
		}
		clear(r.open[len(kept):])
		r.open, r.ended = kept, 0
	}
}

// choose returns the request that a stop without an id ends, nil if none is open.
func (r *unnamed) choose(th *thread, e *Event) *server {
	fresh := th.serving
	if fresh != nil && (!fresh.open || fresh.hash != 0 || fresh.thread != e.Thread || fresh.left) {
		fresh = nil
	}
	r.may = r.may[:0]
	sum := 0.0
	weigh := func(s *server, w float64) {
		r.may = append(r.may, candidate{s, w})
		sum += w
	}
	if fresh != nil {
		r.of(fresh).stayed++
		weigh(fresh, r.weight(fresh, e.Time, th.threw, false, float64(max(1, len(r.threads)))))
	}
	for _, s := range r.open {
		if len(r.may) > maxOpen {
			break
		}
		if s.open && s != fresh {
			weigh(s, r.weight(s, e.Time, th.threw, s.left || s.thread == e.Thread, 0))
		}
	}
	if len(r.may) == 0 {
		return nil
	}
	best := r.may[0]
	for _, c := range r.may {
		if c.weight > best.weight {
			best = c
		}
		share := c.weight / sum
		if share *= share; share < 0.01 { // what is hardly believed would teach no more than that all take the same
			continue
		}
		took := e.Time - c.Start
		r.all.add(took, th.threw, share)
		if p := r.of(c.server); p != &r.all {
			p.add(took, th.threw, share)
		}
	}
	if fresh != nil && best.server != fresh {
		fresh.left = true
	}
	return best.server
}

// A candidate is a request that a stop may be of.
type candidate struct {
	*server
	weight float64
}

// weight is the rate at which a request ends on the thread: it may go on on any of them if it left the
// one that it began on, and on that one alone, the only thing it does, if it did not.
func (r *unnamed) weight(s *server, now int64, threw, left bool, alone float64) float64 {
	p := r.of(s)
	mean, sigma := p.spread(&r.all)
	w := rate(now-s.Start, mean, sigma)
	if threw {
		w *= (p.failed + 0.1) / (p.n + 1)
	} else {
		w *= 1 - p.failed/(p.n+1)
	}
	leaves := (p.left + 0.5) / (p.left + p.stayed + 1)
	switch {
	case alone > 0:
		w *= (1-leaves)*alone + leaves
	case !left:
		w *= leaves
	}
	return w
}
