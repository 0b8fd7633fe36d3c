package events

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A gcRecord is a collection as it is kept: there may be millions.
type gcRecord struct {
	runtimeevents.Collection
	gcTimes
	gcRoots
}

// gcTimes are those that a collection took, ns.
type gcTimes struct {
	pause, pauseStart, suspend, waking int64 // of the last three Unknown where not told
	inside                             int64 // of pause, what lies in the time that is wanted
	untold                             bool  // the trace lacks the start or the end of the pause, which then is 0
}

// gcRoots are what a collection marked by.
type gcRoots struct {
	roots  uint16                          // a bit for each kind that something was marked by
	marked [runtimeevents.Roots + 1]uint64 // bytes by kind, the last one for those without a name
}

// recordOf returns what is kept of g, of which a part may lie in the time that is wanted.
func recordOf(g *runtimeevents.GC, in interval.Interval) *gcRecord {
	r := &gcRecord{Collection: g.Collection, gcTimes: gcTimes{g.Pause(), g.PauseStart(), g.Suspend(), g.Waking(), g.PauseIn(in.Bounds()), !g.PauseTold()}}
	if r.untold {
		r.pause, r.inside = 0, 0
	}
	if !g.PauseStartTold() {
		r.pauseStart = runtimeevents.Unknown
	}
	if !g.SuspendTold() {
		r.suspend = runtimeevents.Unknown
	}
	if !g.WakingTold() {
		r.waking = runtimeevents.Unknown
	}
	for _, m := range g.Marks {
		kind := min(int(m.Kind), runtimeevents.Roots)
		r.roots |= 1 << kind
		r.marked[kind] += m.Bytes
	}
	return r
}

// A gcProcess is one process, whose collections are in a list, in order of their start.
type gcProcess struct {
	*runtimeevents.GCProcess
	list   *spool.List[gcRecord]
	before *heapSizes // after the last collection before those of the list, nil if not told
	ticked uint64     // bytes that ticks in the time that is wanted tell
}

// measures reports whether what was allocated until the next collection can be told from the sizes
// after g. A background collection's are those of its end, when the program has gone on.
func measures(g *runtimeevents.Collection) bool { return g.HasSizes && g.HasHistory && !g.Concurrent }

// heapSizes are those of the generations behind a collection without the free space, which objects
// are allocated in: the heap of a program that frees as many large ones as it allocates does not
// grow, nor does generation 0 where pinned objects keep it in its place.
type heapSizes struct {
	time int64 // ns, of the collection
	gen  generationArray

	swept   generationArray // of a background collection that began since, at its end
	sweptAt int64           // ns, 0: of none
}

func sizesAfter(g *runtimeevents.Collection) *heapSizes {
	a := &heapSizes{time: g.Start}
	for i := range g.Gen {
		a.gen[i] = g.Gen[i].After - min(g.Gen[i].After, g.Gen[i].Fragmentation)
	}
	return a
}

// behind returns the sizes behind g, where a was told before it; nil if nothing tells them.
func (a *heapSizes) behind(g *runtimeevents.Collection) *heapSizes {
	if measures(g) {
		after := sizesAfter(g)
		if a != nil && a.sweptAt > g.Start {
			after.swept, after.sweptAt = a.swept, a.sweptAt
		}
		return after
	}
	if a != nil && g.HasHistory {
		a.grown(g)
		if g.HasSizes && g.Concurrent && g.End > g.Start {
			a.swept, a.sweptAt = sizesAfter(g).gen, g.End
		}
	}
	return a
}

// largeObjects is the first of the generations that are no numbers: large ones, and pinned ones.
const largeObjects = 3

// grown returns by how much the generations that objects are allocated in grew until g began, and
// sets a to their sizes then. What a background collection frees meanwhile is not told apart from
// what is allocated: they grew by no less than since it began, nor than since it ended.
func (a *heapSizes) grown(g *runtimeevents.Collection) (sum uint64) {
	swept := a.sweptAt > 0 && a.sweptAt <= g.Start
	for i := range g.Gen {
		if i > 0 && i < largeObjects {
			continue
		}
		if swept {
			a.gen[i] = min(a.gen[i], a.swept[i])
		}
		now := g.Gen[i].Before - min(g.Gen[i].Before, g.Gen[i].FragmentationBefore)
		sum += now - min(now, a.gen[i])
		a.gen[i] = now
	}
	if swept {
		a.sweptAt = 0
	}
	return sum
}

