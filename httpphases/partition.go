package httpphases

import "sort"

// rank orders phases for Partition: of two that run at once the one with the higher
// rank gets the time (http-events.md section 8).
var rank = [...]int{
	Queue: 1, Wait: 2, DNS: 3, Connect: 4, Proxy: 5, TLS: 6, RequestHeaders: 7, RequestContent: 8,
	ResponseHeaders: 9, ResponseContent: 10, RedirectHop: 11, Other: 0,
}

// Partition cuts the duration of r into pieces without gap or overlap, in time order:
// each is of the phase that mattered then, or Other. Their durations sum to
// r.Duration exactly. It is nil if the duration is not known.
func (r *Request) Partition() []Phase {
	if !r.HasDuration {
		return nil
	}
	end := r.Start + r.Duration
	cuts := []int64{r.Start, end}
	for i := range r.Phases {
		if p := &r.Phases[i]; !p.Open {
			cuts = append(cuts, min(max(p.Start, r.Start), end), min(max(p.End(), r.Start), end))
		}
	}
	sort.Slice(cuts, func(i, j int) bool { return cuts[i] < cuts[j] })
	var out []Phase
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		if from == to {
			continue
		}
		name, errText := Other, ""
		for k := range r.Phases {
			if p := &r.Phases[k]; !p.Open && p.Start <= from && p.End() >= to && rank[p.Name] > rank[name] {
				name, errText = p.Name, p.Error
			}
		}
		if n := len(out); n > 0 && out[n-1].Name == name && out[n-1].Error == errText {
			out[n-1].Duration += to - from
			continue
		}
		out = append(out, Phase{Name: name, Start: from, Duration: to - from, Error: errText})
	}
	return out
}
