package runtimeevents

import (
	"math"
	"slices"

	"github.com/tracefix/tracefix/nettrace"
)

// Generations of a heap as the events list them: 0, 1, 2, large objects, pinned objects.
const Generations = 5

// A GCReason says what started a collection: gc_reason of gc.h.
type GCReason uint32

// The reasons that mean that code asked for the collection, and one that is named alike: the
// runtime itself asks for GCInducedLowMemory when the system has little memory left.
const (
	GCInduced           GCReason = 1
	GCInducedNotForced  GCReason = 7
	GCInducedLowMemory  GCReason = 9
	GCInducedCompacting GCReason = 10
	GCInducedAggressive GCReason = 17
)

var gcReasons = []string{
	"AllocSmall", "Induced", "LowMemory", "Empty", "AllocLarge", "OutOfSpaceSOH", "OutOfSpaceLOH", "InducedNotForced", "Internal",
	"InducedLowMemory", "InducedCompacting", "LowMemoryHost", "PMFullGC", "LowMemoryHostBlocking", "BGCTuningSOH", "BGCTuningLOH", "BGCStepping", "InducedAggressive",
}

// gcFull is that of a collection of all generations right behind one that was not enough.
const gcFull GCReason = 12

// String returns the name of the reason as the runtime spells it, or "Unknown".
func (r GCReason) String() string { return nameOf(gcReasons, uint32(r)) }

// Induced reports whether code called GC.Collect or the like.
func (r GCReason) Induced() bool {
	switch r {
	case GCInduced, GCInducedNotForced, GCInducedCompacting, GCInducedAggressive:
		return true
	}
	return false
}

// A GCType is what a collection started as.
type GCType uint32

// Types of collections.
const (
	NonConcurrentGC GCType = iota // all threads stand still
	BackgroundGC                  // generation 2, while the program runs; it may fall back to blocking, see GC.Concurrent
	ForegroundGC                  // an ephemeral one while a background collection runs
)

var gcTypes = []string{"NonConcurrentGC", "BackgroundGC", "ForegroundGC"}

// String returns "NonConcurrentGC", "BackgroundGC" or "ForegroundGC", or "Unknown".
func (t GCType) String() string { return nameOf(gcTypes, uint32(t)) }

// A PauseMode is GCSettings.LatencyMode.
type PauseMode uint32

var pauseModes = []string{"Batch", "Interactive", "LowLatency", "SustainedLowLatency", "NoGC"}

// String returns the name of the mode as in GCLatencyMode, or "Unknown".
func (m PauseMode) String() string { return nameOf(pauseModes, uint32(m)) }

// Mechanisms are what a collection did: bits of GlobalHeapHistory.
type Mechanisms uint32

const mechanismConcurrent Mechanisms = 1

var mechanismNames = []string{"Concurrent", "Compaction", "Promotion", "Demotion", "CardBundles"}

// Names lists the bits that are set.
func (m Mechanisms) Names() []string {
	var names []string
	for i, n := range mechanismNames {
		if m>>i&1 != 0 {
			names = append(names, n)
		}
	}
	return names
}

// A Generation has what one collection recorded of one generation, all heaps together.
type Generation struct {
	Before, After uint64 // size, free space included
	Promoted      uint64 // survived; of pinned objects never told
	// Fragmentation is the free space after; In came from younger generations, Out
	// survived; Budget may be allocated before the next collection.
	FragmentationBefore, Fragmentation, In, Out, Budget uint64
}

// Survival is the percentage of what was in the generation that survived; false if nothing was
// there or the generation was not collected. Where HasSizes is false and nothing went Out it may be
// either.
func (g *Generation) Survival() (percent float64, ok bool) {
	objects := g.Before - min(g.Before, g.FragmentationBefore)
	if objects == 0 || g.Out == 0 && g.In == 0 && g.Before == g.After {
		return 0, false
	}
	return min(100, float64(g.Out)*100/float64(objects)), true
}