type generationArray = [runtimeevents.Generations]uint64

// A gcRow is one collection. Sizes are in bytes; arrays list generation 0, 1, 2, large and
// pinned objects.
type gcRow struct {
	K             string            `json:"k"`
	PID           int               `json:"pid"`
	Number        uint32            `json:"number"`
	Generation    uint32            `json:"generation"`
	Type          string            `json:"type"`
	Concurrent    bool              `json:"concurrent"`
	Reason        string            `json:"reason"`
	ReasonNumber  uint32            `json:"reason_number"`
	Induced       bool              `json:"induced"`
	Start         float64           `json:"start_ms"`
	PauseStart    *float64          `json:"pause_start_ms,omitempty"`
	Pause         *float64          `json:"pause_ms,omitempty"` // nil: the trace lacks its start or end
	Suspend       *float64          `json:"suspend_ms,omitempty"`
	Waking        *float64          `json:"waking_ms,omitempty"`
	Duration      *float64          `json:"duration_ms,omitempty"`
	Heaps         uint32            `json:"heaps,omitempty"`
	Before        *uint64           `json:"heap_before_bytes,omitempty"`
	After         *uint64           `json:"heap_after_bytes,omitempty"`
	Promoted      *uint64           `json:"promoted_bytes,omitempty"`
	Fragmentation *uint64           `json:"fragmentation_bytes,omitempty"`
	GenBefore     *generationArray  `json:"gen_before_bytes,omitempty"`
	GenAfter      *generationArray  `json:"gen_after_bytes,omitempty"`
	GenPromoted   *generationArray  `json:"gen_promoted_bytes,omitempty"`
	GenFree       *generationArray  `json:"gen_fragmentation_bytes,omitempty"`
	GenIn         *generationArray  `json:"gen_in_bytes,omitempty"`
	GenOut        *generationArray  `json:"gen_out_bytes,omitempty"`
	GenBudget     *generationArray  `json:"gen_budget_bytes,omitempty"`
	Survival      []*float64        `json:"survival_percent,omitempty"`
	Allocated     *uint64           `json:"allocated_bytes,omitempty"`
	Pinned        *uint32           `json:"pinned_objects,omitempty"`
	Handles       *uint32           `json:"handles,omitempty"`
	Finalization  *uint64           `json:"finalization_promoted,omitempty"`
	Mechanisms    string            `json:"mechanisms,omitempty"`
	PauseMode     string            `json:"pause_mode,omitempty"`
	Pressure      uint32            `json:"memory_pressure,omitempty"`
	Committed     *uint64           `json:"committed_before_bytes,omitempty"`
	CommittedEnd  *uint64           `json:"committed_after_bytes,omitempty"`
	Marks         map[string]uint64 `json:"marked_bytes,omitempty"` // by kind of root
	Frames        []string          `json:"frames,omitempty"`       // of who asked
}

