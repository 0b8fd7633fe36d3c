// Package view makes a page to explore a profile with: an overview of threads and tracks
// on one axis of time, and of what is selected there a flame graph, the time order, trees,
// and a table of methods. It is one self-contained HTML file that needs no network and opens
// from the disk. Its program stands in page/: data.js and tree.js read and sum up, the
// others draw.
package view

import (
	"bufio"
	"cmp"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"html"
	"io"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

//go:embed page
var files embed.FS

// scripts are the parts of the page's program, in the order in which they stand in it.
var scripts = []string{"data.js", "tree.js", "draw.js", "overview.js", "timeorder.js", "flame.js", "tables.js", "selection.js", "explain.js", "search.js", "address.js", "save.js", "controls.js", "main.js"}

// page returns what stands before and behind the data.
func page(title string) (before, after string) {
	read := func(name string) string {
		b, err := files.ReadFile("page/" + name)
		if err != nil {
			panic("view: internal error: " + err.Error())
		}
		return string(b)
	}
	var program strings.Builder
	for _, name := range scripts {
		program.WriteString(read(name))
	}
	before, after, _ = strings.Cut(read("page.html"), "<!--data-->")
	before = strings.NewReplacer("<!--title-->", html.EscapeString(text.Line(title)), "<!--style-->", read("style.css")).Replace(before)
	return before, strings.Replace(after, "<!--script-->", lean(program.String()), 1)
}

// lean leaves out the indentation of a program, and lines that are comments.
func lean(program string) string {
	var b strings.Builder
	for line := range strings.Lines(program) {
		if line = strings.TrimLeft(line, " "); !strings.HasPrefix(line, "//") && line != "\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// head is what the page reads first; the numbers follow in columns of their own.
type head struct {
	Title     string   `json:"title"`
	Facts     []string `json:"facts"` // in words, for the first line
	Notes     []string `json:"notes"` // damage, losses, and what else to know
	EndNs     int64    `json:"end"`
	Processes int      `json:"processes"`
	Methods   []string `json:"methods"` // full names
	OffCPU    int      `json:"off"`     // the method that is the leaf of time off the CPU; -1: none
	Polls     []int    `json:"polls"`   // methods in which the sampler itself stops threads
	Modules   [][2]int `json:"modules"` // methods whose module does not look like one, and how long it is in UTF-16
	Hows      []string `json:"hows"`    // kinds of evidence
	HowTexts  []string `json:"howTexts"`
	Threads   []thread `json:"threads"`
	Tracks    []track  `json:"tracks"`
	Names     []string `json:"names"` // of slices
	Lost      int64    `json:"lost"`
	Losses    []loss   `json:"losses"`
	Damages   int      `json:"damages"`
	Damage    []damage `json:"damage"` // the first of them
	Nodes     int      `json:"nodes"`
}

type thread struct {
	Index    int    `json:"index"`
	PID      int64  `json:"pid"`
	TID      int64  `json:"tid"`
	Name     string `json:"name,omitempty"`
	Process  string `json:"process,omitempty"`
	Samples  int    `json:"samples"`
	Cut      int    `json:"cut"`
	Repaired int    `json:"repaired"` // bridged ones too
	Busy     int    `json:"busy"`     // samples that were on a CPU, as far as the trace tells
	Managed  int    `json:"managed"`  // of those, with managed code on the stack
	Works    int    `json:"works"`    // runs of samples that were taken while it worked for a request
}

type track struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Slices int    `json:"slices"`
}

// counters is the group of tracks whose slices have values.
const counters = "counters"

type loss struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Events int64 `json:"events,omitempty"`
	Thread int   `json:"thread"` // -1: any
}

type damage struct {
	Offset int64  `json:"offset"`
	Where  string `json:"where"`
	What   string `json:"what"`
	At     int64  `json:"at"` // ns, maybe behind all samples; -1: not known
}

// Write writes the page of p. Columns of numbers are LEB128 in base64, so a sample
// costs some five bytes and a stack four.
func Write(w io.Writer, p *profile.Profile) error {
	h := newHead(p)
	before, after := page(h.Title)
	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString(before)
	index := map[*profile.Thread]int{}
	for i, t := range p.Threads {
		index[t] = i
	}
	drawn := newSlices(b, p, &h, index)
	out := &pageWriter{b: b, p: p, h: &h, n: newNumbers(p.Table), timing: p.Timing(), hows: map[string]int{}}
	runs := spool.ListIn[requestWork](p.Activities.Spool)
	for i, t := range p.Threads {
		row := out.thread(i, t)
		for w := range works(p, out.timing, t) {
			runs.Add(&w)
			row.Works++
		}
		h.Threads = append(h.Threads, row)
	}
	h.Methods, h.OffCPU, h.Polls, h.Modules = out.n.names, out.n.offCPU, out.n.polls, out.n.modules
	h.Nodes = len(out.n.nodes)
	h.tell(p)
	h.limits(p, index)
	if err := out.head(); err != nil {
		return err
	}
	column(b, "nodes", out.nodes)
	column(b, "samples", out.samples)
	column(b, "slices", drawn.write)
	column(b, "work", func(c *columnWriter) { out.work(c, runs) })
	b.WriteString(after)
	if err := b.Flush(); err != nil {
		return err
	}
	return p.Err()
}

// A pageWriter writes the parts of a page. Samples are gone through twice, first to sum them up and to
// number their stacks.
type pageWriter struct {
	b      *bufio.Writer
	p      *profile.Profile
	h      *head
	timing *profile.Timing
	n      *numbers
	hows   map[string]int // numbers of kinds of evidence
}

// thread sums up the samples of a thread.
func (w *pageWriter) thread(i int, t *profile.Thread) thread {
	row := thread{Index: i, PID: t.Owner().PID, TID: t.TID, Name: text.Line(t.Name), Process: text.Line(t.Owner().Name)}
	repairs := t.Repairs.Cursor()
	for s := range w.timing.Stretches(t) {
		row.Samples++
		node := w.n.number(s.Stack, s.Type)
		r := repairs.Of(s.Index)
		if r != nil {
			w.n.number(r.Recorded, s.Type)
			row.Repaired++
			w.how(r.How)
		}
		if s.Cut != profile.Whole || r != nil {
			row.Cut++
		}
		if s.Type == profile.SampleManaged || s.Type == profile.SampleCPU {
			row.Busy++
			if w.n.managed[node] {
				row.Managed++
			}
		}
		w.h.EndNs = max(w.h.EndNs, s.End)
	}
	return row
}

// how numbers a kind of evidence.
func (w *pageWriter) how(how string) {
	if _, ok := w.hows[how]; !ok {
		w.hows[how] = len(w.h.Hows)
		w.h.Hows = append(w.h.Hows, how)
		w.h.HowTexts = append(w.h.HowTexts, cmp.Or(report.How(how), how))
	}
}

// head writes what the page reads first.
func (w *pageWriter) head() error {
	j, err := json.Marshal(w.h) // escapes < > &, so it cannot end the script element
	if err != nil {
		return err
	}
	w.b.WriteString(`<script type="application/json" class="head">`)
	w.b.Write(j)
	w.b.WriteString("</script>\n")
	return nil
}

// nodes writes the stacks: parent as distance, method.
func (w *pageWriter) nodes(c *columnWriter) {
	for i, node := range w.n.nodes[1:] {
		c.uint(uint64(i + 1 - int(node.parent)))
		c.uint(uint64(node.method))
	}
}

// samples writes the samples, thread after thread: time since the end of the one before, time for
// which it speaks, stack, and flags: bits 0-2 type, 3 cut, 4 joined to the one before, 5 that
// the number of fresh frames follows, then 1 + how of the repair; and if repaired the number of
// restored frames, how many of them stand behind a bridge, the confidence in percent, and the
// stack as it was recorded.
func (w *pageWriter) samples(c *columnWriter) {
	for _, t := range w.p.Threads {
		var last int64
		repairs := t.Repairs.Cursor()
		for s := range w.timing.Stretches(t) {
			r := repairs.Of(s.Index)
			c.uint(uint64(s.Start - last))
			c.uint(uint64(s.End - s.Start))
			last = s.End
			c.uint(uint64(w.n.number(s.Stack, s.Type)))
			flags := uint64(s.Type)
			if s.Cut != profile.Whole || r != nil { // of an earlier repair, whole by now
				flags |= 8
			}
			if s.Joined {
				flags |= 16
			}
			if s.Fresh > 0 {
				flags |= 32
			}
			if r != nil {
				flags |= uint64(1+w.hows[r.How]) << 6
			}
			c.uint(flags)
			if s.Fresh > 0 {
				c.uint(uint64(s.Fresh))
			}
			if r != nil {
				c.uint(uint64(r.Restored))
				c.uint(uint64(r.Above))
				c.uint(uint64(float64(r.Confidence)*100 + 0.5))
				c.uint(uint64(w.n.number(r.Recorded, s.Type)))
			}
		}
	}
}

// work writes for whom threads worked, thread after thread: the first sample of a run since that of
// the run before, how many samples it has, and the number of the request.
func (w *pageWriter) work(c *columnWriter, runs *spool.List[requestWork]) {
	next := runs.From(0)
	for i := range w.h.Threads {
		last := 0
		for range w.h.Threads[i].Works {
			run := next.Peek()
			if run == nil {
				return // they could not be read again: p.Err tells
			}
			c.uint(uint64(run.First - last))
			c.uint(uint64(run.Samples))
			c.uint(uint64(run.Request))
			last = run.First
			next.Next()
		}
	}
}

// newHead returns a head without numbers; lists are empty, not missing.
func newHead(p *profile.Profile) head {
	return head{
		Title: title(p.Meta.Source), EndNs: p.Meta.End, Processes: len(p.Processes), Methods: []string{}, OffCPU: -1, Polls: []int{}, Modules: [][2]int{},
		Hows: []string{}, HowTexts: []string{}, Threads: []thread{}, Tracks: []track{}, Names: []string{""}, Losses: []loss{}, Damage: []damage{}, Notes: []string{},
	}
}

// title names the page of a trace.
func title(source string) string {
	if source == "-" {
		return "standard input"
	}
	return filepath.Base(source)
}

// tell puts into words what the first lines of the page say.
func (h *head) tell(p *profile.Profile) {
	facts := []string{p.Meta.Format}
	if !p.Meta.Start.IsZero() {
		facts = append(facts, p.Meta.Start.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	samples, cut := 0, 0
	for i := range h.Threads {
		samples += h.Threads[i].Samples
		cut += h.Threads[i].Cut
	}
	done := p.Counts()
	if samples > 0 {
		facts = append(facts, report.Count(samples)+" sample"+report.Plural(samples))
	}
	switch e := p.Meta.Earlier; {
	case samples == 0:
		facts = append(facts, "no CPU samples")
	case e.Samples > 0:
		facts = append(facts, fmt.Sprintf("repaired before: %s sample%s, %s of them bridged, %s frames restored", report.Count(e.Samples), report.Plural(e.Samples), report.Count(e.Bridged), report.Count(e.Restored)))
	case cut == 0:
		facts = append(facts, "none cut")
	case done.Known+done.Bridged == 0:
		facts = append(facts, report.Count(cut)+" cut, not repaired")
	default:
		facts = append(facts, fmt.Sprintf("%s of %s cut repaired, %s bridged, %s frames restored", report.Count(done.Known), report.Count(cut), report.Count(done.Bridged), report.Count(done.Restored)))
	}
	h.Facts = facts
	if n := p.Meta.Damages; n > 0 {
		inside, behind := 0, 0
		for _, d := range p.Meta.Damage {
			if d.Time > h.EndNs {
				behind++
			} else if d.Time >= 0 {
				inside++
			}
		}
		when := ""
		if inside > 0 {
			when = "; the lane \"damage\" shows when"
		}
		if behind > 0 {
			when += fmt.Sprintf("; %s behind all samples", report.Count(behind))
		}
		h.Notes = append(h.Notes, fmt.Sprintf("The file is damaged in %s place%s%s. This page shows what could be saved.", report.Count(n), report.Plural(n), when))
	}
	if n := p.Meta.Lost; n > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%s event%s were lost while recording; the lane \"events lost\" shows when.", report.Count(int(n)), report.Plural(int(n))))
	}
	h.Notes = append(h.Notes, p.Meta.Notes...)
}