// A Root is a kind of root that keeps objects alive.
type Root uint32

// String returns the name of the kind of root, or "Unknown".
func (r Root) String() string { return nameOf(rootKinds[:], uint32(r)) }

// Roots is how many of them have names; all others are "Unknown".
const Roots = 10

// Marked is what one kind of root kept alive in the mark phase of one heap.
type Marked struct {
	Heap  uint32
	Kind  Root
	Bytes uint64
}

var rootKinds = [Roots]string{"Stack", "FinalizerQueue", "Handles", "OlderGeneration", "SizedRefs", "Overflow", "DependentHandles", "NewFinalizerQueue", "Steal", "BackgroundRoots"}

// A GC is one collection.
type GC struct {
	Collection
	Pauses []*Suspension // those of this collection; the outer one of an inner collection too
	Marks  []Marked

	inner    []*GC  // those that ran in these pauses
	within   *GC    // the collection in whose pause this one ran
	running  int    // collections inside that have not ended
	recorded bool   // GlobalHeapHistory came
	told     uint32 // heaps whose history came
	doubtful bool   // events were lost since: it may be over
	unsized  bool   // it ended, and the next Heap stats of its thread are its own
}

// A Collection is what a collection's own events tell of it, but for its marks. It holds no pointers.
type Collection struct {
	Number     uint32
	Generation uint32
	Reason     GCReason
	Type       GCType
	// Concurrent is false for a background collection that fell back to blocking. Where
	// the trace has no GlobalHeapHistory it is what the type says.
	Concurrent bool

	Start, End int64 // GCStart and GCEnd; End is Unknown if the trace ended before

	HasSizes   bool // Heap stats: After and Promoted of the generations, and what follows
	HasHistory bool // per-heap history: the rest of the generations

	Gen                  [Generations]Generation
	FinalizationPromoted uint64 // objects
	FinalizationBytes    uint64
	Pinned, Handles      uint32
	Heaps                uint32 // 0: unknown
	Mechanisms           Mechanisms
	PauseMode            PauseMode
	MemoryPressure       uint32 // percent of physical memory in use; 0: unknown

	CommittedBefore, CommittedAfter uint64 // in use: what is committed and kept free is not in it. 0: unknown

	// Allocated is what AllocationTick told since the collection before. AllocatedTold is false
	// of the first one in a trace that begins after the one before it.
	Allocated     uint64
	AllocatedTold bool
	// Stack is that of the GCTriggered event that asked for the collection, 0 if none did.
	Stack uint32
}

// PauseTold reports whether the trace holds all of the pause. It lacks the restart where it ends
// within the pause, or lost events, and the suspension where it begins within it. A background
// collection that has ended had two, and one that lost events may have had.
func (g *GC) PauseTold() bool {
	if g.within != nil {
		return g.End != Unknown
	}
	if g.lacksPause() {
		return false
	}
	return len(g.Pauses) > 0 && !slices.ContainsFunc(g.Pauses, func(s *Suspension) bool { return s.Restart == Unknown })
}

// Pause is the time for which the collection kept all threads still, each instant
// counted for one collection; of pauses that the trace does not tell nothing, see PauseTold.
func (g *GC) Pause() int64 { return g.PauseIn(math.MinInt64, math.MaxInt64) }

// PauseIn is as much of the Pause as lies between two times.
func (g *GC) PauseIn(from, until int64) (sum int64) {
	part := func(start, end int64) int64 { return max(0, min(end, until)-max(start, from)) }
	if g.within != nil && g.End != Unknown {
		return part(g.Start, g.End)
	}
	for _, s := range g.Pauses {
		sum += part(s.Start, s.Start+s.Pause())
	}
	for _, i := range g.inner {
		if i.End != Unknown {
			sum -= part(i.Start, i.End)
		}
	}
	return max(0, sum)
}

// lacksPause reports whether it is a background collection with less than the two pauses that those
// have: it ended, or may have ended unseen.
func (g *GC) lacksPause() bool {
	return g.Type == BackgroundGC && g.Concurrent && (g.End != Unknown || g.doubtful) && len(g.Pauses) < 2
}