type gcStats struct {
	K              string   `json:"k"`
	PID            int      `json:"pid,omitempty"`
	Count          int      `json:"count"`
	Incomplete     int      `json:"count_incomplete"`
	ByGeneration   [3]int   `json:"by_generation"`
	Background     int      `json:"background"`
	FellBack       int      `json:"fell_back_to_blocking"`
	Induced        int      `json:"induced"`
	Pause          float64  `json:"total_pause_ms"`
	OtherPause     float64  `json:"pause_without_gc_ms"`
	MaxPause       float64  `json:"max_pause_ms"`
	MeanPause      float64  `json:"mean_pause_ms"`
	P50            float64  `json:"p50_pause_ms"`
	P95            float64  `json:"p95_pause_ms"`
	P99            float64  `json:"p99_pause_ms"`
	MaxSuspend     float64  `json:"max_suspend_ms"`
	PausePercent   float64  `json:"gc_pause_percent"`
	Promoted       *uint64  `json:"total_promoted_bytes,omitempty"`
	Allocated      *uint64  `json:"total_allocated_bytes,omitempty"`
	AllocatedBy    string   `json:"allocated_by,omitempty"` // ticks: told; heap_sizes: estimated from the sizes of generation 0 and of large objects
	AllocationRate *float64 `json:"allocation_mb_s,omitempty"`
	MaxHeap        *uint64  `json:"max_heap_bytes,omitempty"`
	MeanHeap       *uint64  `json:"mean_heap_after_bytes,omitempty"`
	LiveFirst      *uint64  `json:"live_first_bytes,omitempty"` // with LiveLast and LiveGrows: nil of too few collections of generation 2
	LiveLast       *uint64  `json:"live_last_bytes,omitempty"`
	LiveGrows      *bool    `json:"live_grows,omitempty"`
	Server         bool     `json:"is_server"`
	Heaps          uint32   `json:"heaps,omitempty"`
	Finalized      uint64   `json:"finalized"`
	Finalizing     float64  `json:"finalizing_ms"`
	Duration       float64  `json:"process_duration_ms"`
}

// gcReport reports on the collections of a trace. What it sums up of millions goes to aside.
func gcReport(procs []*gcProcess, aside *spool.Spool, c *Context) *Report {
	r := &Report{Title: "Garbage collections of " + c.Name, row: gcRow{}, stats: gcStats{K: "stats"}, aside: aside}
	var stats []any
	for _, p := range procs {
		sums := sumGCs(p, aside, c)
		s := gcStatsOf(p, sums, c)
		row := func(i int) any {
			g := p.list.At(i)
			return gcRowOf(p.PID, &g, p.Ticks > 0, c)
		}
		r.Rows.add(p.list.Len(), row)
		r.CSV.add(p.list.Len(), row)
		stats = append(stats, s)
		sec := c.section(p.PID)
		sec.Verdict = gcVerdict(p, sums, &s, c)
		sec.Tables = gcTables(p, sums, c)
		sec.Plots = func() []Plot { return gcPlots(p) }
		r.Sections = append(r.Sections, sec)
	}
	r.Done = count(r.CSV.Len(), "collection")
	if slices.ContainsFunc(stats, func(s any) bool { g := s.(gcStats).LiveGrows; return g != nil && *g }) {
		r.Done += ", memory grows" // one of thousands of recordings in a batch, perhaps
	}
	r.Rows.add(len(stats), func(i int) any { return stats[i] })
	return r
}

