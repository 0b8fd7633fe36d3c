package events

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// Locks are the contentions and waits of a trace. The zero value is ready for use.
type Locks struct {
	Contentions []*runtimeevents.Contention // ended
	Abandoned   []*runtimeevents.Contention // left without a stop
	Waits       []*runtimeevents.Wait       // to be listed
	Waited      []WaitCount                 // by process, in the order of the first: of all waits
}

// A WaitCount is how many waits a process had.
type WaitCount struct{ Process, Waits int }

// waited counts a wait.
func (l *Locks) waited(w *runtimeevents.Wait) {
	i := slices.IndexFunc(l.Waited, func(c WaitCount) bool { return c.Process == w.Process })
	if i < 0 {
		i = len(l.Waited)
		l.Waited = append(l.Waited, WaitCount{Process: w.Process})
	}
	l.Waited[i].Waits++
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

// A waitRow is a wait for an event, a task, a thread or Monitor.Wait. Those of contended locks
// are among them.
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
	Total   float64 `json:"total_ms"`
	Max     float64 `json:"max_ms"`
	Mean    float64 `json:"mean_ms"`
	P95     float64 `json:"p95_ms"`
	Locks   int     `json:"locks"`
	Threads int     `json:"threads"`
	Waits   int     `json:"waits"`
}