// PauseStartTold reports whether the trace shows when the first pause began.
func (g *GC) PauseStartTold() bool {
	return g.within != nil || len(g.Pauses) > 0 && g.Pauses[0].Start <= g.Start
}

// PauseStart is the start of the first suspension, or of the collection itself.
func (g *GC) PauseStart() int64 {
	if len(g.Pauses) > 0 {
		return g.Pauses[0].Start
	}
	return g.Start
}

// Suspend is how long it took until all threads stood still.
func (g *GC) Suspend() int64 {
	var sum int64
	for _, s := range g.Pauses {
		if s.Suspended != Unknown {
			sum += s.Suspended - s.Start
		}
	}
	return sum
}

// SuspendTold reports whether the trace shows for all pauses how long that took, and WakingTold how
// long waking did.
func (g *GC) SuspendTold() bool {
	return g.each(func(s *Suspension) bool { return s.Suspended != Unknown })
}

// WakingTold is SuspendTold for Waking.
func (g *GC) WakingTold() bool {
	return g.each(func(s *Suspension) bool { return s.Restart != Unknown && s.Restarted != Unknown })
}

// each reports whether there are pauses, be they another one's, and all of its own are known and so.
func (g *GC) each(so func(*Suspension) bool) bool {
	return (g.within != nil || len(g.Pauses) > 0 && !g.lacksPause()) && !slices.ContainsFunc(g.Pauses, func(s *Suspension) bool { return !so(s) })
}

// Waking is the time from the start of the restart to its end, which is in no pause.
func (g *GC) Waking() int64 {
	var sum int64
	for _, s := range g.Pauses {
		if s.Restart != Unknown && s.Restarted != Unknown {
			sum += s.Restarted - s.Restart
		}
	}
	return sum
}

// Duration is the time from GCStart to GCEnd, 0 without an end.
func (g *Collection) Duration() int64 {
	if g.End == Unknown {
		return 0
	}
	return g.End - g.Start
}

func (g *Collection) sum(of func(*Generation) uint64) (n uint64) {
	for i := range g.Gen {
		n += of(&g.Gen[i])
	}
	return n
}

// Before is the size of the heap before the collection, if HasHistory.
func (g *Collection) Before() uint64 { return g.sum(func(g *Generation) uint64 { return g.Before }) }

// After is the size of the heap behind it, if HasSizes.
func (g *Collection) After() uint64 { return g.sum(func(g *Generation) uint64 { return g.After }) }

// Promoted is how much survived, if HasSizes. The event does not tell it of pinned objects.
func (g *Collection) Promoted() uint64 {
	return g.sum(func(g *Generation) uint64 { return g.Promoted })
}

// Fragmentation is the free space in the heap behind it, if HasHistory.
func (g *Collection) Fragmentation() uint64 {
	return g.sum(func(g *Generation) uint64 { return g.Fragmentation })
}

// GCProcess has what one process recorded of its collections.
type GCProcess struct {
	PID         int
	Collections []*GC // in order of their start
	// Suspensions are those of reason GC and GCPrep, in order of their end. A few belong to
	// no collection: GC.TryStartNoGCRegion counts one but does not collect.
	Suspensions []*Suspension

	Ticks      int64  // AllocationTick events
	TickBytes  uint64 // what they tell
	Sampled    int64  // AllocationSampled events
	Finalized  uint64 // objects whose finalizers ran
	Finalizing int64  // ns spent in finalizers

	open       []*GC // started, no GCEnd; the newest last
	ended      map[uint64]*GC
	newest     *GC         // started last
	background *GC         // the newest background collection
	later      *Suspension // its later pause, the newest one
	history    *GC         // whose GlobalHeapHistory came last
	asked      *asked
	begun      struct { // what has told nothing yet but its start
		gc     *GC
		thread uint64
	}
	used       committed // of which the collection has not ended yet
	finalizers int64     // start of the finalizers that run
	tickMark   uint64
	others     bool // it was suspended for other reasons

	severalHeaps       bool
	byAsker, bySomeone int // collections on the thread that asked for them, and on another one
}

