package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A weighedStack is a stack with what weighs at its end, as frame numbers of the file.
type weighedStack struct {
	stack profile.StackID
	leaf  int32 // -1: none
}

// weighedStacks are the distinct stacks of a group of threads with what they weigh.
type weighedStacks struct {
	name   string
	own    string // members for those who read the file again, with a comma behind each
	stacks []weighedStack
	weight []float64
	index  map[weighedStack]int
	plain  []int // instead of index for stacks without a leaf, by stack: 1 + the place; may be nil
	total  float64
}

func newWeighedStacks(name string) *weighedStacks {
	return &weighedStacks{name: name, index: map[weighedStack]int{}}
}

func (g *weighedStacks) add(s weighedStack, amount float64) {
	i := g.place(s)
	g.weight[i] += amount
	g.total += amount
}

// positive leaves out what weighs less than nothing, and returns how many stacks that are: speedscope refuses
// a file that holds one.
func (g *weighedStacks) positive() (negative int) {
	g.total = 0
	for i, v := range g.weight {
		if v < 0 {
			g.weight[i] = 0
			negative++
		}
		g.total += g.weight[i]
	}
	return negative
}

// tooDeep returns how many frames g holds if that is out of proportion: spans that begin and never
// end are stacks that are each one frame deeper than the last, and with the sum a file of 20,000 of
// them took 562 MB instead of 1.5.
func (g *weighedStacks) tooDeep(t *profile.Table) int64 {
	const many, deep = 20e6, 1000 // in all, and on average
	frames := int64(0)
	for _, s := range g.stacks {
		frames += int64(t.Depth(s.stack))
	}
	if frames < many || frames < deep*int64(len(g.stacks)) {
		return 0
	}
	return frames
}

// place returns the place of s, which is new if it was not met.
func (g *weighedStacks) place(s weighedStack) int {
	if s.leaf < 0 && g.plain != nil {
		at := &g.plain[s.stack]
		if *at == 0 {
			*at = g.append(s) + 1
		}
		return *at - 1
	}
	i, ok := g.index[s]
	if !ok {
		i = g.append(s)
		g.index[s] = i
	}
	return i
}

func (g *weighedStacks) append(s weighedStack) int {
	g.stacks = append(g.stacks, s)
	g.weight = append(g.weight, 0)
	return len(g.stacks) - 1
}

// speedscopeUnits are what speedscope calls the units.
var speedscopeUnits = map[profile.Unit]string{profile.Bytes: "bytes", profile.Nanoseconds: "nanoseconds"}

