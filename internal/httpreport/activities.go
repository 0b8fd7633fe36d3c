package httpreport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/text"
)

// msecs prints nanoseconds as milliseconds, exactly.
type msecs int64

// MarshalJSON implements json.Marshaler.
func (m msecs) MarshalJSON() ([]byte, error) { return text.AppendMillis(nil, int64(m)), nil }

// An ActivityFilter says which rows, by their numbers, are wanted; nil: all.
type ActivityFilter func(i int, r *activity.Row) bool

// ActivityExplain tells where the time of a row went, nil where that is not known; it may be nil.
type ActivityExplain func(row int) *httpphases.Explanation

// AppendActivity appends row i of t as one JSON object: the row of product.md's ndjson. Times are ms
// since the start of the trace.
func AppendActivity(b []byte, t *activity.Rows, i int, r *activity.Row, why ActivityExplain) []byte {
	o := open(b)
	o.int("row", int64(i))
	o.key("provider")
	o.b = text.AppendJSON(o.b, r.Provider)
	o.key("name")
	o.b = text.AppendJSON(o.b, r.Name)
	if !r.ID.IsZero() {
		o.id("id", r.ID)
		if p, ok := t.Path(r); ok {
			o.key("path")
			o.b = append(o.b, '"', '/', '/')
			o.b = append(p.AppendText(o.b), '"')
		}
	}
	if r.Parent >= 0 {
		if id := t.ID(r.Parent); !id.IsZero() {
			o.id("parent", id)
		}
		o.int("parent_row", int64(r.Parent))
	}
	if r.HasStart {
		o.ms("start_ms", r.Start)
	}
	if r.HasStop {
		o.ms("stop_ms", r.Stop)
	}
	if d, ok := r.Duration(); ok {
		o.ms("duration_ms", d)
	}
	o.key("status")
	o.b = text.AppendJSON(o.b, r.Status.String())
	o.str("by", r.By.String())
	o.number("start_tid", r.StartThread)
	o.number("stop_tid", r.StopThread)
	s := r.Span
	if s != nil {
		o.str("trace_id", s.TraceID)
		o.str("span_id", s.SpanID)
		o.str("parent_span_id", s.ParentSpanID)
	}
	o.number("pid", uint64(r.Process))
	if s != nil {
		o.str("kind", s.Kind)
		o.str("display_name", displayName(r))
		if s.Status != "Unset" {
			o.str("span_status", s.Status)
		}
		if s.Duration > 0 {
			o.ms("span_duration_ms", s.Duration) // the activity's own measure
		}
	}
	if !r.HasStop && r.LastSeen > 0 {
		o.ms("last_event_ms", r.LastSeen)
	}
	o.flag("guess", r.Guess)
	o.flag("dead_creator", r.DeadCreator)
	b = o.close()
	if why != nil {
		if x := why(i); x != nil {
			b = append(AppendExplanation(append(b[:len(b)-1], ','), x), '}')
		}
	}
	return b
}

// ActivitiesNDJSON writes one line per activity that is shown in the order of their events.
func ActivitiesNDJSON(w io.Writer, t *activity.Rows, shown ActivityFilter, why ActivityExplain) error {
	b := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i, r := range t.All() {
		if shown != nil && !shown(i, r) {
			continue
		}
		line = append(AppendActivity(line[:0], t, i, r, why), '\n')
		b.Write(line)
	}
	return b.Flush()
}

// ActivitiesJSON writes one document: the activities that are shown, and totals of those that keep wants.
func ActivitiesJSON(w io.Writer, t *activity.Rows, keep, shown ActivityFilter, why ActivityExplain) error {
	b := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprint(b, "{\"activities\":[")
	var line []byte
	between := "\n"
	for i, r := range t.All() {
		if shown != nil && !shown(i, r) {
			continue
		}
		b.WriteString(between)
		between = ",\n"
		line = AppendActivity(line[:0], t, i, r, why)
		b.Write(line)
	}
	q, err := json.Marshal(ActivityTotals(t, keep))
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n],\n\"totals\":%s", q)
	if !t.HasIDs && len(t.WithoutID) > 0 {
		q, err := json.Marshal(t.WithoutID)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, ",\n\"without_activity_id\":%s", q)
	}
	fmt.Fprint(b, "}\n")
	return b.Flush()
}

