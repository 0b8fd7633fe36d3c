package export

import (
	"math"

	"github.com/tracefix/tracefix/profile"
)

// longest is what the time of a thread in a weightAsTime may come to, ns: viewers keep times as
// float64 microseconds.
const longest = 1e15

// weightAsTime returns what a format that draws time writes: p as it is, or where a weight is
// asked for, stacks one behind the other that last as long as they weigh, with what weighs as
// the leaf, so that what viewers sum up are amounts. The processes' names say what a millisecond
// stands for. It has no tracks, whose times are real, and no repairs.
func (o *Options) weightAsTime(p *profile.Profile) (drawn *profile.Profile, weighed bool, err error) {
	weight, err := o.oneWeight(p)
	if err != nil || weight < 0 {
		return p, false, err
	}
	w := p.Weights[weight]
	scale := timeScale(p, weight)
	title := ": " + w.Name
	if w.Unit != profile.Nanoseconds || scale != 1 {
		title += ", 1 ms is " + amountText(1e6/scale, w.Unit)
	}
	t := &weightTable{from: p.Table, to: profile.NewTable(), stacks: map[profile.StackID]profile.StackID{}, methods: map[profile.MethodID]profile.FrameID{}, leaves: map[string]profile.FrameID{}}
	drawn = &profile.Profile{Meta: p.Meta, Table: t.to}
	drawn.Meta.DepthLimit, drawn.Meta.Lost = 0, 0
	processes := map[*profile.Process]*profile.Process{}
	negative := 0
	for _, th := range o.threads(p) {
		if !weighs(th, weight) {
			continue
		}
		process := processes[th.Process]
		if process == nil {
			process = &profile.Process{PID: th.Owner().PID, Name: th.Owner().Title() + title, CommandLine: th.Owner().CommandLine}
			processes[th.Process] = process
			drawn.Processes = append(drawn.Processes, process)
		}
		like := &profile.Thread{Process: process, TID: th.TID, Name: th.Name}
		end, sum := int64(0), 0.0
		for v := range p.Values(th, weight) {
			if v.Amount < 0 {
				negative++
				continue
			}
			start := end
			sum += v.Amount
			if end = int64(math.Round(sum * scale)); end > start {
				like.Samples.Append(profile.Sample{Time: start, Dur: end - start, Stack: t.push(v.Sample.Stack, v.Name), Type: profile.SampleExternal})
			}
		}
		drawn.Threads = append(drawn.Threads, like)
	}
	if negative > 0 {
		o.warn(thousands(int64(negative)) + " negative amounts are left out: this format draws them as time")
	}
	return drawn, true, nil
}

// timeScale returns how many nanoseconds stand for one unit of a weight.
func timeScale(p *profile.Profile, weight int) float64 {
	unit, scale := p.Weights[weight].Unit, 1.0
	if unit == profile.Count || unit == profile.NoUnit {
		scale = 1e6
	}
	most := 0.0
	for _, th := range p.Threads {
		sum := 0.0
		for v := range p.Values(th, weight) {
			sum += max(0, v.Amount)
		}
		most = max(most, sum)
	}
	for most*scale > longest {
		scale /= 1e3
	}
	return scale
}

// A weightTable copies stacks into a table of their own, below which what weighs is a leaf.
type weightTable struct {
	from, to *profile.Table
	stacks   map[profile.StackID]profile.StackID
	methods  map[profile.MethodID]profile.FrameID
	leaves   map[string]profile.FrameID
}

func (t *weightTable) push(stack profile.StackID, name string) profile.StackID {
	if name == "" {
		if stack != 0 {
			return t.copy(stack)
		}
		name = noFrames
	}
	leaf, ok := t.leaves[name]
	if !ok {
		leaf = t.to.AddFrame(profile.Frame{Method: t.to.AddMethod(profile.Method{Name: name, Module: "tracefix"})})
		t.leaves[name] = leaf
	}
	return t.to.Push(t.copy(stack), leaf)
}

func (t *weightTable) copy(stack profile.StackID) profile.StackID {
	var missing []profile.StackID
	at := stack
	for ; at != 0; at = t.from.Parent(at) {
		if _, ok := t.stacks[at]; ok {
			break
		}
		missing = append(missing, at)
	}
	to := t.stacks[at]
	for i := len(missing) - 1; i >= 0; i-- {
		m := t.from.Method(t.from.Frame(missing[i]))
		f, ok := t.methods[m]
		if !ok {
			f = t.to.AddFrame(profile.Frame{Method: t.to.AddMethod(t.from.MethodAt(m))})
			t.methods[m] = f
		}
		to = t.to.Push(to, f)
		t.stacks[missing[i]] = to
	}
	return to
}
