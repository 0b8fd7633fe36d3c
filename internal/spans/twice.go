package spans

import (
	"fmt"

	"github.com/tracefix/tracefix/chromium"
)

// A twice finds events that come a second time: a block of the file that was written twice. A trace has
// events that are alike, but not many in a row that are all like those as many places before, with
// their times.
type twice struct {
	ring  []print // of the last events
	offs  []int64 // where they stand
	last  []int64 // by hash of the print: the newest event that has it
	n     int64
	back  int64 // what is alike now stands so many events before; 0: nothing
	run   int64 // so many events were alike
	times int   // of them had another time than the one before
	at    int64 // offset of the first
	ns    int64
	found []stretch
}

// A print is what an event is told by.
type print struct {
	ns           int64
	thread, name int32
	size         int32
	phase        byte
}

// hash is below printsKept.
func (p *print) hash() uint64 {
	h := uint64(p.ns) ^ uint64(p.name)<<40 ^ uint64(p.thread)<<20 ^ uint64(p.size)<<8 ^ uint64(p.phase)
	return h * 0x9e3779b97f4a7c15 >> (64 - printBits)
}

// A stretch of a file.
type stretch struct{ from, to int64 }

const (
	printBits     = 13
	printsKept    = 1 << printBits
	fewestAlike   = 8
	fewestApart   = 4  // times among them
	mostBefore    = 64 // events looked at before the first that is found by its print
	stretchesKept = 1 << 10
)

// see takes the next event. It returns what to tell once a stretch is complete.
func (w *twice) see(ev *chromium.Event) *chromium.FormatError {
	if !ev.TS.Valid || ev.Phase == 'M' {
		return nil
	}
	if w.ring == nil {
		w.ring, w.offs, w.last = make([]print, printsKept), make([]int64, printsKept), make([]int64, printsKept)
	}
	p := print{ev.TS.NS, ev.Thread, ev.NameID, int32(len(ev.Raw)), ev.Phase}
	switch {
	case w.back > 0 && w.print(w.n-w.back) == p:
		if w.run++; ev.TS.NS != w.ns {
			w.times++
		}
	default:
		w.begin(p, ev.Offset)
	}
	w.ns = ev.TS.NS
	w.last[p.hash()] = w.n
	w.ring[w.n%printsKept], w.offs[w.n%printsKept] = p, ev.Offset
	w.n++
	if w.back == 0 || w.run < w.back || w.run < fewestAlike || w.times < fewestApart || len(w.found) == stretchesKept {
		return nil
	}
	w.found = append(w.found, stretch{w.at, ev.Offset + int64(len(ev.Raw))})
	w.back = 0
	return &chromium.FormatError{Offset: w.at, Where: "traceEvents", Err: fmt.Errorf("%d events that stand before come a second time; begins and ends among them are left out", w.run)}
}

func (w *twice) print(n int64) print { return w.ring[n%printsKept] }

// begin looks whether the event at hand stands before: what it is like then may have begun some events ago,
// since an event that is like its neighbours is not found by its print.
func (w *twice) begin(p print, offset int64) {
	w.back, w.run, w.times = 0, 0, 0
	before := w.last[p.hash()]
	if w.n-before >= printsKept-mostBefore || before == w.n || w.print(before) != p {
		return
	}
	w.back, w.run, w.at = w.n-before, 1, offset
	for k := int64(1); k < mostBefore && before >= k && w.run < w.back && w.print(w.n-k) == w.print(before-k); k++ {
		w.run++
		w.at = w.offs[(w.n-k)%printsKept]
	}
}

// holds reports whether an event at an offset is one that came before.
func (w *twice) holds(offset int64) bool {
	for _, s := range w.found {
		if offset >= s.from && offset < s.to {
			return true
		}
	}
	return false
}
