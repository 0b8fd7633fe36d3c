package httpreport

import (
	"cmp"
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
	from  int64 // in the log
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
	runs := make([]spool.Run, len(l.runs))
	for i, r := range l.runs {
		runs[i] = &openRun{drawnRun: r, log: &l.log, number: i, drawn: drawn{start: r.first}}
	}
	spool.Merge(runs, func(r spool.Run) bool { return yield(&r.(*openRun).drawn) })
}

// An openRun is a run of which a request is at hand.
type openRun struct {
	drawnRun
	drawn
	log    *spool.Log
	number int
	read   []byte
}

// Before implements spool.Run.
func (r *openRun) Before(other spool.Run) bool {
	o := other.(*openRun)
	return r.start < o.start || r.start == o.start && r.number < o.number
}

// Next implements spool.Run.
func (r *openRun) Next() bool {
	if r.n == 0 {
		return false
	}
	if len(r.read) == 0 {
		r.read = slices.Grow(r.read, readAtOnce*drawnSize)[:min(r.n, readAtOnce)*drawnSize]
		r.log.Peek(r.read, r.from)
		r.from += int64(len(r.read))
	}
	b := r.read
	r.drawn = drawn{
		int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:])), profile.SlicePlace(binary.LittleEndian.Uint64(b[16:])),
		binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:]),
	}
	r.read, r.n = b[drawnSize:], r.n-1
	return true
}
