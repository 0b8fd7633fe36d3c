package spans

import (
	"fmt"

	"github.com/tracefix/tracefix/chromium"
)

// A twice finds events that come a second time: a block of the file that was written twice. A trace has
// events that are alike, but not many in a row that are all like those as many places before, with
// their times.
type twice struct {
	ring  []place  // of the last events
	last  []uint32 // by hash of the print: the end of the number of the newest event that has it, and more of the hash
	n     int64
	back  int64 // what is alike now stands so many events before; 0: nothing
	run   int64 // so many events were alike
	times int   // of them had another time than the one before
	from  int64 // offset of the first
	ns    int64
	found []stretch
}

// A print is what an event is told by.
type print struct {
	ns           int64
	thread, name int32
	alike        uint32
	phase        byte
}

// hash is of the print of an event, below 1<<(printBits+tagBits).
func (b *brief) hash() uint64 {
	h := uint64(b.ns) ^ uint64(b.name)<<40 ^ uint64(b.thread)<<20 ^ uint64(b.alike)<<8 ^ uint64(b.phase)
	return h * 0x9e3779b97f4a7c15 >> (64 - printBits - tagBits)
}

// A place is where an event stands.
type place struct {
	print
	off int64
}

// A stretch of a file.
type stretch struct{ from, to int64 }

const (
	printBits     = 13
	tagBits       = 32 - printBits - 1 // of a hash, which tell two prints apart that differ without a look at them
	printsKept    = 1 << printBits
	fewestAlike   = 8
	fewestApart   = 4  // times among them
	mostBefore    = 64 // events looked at before the first that is found by its print
	stretchesKept = 1 << 10
)

// see takes the next event. It returns what to tell once a stretch is complete.
func (w *twice) see(b *brief) *chromium.FormatError {
	if !b.timed || b.phase == 'M' {
		return nil
	}
	if w.ring == nil {
		w.ring, w.last = make([]place, printsKept), make([]uint32, printsKept)
	}
	// Field by field: a processor that copies what was written just now in smaller parts waits for them.
	now := &w.ring[w.n%printsKept]
	now.ns, now.thread, now.name, now.alike, now.phase, now.off = b.ns, b.thread, b.name, b.alike, b.phase, b.off
	hash := b.hash()
	last, tag := &w.last[hash>>tagBits], uint32(hash&(1<<tagBits-1))
	switch {
	case w.back > 0 && w.at(w.n-w.back).print == now.print:
		if w.run++; b.ns != w.ns {
			w.times++
		}
	case *last&(1<<tagBits-1) != tag:
		w.back, w.run, w.times = 0, 0, 0
	default:
		back := (uint32(w.n) - *last>>tagBits) & (2*printsKept - 1)
		w.begin(w.n - int64(back))
	}
	w.ns = b.ns
	*last = uint32(w.n)<<tagBits | tag
	w.n++
	if w.back == 0 || w.run < w.back || w.run < fewestAlike || w.times < fewestApart || len(w.found) == stretchesKept {
		return nil
	}
	w.found = append(w.found, stretch{w.from, b.off + int64(b.size)})
	w.back = 0
	return &chromium.FormatError{Offset: w.from, Where: "traceEvents", Err: fmt.Errorf("%d events that stand before come a second time; begins and ends among them are left out", w.run)}
}

// at is where event number n stands, one of the last.
func (w *twice) at(n int64) *place { return &w.ring[n%printsKept] }

// begin looks whether the event at hand is like that of a number: what it is like then may have
// begun some events ago, since an event that is like its neighbours is not found by its print.
func (w *twice) begin(before int64) {
	w.back, w.run, w.times = 0, 0, 0
	if w.n-before >= printsKept-mostBefore || before == w.n || w.at(before).print != w.at(w.n).print {
		return
	}
	w.back, w.run, w.from = w.n-before, 1, w.at(w.n).off
	for k := int64(1); k < mostBefore && before >= k && w.run < w.back && w.at(w.n-k).print == w.at(before-k).print; k++ {
		w.run++
		w.from = w.at(w.n - k).off
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