// asked is the newest GCTriggered that no collection has answered.
type asked struct {
	reason GCReason
	stack  uint32
	thread uint64
}

// committed is what CommittedUsage told on a thread.
type committed struct {
	bytes  uint64
	thread uint64
}

// A Collector is which of the two collectors of the runtime a process has.
type Collector uint8

// Collectors.
const (
	UnknownCollector     Collector = iota
	WorkstationCollector           // who asks for a collection makes it
	ServerCollector                // it has threads of its own, one for each heap
)

// Pause is the time for which all collections kept all threads still.
func (p *GCProcess) Pause() (sum int64) {
	for _, g := range p.Collections {
		sum += g.Pause()
	}
	return sum
}

// Unclaimed are the suspensions for a collection that no collection was seen in.
func (p *GCProcess) Unclaimed() []*Suspension {
	return slices.DeleteFunc(slices.Clone(p.Suspensions), func(s *Suspension) bool { return s.by != nil })
}

// Collector is which one the process has, as far as the trace shows. Only server GC has several
// heaps; that it has one says nothing, since server GC adapts their number from .NET 9 on and often
// needs no more. Then the thread on which collections are made tells.
func (p *GCProcess) Collector() Collector {
	switch {
	case p.severalHeaps || p.bySomeone > p.byAsker:
		return ServerCollector
	case p.byAsker > 0:
		return WorkstationCollector
	}
	return UnknownCollector
}

// Server reports whether it is known to have server GC.
func (p *GCProcess) Server() bool { return p.Collector() == ServerCollector }

// GCs collects the collections of all processes of a trace. The zero value is ready for use.
type GCs struct {
	// Other, if set, takes the suspensions for other reasons, which are not kept: the sampler
	// suspends all threads a thousand times a second.
	Other func(*Suspension)
	// Settled, if set, takes each collection as soon as no event can tell more of it, those of a
	// process in order of their start, and at Finish those that are left; one that lacks its end when
	// 16,384 others have begun since. Neither these nor their suspensions are kept then: what Finish
	// returns has the suspensions of no collection.
	Settled func(pid int, g *GC)
	// Finalizing, if set, says how much of a run of finalizers counts, ns, and whether its objects
	// do; from is Unknown where the trace lacks the start.
	Finalizing func(from, until int64) (part int64, counts bool)
	// Ticked, if set, takes the bytes that each allocation tick tells, and its time, ns.
	Ticked func(pid int, ns int64, amount uint64)

	suspensions Suspensions
	byPID       map[int]*GCProcess
	order       []*GCProcess
}

// Wants reports whether the collector would use the stack of the event.
func (*GCs) Wants(ev *nettrace.Event) bool { return runtimeID(ev) == IDGCTriggered }

func (c *GCs) process(pid int) *GCProcess {
	p := c.byPID[pid]
	if p == nil {
		if c.byPID == nil {
			c.byPID = map[int]*GCProcess{}
		}
		p = &GCProcess{PID: pid, ended: map[uint64]*GC{}, finalizers: Unknown}
		c.byPID[pid] = p
		c.order = append(c.order, p)
	}
	return p
}

