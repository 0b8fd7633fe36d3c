package httpreport

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A drawn is a request of either side that has become slices.
type drawn struct {
	start, end int64
	at         profile.SlicePlace
	pid        uint32
	name       uint32 // of its track, in Drawing.names
}

// drawnList are such requests, which come in the order of their ends and are wanted in that of their starts: in runs
// that are sorted, and on disk but for the last. The zero value is empty.
type drawnList struct {
	fresh []drawn // in no run yet
	runs  []drawnRun
	log   spool.Log
}

// A drawnRun is where n requests are in the log, in order of start.
type drawnRun struct {
	first int64 // start of the first
	at    int64
	n     int
}

const (
	runOfDrawn  = 1 << 14
	drawnMemory = 1 << 20
	drawnSize   = 32
	readAtOnce  = 128
)

func (l *drawnList) add(x drawn, aside *profile.Spool) {
	if l.runs == nil && l.fresh == nil && aside != nil {
		l.log = spool.LogIn(aside, drawnMemory)
	}
	if l.fresh = append(l.fresh, x); len(l.fresh) == runOfDrawn {
		l.run()
	}
}

// run makes a run of those that are in none.
func (l *drawnList) run() {
	text.SortRows(l.fresh, func(a, b *drawn) int { return cmp.Compare(a.start, b.start) })
	b := make([]byte, 0, len(l.fresh)*drawnSize)
	for i := range l.fresh {
		x := &l.fresh[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(x.start))
		b = binary.LittleEndian.AppendUint64(b, uint64(x.end))
		b = binary.LittleEndian.AppendUint64(b, uint64(x.at))
		b = binary.LittleEndian.AppendUint32(b, x.pid)
		b = binary.LittleEndian.AppendUint32(b, x.name)
	}
	l.runs = append(l.runs, drawnRun{l.fresh[0].start, l.log.Add(b), len(l.fresh)})
	l.fresh = l.fresh[:0]
}

// ascending yields them in order of start, those that start together in the order in which they came. Nothing is added any
// more. Each is valid until the next one.
func (l *drawnList) ascending(yield func(*drawn) bool) {
	if len(l.fresh) > 0 {
		l.run()
	}
	l.fresh = nil
	l.log.Done()
	order := make([]*openRun, len(l.runs))
	for i, r := range l.runs {
		order[i] = &openRun{drawnRun: r, number: i, next: drawn{start: r.first}}
	}
	slices.SortFunc(order, (*openRun).compare)
	var open openRuns
	for len(order) > 0 || len(open) > 0 {
		if len(open) == 0 || len(order) > 0 && order[0].compare(open[0]) < 0 {
			if order[0].step(&l.log) {
				heap.Push(&open, order[0])
			}
			order = order[1:]
			continue
		}
		if !yield(&open[0].next) {
			return
		}
		if open[0].step(&l.log) {
			heap.Fix(&open, 0)
		} else {
			heap.Pop(&open)
		}
	}
}

// An openRun is a run of which next is the first that was not yielded.
type openRun struct {
	drawnRun
	number int
	next   drawn
	read   []byte
}

func (r *openRun) compare(o *openRun) int {
	return cmp.Or(cmp.Compare(r.next.start, o.next.start), cmp.Compare(r.number, o.number))
}

// step goes to the next one, if there is one.
func (r *openRun) step(log *spool.Log) bool {
	if r.n == 0 {
		return false
	}
	if len(r.read) == 0 {
		r.read = slices.Grow(r.read, readAtOnce*drawnSize)[:min(r.n, readAtOnce)*drawnSize]
		log.Peek(r.read, r.at)
		r.at += int64(len(r.read))
	}
	b := r.read
	r.next = drawn{
		int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:])), profile.SlicePlace(binary.LittleEndian.Uint64(b[16:])),
		binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:]),
	}
	r.read, r.n = b[drawnSize:], r.n-1
	return true
}

// openRuns is a heap with the run on top that goes on first.
type openRuns []*openRun

func (h openRuns) Len() int           { return len(h) }
func (h openRuns) Less(i, k int) bool { return h[i].compare(h[k]) < 0 }
func (h openRuns) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *openRuns) Push(x any)        { *h = append(*h, x.(*openRun)) }

// Pop implements heap.Interface.
func (h *openRuns) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}
