package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// Folded writes one line for each distinct stack, "root;child;leaf count", sorted. The
// count is self time in microseconds, or with o.Counts the number of samples. A
// process is the first frame where there are several, a thread the next with
// o.ByThread. In names a semicolon becomes a colon, a line break a blank and what is no
// UTF-8 a U+FFFD.
func Folded(w io.Writer, p *profile.Profile, o Options) error {
	out := newBuffer(w)
	t := p.Table
	skip := t.Synthetic()
	timing := p.Timing()

	// The tree of everything: what is named alike is one node. Names are numbers; those
	// behind the methods are processes, threads and the off-CPU leaf.
	tree := profile.NewTable()
	var names []string
	nameIDs := map[string]profile.FrameID{}
	changed := 0
	name := func(s string) profile.FrameID {
		clean := strings.ToValidUTF8(foldedName.Replace(s), "\uFFFD")
		if clean != s {
			changed++
		}
		if id, ok := nameIDs[clean]; ok {
			return id
		}
		id := profile.FrameID(len(names))
		names = append(names, clean)
		nameIDs[clean] = id
		return id
	}
	const unknown = ^profile.FrameID(0)
	method := make([]profile.FrameID, t.Methods())
	for i := range method {
		method[i] = unknown
	}
	processes := map[*profile.Process]bool{}
	for _, th := range o.threads(p) {
		if hasStretches(th) {
			processes[th.Process] = true
		}
	}

	var weights []int64 // by node of the tree
	var order []profile.MethodID
	for _, th := range o.threads(p) {
		var root profile.StackID
		if len(processes) > 1 {
			pr := th.Owner()
			root = tree.Push(root, name(pr.Title()+" ("+strconv.FormatInt(pr.PID, 10)+")"))
		}
		if o.ByThread {
			root = tree.Push(root, name(th.Title()+" ("+strconv.FormatInt(th.TID, 10)+")"))
		}
		// Many samples share a stack: a node is looked for once per stack and thread.
		nodes := map[profile.StackID]profile.StackID{}
		sts := timing.Cursor(th)
		for st, ok := sts.Next(); ok; st, ok = sts.Next() {
			node, ok := nodes[st.Stack]
			if !ok {
				order = order[:0]
				for id := st.Stack; id != 0; id = t.Parent(id) {
					if m := t.Method(t.Frame(id)); !skip[m] {
						order = append(order, m)
					}
				}
				node = root
				for i := len(order) - 1; i >= 0; i-- {
					m := order[i]
					if method[m] == unknown {
						full := t.MethodAt(m).Full()
						method[m] = name(cmp.Or(full, "?"))
					}
					node = tree.Push(node, method[m])
				}
				nodes[st.Stack] = node
			}
			if st.Type == profile.SampleOffCPU {
				node = tree.Push(node, name(profile.OffCPU))
			}
			for int(node) >= len(weights) {
				weights = append(weights, 0)
			}
			if o.Counts {
				weights[node]++
			} else {
				weights[node] += st.Nanos()
			}
		}
	}
	if changed > 0 {
		o.warn("names changed, for folded stacks hold no semicolon, line break or faulty UTF-8: " + strconv.Itoa(changed))
	}
	if !o.Counts {
		for i := range weights {
			weights[i] = (weights[i] + 500) / 1000
		}
	}
	writeFolded(out, tree, names, weights)
	return out.flush()
}

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes the nodes of a tree that have weight, in the order of their names.
func writeFolded(out *buffer, tree *profile.Table, names []string, weights []int64) {
	// Children of a node are a run of kids, sorted by parent and name.
	kids := make([]profile.StackID, 0, tree.Stacks())
	for id := 1; id < tree.Stacks(); id++ {
		kids = append(kids, profile.StackID(id))
	}
	slices.SortFunc(kids, func(a, b profile.StackID) int {
		return cmp.Or(cmp.Compare(tree.Parent(a), tree.Parent(b)), strings.Compare(names[tree.Frame(a)], names[tree.Frame(b)]))
	})
	first := make([]int, tree.Stacks()+1) // of the kids of a node
	at := 0
	for id := range tree.Stacks() {
		first[id] = at
		for at < len(kids) && int(tree.Parent(kids[at])) == id {
			at++
		}
	}
	first[tree.Stacks()] = at

	var line []byte
	type level struct{ next, end, line int }
	walk := []level{{first[0], first[1], 0}}
	if len(weights) > 0 && weights[0] > 0 {
		// Samples without a single frame are time as well.
		out.str("[no frames] ")
		out.b = append(strconv.AppendInt(out.b, weights[0], 10), '\n')
	}
	for len(walk) > 0 && out.err == nil {
		l := &walk[len(walk)-1]
		if l.next == l.end {
			walk = walk[:len(walk)-1]
			continue
		}
		id := kids[l.next]
		l.next++
		line = line[:l.line]
		if l.line > 0 {
			line = append(line, ';')
		}
		line = append(line, names[tree.Frame(id)]...)
		if int(id) < len(weights) && weights[id] > 0 {
			b := append(out.b, line...)
			b = append(b, ' ')
			b = strconv.AppendInt(b, weights[id], 10)
			out.b = append(b, '\n')
			out.flushed()
		}
		walk = append(walk, level{first[id], first[id+1], len(line)})
	}
}
