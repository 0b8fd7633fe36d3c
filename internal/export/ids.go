package export

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/trace"
)

// Numbers of processes and threads must be small positive integers for viewers:
// Perfetto reads what is outside of 32 bits as 0 and thread 0 as the main thread
// (chromium-trace.md section 6.3). Real ones are kept; what a viewer could not hold,
// and our own tracks, get numbers behind all real ones.
type numbers struct {
	processes []*trace.Process // in order of first use
	pids      map[*trace.Process]int64
	tids      map[*trace.Thread]int64
	ranks     map[*trace.Thread]int // order in which threads are shown
	free      int64
}

const firstFree = 1 << 30

func newNumbers(p *trace.Profile) *numbers {
	n := &numbers{pids: map[*trace.Process]int64{}, tids: map[*trace.Thread]int64{}, ranks: rankThreads(p), free: firstFree}
	for _, th := range p.Threads {
		for _, id := range []int64{processOf(th).PID, th.TID} {
			if holds(id) && id >= n.free {
				n.free = id + 1
			}
		}
	}
	for _, th := range p.Threads {
		n.pid(processOf(th))
		// Thread 0 is real in process 0 only: the kernel's idle thread.
		if holds(th.TID) && (th.TID > 0 || processOf(th).PID == 0) {
			n.tids[th] = th.TID
		} else {
			n.tids[th] = n.fresh()
		}
	}
	return n
}

func holds(id int64) bool { return id >= 0 && id < math.MaxInt32 }

func (n *numbers) fresh() int64 {
	n.free++
	return n.free - 1
}

func (n *numbers) pid(p *trace.Process) int64 {
	if p == nil {
		p = &noProcess
	}
	id, ok := n.pids[p]
	if !ok {
		id = p.PID
		if !holds(id) {
			id = n.fresh()
		}
		n.pids[p] = id
		n.processes = append(n.processes, p)
	}
	return id
}

// owner returns the process that a track is drawn in: that of the track, else the
// only one there is.
func (n *numbers) owner(t *trace.Track) *trace.Process {
	switch {
	case t.Process != nil:
		return t.Process
	case t.Thread != nil:
		return processOf(t.Thread)
	case len(n.processes) == 1:
		return n.processes[0]
	}
	return &noProcess
}

// rankThreads orders threads by the number of their samples on a CPU: those that
// work come first.
func rankThreads(p *trace.Profile) map[*trace.Thread]int {
	type work struct {
		th       *trace.Thread
		cpu, all int
	}
	list := make([]work, 0, len(p.Threads))
	for _, th := range p.Threads {
		n := &th.Samples
		w := work{th: th, all: n.Written(), cpu: n.Count(trace.SampleManaged) + n.Count(trace.SampleCPU)}
		list = append(list, w)
	}
	slices.SortStableFunc(list, func(a, b work) int {
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.all, a.all))
	})
	ranks := make(map[*trace.Thread]int, len(list))
	for i, w := range list {
		ranks[w.th] = i
	}
	return ranks
}

// onCPU says whether a sample of that type saw its thread on a CPU.
func onCPU(t trace.SampleType) bool { return t == trace.SampleManaged || t == trace.SampleCPU }

func processName(p *trace.Process) string {
	if p.Name != "" {
		return p.Name
	}
	if p == &noProcess {
		return "Trace"
	}
	return "Process " + strconv.FormatInt(p.PID, 10)
}

func threadName(th *trace.Thread) string {
	if th.Name != "" {
		return th.Name
	}
	return "Thread " + strconv.FormatInt(th.TID, 10)
}

// category is what a method is grouped by: its module, else its kind.
func category(m trace.Method) string {
	if m.Module != "" {
		return m.Module
	}
	return [...]string{trace.Managed: "managed", trace.Native: "native", trace.Kernel: "kernel", trace.Unresolved: "unresolved", trace.Synthetic: "tracefix"}[m.Kind]
}

// trackName is what a track is called: with its thread where it is not drawn below
// that thread.
func trackName(t *trace.Track, below bool) string {
	name := t.Name
	if name == "" {
		name = "(unnamed)"
	}
	if t.Thread == nil || below {
		return name
	}
	th, id := threadName(t.Thread), strconv.FormatInt(t.Thread.TID, 10)
	if !strings.HasSuffix(th, id) {
		th += " " + id
	}
	return name + " (" + th + ")"
}

// lossTrack draws lost events as a track of its own, so that a hole in the stacks
// explains itself. It is nil if nothing was lost.
func lossTrack(p *trace.Profile) *trace.Track {
	if len(p.Losses) == 0 {
		return nil
	}
	return &trace.Track{Name: "Lost events", Group: "cpu", Slices: func(yield func(*trace.Slice) bool) {
		losses := slices.Clone(p.Losses)
		slices.SortStableFunc(losses, func(a, b trace.Loss) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To))
		})
		for _, l := range losses {
			s := trace.Slice{Start: l.From, Dur: max(0, l.To-l.From), Name: "events lost", Category: "tracefix"}
			if l.Events > 0 {
				s.Args = append(s.Args, trace.Arg{Key: "events", Value: l.Events})
			}
			if l.Thread != nil {
				s.Args = append(s.Args, trace.Arg{Key: "thread", Value: l.Thread.TID})
			}
			if !yield(&s) {
				return
			}
		}
	}}
}

// tracks returns the tracks to write, the one of lost events last.
func (o *Options) tracks(p *trace.Profile) []*trace.Track {
	var ts []*trace.Track
	for _, t := range p.Tracks {
		if o.wants(t.Group) && t.Slices != nil {
			ts = append(ts, t)
		}
	}
	if t := lossTrack(p); t != nil {
		ts = append(ts, t)
	}
	return ts
}
