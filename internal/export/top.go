package export

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/profile"
)

// TopOptions say what a Top counts and in which order its rows stand.
type TopOptions struct {
	Limit int // rows of each group; 0 is all
	// Total orders by total instead of self time.
	Total bool
	// Wait orders by waiting instead of CPU time.
	Wait     bool
	ByThread bool // a group of rows for each thread
	// FoldPolls charges what was sampled in Thread.PollGC to its callers: the sampler
	// stops threads there itself.
	FoldPolls bool
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
	// CPUOnly says that the samples were taken on a CPU only: nothing is known of waits.
	CPUOnly bool       `json:"cpu_only,omitempty"`
	Groups  []TopGroup `json:"groups"`

	o TopOptions
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

// NewTop counts p.
func NewTop(p *profile.Profile, o TopOptions) *Top {
	t := &Top{o: o, Duration: millis(p.Meta.End), CPUOnly: true}
	c := newTopCounter(p, o)
	for _, th := range p.Threads {
		n := c.thread(th, t)
		if n == 0 || !o.ByThread {
			continue
		}
		pr := processOf(th)
		g := c.group(o)
		g.Process, g.PID, g.Thread, g.TID, g.Samples = processName(pr), pr.PID, threadName(th), th.TID, n
		t.Groups = append(t.Groups, g)
	}
	if o.ByThread {
		slices.SortStableFunc(t.Groups, func(a, b TopGroup) int {
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
	t.CPU, t.Wait, t.Polls = millis(c.allCPU), millis(c.allWait), millis(c.allPolls)
	t.CPUOnly = t.CPUOnly && t.Samples > 0
	return t
}

func millis(ns int64) float64 { return float64(ns) / 1e6 }

// topSum is what a method adds up to, ns.
type topSum struct {
	cpuSelf, cpuTotal, waitSelf, waitTotal int64
	samples                                int
	met                                    uint32 // the stack that counted last
}

type topCounter struct {
	p     *profile.Profile
	skip  []bool
	polls []bool // by method: what FoldPolls folds
	fold  bool
	t     *timing

	sums      []topSum // by method
	used      []profile.MethodID
	stack     uint32
	cpu, wait int64 // since the last group

	allCPU, allWait, allPolls int64
}

func newTopCounter(p *profile.Profile, o TopOptions) *topCounter {
	c := &topCounter{p: p, skip: synthetic(p.Table), t: newTiming(p), fold: o.FoldPolls, sums: make([]topSum, p.Table.Methods())}
	c.polls = make([]bool, p.Table.Methods())
	for i := range c.polls {
		c.polls[i] = isPoll(p.Table.MethodAt(profile.MethodID(i)))
	}
	return c
}

// isPoll says whether a method is where a thread waits for a suspension that it ran
// into: System.Threading.Thread.PollGC and its local function.
func isPoll(m profile.Method) bool {
	return m.Module == "System.Private.CoreLib" &&
		(strings.HasPrefix(m.Name, "System.Threading.Thread.<PollGC>") || strings.HasPrefix(m.Name, "System.Threading.Thread.PollGC("))
}

// A topStack is one distinct stack of a thread.
type topStack struct {
	id        profile.StackID
	cpu, wait int64
	samples   int
}

// thread adds the samples of a thread and returns how many there are.
func (c *topCounter) thread(th *profile.Thread, t *Top) int {
	var stacks []topStack
	index := map[profile.StackID]int{}
	n := 0
	repairs := th.Repairs.Cursor()
	sts := c.t.stretches(th)
	for st, ok := sts.Next(); ok; st, ok = sts.Next() {
		n++
		if st.Cut != profile.Whole {
			if r := repairs.Of(st.Index); r == nil || strings.EqualFold(r.How, "bridge") {
				t.Cut++
			}
		}
		if st.Type != profile.SampleCPU {
			t.CPUOnly = false
		}
		i, ok := index[st.Stack]
		if !ok {
			i = len(stacks)
			index[st.Stack] = i
			stacks = append(stacks, topStack{id: st.Stack})
		}
		d := c.t.weight(&st)
		stacks[i].samples++
		if onCPU(st.Type) {
			stacks[i].cpu += d
			c.cpu += d
			c.allCPU += d
		} else {
			stacks[i].wait += d
			c.wait += d
			c.allWait += d
		}
	}
	t.Samples += n
	for _, s := range stacks {
		c.add(s, t)
	}
	return n
}

func (c *topCounter) add(s topStack, t *Top) {
	c.stack++
	tab := c.p.Table
	leaf := true
	for id := s.id; id != 0; id = tab.Parent(id) {
		m := tab.Method(tab.Frame(id))
		if c.skip[m] {
			continue
		}
		if leaf && c.polls[m] {
			if c.allPolls += s.cpu; c.fold {
				// Both of its frames go to the caller.
				for id = tab.Parent(id); id != 0 && c.polls[tab.Method(tab.Frame(id))]; id = tab.Parent(id) {
				}
				if id == 0 {
					break
				}
				m = tab.Method(tab.Frame(id))
			}
		}
		x := &c.sums[m]
		if x.met == 0 {
			c.used = append(c.used, m)
		}
		if leaf {
			leaf = false
			x.cpuSelf += s.cpu
			x.waitSelf += s.wait
			x.samples += s.samples
		}
		if x.met != c.stack {
			x.met = c.stack
			x.cpuTotal += s.cpu
			x.waitTotal += s.wait
		}
	}
	if leaf {
		t.NoStack += s.samples
	}
}

// group takes what was counted since the last one.
func (c *topCounter) group(o TopOptions) TopGroup {
	g := TopGroup{CPU: millis(c.cpu), Wait: millis(c.wait), Methods: len(c.used)}
	byWait := o.Wait || c.cpu == 0
	slices.SortFunc(c.used, func(i, j profile.MethodID) int {
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
			strings.Compare(c.p.Table.MethodAt(i).Full(), c.p.Table.MethodAt(j).Full()), cmp.Compare(i, j))
	})
	rows := len(c.used)
	if o.Limit > 0 {
		rows = min(rows, o.Limit)
	}
	g.Rows = make([]TopRow, 0, rows)
	for _, m := range c.used[:rows] {
		x, me := &c.sums[m], c.p.Table.MethodAt(m)
		g.Rows = append(g.Rows, TopRow{
			Method: cmp.Or(strings.ToValidUTF8(me.Full(), "\uFFFD"), "?"), Module: strings.ToValidUTF8(me.Module, "\uFFFD"),
			CPUSelf: millis(x.cpuSelf), CPUTotal: millis(x.cpuTotal), WaitSelf: millis(x.waitSelf), WaitTotal: millis(x.waitTotal), Samples: x.samples,
		})
	}
	for _, m := range c.used {
		c.sums[m] = topSum{}
	}
	c.used, c.cpu, c.wait = c.used[:0], 0, 0
	return g
}

// WriteJSON writes t as one JSON document.
func (t *Top) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

// WriteCSV writes a header and a row for each method.
func (t *Top) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"method", "module", "cpu_self_ms", "cpu_total_ms", "wait_self_ms", "wait_total_ms", "samples"}
	if t.o.ByThread {
		head = append([]string{"process", "pid", "thread", "tid"}, head...)
	}
	if err := c.Write(head); err != nil {
		return err
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, g := range t.Groups {
		for _, r := range g.Rows {
			row := []string{r.Method, r.Module, num(r.CPUSelf), num(r.CPUTotal), num(r.WaitSelf), num(r.WaitTotal), strconv.Itoa(r.Samples)}
			if t.o.ByThread {
				row = append([]string{g.Process, strconv.FormatInt(g.PID, 10), g.Thread, strconv.FormatInt(g.TID, 10)}, row...)
			}
			if err := c.Write(row); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// WriteText writes tables for people. Names are shortened where a line would be wider
// than width; 0 is any width.
func (t *Top) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	if t.Samples == 0 {
		return nil
	}
	waits := "waiting or in native code"
	if t.CPUOnly {
		waits = "" // the recorder took no samples of it
	}
	total := func(cpu, wait float64) string {
		s := ms3(cpu) + " ms on a CPU"
		if waits != "" {
			s += ", " + ms3(wait) + " ms " + waits
		}
		return s
	}
	for i, g := range t.Groups {
		if i > 0 {
			b.WriteByte('\n')
		}
		if t.o.ByThread {
			name := g.Thread
			if id := strconv.FormatInt(g.TID, 10); !strings.HasSuffix(name, id) {
				name += " (" + id + ")"
			}
			fmt.Fprintf(&b, "%s, %s (%d): ", oneLine(name), oneLine(g.Process), g.PID)
		}
		fmt.Fprintf(&b, "%s, in %s samples\n", total(g.CPU, g.Wait), thousands(int64(g.Samples)))
		t.table(&b, &g, width)
	}
	if t.Polls > 0 && !t.o.FoldPolls && t.Polls*20 > t.CPU {
		fmt.Fprintf(&b, "\n%.1f %% of the CPU samples are in Thread.PollGC, where the sampler itself stops threads; --fold-polls charges them to the callers.\n", 100*t.Polls/t.CPU)
	}
	if t.Cut > 0 {
		fmt.Fprintf(&b, "\n%s of %s stacks are cut: the totals of their outer methods are too low", thousands(int64(t.Cut)), thousands(int64(t.Samples)))
		if !t.o.Repaired {
			b.WriteString("; --repair puts back what can be known")
		}
		b.WriteString(".\n")
	}
	if t.NoStack > 0 {
		fmt.Fprintf(&b, "\n%s of %s samples have no stack.\n", thousands(int64(t.NoStack)), thousands(int64(t.Samples)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A topColumn is one figure of a row.
type topColumn struct {
	head  string
	value func(*TopRow) float64
	of    float64 // 100 %
}

func (t *Top) table(b *strings.Builder, g *TopGroup, width int) {
	cols := []topColumn{
		{"CPU SELF", func(r *TopRow) float64 { return r.CPUSelf }, g.CPU},
		{"CPU TOTAL", func(r *TopRow) float64 { return r.CPUTotal }, g.CPU},
	}
	waits := []topColumn{
		{"WAIT SELF", func(r *TopRow) float64 { return r.WaitSelf }, g.Wait},
		{"WAIT TOTAL", func(r *TopRow) float64 { return r.WaitTotal }, g.Wait},
	}
	switch {
	case t.CPUOnly:
	case t.o.Wait || g.CPU == 0:
		cols = append(waits, cols...)
	default:
		cols = append(cols, waits...)
	}
	// The narrowest terminals get the two columns that the order is by.
	if width > 0 && width < 100 {
		cols = cols[:2]
	}
	cells := make([][]string, len(g.Rows))
	wide := make([]int, len(cols))
	for i := range cols {
		wide[i] = len(cols[i].head)
	}
	for i := range g.Rows {
		for j, c := range cols {
			cell := ""
			if v := c.value(&g.Rows[i]); v > 0 {
				cell = fmt.Sprintf("%s %5.1f%%", ms3(v), 100*v/c.of)
			}
			cells[i] = append(cells[i], cell)
			wide[j] = max(wide[j], len(cell))
		}
	}
	used := 0
	for j, c := range cols {
		fmt.Fprintf(b, "%*s  ", wide[j], c.head)
		used += wide[j] + 2
	}
	b.WriteString("METHOD\n")
	for i, r := range g.Rows {
		for j := range cols {
			fmt.Fprintf(b, "%*s  ", wide[j], cells[i][j])
		}
		name := oneLine(r.Method)
		if width > 0 {
			name = Shorten(name, max(20, width-used))
		}
		b.WriteString(name)
		b.WriteByte('\n')
	}
	if more := g.Methods - len(g.Rows); more > 0 {
		fmt.Fprintf(b, "%*s%s more; --limit 0 shows all\n", used, "", thousands(int64(more)))
	}
}

// oneLine makes control characters visible: a method may be called anything, and a
// terminal obeys some of them.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// ms3 prints milliseconds: whole from 100 on.
func ms3(v float64) string {
	if v >= 99.95 {
		return thousands(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Shorten makes a full method name fit into width characters. It gives up first the
// arguments, then the module, then the namespace from its start; type and method
// stay. Generic arguments count as part of the type's name.
func Shorten(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	if i := argumentsAt(name); i > 0 && name[i:] != "()" {
		name = name[:i] + "(…)"
	}
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	if i := strings.IndexByte(name, '!'); i > 0 {
		name = name[i+1:]
	}
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	// Drop from the left at dots outside of brackets, but keep Type.Method.
	depth, last := 0, -1
	dots := []int{}
	for i, r := range name {
		switch r {
		case '[', '<', '(':
			depth++
		case ']', '>', ')':
			depth--
		case '.':
			if depth == 0 && i > 0 && last != i-1 { // the second dot of "..ctor" is part of the name
				dots = append(dots, i)
			}
			last = i
		}
	}
	for i := 0; i+1 < len(dots); i++ {
		if rest := name[dots[i]+1:]; 1+utf8.RuneCountInString(rest) <= width {
			return "…" + rest
		}
	}
	if len(dots) >= 2 {
		name = "…" + name[dots[len(dots)-2]+1:]
	}
	// Still too long: cut the middle.
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	if width < 3 {
		return string(runes[:max(0, width)])
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// argumentsAt returns where the arguments of a name begin: at the parenthesis that
// closes it. 0 if there are none.
func argumentsAt(name string) int {
	if !strings.HasSuffix(name, ")") {
		return 0
	}
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}
