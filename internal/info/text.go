package info

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// TextOptions say for what screen text is written. The zero value is for files.
type TextOptions struct {
	Width int  // columns; 0 means 110
	Color bool // mark parts for a terminal
	// All lists every provider, event type and thread; else the most frequent.
	All bool
	// Rows is how many of each are listed, 0 all; nil: few.
	Rows *int
}

// rows is how many of n things are listed, of which few are usually enough.
func (o *TextOptions) rows(n, few int) int {
	switch {
	case o.Rows != nil && *o.Rows > 0:
		return min(n, *o.Rows)
	case o.Rows != nil || o.All:
		return n
	}
	return min(n, few)
}

// WriteJSON writes the facts, indented.
func (f *Facts) WriteJSON(w io.Writer) error {
	return text.WriteDocument(w, f, "  ")
}

const (
	defaultWidth = 110
	minWidth     = 60
	fewProviders = 12
	fewThreads   = 8
	fewDamages   = 5
)

// A page is text being laid out.
type page struct {
	b      strings.Builder
	width  int
	screen bool // width is that of a terminal
	color  bool
}

func newPage(o *TextOptions) *page {
	p := &page{width: o.Width, screen: o.Width > 0, color: o.Color}
	if p.width == 0 {
		p.width = defaultWidth
	}
	p.width = max(p.width, minWidth)
	return p
}

// WriteVerdicts writes what the file is and the verdicts, for people.
func (f *Facts) WriteVerdicts(w io.Writer, o *TextOptions) error {
	p := newPage(o)
	p.title(f)
	p.verdicts(f, false)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// WriteText writes the facts for people: the verdicts, then what they rest on.
func (f *Facts) WriteText(w io.Writer, o *TextOptions) error {
	if o == nil {
		o = &TextOptions{}
	}
	p := newPage(o)
	p.title(f)
	p.verdicts(f, true)
	p.facts(f, o)
	p.providers(f, o)
	p.threads(f, o)
	p.depths(f)
	p.damage(f, o.All)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) mark(code, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *page) bold(s string) string { return p.mark("1", s) }
func (p *page) dim(s string) string  { return p.mark("2", s) }

func (p *page) title(f *Facts) {
	parts := []string{f.formatName(), size(f.Content)}
	if len(f.Layers) > 0 {
		parts[1] += fmt.Sprintf(" (%s in %s)", size(f.Bytes), strings.Join(f.Layers, " in "))
	}
	name, what, between := text.Line(f.File), strings.Join(parts, ", "), "  "
	if p.screen && utf8.RuneCountInString(name+between+what) > p.width {
		between = "\n  "
	}
	fmt.Fprintf(&p.b, "%s%s%s\n\n", p.bold(name), between, what)
}

// formatName is the format as people call it.
func (f *Facts) formatName() string {
	name := map[string]string{"nettrace": "NetTrace", "netperf": "NetPerf", "chromium": "Chromium trace JSON", "speedscope": "speedscope JSON", "folded": "folded stacks", "ndjson": "ndjson of samples"}[f.Format]
	if name == "" {
		name = f.Format // pprof, perf script
	}
	if f.Version != "" {
		name += " v" + f.Version
	}
	return name
}

var stateColors = map[string]string{Good: "32", Partly: "33", Bad: "31", None: "2"}

// overallWords begin the line that sums the verdicts up.
var overallWords = map[string]string{Good: "Good:", Partly: "Usable with care:", Bad: "Poor:", None: "Empty:"}

// verdicts writes the one on the whole trace and those on its parts, with what to do about them.
func (p *page) verdicts(f *Facts, do bool) {
	word := overallWords[f.Overall.State]
	p.b.WriteString(p.bold(p.mark(stateColors[f.Overall.State], word)) + " ")
	p.wrapped(text.Line(f.Overall.Text), 0, utf8.RuneCountInString(word)+1)
	p.b.WriteByte('\n')
	topic := 0
	for _, v := range f.Verdicts {
		topic = max(topic, len(v.Topic))
	}
	indent := 2 + 6 + 2 + topic + 2
	for _, v := range f.Verdicts {
		fmt.Fprintf(&p.b, "  %s  %s  ", p.mark(stateColors[v.State], fmt.Sprintf("%-6s", v.State)), p.bold(fmt.Sprintf("%-*s", topic, v.Topic)))
		p.wrap(text.Line(v.Text), indent)
		if do && v.Do != "" {
			// A command is not wrapped: it is there to be copied.
			fmt.Fprintf(&p.b, "%*s%s %s\n", indent, "", p.dim("->"), text.Line(v.Do))
		}
	}
}

// wrap writes text in lines that begin at column indent; the first one is there already.
func (p *page) wrap(text string, indent int) { p.wrapped(text, indent, 0) }

// wrapped is wrap where the first line holds used characters already.
func (p *page) wrapped(text string, indent, used int) {
	room := max(p.width-indent, 30)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > room:
			fmt.Fprintf(&p.b, "\n%*s", indent, "")
			used = 0
		default:
			p.b.WriteByte(' ')
			used++
		}
		p.b.WriteString(word)
		used += n
	}
	p.b.WriteByte('\n')
}