// Event takes an event. It should have all events, also those of other providers: they may tell
// that some were lost.
func (c *GCs) Event(ev *nettrace.Event, ns int64, stack uint32) {
	if ev.Lost > 0 {
		c.lost(ev)
	}
	id := runtimeID(ev)
	switch id {
	case IDSuspendEEBegin, IDSuspendEEEnd, IDRestartEEBegin, IDRestartEEEnd:
		c.suspension(ev, ns)
		return
	case IDGCStart:
		c.start(ev, ns)
		return
	case IDGCEnd, IDHeapStats, IDAllocationTick, IDAllocationSampled, IDFinalizersBegin, IDFinalizersEnd, IDGCTriggered, IDGCDynamic, IDMarkWithType, IDPerHeapHistory, IDGlobalHeapHistory:
	default:
		return
	}
	p := c.process(ev.ProcessID)
	switch id {
	case IDGCEnd:
		c.end(p, ev, ns)
	case IDHeapStats:
		p.heapStats(ev)
	case IDGlobalHeapHistory:
		p.globalHistory(ev)
	case IDPerHeapHistory:
		p.perHeapHistory(ev)
	case IDMarkWithType:
		p.mark(ev)
	case IDGCDynamic:
		p.dynamic(ev)
	case IDGCTriggered:
		cur := ev.Cursor()
		p.asked = &asked{GCReason(cur.U32()), stack, ev.ThreadID}
	case IDAllocationTick:
		if a, err := ReadAllocationTick(ev); err == nil {
			p.Ticks++
			p.TickBytes += a.Amount
			if c.Ticked != nil {
				c.Ticked(ev.ProcessID, ns, a.Amount)
			}
		}
	case IDAllocationSampled:
		p.Sampled++
	case IDFinalizersBegin:
		p.finalizers = ns
	case IDFinalizersEnd:
		c.finalized(p, ev, ns)
	}
}

// Finish returns the processes that collected or were suspended, in order of their first
// event. Suspensions that have not ended are among those of the process.
func (c *GCs) Finish() []*GCProcess {
	for _, s := range c.suspensions.unended(0, true) {
		c.suspended(c.byPID[s.Process], s)
	}
	for _, p := range c.order {
		slices.SortStableFunc(p.Suspensions, func(a, b *Suspension) int { return int(min(1, max(-1, a.Start-b.Start))) })
		if c.Settled != nil {
			for _, g := range p.Collections {
				c.Settled(p.PID, g)
			}
			p.Collections = nil
		}
	}
	c.suspensions = Suspensions{}
	return slices.DeleteFunc(c.order, func(p *GCProcess) bool {
		return p.newest == nil && len(p.Suspensions) == 0 && !p.others && p.Ticks == 0
	})
}

func (c *GCs) suspension(ev *nettrace.Event, ns int64) {
	p := c.process(ev.ProcessID)
	if done := c.suspensions.Event(ev, ns); done != nil {
		c.suspended(p, done)
	}
	switch runtimeID(ev) {
	case IDSuspendEEBegin:
	case IDSuspendEEEnd:
		if s := c.suspensions.open[keyOf(ev)]; s != nil && s.Reason == SuspendForGC {
			p.forget()
		}
		return
	default:
		return
	}
	// A background collection's later pause names it.
	if s := c.suspensions.open[keyOf(ev)]; s != nil && s.Start == ns && s.Reason == SuspendForGCPrep {
		if g := p.backgroundOf(s.Count); g != nil {
			g.Pauses = append(g.Pauses, s)
			s.by, p.later = g, s
		}
	}
}

// backgroundOf finds the background collection that a later pause is for.
func (p *GCProcess) backgroundOf(number uint32) *GC {
	if g := p.background; g != nil && g.End == Unknown && (g.Number == number || len(p.open) == 1) {
		return g
	}
	return nil
}

func (c *GCs) suspended(p *GCProcess, s *Suspension) {
	if s.ForGC() {
		if c.Settled == nil || s.by == nil {
			p.Suspensions = append(p.Suspensions, s)
		}
		return
	}
	p.others = true
	if c.Other != nil {
		c.Other(s)
	}
}

// maxOpen is how many collections of a process are waited for: some run at the same time.
const maxOpen = 1 << 8

