package load

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// Names of weights. Any other one is EVENT, or EVENT=FIELD for a numeric field of it.
const (
	weightAlloc      = "alloc"
	weightExceptions = "exceptions"
	weightContention = "contention"
	weightWait       = "wait"
)

// A weigher finds out what events weigh, by the weights that were asked for.
type weigher struct {
	profile *profile.Profile
	spool   *profile.Spool
	rows    []weighRow // by weight
	unended []int      // by weight, how many never ended
	names   map[string]uint32
	of      map[*nettrace.Metadata][]uint8 // the weights that count an event type

	contentions runtimeevents.Contentions
	waits       runtimeevents.Waits
	values      []nettrace.Value
}

// A weighRow is one weight.
type weighRow struct {
	event, field string // of EVENT=FIELD
	wants        func(*nettrace.Event) bool
}

// newWeigher returns nil if no weights are asked for.
func newWeigher(p *profile.Profile, spool *profile.Spool, names []string) *weigher {
	if len(names) == 0 {
		return nil
	}
	w := &weigher{profile: p, spool: spool, names: map[string]uint32{}, of: map[*nettrace.Metadata][]uint8{}}
	for _, name := range names {
		weight := profile.Weight{Name: name}
		row := weighRow{}
		switch name {
		case weightAlloc:
			weight.Unit = profile.Bytes
			row.wants = func(ev *nettrace.Event) bool {
				return runtimeevents.IsAllocationTick(ev) || runtimeevents.IsAllocationSampled(ev)
			}
		case weightExceptions:
			weight.Unit = profile.Count
			row.wants = runtimeevents.IsException
		case weightContention:
			weight.Unit = profile.Nanoseconds
			row.wants = runtimeevents.IsContention
		case weightWait:
			weight.Unit = profile.Nanoseconds
			row.wants = runtimeevents.IsWait
		default:
			event, field, found := strings.Cut(name, "=")
			row.event, row.field = event, field
			if !found {
				weight.Unit = profile.Count
			}
			row.wants = func(ev *nettrace.Event) bool { return eventIs(ev.Metadata, event) }
		}
		p.Weights = append(p.Weights, weight)
		w.rows = append(w.rows, row)
	}
	return w
}

// eventIs reports whether an event type is that of a pattern: its name, with or without
// its provider, or its id.
func eventIs(m *nettrace.Metadata, pattern string) bool {
	if pattern == strconv.Itoa(m.EventID) {
		return true
	}
	name := m.EventName()
	return text.Match(pattern, name) || text.Match(pattern, m.Provider+"/"+name) || text.Match(pattern, strings.ReplaceAll(name, "/", ""))
}

// wants returns the weights that count ev.
func (w *weigher) wants(ev *nettrace.Event) []uint8 {
	if w == nil {
		return nil
	}
	list, known := w.of[ev.Metadata]
	if !known {
		for i := range w.rows {
			if w.rows[i].wants(ev) {
				list = append(list, uint8(i))
			}
		}
		w.of[ev.Metadata] = list
	}
	return list
}

func (w *weigher) name(s string) uint32 {
	id, ok := w.names[s]
	if !ok {
		id = uint32(len(w.profile.Names))
		w.profile.Names = append(w.profile.Names, s)
		w.names[s] = id
	}
	return id
}

// isStop reports whether ev ends what another event began: it is no sample of its own.
func isStop(ev *nettrace.Event) bool {
	return runtimeevents.IsContentionStop(ev) || runtimeevents.IsWaitStop(ev)
}

// pending stands for an amount that the end of a contention or wait will tell.
var pending = math.NaN()

// add gives the newest sample of t, which is that of ev, its values.
func (w *weigher) add(t *thread, ev *nettrace.Event, now int64, list []uint8) {
	started := 0 // the value whose amount an end will tell: one event may have others beside it
	for _, i := range list {
		v := profile.Value{Index: int32(t.trace.Samples.Len() - 1), Weight: i}
		switch w.profile.Weights[i].Name {
		case weightAlloc:
			w.allocation(&v, ev)
		case weightExceptions:
			e, err := runtimeevents.ReadException(ev)
			if err != nil {
				continue
			}
			v.Name, v.Amount = w.name(cmp.Or(e.Type.String(), "(not told)")), 1
		case weightContention, weightWait:
			v.Amount = pending
			started = t.trace.Values.Len()
		default:
			if !w.event(&v, ev, &w.rows[i]) {
				continue
			}
		}
		t.trace.Values.Append(v)
	}
	w.pair(t, ev, now, started)
}

// lost takes that events of a thread were lost, be it before an event that weighs nothing: the end
// of what it waits for may be among them, and the next end that of another wait.
func (w *weigher) lost(ev *nettrace.Event) {
	if !runtimeevents.IsContention(ev) && !runtimeevents.IsContentionStop(ev) { // else it says so itself: see pair
		w.contentions.Event(ev, 0, 0)
	}
	if !runtimeevents.IsWait(ev) && !runtimeevents.IsWaitStop(ev) {
		w.waits.Event(ev, 0, 0)
	}
}

