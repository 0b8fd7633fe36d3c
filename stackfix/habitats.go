package stackfix

import (
	"math"
	"sort"
)

const (
	// fewHomes is how many whole stacks that hold a method, below the same frames, it takes to believe
	// that it stands below no other call of the innermost of these.
	fewHomes = 8
	// withinReach is the part of the depth of whole stacks that a method may have below a base: one that
	// stands deeper there is in hardly any whole stack, wherever it is called from.
	withinReach = 0.85
)

// habitats tells below which root frames the methods of bridged stacks stand where whole ones were
// recorded. A base that leads where none of them does, although they lead up to there, is wrong:
// the stacks around show what their own time was like, and not this one.
type habitats struct {
	*engine
	tree  numbering // of what bases begin with, by method: the node of the callers, the method
	nodes []habitat // of these, the root first, callers before what they call
	of    []int32   // by method: 1 + its number, if a bridged stack holds it, else 0
	homes [][]home  // by number, in order of the nodes
	most  int       // depth at which a method may have homes; see withinReach
	asked numbering // of what was asked, what is in told
	told  []int
	fs    []FrameID
}

// A habitat is the outermost methods of a base.
type habitat struct {
	callers int32
	depth   int32
	n       int32 // nodes that are it or below it
	at      int32 // its place in an order in which all that are below it follow
	stacks  []StackID
}

// A home is where stacks that hold a method part from all bases.
type home struct {
	at         int32
	total      int32 // stacks there and before
	shallowest int32 // callers of the method, at least
}

// newHabitats learns from the whole stacks that were recorded what is asked of the bases of some
// blocks.
func (e *engine) newHabitats(w *world, based []*block, parts map[*block]*part) *habitats {
	x := &habitats{engine: e, nodes: make([]habitat, 1), of: make([]int32, e.methods)}
	deepest := 0
	seen := &e.seen
	seen.reset()
	for _, b := range based {
		if s := parts[b].base; seen.add(s) {
			x.node(s, true)
			deepest = max(deepest, e.t.Depth(s))
		}
	}
	seen.reset()
	for _, b := range based {
		for s := b.stack; s != 0 && seen.add(s); s = e.t.Parent(s) {
			if n := &x.of[e.method(e.t.Frame(s))]; *n == 0 {
				x.homes = append(x.homes, nil)
				*n = int32(len(x.homes))
			}
		}
	}
	seen.reset()
	for i := range w.runs {
		for b := range w.runs[i].all() {
			if b.given && b.known() && seen.add(b.ext) {
				x.most = max(x.most, int(withinReach*float64(e.t.Depth(b.ext))))
				n := &x.nodes[x.node(e.t.up(b.ext, deepest), false)]
				n.stacks = append(n.stacks, b.ext)
			}
		}
	}
	return x.settle()
}

// node returns the node of the outermost methods of s. It goes as far as there are nodes, or adds those that
// there are not.
func (x *habitats) node(s StackID, add bool) (n int32) {
	x.fs = x.t.AppendFrames(x.fs[:0], s)
	for _, f := range x.fs {
		key := edgeKey(uint32(n), x.method(f))
		next := int32(x.tree.get(key)) + 1
		switch {
		case next > 0:
		case !add:
			return n
		default:
			next = int32(x.tree.add(key)) + 1
			x.nodes = append(x.nodes, habitat{callers: n, depth: x.nodes[n].depth + 1})
		}
		n = next
	}
	return n
}

// settle finds the homes of the methods that are asked for.
func (x *habitats) settle() *habitats {
	for i := len(x.nodes) - 1; i >= 0; i-- {
		n := &x.nodes[i]
		n.n++
		if i > 0 {
			x.nodes[n.callers].n += n.n
		}
	}
	order := make([]int32, len(x.nodes))
	free := make([]int32, len(x.nodes)) // the next place below a node
	for i := range x.nodes {
		n := &x.nodes[i]
		if i > 0 {
			n.at = free[n.callers]
			free[n.callers] += n.n
		}
		free[i], order[n.at] = n.at+1, int32(i)
	}
	in := make([]StackID, len(x.homes)) // the stack in which a method was met
	for at, i := range order {
		for _, s := range x.nodes[i].stacks {
			for p := s; p != 0; {
				callers, f := x.t.Node(p)
				p = callers
				m := x.of[x.method(f)] - 1
				if m < 0 {
					continue
				}
				hs := x.homes[m]
				if k := len(hs) - 1; k < 0 || hs[k].at != int32(at) {
					h := home{at: int32(at), shallowest: math.MaxInt32}
					if k >= 0 {
						h.total = hs[k].total
					}
					hs = append(hs, h)
					x.homes[m] = hs
				}
				h := &hs[len(hs)-1]
				h.shallowest = min(h.shallowest, int32(x.t.Depth(callers)))
				if in[m] != s {
					in[m] = s
					h.total++
				}
			}
		}
		x.nodes[i].stacks = nil
	}
	return x
}

// within returns what is left of a base of s, a stack that at least so many frames call, or
// math.MaxInt if that is not known: as far as the methods of s may stand below it.
func (x *habitats) within(base, s StackID, least int) StackID {
	node := x.node(base, false)
	first := int(x.of[x.method(x.t.Frame(x.t.up(s, 1)))]) - 1
	above := x.ask(^uint32(node), first, func() int { return x.shallowest(node, x.homes[first]) })
	if least != math.MaxInt {
		above = max(above, least)
	}
	depth := x.t.Depth(base)
	for s = x.t.up(s, max(0, x.most-above)); s != 0; s = x.t.Parent(s) {
		m := int(x.of[x.method(x.t.Frame(s))]) - 1
		depth = min(depth, x.ask(uint32(node), m, func() int { return x.reach(node, x.homes[m]) }))
	}
	return x.t.up(base, depth)
}

// ask returns what f tells of a node and a method, and asks once.
func (x *habitats) ask(node uint32, m int, f func() int) int {
	i := x.asked.add(edgeKey(node, uint32(m)))
	if i == len(x.told) {
		x.told = append(x.told, f())
	}
	return x.told[i]
}

// shallowest tells how few frames, at least, call a method, which has these homes, where it stands below a node.
func (x *habitats) shallowest(node int32, homes []home) int {
	n := &x.nodes[node]
	least := x.most
	for _, h := range homes {
		if h.at >= n.at && h.at < n.at+n.n {
			least = min(least, int(h.shallowest))
		}
	}
	return least
}

// reach tells how many methods of a node stacks that hold a method, which has these homes, go along with, or
// may.
func (x *habitats) reach(node int32, homes []home) int {
	until := func(at int32) int32 {
		k := sort.Search(len(homes), func(i int) bool { return homes[i].at >= at })
		if k == 0 {
			return 0
		}
		return homes[k-1].total
	}
	for i := node; i > 0 && len(homes) > 0; i = x.nodes[i].callers {
		n := &x.nodes[i]
		switch c := until(n.at+n.n) - until(n.at); {
		case c >= fewHomes:
			return int(n.depth)
		case c > 0:
			return int(x.nodes[node].depth)
		}
	}
	return int(x.nodes[node].depth)
}