func gcRowOf(pid int, g *gcRecord, ticks bool, c *Context) gcRow {
	row := gcRow{
		K: "gc", PID: pid, Number: g.Number, Generation: g.Generation, Type: g.Type.String(), Concurrent: g.Concurrent,
		Reason: g.Reason.String(), ReasonNumber: uint32(g.Reason), Induced: g.Reason.Induced(),
		Start: text.Millis(g.Start), PauseStart: told(g.pauseStart), Suspend: told(g.suspend), Waking: told(g.waking),
		Heaps: g.Heaps, Mechanisms: strings.Join(g.Mechanisms.Names(), ", "), Pressure: g.MemoryPressure, Frames: c.frames(g.Stack),
	}
	if !g.untold {
		row.Pause = told(g.pause)
	}
	if g.End >= 0 {
		row.Duration = told(g.Duration())
	}
	if g.Heaps > 0 {
		row.PauseMode = g.PauseMode.String()
	}
	generations := func(of func(*runtimeevents.Generation) uint64) *generationArray {
		var a generationArray
		for i := range g.Gen {
			a[i] = of(&g.Gen[i])
		}
		return &a
	}
	if g.HasSizes {
		row.After, row.Promoted = ptr(g.After()), ptr(g.Promoted())
		row.GenAfter = generations(func(g *runtimeevents.Generation) uint64 { return g.After })
		row.GenPromoted = generations(func(g *runtimeevents.Generation) uint64 { return g.Promoted })
		row.Pinned, row.Handles, row.Finalization = ptr(g.Pinned), ptr(g.Handles), ptr(g.FinalizationPromoted)
	}
	if g.HasHistory {
		row.Before = ptr(g.Before())
		row.GenBefore = generations(func(g *runtimeevents.Generation) uint64 { return g.Before })
		if !g.Concurrent || g.HasSizes { // the free space in a heap of a size that is not known would be that of another time
			row.Fragmentation = ptr(g.Fragmentation())
			row.GenFree = generations(func(g *runtimeevents.Generation) uint64 { return g.Fragmentation })
		}
		row.GenIn = generations(func(g *runtimeevents.Generation) uint64 { return g.In })
		row.GenOut = generations(func(g *runtimeevents.Generation) uint64 { return g.Out })
		row.GenBudget = generations(func(g *runtimeevents.Generation) uint64 { return g.Budget })
		for i := range g.Gen {
			var v *float64
			known := g.HasSizes || g.Gen[i].Out > 0 // or nothing tells what is left of it
			if s, ok := g.Gen[i].Survival(); ok && known && (uint32(i) <= g.Generation || g.Generation == 2) {
				v = ptr(s)
			}
			row.Survival = append(row.Survival, v)
		}
	}
	if ticks && g.AllocatedTold {
		row.Allocated = ptr(g.Allocated)
	}
	if g.CommittedBefore > 0 {
		row.Committed = ptr(g.CommittedBefore)
	}
	if g.CommittedAfter > 0 {
		row.CommittedEnd = ptr(g.CommittedAfter)
	}
	for kind, bytes := range g.marked {
		if g.roots>>kind&1 == 0 {
			continue
		}
		if row.Marks == nil {
			row.Marks = map[string]uint64{}
		}
		row.Marks[runtimeevents.Root(kind).String()] = bytes
	}
	return row
}

func ptr[T any](v T) *T { return &v }

// gcSums are what all collections of a process add up to.
type gcSums struct {
	stats      gcStats                // as far as they are counts and largest values
	groups     [len(gcGroups)]gcGroup // as in gcGroups
	reasons    map[string]int
	pauses     map[string]int64 // by reason
	inducers   map[string]int   // who called GC.Collect
	unknown    int              // induced collections without a stack
	worst      *gcRecord        // with the longest pause
	last       *gcRecord        // that told sizes
	sized      uint64           // how many told sizes
	promoted   uint64           // of these
	after      uint64           // sizes of the heap behind these, added up
	heap       uint64           // its largest size
	allocated  uint64           // by the sizes of the heap
	allocating int64            // ns, in how long
	live       floors           // what survived collections of generation 2
	slow       longest          // pauses
	cut        int              // pauses of which a part lies in the time that is wanted
}

// gcGroups are how collections are told apart, and all of them.
var gcGroups = [...]string{"0", "1", "2 blocking", "2 background", "all"}

// A gcGroup is some of the collections.
type gcGroup struct {
	count    int
	pauses   *durations // of those that told it
	inside   int64      // of them, what lies in the time that is wanted
	promoted uint64
}

func (g *gcRecord) background() bool { return g.Type == runtimeevents.BackgroundGC && g.Concurrent }

// group returns the number of g's group.
func (g *gcRecord) group() int {
	if g.Generation >= 2 && g.background() {
		return 3
	}
	return int(min(2, g.Generation))
}

