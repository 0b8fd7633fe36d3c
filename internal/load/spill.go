package load

import (
	"cmp"
	"encoding/binary"
	"iter"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A spill is what the tracks of all events are where these do not fit into memory: one
// for each process, which reads the file again when it is asked. That reading also keeps
// the events of the processes asked for next, as many as fit: there may be more
// processes than a file can be read times.
type spill struct {
	k     *tracker
	procs []*process       // those with events, in the order of their tracks
	place map[*process]int // in procs
	held  *heldEvents      // nil: none
	err   error            // that ended a reading
}

// heldEvents are the events of procs[from:] as records, one list for each process.
type heldEvents struct {
	from    int
	records [][]byte
	metas   []*nettrace.Metadata
	index   map[*nettrace.Metadata]int // in metas
}

// spilled adds one track for each process with events that no other track shows.
func (k *tracker) spilled() {
	sp := &spill{k: k, place: map[*process]int{}}
	for _, p := range k.l.order {
		if !p.wanted || !p.events {
			continue
		}
		at := len(sp.procs)
		sp.place[p] = at
		sp.procs = append(sp.procs, p)
		k.l.profile.Tracks = append(k.l.profile.Tracks, &profile.Track{
			Name: "Events", Group: "events", Process: p.trace, Nested: true, Slices: sp.slices(at),
			Err: func() error { return sp.err },
		})
	}
}

// slices yields the events of a process.
func (sp *spill) slices(at int) iter.Seq[*profile.Slice] {
	return func(yield func(*profile.Slice) bool) {
		var s profile.Slice
		var values []nettrace.Value
		show := func(ev *nettrace.Event, now, tid int64) bool {
			args := append(s.Args[:0], profile.Arg{Key: "thread", Value: tid})
			s = profile.Slice{
				Start: now, Instant: true, Name: eventName(ev), Category: cmp.Or(ev.Metadata.Provider, "events"),
				Thread: sp.procs[at].threads[uint64(tid)].trace,
			}
			s.Args, values = sp.k.args(args, values, ev.Metadata, ev.Version, ev.Payload)
			return yield(&s)
		}
		if h := sp.held; h != nil && h.from <= at && at-h.from < len(h.records) {
			h.replay(at-h.from, show)
			return
		}
		sp.read(at, show)
	}
}

// read goes through the file for the process at a place, and holds the events of those
// behind it.
func (sp *spill) read(at int, show func(*nettrace.Event, int64, int64) bool) {
	sp.held = nil
	h := &heldEvents{from: at + 1, records: make([][]byte, len(sp.procs)-at-1), index: map[*nettrace.Metadata]int{}}
	size, whole := 0, true
	err := sp.k.readAgain(func(ev *nettrace.Event, now int64, t *thread) bool {
		i, ok := sp.place[t.proc]
		i -= h.from
		if !ok || i < -1 || i >= len(h.records) || sp.k.shown(ev) {
			return true
		}
		if i < 0 {
			whole = show(ev, now, t.trace.TID)
			return whole
		}
		for size += h.add(i, ev, now, t.trace.TID); size > sp.k.limit; {
			last := len(h.records) - 1
			size -= len(h.records[last])
			h.records[last] = nil
			h.records = h.records[:last]
		}
		return true
	})
	switch {
	case err != nil:
		sp.err = cmp.Or(sp.err, err)
	case whole:
		sp.held = h
	}
}

// readAgain goes through the events that tracks are about.
func (k *tracker) readAgain(f func(*nettrace.Event, int64, *thread) bool) error {
	enough := false
	a := &rereader{l: k.l, seen: newReplay(k.l), f: func(ev *nettrace.Event, now int64, t *thread) bool {
		enough = !f(ev, now, t)
		return !enough
	}}
	if _, err := input.Read(k.ctx, k.source, nil, a); err != nil || enough {
		return err
	}
	return k.l.sameEvents(a.n, true) // damage was told when the file was read first
}

// add appends an event to the records of a process. It takes about as much memory as it
// takes in the file.
func (h *heldEvents) add(i int, ev *nettrace.Event, now, tid int64) int {
	m, ok := h.index[ev.Metadata]
	if !ok {
		m = len(h.metas)
		h.index[ev.Metadata] = m
		h.metas = append(h.metas, ev.Metadata)
	}
	b := binary.AppendUvarint(h.records[i], uint64(m))
	for _, v := range []int64{now, tid, int64(ev.Version), int64(ev.Opcode)} {
		b = binary.AppendVarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(ev.Payload)))
	b = append(b, ev.Payload...)
	size := len(b) - len(h.records[i])
	h.records[i] = b
	return size
}

// replay goes through the records of a process.
func (h *heldEvents) replay(i int, show func(*nettrace.Event, int64, int64) bool) {
	b := h.records[i]
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	varint := func() int64 {
		v, n := binary.Varint(b)
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		ev := nettrace.Event{Metadata: h.metas[uvarint()]}
		now, tid := varint(), varint()
		ev.Version, ev.Opcode = int(varint()), int(varint())
		n := uvarint()
		ev.Payload, b = b[:n], b[n:]
		if !show(&ev, now, tid) {
			return
		}
	}
}
