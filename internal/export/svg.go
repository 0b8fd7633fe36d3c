package export

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// Sizes of a flame graph, px. A frame thinner than minFrame is left out.
const (
	svgWidth  = 1200
	svgRow    = 16
	svgTop    = 34
	svgSide   = 10
	minFrame  = 0.3
	charWidth = 6.2
)

// SVG draws a flame graph of all threads as one: roots at the top, where a picture of deep stacks
// opens, equal stacks joined, the width what they cost. A pointer that rests on a frame shows its
// name and share. It holds no script and no link.
func SVG(w io.Writer, p *profile.Profile, o Options) error {
	weight, err := o.oneWeight(p)
	if err != nil {
		return err
	}
	f := newFlame(p, func(s string) string { return s })
	for _, th := range o.threads(p) {
		f.add(th, 0, weight, o.Counts)
	}
	f.positive(&o)
	g := newFlameGraph(f)
	title := "time"
	if weight >= 0 {
		title = p.Weights[weight].Name
	}
	height := svgTop + (g.depth+1)*svgRow + svgSide
	out := newBuffer(w)
	head := html.EscapeString(text.Line(o.title(p)+": "+title)) + ", " + f.amount(g.total[0])
	out.b = fmt.Appendf(out.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11">`+"\n", svgWidth, height)
	out.str("<title>" + head + `</title><rect width="100%" height="100%" fill="#fdfdfb"/><text x="10" y="20" font-size="14">` + head + "</text>\n")
	g.draw(out)
	out.str("</svg>\n")
	return out.flush()
}

// A flameGraph is a flame with the totals of its nodes and their order.
type flameGraph struct {
	f     *flame
	total []float64
	kids  [][]profile.StackID
	depth int // of the deepest frame that is drawn
}

func newFlameGraph(f *flame) *flameGraph {
	n := f.tree.Stacks()
	g := &flameGraph{f: f, total: make([]float64, n), kids: make([][]profile.StackID, n)}
	copy(g.total, f.weights)
	for id := n - 1; id > 0; id-- { // parents come before children
		up := f.tree.Parent(profile.StackID(id))
		g.total[up] += g.total[id]
		g.kids[up] = append(g.kids[up], profile.StackID(id))
	}
	for _, k := range g.kids {
		slices.SortFunc(k, func(a, b profile.StackID) int {
			return cmp.Compare(f.names[f.tree.Frame(a)], f.names[f.tree.Frame(b)])
		})
	}
	for id := 1; id < n; id++ {
		if g.wide(profile.StackID(id)) >= minFrame {
			g.depth = max(g.depth, f.tree.Depth(profile.StackID(id)))
		}
	}
	return g
}

// wide is the width of a frame.
func (g *flameGraph) wide(id profile.StackID) float64 {
	if g.total[0] <= 0 {
		return 0
	}
	return g.total[id] / g.total[0] * (svgWidth - 2*svgSide)
}

// draw writes all frames.
func (g *flameGraph) draw(out *buffer) {
	type at struct {
		id profile.StackID
		x  float64
	}
	walk := []at{{0, svgSide}}
	for len(walk) > 0 && out.err == nil {
		n := walk[len(walk)-1]
		walk = walk[:len(walk)-1]
		if n.id != 0 {
			g.frame(out, n.id, n.x, svgTop+(g.f.tree.Depth(n.id)-1)*svgRow)
		}
		x := n.x
		for _, k := range g.kids[n.id] {
			if w := g.wide(k); w >= minFrame {
				walk = append(walk, at{k, x})
			}
			x += g.wide(k)
		}
	}
}

func (g *flameGraph) frame(out *buffer, id profile.StackID, x float64, y int) {
	name := text.Line(g.f.names[g.f.tree.Frame(id)])
	wide := g.wide(id)
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	out.str(`<g><title>` + html.EscapeString(name) + ": " + g.f.amount(g.total[id]) + ", " + num(100*g.total[id]/g.total[0]) + ` %</title><rect x="` + num(x) + `" y="` + strconv.Itoa(y) + `" width="` + num(max(0.1, wide-0.4)) + `" height="` + strconv.Itoa(svgRow-1) + `" rx="1" fill="` + flameColor(name) + `"/>`)
	if chars := int((wide - 6) / charWidth); chars >= 4 {
		out.str(`<text x="` + num(x+3) + `" y="` + strconv.Itoa(y+11) + `">` + html.EscapeString(label(name, chars)) + `</text>`)
	}
	out.str("</g>\n")
	out.flushed()
}

// label makes a name fit into a frame: without arguments, then without what stands before the
// type or the method, then without its end.
func label(name string, chars int) string {
	if i := argumentsAt(name); i > 0 && utf8.RuneCountInString(name) > chars {
		name = name[:i]
	}
	for utf8.RuneCountInString(name) > chars {
		i := strings.IndexAny(name, "!.<[")
		if i < 0 || name[i] == '<' || name[i] == '[' {
			return string([]rune(name)[:chars-1]) + "…"
		}
		name = name[i+1:]
	}
	return name
}

// flameColor gives a name a warm colour that is always the same.
func flameColor(name string) string {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return fmt.Sprintf("hsl(%d,%d%%,%d%%)", 12+h%40, 65+h>>8%20, 62+h>>16%12)
}

// amount prints what the flame's nodes weigh.
func (f *flame) amount(v float64) string { return html.EscapeString(amountText(v, f.unit)) }
