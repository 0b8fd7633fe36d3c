package profile

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/internal/text"
)

// An Around is who calls a method, or several of one pattern, and whom these call. Times are
// ms, as in a Top.
type Around struct {
	Methods []string `json:"methods"` // those that the pattern fits and the samples hold
	Samples int      `json:"samples"`
	CPU     float64  `json:"cpu_ms"`
	Wait    float64  `json:"wait_ms"`
	// A stack counts once for each of its callers and callees. Root stands for no caller, Self
	// for no callee.
	Callers []AroundRow `json:"callers"`
	Callees []AroundRow `json:"callees"`
	// Managed and Sums are as in Top.
	Managed bool `json:"-"`
	Sums    bool `json:"-"`
}

// An AroundRow is one caller or callee, ms.
type AroundRow struct {
	Method  string  `json:"method"`
	CPU     float64 `json:"cpu_ms"`
	Wait    float64 `json:"wait_ms"`
	Samples int     `json:"samples"`
}

// Names in an Around that are no methods.
const (
	Root = "(no caller)"
	Self = "(itself)"
)

type aroundSum struct {
	cpu, wait int64
	samples   int
	met       int // the stack that counted last
}

type arounder struct {
	p      *Profile
	skip   []bool
	wanted []bool
	polls  []bool // left out, unless raw
	trail  []MethodID

	callers, callees map[MethodID]*aroundSum
	methods          map[MethodID]bool
	stacks           int
	all              aroundSum
}

// No caller, and no callee.
const none = ^MethodID(0)

// Around adds up the time of stacks that hold a method whose name fits the pattern, by who
// calls it and whom it calls. * and ? are wild. raw leaves Thread.PollGC in the stacks.
func (p *Profile) Around(pattern string, raw bool) *Around {
	a := &arounder{
		p: p, skip: p.Table.Synthetic(), wanted: methodsNamed(p.Table, pattern), polls: make([]bool, p.Table.Methods()),
		callers: map[MethodID]*aroundSum{}, callees: map[MethodID]*aroundSum{}, methods: map[MethodID]bool{},
	}
	if !raw {
		a.polls = pollsOf(p.Table)
	}
	out := &Around{Sums: p.Meta.Sums, Callers: []AroundRow{}, Callees: []AroundRow{}, Methods: []string{}}
	timing := p.Timing()
	for _, th := range p.Threads {
		stacks := map[StackID]*aroundSum{}
		var order []StackID
		cursor := timing.Cursor(th)
		for st, ok := cursor.Next(); ok; st, ok = cursor.Next() {
			out.Managed = out.Managed || st.Type == SampleManaged
			s := stacks[st.Stack]
			if s == nil {
				s = &aroundSum{}
				stacks[st.Stack] = s
				order = append(order, st.Stack)
			}
			s.samples++
			if st.Type.OnCPU() {
				s.cpu += st.Nanos()
			} else {
				s.wait += st.Nanos()
			}
		}
		for _, id := range order {
			a.add(id, stacks[id])
		}
	}
	out.Samples, out.CPU, out.Wait = a.all.samples, text.Millis(a.all.cpu), text.Millis(a.all.wait)
	out.Callers, out.Callees = a.rows(a.callers, Root), a.rows(a.callees, Self)
	for m := range a.methods {
		out.Methods = append(out.Methods, shownName(p.Table.MethodAt(m)))
	}
	slices.Sort(out.Methods)
	return out
}

// add counts a stack.
func (a *arounder) add(id StackID, s *aroundSum) {
	tab := a.p.Table
	a.trail = a.trail[:0]
	held := false
	for ; id != 0; id = tab.Parent(id) {
		if m := tab.Method(tab.Frame(id)); !a.skip[m] && !a.polls[m] {
			a.trail = append(a.trail, m) // the innermost first
			held = held || a.wanted[m]
		}
	}
	if !held {
		return
	}
	a.stacks++
	a.all.cpu += s.cpu
	a.all.wait += s.wait
	a.all.samples += s.samples
	for i, m := range a.trail {
		if !a.wanted[m] {
			continue
		}
		a.methods[m] = true
		caller, callee := none, none
		if i > 0 {
			callee = a.trail[i-1]
		}
		if i+1 < len(a.trail) {
			caller = a.trail[i+1]
		}
		a.count(a.callers, caller, s)
		a.count(a.callees, callee, s)
	}
}

// count adds s once for each stack.
func (a *arounder) count(sums map[MethodID]*aroundSum, m MethodID, s *aroundSum) {
	x := sums[m]
	if x == nil {
		x = &aroundSum{}
		sums[m] = x
	}
	if x.met == a.stacks {
		return
	}
	x.met = a.stacks
	x.cpu += s.cpu
	x.wait += s.wait
	x.samples += s.samples
}

func (a *arounder) rows(sums map[MethodID]*aroundSum, missing string) []AroundRow {
	rows := []AroundRow{}
	for m, s := range sums {
		name := missing
		if m != none {
			name = shownName(a.p.Table.MethodAt(m))
		}
		rows = append(rows, AroundRow{Method: name, CPU: text.Millis(s.cpu), Wait: text.Millis(s.wait), Samples: s.samples})
	}
	text.SortRows(rows, func(x, y *AroundRow) int {
		return cmp.Or(cmp.Compare(y.CPU+y.Wait, x.CPU+x.Wait), cmp.Compare(x.Method, y.Method))
	})
	return rows
}
