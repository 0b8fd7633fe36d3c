package events

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// An adjustmentRow is a new goal for the number of workers.
type adjustmentRow struct {
	K          string   `json:"k"`
	PID        int      `json:"pid"`
	MS         float64  `json:"ms"`
	TID        uint64   `json:"tid"`
	Throughput *float64 `json:"throughput,omitempty"` // nil: what the trace has is no number
	New        uint32   `json:"new_count"`
	Reason     string   `json:"reason"`
}

// A workerRow is a worker that started, stopped or began to wait; active counts the workers
// that exist.
type workerRow struct {
	K      string  `json:"k"`
	PID    int     `json:"pid"`
	MS     float64 `json:"ms"`
	TID    uint64  `json:"tid"`
	Active uint32  `json:"active"`
}

type limitsRow struct {
	K          string  `json:"k"`
	PID        int     `json:"pid"`
	MS         float64 `json:"ms"`
	MinWorkers uint16  `json:"min_workers"`
	MaxWorkers uint16  `json:"max_workers"`
	MinIO      uint16  `json:"min_io"`
	MaxIO      uint16  `json:"max_io"`
}

type threadsStats struct {
	K           string         `json:"k"`
	PID         int            `json:"pid,omitempty"`
	Reasons     map[string]int `json:"reasons"`
	Starts      int            `json:"worker_starts"`
	Stops       int            `json:"worker_stops"`
	Waits       int            `json:"worker_waits"`
	MaxActive   uint32         `json:"max_active"`
	MaxAdjusted uint32         `json:"max_adjusted"`
	Enqueues    int64          `json:"enqueues"`
	Dequeues    int64          `json:"dequeues"`
	Untimed     int64          `json:"dequeues_without_enqueue,omitempty"`
	DelayP50    *float64       `json:"queue_delay_ms_median,omitempty"`
	DelayP95    *float64       `json:"queue_delay_ms_p95,omitempty"`
	DelayMax    *float64       `json:"queue_delay_ms_max,omitempty"`
	DelaySum    *float64       `json:"queue_delay_ms_sum,omitempty"`
	ThreadStart *float64       `json:"thread_start_ms_p95,omitempty"`
	Starving    *starving      `json:"starvation,omitempty"`
}

// starving is a time in which the pool added threads because nothing moved.
type starving struct {
	From  float64 `json:"from_ms"`
	To    float64 `json:"to_ms"`
	Added int     `json:"adjustments"`
}

var workerKinds = map[runtimeevents.WorkerChangeKind]string{
	runtimeevents.WorkerStart: "worker_start", runtimeevents.WorkerStop: "worker_stop", runtimeevents.WorkerWait: "worker_wait",
}

// waited is how long work stood in the queue of a process, millions of times.
type waited struct {
	*durations
	longest peaks // in ms
	inside  int64 // of them, what lies in the time that is wanted
	cut     int   // of them, how many lie in it in part
}

// threadsReport reports on the thread pools of a trace. queued is how long work waited, by process;
// nil where that is not known.
func threadsReport(procs []*runtimeevents.PoolProcess, queued func(pid int) *waited, c *Context) *Report {
	r := &Report{Title: "Thread pool of " + c.Name, row: adjustmentRow{}, stats: threadsStats{K: "stats", Reasons: map[string]int{}}}
	var stats []any
	for _, p := range procs {
		r.Rows.add(len(p.Limits), func(i int) any {
			l := &p.Limits[i]
			return limitsRow{"min_max", p.PID, text.Millis(l.Time), l.MinWorkers, l.MaxWorkers, l.MinIO, l.MaxIO}
		})
		r.Rows.add(len(p.Workers), func(i int) any {
			w := &p.Workers[i]
			return workerRow{workerKinds[w.Kind], p.PID, text.Millis(w.Time), w.Thread, w.Workers}
		})
		row := func(i int) any {
			a := &p.Adjustments[i]
			return adjustmentRow{"adjustment", p.PID, text.Millis(a.Time), a.Thread, optional(a.Throughput), a.Workers, a.Reason.String()}
		}
		r.Rows.add(len(p.Adjustments), row)
		r.CSV.add(len(p.Adjustments), row)
		queue := queued(p.PID)
		s := threadsStatsOf(p, queue)
		stats = append(stats, s)
		sec := c.section(p.PID)
		sec.Verdict = threadsVerdict(p, &s, queue, c)
		sec.Tables = threadsTables(p, c)
		sec.Plots = func() []Plot { return threadsPlots(p, queue) }
		r.Sections = append(r.Sections, sec)
	}
	r.Done = count(r.CSV.Len(), "change") + " of the pool's size"
	r.Rows.add(len(stats), func(i int) any { return stats[i] })
	return r
}

