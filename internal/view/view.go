// Package view makes a page that shows the sampled stacks of a profile over time:
// one self-contained HTML file that needs no network and opens from the disk.
package view

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"html"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccy/go-json"

	"github.com/tracefix/tracefix/profile"
)

//go:embed page.html
var page string

// head is what the page reads first; the numbers follow in columns of their own.
type head struct {
	Title   string   `json:"title"`
	Format  string   `json:"format"`
	Start   string   `json:"start,omitempty"`
	EndNs   int64    `json:"end"`
	Methods []string `json:"methods"` // full names
	OffCPU  int      `json:"off"`     // the method that is the leaf of time off the CPU; -1: none
	Hows    []string `json:"hows"`
	Threads []thread `json:"threads"`
	Nodes   int      `json:"nodes"`
}

type thread struct {
	PID     int64  `json:"pid"`
	TID     int64  `json:"tid"`
	Name    string `json:"name,omitempty"`
	Process string `json:"process,omitempty"`
	Samples int    `json:"samples"`
	Cut     int    `json:"cut"`
	Busy    int    `json:"busy"` // samples that were on a CPU, as far as the trace tells
}

// Write writes the page of p. Columns of numbers are LEB128 in base64, so a sample
// costs some five bytes and a stack four.
func Write(w io.Writer, p *profile.Profile) error {
	b := bufio.NewWriterSize(w, 1<<16)
	before, after, _ := strings.Cut(page, "<!--data-->")
	before = strings.Replace(before, "<!--title-->", html.EscapeString(filepath.Base(p.Meta.Source)), 1)
	b.WriteString(before)

	h := head{Title: filepath.Base(p.Meta.Source), Format: p.Meta.Format, EndNs: p.Meta.End, Methods: []string{}, OffCPU: -1}
	if !p.Meta.Start.IsZero() {
		h.Start = p.Meta.Start.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	n := newNumbers(p.Table)
	stretches := p.Timing().Stretches
	offCPU := false
	hows := map[string]int{}
	for _, t := range p.Threads {
		row := thread{PID: t.Process.PID, TID: t.TID, Name: t.Name, Process: t.Process.Name}
		for s := range stretches(t) {
			row.Samples++
			offCPU = offCPU || s.Type == profile.SampleOffCPU
			n.add(s.Stack)
			if s.Cut != profile.Whole {
				row.Cut++
			}
			if s.Type == profile.SampleManaged || s.Type == profile.SampleCPU {
				row.Busy++
			}
		}
		for r := range t.Repairs.All() {
			if _, ok := hows[r.How]; !ok {
				hows[r.How] = len(h.Hows)
				h.Hows = append(h.Hows, r.How)
			}
		}
		h.Threads = append(h.Threads, row)
	}
	for _, m := range n.methods {
		h.Methods = append(h.Methods, p.Table.MethodAt(m).Full())
	}
	if offCPU {
		h.OffCPU = len(h.Methods)
		h.Methods = append(h.Methods, profile.OffCPU)
	}
	h.Nodes = 1 + len(n.stacks)
	j, err := json.Marshal(h) // escapes < > &, so it cannot end the script element
	if err != nil {
		return err
	}
	b.WriteString(`<script type="application/json" id="head">`)
	b.Write(j)
	b.WriteString("</script>\n")

	// Stacks: parent as distance, method.
	column(b, "nodes", func(c *columnWriter) {
		for i, s := range n.stacks {
			c.uint(uint64(i + 1 - int(n.ofStack[p.Table.Parent(s)])))
			c.uint(uint64(n.ofMethod[p.Table.Method(p.Table.Frame(s))] - 1))
		}
	})
	// Samples, thread after thread: time since the end of the one before, time for which
	// it speaks, stack, and flags: bits 0-2 type, 3 cut, 4 joined to the one before, then
	// 1 + how of the repair, and if repaired the number of restored frames and the
	// confidence in percent.
	column(b, "samples", func(c *columnWriter) {
		for _, t := range p.Threads {
			var last int64
			repairs := t.Repairs.Cursor()
			for s := range stretches(t) {
				r := repairs.Of(s.Index)
				c.uint(uint64(s.Start - last))
				c.uint(uint64(s.End - s.Start))
				last = s.End
				c.uint(uint64(n.ofStack[s.Stack]))
				flags := uint64(s.Type)
				if s.Cut != profile.Whole {
					flags |= 8
				}
				if s.Joined {
					flags |= 16
				}
				if r != nil {
					flags |= uint64(1+hows[r.How]) << 5
				}
				c.uint(flags)
				if r != nil {
					c.uint(uint64(r.Restored))
					c.uint(uint64(float64(r.Confidence)*100 + 0.5))
				}
			}
		}
	})
	b.WriteString(after)
	return b.Flush()
}

// numbers of the stacks that samples have, from 1, and of their methods, in the order of
// first use: what else the table holds is not written.
type numbers struct {
	table             *profile.Table
	stacks            []profile.StackID
	methods           []profile.MethodID
	ofStack, ofMethod []int32 // 0: none
	trail             []profile.StackID
}

func newNumbers(t *profile.Table) *numbers {
	return &numbers{table: t, ofStack: make([]int32, t.Stacks()), ofMethod: make([]int32, t.Methods())}
}

// add numbers s and, before it, its callers.
func (n *numbers) add(s profile.StackID) {
	n.trail = n.trail[:0]
	for s != 0 && n.ofStack[s] == 0 {
		n.trail = append(n.trail, s)
		s = n.table.Parent(s)
	}
	for i := len(n.trail) - 1; i >= 0; i-- {
		s := n.trail[i]
		n.stacks = append(n.stacks, s)
		n.ofStack[s] = int32(len(n.stacks))
		m := n.table.Method(n.table.Frame(s))
		if n.ofMethod[m] == 0 {
			n.methods = append(n.methods, m)
			n.ofMethod[m] = int32(len(n.methods))
		}
	}
}

type columnWriter struct {
	w   io.Writer
	buf []byte
}

func (c *columnWriter) uint(v uint64) { c.buf = binary.AppendUvarint(c.buf, v); c.flush(32 << 10) }

func (c *columnWriter) flush(limit int) {
	if len(c.buf) > limit {
		c.w.Write(c.buf) // errors stick in the bufio.Writer below
		c.buf = c.buf[:0]
	}
}

func column(b *bufio.Writer, id string, fill func(*columnWriter)) {
	b.WriteString(`<script type="text/plain" id="` + id + `">`)
	e := base64.NewEncoder(base64.StdEncoding, b)
	c := &columnWriter{w: e}
	fill(c)
	c.flush(-1)
	e.Close()
	b.WriteString("</script>\n")
}