// facts writes the block of single facts.
func (p *page) facts(f *Facts, o *TextOptions) {
	p.b.WriteByte('\n')
	const keys = 24 // the longest key that is shown whole
	width := len("recorded")
	for _, q := range f.Properties {
		width = max(width, min(keys, utf8.RuneCountInString(q.Key)))
	}
	row := func(key, format string, args ...any) {
		fmt.Fprintf(&p.b, "%s  ", p.dim(pad(shorten(key, width), width)))
		p.b.WriteString(shorten(fmt.Sprintf(format, args...), p.width-width-2))
		p.b.WriteByte('\n')
	}
	shown := f.Processes[:o.rows(len(f.Processes), fewThreads)]
	for _, q := range shown {
		row("process", "%s", f.processText(q))
	}
	if n := len(f.Processes) - len(shown); n > 0 {
		row("", "and %d more processes", n)
	}
	if run := f.runtimeTexts(); len(run) > 0 {
		row("runtime", "%s", strings.Join(run, ", "))
	}
	if f.Format != "speedscope" || f.DurationMs > 0 {
		row("recorded", "%s", f.recordedText())
	}
	if f.Events > 0 {
		s := count(f.Events)
		if f.EventTypes > 0 {
			s += fmt.Sprintf(" of %d types", f.EventTypes)
		}
		if f.PayloadBytes > 0 {
			s += ", " + size(f.PayloadBytes) + " of payload"
		}
		row("events", "%s", s)
	}
	for _, q := range f.Properties {
		row(q.Key, "%s", q.Value)
	}
}

// processText tells what a process is.
func (f *Facts) processText(q *Process) string {
	s := fmt.Sprint(q.PID)
	switch {
	case q.Name != "":
		s += "  " + strings.Join(append([]string{q.Name}, q.Then...), ", then ")
	case q.PID == 0 && strings.HasPrefix(f.Version, "6"):
		s += "  idle CPUs, kernel threads, processes of other containers"
	}
	if len(f.Processes) > 1 {
		if q.Samples > 0 {
			s += fmt.Sprintf("  (%s sample%s)", count(q.Samples), report.Plural(int(q.Samples)))
		} else {
			s += fmt.Sprintf("  (%s event%s)", count(q.Events), report.Plural(int(q.Events)))
		}
	}
	if q.DotNet {
		s += "  .NET"
		if q.Runtime != "" && len(f.Processes) > 1 {
			s += " " + q.Runtime
		}
		if q.Directory != "" {
			s += " in " + q.Directory
		}
	}
	if q.CommandLine != "" {
		s += "  " + q.CommandLine
	}
	return s
}

// runtimeTexts tell on what the processes ran: .NET and the machine.
func (f *Facts) runtimeTexts() (run []string) {
	for _, q := range f.Processes {
		if (q.Runtime != "" || q.OS != "") && !(q.DotNet && len(f.Processes) > 1) { // else it stands beside each
			s := strings.TrimSpace(q.OS + " " + q.Arch)
			if q.Runtime != "" {
				s = strings.TrimSuffix(".NET "+q.Runtime+", "+s, ", ")
			}
			run = append(run, s)
			break
		}
	}
	if f.PointerSize > 0 {
		run = append(run, fmt.Sprintf("%d-bit", 8*f.PointerSize))
	}
	if f.Processors > 0 {
		run = append(run, fmt.Sprintf("%d processor%s", f.Processors, report.Plural(f.Processors)))
	}
	return run
}

// recordedText tells when the file was recorded, and how.
func (f *Facts) recordedText() string {
	s := "start unknown"
	if f.Start != nil {
		s = f.Start.UTC().Format("2006-01-02 15:04:05.000 UTC")
	}
	s += ", " + duration(f.DurationMs)
	if f.RundownMs > 0 {
		s += " + " + duration(f.RundownMs) + " rundown"
	}
	if f.SamplingIntervalMs > 0 && f.Samples != nil && f.Samples.Count > 0 {
		s += fmt.Sprintf(", a sample each %g ms asked for", f.SamplingIntervalMs)
	}
	if f.Clock != nil {
		s += fmt.Sprintf(", clock %s", hertz(f.Clock.Frequency))
	}
	return s
}