// An ActivityTotal counts the activities of one name, spans by their display names: of database commands these
// are their texts.
type ActivityTotal struct {
	Provider    string `json:"provider"`
	Name        string `json:"name"`
	Display     string `json:"display_name,omitempty"`
	OK          int    `json:"ok"`
	AutoStopped int    `json:"auto_stopped"`
	Unfinished  int    `json:"unfinished"`
	OrphanStop  int    `json:"orphan_stop"`
	Sum         msecs  `json:"sum_ms"` // of those that are ok
	Max         msecs  `json:"max_ms"`
}

// mostDisplayed is how many display names are told apart: each may be another one. Further ones are one.
const mostDisplayed = 1000

// ActivityTotals counts activities by provider, name and display name, in the order of their first event.
func ActivityTotals(t *activity.Rows, keep ActivityFilter) []*ActivityTotal {
	type key struct{ provider, name, display string }
	index := map[key]*ActivityTotal{}
	displayed := 0
	list := []*ActivityTotal{}
	for i, r := range t.All() {
		if keep != nil && !keep(i, r) {
			continue
		}
		k := key{r.Provider, r.Name, displayName(r)}
		v := index[k]
		if v == nil && k.display != "" {
			if displayed++; displayed > mostDisplayed {
				k.display = ""
				v = index[k]
			}
		}
		if v == nil {
			v = &ActivityTotal{Provider: k.provider, Name: k.name, Display: k.display}
			index[k] = v
			list = append(list, v)
		}
		switch r.Status {
		case activity.OK:
			v.OK++
			v.Sum += msecs(r.Stop - r.Start)
			v.Max = max(v.Max, msecs(r.Stop-r.Start))
		case activity.AutoStopped:
			v.AutoStopped++
		case activity.Unfinished:
			v.Unfinished++
		case activity.OrphanStop:
			v.OrphanStop++
		}
	}
	return list
}

// displayName is that of a span which says more than its name.
func displayName(r *activity.Row) string {
	if s := r.Span; s != nil && s.DisplayName != s.Name {
		return s.DisplayName
	}
	return ""
}

// ActivitiesTree prints the tree of what is shown, children indented below their parents, in order
// of start, and totals of what keep wants; rows deeper than depth (0: no limit) are counted only. A
// parent that the filter refuses is left out with its own line only: children move up. Lines are
// made to fit width characters; 0 is any width.
func ActivitiesTree(w io.Writer, t *activity.Rows, keep, shown ActivityFilter, depth int, why ActivityExplain, width int) error {
	b := bufio.NewWriterSize(w, 64<<10)
	r := &activity.Row{}
	none, hidden := true, 0
	for i, level := range t.Forest(shown).All() {
		if none {
			fmt.Fprintf(b, "%12s %11s  activity   (times in ms)\n", "start", "duration")
			none = false
		}
		if depth > 0 && level >= depth {
			hidden++
			continue
		}
		t.Row(i, r)
		line(b, t, i, r, level, why, width)
	}
	if hidden > 0 {
		fmt.Fprintf(b, "%24s  (%d deeper activities are not shown)\n", "", hidden)
	}
	totals := ActivityTotals(t, keep)
	sort.SliceStable(totals, func(i, j int) bool { return totals[i].Sum > totals[j].Sum })
	if len(totals) > 0 {
		b.WriteByte('\n')
		totalsTable(b, totals, width)
	}
	if !t.HasIDs {
		for _, c := range t.WithoutID {
			fmt.Fprintf(b, "%8d starts, %d stops without activity id: %s %s\n", c.Starts, c.Stops, text.Line(c.Provider), text.Line(c.Name))
		}
	}
	return b.Flush()
}