// pair tells the start of a contention or wait how long it took. The number that stands
// for its stack is that of its value.
func (w *weigher) pair(t *thread, ev *nettrace.Event, now int64, value int) {
	if c := w.contentions.Event(ev, now, uint32(value)); c != nil && c.Stop != runtimeevents.Unknown {
		w.ended(t, weightContention, c.Stack, c.Wait(), lockTitle(c))
	}
	if x := w.waits.Event(ev, now, uint32(value)); x != nil {
		name := "wait"
		if x.MonitorWait {
			name = "Monitor.Wait"
		}
		w.ended(t, weightWait, x.Stack, x.Stop-x.Start, name)
	}
}

func lockTitle(c *runtimeevents.Contention) string {
	lock := cmp.Or(c.Lock, c.Object)
	if lock == 0 {
		return "lock"
	}
	if c.Owner == 0 {
		return fmt.Sprintf("lock 0x%x", lock)
	}
	return fmt.Sprintf("lock 0x%x, held by thread %d", lock, c.Owner)
}

func (w *weigher) ended(t *thread, weight string, value uint32, ns int64, name string) {
	if int(value) >= t.trace.Values.Len() {
		return
	}
	if v := t.trace.Values.Change(int(value)); w.profile.Weights[v.Weight].Name == weight {
		v.Amount, v.Name = float64(ns), w.name(name)
	}
}

// Allocations are weighed by the ticks, or where there are some by the sampled ones: both
// stand for everything, so that one of them must go.
func (w *weigher) allocation(v *profile.Value, ev *nettrace.Event) {
	v.Amount = pending
	if runtimeevents.IsAllocationSampled(ev) {
		if a, err := runtimeevents.ReadAllocationSampled(ev); err == nil {
			weight := &w.profile.Weights[v.Weight]
			weight.Sampled = true
			v.Name, v.Amount = w.name(a.Type.String()), runtimeevents.SampledBytes(a.ObjectSize)
		}
		return
	}
	if a, err := runtimeevents.ReadAllocationTick(ev); err == nil {
		v.Name, v.Amount = w.name(cmp.Or(a.Type.String(), "(not told)")), float64(a.Amount)
		// Marked for finish, which knows whether there are sampled ones.
		v.Name |= tickMark
	}
}

// maxAmount bounds amounts, far from where sums overflow.
const maxAmount = 1e280

// tickMark marks the names of values of AllocationTick until finish.
const tickMark = 1 << 31

// event weighs ev by a field of it, or counts it.
func (w *weigher) event(v *profile.Value, ev *nettrace.Event, row *weighRow) bool {
	v.Name, v.Amount = w.name(ev.EventName()), 1
	if row.field == "" {
		return true
	}
	l := ev.Layout()
	if l == nil {
		return false
	}
	w.values, _ = ev.AppendValues(w.values[:0])
	switch f := fieldOf(l, w.values, row.field); f.Kind() {
	case nettrace.KindInt, nettrace.KindUint, nettrace.KindFloat, nettrace.KindBool:
		v.Amount = f.Float()
		return math.Abs(v.Amount) <= maxAmount // NaN is not
	}
	return false
}

// fieldOf returns the field of that name, none if there is no such. What Write<T> writes has all of
// them in one object without a name.
func fieldOf(l *nettrace.Layout, values []nettrace.Value, name string) nettrace.Value {
	if len(l.Fields) == 1 && l.Fields[0].Name == "" && len(values) == 1 {
		for f, v := range values[0].Members() {
			if strings.EqualFold(f.Name, name) {
				return v
			}
		}
	}
	at := slices.IndexFunc(l.Fields, func(f nettrace.Field) bool { return strings.EqualFold(f.Name, name) })
	if at < 0 || at >= len(values) {
		return nettrace.Value{}
	}
	return values[at]
}

// finish drops values that never came, and puts those of late samples in order. That of a wait never
// came where it has no end.
func (w *weigher) finish(procs []*process) {
	w.unended = make([]int, len(w.rows))
	for _, p := range procs {
		for _, t := range p.threads {
			w.finishThread(t)
		}
	}
	for i, n := range w.unended {
		weight := &w.profile.Weights[i]
		if weight.Name != weightContention && weight.Name != weightWait {
			continue
		}
		if weight.Unended = n; n > 0 {
			w.profile.Meta.Notes = append(w.profile.Meta.Notes, weight.Lacks())
		}
	}
}

func (w *weigher) finishThread(t *thread) {
	old := t.trace.Values
	old.Done()
	t.trace.Values = profile.ValuesIn(w.spool)
	var late []profile.Value // of threads with late samples
	for v := range old.All() {
		if math.IsNaN(v.Amount) {
			w.unended[v.Weight]++
			continue
		}
		if v.Name&tickMark != 0 && w.profile.Weights[v.Weight].Sampled {
			continue
		}
		v.Name &^= tickMark
		if t.perm == nil {
			t.trace.Values.Append(v)
			continue
		}
		v.Index = t.perm[v.Index]
		late = append(late, v)
	}
	text.SortRows(late, func(a, b *profile.Value) int { return cmp.Compare(a.Index, b.Index) })
	for _, v := range late {
		t.trace.Values.Append(v)
	}
	if w.spool.Err() != nil { // they are not what they were, which Profile.Err tells
		t.trace.Values = profile.Values{}
	}
}