// providers writes the table of providers with their most frequent events.
func (p *page) providers(f *Facts, o *TextOptions) {
	if len(f.Providers) == 0 {
		return
	}
	name, events, bytes := len("provider"), len("events"), len("payload")
	shown := f.Providers[:o.rows(len(f.Providers), fewProviders)]
	for _, q := range shown {
		name = max(name, utf8.RuneCountInString(q.Name))
		for i := 0; o.All && i < len(q.Types); i++ {
			name = max(name, utf8.RuneCountInString(typeLine(q.Types[i])))
		}
		events = max(events, len(count(q.Events)))
		bytes = max(bytes, len(size(q.PayloadBytes)))
	}
	name = min(name, max(p.width/2, 30))
	fmt.Fprintf(&p.b, "\n%s\n", p.dim(fmt.Sprintf("%-*s  %*s  %*s  %s", name, "provider", events, "events", bytes, "payload", "most frequent")))
	indent := name + 2 + events + 2 + bytes + 2
	for _, q := range shown {
		fmt.Fprintf(&p.b, "%s  %*s  %*s  ", pad(shorten(q.Name, name), name), events, count(q.Events), bytes, size(q.PayloadBytes))
		room := p.width - indent
		if !o.All {
			line := ""
			types := q.byName()
			for i, t := range types {
				s := typeText(t, len(types) > 1)
				if i > 0 {
					s = ", " + s
				}
				more := ""
				if i < len(types)-1 {
					more = fmt.Sprintf(", +%d", len(types)-i-1)
				}
				if utf8.RuneCountInString(line+s+more) > room && i > 0 {
					line += fmt.Sprintf(", +%d", len(types)-i)
					break
				}
				line += s
			}
			p.b.WriteString(shorten(line, max(room, 10)))
			p.b.WriteByte('\n')
			continue
		}
		p.b.WriteByte('\n')
		for _, t := range q.Types {
			fmt.Fprintf(&p.b, "%s  %*s  %*s\n", pad(shorten(typeLine(t), name), name), events, count(t.Events), bytes, size(t.PayloadBytes))
		}
	}
	if n := len(f.Providers) - len(shown); n > 0 {
		fmt.Fprintf(&p.b, "%s\n", p.dim(fmt.Sprintf("and %d more; --all lists them", n)))
	}
}

// byName are the types of p with those of one name joined.
func (p *Provider) byName() []*EventType {
	var types []*EventType
	at := map[string]*EventType{}
	for _, t := range p.Types {
		if at[t.Name] == nil {
			at[t.Name] = &EventType{Name: t.Name}
			types = append(types, at[t.Name])
		}
		at[t.Name].Events += t.Events
	}
	slices.SortStableFunc(types, func(a, b *EventType) int { return cmp.Compare(b.Events, a.Events) })
	return types
}

// typeLine is a type of event below its provider.
func typeLine(t *EventType) string { return fmt.Sprintf("  %d v%d %s", t.ID, t.Version, t.Name) }

func typeText(t *EventType, counted bool) string {
	if !counted {
		return t.Name
	}
	return t.Name + " " + count(t.Events)
}

