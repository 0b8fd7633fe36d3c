package profile

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
)

// TopOptions say what a Top counts and in which order its rows stand.
type TopOptions struct {
	Limit int // rows of each group; 0 is all
	// Total orders by total instead of self time.
	Total bool
	// Wait orders by waiting instead of CPU time.
	Wait     bool
	ByThread bool // a group of rows for each thread
	// Raw leaves what was sampled in Thread.PollGC there. Else it is charged to the callers: the
	// sampler stops threads there itself.
	Raw bool
	// Repaired says that cut stacks were repaired first: those that still are cut
	// cannot be put right.
	Repaired bool
}

// A Top is the methods of a profile with the time spent in them. CPU time is that of
// samples which saw the thread on a CPU. All other time is wait: the thread was
// switched out, or in native code, where EventPipe cannot tell work from waiting.
type Top struct {
	Samples int `json:"samples"`
	Cut     int `json:"cut"` // samples whose stack misses its root and is not put right
	// NoStack counts samples without a single frame.
	NoStack  int     `json:"no_stack,omitempty"`
	CPU      float64 `json:"cpu_ms"`
	Wait     float64 `json:"wait_ms"`
	Duration float64 `json:"duration_ms"` // of the trace
	// Polls is the CPU time sampled in Thread.PollGC, ms.
	Polls float64 `json:"polls_ms"`
	// Unnamed is the part of CPU in code that nothing names: its address stands for it, ms.
	Unnamed float64 `json:"-"`
	// CPUOnly says that the samples were taken on a CPU only: nothing is known of waits.
	CPUOnly bool `json:"cpu_only,omitempty"`
	// Managed says that CPU is time in managed code, as EventPipe tells it, and Wait that in
	// native code or waiting. Else the recorder saw the CPUs.
	Managed bool       `json:"-"`
	Sums    bool       `json:"-"` // as in Meta: samples are stacks
	Groups  []TopGroup `json:"groups"`

	Options TopOptions `json:"-"` // that it was made with
}

// A TopGroup is all threads, or one.
type TopGroup struct {
	Process string   `json:"process,omitempty"`
	PID     int64    `json:"pid,omitempty"`
	Thread  string   `json:"thread,omitempty"`
	TID     int64    `json:"tid,omitempty"`
	Samples int      `json:"samples"`
	CPU     float64  `json:"cpu_ms"`
	Wait    float64  `json:"wait_ms"`
	Methods int      `json:"methods"` // how many there are; Rows may be fewer
	Rows    []TopRow `json:"rows"`

	// Waits are the rows by waiting, where those of Rows are by CPU time and there are both.
	Waits []TopRow `json:"-"`
	// CPUMethods and WaitMethods count those of Methods with CPU time and with wait.
	CPUMethods, WaitMethods int `json:"-"`
}

// A TopRow is one method, ms. Self is without the methods it called; a recursive
// method counts once in Total.
type TopRow struct {
	Method    string  `json:"method"` // Module!Namespace.Type.Method(args)
	Module    string  `json:"module,omitempty"`
	CPUSelf   float64 `json:"cpu_self_ms"`
	CPUTotal  float64 `json:"cpu_total_ms"`
	WaitSelf  float64 `json:"wait_self_ms"`
	WaitTotal float64 `json:"wait_total_ms"`
	Samples   int     `json:"samples"` // with the method innermost
}

// Top adds up the time of each method: of one group of all threads, or with o.ByThread
// one for each thread, the busiest first. Rows are in the order of o, ties by name.
func (p *Profile) Top(o TopOptions) *Top {
	t := &Top{Options: o, Duration: text.Millis(p.Meta.End)}
	c := newTopCounter(p, o)
	line := relay.New(c.collect, func(x *topThread) error {
		c.thread(x, t)
		if x.samples > 0 && o.ByThread {
			pr := x.of.Owner()
			g := c.group(o)
			g.Process, g.PID, g.Thread, g.TID, g.Samples = pr.Title(), pr.PID, x.of.Title(), x.of.TID, x.samples
			t.Groups = append(t.Groups, g)
		}
		return nil
	})
	for _, th := range p.Threads {
		line.Batch().of = th
		_ = line.Send()
	}
	_ = line.Close() // nothing of it fails
	if o.ByThread {
		text.SortRows(t.Groups, func(a, b *TopGroup) int {
			if o.Wait {
				return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(b.CPU, a.CPU))
			}
			return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Wait, a.Wait))
		})
	} else if t.Samples > 0 {
		g := c.group(o)
		g.Samples = t.Samples
		t.Groups = append(t.Groups, g)
	}
	t.CPU, t.Wait, t.Polls, t.Unnamed = text.Millis(c.allCPU), text.Millis(c.allWait), text.Millis(c.allPolls), text.Millis(c.allUnnamed)
	t.CPUOnly, t.Managed, t.Sums = c.seen == 1<<SampleCPU, c.seen.tellManaged(), p.Meta.Sums
	return t
}

