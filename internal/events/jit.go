package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A methodRow is one body of code that the JIT compiler made.
type methodRow struct {
	K          string   `json:"k"`
	PID        int      `json:"pid"`
	Name       string   `json:"name"`
	Module     string   `json:"module,omitempty"`
	Tier       string   `json:"tier"`
	Version    uint64   `json:"version"`
	IL         *uint32  `json:"il_bytes,omitempty"` // nil: the trace lacks the start
	Native     uint32   `json:"native_bytes"`
	Compile    *float64 `json:"compile_ms,omitempty"`
	Start      *float64 `json:"start_ms,omitempty"`
	TID        uint64   `json:"tid"`
	Background bool     `json:"background"`
	Dynamic    bool     `json:"dynamic,omitempty"`
	CodeBytes  uint64   `json:"code_alloc_bytes,omitempty"`
	ReadOnly   uint64   `json:"rodata_bytes,omitempty"`
}

type jitStats struct {
	K            string         `json:"k"`
	PID          int            `json:"pid,omitempty"`
	Methods      int            `json:"methods"`
	Foreground   int            `json:"foreground"`
	Background   int            `json:"background_tiered"`
	Total        float64        `json:"total_ms"`
	ForegroundMS float64        `json:"foreground_ms"`
	BackgroundMS float64        `json:"background_tiered_ms"`
	IL           int64          `json:"il_bytes"`
	Native       int64          `json:"native_bytes"`
	CodeBytes    uint64         `json:"code_alloc_bytes"`
	Tiers        map[string]int `json:"tiers"`
	Dynamic      int            `json:"dynamic"`
	Batches      int            `json:"background_batches"` // runs of the compiler in the background, also of unnamed methods
	Batched      int            `json:"background_batch_methods"`
	BatchedMS    float64        `json:"background_batch_ms"`
	Untimed      int            `json:"without_time"`
	Unfinished   int            `json:"unfinished"`
}

// JIT reports on the compilations of a trace.
func JIT(jit *runtimeevents.JIT, c *Context) *Report {
	r := &Report{Title: "Compilations of " + c.Name, row: methodRow{}, stats: jitStats{K: "stats", Tiers: map[string]int{}}}
	var pids []int
	by := map[int][]*runtimeevents.Compilation{}
	for _, m := range jit.Compilations {
		if by[m.Process] == nil {
			pids = append(pids, m.Process)
		}
		by[m.Process] = append(by[m.Process], m)
	}
	batches := map[int][]runtimeevents.Batch{}
	behind := 0 // methods that were compiled in the background, as batches tell
	for _, b := range jit.Batches {
		if by[b.Process] == nil && batches[b.Process] == nil {
			pids = append(pids, b.Process)
		}
		batches[b.Process] = append(batches[b.Process], b)
		behind += int(b.Methods)
	}
	var stats []any
	for _, pid := range pids {
		s := jitStats{K: "stats", PID: pid, Tiers: map[string]int{}, Batches: len(batches[pid]), Unfinished: jit.UnfinishedOf(pid)}
		var batched int64 // ns
		for _, b := range batches[pid] {
			s.Batched += int(b.Methods)
			batched += c.In.Part(b.Start, b.Stop)
		}
		s.BatchedMS = text.Millis(batched)
		named := func(m *runtimeevents.Compilation) string { return jit.ModulePath(pid, m.Module) }
		var waited, dynamic, behind int64 // ns; dynamic: of waited, for dynamic methods
		for _, m := range by[pid] {
			s.add(m)
			if time := c.In.Part(m.Stop-m.Time(), m.Stop); m.Background() {
				behind += time
			} else {
				waited += time
				if m.Dynamic {
					dynamic += time
				}
			}
		}
		s.Total, s.ForegroundMS, s.BackgroundMS = text.Millis(waited+behind), text.Millis(waited), text.Millis(behind)
		row := func(i int) any {
			m := by[pid][i]
			row := methodRow{
				K: "method", PID: pid, Name: m.Name, Module: named(m), Tier: m.Tier.String(), Version: m.Version, Native: m.Native,
				TID: m.Thread, Background: m.Background(), Dynamic: m.Dynamic, CodeBytes: m.CodeBytes, ReadOnly: m.ReadOnly,
			}
			if m.Start >= 0 {
				row.Start, row.Compile, row.IL = told(m.Start), told(m.Time()), &m.IL
			}
			return row
		}
		r.Rows.add(len(by[pid]), row)
		r.CSV.add(len(by[pid]), row)
		stats = append(stats, s)
		sec := c.section(pid)
		sec.Verdict = jitVerdict(by[pid], &s, text.Millis(dynamic), c)
		sec.Tables = jitTables(by[pid], named, c)
		sec.Plots = func() []Plot { return jitPlots(by[pid], batches[pid]) }
		r.Sections = append(r.Sections, sec)
	}
	r.Done = count(r.CSV.Len(), "method") + " compiled"
	if len(by) == 0 && behind > 0 {
		r.Done = count(behind, "method") + " compiled in the background"
	}
	r.Rows.add(len(stats), func(i int) any { return stats[i] })
	return r
}

