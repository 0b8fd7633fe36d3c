package causality

import (
	"cmp"
	"slices"
)

// A timeline is a set of stretches of time, each with the time from which on it counts, in
// buckets. The zero value is empty.
type timeline struct {
	buckets map[int64][]stretch
	found   []stretch // room for within
}

type stretch struct{ from, to, born int64 }

const (
	bucket   = int64(1) << 27 // ns
	crowded  = 1 << 10        // stretches of a bucket, from which on they are joined
	longSpan = 1 << 16        // buckets: more is damage
)

// add adds the time between from and to, which counts for who began before born.
func (l *timeline) add(from, to, born int64) {
	if l.buckets == nil {
		l.buckets = map[int64][]stretch{}
	}
	if to/bucket-from/bucket > longSpan {
		return
	}
	for from < to {
		b := from / bucket
		end := min(to, (b+1)*bucket)
		list := l.buckets[b]
		if n := len(list); n > 0 && list[n-1].to == from && list[n-1].born == born {
			list[n-1].to = end
		} else {
			list = append(list, stretch{from, end, born})
			if len(list) >= crowded {
				list = join(list)
			}
		}
		l.buckets[b] = list
		from = end
	}
}

// within returns the stretches that overlap a span and count for who began at a time. They
// are in order and apart, and valid until the next call.
func (l *timeline) within(from, to, began int64) []stretch {
	found := l.found[:0]
	for b := from / bucket; b <= to/bucket && b-from/bucket <= longSpan; b++ {
		for _, s := range l.buckets[b] {
			if s.born >= began && s.to > from && s.from < to {
				found = append(found, s)
			}
		}
	}
	l.found = found
	return join(found)
}

// join makes overlapping stretches one, which counts for all of those for whom one of them
// did. It changes the list.
func join(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, v := range list {
		if n := len(out); n > 0 && v.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, v.to)
			out[n-1].born = max(out[n-1].born, v.born)
			continue
		}
		out = append(out, v)
	}
	return out
}