// threads writes the table of the threads with the most samples.
func (p *page) threads(f *Facts, o *TextOptions) {
	if len(f.Threads) == 0 {
		return
	}
	shown := f.Threads[:o.rows(len(f.Threads), fewThreads)]
	multi := len(f.Processes) > 1
	id := func(t *Thread) string {
		if t.ID != "" {
			return t.ID
		}
		if multi {
			return fmt.Sprintf("%d/%d", t.PID, t.TID)
		}
		return fmt.Sprint(t.TID)
	}
	w := [5]int{len("thread"), len("samples"), len("cut"), len("events"), len("waits")}
	cut, waits, every, names := false, false, false, 0
	for _, t := range shown {
		w[0] = max(w[0], len(id(t)))
		w[1] = max(w[1], len(count(t.Samples)))
		w[2] = max(w[2], len(count(t.Cut)))
		w[3] = max(w[3], len(count(t.Events)))
		w[4] = max(w[4], len(count(t.Waits)))
		waits = waits || t.Waits > 0
		every = every || t.IntervalMs > 0
		cut = cut || t.Cut > 0
		names = max(names, utf8.RuneCountInString(t.Name))
	}
	head := fmt.Sprintf("%-*s  %*s", w[0], "thread", w[1], "samples")
	if every {
		head += "     every"
	}
	if waits {
		head += fmt.Sprintf("  %*s", w[4], "waits")
	}
	if cut {
		head += fmt.Sprintf("  %*s", w[2], "cut")
	}
	spikes := f.Spans != nil && f.Spans.Spikes > 0
	if spikes {
		head += "  spikes"
	}
	head += fmt.Sprintf("  %*s  %s", w[3], "events", "from .. to")
	fmt.Fprintf(&p.b, "\n%s\n", p.dim(head))
	for _, t := range shown {
		line := fmt.Sprintf("%-*s  %*s", w[0], id(t), w[1], count(t.Samples))
		if every {
			kept := ""
			if t.IntervalMs > 0 {
				kept = fmt.Sprintf("%.2f ms", t.IntervalMs)
			}
			line += fmt.Sprintf("  %8s", kept)
		}
		if waits {
			line += fmt.Sprintf("  %*s", w[4], count(t.Waits))
		}
		if cut {
			line += fmt.Sprintf("  %*s", w[2], count(t.Cut))
		}
		if spikes {
			line += fmt.Sprintf("  %6s", count(t.Spikes))
		}
		line += fmt.Sprintf("  %*s  %s .. %s", w[3], count(t.Events), duration(t.FirstMs), duration(t.LastMs))
		if t.Name != "" {
			line += "  " + t.Name
		}
		p.b.WriteString(shorten(line, p.width))
		p.b.WriteByte('\n')
	}
	if n := len(f.Threads) - len(shown); n > 0 {
		fmt.Fprintf(&p.b, "%s\n", p.dim(fmt.Sprintf("and %d more; --all lists them", n)))
	}
}

// depths draws the histogram of stack depths.
func (p *page) depths(f *Facts) {
	if f.Stacks == nil || len(f.Stacks.Depths) < 2 {
		return
	}
	s := f.Stacks
	bars := []rune("▁▂▃▄▅▆▇█")
	per := 1
	for (len(s.Depths)+per-1)/per > 50 {
		per = map[int]int{1: 2, 2: 5, 5: 10, 10: 20}[per]
		if per == 0 {
			per = (len(s.Depths) + 49) / 50
			break
		}
	}
	n := (len(s.Depths) + per - 1) / per
	sums := make([]int64, n)
	most := int64(0)
	for d, c := range s.Depths {
		sums[d/per] += c
		most = max(most, sums[d/per])
	}
	var line strings.Builder
	for _, c := range sums {
		if c == 0 {
			line.WriteByte(' ')
			continue
		}
		// The root makes the small ones visible beside the one big one that most traces have.
		h := math.Sqrt(float64(c)/float64(most)) * float64(len(bars)-1)
		line.WriteRune(bars[int(math.Round(h))])
	}
	fmt.Fprintf(&p.b, "\n%s  0 %s %d", p.dim("depth"), line.String(), s.Max)
	fmt.Fprintf(&p.b, "   median %d", s.Median)
	if s.Limit > 0 && s.Limit < len(s.Depths) {
		fmt.Fprintf(&p.b, ", %s at the limit of %d", count(s.Depths[s.Limit]), s.Limit)
	}
	p.b.WriteByte('\n')
}

func (p *page) damage(f *Facts, all bool) {
	if f.Damages == 0 {
		return
	}
	fmt.Fprintf(&p.b, "\n%s\n", p.dim("damage"))
	for i, d := range f.Damage {
		if !all && i == fewDamages && f.Damages > fewDamages+1 {
			fmt.Fprintf(&p.b, "  and %s more; --all lists them\n", count(int64(f.Damages-i)))
			return
		}
		fmt.Fprintf(&p.b, "  offset %d: %s: %s\n", d.Offset, text.Line(d.Where), text.Line(d.What))
	}
}

// shorten is s on one line, cut to width characters.
func shorten(s string, width int) string {
	s = text.Line(s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == width {
			return s[:i] + "…"
		}
	}
	return s
}

// pad fills s up to width characters.
func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return s
}

// duration prints milliseconds with three or four digits that matter.
func duration(ms float64) string {
	d := time.Duration(ms * 1e6)
	switch {
	case d < 0:
		return "-" + duration(-ms)
	case d > 0 && d < time.Microsecond: // %g would write it with an exponent
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g ms", ms)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func hertz(n int64) string {
	switch {
	case n >= 1e9 && n%1e9 == 0:
		return fmt.Sprintf("%d GHz", n/1e9)
	case n >= 1e6 && n%1e6 == 0:
		return fmt.Sprintf("%d MHz", n/1e6)
	}
	return fmt.Sprintf("%d Hz", n)
}
