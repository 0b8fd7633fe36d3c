package causality

import (
	"cmp"
	"slices"
)

// A timeline is a set of instants, as intervals in buckets of time. The zero value is empty.
type timeline struct {
	buckets map[int64][]interval
}

const (
	bucket   = int64(1) << 27 // ns
	crowded  = 64             // intervals of a bucket, from which on they are joined
	longSpan = 1 << 16        // buckets: more is damage
)

// add adds the time between from and to.
func (l *timeline) add(from, to int64) {
	if l.buckets == nil {
		l.buckets = map[int64][]interval{}
	}
	if to/bucket-from/bucket > longSpan {
		return
	}
	for from < to {
		b := from / bucket
		end := min(to, (b+1)*bucket)
		list := append(l.buckets[b], interval{from: from, to: end})
		if len(list) >= crowded && len(list)&(len(list)-1) == 0 {
			list = join(list)
		}
		l.buckets[b] = list
		from = end
	}
}

// within returns the intervals that overlap a span, or lie near.
func (l *timeline) within(from, to int64) []interval {
	var out []interval
	for b := from / bucket; b <= to/bucket && b-from/bucket <= longSpan; b++ {
		out = append(out, l.buckets[b]...)
	}
	return join(out)
}

// join makes overlapping intervals one. It changes the list.
func join(list []interval) []interval {
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, v := range list {
		if n := len(out); n > 0 && v.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, v.to)
			continue
		}
		out = append(out, v)
	}
	return out
}