func (c *GCs) start(ev *nettrace.Event, ns int64) {
	p := c.process(ev.ProcessID)
	cur := ev.Cursor()
	g := &GC{Collection: Collection{Number: cur.U32(), Start: ns, End: Unknown}}
	if ev.Version == 0 {
		g.Reason = GCReason(cur.U32())
	} else {
		g.Generation, g.Reason, g.Type = cur.U32(), GCReason(cur.U32()), GCType(cur.U32())
	}
	if cur.Err() != nil {
		return
	}
	g.Concurrent = g.Type == BackgroundGC
	g.Allocated, g.AllocatedTold = p.TickBytes-p.tickMark, p.newest != nil || g.Number == 1
	p.tickMark = p.TickBytes
	if p.asked != nil && p.asked.reason == g.Reason {
		g.Stack = p.asked.stack
		if p.asked.thread == ev.ThreadID {
			p.byAsker++
		} else {
			p.bySomeone++
		}
	}
	p.asked = nil
	p.history = nil
	p.forget()
	c.claim(p, g)
	if b := p.background; b != nil && b.End == Unknown && g.Type != ForegroundGC && g.within != b {
		b.doubtful = true // a collection beside it would be a foreground one: its end was lost
	}
	c.settle(p)
	p.Collections = append(p.Collections, g)
	if len(p.open) == maxOpen { // the ends of these were lost
		p.open = append(p.open[:0], p.open[maxOpen/2:]...)
	}
	p.open = append(p.open, g)
	p.newest = g
	p.begun.gc, p.begun.thread, p.used = g, ev.ThreadID, committed{}
	if g.Type == BackgroundGC {
		p.background = g
	}
}

// mostUnsettled is behind how many collections one is handed on all the same: some of its events were lost, and
// those behind it would all be kept. While a background one goes on some hundred others may come and go.
const mostUnsettled = 1 << 14

// settle hands on what is settled: all before the first collection that is not.
func (c *GCs) settle(p *GCProcess) {
	for c.Settled != nil && len(p.Collections) > 0 && (len(p.Collections) > mostUnsettled || c.settled(p, p.Collections[0])) {
		c.Settled(p.PID, p.Collections[0])
		p.Collections[0] = nil // the slice's array goes on from here
		p.Collections = p.Collections[1:]
	}
}

// settled reports whether no event can tell more of g now that another collection starts.
func (c *GCs) settled(p *GCProcess, g *GC) bool {
	if g.End == Unknown || g.unsized || g.running > 0 || g == p.history || g == p.background && !g.recorded {
		return false
	}
	for _, s := range g.Pauses {
		if c.suspensions.open[threadKey{p.PID, s.Thread}] == s {
			return false
		}
	}
	return true
}

// claim gives g the suspension it started in, or makes it the inner one of another collection's: of
// a background one that goes on, or of one after which all was collected at once.
func (c *GCs) claim(p *GCProcess, g *GC) {
	s := c.suspensions.standing(p.PID)
	if s == nil || s.Reason != SuspendForGC {
		return
	}
	switch outer := s.by; {
	case outer == nil:
		g.Pauses = append(g.Pauses, s)
		s.by = g
	case g.Reason != gcFull && (outer.Type != BackgroundGC || outer.End != Unknown || g.Type == ForegroundGC || g.Number != outer.Number+1):
		s.over = true // events were lost: its restart, and the suspension of g
	default:
		g.within = outer
		outer.inner = append(outer.inner, g)
		outer.running++
	}
}

// missed takes the end of a collection whose start was lost: the suspension that seems to go on may
// be over since long.
func (c *GCs) missed(p *GCProcess, number uint32) {
	p.asked = nil
	for _, s := range [2]*Suspension{c.suspensions.standing(p.PID), p.later} {
		if s != nil && s.by != nil && s.by.Number < number && s.Restart == Unknown {
			s.over = true
		}
	}
}

