package profile

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
)

// TimeWeight is the name of the weight that samples have by themselves: the time for which
// they speak.
const TimeWeight = "time"

// A Weight is what the events of one kind weigh: their stacks are profiled by it as those
// of samples are by time.
type Weight struct {
	Name string // as it was asked for: alloc, exceptions, contention, wait, an event, or a sample type of a pprof
	Unit Unit
	// Sampled is set where a value stands for more than the event itself: it is an estimate.
	Sampled bool
	// Sums is set where a value is the sum of events whose number is unknown.
	Sums bool
	// Unended is how many waits have no end in the trace, and so no value.
	Unended int
}

// Lacks names what the values lack; it is empty where they lack nothing.
func (w *Weight) Lacks() string {
	if w.Unended == 0 {
		return ""
	}
	why := "a deadlock, the end of the trace"
	if w.Name == "contention" {
		why += ", Lock.TryEnter that gives up"
	}
	return fmt.Sprintf("--weight %s lacks waits without an end (%s): %d", w.Name, why, w.Unended)
}

// A Unit is that of the amounts of a Weight.
type Unit string

// Units. A field of an event has none that is known.
const (
	Bytes       Unit = "bytes"
	Count       Unit = "count"
	Nanoseconds Unit = "nanoseconds"
	NoUnit      Unit = ""
)

// A Value is what the event of one sample weighs. The sample is of type SampleEvent.
type Value struct {
	Index  int32   // of the sample in the thread's Samples
	Weight uint8   // index in Profile.Weights
	Name   uint32  // index in Profile.Names: a type, an exception, a lock or an event; an empty one is not told
	Amount float64 // in the unit of the weight
}

// Values are what samples of a thread weigh, in the order of the samples. The zero value is empty
// and keeps all in memory.
type Values struct{ beside[Value] }

// ValuesIn returns an empty list that may put values aside.
func ValuesIn(spool *Spool) Values { return Values{beside[Value]{spool: spool}} }

// Change returns a value that may be changed until another method is called; its place in the order stays.
func (l *Values) Change(i int) *Value { return l.list.Change(i) }

// Done says that nothing is changed any more: any number of goroutines may read.
func (l *Values) Done() {
	if l.list != nil {
		l.list.Done()
	}
}

// Cursor returns what reads the values beside the samples.
func (l *Values) Cursor() ValueCursor { return ValueCursor{values: l.cursor()} }

// A ValueCursor reads values in order.
type ValueCursor struct {
	values spool.Cursor[Value]
	found  []Value
}

// Of returns what the sample with this index weighs, until the next call; of none before one that
// was asked for.
func (c *ValueCursor) Of(index int) []Value {
	c.found = c.found[:0]
	for {
		v := c.values.Peek()
		if v == nil || int(v.Index) > index {
			return c.found
		}
		if int(v.Index) == index {
			c.found = append(c.found, *v)
		}
		c.values.Next()
	}
}

// A Weighed is a value with the sample that it belongs to.
type Weighed struct {
	Thread *Thread
	Sample Sample
	Repair *Repair // nil: none
	Name   string
	Amount float64
}

// Values yields what the samples of t weigh by the weight with this index in p.Weights, in
// order of time, without those that are hidden. A yielded Repair is valid until the next.
func (p *Profile) Values(t *Thread, weight int) iter.Seq[Weighed] {
	return func(yield func(Weighed) bool) {
		samples, repairs := t.Samples.Cursor(), t.Repairs.Cursor()
		at := -1
		var s Sample
		for v := range t.Values.All() {
			if int(v.Weight) != weight {
				continue
			}
			for at < int(v.Index) {
				if !samples.Read(&s) {
					return
				}
				at++
			}
			if !s.Hidden && !yield(Weighed{t, s, repairs.Of(at), p.Names[v.Name], v.Amount}) {
				return
			}
		}
	}
}

// WeightNamed is the index of a weight in p.Weights, -1 if p has none of that name.
func (p *Profile) WeightNamed(name string) int {
	return slices.IndexFunc(p.Weights, func(w Weight) bool { return w.Name == name })
}