func sumGCs(p *gcProcess, aside *spool.Spool, c *Context) *gcSums {
	s := &gcSums{reasons: map[string]int{}, pauses: map[string]int64{}, inducers: map[string]int{}, slow: longest{n: c.cut(p.list.Len())}}
	for i := range s.groups {
		s.groups[i].pauses = newDurations(aside)
	}
	was := p.before // sizes after the collection before whose sizes and history are told
	if was != nil {
		was = ptr(*was)
	}
	for i := range p.list.Len() {
		g := p.list.At(i)
		if was == nil && i == 0 && g.Number == 1 {
			was = new(heapSizes) // before the process's first collection there was nothing
		}
		for _, k := range []int{g.group(), len(gcGroups) - 1} {
			if !g.untold {
				s.groups[k].pauses.add(g.pause)
			}
			s.groups[k].count++
			s.groups[k].inside += g.inside
			s.groups[k].promoted += g.Promoted()
		}
		s.stats.add(&g)
		if !g.untold {
			s.slow.add(g.pause, i)
		}
		if g.inside != g.pause {
			s.cut++
		}
		s.reasons[g.Reason.String()]++
		s.pauses[g.Reason.String()] += g.inside
		if g.Reason.Induced() {
			if g.Stack == 0 {
				s.unknown++
			}
			if who := caller(c.frames(g.Stack)); who != "" && !strings.HasPrefix(who, "?!") { // gc-collect records no names
				s.inducers[who]++
			}
		}
		if s.worst == nil || g.pause > s.worst.pause {
			s.worst = ptr(g)
		}
		if g.HasHistory {
			s.heap = max(s.heap, g.Before())
		}
		if c.In.Contains(g.Start) { // of one that starts later only the pause begins within
			if was != nil && measures(&g.Collection) {
				s.allocating += g.Start - was.time
			}
			if was != nil && g.HasHistory {
				s.allocated += was.grown(&g.Collection)
			}
			was = was.behind(&g.Collection)
		}
		if !g.HasSizes {
			continue
		}
		s.sized++
		s.promoted += g.Promoted()
		if g.Generation >= 2 && g.End >= 0 {
			s.live.add(g.Start, g.Promoted())
		}
		s.after += g.After()
		s.heap = max(s.heap, g.After())
		if s.last == nil {
			s.last = new(gcRecord)
		}
		*s.last = g
	}
	return s
}

// add counts g.
func (s *gcStats) add(g *gcRecord) {
	s.ByGeneration[min(2, g.Generation)]++
	s.MaxSuspend = max(s.MaxSuspend, text.Millis(g.suspend))
	s.Heaps = max(s.Heaps, g.Heaps)
	if g.End < 0 || g.untold {
		s.Incomplete++
	}
	if g.Reason.Induced() {
		s.Induced++
	}
	if g.Type == runtimeevents.BackgroundGC {
		s.Background++
		if !g.Concurrent {
			s.FellBack++
		}
	}
}

// all is the group that holds all collections.
func (s *gcSums) all() *gcGroup { return &s.groups[len(gcGroups)-1] }

func gcStatsOf(p *gcProcess, sums *gcSums, c *Context) gcStats {
	s := sums.stats
	s.K, s.PID, s.Count = "stats", p.PID, p.list.Len()
	s.Finalized, s.Finalizing, s.Duration = p.Finalized, text.Millis(p.Finalizing), text.Millis(c.End)
	s.Server = p.Server()
	t := sums.all().pauses.spread()
	s.Pause, s.MaxPause, s.MeanPause, s.P50, s.P95, s.P99 = text.Millis(sums.all().inside), text.Millis(t.Max), text.Millis(t.Mean), text.Millis(t.P50), text.Millis(t.P95), text.Millis(t.P99)
	var other int64
	for _, u := range p.Unclaimed() {
		other += c.In.Part(u.Start, u.Start+u.Pause())
	}
	s.OtherPause = text.Millis(other)
	if c.End > 0 {
		s.PausePercent = 100 * (s.Pause + s.OtherPause) / text.Millis(c.End)
	}
	if sums.sized > 0 {
		s.Promoted, s.MaxHeap, s.MeanHeap = &sums.promoted, &sums.heap, ptr(sums.after/sums.sized)
	}
	if q := sums.live.quarters(); q != nil {
		s.LiveFirst, s.LiveLast, s.LiveGrows = &q[0].bytes, &q[3].bytes, ptr(q.grow())
	}
	s.allocates(p, sums, c)
	return s
}

