package spans

import (
	"context"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
)

// A sorter holds the begins and ends of a thread that are not in order of time.
type sorter struct {
	lane   *lane
	events []record
}

// A record is a begin or end event.
type record struct {
	ns    int64
	off   int64
	sub   uint32
	frame profile.FrameID
	name  int32
	lead  uint16
	phase byte
	sf    bool
}

// inTime sorts records by their time; slices.SortStableFunc takes 13 KB of program.
type inTime []record

func (l inTime) Len() int      { return len(l) }
func (l inTime) Swap(i, k int) { l[i], l[k] = l[k], l[i] }
func (l inTime) Less(i, k int) bool {
	return l[i].ns < l[k].ns || l[i].ns == l[k].ns && l[i].sub < l[k].sub
}

// sorted reads the threads that are not in order of time once more, holds their
// events and follows them in order of time. Events of one time keep the order of
// the file, which is all that tells their nesting.
func (d *reading) sorted(ctx context.Context) error {
	in, err := d.open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := d.r.Reset(d.source(in, nil), &chromium.Options{Behind: true}); err != nil {
		return err
	}
	byThread := map[int32]*sorter{}
	var ev chromium.Event
	var b brief
	for n := 0; ; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.r.Read(&ev); err != nil {
			if !over(err) {
				return err
			}
			break
		}
		b.shorten(&ev)
		if b.phase != 'B' && b.phase != 'E' || !b.timed || !d.sort[b.thread] || d.twice.holds(b.off) {
			continue
		}
		s := byThread[b.thread]
		if s == nil {
			s = &sorter{}
			byThread[b.thread] = s
			d.sorters = append(d.sorters, s)
		}
		f := d.table.id(&b)
		if b.phase == 'B' {
			d.table.begins(f, &b)
		}
		s.events = append(s.events, record{
			ns: b.ns, sub: b.sub, off: b.off, frame: f, name: b.name,
			lead: uint16(min(b.lead, 1<<16-1)), phase: b.phase, sf: b.sf != nil,
		})
	}
	if err := d.same(d.r.InputOffset()); err != nil {
		return err
	}
	// What the first reading gathered for each thread no longer holds.
	d.all = slices.DeleteFunc(d.all, func(l *lane) bool { return d.sort[l.thread] })
	d.zones = slices.DeleteFunc(d.zones, func(z zone) bool { return d.sort[z.lane.thread] })
	for thread, s := range byThread {
		sort.Stable(inTime(s.events))
		e := s.events[0]
		s.lane = &lane{thread: thread, fromSample: -1, sorted: true, lastNS: e.ns, first: e.ns, start: 0, own: d.table.own(thread)}
	}
	told := len(d.odd)
	for _, s := range d.sorters {
		d.all = append(d.all, s.lane)
		for i := range s.events {
			e := &s.events[i]
			// Zones of these lanes count events: their offsets are not in order.
			d.step(s.lane, e.phase, e.frame, e.name, e.sf, e.ns, e.sub, int64(i), 0)
		}
		for i := range d.odd[told:] {
			e := &d.odd[told+i]
			e.at = s.events[e.at].off
		}
		told = len(d.odd)
	}
	return nil
}