// LocksReport reports on contention.
func LocksReport(l *Locks, c *Context) *Report {
	r := &Report{Title: "Locks of " + c.Name, row: contentionRow{}, stats: locksStats{K: "stats"}}
	var pids []int
	note := func(pid int) {
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	for _, x := range l.Contentions {
		note(x.Process)
	}
	for _, x := range l.Abandoned {
		note(x.Process)
	}
	for _, x := range l.Waited {
		note(x.Process)
	}
	slices.SortStableFunc(l.Contentions, func(a, b *runtimeevents.Contention) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(l.Abandoned, func(a, b *runtimeevents.Contention) int { return cmp.Compare(a.Start, b.Start) })
	var stats []any
	for _, pid := range pids {
		ended, abandoned := ofProcess(l.Contentions, pid), ofProcess(l.Abandoned, pid)
		row := func(i int) any { return contentionRowOf(ended[i], c) }
		r.Rows.add(len(ended), row)
		r.CSV.add(len(ended), row)
		r.Rows.add(len(abandoned), func(i int) any { return contentionRowOf(abandoned[i], c) })
		var own []*runtimeevents.Wait
		for _, w := range l.Waits {
			if w.Process == pid {
				own = append(own, w)
			}
		}
		r.Rows.add(len(own), func(i int) any { return waitRowOf(own[i], c) })
		sums := sumLocks(ended, abandoned, c)
		n := 0
		for _, x := range l.Waited {
			if x.Process == pid {
				n = x.Waits
			}
		}
		s := locksStatsOf(pid, ended, abandoned, sums, n)
		stats = append(stats, s)
		sec := c.section(pid)
		sec.Verdict = locksVerdict(ended, &s, sums, c)
		sec.Tables = locksTables(ended, sums, c)
		sec.Plots = func() []Plot { return locksPlots(ended, sums, c) }
		r.Sections = append(r.Sections, sec)
	}
	r.Done = count(r.CSV.Len(), "wait") + " for locks"
	r.Rows.add(len(stats), func(i int) any { return stats[i] })
	return r
}

func ofProcess(list []*runtimeevents.Contention, pid int) (own []*runtimeevents.Contention) {
	for _, x := range list {
		if x.Process == pid {
			own = append(own, x)
		}
	}
	return own
}

func contentionRowOf(x *runtimeevents.Contention, c *Context) contentionRow {
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

func waitRowOf(w *runtimeevents.Wait, c *Context) waitRow {
	frames := c.frames(w.Stack)
	row := waitRow{K: "wait", PID: w.Process, Start: text.Millis(w.Start), TID: w.Thread, Source: "Unknown", MS: text.Millis(w.Stop - w.Start), Method: caller(frames), Frames: frames}
	if w.MonitorWait {
		row.Source = "MonitorWait"
	}
	if w.Object != 0 {
		row.Object = lockAddress(w.Object)
	}
	return row
}

func lockAddress(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// A lockSum is what waiting for one lock added up to. A lock is known by its id; before
// .NET 8, which tells none, by the method that wanted it.
type lockSum struct {
	name            string
	waits           []int64
	spread          spread
	threads, owners map[uint64]int
	methods         map[string]int
	noStops         int
}

func lockName(x *runtimeevents.Contention) string {
	switch {
	case x.Lock != 0:
		return lockAddress(x.Lock)
	case x.Object != 0:
		return lockAddress(x.Object)
	}
	return ""
}

func sumLocks(ended, abandoned []*runtimeevents.Contention, c *Context) []*lockSum {
	by := map[string]*lockSum{}
	var sums []*lockSum
	of := func(x *runtimeevents.Contention) *lockSum {
		who := caller(c.frames(x.Stack))
		key := cmp.Or(lockName(x), who)
		s := by[key]
		if s == nil {
			s = &lockSum{name: lockName(x), threads: map[uint64]int{}, owners: map[uint64]int{}, methods: map[string]int{}}
			by[key] = s
			sums = append(sums, s)
		}
		s.threads[x.Thread]++
		if x.Owner != 0 {
			s.owners[x.Owner]++
		}
		if who != "" {
			s.methods[who]++
		}
		return s
	}
	for _, x := range ended {
		s := of(x)
		s.waits = append(s.waits, x.Wait())
	}
	for _, x := range abandoned {
		of(x).noStops++
	}
	for _, s := range sums {
		s.spread = spreadOf(s.waits)
	}
	slices.SortStableFunc(sums, func(a, b *lockSum) int {
		return cmp.Or(cmp.Compare(b.spread.Sum, a.spread.Sum), cmp.Compare(len(b.waits), len(a.waits)))
	})
	return sums
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

func locksStatsOf(pid int, ended, abandoned []*runtimeevents.Contention, sums []*lockSum, waits int) locksStats {
	threads := map[uint64]bool{}
	var all []int64
	for _, x := range ended {
		threads[x.Thread] = true
		all = append(all, x.Wait())
	}
	t := spreadOf(all)
	return locksStats{
		K: "stats", PID: pid, Starts: len(ended) + len(abandoned), Stops: len(ended), NoStop: len(abandoned), Total: text.Millis(t.Sum), Max: text.Millis(t.Max), Mean: text.Millis(t.Mean), P95: text.Millis(t.P95),
		Locks: len(sums), Threads: len(threads), Waits: waits,
	}
}

func locksVerdict(ended []*runtimeevents.Contention, s *locksStats, sums []*lockSum, c *Context) (v []string) {
	if s.Starts == 0 {
		return []string{"No thread waited for a lock."}
	}
	total := nanos(s.Total)
	judged := "Little of the time of the threads goes there."
	if total >= c.End/10 {
		judged = "Much of the time of the threads goes there."
	}
	v = append(v, fmt.Sprintf("%s waited for %s, %s, %s in all while %s passed. %s",
		count(s.Threads, "thread"), count(s.Locks, "lock"), count(s.Stops, "time"), duration(total), duration(c.End), judged))
	top := sums[0]
	if where := top.where(); where != "" && total > 0 {
		v = append(v, fmt.Sprintf("%s of it for one lock, in %s: %s of %s, up to %s.", percent(float64(top.spread.Sum), float64(total)), short(where),
			count(top.spread.Count, "wait"), duration(top.spread.Mean)+" on average", duration(top.spread.Max)))
	}
	if len(ended) > 0 {
		worst := slices.MaxFunc(ended, func(a, b *runtimeevents.Contention) int { return cmp.Compare(a.Wait(), b.Wait()) })
		line := fmt.Sprintf("The longest wait took %s, at %s on thread %d", duration(worst.Wait()), at(worst.Start), worst.Thread)
		if worst.Owner != 0 {
			line += fmt.Sprintf("; thread %d held the lock", worst.Owner)
		}
		v = append(v, line+".")
	}
	if s.NoStop > 0 {
		v = append(v, fmt.Sprintf("%s without an end: Lock.TryEnter gave up, or the trace ended.", count(s.NoStop, "wait")))
	}
	return v
}

func locksTables(ended []*runtimeevents.Contention, sums []*lockSum, c *Context) []Table {
	if len(sums) == 0 {
		return nil
	}
	n := c.cut(len(sums))
	byLock := Table{Head: []string{"waits", "time", "mean", "p95", "max", "threads", "owners", "lock", "wanted by"}, Left: 7, Spare: []string{"p95", "owners", "mean", "threads"}, More: len(sums) - n}
	for _, s := range sums[:n] {
		waits := thousands(len(s.waits))
		if s.noStops > 0 {
			waits += "+" + strconv.Itoa(s.noStops)
		}
		t := s.spread
		byLock.Rows = append(byLock.Rows, []string{waits, duration(t.Sum), duration(t.Mean), duration(t.P95), duration(t.Max), thousands(len(s.threads)), thousands(len(s.owners)), s.name, s.where()})
	}

	byStack := map[string]*lockSum{}
	var stacks []*lockSum
	for _, x := range ended {
		who := cmp.Or(caller(c.frames(x.Stack)), "(no stack)")
		s := byStack[who]
		if s == nil {
			s = &lockSum{name: who, threads: map[uint64]int{}}
			byStack[who] = s
			stacks = append(stacks, s)
		}
		s.waits = append(s.waits, x.Wait())
		s.threads[x.Thread]++
	}
	for _, s := range stacks {
		s.spread = spreadOf(s.waits)
	}
	slices.SortStableFunc(stacks, func(a, b *lockSum) int { return cmp.Compare(b.spread.Sum, a.spread.Sum) })
	n = c.cut(len(stacks))
	byMethod := Table{Title: "By the method that wanted the lock", Head: []string{"waits", "time", "mean", "max", "threads", "method"}, Left: 5, Spare: []string{"mean"}, More: len(stacks) - n}
	for _, s := range stacks[:n] {
		byMethod.Rows = append(byMethod.Rows, []string{thousands(len(s.waits)), duration(s.spread.Sum), duration(s.spread.Mean), duration(s.spread.Max), thousands(len(s.threads)), s.name})
	}

	longest := slices.Clone(ended)
	slices.SortStableFunc(longest, func(a, b *runtimeevents.Contention) int { return cmp.Compare(b.Wait(), a.Wait()) })
	n = c.cut(len(longest))
	slow := Table{Title: "Longest waits", Head: []string{"at", "wait", "thread", "owner", "lock", "method"}, Left: 4, Spare: []string{"owner"}, More: len(longest) - n}
	for _, x := range longest[:n] {
		owner := ""
		if x.Owner != 0 {
			owner = strconv.FormatUint(x.Owner, 10)
		}
		slow.Rows = append(slow.Rows, []string{at(x.Start), duration(x.Wait()), strconv.FormatUint(x.Thread, 10), owner, lockName(x), caller(c.frames(x.Stack))})
	}
	return []Table{byLock, byMethod, slow}
}

// maxColours is how many locks of a plot have a colour of their own.
const maxColours = 4

func locksPlots(ended []*runtimeevents.Contention, sums []*lockSum, c *Context) []Plot {
	series := make([]PlotSeries, 0, maxColours+1)
	index := map[string]int{}
	for _, s := range sums[:min(len(sums), maxColours)] {
		index[s.name] = len(series)
		series = append(series, PlotSeries{Name: cmp.Or(s.name, "lock"), Style: Bars})
	}
	rest := PlotSeries{Name: "other locks", Style: Bars}
	for _, x := range ended {
		s := &rest
		if i, ok := index[lockName(x)]; ok {
			s = &series[i]
		}
		s.add(x.Start, text.Millis(x.Wait()), duration(x.Wait())+" in "+caller(c.frames(x.Stack)))
	}
	return []Plot{{Title: "Waits", Unit: "ms", Series: append(series, rest)}}
}
