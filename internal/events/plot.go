package events

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Style is how a series is drawn.
type Style uint8

// Styles.
const (
	Line Style = iota
	Steps
	Bars
	Dots
)

// A Plot shows values over the time of the trace.
type Plot struct {
	Title, Unit string
	Series      []PlotSeries
}

// A PlotSeries is drawn in one colour.
type PlotSeries struct {
	Name   string
	Style  Style
	Points []PlotPoint
}

// A PlotPoint is a value at a time, with what a pointer that rests on it shows.
type PlotPoint struct {
	At    int64 // ns
	Value float64
	Tip   string
}

func (s *PlotSeries) add(at int64, v float64, tip string) {
	s.Points = append(s.Points, PlotPoint{at, v, tip})
}

// Sizes of a plot, px.
const (
	plotWidth  = 960
	plotHeight = 180
	plotLeft   = 56
	plotBottom = 22
	plotTop    = 6
)

// An axis maps values to pixels.
type axis struct {
	from, to float64
	px0, px1 float64
}

func (a *axis) px(v float64) float64 {
	if a.to <= a.from {
		return a.px0
	}
	return a.px0 + (v-a.from)/(a.to-a.from)*(a.px1-a.px0)
}

// ticks returns round values within the axis, about n of them.
func (a *axis) ticks(n int) (at []float64) {
	span := a.to - a.from
	if span <= 0 {
		return []float64{a.from}
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.from/step) * step; v <= a.to+step/1e6; v += step {
		at = append(at, v)
	}
	return at
}

// SVG draws the plot. What falls into one column of pixels is drawn once, at its largest,
// so that the size does not grow with the trace.
func (p *Plot) SVG() template.HTML {
	x := axis{from: math.Inf(1), to: math.Inf(-1), px0: plotLeft, px1: plotWidth - 8}
	y := axis{px0: plotHeight - plotBottom, px1: plotTop}
	for _, s := range p.Series {
		for _, pt := range s.Points {
			x.from, x.to = min(x.from, text.Millis(pt.At)), max(x.to, text.Millis(pt.At))
			y.to = max(y.to, pt.Value)
		}
	}
	if math.IsInf(x.from, 1) {
		return ""
	}
	x.from = min(0, x.from)
	if y.to == 0 {
		y.to = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(p.Title))
	for _, v := range y.ticks(4) {
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, plotLeft, plotWidth-8, y.px(v), y.px(v), plotLeft-6, y.px(v)+4, axisNumber(v))
	}
	for _, v := range x.ticks(8) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s s</text>`, x.px(v), plotHeight-6, axisNumber(v/1e3))
	}
	for i := range p.Series {
		p.Series[i].draw(&b, i, &x, &y)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // made of numbers and escaped text
}

func axisNumber(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func (s *PlotSeries) draw(b *strings.Builder, i int, x, y *axis) {
	points := s.columns(x)
	if len(points) == 0 {
		return
	}
	if s.Style == Line || s.Style == Steps {
		fmt.Fprintf(b, `<path class="s%d" d="`, i)
		for k, pt := range points {
			px, py := x.px(text.Millis(pt.At)), y.px(pt.Value)
			switch {
			case k == 0:
				fmt.Fprintf(b, "M%.1f %.1f", px, py)
			case s.Style == Steps:
				fmt.Fprintf(b, "H%.1fV%.1f", px, py)
			default:
				fmt.Fprintf(b, "L%.1f %.1f", px, py)
			}
		}
		if s.Style == Steps {
			fmt.Fprintf(b, "H%.1f", x.px1)
		}
		b.WriteString(`"/>`)
		return
	}
	for _, pt := range points {
		px, py := x.px(text.Millis(pt.At)), y.px(pt.Value)
		if s.Style == Bars {
			fmt.Fprintf(b, `<line class="s%d bar" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f">`, i, px, px, y.px(0), min(py, y.px(0)-1))
		} else {
			fmt.Fprintf(b, `<line class="s%d dot" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f">`, i, px, px, py, py)
		}
		fmt.Fprintf(b, `<title>%s: %s</title></line>`, template.HTMLEscapeString(at(pt.At)), template.HTMLEscapeString(text.Line(pt.Tip)))
	}
}

// columns keeps the largest value of each column of pixels; of steps the last one.
func (s *PlotSeries) columns(x *axis) []PlotPoint {
	var out []PlotPoint
	column := math.Inf(-1)
	for _, pt := range s.Points {
		c := math.Floor(x.px(text.Millis(pt.At)))
		switch {
		case c != column:
			out = append(out, pt)
		case s.Style == Steps || pt.Value > out[len(out)-1].Value:
			out[len(out)-1] = pt
		}
		column = c
	}
	return out
}
