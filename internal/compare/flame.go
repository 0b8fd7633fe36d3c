package compare

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A node is a frame of the stacks of both traces, with what it costs with all that is below.
type node struct {
	name  string
	self  [2]float64
	total [2]float64
	kids  []*node
	by    map[int]*node
}

func (n *node) kid(c *costs, id int) *node {
	k := n.by[id]
	if k == nil {
		k = &node{name: c.names.list[id], by: map[int]*node{}}
		n.by[id] = k
		n.kids = append(n.kids, k)
	}
	return k
}

// tree joins the stacks of both traces. Time after is scaled to the requests before, so
// that equal widths are equal costs of a request.
func (r *Result) tree() *node {
	root := &node{name: "all", by: map[int]*node{}}
	if !r.compares("cpu") {
		return root
	}
	for side, c := range []*costs{r.a, r.b} {
		scale := 1.0
		if r.PerRequest && side == 1 {
			scale = float64(r.Requests[0]) / float64(r.Requests[1])
		}
		p := c.trace.Profile
		timing := p.Timing()
		nodes := map[profile.StackID]*node{0: root}
		for _, th := range p.Threads {
			for st := range timing.Stretches(th) {
				if !c.counts(&st) || c.stack(st.Stack).idle {
					continue
				}
				c.node(nodes, st.Stack).self[side] += scale * float64(st.Nanos())
			}
		}
	}
	root.finish()
	return root
}

// node returns that of a stack, and adds those of its callers to nodes as well: each is met once.
func (c *costs) node(nodes map[profile.StackID]*node, id profile.StackID) *node {
	t := c.trace.Profile.Table
	var path []profile.StackID // without a node
	for ; nodes[id] == nil; id = t.Parent(id) {
		path = append(path, id)
	}
	n := nodes[id]
	for _, id := range slices.Backward(path) {
		if m := t.Method(t.Frame(id)); !c.skip[m] || t.MethodAt(m).Name == profile.Bridge {
			n = n.kid(c, c.name(m))
		}
		nodes[id] = n
	}
	return n
}

// finish adds up and sorts by name. Stacks are as deep as the trace's.
func (n *node) finish() {
	n.total = n.self
	slices.SortFunc(n.kids, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for _, k := range n.kids {
		k.finish()
		n.total[0] += k.total[0]
		n.total[1] += k.total[1]
	}
}

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// Folded writes "root;child;leaf before after" in microseconds, as difffolded.pl does;
// flamegraph.pl draws it.
func (r *Result) Folded(w io.Writer) error {
	b := bufio.NewWriter(w)
	var path []byte
	var walk func(n *node)
	walk = func(n *node) {
		if x, y := math.Round(n.self[0]/1e3), math.Round(n.self[1]/1e3); len(path) > 0 && x+y > 0 {
			fmt.Fprintf(b, "%s %.0f %.0f\n", path, x, y)
		}
		callers := len(path)
		for _, k := range n.kids {
			if callers > 0 {
				path = append(path, ';')
			}
			path = append(path, strings.ToValidUTF8(foldedName.Replace(k.name), "\uFFFD")...)
			walk(k)
			path = path[:callers]
		}
	}
	walk(r.tree())
	return b.Flush()
}

//go:embed page.html
var page string

// A drawn node is one of the page: name, ms before, ms after, children.
type drawn struct {
	Name   string  `json:"n"`
	Before float64 `json:"a"`
	After  float64 `json:"b"`
	Kids   []drawn `json:"k,omitempty"`
}

// HTML writes a page with a differential flame graph: width is the cost after or before,
// red is more, blue is less. Frames of less than a two-thousandth are left out.
func (r *Result) HTML(w io.Writer) error {
	root := r.tree()
	units := 1.0
	if r.PerRequest {
		units = float64(r.Requests[0])
	}
	least := max(root.total[0], root.total[1]) / 2000
	var draw func(n *node) drawn
	draw = func(n *node) drawn {
		d := drawn{Name: text.Line(n.name), Before: n.total[0] / units / 1e6, After: n.total[1] / units / 1e6}
		for _, k := range n.kids {
			if max(k.total[0], k.total[1]) >= least {
				d.Kids = append(d.Kids, draw(k))
			}
		}
		return d
	}
	verdict := r.verdict()
	for i := range verdict {
		verdict[i] = text.Line(verdict[i])
	}
	data, err := json.Marshal(struct {
		Title   string   `json:"title"`
		Unit    string   `json:"unit"`
		Verdict []string `json:"verdict"`
		Root    drawn    `json:"root"`
	}{text.Line(r.Before + " → " + r.After), map[bool]string{true: "ms a request", false: "ms"}[r.PerRequest], verdict, draw(root)})
	if err != nil {
		return err
	}
	before, after, _ := strings.Cut(page, "/*DATA*/") // json.Marshal escapes < so that nothing ends the script
	for _, s := range []string{before, string(data), after} {
		if _, err := io.WriteString(w, s); err != nil {
			return err
		}
	}
	return nil
}

// Summary is what there is to say in one line.
func (r *Result) Summary() string {
	n, _ := r.onlyTotals()
	if r.CPU.Moved() {
		n++
	}
	for i := range r.Methods {
		if r.Methods[i].Self.Moved() {
			n++
		}
	}
	for i := range kinds {
		if kinds[i].list == nil {
			continue
		}
		for _, x := range *kinds[i].list(r) {
			if x.Moved() {
				n++
			}
		}
	}
	s := fmt.Sprintf("%d moved beyond noise", n)
	if r.bare {
		s = "nothing to compare"
	} else if n == 0 {
		s = "nothing moved beyond noise"
	}
	between := "; not compared: "
	for _, n := range r.NotCompared {
		s += between + n.words
		between = ", "
	}
	return s
}