// causes are those with a twentieth of the time or more, in words.
func causes(x *httpphases.Explanation) string {
	var sum int64
	for _, ns := range x.Time.Causes {
		sum += ns
	}
	var told string
	for name, ns := range x.Time.Causes {
		if ns > 0 && ns >= sum/20 {
			told += fmt.Sprintf(", %s %.3f", strings.ReplaceAll(name, "_", " "), text.Millis(ns))
		}
	}
	return strings.Replace(told, ", ", "  = ", 1)
}

// totalsTable prints the totals; a screen has no columns of which nothing happened.
func totalsTable(b *bufio.Writer, totals []*ActivityTotal, width int) {
	rows := [][]string{{"ok", "auto", "open", "orphan", "sum", "max", "activity"}}
	for _, v := range totals {
		name := text.Line(v.Provider + " " + v.Name)
		if v.Display != "" { // in front: what does not fit is cut off
			name = fmt.Sprintf("%q ", v.Display) + name
		}
		rows = append(rows, []string{strconv.Itoa(v.OK), strconv.Itoa(v.AutoStopped), strconv.Itoa(v.Unfinished), strconv.Itoa(v.OrphanStop),
			fmt.Sprintf("%.3f", text.Millis(int64(v.Sum))), fmt.Sprintf("%.3f", text.Millis(int64(v.Max))), name})
	}
	wide := []int{8, 8, 8, 8, 12, 10, 0}
	last := len(wide) - 1
	if width > 0 {
		clear(wide)
		for i := range wide {
			some := false
			for k, r := range rows {
				wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
				some = some || k > 0 && r[i] != "0"
			}
			if !some {
				wide[i] = -1
			}
		}
		text.FitColumns(wide, width, 1, []int{last}, nil)
	}
	for _, r := range rows {
		for i, c := range r[:last] {
			if wide[i] >= 0 {
				fmt.Fprintf(b, "%*s ", wide[i], c)
			}
		}
		name := r[last]
		if width > 0 {
			name = text.Fit(name, wide[last]-1)
		}
		b.WriteString(" " + name + "\n")
	}
}

// line prints a row of the tree. A deep one tells its level, and a narrow screen has few levels.
func line(w *bufio.Writer, t *activity.Rows, i int, r *activity.Row, level int, why ActivityExplain, width int) {
	const beside, shown = 26, 60 // in front of the name; levels
	deepest := shown
	if width > 0 {
		deepest = min(shown, max(2, (width-2*beside)/2))
	}
	b := &strings.Builder{}
	at := r.Start
	if !r.HasStart {
		at = r.Stop
	}
	fmt.Fprintf(b, "%12.3f ", text.Millis(at))
	if d, ok := r.Duration(); ok {
		fmt.Fprintf(b, "%11.3f  ", text.Millis(d))
	} else {
		fmt.Fprintf(b, "%11s  ", map[bool]string{true: "open", false: ""}[r.HasStart])
	}
	for range min(level, deepest) {
		b.WriteString("  ")
	}
	if level > deepest {
		fmt.Fprintf(b, "(%d) ", level)
	}
	b.WriteString(text.Line(r.Name))
	if name := displayName(r); name != "" {
		fmt.Fprintf(b, " %q", name)
	}
	if r.Span == nil {
		fmt.Fprintf(b, "  %s", text.Line(r.Provider))
	}
	if p, ok := t.Path(r); ok {
		b.WriteString("  " + "//" + p.String())
	}
	switch {
	case r.Status == activity.OrphanStop && r.Span != nil && r.Span.Duration > 0:
		fmt.Fprintf(b, "  [%s: took %.3f in all]", r.Status, text.Millis(r.Span.Duration))
	case r.Status != activity.OK:
		b.WriteString("  [" + r.Status.String() + "]")
	case r.By == activity.ByThread:
		b.WriteString("  [paired by thread: a guess]")
	case r.Guess:
		b.WriteString("  [its stop may be that of a sibling]")
	}
	if r.DeadCreator {
		b.WriteString("  [after the end of its creator]")
	}
	if why != nil {
		if x := why(i); x != nil {
			b.WriteString(causes(x))
		}
	}
	w.WriteString(text.Wrapped(b.String(), width, beside+2*min(level, deepest)+2) + "\n")
}