// speedscopeWeighed writes what stacks weigh: one sampled profile of all threads, then one for
// each, the heaviest first. What weighs is the leaf of its stack.
func speedscopeWeighed(w io.Writer, p *profile.Profile, o Options, weight int) error {
	frames := newFrameNames(p)
	all := newWeighedStacks(allThreads)
	all.own = sumMember
	var groups []*weighedStacks
	negative := 0
	for _, th := range o.threads(p) {
		if !weighs(th, weight) {
			continue
		}
		g := newWeighedStacks(threadTitle(th, len(p.Processes) > 1))
		g.own = `"tracefix":` + string(appendIdentity(appendLimit(nil, p), th)) + ","
		for v := range p.Values(th, weight) {
			frames.meet(v.Sample.Stack)
			s := weighedStack{v.Sample.Stack, -1}
			if v.Name != "" {
				s.leaf = frames.leaf(v.Name)
			}
			g.add(s, v.Amount)
		}
		negative += g.positive()
		for i, s := range g.stacks {
			all.add(s, g.weight[i])
		}
		groups = append(groups, g)
	}
	o.warnNegative(negative)
	slices.SortStableFunc(groups, func(a, b *weighedStacks) int { return cmp.Compare(b.total, a.total) })
	if len(groups) != 1 {
		groups = append([]*weighedStacks{all}, groups...)
	}

	out := newBuffer(w)
	out.str(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":`)
	out.b = text.AppendJSON(out.b, o.exporter())
	out.str(`,"name":`)
	out.b = text.AppendJSON(out.b, o.title(p))
	out.str(`,"activeProfileIndex":0,"shared":{"frames":[`)
	for i, n := range frames.names {
		if i > 0 {
			out.str(",")
		}
		out.speedscopeFrame(n, frames.begins[int32(i)])
	}
	out.str("]},\n" + `"profiles":[`)
	for i, g := range groups {
		if i > 0 {
			out.str(",")
		}
		g.write(out, frames, cmp.Or(speedscopeUnits[p.Weights[weight].Unit], "none"))
	}
	out.str("]}\n")
	return out.flush()
}

const allThreads = "All threads"

// sumMember tells readers that a profile adds up the others.
const sumMember = `"tracefix":{"sum":true},`

// threadTitle names a thread in the list of a viewer.
func threadTitle(th *profile.Thread, several bool) string {
	name := th.Title()
	if th.Name != "" {
		name += " (" + strconv.FormatInt(th.TID, 10) + ")"
	}
	if several {
		name = th.Owner().Title() + " (" + strconv.FormatInt(th.Owner().PID, 10) + ") " + name
	}
	return name
}

// write writes a sampled profile.
func (g *weighedStacks) write(out *buffer, frames *frameNames, unit string) {
	out.str("\n" + `{"type":"sampled","name":`)
	out.b = text.AppendJSON(out.b, g.name)
	out.str(`,` + g.own + `"unit":"` + unit + `","startValue":0,"endValue":`)
	out.b = strconv.AppendFloat(out.b, g.total, 'f', -1, 64)
	out.str(`,"samples":[`)
	for i, s := range g.stacks {
		if i > 0 {
			out.str(",")
		}
		out.str("\n[")
		for k, f := range frames.of(s) {
			if k > 0 {
				out.str(",")
			}
			out.b = strconv.AppendInt(out.b, int64(f), 10)
		}
		out.str("]")
		out.flushed()
	}
	out.str(`],"weights":[`)
	for i, v := range g.weight {
		if i > 0 {
			out.str(",")
		}
		out.b = strconv.AppendFloat(out.b, v, 'f', -1, 64)
		out.flushed()
	}
	out.str("]}")
}

// frameNames numbers the names of the frames that are met.
type frameNames struct {
	p      *profile.Profile
	skip   []bool
	names  []string
	method []int32 // by method; -1: not met
	leaves map[string]int32
	begins map[int32]profile.Place
	buf    []int32
}

func newFrameNames(p *profile.Profile) *frameNames {
	f := &frameNames{p: p, skip: p.Table.Synthetic(), method: make([]int32, p.Table.Methods()), leaves: map[string]int32{}, begins: map[int32]profile.Place{}}
	for i := range f.method {
		f.method[i] = -1
	}
	return f
}

func (f *frameNames) add(name string) int32 {
	f.names = append(f.names, cmp.Or(name, "?"))
	return int32(len(f.names) - 1)
}

// meet numbers the frames of a stack.
func (f *frameNames) meet(id profile.StackID) {
	t := f.p.Table
	for ; id != 0; id = t.Parent(id) {
		if m := t.Method(t.Frame(id)); !f.skip[m] && f.method[m] < 0 {
			f.method[m] = f.add(t.MethodAt(m).Full())
			if begin := t.BeginOf(m); begin.File != "" {
				f.begins[f.method[m]] = begin
			}
		}
	}
}

// of returns the numbers of the frames of a stack that was met, root first; they are valid
// until the next call.
func (f *frameNames) of(s weighedStack) []int32 {
	t := f.p.Table
	f.buf = f.buf[:0]
	if s.leaf >= 0 {
		f.buf = append(f.buf, s.leaf)
	}
	for id := s.stack; id != 0; id = t.Parent(id) {
		if m := t.Method(t.Frame(id)); !f.skip[m] {
			f.buf = append(f.buf, f.method[m])
		}
	}
	slices.Reverse(f.buf)
	return f.buf
}

func (f *frameNames) leaf(name string) int32 {
	id, ok := f.leaves[name]
	if !ok {
		id = f.add(name)
		f.leaves[name] = id
	}
	return id
}
