package export

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// Numbers of processes and threads must be small positive integers for viewers:
// Perfetto reads what is outside of 32 bits as 0 and thread 0 as the main thread
// (chromium-trace.md section 6.3). Real ones are kept; what a viewer could not hold,
// and our own tracks, get numbers behind all real ones, and so does a program that had
// the number of another one before: viewers have one name for each.
type numbers struct {
	processes []*profile.Process // in order of first use
	pids      map[*profile.Process]int64
	taken     map[int64]bool
	tids      map[*profile.Thread]int64
	ranks     map[*profile.Thread]int // order in which threads are shown
	free      int64
}

const firstFree = 1 << 30

func newNumbers(p *profile.Profile) *numbers {
	n := &numbers{pids: map[*profile.Process]int64{}, taken: map[int64]bool{}, tids: map[*profile.Thread]int64{}, ranks: rankThreads(p), free: firstFree}
	for _, th := range p.Threads {
		for _, id := range []int64{th.Owner().PID, th.TID} {
			if holds(id) && id >= n.free {
				n.free = id + 1
			}
		}
	}
	idle := false
	for _, th := range p.Threads {
		n.pid(th.Owner())
		// Thread 0 is real in process 0 only: the kernel's idle thread. Others have no number but a name.
		if holds(th.TID) && (th.TID > 0 || th.Owner().PID == 0 && !idle) {
			n.tids[th] = th.TID
			idle = idle || th.TID == 0
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

func (n *numbers) pid(p *profile.Process) int64 {
	if p == nil {
		p = (*profile.Thread)(nil).Owner()
	}
	id, ok := n.pids[p]
	if !ok {
		id = p.PID
		if !holds(id) || n.taken[id] {
			id = n.fresh()
		}
		n.pids[p], n.taken[id] = id, true
		n.processes = append(n.processes, p)
	}
	return id
}

// again reports whether p has another number than its own since another program had that.
func (n *numbers) again(p *profile.Process) bool { return n.pid(p) != p.PID && holds(p.PID) }

// title is what a viewer calls p, with the number that it had where it is shown with another one.
func (n *numbers) title(p *profile.Process) string {
	if p.Name == "" || !n.again(p) {
		return p.Title()
	}
	return p.Title() + " (" + strconv.FormatInt(p.PID, 10) + ")"
}

// owner returns the process that a track is drawn in: that of the track, else the
// only one there is.
func (n *numbers) owner(t *profile.Track) *profile.Process {
	switch {
	case t.Process != nil:
		return t.Process
	case t.Thread != nil:
		return t.Thread.Owner()
	case len(n.processes) == 1:
		return n.processes[0]
	}
	return (*profile.Thread)(nil).Owner()
}

// rankThreads orders threads by the number of their samples on a CPU: those that
// work come first.
func rankThreads(p *profile.Profile) map[*profile.Thread]int {
	type work struct {
		th       *profile.Thread
		cpu, all int
	}
	list := make([]work, 0, len(p.Threads))
	for _, th := range p.Threads {
		n := &th.Samples
		w := work{th: th, all: n.Written(), cpu: n.Count(profile.SampleManaged) + n.Count(profile.SampleCPU)}
		list = append(list, w)
	}
	text.SortRows(list, func(a, b *work) int {
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.all, a.all))
	})
	ranks := make(map[*profile.Thread]int, len(list))
	for i, w := range list {
		ranks[w.th] = i
	}
	return ranks
}

// category is what a method is grouped by: its module, else its kind.
func category(m profile.Method) string {
	if m.Module != "" {
		return m.Module
	}
	return [...]string{profile.Managed: "managed", profile.Native: "native", profile.Kernel: "kernel", profile.Unresolved: "unresolved", profile.Synthetic: "tracefix"}[m.Kind]
}

// trackName is what a track is called: with its thread where it is not drawn below
// that thread.
func trackName(t *profile.Track, below bool) string {
	name := t.Name
	if name == "" {
		name = "(unnamed)"
	}
	if t.Thread == nil || below {
		return name
	}
	th, id := t.Thread.Title(), strconv.FormatInt(t.Thread.TID, 10)
	if !strings.HasSuffix(th, id) {
		th += " " + id
	}
	return name + " (" + th + ")"
}

// lossTrack draws lost events as a track of its own, so that a hole in the stacks
// explains itself. It is nil if nothing was lost.
func lossTrack(p *profile.Profile) *profile.Track {
	if len(p.Losses) == 0 {
		return nil
	}
	return &profile.Track{Name: "Lost events", Group: "cpu", Slices: func(yield func(*profile.Slice) bool) {
		losses := slices.Clone(p.Losses)
		text.SortRows(losses, func(a, b *profile.Loss) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To))
		})
		for _, l := range losses {
			s := profile.Slice{Start: l.From, Dur: max(0, l.To-l.From), Name: "events lost", Category: "tracefix"}
			if l.Events > 0 {
				s.Args = append(s.Args, profile.Arg{Key: "events", Value: l.Events})
			}
			if l.Thread != nil {
				s.Args = append(s.Args, profile.Arg{Key: "thread", Value: l.Thread.TID})
			}
			if !yield(&s) {
				return
			}
		}
	}}
}

// tracks returns the tracks to write, the one of lost events last.
func (o *Options) tracks(p *profile.Profile) []*profile.Track {
	var ts []*profile.Track
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
