package export

import (
	"cmp"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// A flame is all stacks of a profile as one tree in which what is named alike is one node,
// with what each node weighs by itself.
type flame struct {
	p    *profile.Profile
	skip []bool
	form func(string) string // of names

	tree    *profile.Table // of stacks of names
	names   []string       // by frame of the tree
	ids     map[string]profile.FrameID
	leaves  map[string]profile.FrameID // ids, by what the name was before form
	method  []profile.FrameID          // by method of p, unnamed if it has none yet
	weights []float64                  // by node of the tree
	unit    profile.Unit
	changed int // names that form changed

	timing *profile.Timing
	path   []flameFrame // root first
	walk   []profile.StackID
}

const unnamed = ^profile.FrameID(0)

func newFlame(p *profile.Profile, form func(string) string) *flame {
	f := &flame{p: p, skip: p.Table.Synthetic(), form: form, tree: profile.NewTable(), ids: map[string]profile.FrameID{}, leaves: map[string]profile.FrameID{}, method: make([]profile.FrameID, p.Table.Methods())}
	for i := range f.method {
		f.method[i] = unnamed
	}
	return f
}

// name returns the frame of a name, without what is no UTF-8.
func (f *flame) name(s string) profile.FrameID {
	clean := strings.ToValidUTF8(f.form(s), "\uFFFD")
	if clean != s {
		f.changed++
	}
	if id, ok := f.ids[clean]; ok {
		return id
	}
	id := profile.FrameID(len(f.names))
	f.names = append(f.names, clean)
	f.ids[clean] = id
	return id
}

// leaf is name for what is met with every sample.
func (f *flame) leaf(s string) profile.FrameID {
	id, ok := f.leaves[s]
	if !ok {
		id = f.name(s)
		f.leaves[s] = id
	}
	return id
}

// several reports whether the threads that weigh anything are of several processes.
func (f *flame) several(threads []*profile.Thread, weight int) bool {
	seen := map[*profile.Process]bool{}
	for _, th := range threads {
		if weighs(th, weight) {
			seen[th.Process] = true
		}
	}
	return len(seen) > 1
}

// positive leaves out what weighs less than nothing: an area cannot show it, and what stands beside it
// would be wider than its caller.
func (f *flame) positive(o *Options) {
	negative := 0
	for i, v := range f.weights {
		if v < 0 {
			f.weights[i] = 0
			negative++
		}
	}
	o.warnNegative(negative)
}

// weighs reports whether a thread may have something by a weight; -1 is time.
func weighs(th *profile.Thread, weight int) bool {
	if weight < 0 {
		return th.Samples.Written() > 0
	}
	for v := range th.Values.All() {
		if int(v.Weight) == weight {
			return true
		}
	}
	return false
}

// add adds the stacks of a thread below root: the time of its samples if weight is -1, else
// what they weigh, with the name of it as the leaf. counts makes each count as one.
func (f *flame) add(th *profile.Thread, root profile.StackID, weight int, counts bool) {
	nodes := map[profile.StackID]profile.StackID{} // many samples share a stack
	f.path = f.path[:0]
	put := func(stack profile.StackID, leaf string, amount float64) {
		node, ok := nodes[stack]
		if !ok {
			node = f.push(root, stack)
			nodes[stack] = node
		}
		if leaf != "" {
			node = f.tree.Push(node, f.leaf(leaf))
		}
		for int(node) >= len(f.weights) {
			f.weights = append(f.weights, 0)
		}
		if counts {
			amount = 1
		}
		f.weights[node] += amount
	}
	if weight >= 0 {
		f.unit = f.p.Weights[weight].Unit
		for v := range f.p.Values(th, weight) {
			put(v.Sample.Stack, v.Name, v.Amount)
		}
		return
	}
	f.unit = profile.Nanoseconds
	if f.timing == nil {
		f.timing = f.p.Timing()
	}
	for st := range f.timing.Stretches(th) {
		leaf := ""
		if st.Type == profile.SampleOffCPU {
			leaf = profile.OffCPU
		}
		put(st.Stack, leaf, float64(st.Nanos()))
	}
}

// push adds the frames of a stack below root. It goes from the stack before, below the same root,
// to this one, so that the cost is that of the frames in which they differ.
func (f *flame) push(root, stack profile.StackID) profile.StackID {
	t := f.p.Table
	d := t.Depth(stack)
	f.walk = f.walk[:0]
	for d > 0 && (d > len(f.path) || f.path[d-1].stack != stack) {
		f.walk = append(f.walk, stack)
		stack = t.Parent(stack)
		d--
	}
	f.path = f.path[:d]
	if d > 0 {
		root = f.path[d-1].node
	}
	for i := len(f.walk) - 1; i >= 0; i-- {
		if m := t.Method(t.Frame(f.walk[i])); !f.skip[m] {
			if f.method[m] == unnamed {
				f.method[m] = f.name(cmp.Or(t.MethodAt(m).Full(), "?"))
			}
			root = f.tree.Push(root, f.method[m])
		}
		f.path = append(f.path, flameFrame{f.walk[i], root})
	}
	return root
}

// A flameFrame is a frame of the stack that was added last: the stack down to it, and the node of the tree.
type flameFrame struct{ stack, node profile.StackID }