// limits notes what was lost and where the file is damaged.
func (h *head) limits(p *profile.Profile, index map[*profile.Thread]int) {
	h.Lost, h.Damages = p.Meta.Lost, p.Meta.Damages
	for _, l := range p.Losses {
		of := -1
		if i, ok := index[l.Thread]; ok {
			of = i
		}
		h.Losses = append(h.Losses, loss{max(l.From, 0), l.To, l.Events, of})
	}
	for _, d := range p.Meta.Damage {
		h.Damage = append(h.Damage, damage{d.Offset, text.Line(d.Where), text.Line(d.What), d.Time})
	}
}

// A requestWork is a run of samples of a thread that were taken while it worked for a request. It
// has none where the thread is known to have worked and was not sampled.
type requestWork struct{ First, Samples, Request int }

// works yields the runs of t in order of their first sample. A sample belongs where its own time
// lies, whole, and to all requests around the innermost one: so does Selection.Requests.
func works(p *profile.Profile, timing *profile.Timing, t *profile.Thread) iter.Seq[requestWork] {
	return func(yield func(requestWork) bool) {
		var s profile.Stretch
		c := timing.Cursor(t)
		more, at := c.Read(&s), 0
		next := func() { more = c.Read(&s); at++ }
		var run, now []int // requests
		first, behind := 0, 0
		tell := func() bool {
			for _, id := range run {
				if !yield(requestWork{first, behind - first, id}) {
					return false
				}
			}
			return true
		}
		for w := range t.Work.All() {
			if now = requestsOf(p, w.Activity, now[:0]); len(now) == 0 {
				for more && s.Time <= w.To {
					next()
				}
				continue
			}
			for more && s.Time <= w.From {
				next()
			}
			if at != behind || !slices.Equal(run, now) {
				if !tell() {
					return
				}
				run, now, first = now, run, at
			}
			for more && s.Time <= w.To {
				next()
			}
			behind = at
		}
		tell()
	}
}

