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
	open      int // frames of the stack that is open which count for it
}

// add adds what o has.
func (s *aroundSum) add(o *aroundSum) {
	s.cpu += o.cpu
	s.wait += o.wait
	s.samples += o.samples
}

// An aroundFrame is a frame of the stack that is open, with the time of all stacks that it was in
// since it began.
type aroundFrame struct {
	caller, shown MethodID // the innermost method above it that is shown, and that with it
	aroundSum
}

type arounder struct {
	p      *Profile
	skip   []bool
	wanted []bool
	polls  []bool // left out, unless raw
	stack  openStack
	path   []aroundFrame // of stack
	held   int           // frames of it that are wanted

	sums    [2]map[MethodID]*aroundSum // of callers, and of callees
	methods map[MethodID]bool
	all     aroundSum
}

// No caller, and no callee.
const none = ^MethodID(0)

// Around adds up the time of stacks that hold a method whose name fits the pattern, by who
// calls it and whom it calls. * and ? are wild. raw leaves Thread.PollGC in the stacks.
func (p *Profile) Around(pattern string, raw bool) *Around {
	a := &arounder{
		p: p, skip: p.Table.Synthetic(), wanted: methodsNamed(p.Table, pattern), polls: make([]bool, p.Table.Methods()),
		sums: [2]map[MethodID]*aroundSum{{}, {}}, methods: map[MethodID]bool{},
	}
	if !raw {
		a.polls = pollsOf(p.Table)
	}
	out := &Around{Sums: p.Meta.Sums, Callers: []AroundRow{}, Callees: []AroundRow{}, Methods: []string{}}
	timing := p.Timing()
	var seen sampleTypes
	for _, th := range p.Threads {
		stacks := map[StackID]*aroundSum{}
		var order []StackID
		cursor := timing.Cursor(th)
		for st, ok := cursor.Next(); ok; st, ok = cursor.Next() {
			seen.add(st.Type)
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
	a.open(0)
	out.Managed = seen.tellManaged()
	out.Samples, out.CPU, out.Wait = a.all.samples, text.Millis(a.all.cpu), text.Millis(a.all.wait)
	out.Callers, out.Callees = a.rows(a.sums[0], Root), a.rows(a.sums[1], Self)
	for m := range a.methods {
		out.Methods = append(out.Methods, shownName(p.Table.MethodAt(m)))
	}
	slices.Sort(out.Methods)
	return out
}

// add counts a stack. Its frames stay open for the next one, as those of a Top.
func (a *arounder) add(id StackID, s *aroundSum) {
	a.open(id)
	n := len(a.path)
	if n == 0 {
		return
	}
	a.path[n-1].add(s)
	if a.held > 0 {
		a.all.add(s)
		a.count(&aroundFrame{caller: a.path[n-1].shown, shown: none, aroundSum: *s}, 0) // it calls itself
	}
}

// open makes id the stack that is open. What a frame that closes has goes to its caller, and to
// what it counts for if no frame of that is open below.
func (a *arounder) open(id StackID) {
	tab := a.p.Table
	d := a.stack.change(tab, id)
	for n := len(a.path) - 1; n >= d; n-- {
		f := &a.path[n]
		a.count(f, -1)
		if n > 0 {
			a.path[n-1].add(&f.aroundSum)
		}
	}
	a.path = a.path[:d]
	for _, id := range a.stack.ids[d:] {
		f := aroundFrame{caller: none, shown: tab.Method(tab.Frame(id))}
		if n := len(a.path); n > 0 {
			f.caller = a.path[n-1].shown
		}
		if a.skip[f.shown] || a.polls[f.shown] {
			f.shown, f.caller = f.caller, hiddenFrame
		}
		a.count(&f, 1)
		a.path = append(a.path, f)
	}
}

// hiddenFrame is the caller of a frame that is not shown.
const hiddenFrame = none - 1

// count opens f, by 1, or closes it, by -1: it counts for its caller, and as what that calls. What
// it has counts when no other one is open.
func (a *arounder) count(f *aroundFrame, by int) {
	of := [2]MethodID{f.shown, f.caller}
	for side, m := range of {
		if f.caller == hiddenFrame || m == none || !a.wanted[m] {
			continue
		}
		if side == 0 {
			a.held += by
			a.methods[m] = true
		}
		x := a.sums[side][of[1-side]]
		if x == nil {
			x = &aroundSum{}
			a.sums[side][of[1-side]] = x
		}
		if x.open += by; x.open == 0 {
			x.add(&f.aroundSum)
		}
	}
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