func threadsStatsOf(p *runtimeevents.PoolProcess, queue *waited) threadsStats {
	s := threadsStats{
		K: "stats", PID: p.PID, Reasons: map[string]int{}, Starts: p.Count(runtimeevents.WorkerStart), Stops: p.Count(runtimeevents.WorkerStop),
		Waits: p.Count(runtimeevents.WorkerWait), MaxActive: p.MaxWorkers(), Enqueues: p.Enqueued, Dequeues: p.Untimed, Untimed: p.Untimed,
	}
	for _, a := range p.Adjustments {
		s.Reasons[a.Reason.String()]++
		s.MaxAdjusted = max(s.MaxAdjusted, a.Workers)
	}
	if queue != nil {
		d := queue.spread()
		s.Dequeues += int64(d.Count)
		s.DelayP50, s.DelayP95, s.DelayMax, s.DelaySum = told(d.P50), told(d.P95), told(d.Max), told(queue.inside)
	}
	if len(p.Births) > 0 {
		var births durations
		for _, d := range p.Births {
			births.add(d.Wait)
		}
		s.ThreadStart = told(births.spread().P95)
	}
	if l := p.Reason(runtimeevents.Starvation); len(l) > 0 {
		s.Starving = &starving{text.Millis(l[0].Time), text.Millis(l[len(l)-1].Time), len(l)}
	}
	return s
}

func threadsVerdict(p *runtimeevents.PoolProcess, s *threadsStats, queue *waited, c *Context) (v []string) {
	starved, blocked := s.Reasons[runtimeevents.Starvation.String()], s.Reasons[runtimeevents.CooperativeBlocking.String()]
	switch {
	case starved > 0:
		when := "at " + at(nanos(s.Starving.From))
		if starved > 1 {
			when = "between " + at(nanos(s.Starving.From)) + " and " + at(nanos(s.Starving.To))
		}
		v = append(v, fmt.Sprintf("The pool starved: %s, %s, it found that no work had been taken for half a second, and added a worker. Its workers were blocked, as by Thread.Sleep, locks or events, or computed for as long.",
			count(starved, "time"), when))
	case c.Partial: // the pool's size is changed on any thread
	case !p.WorkersTold:
		v = append(v, "Whether the pool starved was not recorded: --providers Microsoft-Windows-DotNETRuntime:0x10000:4 does.")
	case blocked == 0 && c.Lost > 0:
		v = append(v, "The trace does not tell that the pool starved.")
	case blocked == 0:
		v = append(v, unstarved(p))
	}
	if blocked > 0 {
		v = append(v, "Workers waited for tasks: the pool "+roomMade(p)+". Await those tasks instead.")
	}
	if s.MaxActive > 0 {
		v = append(v, fmt.Sprintf("Workers: up to %s at a time; %d started, %d stopped.", thousands(int(s.MaxActive)), s.Starts, s.Stops))
	}
	also := "item"
	if s.DelayP50 != nil {
		also = "more item"
		judged := ""
		if *s.DelayP95 >= 100 {
			judged = " Work waits long for a thread."
		}
		v = append(v, fmt.Sprintf("Work stood in the queue for %s (median), %s (95 %%), %s at worst, in %s.%s",
			duration(nanos(*s.DelayP50)), duration(nanos(*s.DelayP95)), duration(nanos(*s.DelayMax)), count(int(s.Dequeues-s.Untimed), "item"), judged))
		v = append(v, cutNote(queue.cut, "wait")...)
	}
	switch {
	case s.Untimed > 0:
		v = append(v, fmt.Sprintf("For how long %s stood in the queue is not known: the trace lacks when they came.", count(int(s.Untimed), also)))
	case s.DelayP50 != nil:
	case p.QueueTold:
		v = append(v, "No work was taken from the queue.")
	default:
		v = append(v, "How long work stood in the queue was not recorded: --providers System.Diagnostics.Eventing.FrameworkEventSource:0x12:5 does.")
	}
	if _, until := c.In.Bounds(); !c.Partial && c.Lost == 0 {
		if n := p.Waiting(until); n > 0 {
			v = append(v, fmt.Sprintf("Nothing tells when %s that came into the queue left it: after the trace ended, or as who waited for the result ran it itself.", count(n, also)))
		}
	}
	return v
}

