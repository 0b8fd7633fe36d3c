package events

import (
	"cmp"
	"iter"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A gcRecord is a collection as it is kept: there may be millions.
type gcRecord struct {
	runtimeevents.Collection
	pause, pauseStart, suspend, waking int64

	roots  uint16                          // a bit for each kind that something was marked by
	marked [runtimeevents.Roots + 1]uint64 // bytes by kind, the last one for those without a name
}

// recordOf returns what is kept of g.
func recordOf(g *runtimeevents.GC) gcRecord {
	r := gcRecord{Collection: g.Collection, pause: g.Pause(), pauseStart: g.PauseStart(), suspend: g.Suspend(), waking: g.Waking()}
	for _, m := range g.Marks {
		kind := min(int(m.Kind), runtimeevents.Roots)
		r.roots |= 1 << kind
		r.marked[kind] += m.Bytes
	}
	return r
}

// gcList are the collections of a process, in order of their start, most of them on disk if there are many.
type gcList struct {
	pages spool.Pages[gcPage]
	n     int
}

type gcPage [64]gcRecord

// gcMemory is how many bytes of the collections of a process stay in memory.
const gcMemory = 4 << 20

func newGCList(s *spool.Spool) *gcList { return &gcList{pages: spool.PagesIn[gcPage](s, gcMemory)} }

func (l *gcList) add(r gcRecord) {
	at := l.n % len(gcPage{})
	if at == 0 {
		l.pages.Add()
	}
	l.pages.Mut(l.n / len(gcPage{}))[at] = r
	l.n++
}

// at returns a collection; it is not to be changed.
func (l *gcList) at(i int) *gcRecord { return &l.pages.At(i / len(gcPage{}))[i%len(gcPage{})] }

// all yields the collections with their numbers.
func (l *gcList) all() iter.Seq2[int, *gcRecord] {
	return func(yield func(int, *gcRecord) bool) {
		for i := range l.n {
			if !yield(i, l.at(i)) {
				return
			}
		}
	}
}

// longest returns the numbers of the n collections with the longest pauses, the longest first.
func (l *gcList) longest(n int) []int {
	type pause struct {
		ns int64
		at int
	}
	longer := func(a, b *pause) int { return cmp.Compare(b.ns, a.ns) }
	var first []pause
	for i, g := range l.all() {
		first = append(first, pause{g.pause, i})
		if len(first) >= 2*n+1024 { // most of them are not among the longest
			text.SortRows(first, longer)
			first = first[:n]
		}
	}
	text.SortRows(first, longer)
	var numbers []int
	for _, p := range first[:min(n, len(first))] {
		numbers = append(numbers, p.at)
	}
	return numbers
}

// A gcProcess is one process, whose collections are in a list.
type gcProcess struct {
	*runtimeevents.GCProcess
	list *gcList
}
