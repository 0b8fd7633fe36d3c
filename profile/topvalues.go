package profile

import (
	"cmp"
	"math"

	"github.com/tracefix/tracefix/internal/text"
)

// A ValueTop is the methods and names of a profile with what they weigh by one Weight.
type ValueTop struct {
	Weight string  `json:"weight"`
	Unit   Unit    `json:"unit"`
	Events int     `json:"events"`
	Total  float64 `json:"total"`
	// Sampled is set where the amounts are estimates.
	Sampled bool `json:"estimate,omitempty"`
	// Sums is set where what counts as an event is the sum of events whose number is unknown.
	Sums    bool        `json:"sums,omitempty"`
	Names   []ValueName `json:"names"`
	Methods []ValueRow  `json:"methods"`
	// AllNames and AllMethods count what there is; Names and Methods may be fewer.
	AllNames   int `json:"all_names"`
	AllMethods int `json:"all_methods"`
}

// Within says by how many per cent an amount of so many events may be off in 5 of 100 cases, 0
// where amounts are no estimates. The standard deviation of the sum over objects that are drawn
// by their size is at most 1/sqrt(n) of it.
func (t *ValueTop) Within(events int) float64 {
	if !t.Sampled || events == 0 {
		return 0
	}
	return 196 / math.Sqrt(float64(events))
}

// A ValueName is what weighs: a type, an exception, a lock or an event.
type ValueName struct {
	Name   string  `json:"name"`
	Amount float64 `json:"amount"`
	Events int     `json:"events"`
	Within float64 `json:"within_percent,omitempty"` // of Amount; see ValueTop.Within
}

// A ValueRow is one method. Self is of events in the method itself, or in the machinery that
// it called to wait, throw or collect (IsMachinery); a recursive method counts once in Total.
type ValueRow struct {
	Method string  `json:"method"`
	Self   float64 `json:"self"`
	Total  float64 `json:"total"`
	Events int     `json:"events"`                   // in the method itself
	Within float64 `json:"within_percent,omitempty"` // of Self; see ValueTop.Within
}

// TopValues adds up what methods, and names where they are told, weigh by p.Weights[weight]. limit is the number of
// rows of each; 0 is all. byTotal orders methods by total instead of self. Of a weight that p does not have, as WeightNamed's
// -1, there is nothing.
func (p *Profile) TopValues(weight, limit int, byTotal bool) *ValueTop {
	if weight < 0 || weight >= len(p.Weights) {
		return &ValueTop{Names: []ValueName{}, Methods: []ValueRow{}}
	}
	w := p.Weights[weight]
	t := &ValueTop{Weight: w.Name, Unit: w.Unit, Sampled: w.Sampled, Sums: w.Sums, Names: []ValueName{}, Methods: []ValueRow{}}
	type stackSum struct {
		stack  StackID
		amount float64
		events int
	}
	stacks := map[StackID]int{} // place in sums
	var sums []stackSum         // as they were met: in another order sums of fractions are others
	names := map[string]int{}
	for _, th := range p.Threads {
		for v := range p.Values(th, weight) {
			t.Events++
			t.Total += v.Amount
			k, ok := stacks[v.Sample.Stack]
			if !ok {
				k = len(sums)
				stacks[v.Sample.Stack] = k
				sums = append(sums, stackSum{stack: v.Sample.Stack})
			}
			sums[k].amount += v.Amount
			sums[k].events++
			if v.Name == "" {
				continue
			}
			i, ok := names[v.Name]
			if !ok {
				i = len(t.Names)
				names[v.Name] = i
				t.Names = append(t.Names, ValueName{Name: v.Name})
			}
			t.Names[i].Amount += v.Amount
			t.Names[i].Events++
		}
	}
	c := valueCounter{p: p, skip: p.Table.Synthetic(), rows: make([]valueSum, p.Table.Methods())}
	for _, s := range sums {
		c.open(s.stack)
		if n := len(c.path); n > 0 {
			c.path[n-1].amount += s.amount
		}
		if self := p.Table.Cause(s.stack); self != 0 {
			r := &c.rows[p.Table.Method(p.Table.Frame(self))]
			r.Self += s.amount
			r.Events += s.events
		}
	}
	c.open(0)
	for m := range c.rows {
		if r := &c.rows[m]; r.used {
			r.Method, r.Within = shownName(p.Table.MethodAt(MethodID(m))), t.Within(r.Events)
			t.Methods = append(t.Methods, r.ValueRow)
		}
	}
	for i := range t.Names {
		t.Names[i].Within = t.Within(t.Names[i].Events)
	}
	text.SortRows(t.Methods, func(a, b *ValueRow) int {
		self, total := cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total)
		if byTotal {
			self, total = total, self
		}
		return cmp.Or(self, total, cmp.Compare(a.Method, b.Method))
	})
	text.SortRows(t.Names, func(a, b *ValueName) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Name, b.Name))
	})
	t.AllNames, t.AllMethods = len(t.Names), len(t.Methods)
	if limit > 0 {
		t.Names, t.Methods = t.Names[:min(limit, len(t.Names))], t.Methods[:min(limit, len(t.Methods))]
	}
	return t
}

// A valueCounter adds up what methods weigh. Frames of a stack stay open for the next one, as those
// of a Top.
type valueCounter struct {
	p     *Profile
	skip  []bool
	rows  []valueSum // by method
	stack openStack
	path  []valueFrame // of stack
}

type valueSum struct {
	ValueRow
	open int // frames of it in the stack that is open
	used bool
}

// A valueFrame is a frame of the stack that is open, with what all stacks weigh that it was in
// since it began.
type valueFrame struct {
	of     *valueSum // nil: it is not shown
	amount float64
}

// open makes id the stack that is open. What a frame that closes has goes to its caller, and to its
// method if no frame of that is open below.
func (c *valueCounter) open(id StackID) {
	tab := c.p.Table
	d := c.stack.change(tab, id)
	for n := len(c.path) - 1; n >= d; n-- {
		f := &c.path[n]
		if f.of != nil {
			if f.of.open--; f.of.open == 0 {
				f.of.Total += f.amount
			}
		}
		if n > 0 {
			c.path[n-1].amount += f.amount
		}
	}
	c.path = c.path[:d]
	for _, id := range c.stack.ids[d:] {
		f := valueFrame{}
		if m := tab.Method(tab.Frame(id)); !c.skip[m] {
			f.of = &c.rows[m]
			f.of.used = true
			f.of.open++
		}
		c.path = append(c.path, f)
	}
}