// requestsOf appends the ids of the requests that an activity is or lies in.
func requestsOf(p *profile.Profile, activity int32, ids []int) []int {
	for ; activity >= 0; activity = p.Activities.Parent(activity) {
		if id := p.Activities.At(activity).Request; id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A sliceTable holds the slices of all tracks. They are gone through twice, first to number their names
// and to write their details.
type sliceTable struct {
	tracks []*profile.Track
	names  map[string]int
	thread map[*profile.Thread]int

	// Most details are of one slice only: what was told lately is told once.
	lately [1 << 14]struct {
		told   string
		number uint64
	}
	details uint64 // so many were told
	// told is of each slice, LEB128: 0 it has none, 1 the next one, else 2 + how far back the number is.
	told spool.Log
	b    []byte // of told: what is to be added, then what was read
}

// toldMemory is how many bytes of told stay in memory, toldPiece how many come and go at once.
const (
	toldMemory = 2 << 20
	toldPiece  = 32 << 10
)

// note adds v to told.
func (s *sliceTable) note(v uint64) {
	s.b = binary.AppendUvarint(s.b, v)
	if len(s.b) > toldPiece {
		s.told.Add(s.b)
		s.b = s.b[:0]
	}
}

// noted returns a function that goes through told; false behind the end.
func (s *sliceTable) noted() func() (uint64, bool) {
	s.told.Add(s.b)
	s.told.Done()
	at, b := int64(0), s.b[:0]
	return func() (uint64, bool) {
		if len(b) < binary.MaxVarintLen64 && at < s.told.Len() {
			n := copy(s.b[:cap(s.b)], b) // what is left of the piece before
			b = slices.Grow(s.b[:n], toldPiece)[:n+int(min(toldPiece, s.told.Len()-at))]
			s.told.Get(b[n:], at)
			at += int64(len(b) - n)
			s.b = b
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
}

// detail notes what a slice tells beside its name; fresh is its text if it was not told lately.
func (s *sliceTable) detail(sl *profile.Slice) (fresh string) {
	told := detail(sl)
	if told == "" {
		s.note(0)
		return ""
	}
	// No hash with a secret: pages of one trace are the same bytes.
	at := &s.lately[crc32.ChecksumIEEE([]byte(told))%uint32(len(s.lately))]
	if at.told == told {
		s.note(2 + s.details - at.number)
		return ""
	}
	s.details++
	at.told, at.number = told, s.details
	s.note(1)
	return told
}

// maxDetail is how many bytes of a slice's details the page keeps: they are for a tip.
const maxDetail = 240

func newSlices(b *bufio.Writer, p *profile.Profile, h *head, thread map[*profile.Thread]int) *sliceTable {
	tracks := slices.DeleteFunc(slices.Clone(p.Tracks), func(t *profile.Track) bool { return t.Slices == nil })
	s := &sliceTable{tracks: tracks, names: map[string]int{"": 0}, thread: thread, told: spool.LogIn(p.Activities.Spool, toldMemory)}
	number := func(name string) {
		if _, ok := s.names[name]; !ok {
			s.names[name] = len(h.Names)
			h.Names = append(h.Names, text.Line(name))
		}
	}
	part := 0 // bytes of the open part
	end := func() {
		if part > 0 {
			b.WriteString("]</script>\n")
			part = 0
		}
	}
	for _, t := range s.tracks {
		row := track{Name: text.Line(t.Name), Group: t.Group}
		for sl := range t.Slices {
			row.Slices++
			number(sl.Name)
			if told := s.detail(sl); told != "" {
				j, _ := json.Marshal(text.Line(told)) // of a string; it cannot end the script element
				if part > text.MaxElement {
					end()
				}
				if part == 0 {
					fmt.Fprintf(b, `<script type="application/json" class="told">[%d`, s.details) // that of the first one
				}
				b.WriteString(",\n")
				b.Write(j)
				part += len(j)
			}
			h.EndNs = max(h.EndNs, sl.Start+sl.Dur)
		}
		h.Tracks = append(h.Tracks, row)
	}
	end()
	return s
}

// write writes the column: time since the start of the slice before, duration, name, 1 + thread
// or 0, details, the number of the request that it is or 0, and of a counter the bits of its value.
func (s *sliceTable) write(c *columnWriter) {
	last := uint64(0) // of the details that were told by now
	noted := s.noted()
	number := func() uint64 {
		v, ok := noted()
		switch {
		case !ok || v == 0: // behind the end: a track that yields more than it did
			return 0
		case v == 1:
			last++
			return last
		}
		return last - (v - 2)
	}
	for _, t := range s.tracks {
		var last int64
		for sl := range t.Slices {
			start := max(sl.Start, last) // tracks yield them in order
			c.uint(uint64(start - last))
			c.uint(uint64(max(sl.Dur, 0)))
			last = start
			c.uint(uint64(s.names[sl.Name]))
			on := 0
			for _, th := range []*profile.Thread{sl.Thread, t.Thread} {
				if i, ok := s.thread[th]; ok && on == 0 {
					on = i + 1
				}
			}
			c.uint(uint64(on))
			c.uint(number())
			c.uint(uint64(requestOf(t, sl)))
			if t.Group == counters {
				c.uint(uint64(math.Float32bits(float32(valueOf(sl)))))
			}
		}
	}
}

// requestOf is the number of the request that a slice is, 0 if it is none.
func requestOf(t *profile.Track, sl *profile.Slice) int64 {
	if t.Group == "http" {
		for _, a := range sl.Args {
			if id, ok := a.Value.(int64); ok && a.Key == "id" {
				return max(id, 0)
			}
		}
	}
	return 0
}

// valueOf is the value of a counter's slice.
func valueOf(sl *profile.Slice) float64 {
	for _, a := range sl.Args {
		if v, ok := a.Value.(float64); ok && a.Key == "value" {
			return v
		}
	}
	return 0
}

// detail is what a slice tells beside its name, in one line.
func detail(sl *profile.Slice) string {
	var b strings.Builder
	for _, a := range sl.Args {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		if raw, ok := a.Value.(json.RawMessage); ok {
			fmt.Fprintf(&b, "%s: %s", a.Key, raw)
		} else {
			fmt.Fprintf(&b, "%s: %v", a.Key, a.Value)
		}
		if b.Len() > maxDetail {
			return strings.ToValidUTF8(b.String()[:maxDetail], "") + "…"
		}
	}
	return b.String()
}

// numbers are those of the nodes that samples have, and of their methods, in the order of
// first use: what else the table holds is not written. Node 0 is the root.
type numbers struct {
	table    *profile.Table
	skip     []bool // by method: other outputs have no frame of it either
	nodes    []node
	managed  []bool   // nodes that are managed code, or have a caller that is
	names    []string // of methods
	ofStack  []int32  // 0: none
	ofMethod []int32  // 1 + number; 0: none
	polls    []int    // numbers of methods in which the sampler stops threads
	modules  [][2]int // as in head
	offCPU   int      // number of the method that is the leaf of time off the CPU; -1: none
	away     map[profile.StackID]int32
	trail    []profile.StackID
}

type node struct{ parent, method int32 }

// looksLikeMethod reports whether the page sees by the name alone that a method has that module: it
// is the rule of data.js.
func looksLikeMethod(module, name string) bool {
	return !strings.ContainsAny(module, "! (\"'<>") && name != "" && !strings.ContainsAny(name[:1], " !=),;:\"'")
}

func newNumbers(t *profile.Table) *numbers {
	return &numbers{
		table: t, skip: t.Synthetic(), nodes: make([]node, 1), managed: make([]bool, 1), names: []string{}, ofStack: make([]int32, t.Stacks()), ofMethod: make([]int32, t.Methods()),
		polls: []int{}, modules: [][2]int{}, offCPU: -1, away: map[profile.StackID]int32{},
	}
}

// number returns the node of a sample's stack. Time off the CPU has a leaf of its own, as in
// every other output.
func (n *numbers) number(s profile.StackID, kind profile.SampleType) int32 {
	k := n.stack(s)
	if kind != profile.SampleOffCPU {
		return k
	}
	leaf, ok := n.away[s]
	if !ok {
		if n.offCPU < 0 {
			n.offCPU = len(n.names)
			n.names = append(n.names, profile.OffCPU)
		}
		leaf = int32(len(n.nodes))
		n.nodes, n.managed = append(n.nodes, node{k, int32(n.offCPU)}), append(n.managed, n.managed[k])
		n.away[s] = leaf
	}
	return leaf
}

// stack numbers s and, before it, its callers.
func (n *numbers) stack(s profile.StackID) int32 {
	n.trail = n.trail[:0]
	top := s
	for top != 0 && n.ofStack[top] == 0 {
		n.trail = append(n.trail, top)
		top = n.table.Parent(top)
	}
	for i := len(n.trail) - 1; i >= 0; i-- {
		s := n.trail[i]
		m := n.table.Method(n.table.Frame(s))
		if n.skip[m] {
			n.ofStack[s] = n.ofStack[n.table.Parent(s)]
			continue
		}
		if n.ofMethod[m] == 0 {
			n.names = append(n.names, text.Line(n.table.MethodAt(m).Full()))
			n.ofMethod[m] = int32(len(n.names))
			if module := text.Line(n.table.MethodAt(m).Module); module != "" && !looksLikeMethod(module, n.table.MethodAt(m).Name) {
				n.modules = append(n.modules, [2]int{len(n.names) - 1, len(utf16.Encode([]rune(module)))})
			}
			if n.table.MethodAt(m).IsPoll() {
				n.polls = append(n.polls, len(n.names)-1)
			}
		}
		n.ofStack[s] = int32(len(n.nodes))
		caller := n.ofStack[n.table.Parent(s)]
		n.nodes = append(n.nodes, node{caller, n.ofMethod[m] - 1})
		n.managed = append(n.managed, n.managed[caller] || n.table.MethodAt(m).Kind == profile.Managed)
	}
	return n.ofStack[s]
}

// A columnWriter writes a column: LEB128 in base64, in elements of one class, each of whole numbers
// and of about text.MaxElement.
type columnWriter struct {
	b    *bufio.Writer // errors stick in it
	name string
	buf  []byte
}

func (c *columnWriter) uint(v uint64) {
	c.buf = binary.AppendUvarint(c.buf, v)
	if len(c.buf) > text.MaxElement*3/4 {
		c.end()
	}
}

// end writes a part.
func (c *columnWriter) end() {
	c.b.WriteString(`<script type="text/plain" class="` + c.name + `">`)
	e := base64.NewEncoder(base64.StdEncoding, c.b)
	e.Write(c.buf)
	e.Close()
	c.b.WriteString("</script>\n")
	c.buf = c.buf[:0]
}

func column(b *bufio.Writer, name string, fill func(*columnWriter)) {
	c := &columnWriter{b: b, name: name}
	fill(c)
	if len(c.buf) > 0 {
		c.end()
	}
}
