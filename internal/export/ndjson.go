package export

import (
	"container/heap"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// NDJSON writes one line of JSON for each sample, in time order over all threads:
//
//	{"ts":5.699888,"pid":1,"tid":19,"type":"managed","depth":4,"cut":false,"frames":["root","leaf"]}
//
// ts is in ms since the start of the trace, exact to the nanosecond; frames are full names without
// synthetic roots and leaf markers. A sample that knows for how long it speaks has "duration_ms",
// another one of a CPU "period_ms", how far apart the trace tells that such were taken. "why"
// stands on cut samples only, "repair" on those that a repair looked at. Stacks of other events are
// no samples, unless o.Weights asks for them: they have "weight", "value", its "unit" and "name" in
// place of "type", and times are ms.
func NDJSON(w io.Writer, p *profile.Profile, o Options) error {
	out := newBuffer(w)
	t := p.Table
	skip := t.Synthetic()
	names := make([][]byte, t.Methods())
	var stack []profile.MethodID
	depths := visibleDepths{table: t, skip: skip}
	time, weights := o.weights(p)
	var kinds [][]byte // what stands in place of the type, for each line of a sample
	for m := newMerge(o.threads(p)); len(m.heads) > 0 && out.flushed(); m.next() {
		h := m.heads[0]
		s := h.s
		kinds = kinds[:0]
		if s.Written() && time {
			kinds = append(kinds, typeNames[s.Type])
		}
		for _, v := range h.values.Of(h.index) {
			if !s.Hidden && slices.Contains(weights, int(v.Weight)) {
				kinds = append(kinds, appendWeight(nil, p, v))
			}
		}
		if len(kinds) == 0 {
			continue
		}
		r := h.repairs.Of(h.index)
		recorded := s.Stack
		if r != nil {
			recorded = r.Recorded
		}
		stack = stack[:0]
		for id := s.Stack; id != 0; id = t.Parent(id) {
			if m := t.Method(t.Frame(id)); !skip[m] {
				stack = append(stack, m)
			}
		}

		for _, kind := range kinds {
			b := append(out.b, `{"ts":`...)
			b = text.AppendMillis(b, s.Time)
			b = append(b, h.ids...)
			b = append(b, kind...)
			switch {
			case s.Type == profile.SampleOffCPU || s.Dur > 0 && s.Type != profile.SampleEvent:
				b = text.AppendMillis(append(b, `,"duration_ms":`...), s.Dur)
			case s.Type == profile.SampleCPU && p.Meta.Interval > 0:
				b = text.AppendMillis(append(b, `,"period_ms":`...), int64(p.Meta.Interval))
			}
			b = append(b, `,"depth":`...)
			b = strconv.AppendInt(b, int64(depths.of(recorded)), 10)
			switch {
			case s.Cut != profile.Whole:
				b = append(b, `,"cut":true,"why":"`...)
				b = append(b, s.Cut.String()...)
				b = append(b, '"')
			case r != nil: // the file tells of an earlier repair that the sample was cut, and not by what
				b = append(b, `,"cut":true`...)
			default:
				b = append(b, `,"cut":false`...)
			}
			b = appendWork(b, p, h.work.At(s.Time))
			b = append(b, `,"frames":[`...)
			for i := len(stack) - 1; i >= 0; i-- {
				name := names[stack[i]]
				if name == nil {
					name = append(text.AppendJSON(nil, t.MethodAt(stack[i]).Full()), ',')
					names[stack[i]] = name
				}
				b = append(b, name...)
			}
			if len(stack) > 0 {
				b = b[:len(b)-1]
			}
			b = append(b, ']')
			if r != nil {
				b = append(b, `,"repair":`...)
				b = appendMark(b, r)
			}
			out.b = append(b, '}', '\n')
		}
	}
	return out.flush()
}

// appendWork appends what a thread worked for: nothing where the trace does not tell.
func appendWork(b []byte, p *profile.Profile, w *profile.Work) []byte {
	switch {
	case w == nil:
		return b
	case w.Activity < 0:
		return append(b, `,"activity":"-"`...)
	}
	b = append(b, `,"activity":`...)
	b = text.AppendJSON(b, p.Activities.Path(w.Activity))
	if n := p.Activities.RequestOf(w.Activity); n > 0 {
		b = append(b, `,"request":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// typeNames are the words of the contract. The reference treats a sample that the
// runtime could not classify as external, and so does the contract.
var typeNames = [...][]byte{
	profile.SampleManaged:  []byte(`,"type":"managed"`),
	profile.SampleExternal: []byte(`,"type":"external"`),
	profile.SampleCPU:      []byte(`,"type":"cpu"`),
	profile.SampleOffCPU:   []byte(`,"type":"offcpu"`),
	profile.SampleError:    []byte(`,"type":"external"`),
}

// appendWeight writes what an event weighs, so that who reads the line needs nothing else to know
// what that is.
func appendWeight(b []byte, p *profile.Profile, v profile.Value) []byte {
	w := p.Weights[v.Weight]
	amount, unit := v.Amount, string(w.Unit)
	if w.Unit == profile.Nanoseconds {
		amount, unit = amount/1e6, "ms"
	}
	b = text.AppendJSON(append(b, `,"weight":`...), w.Name)
	b = strconv.AppendFloat(append(b, `,"value":`...), amount, 'f', -1, 64)
	if name := p.Names[v.Name]; name != "" {
		b = text.AppendJSON(append(b, `,"name":`...), name)
	}
	if unit != "" {
		b = text.AppendJSON(append(b, `,"unit":`...), unit)
	}
	return b
}

// visibleDepths counts the frames of a stack that are drawn.
type visibleDepths struct {
	table *profile.Table
	skip  []bool
	any   int // 0: not looked, 1: there are synthetic frames, 2: none
}

func (v *visibleDepths) of(id profile.StackID) int {
	n := v.table.Depth(id)
	if v.any == 0 {
		v.any = 2
		for _, s := range v.skip {
			if s {
				v.any = 1
			}
		}
	}
	if v.any == 1 {
		for ; id != 0; id = v.table.Parent(id) {
			if v.skip[v.table.Method(v.table.Frame(id))] {
				n--
			}
		}
	}
	return n
}

// A merge yields the samples of several threads in the order of their times; equal
// times in the order of the threads.
type merge struct{ heads []*head }

type head struct {
	s       profile.Sample
	index   int
	thread  int
	c       profile.Cursor
	ids     []byte // of process and thread, as they are written
	repairs profile.RepairCursor
	work    profile.WorkCursor
	values  profile.ValueCursor
}

func newMerge(threads []*profile.Thread) *merge {
	m := &merge{}
	var of *profile.Process
	several := false // of those that have lines: the way back gives the same bytes
	for _, th := range threads {
		if th.Samples.Written() > 0 || th.Values.Len() > 0 {
			several = several || of != nil && of != th.Owner()
			of = th.Owner()
		}
	}
	zeros := map[*profile.Process]int64{} // threads of a process that have no number
	for i, th := range threads {
		h := &head{thread: i, c: th.Samples.Cursor(), repairs: th.Repairs.Cursor(), work: th.Work.Cursor(), values: th.Values.Cursor()}
		if !h.c.Read(&h.s) {
			continue
		}
		h.ids = append(h.ids, `,"pid":`...)
		h.ids = strconv.AppendInt(h.ids, th.Owner().PID, 10)
		h.ids = append(h.ids, `,"tid":`...)
		tid := th.TID
		if tid == 0 { // of those that only names tell apart the first keeps it
			if n := zeros[th.Owner()]; n > 0 {
				tid = firstFree + n - 1
			}
			zeros[th.Owner()]++
		}
		h.ids = strconv.AppendInt(h.ids, tid, 10)
		if name := th.Owner().Name; several && name != "" {
			h.ids = text.AppendJSON(append(h.ids, `,"process":`...), name)
		}
		m.heads = append(m.heads, h)
	}
	heap.Init(m)
	return m
}

// next moves on behind heads[0].
func (m *merge) next() {
	h := m.heads[0]
	if h.c.Read(&h.s) {
		h.index++
		heap.Fix(m, 0)
	} else {
		heap.Pop(m)
	}
}

func (m *merge) Len() int { return len(m.heads) }

func (m *merge) Less(i, j int) bool {
	a, b := m.heads[i], m.heads[j]
	if a.s.Time != b.s.Time {
		return a.s.Time < b.s.Time
	}
	return a.thread < b.thread
}

func (m *merge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *merge) Push(x any)    { m.heads = append(m.heads, x.(*head)) }

func (m *merge) Pop() any {
	h := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return h
}
