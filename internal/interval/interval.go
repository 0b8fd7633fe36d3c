// Package interval is the part of a trace that a report is about (--from and --to).
package interval

import "math"

// An Interval is a part of a trace, ns since its start. The zero value is all of it.
type Interval struct {
	From int64
	To   int64 // 0: to the end
}

// Overlaps reports whether something that lasted so long was under way in it; until -1: it has no end.
func (i Interval) Overlaps(from, until int64) bool {
	return (until < 0 || until >= i.From) && (i.To == 0 || from <= i.To)
}

// Contains reports whether a moment lies in it. What was before the trace began lies in one that
// has no start of its own.
func (i Interval) Contains(ns int64) bool { return i.Overlaps(ns, max(ns, 0)) }

// Clip returns what lies in it of something that lasted so long; both ends are the same if nothing does.
func (i Interval) Clip(from, until int64) (int64, int64) {
	first, last := i.Bounds()
	from = max(from, first)
	return from, max(from, min(until, last))
}

// Part is how long Clip is.
func (i Interval) Part(from, until int64) int64 {
	from, until = i.Clip(from, until)
	return until - from
}

// Bounds are where it starts and ends.
func (i Interval) Bounds() (from, until int64) {
	from, until = math.MinInt64, math.MaxInt64
	if i.From > 0 {
		from = i.From
	}
	if i.To > 0 {
		until = i.To
	}
	return from, until
}

// Resolve returns where it starts and ends in a trace with that end.
func (i Interval) Resolve(end int64) (from, until int64) {
	if i.To > 0 {
		end = min(end, i.To)
	}
	return i.From, max(i.From, end)
}