func (s *jitStats) add(m *runtimeevents.Compilation) {
	s.Methods++
	s.Tiers[m.Tier.String()]++
	s.IL += int64(m.IL)
	s.Native += int64(m.Native)
	s.CodeBytes += m.CodeBytes
	if m.Background() {
		s.Background++
	} else {
		s.Foreground++
	}
	if m.Dynamic {
		s.Dynamic++
	}
	if m.Start < 0 {
		s.Untimed++
	}
}

// jitVerdict tells what compiling cost; dynamicMS is what threads waited for dynamic methods.
func jitVerdict(list []*runtimeevents.Compilation, s *jitStats, dynamicMS float64, c *Context) (v []string) {
	if s.Untimed == s.Methods {
		return untimed(s, c)
	}
	judged := "Compiling held nobody up for long."
	switch {
	case s.ForegroundMS >= 0.05*text.Millis(c.End) && dynamicMS > s.ForegroundMS/2: // which no ReadyToRun code holds
		judged = "Compiling is a good part of what the program did, most of it dynamic methods: make a compiled expression, Regex or DynamicMethod once, and keep it."
	case s.ForegroundMS >= 0.05*text.Millis(c.End):
		judged = "Compiling is a good part of what the program did: ReadyToRun code would start without it."
	case c.lossy():
		judged = ""
	}
	background := ""
	if s.Background > 0 {
		were := "were"
		if s.Background == 1 {
			were = "was"
		}
		background = fmt.Sprintf("; %s %s compiled in the background, in %s", thousands(s.Background), were, duration(nanos(s.BackgroundMS)))
	}
	v = append(v, fmt.Sprintf("%s compiled in %s. For %s of them a thread stood waiting, %s in all (%s of %s)%s.",
		count(s.Methods, "method"), duration(nanos(s.Total)), thousands(s.Foreground), duration(nanos(s.ForegroundMS)), report.Percent(s.ForegroundMS, text.Millis(c.End)), duration(c.End), background))
	if judged != "" {
		v = append(v, judged)
	}
	worst := slices.MaxFunc(list, func(a, b *runtimeevents.Compilation) int { return cmp.Compare(a.Time(), b.Time()) })
	cut := 0
	for _, m := range list {
		if c.In.Part(m.Stop-m.Time(), m.Stop) != m.Time() {
			cut++
		}
	}
	v = append(v, cutNote(cut, "compilation")...)
	v = append(v, fmt.Sprintf("The slowest took %s: %s (%s of IL, %s).", duration(worst.Time()), short(worst.Name), size(float64(worst.IL)), worst.Tier))
	if s.Untimed > 0 {
		v = append(v, fmt.Sprintf("Not known: how long %s took; the trace lacks their start.", thousands(s.Untimed)+" of them"))
	}
	if n := s.Tiers[runtimeevents.TierOSR.String()]; n > 0 {
		v = append(v, fmt.Sprintf("%s replaced on the stack: a loop ran so long that its method could not wait for its next call.", count(n, "method")))
	}
	if s.Dynamic > 0 {
		v = append(v, fmt.Sprintf("%s among them: stubs, compiled expressions, DynamicMethod. Their IL counts as 0.", count(s.Dynamic, "dynamic method")))
	}
	return v
}

// untimed is the verdict where no event tells how long a method took: of those compiled in the background
// the runs of the compiler do, in what dotnet-trace records by default as well.
func untimed(s *jitStats, c *Context) (v []string) {
	not := "How long that took"
	if s.Methods > 0 {
		v = append(v, count(s.Methods, "method")+" compiled.")
	}
	if s.Batches > 0 {
		v = append(v, fmt.Sprintf("Compiled in the background: %s, in %s (%s of %s).",
			count(s.Batched, "method"), duration(nanos(s.BatchedMS)), report.Percent(s.BatchedMS, text.Millis(c.End)), duration(c.End)))
		not = "For which methods threads stood waiting, and how long,"
	}
	return append(v, not+" was not recorded; `"+collect.Compilations.For(c.Version)+"` records it.")
}

