package events

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// locks are the contentions and waits of a trace.
type locks struct {
	aside     *spool.Spool
	ended     lists[lockRecord]
	abandoned lists[lockRecord]  // left without a stop
	waits     lists[lockRecord]  // to be listed
	counts    map[int]*waitCount // of all waits, by process
	counted   []int              // the processes of these, in the order of their first
}

// A lockRecord is a contention, or a Wait.
type lockRecord struct {
	runtimeevents.Contention      // of a Wait the fields that it has, too
	monitorWait              bool // of a Wait
	open                     bool // nothing tells that it was over before the trace was
}

// A waitCount is how many waits a process had, and how many ends of contentions whose starts the
// trace does not hold.
type waitCount struct {
	waits, early  int
	earlyUntold   int   // of early, those of which nothing tells how long they took
	earlyTime     int64 // ns: how long the others took, before the trace too
	earlyMax      int64 // ns: the longest of them
	earlyRecorded int64 // ns: of earlyTime, what lies in the trace, and in the time that is wanted
}

// addEarly counts a contention whose start the trace does not hold.
func (w *waitCount) addEarly(x *runtimeevents.Contention, in interval.Interval) {
	w.early++
	if x.Duration == runtimeevents.Unknown {
		w.earlyUntold++
		return
	}
	w.earlyTime += x.Duration
	w.earlyMax = max(w.earlyMax, x.Duration)
	w.earlyRecorded += in.Part(max(x.Start, 0), max(x.Stop, 0))
}

// told says how many contentions lack their start, and how long they took.
func (w *waitCount) told() string {
	s := count(w.early, "wait") + " of which the trace lacks the beginning"
	switch {
	case w.earlyUntold == w.early:
		return s + ": for which lock and for how long is not told here."
	case w.earlyUntold > 0:
		s += fmt.Sprintf("; %s of them", thousands(w.early-w.earlyUntold))
	case w.early > 1:
		s += "; they"
	default:
		s += "; it"
	}
	s += " took " + duration(w.earlyTime)
	if w.early-w.earlyUntold > 1 {
		s += fmt.Sprintf(" in all, up to %s", duration(w.earlyMax))
	}
	if w.earlyRecorded < w.earlyTime {
		s += fmt.Sprintf(", of which %s lies in this time", duration(w.earlyRecorded))
	}
	return s + ". For which lock is not told."
}

// newLocks returns an empty list of locks; what it has no memory for goes to aside.
func newLocks(aside *spool.Spool) *locks {
	return &locks{aside: aside, ended: listsIn[lockRecord](aside), abandoned: listsIn[lockRecord](aside), waits: listsIn[lockRecord](aside), counts: map[int]*waitCount{}}
}

// add takes a contention; open says that nothing tells it to have been over before the trace was.
func (l *locks) add(x *runtimeevents.Contention, open bool) {
	if x.Stop == runtimeevents.Unknown {
		l.abandoned.add(x.Process, &lockRecord{Contention: *x, open: open})
	} else {
		l.ended.add(x.Process, &lockRecord{Contention: *x})
	}
}

// list has a wait listed.
func (l *locks) list(w *runtimeevents.Wait) {
	l.waits.add(w.Process, &lockRecord{Contention: runtimeevents.Contention{Process: w.Process, Thread: w.Thread, Start: w.Start, Stop: w.Stop, Object: w.Object, Stack: w.Stack}, monitorWait: w.MonitorWait})
}

// countOf returns the counts of a process.
func (l *locks) countOf(pid int) *waitCount {
	c := l.counts[pid]
	if c == nil {
		c = &waitCount{}
		l.counts[pid] = c
		l.counted = append(l.counted, pid)
	}
	return c
}

