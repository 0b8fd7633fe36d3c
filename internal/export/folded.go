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
// count is self time in microseconds, or with o.Counts the number of samples; of another
// weight its amount, with what weighs as the leaf. A process is the first frame where
// there are several, a thread the next with o.ByThread. In names a semicolon becomes a
// colon, a line break a blank and what is no UTF-8 a U+FFFD.
func Folded(w io.Writer, p *profile.Profile, o Options) error {
	weight, err := o.oneWeight(p)
	if err != nil {
		return err
	}
	out := newBuffer(w)
	f := newFlame(p, foldedName.Replace)
	threads := o.threads(p)
	several := f.several(threads, weight)
	for _, th := range threads {
		var root profile.StackID
		if several {
			pr := th.Owner()
			root = f.tree.Push(root, f.name(pr.Title()+" ("+strconv.FormatInt(pr.PID, 10)+")"))
		}
		if o.ByThread {
			root = f.tree.Push(root, f.name(th.Title()+" ("+strconv.FormatInt(th.TID, 10)+")"))
		}
		f.add(th, root, weight, o.Counts)
	}
	f.positive(&o)
	if f.changed > 0 {
		o.warn("names changed, for folded stacks hold no semicolon, line break or faulty UTF-8: " + strconv.Itoa(f.changed))
	}
	beyond, zeros := false, 0
	weights := make([]int64, len(f.weights))
	for i, v := range f.weights {
		if !o.Counts && f.unit == profile.Nanoseconds {
			v /= 1000
		}
		if weights[i] = whole(v, &beyond); v > 0 && weights[i] == 0 {
			zeros++
		}
	}
	if zeros > 0 {
		o.warn("stacks that take less than half of what folded stacks count in (1 us, 1 byte), and are left out: " + strconv.Itoa(zeros))
	}
	o.warnBeyond(beyond)
	writeFolded(out, f.tree, f.names, weights)
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