// Rows yields the rows of all groups.
func (t *Top) Rows() iter.Seq[TopRow] {
	return func(yield func(TopRow) bool) {
		for i := range t.Groups {
			for _, r := range t.Groups[i].Rows {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// topSum is what a method adds up to, ns.
type topSum struct {
	cpuSelf, cpuTotal, waitSelf, waitTotal int64
	samples                                int
	open                                   int32 // frames of it in the stack that is open
	used                                   bool
}

// A topFrame is a frame of the stack that is open, with the time of all stacks that it was in since
// it began.
type topFrame struct {
	m         MethodID
	cpu, wait int64
}

// An openStack is the stack that was looked at last: what sums up stacks leaves their frames open
// for the next one, so that the cost is that of the frames in which they differ.
type openStack struct{ ids []StackID } // root first

// change makes s the stack of id, and returns how many of its frames were open before.
func (s *openStack) change(t *Table, id StackID) (same int) {
	n := t.Depth(id)
	same = min(n, len(s.ids))
	for len(s.ids) < n {
		s.ids = append(s.ids, 0)
	}
	s.ids = s.ids[:n]
	for k := n - 1; k >= 0 && (k >= same || s.ids[k] != id); k-- {
		same = min(same, k)
		s.ids[k] = id
		id = t.Parent(id)
	}
	return same
}

type topCounter struct {
	p     *Profile
	skip  []bool
	polls []bool // by method: Thread.PollGC
	fold  bool
	t     *Timing
	seen  sampleTypes

	sums      []topSum // by method; the last one is OffCPU
	used      []MethodID
	stack     openStack
	path      []topFrame // of stack
	cpu, wait int64      // since the last group

	allCPU, allWait, allPolls, allUnnamed int64
}

func newTopCounter(p *Profile, o TopOptions) *topCounter {
	c := &topCounter{p: p, skip: p.Table.Synthetic(), t: p.Timing(), fold: !o.Raw, sums: make([]topSum, p.Table.Methods()+1)}
	c.polls = pollsOf(p.Table)
	return c
}

// pollsOf marks the methods at which the sampler stops threads.
func pollsOf(t *Table) []bool {
	polls := make([]bool, t.Methods())
	for i := range polls {
		polls[i] = t.MethodAt(MethodID(i)).IsPoll()
	}
	return polls
}

// IsPoll says whether a method is where a thread waits for a suspension that it ran
// into: System.Threading.Thread.PollGC and its local function.
func (m Method) IsPoll() bool {
	return m.Module == "System.Private.CoreLib" &&
		(strings.HasPrefix(m.Name, "System.Threading.Thread.<PollGC>") || strings.HasPrefix(m.Name, "System.Threading.Thread.PollGC("))
}

// A topStack is one distinct stack of a thread, with the leaf OffCPU or without.
type topStack struct {
	topKey
	cpu, wait int64
	samples   int
}

type topKey struct {
	id  StackID
	off bool
}

// A topThread is what a thread adds to a Top.
type topThread struct {
	of      *Thread
	stacks  []topStack
	samples int
	cut     int // of them
	seen    sampleTypes
}

// collect sums up the samples of x.of. It is called for several threads at once.
func (c *topCounter) collect(x *topThread) {
	*x = topThread{of: x.of, stacks: x.stacks[:0]}
	index := map[topKey]int{} // of stacks
	repairs := x.of.Repairs.Cursor()
	sts := c.t.Cursor(x.of)
	var st Stretch
	i, last := -1, topKey{} // place of the stack of the stretch before
	for sts.Read(&st) {
		x.samples++
		if st.Cut != Whole {
			if r := repairs.Of(st.Index); r == nil || strings.EqualFold(r.How, "bridge") {
				x.cut++
			}
		}
		x.seen.add(st.Type)
		if key := (topKey{st.Stack, st.Type == SampleOffCPU}); i < 0 || key != last {
			var ok bool
			if i, ok = index[key]; !ok {
				i = len(x.stacks)
				index[key] = i
				x.stacks = append(x.stacks, topStack{topKey: key})
			}
			last = key
		}
		x.stacks[i].samples++
		if st.Type.OnCPU() {
			x.stacks[i].cpu += st.Nanos()
		} else {
			x.stacks[i].wait += st.Nanos()
		}
	}
}

// thread adds a thread.
func (c *topCounter) thread(x *topThread, t *Top) {
	t.Samples += x.samples
	t.Cut += x.cut
	c.seen |= x.seen
	for _, s := range x.stacks {
		c.cpu += s.cpu
		c.allCPU += s.cpu
		c.wait += s.wait
		c.allWait += s.wait
		if tab := c.p.Table; s.id != 0 && tab.MethodOf(tab.Frame(s.id)).Kind == Unresolved {
			c.allUnnamed += s.cpu
		}
		c.add(s, t)
	}
}

// add adds a stack. Its frames stay open for the next one: stacks of a million frames, each one
// more than the last, take no hour.
func (c *topCounter) add(s topStack, t *Top) {
	tab := c.p.Table
	leaf, id := -1, c.shown(s.id)
	if s.off {
		leaf = tab.Methods()
		x := c.use(MethodID(leaf))
		x.cpuTotal += s.cpu
		x.waitTotal += s.wait
	} else if id != 0 {
		if leaf = c.methodOf(id); c.polls[leaf] {
			if c.allPolls += s.cpu; c.fold {
				// Both of its frames go to the caller.
				for leaf = -1; id != 0; {
					if leaf = c.methodOf(id); !c.polls[leaf] {
						break
					}
					leaf, id = -1, c.shown(tab.Parent(id))
				}
			}
		}
	}
	c.open(id)
	if n := len(c.path); n > 0 {
		c.path[n-1].cpu += s.cpu
		c.path[n-1].wait += s.wait
	}
	if leaf < 0 {
		t.NoStack += s.samples
		return
	}
	x := &c.sums[leaf]
	x.cpuSelf += s.cpu
	x.waitSelf += s.wait
	x.samples += s.samples
}

// methodOf returns the method of the innermost frame of a stack that has one.
func (c *topCounter) methodOf(id StackID) int { return int(c.p.Table.Method(c.p.Table.Frame(id))) }

// shown returns id without the innermost frames that are not shown.
func (c *topCounter) shown(id StackID) StackID {
	for id != 0 && c.skip[c.methodOf(id)] {
		id = c.p.Table.Parent(id)
	}
	return id
}

// use returns the sums of a method that is met.
func (c *topCounter) use(m MethodID) *topSum {
	x := &c.sums[m]
	if !x.used {
		x.used = true
		c.used = append(c.used, m)
	}
	return x
}

// open makes id the stack that is open. What a frame that closes has goes to its caller, and to its
// method if no frame of that is open below.
func (c *topCounter) open(id StackID) {
	d := c.stack.change(c.p.Table, id)
	for n := len(c.path) - 1; n >= d; n-- {
		f := &c.path[n]
		if x := &c.sums[f.m]; !c.skip[f.m] {
			if x.open--; x.open == 0 {
				x.cpuTotal += f.cpu
				x.waitTotal += f.wait
			}
		}
		if n > 0 {
			c.path[n-1].cpu += f.cpu
			c.path[n-1].wait += f.wait
		}
	}
	c.path = c.path[:d]
	for _, id := range c.stack.ids[d:] {
		m := MethodID(c.methodOf(id))
		if !c.skip[m] {
			c.use(m).open++
		}
		c.path = append(c.path, topFrame{m: m})
	}
}

// group takes what was counted since the last one.
func (c *topCounter) group(o TopOptions) TopGroup {
	c.open(0)
	g := TopGroup{CPU: text.Millis(c.cpu), Wait: text.Millis(c.wait), Methods: len(c.used)}
	byWait := o.Wait || c.cpu == 0
	if !byWait && c.wait > 0 {
		g.Waits = c.rows(o, true)
	}
	g.Rows = c.rows(o, byWait)
	for _, m := range c.used {
		x := &c.sums[m]
		if x.cpuSelf|x.cpuTotal != 0 {
			g.CPUMethods++
		}
		if x.waitSelf|x.waitTotal != 0 {
			g.WaitMethods++
		}
		*x = topSum{}
	}
	c.used, c.cpu, c.wait = c.used[:0], 0, 0
	return g
}

// rows are the first methods in the order of o.
func (c *topCounter) rows(o TopOptions, byWait bool) []TopRow {
	slices.SortFunc(c.used, func(i, j MethodID) int {
		a, b := &c.sums[i], &c.sums[j]
		keys := [4]int{
			cmp.Compare(b.cpuSelf, a.cpuSelf), cmp.Compare(b.cpuTotal, a.cpuTotal),
			cmp.Compare(b.waitSelf, a.waitSelf), cmp.Compare(b.waitTotal, a.waitTotal),
		}
		if o.Total {
			keys[0], keys[1], keys[2], keys[3] = keys[1], keys[0], keys[3], keys[2]
		}
		if byWait {
			keys[0], keys[1], keys[2], keys[3] = keys[2], keys[3], keys[0], keys[1]
		}
		return cmp.Or(keys[0], keys[1], keys[2], keys[3],
			strings.Compare(c.method(i).Full(), c.method(j).Full()), cmp.Compare(i, j))
	})
	n := len(c.used)
	if o.Limit > 0 {
		n = min(n, o.Limit)
	}
	rows := make([]TopRow, 0, n)
	for _, m := range c.used[:n] {
		x, me := &c.sums[m], c.method(m)
		rows = append(rows, TopRow{
			Method: shownName(me), Module: strings.ToValidUTF8(me.Module, "\uFFFD"),
			CPUSelf: text.Millis(x.cpuSelf), CPUTotal: text.Millis(x.cpuTotal), WaitSelf: text.Millis(x.waitSelf), WaitTotal: text.Millis(x.waitTotal), Samples: x.samples,
		})
	}
	return rows
}

// shownName is a method's full name, never empty.
func shownName(m Method) string { return cmp.Or(strings.ToValidUTF8(m.Full(), "\uFFFD"), "?") }

// method returns a method of sums.
func (c *topCounter) method(m MethodID) Method {
	if int(m) == c.p.Table.Methods() {
		return Method{Name: OffCPU, Kind: Synthetic}
	}
	return c.p.Table.MethodAt(m)
}