// allocates tells what was allocated: by the ticks, else by what the generation that objects
// are allocated in, and that of large ones, gained between two collections.
func (s *gcStats) allocates(p *gcProcess, sums *gcSums, c *Context) {
	n, in := p.ticked, c.End
	switch {
	case p.Ticks > 0 && n == 0: // less was allocated in the time that is wanted than makes a tick
		return
	case p.Ticks > 0:
		s.AllocatedBy = "ticks"
	case sums.allocating > 0: // since the first of two collections, which may lie before the time that is wanted
		n, in, s.AllocatedBy = sums.allocated, sums.allocating, "heap_sizes"
	default:
		return
	}
	s.Allocated = &n
	if in > 0 {
		s.AllocationRate = ptr(float64(n) / 1e6 / (text.Millis(in) / 1e3))
	}
}

func gcVerdict(p *gcProcess, sums *gcSums, s *gcStats, c *Context) (v []string) {
	other := "" // of no collection
	if s.OtherPause > 0.01*s.Pause {
		other = fmt.Sprintf("All threads were stopped for another %s (%s) for collections that the trace does not hold or that GC.TryStartNoGCRegion counts, or while server GC changed the number of its heaps.",
			duration(nanos(s.OtherPause)), report.Percent(s.OtherPause, text.Millis(c.End)))
	}
	if s.Count == 0 {
		if other != "" {
			return []string{"The trace holds no collection.", other}
		}
		if c.Lost > 0 {
			return []string{"The trace holds no collection."}
		}
		return []string{"No collection took place."}
	}
	timed := sums.all().pauses.times.Len()
	if timed > 0 {
		v = gcPauses(p, sums, s, c)
	}
	v = append(v, cutNote(sums.cut, "pause")...)
	if other != "" {
		v = append(v, other)
	}
	if untold := s.Count - timed; untold > 0 {
		v = append(v, fmt.Sprintf("Not known: for how long %s stopped all threads; the trace lacks the start or the end of the pause.", count(untold, "collection")))
	}
	if s.Allocated != nil {
		v = append(v, gcAllocated(p, sums, s, c))
	}
	if last := sums.last; last != nil {
		line := fmt.Sprintf("Heap: %s at its largest, %s after the last collection", size(float64(*s.MaxHeap)), size(float64(last.After())))
		if last.HasHistory && last.After() > 0 {
			line += fmt.Sprintf(", of which %s is free space between objects", report.Percent(float64(last.Fragmentation()), float64(last.After())))
		}
		v = append(v, line+".")
	}
	if q := sums.live.quarters(); q != nil && q.grow() {
		v = append(v, liveGrows(q, sums.live.count))
	}
	if s.Induced > 0 {
		v = append(v, induced(sums))
	}
	if s.FellBack > 0 {
		v = append(v, fmt.Sprintf("Fell back: %s that %s blocking, as if not concurrent.", count(s.FellBack, "background collection"), map[bool]string{true: "was", false: "were"}[s.FellBack == 1]))
	}
	if slow := s.MaxSuspend; slow >= 5 && slow >= s.MaxPause/4 {
		v = append(v, fmt.Sprintf("Suspending the threads took up to %s: one of them was slow to stop.", duration(nanos(slow))))
	}
	return v
}

// gcPauses tells of the pauses, of which some are known, and whether they are much.
func gcPauses(p *gcProcess, sums *gcSums, s *gcStats, c *Context) []string {
	worst := sums.worst
	pause := nanos(s.Pause)
	judged := "That is little."
	switch {
	case s.PausePercent >= 10:
		judged = "That is a lot: allocate less, or keep less alive."
	case s.PausePercent >= 3:
		judged = "That is noticeable."
	}
	if c.lossy() && s.PausePercent < 10 {
		judged = ""
	}
	if s.MaxPause >= 100 {
		judged += " The longest pause can be felt."
	}
	kind := ""
	switch p.Collector() {
	case runtimeevents.WorkstationCollector:
		kind = " (workstation)"
	case runtimeevents.ServerCollector:
		kind = " (server GC)"
		if s.Heaps > 0 {
			kind = fmt.Sprintf(" (server GC, %s)", count(int(s.Heaps), "heap"))
		}
	}
	least := ""
	if sums.all().pauses.times.Len() < s.Count || c.Lost > 0 {
		least = "at least "
	}
	return []string{
		strings.TrimSpace(fmt.Sprintf("%s%s stopped all threads for %s%s, %s of %s. %s", count(s.Count, "collection"), kind, least, duration(pause), report.Percent(text.Millis(pause), text.Millis(c.End)), duration(c.End), judged)),
		fmt.Sprintf("Pauses: half up to %s, 95 %% up to %s, 99 %% up to %s; the longest %s (number %d, %s, at %s).",
			duration(nanos(s.P50)), duration(nanos(s.P95)), duration(nanos(s.P99)), duration(worst.pause), worst.Number, gcKind(worst), at(worst.Start)),
	}
}

