package profile

import (
	"iter"

	"github.com/tracefix/tracefix/internal/runlist"
)

// A Repair is what was done about one cut sample.
type Repair struct {
	Index      int     // of the sample in the thread's Samples
	Recorded   StackID // the stack as it was recorded
	How        string  // how the missing frames are known: stackfix's word
	Restored   int     // frames put back
	Above      int     // of these, behind the bridge: right above the recorded ones
	Dropped    int     // suspect frames taken away
	Confidence float32 // 0..1
	// those of the frames before a bridge and of those behind it
	BaseConfidence, AboveConfidence float32
	// Earlier is set where the file says that it was repaired before: this is nothing that was
	// done to the profile.
	Earlier bool
}

// Repairs is a list of repairs in sample order. Samples in a row that share one are
// stored as one. The zero value is an empty list.
type Repairs struct {
	runs runlist.List[repairKind] // stacks are the recorded ones
	last runlist.Run[repairKind]  // the newest one, which is not there yet; of 0 samples: none
	n    int
	hows []string
}

// A repairKind is what repairs have in common that differ in their stack.
type repairKind struct {
	restored   int32
	above      int32
	confidence [3]float32 // Confidence, BaseConfidence, AboveConfidence
	how        uint8      // index in hows
	dropped    uint8
	earlier    bool
}

// Append adds the repair of a sample behind those of the list.
func (l *Repairs) Append(r Repair) { l.AppendRun(r, 1) }

// AppendRun adds the repair of n samples in a row, of which r.Index is the first.
func (l *Repairs) AppendRun(r Repair, n int) {
	run := runlist.Run[repairKind]{First: int32(r.Index), N: int32(n), Stack: r.Recorded, Kind: repairKind{restored: int32(r.Restored), above: int32(r.Above), confidence: [3]float32{r.Confidence, r.BaseConfidence, r.AboveConfidence}, how: l.how(r.How), dropped: uint8(r.Dropped), earlier: r.Earlier}}
	l.n += n
	if l.last.N > 0 {
		if l.last.First+l.last.N == run.First && l.last.Stack == run.Stack && l.last.Kind == run.Kind {
			l.last.N += run.N
			return
		}
		l.runs.Append(l.last)
	}
	l.last = run
}

func (l *Repairs) how(word string) uint8 {
	for i, h := range l.hows {
		if h == word {
			return uint8(i)
		}
	}
	l.hows = append(l.hows, word)
	return uint8(len(l.hows) - 1)
}

// Over returns the repairs of l, and for samples that have none there those of below.
func (l *Repairs) Over(below *Repairs) Repairs {
	if below.n == 0 {
		return *l
	}
	var out Repairs
	next, stop := iter.Pull(below.All())
	defer stop()
	b, more := next()
	for r := range l.All() {
		for ; more && b.Index <= r.Index; b, more = next() {
			if b.Index < r.Index {
				out.Append(b)
			}
		}
		out.Append(r)
	}
	for ; more; b, more = next() {
		out.Append(b)
	}
	return out
}

// Len returns the number of repairs.
func (l *Repairs) Len() int { return l.n }

// All yields every repair, in sample order.
func (l *Repairs) All() iter.Seq[Repair] {
	return func(yield func(Repair) bool) {
		for c := l.Cursor(); c.next(); {
			for k := range c.runs.Run.N {
				if !yield(l.repair(&c.runs.Run, int(c.runs.Run.First+k))) {
					return
				}
			}
		}
	}
}

func (l *Repairs) repair(run *runlist.Run[repairKind], index int) Repair {
	k := &run.Kind
	return Repair{
		Index: index, Recorded: run.Stack, How: l.hows[k.how], Restored: int(k.restored), Above: int(k.above), Dropped: int(k.dropped),
		Confidence: k.confidence[0], BaseConfidence: k.confidence[1], AboveConfidence: k.confidence[2], Earlier: k.earlier,
	}
}

// Cursor returns a cursor before the first repair.
func (l *Repairs) Cursor() RepairCursor { return RepairCursor{list: l, runs: l.runs.Cursor()} }

// A RepairCursor finds the repairs of samples that are asked for in order. Repairs must
// not be appended while it is used.
type RepairCursor struct {
	list *Repairs
	runs runlist.Cursor[repairKind] // where it is: at a run that ends behind the sample asked for last
	end  bool                       // it is behind all of them
	r    Repair
}

// next moves on to the next run, and tells whether there is one.
func (c *RepairCursor) next() bool {
	switch {
	case c.end:
		return false
	case c.runs.Next():
		return true
	}
	c.end = true
	c.runs.Run = c.list.last
	return c.list.last.N > 0
}

// Of returns the repair of a sample, nil if it has none. It is valid until the next call.
func (c *RepairCursor) Of(index int) *Repair {
	run := &c.runs.Run
	for int(run.First+run.N) <= index {
		if !c.next() {
			return nil
		}
	}
	if int(run.First) > index {
		return nil
	}
	c.r = c.list.repair(run, index)
	return &c.r
}