func (c *GCs) end(p *GCProcess, ev *nettrace.Event, ns int64) {
	cur := ev.Cursor()
	number := cur.U32()
	if cur.Err() != nil {
		return
	}
	for i, g := range slices.Backward(p.open) {
		if g.Number != number {
			continue
		}
		g.End = ns
		if p.used.thread == ev.ThreadID {
			g.CommittedAfter, p.used = p.used.bytes, committed{}
		}
		if g.within != nil {
			g.within.running--
		}
		p.open = slices.Delete(p.open, i, i+1)
		if before := p.ended[ev.ThreadID]; before != nil {
			before.unsized = false
		}
		g.unsized = true
		p.ended[ev.ThreadID] = g
		return
	}
	c.missed(p, number)
}

// lost takes that a thread wrote events that were lost: what it has begun may be over, and more may
// have begun.
func (c *GCs) lost(ev *nettrace.Event) {
	c.suspensions.lost(captureOf(ev))
	p := c.byPID[ev.ProcessID]
	if p == nil {
		return
	}
	p.history, p.asked, p.begun.gc, p.used = nil, nil, nil, committed{}
	if before := p.ended[ev.CaptureThreadID]; before != nil {
		before.unsized = false
		delete(p.ended, ev.CaptureThreadID)
	}
	for _, g := range p.open {
		g.doubtful = true
	}
	if g := p.background; g != nil && !g.recorded {
		g.doubtful = true // its history may come behind its end, and be lost
	}
}

// forget gives up what collections that have ended were still to tell: another one begins.
func (p *GCProcess) forget() {
	for _, g := range p.ended {
		g.unsized = false
	}
	clear(p.ended)
}

// heapStats takes what GCHeapStats tells: it follows GCEnd on its thread.
func (p *GCProcess) heapStats(ev *nettrace.Event) {
	g := p.ended[ev.ThreadID]
	if g == nil || g.HasSizes {
		return
	}
	cur := ev.Cursor()
	var sizes [Generations]Generation
	for i := range sizes[:4] {
		sizes[i].After, sizes[i].Promoted = cur.U64(), cur.U64()
	}
	bytes, objects := cur.U64(), cur.U64()
	pinned, _, handles := cur.U32(), cur.U32(), cur.U32()
	if cur.Err() != nil {
		return
	}
	if ev.Version >= 2 {
		cur.U16()
		sizes[4].After, sizes[4].Promoted = cur.U64(), cur.U64()
	}
	for i := range sizes {
		g.Gen[i].After, g.Gen[i].Promoted = sizes[i].After, sizes[i].Promoted
	}
	g.HasSizes, g.unsized = true, false
	g.fit()
	g.FinalizationBytes, g.FinalizationPromoted, g.Pinned, g.Handles = bytes, objects, pinned, handles
	delete(p.ended, ev.ThreadID)
}

// globalHistory takes GCGlobalHeapHistory. It may stand before or behind the GCEnd; that
// of a background collection says that it was concurrent.
func (p *GCProcess) globalHistory(ev *nettrace.Event) {
	cur := ev.Cursor()
	cur.U64() // FinalYoungestDesired
	heaps := cur.U32()
	generation := cur.U32()
	cur.U32() // Gen0ReductionCount
	reason := GCReason(cur.U32())
	mechanisms := Mechanisms(cur.U32())
	if cur.Err() != nil {
		return
	}
	p.severalHeaps = p.severalHeaps || heaps > 1
	g, concurrent := p.newest, mechanisms&mechanismConcurrent != 0
	if concurrent {
		g = p.background
	}
	if g == nil || g.recorded || g.doubtful || !concurrent && g.End != Unknown || generation != g.Generation || reason != g.Reason {
		p.history = nil // that of a collection whose start was lost
		return
	}
	p.history = g
	g.recorded = true
	g.Heaps, g.Mechanisms, g.Concurrent = heaps, mechanisms, concurrent
	if ev.Version >= 2 {
		cur.U16()
		g.PauseMode, g.MemoryPressure = PauseMode(cur.U32()), cur.U32()
	}
}

