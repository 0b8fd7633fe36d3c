package profile

import "iter"

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
	runs []repairRun
	n    int
	hows []string
}

// A repairRun is the repair of n samples in a row.
type repairRun struct {
	first, n   int32
	recorded   StackID
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
	run := repairRun{first: int32(r.Index), n: int32(n), recorded: r.Recorded, restored: int32(r.Restored), above: int32(r.Above), confidence: [3]float32{r.Confidence, r.BaseConfidence, r.AboveConfidence}, how: l.how(r.How), dropped: uint8(r.Dropped), earlier: r.Earlier}
	l.n += n
	if k := len(l.runs) - 1; k >= 0 {
		last := &l.runs[k]
		next := *last
		next.first, next.n = last.first+last.n, run.n
		if next == run {
			last.n += run.n
			return
		}
	}
	l.runs = append(l.runs, run)
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
		for i := range l.runs {
			run := &l.runs[i]
			for k := range run.n {
				if !yield(l.repair(run, int(run.first+k))) {
					return
				}
			}
		}
	}
}

func (l *Repairs) repair(run *repairRun, index int) Repair {
	return Repair{
		Index: index, Recorded: run.recorded, How: l.hows[run.how], Restored: int(run.restored), Above: int(run.above), Dropped: int(run.dropped),
		Confidence: run.confidence[0], BaseConfidence: run.confidence[1], AboveConfidence: run.confidence[2], Earlier: run.earlier,
	}
}

// Cursor returns a cursor before the first repair.
func (l *Repairs) Cursor() RepairCursor { return RepairCursor{list: l} }

// A RepairCursor finds the repairs of samples that are asked for in order. Repairs must
// not be appended while it is used.
type RepairCursor struct {
	list *Repairs
	run  int
	r    Repair
}

// Of returns the repair of a sample, nil if it has none. It is valid until the next call.
func (c *RepairCursor) Of(index int) *Repair {
	runs := c.list.runs
	for c.run < len(runs) && int(runs[c.run].first+runs[c.run].n) <= index {
		c.run++
	}
	if c.run == len(runs) || int(runs[c.run].first) > index {
		return nil
	}
	c.r = c.list.repair(&runs[c.run], index)
	return &c.r
}