// pids are the processes that waited.
func (l *locks) pids() (pids []int) {
	known := map[int]bool{}
	for _, some := range [][]int{l.ended.pids, l.abandoned.pids, l.counted} {
		for _, pid := range some {
			if !known[pid] {
				known[pid] = true
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// inOrder returns the contentions of a list in the order of their starts, and equal ones as they
// are. They come in the order of their ends, which is nearly that of their starts.
func (l *locks) inOrder(of *spool.List[lockRecord]) *spool.List[lockRecord] {
	sorted, out := spool.SorterIn(l.aside, func(x *lockRecord) int64 { return x.Start }), spool.ListIn[lockRecord](l.aside)
	for c := of.From(0); c.Peek() != nil; c.Next() {
		sorted.Add(c.Peek())
	}
	for x := range sorted.Ascending {
		out.Add(x)
	}
	return out
}

// A contentionRow is a wait for a lock.
type contentionRow struct {
	K        string   `json:"k"` // contention, or start_without_stop
	PID      int      `json:"pid"`
	Start    float64  `json:"start_ms"`
	TID      uint64   `json:"tid"`
	Object   string   `json:"object,omitempty"`
	Lock     string   `json:"lock_id,omitempty"`
	Owner    *uint64  `json:"owner,omitempty"` // OS thread id; 0: it had let go already
	MS       *float64 `json:"ms,omitempty"`
	Duration *float64 `json:"duration_ms,omitempty"` // by the runtime's own clock
	Native   bool     `json:"native,omitempty"`
	Method   string   `json:"method,omitempty"` // who wanted the lock
	Frames   []string `json:"frames,omitempty"`
}

// A waitRow is a wait for an event, a task, a thread or Monitor.Wait, and for no lock.
type waitRow struct {
	K      string   `json:"k"`
	PID    int      `json:"pid"`
	Start  float64  `json:"start_ms"`
	TID    uint64   `json:"tid"`
	Source string   `json:"source"` // MonitorWait or Unknown
	Object string   `json:"object,omitempty"`
	MS     float64  `json:"ms"`
	Method string   `json:"method,omitempty"`
	Frames []string `json:"frames,omitempty"`
}

type locksStats struct {
	K       string  `json:"k"`
	PID     int     `json:"pid,omitempty"`
	Starts  int     `json:"starts"`
	Stops   int     `json:"stops"`
	NoStop  int     `json:"starts_without_stop"`
	NoStart int     `json:"stops_without_start"`
	Early   float64 `json:"stops_without_start_ms,omitempty"`
	Total   float64 `json:"total_ms"`
	Max     float64 `json:"max_ms"`
	Mean    float64 `json:"mean_ms"`
	P95     float64 `json:"p95_ms"`
	Locks   int     `json:"locks"`
	Threads int     `json:"threads"`
	Waits   int     `json:"waits"` // those for locks, too
}

// locksReport reports on contention.
func locksReport(l *locks, c *Context) *Report {
	r := &Report{Title: "Locks of " + c.Name, row: contentionRow{}, stats: locksStats{K: "stats"}, aside: l.aside}
	var stats []any
	for _, pid := range l.pids() {
		ended, abandoned, waits := l.inOrder(l.ended.list(pid)), l.inOrder(l.abandoned.list(pid)), l.inOrder(l.waits.list(pid))
		row := func(i int) any { return contentionRowOf(ptr(ended.At(i)), c) }
		r.Rows.add(ended.Len(), row)
		r.CSV.add(ended.Len(), row)
		noStop := func(i int) any { return contentionRowOf(ptr(abandoned.At(i)), c) }
		r.Rows.add(abandoned.Len(), noStop)
		r.CSV.add(abandoned.Len(), noStop)
		r.Rows.add(waits.Len(), func(i int) any { return waitRowOf(ptr(waits.At(i)), c) })
		sums := l.sum(ended, abandoned, c)
		s := locksStatsOf(pid, sums)
		n := l.countOf(pid)
		s.Waits, s.NoStart, s.Early = n.waits, n.early, text.Millis(n.earlyTime)
		stats = append(stats, s)
		sec := c.section(pid)
		sec.Verdict = locksVerdict(&s, sums, l.countOf(pid), c)
		sec.Tables = locksTables(ended, sums, c)
		sec.Plots = func() []Plot { return locksPlots(ended, sums, c) }
		r.Sections = append(r.Sections, sec)
	}
	r.Done = count(r.CSV.Len(), "wait") + " for locks"
	r.Rows.add(len(stats), func(i int) any { return stats[i] })
	return r
}

func contentionRowOf(x *lockRecord, c *Context) contentionRow {
	frames := c.frames(x.Stack)
	row := contentionRow{K: "contention", PID: x.Process, Start: text.Millis(x.Start), TID: x.Thread, Duration: told(x.Duration), Native: x.Native, Method: caller(frames), Frames: frames}
	if x.Stop < 0 {
		row.K = "start_without_stop"
	} else {
		row.MS = told(x.Wait())
	}
	if x.Lock != 0 || x.Object != 0 {
		row.Object, row.Lock, row.Owner = lockAddress(x.Object), lockAddress(x.Lock), ptr(x.Owner)
	}
	return row
}

func waitRowOf(w *lockRecord, c *Context) waitRow {
	frames := c.frames(w.Stack)
	row := waitRow{K: "wait", PID: w.Process, Start: text.Millis(w.Start), TID: w.Thread, Source: "Unknown", MS: text.Millis(w.Stop - w.Start), Method: caller(frames), Frames: frames}
	if w.monitorWait {
		row.Source = "MonitorWait"
	}
	if w.Object != 0 {
		row.Object = lockAddress(w.Object)
	}
	return row
}

func lockAddress(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// A lockSum is what waiting for one lock added up to, or in one method. A lock is known by its id; before
// .NET 8, which tells none, by the method that wanted it.
type lockSum struct {
	name            string
	waits           *durations
	inside          int64 // of waits, what lies in the time that is wanted
	threads, owners map[uint64]int
	methods         map[string]int
	noStops         int
}

// lockSums are what all contentions of a process add up to.
type lockSums struct {
	locks, methods []*lockSum // those that cost most first; a method without a stack is noStack
	all            lockSum
	worst          lockRecord // the one that took longest
	slow           longest
	cut            int   // waits of which a part lies in the time that is wanted
	open           int   // waits that may have gone on until the trace ended
	opened         int64 // of them, ns, what lies in the time that is wanted if they did
}

const noStack = "(no stack)"

func lockName(x *lockRecord) string {
	switch {
	case x.Lock != 0:
		return lockAddress(x.Lock)
	case x.Object != 0:
		return lockAddress(x.Object)
	}
	return ""
}

// sum adds up the contentions of a process.
func (l *locks) sum(ended, abandoned *spool.List[lockRecord], c *Context) *lockSums {
	newSum := func(name string) *lockSum {
		return &lockSum{name: name, waits: newDurations(l.aside), threads: map[uint64]int{}, owners: map[uint64]int{}, methods: map[string]int{}}
	}
	s := &lockSums{all: *newSum(""), slow: longest{n: c.cut(ended.Len())}}
	byLock, byMethod := map[string]*lockSum{}, map[string]*lockSum{}
	of := func(x *lockRecord, who string) *lockSum {
		key := cmp.Or(lockName(x), who)
		sum := byLock[key]
		if sum == nil {
			sum = newSum(lockName(x))
			byLock[key] = sum
			s.locks = append(s.locks, sum)
		}
		sum.threads[x.Thread]++
		if x.Owner != 0 {
			sum.owners[x.Owner]++
		}
		if who != "" {
			sum.methods[who]++
		}
		return sum
	}
	from := func(x *lockRecord, who string) *lockSum {
		who = cmp.Or(who, noStack)
		sum := byMethod[who]
		if sum == nil {
			sum = newSum(who)
			byMethod[who] = sum
			s.methods = append(s.methods, sum)
		}
		sum.threads[x.Thread]++
		s.all.threads[x.Thread]++
		return sum
	}
	for i := range ended.Len() {
		x := ended.At(i)
		wait, who := x.Wait(), caller(c.frames(x.Stack))
		inside := c.In.Part(x.Start, x.Start+wait)
		if inside != wait {
			s.cut++
		}
		lock, in := of(&x, who), from(&x, who)
		for _, sum := range []*lockSum{lock, in, &s.all} {
			sum.waits.add(wait)
			sum.inside += inside
		}
		if i == 0 || wait > s.worst.Wait() {
			s.worst = x
		}
		s.slow.add(wait, i)
	}
	for i := range abandoned.Len() {
		x := abandoned.At(i)
		who := caller(c.frames(x.Stack))
		for _, sum := range []*lockSum{of(&x, who), from(&x, who), &s.all} {
			sum.noStops++
		}
		if x.open {
			s.open++
			s.opened += c.In.Part(x.Start, max(0, c.In.From)+c.End)
		}
	}
	slices.SortStableFunc(s.locks, func(a, b *lockSum) int {
		return cmp.Or(cmp.Compare(b.inside, a.inside), cmp.Compare(b.waits.times.Len(), a.waits.times.Len()))
	})
	slices.SortStableFunc(s.methods, func(a, b *lockSum) int { return cmp.Compare(b.inside, a.inside) })
	return s
}

// where names the method that most often wanted the lock.
func (s *lockSum) where() string {
	names := ranked(s.methods, 1)
	if len(names) == 0 {
		return ""
	}
	if more := len(s.methods) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", names[0], more)
	}
	return names[0]
}

func locksStatsOf(pid int, sums *lockSums) locksStats {
	t := sums.all.waits.spread()
	return locksStats{
		K: "stats", PID: pid, Starts: t.Count + sums.all.noStops, Stops: t.Count, NoStop: sums.all.noStops, Total: text.Millis(sums.all.inside), Max: text.Millis(t.Max), Mean: text.Millis(t.Mean), P95: text.Millis(t.P95),
		Locks: len(sums.locks), Threads: len(sums.all.threads),
	}
}

func locksVerdict(s *locksStats, sums *lockSums, counts *waitCount, c *Context) (v []string) {
	var early []string
	if s.NoStart > 0 {
		early = []string{counts.told()}
	}
	if s.Starts == 0 {
		if early != nil {
			return early
		}
		if c.Lost > 0 {
			return []string{"The trace tells no wait for a lock."}
		}
		return []string{"No thread waited for a lock."}
	}
	first := sums.locks[0]
	which, one := count(s.Locks, "lock"), "one lock"
	if !slices.ContainsFunc(sums.locks, func(l *lockSum) bool { return l.name != "" }) {
		which, one = "locks in "+count(s.Locks, "method"), "locks" // before .NET 8 nothing tells which
	}
	hung := "" // what may be most of the waiting
	if sums.opened >= c.End/10 && c.End > 0 {
		hung = fmt.Sprintf(" %s of them may have gone on until the trace ended, as in a deadlock, for %s in all.", thousands(sums.open), duration(sums.opened))
	}
	waited := fmt.Sprintf("%s waited for %s, ", count(s.Threads, "thread"), which)
	if s.Stops == 0 {
		return append([]string{waited + count(s.NoStop, "time") + ". For how long is not known: none of these waits has an end, which Lock.TryEnter that gives up does not tell, nor a trace that ends before." + hung}, early...)
	}
	total := nanos(s.Total)
	judged := "That is little."
	all := total + counts.earlyRecorded
	switch {
	case all >= c.End/10 && c.End > 0 && counts.earlyRecorded > 0:
		judged = "With those that lack their beginning, on average " + digits(float64(all)/float64(c.End)) + " threads stood waiting."
	case all >= c.End/10 && c.End > 0:
		judged = "On average " + digits(float64(total)/float64(c.End)) + " threads stood waiting."
	case hung != "":
		judged = "Those with an end are little."
	}
	v = append(v, fmt.Sprintf("%s%s, %s in all while %s passed. %s", waited, count(s.Stops, "time"), duration(total), duration(c.End), judged))
	if where := first.where(); where != "" && total > 0 {
		t := first.waits.spread()
		v = append(v, fmt.Sprintf("%s of it for %s, in %s: %s of %s, up to %s.", report.Percent(float64(first.inside), float64(total)), one, short(where),
			count(t.Count, "wait"), duration(t.Mean)+" on average", duration(t.Max)))
	}
	worst := &sums.worst
	line := fmt.Sprintf("The longest wait took %s, at %s on thread %d", duration(worst.Wait()), at(worst.Start), worst.Thread)
	if worst.Owner != 0 {
		line += fmt.Sprintf("; thread %d held the lock", worst.Owner)
	}
	v = append(v, line+".")
	v = append(v, cutNote(sums.cut, "wait")...)
	if s.NoStop > 0 {
		v = append(v, fmt.Sprintf("%s without an end: Lock.TryEnter gave up, Thread.Interrupt ended it, or the trace ended or lost it.%s", count(s.NoStop, "more wait"), hung))
	}
	return append(v, early...)
}

func locksTables(ended *spool.List[lockRecord], sums *lockSums, c *Context) []Table {
	if len(sums.locks) == 0 {
		return nil
	}
	n := c.cut(len(sums.locks))
	byLock := Table{Head: []string{"waits", "time", "mean", "p95", "max", "threads", "owners", "lock", "wanted by"}, Left: 7, Spare: []string{"p95", "owners", "mean", "threads"}, More: len(sums.locks) - n}
	for _, s := range sums.locks[:n] {
		t := s.spread()
		byLock.Rows = append(byLock.Rows, []string{t.waits, t.time, t.mean, t.p95, t.max, thousands(len(s.threads)), thousands(len(s.owners)), s.name, s.where()})
	}
	n = c.cut(len(sums.methods))
	byMethod := Table{Title: "By the method that wanted the lock", Head: []string{"waits", "time", "mean", "max", "threads", "method"}, Left: 5, Spare: []string{"mean"}, More: len(sums.methods) - n}
	for _, s := range sums.methods[:n] {
		t := s.spread()
		byMethod.Rows = append(byMethod.Rows, []string{t.waits, t.time, t.mean, t.max, thousands(len(s.threads)), s.name})
	}
	numbers := sums.slow.numbers()
	slow := Table{Title: "Longest waits", Head: []string{"at", "wait", "thread", "owner", "lock", "method"}, Left: 4, Spare: []string{"owner"}, More: ended.Len() - len(numbers)}
	for _, i := range numbers {
		x := ended.At(i)
		owner := ""
		if x.Owner != 0 {
			owner = strconv.FormatUint(x.Owner, 10)
		}
		slow.Rows = append(slow.Rows, []string{at(x.Start), duration(x.Wait()), strconv.FormatUint(x.Thread, 10), owner, lockName(&x), caller(c.frames(x.Stack))})
	}
	return slices.DeleteFunc([]Table{byLock, byMethod, slow}, func(t Table) bool { return len(t.Rows) == 0 })
}

// lockCells are what tables tell of a sum: of waits without an end no time.
type lockCells struct{ waits, time, mean, p95, max string }

func (s *lockSum) spread() lockCells {
	t := s.waits.spread()
	c := lockCells{waits: thousands(t.Count)}
	if s.noStops > 0 {
		c.waits += "+" + strconv.Itoa(s.noStops)
	}
	if t.Count > 0 {
		c.time, c.mean, c.p95, c.max = duration(s.inside), duration(t.Mean), duration(t.P95), duration(t.Max)
	}
	return c
}

// maxColours is how many locks of a plot have a colour of their own.
const maxColours = 4

func locksPlots(ended *spool.List[lockRecord], sums *lockSums, c *Context) []Plot {
	first := sums.locks[:min(len(sums.locks), maxColours)]
	index := map[string]int{}
	for i, s := range first {
		index[s.name] = i
	}
	waits := make([]peaks, len(first)+1) // the last one: of other locks
	for i := range ended.Len() {
		x := ended.At(i)
		k, ok := index[lockName(&x)]
		if !ok {
			k = len(first)
		}
		waits[k].add(x.Start, text.Millis(x.Wait()), i)
	}
	tip := func(p *peak) string {
		x := ended.At(p.n)
		return duration(x.Wait()) + " in " + caller(c.frames(x.Stack))
	}
	plot := Plot{Title: "Waits", Unit: "ms"}
	for i := range waits {
		name := "other locks"
		if i < len(first) {
			name = cmp.Or(first[i].name, "lock")
		}
		plot.Series = append(plot.Series, waits[i].series(name, Bars, tip))
	}
	return []Plot{plot}
}