// gcAllocated tells how much was allocated, and what tells more of it.
func gcAllocated(p *gcProcess, sums *gcSums, s *gcStats, c *Context) string {
	about, while, rate, how := "about ", "", "", ""
	if c.Lost > 0 {
		about = "at least "
	} else if s.AllocatedBy == "ticks" {
		about = ""
	}
	if s.AllocationRate != nil && !c.lossy() {
		rate = fmt.Sprintf(", %s a second", size(*s.AllocationRate*1e6))
	}
	if s.AllocatedBy == "heap_sizes" && sums.allocating < c.End-c.End/20 { // what came later no collection tells
		while = fmt.Sprintf(" in the %s up to the last collection", duration(sums.allocating))
	}
	switch {
	case s.AllocatedBy == "ticks":
		how = "; `tracefix top --weight alloc` tells what and where"
	case p.Sampled > 0:
		how = " (by the sizes of the heap; `tracefix top --weight alloc` tells what and where)"
	default:
		how = " (by the sizes of the heap; --profile gc-verbose records what and where)"
	}
	return fmt.Sprintf("Allocated: %s%s%s%s%s.", about, size(float64(*s.Allocated)), while, rate, how)
}

func nanos(ms float64) int64 { return int64(ms*1e6 + 0.5) }

// induced tells who asked for collections, the most frequent first. Of those without a stack no code
// of the program is known to have asked.
func induced(sums *gcSums) string {
	n := sums.stats.Induced
	by := ""
	if known := n - sums.unknown; known > 0 {
		by = " asked for by code"
		var names []string
		rest := known
		for _, name := range ranked(sums.inducers, 3) {
			names = append(names, fmt.Sprintf("%s (%d)", short(name), sums.inducers[name]))
			rest -= sums.inducers[name]
		}
		if len(names) > 0 && rest > 0 {
			names = append(names, fmt.Sprintf("others (%d)", rest))
		}
		if len(names) > 0 {
			by += ": " + strings.Join(names, ", ")
		}
	}
	switch {
	case sums.unknown == 0:
	case sums.unknown == n:
		by = " asked for by code, or by the recording itself to list what is in the heap, as dotnet-gcdump does: no stack tells"
	default:
		by += fmt.Sprintf("; and %d by code, or by the recording itself to list what is in the heap, as dotnet-gcdump does: no stack tells", sums.unknown)
	}
	return fmt.Sprintf("Induced: %s%s.", count(n, "collection"), by)
}

// ranked returns up to n keys, the largest value first.
func ranked(by map[string]int, n int) []string {
	keys := make([]string, 0, len(by))
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	return keys[:min(n, len(keys))]
}

// gcKind is generation and way of a collection: "gen 2 background".
func gcKind(g *gcRecord) string {
	s := "gen " + strconv.Itoa(int(g.Generation))
	switch {
	case g.background():
		s += " background"
	case g.Type == runtimeevents.BackgroundGC:
		s += " background, fell back"
	case g.Generation >= 2:
		s += " blocking"
	case g.Type == runtimeevents.ForegroundGC:
		s += " foreground"
	}
	return s
}