// unstarved tells of a pool that added no worker because it starved what that says: with as many as
// may exist it adds none.
func unstarved(p *runtimeevents.PoolProcess) string {
	limit, told := p.MaxReached()
	switch {
	case limit > 0:
		return fmt.Sprintf("Whether the pool starved is not told: it had all %s that it may have, and adds none beyond, however long work waits. ThreadPool.SetMaxThreads, or the configuration, says how many.", count(int(limit), "worker"))
	case !told:
		return "The pool did not starve, unless it had all the workers that it may have: beyond that it adds none, however long work waits. The trace does not tell how many it may have."
	}
	return "The pool did not starve."
}

// roomMade tells how often a pool made room for a worker because another one blocked.
func roomMade(p *runtimeevents.PoolProcess) string {
	raised, lowered, unknown := p.Steps(runtimeevents.CooperativeBlocking)
	const because = "because Task.Wait or Task.Result blocked a worker"
	least := ""
	if unknown {
		least = "at least "
	}
	switch {
	case raised > 0 && lowered == 0 && unknown:
		return fmt.Sprintf("made room for another one %s%s, %s", least, count(raised, "time"), because)
	case raised > 0:
		return fmt.Sprintf("made room for another one %s%s, %s, and took that back in %s%s", least, count(raised, "time"), because, least, count(lowered, "step"))
	case lowered > 0:
		return fmt.Sprintf("took back, in %s%s, the room that it had made for others %s", least, count(lowered, "step"), because)
	}
	return "made room for another one, " + because + ", or took that back, once"
}

func threadsTables(p *runtimeevents.PoolProcess, c *Context) []Table {
	type sum struct{ from, to int64 }
	by, counts := map[string]*sum{}, map[string]int{}
	for _, a := range p.Adjustments {
		name := a.Reason.String()
		if by[name] == nil {
			by[name] = &sum{from: a.Time}
		}
		by[name].to = a.Time
		counts[name]++
	}
	reasons := Table{Head: []string{"times", "first", "last", "the size was changed for"}, Left: 3}
	for _, name := range ranked(counts, len(counts)) {
		reasons.Rows = append(reasons.Rows, []string{thousands(counts[name]), at(by[name].from), at(by[name].to), name + poolHelp[name]})
	}
	n := c.cut(len(p.Adjustments))
	steps := Table{Title: "Changes", Head: []string{"at", "workers", "items/s", "reason"}, Left: 3, More: len(p.Adjustments) - n}
	for _, a := range p.Adjustments[:n] {
		steps.Rows = append(steps.Rows, []string{at(a.Time), strconv.Itoa(int(a.Workers)), digits(a.Throughput), a.Reason.String()})
	}
	return slices.DeleteFunc([]Table{reasons, steps}, func(t Table) bool { return len(t.Rows) == 0 })
}

// poolHelp says in words what a reason means.
var poolHelp = map[string]string{
	"Starvation":          ": no work was taken for half a second",
	"CooperativeBlocking": ": a worker blocked in Task.Wait or Task.Result, or no longer did",
	"ThreadTimedOut":      ": a worker had nothing to do for long",
	"ClimbingMove":        ": trying whether more or fewer do more work",
	"RandomMove":          ": trying whether more or fewer do more work",
	"Initializing":        ": the pool began",
	"Warmup":              ": getting up to speed",
	"ChangePoint":         ": the throughput changed",
	"Stabilizing":         ": settling",
}

func threadsPlots(p *runtimeevents.PoolProcess, queue *waited) []Plot {
	exist, goal := PlotSeries{Name: "workers", Style: Steps}, PlotSeries{Name: "goal", Style: Steps}
	starved, blocked := PlotSeries{Name: "starvation", Style: Dots}, PlotSeries{Name: "cooperative blocking", Style: Dots}
	for _, w := range p.Workers {
		exist.add(w.Time, float64(w.Workers), "")
	}
	for _, a := range p.Adjustments {
		goal.add(a.Time, float64(a.Workers), a.Reason.String())
		switch a.Reason {
		case runtimeevents.Starvation:
			starved.add(a.Time, float64(a.Workers), "starvation: "+strconv.Itoa(int(a.Workers))+" workers")
		case runtimeevents.CooperativeBlocking:
			blocked.add(a.Time, float64(a.Workers), "cooperative blocking: "+strconv.Itoa(int(a.Workers))+" workers")
		}
	}
	delays := PlotSeries{Name: "wait of work for a worker", Style: Bars}
	if queue != nil {
		delays = queue.longest.series(delays.Name, Bars, func(p *peak) string { return duration(nanos(p.value)) })
	}
	return []Plot{
		{Title: "Workers", Unit: "threads", Series: []PlotSeries{exist, goal, starved, blocked}},
		{Title: "Queue", Unit: "ms", Series: []PlotSeries{delays}},
	}
}