// perHeapHistory takes PerHeapHistory of version 3: those of all heaps follow the global one, in
// order. Sums are told if none is missing.
func (p *GCProcess) perHeapHistory(ev *nettrace.Event) {
	g := p.history
	if g == nil || ev.Version < 3 {
		return
	}
	cur := ev.Cursor()
	cur.U16()
	for range 6 {
		cur.Pointer()
	}
	for range 5 {
		cur.U32() // efficiency, two sets of reasons, two of mechanisms
	}
	heap := cur.U32()
	cur.Pointer() // ExtraGen0Commit
	n := int(cur.U32())
	if n > Generations || cur.Err() != nil || heap != g.told {
		return
	}
	var gens [Generations]Generation
	for i := range gens[:n] {
		h := &gens[i]
		h.Before, h.FragmentationBefore = cur.Pointer(), cur.Pointer()+cur.Pointer()
		after := cur.Pointer() // the size is that of GCHeapStats
		h.Fragmentation, h.In = cur.Pointer()+cur.Pointer(), cur.Pointer()
		h.Out, h.Budget = cur.Pointer()+cur.Pointer(), cur.Pointer()
		if after == 0 && h.Fragmentation == 0 && h.In == 0 && !g.collected(i) {
			h.Fragmentation = h.FragmentationBefore // .NET Core 3.x tells of what was not collected only how it was before
		}
	}
	if cur.Err() != nil {
		return
	}
	g.told++
	g.HasHistory = g.told >= g.Heaps
	for i := range gens {
		to, h := &g.Gen[i], &gens[i]
		to.Before += h.Before
		to.FragmentationBefore += h.FragmentationBefore
		to.Fragmentation += h.Fragmentation
		to.In += h.In
		to.Out += h.Out
		to.Budget += h.Budget
	}
	g.fit()
}

// fit leaves of the free space of a background collection what there is room for: generation 0 and
// 1 may have been collected between its history and its sizes.
func (g *GC) fit() {
	if !g.Concurrent || !g.HasSizes || !g.HasHistory {
		return
	}
	for i := range g.Gen {
		g.Gen[i].Fragmentation = min(g.Gen[i].Fragmentation, g.Gen[i].After)
	}
}

// collected reports whether g collects the generation of that index, as the events list them.
func (g *Collection) collected(i int) bool { return uint32(i) <= g.Generation || g.Generation >= 2 }

func (p *GCProcess) mark(ev *nettrace.Event) {
	if len(p.open) == 0 {
		return
	}
	cur := ev.Cursor()
	heap := cur.U32()
	cur.U16()
	kind, bytes := Root(cur.U32()), cur.U64()
	if cur.Err() != nil {
		return
	}
	g := p.open[len(p.open)-1]
	for i := range g.Marks {
		if m := &g.Marks[i]; m.Heap == heap && m.Kind == kind {
			m.Bytes += bytes
			return
		}
	}
	if len(g.Marks) < 1<<12 {
		g.Marks = append(g.Marks, Marked{heap, kind, bytes})
	}
}

// dynamic takes GCDynamic, of which CommittedUsage comes behind the start of a collection and
// before its end, on their threads.
func (p *GCProcess) dynamic(ev *nettrace.Event) {
	cur := ev.Cursor()
	name := cur.UTF16()
	size := cur.U32()
	version := cur.U16()
	used := cur.U64()
	if cur.Err() != nil || size < 10 || version != 1 || name.String() != "CommittedUsage" {
		return
	}
	if g := p.begun.gc; g != nil && p.begun.thread == ev.ThreadID {
		g.CommittedBefore, p.begun.gc = used, nil
		return
	}
	p.used = committed{used, ev.ThreadID}
}

func (c *GCs) finalized(p *GCProcess, ev *nettrace.Event, ns int64) {
	from := p.finalizers
	p.finalizers = Unknown
	var part int64
	if from != Unknown {
		part = ns - from
	}
	if c.Finalizing != nil {
		var counts bool
		if part, counts = c.Finalizing(from, ns); !counts {
			return
		}
	}
	cur := ev.Cursor()
	p.Finalized += uint64(cur.U32())
	p.Finalizing += part
}