// A jitSum is what a group of compilations adds up to.
type jitSum struct {
	name        string
	n, timed    int   // timed: those of which the trace tells how long they took
	time, ahead int64 // ahead: of time, what somebody waited for
	il, native  int64
	slowest     int64
}

func sumJIT(list []*runtimeevents.Compilation, in interval.Interval, key func(*runtimeevents.Compilation) string) []jitSum {
	index := map[string]int{}
	var sums []jitSum
	for _, m := range list {
		k := key(m)
		i, ok := index[k]
		if !ok {
			i = len(sums)
			index[k] = i
			sums = append(sums, jitSum{name: k})
		}
		s := &sums[i]
		s.n++
		time := in.Part(m.Stop-m.Time(), m.Stop)
		s.time += time
		if m.Start >= 0 {
			s.timed++
		}
		if !m.Background() {
			s.ahead += time
		}
		s.il += int64(m.IL)
		s.native += int64(m.Native)
		s.slowest = max(s.slowest, m.Time())
	}
	text.SortRows(sums, func(a, b *jitSum) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.n, a.n)) })
	return sums
}

func jitTables(list []*runtimeevents.Compilation, module func(*runtimeevents.Compilation) string, c *Context) []Table {
	group := func(title, last string, key func(*runtimeevents.Compilation) string) Table {
		t := Table{Title: title, Head: []string{"methods", "time", "waited for", "slowest", "il", "native", last}, Left: 6, Spare: []string{"il", "slowest"}}
		sums := sumJIT(list, c.In, key)
		n := c.cut(len(sums))
		t.More = len(sums) - n
		for _, s := range sums[:n] {
			told := [4]string{} // by the starts
			if s.timed > 0 {
				told = [4]string{duration(s.time), duration(s.ahead), duration(s.slowest), size(float64(s.il))}
			}
			t.Rows = append(t.Rows, append(append([]string{thousands(s.n)}, told[:]...), size(float64(s.native)), s.name))
		}
		return t
	}
	tiers := group("", "tier", func(m *runtimeevents.Compilation) string { return m.Tier.String() })
	modules := group("", "module", func(m *runtimeevents.Compilation) string { return cmp.Or(base(module(m)), "(not told)") })
	slow := slices.DeleteFunc(slices.Clone(list), func(m *runtimeevents.Compilation) bool { return m.Start < 0 })
	slices.SortStableFunc(slow, func(a, b *runtimeevents.Compilation) int { return cmp.Compare(b.Time(), a.Time()) })
	n := c.cut(len(slow))
	slowest := Table{Title: "Slowest", Head: []string{"at", "time", "il", "native", "tier", "method"}, Left: 4, Spare: []string{"il", "native"}, More: len(slow) - n}
	for _, m := range slow[:n] {
		slowest.Rows = append(slowest.Rows, []string{at(m.Start), duration(m.Time()), size(float64(m.IL)), size(float64(m.Native)), m.Tier.String(), m.Name})
	}
	return slices.DeleteFunc([]Table{tiers, modules, slowest}, func(t Table) bool { return len(t.Rows) == 0 })
}

// base is the file of a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

func jitPlots(list []*runtimeevents.Compilation, batches []runtimeevents.Batch) []Plot {
	if len(list) == 0 {
		runs := PlotSeries{Name: "in the background", Style: Bars}
		for _, b := range batches {
			runs.add(b.Start, text.Millis(b.Stop-b.Start), count(int(b.Methods), "method"))
		}
		return []Plot{{Title: "Each run of the compiler", Unit: "ms", Series: []PlotSeries{runs}}}
	}
	ahead, behind := PlotSeries{Name: "waited for", Style: Bars}, PlotSeries{Name: "in the background", Style: Bars}
	total, waited := PlotSeries{Name: "all", Style: Steps}, PlotSeries{Name: "waited for", Style: Steps}
	var sum, sumAhead float64
	for _, m := range list {
		if m.Start < 0 {
			continue
		}
		s := &ahead
		if m.Background() {
			s = &behind
		} else {
			sumAhead += text.Millis(m.Time())
		}
		s.add(m.Start, text.Millis(m.Time()), m.Name+", "+m.Tier.String())
		sum += text.Millis(m.Time())
		total.add(m.Stop, sum, "")
		waited.add(m.Stop, sumAhead, "")
	}
	return []Plot{
		{Title: "Time compiling since the start", Unit: "ms", Series: []PlotSeries{total, waited}},
		{Title: "Each compilation", Unit: "ms", Series: []PlotSeries{behind, ahead}},
	}
}