func gcTables(p *gcProcess, sums *gcSums, c *Context) []Table {
	if p.list.Len() == 0 {
		return nil
	}
	byKind := Table{Head: []string{"count", "pause", "mean", "p95", "max", "promoted", "generation"}, Left: 6, Spare: []string{"mean"}}
	for i, name := range gcGroups {
		g := &sums.groups[i]
		if t := g.pauses.spread(); g.count > 0 {
			byKind.Rows = append(byKind.Rows, []string{thousands(g.count), duration(g.inside), duration(t.Mean), duration(t.P95), duration(t.Max), size(float64(g.promoted)), name})
		}
	}
	byReason := Table{Head: []string{"count", "pause", "reason"}, Left: 2}
	for _, r := range ranked(sums.reasons, len(sums.reasons)) {
		byReason.Rows = append(byReason.Rows, []string{thousands(sums.reasons[r]), duration(sums.pauses[r]), r + reasonHelp[r]})
	}
	numbers := sums.slow.numbers()
	slow := Table{Title: "Longest pauses", Head: []string{"number", "at", "pause", "suspend", "before", "after", "promoted", "kind", "reason"}, Left: 7, Spare: []string{"suspend", "promoted", "before", "after"}, More: sums.all().pauses.times.Len() - len(numbers)}
	for _, i := range numbers {
		g := p.list.At(i)
		suspend, before, after, promoted := "", "", "", ""
		if g.suspend >= 0 {
			suspend = duration(g.suspend)
		}
		if g.HasHistory {
			before = size(float64(g.Before()))
		}
		if g.HasSizes {
			after, promoted = size(float64(g.After())), size(float64(g.Promoted()))
		}
		slow.Rows = append(slow.Rows, []string{strconv.Itoa(int(g.Number)), at(g.Start), duration(g.pause), suspend, before, after, promoted, gcKind(&g), g.Reason.String()})
	}
	return []Table{byKind, byReason, slow}
}

// reasonHelp says in words what a reason means where its name does not.
var reasonHelp = map[string]string{
	"AllocSmall":        ": the budget of generation 0 was used up",
	"AllocLarge":        ": the budget of large objects was used up",
	"Induced":           ": code asked for it, and waited",
	"InducedNotForced":  ": code asked for it, and did not wait",
	"InducedCompacting": ": code asked for it, with compaction",
	"InducedAggressive": ": code asked for it, to give memory back to the system",
	"LowMemory":         ": the machine has little memory left",
	"InducedLowMemory":  ": the machine has little memory left, and the runtime asked for it",
	"OutOfSpaceSOH":     ": no room for small objects",
	"OutOfSpaceLOH":     ": no room for large objects",
}

func gcPlots(p *gcProcess) []Plot {
	var after, before, free, live peaks
	var pauses [3]peaks
	for i := range p.list.Len() {
		g := p.list.At(i)
		if g.HasHistory {
			before.add(g.Start, float64(g.Before())/1e6, i)
			free.add(g.Start, float64(g.Fragmentation())/1e6, i)
		}
		if g.HasSizes {
			after.add(g.Start, float64(g.After())/1e6, i)
			if g.Generation >= 2 {
				live.add(g.Start, float64(g.Promoted())/1e6, i)
			}
		}
		if g.untold {
			continue
		}
		pauses[min(2, g.Generation)].add(g.pauseStart, text.Millis(g.pause), i)
	}
	tip := func(x *peak) string {
		g := p.list.At(x.n)
		return fmt.Sprintf("number %d, %s, %s", g.Number, gcKind(&g), g.Reason)
	}
	byGeneration := Plot{Title: "Pauses", Unit: "ms"}
	for gen, name := range []string{"generation 0", "generation 1", "generation 2"} {
		byGeneration.Series = append(byGeneration.Series, pauses[gen].series(name, Bars, func(x *peak) string { return tip(x) + ": " + duration(p.list.At(x.n).pause) }))
	}
	return []Plot{byGeneration, {Title: "Heap", Unit: "MB", Series: []PlotSeries{
		after.series("after", Line, tip), before.series("before", Dots, tip), free.series("free space after", Line, tip),
		live.series("survived generation 2", Dots, tip),
	}}}
}
