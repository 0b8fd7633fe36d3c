package info

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// recordHTTP is the line that records all of the HTTP requests, made and served.
func recordHTTP(withCPU bool) *collect.Line {
	var line collect.Line
	if withCPU {
		line = collect.Samples
	}
	line.Providers = requests.Providers()
	return &line
}

// verdicts answers what people want to know first.
func (g *nettraceReader) verdicts() []Verdict {
	v := []Verdict{g.cpuVerdict()}
	if n, ok := g.nameVerdict(); ok {
		v = append(v, n)
	}
	v = append(v, g.httpVerdict())
	if a, ok := g.activityVerdict(); ok {
		v = append(v, a)
	}
	if c, ok := g.causeVerdict(); ok {
		v = append(v, c)
	}
	if c, ok := g.counterVerdict(); ok {
		v = append(v, c)
	}
	if r, ok := g.runtimeVerdict(); ok {
		v = append(v, r)
	}
	v = append(v, g.lossVerdict(), g.f.fileVerdict())
	if g.r != nil {
		if note := load.NewerNote(g.r.Stats()); note != "" {
			v = append(v, Verdict{Topic: "note", State: Good, Text: note})
		}
	}
	return v
}

// linux tells whether collect-linux recorded the trace.
func (g *nettraceReader) linux() bool { return g.version() >= 6 }

// version is that of the trace. A test may have no reader.
func (g *nettraceReader) version() int {
	if g.r == nil {
		return 0
	}
	return g.r.Header().Version
}

// record is a line for who recorded this trace. Who recorded context switches wants those again.
func (g *nettraceReader) record(line *collect.Line) string {
	again := *line
	again.Waits = g.f.Samples.OffCPU > 0
	return again.For(g.version())
}

func (g *nettraceReader) cpuVerdict() Verdict {
	f, s := g.f, g.f.Samples
	v := Verdict{Topic: "CPU stacks", State: Good, of: "CPU stacks"}
	record := g.record(&collect.Samples)
	if s.Count == 0 {
		v.State, v.Do = None, record
		v.Text = "no CPU samples"
		if s.Other > 0 {
			v.Text += fmt.Sprintf("; %s other events have stacks", count(s.Other))
		}
		return v
	}
	threads := 0
	for _, t := range f.Threads {
		if t.Samples > 0 {
			threads++
		}
	}
	v.Text = fmt.Sprintf("%s sample%s of %s thread%s", count(s.Count), report.Plural(int(s.Count)), report.Count(threads), report.Plural(threads))
	switch {
	case s.Untyped:
		v.Text += ", nearly all marked as native code or waiting, those of managed code too"
	case s.Managed+s.External > 0:
		v.Text += fmt.Sprintf(", %s in managed code", percentOf(s.Managed, s.Count))
	case s.OffCPU > 0:
		v.Text += fmt.Sprintf(", %s waits", count(s.OffCPU))
	}
	cut := f.Stacks.CutTotal()
	switch {
	case f.Stacks.Frames == 0:
		v.wrong(1, 0, "all stacks are empty")
		v.Do = "unset DOTNET_EventPipeDisableStacks in the process and record again"
		v.Text += "; all their stacks are empty"
	case cut > 0:
		v.Text += "; " + f.Stacks.cutText(s.Looks())
		v.cut(f, cut, s.Looks())
	default:
		v.Text += "; none cut"
	}
	v.Text += f.Stacks.beforeText()
	if s.Untyped && v.State == Good {
		v.State, v.Problem = Partly, "samples of managed code are not marked as such"
		v.Do = "a newer runtime marks them (.NET 9 and 10: dotnet/runtime#123996); until then tracefix goes by the innermost method"
	}
	v.few(s.Count)
	return v
}

// tolerableCut is the share of cut stacks that no total is wrong by for anybody to see.
const tolerableCut = 0.01

// cut says of how many stacks the outer frames are missing, and what a repair would do.
func (v *Verdict) cut(f *Facts, cut, looks int64) {
	problem := percentOf(cut, looks) + " of the CPU stacks are cut"
	then := f.Forecast.text()
	if then != "" {
		problem += ", " + then
		v.Text += "; " + then
	}
	v.wrong(float64(cut)/float64(looks), tolerableCut, problem)
	if f.Stacks.Before != nil {
		v.Do = "what the earlier repair could not know stays cut; to repair it in another way take the recording itself"
		return
	}
	c := f.Forecast
	if v.State == Bad && c != nil && float64(cut)*float64(c.Tried-c.Repaired) < 0.5*float64(looks)*float64(c.Tried) {
		v.State = Partly // after a repair most is whole
	}
	if c == nil || c.Repaired*100 >= c.Tried { // else it is not worth the time
		v.Do = "tracefix repair " + text.ShellWord(f.File)
	}
}

// few says of a profile of n samples that it is too small to judge by, if it is.
func (v *Verdict) few(n int64) {
	if n >= fewestSamples {
		return
	}
	if v.State == Good {
		v.State, v.Problem = Partly, fmt.Sprintf("only %s sample%s", count(n), report.Plural(int(n)))
	}
	v.Text += "; too few to judge by: record for longer"
}

func (g *nettraceReader) nameVerdict() (Verdict, bool) {
	f := g.f
	v := Verdict{Topic: "names", State: Good}
	v6 := g.linux()
	if f.Stacks == nil || f.Stacks.Frames == 0 {
		if f.Samples.Other == 0 || v6 {
			return v, false
		}
		switch {
		case f.Rundown != nil && f.Rundown.Complete:
			v.Text = fmt.Sprintf("rundown complete: %s methods", count(f.Rundown.Methods))
		default:
			v.State, v.Text, v.Do = Partly, "no complete rundown: only methods compiled while recording have names", f.rundownOf()
			v.Problem = "only methods compiled while recording have names"
		}
		return v, true
	}
	v.Text = percentOf(f.Stacks.Named, f.Stacks.Frames) + " of the frames have a name"
	share := float64(f.Stacks.Named) / float64(f.Stacks.Frames)
	unnamed := f.Stacks.Frames - f.Stacks.Named
	v.wrong(1-share, tolerableUnnamed, percentOf(unnamed, f.Stacks.Frames)+" of the frames have no name")
	switch {
	case v6:
		if v.State != Good {
			v.unnamed(f, g.unnamed, unnamed)
		}
	case f.Rundown == nil || f.Rundown.Events == 0:
		v.Text += "; no rundown: the recording did not end by itself, or rundown was off"
		v.Do = f.rundownOf()
	case f.Lost.Rundown > 0:
		v.Text += fmt.Sprintf("; %s events of the rundown were lost", count(int64(f.Lost.Rundown)))
		v.Do = bigBuffer
	case !f.Rundown.Complete:
		v.Text += "; the rundown is incomplete"
		v.Do = endWell
	default:
		v.Text += "; rundown complete"
	}
	if v.State == Good {
		v.Do = ""
	}
	return v, true
}

// unnamed tells whose frames, of n without a name, lack most of it, and what would name them: the
// recorder knows what was compiled while the process ran, and the symbols that ELF files have
// themselves.
func (v *Verdict) unnamed(f *Facts, by map[string]int64, n int64) {
	var native, managed, none int64
	var most [3]string // the first of them, by their frames and names
	for m, k := range by {
		switch {
		case m == "?" || m == "":
			none += k
			continue
		case m == "[vdso]" || strings.Contains(m, ".so"):
			native += k
		default:
			managed += k
		}
		for i, o := range most {
			if k > by[o] || k == by[o] && m < o || o == "" {
				copy(most[i+1:], most[i:])
				most[i] = m
				break
			}
		}
	}
	if most[0] != "" {
		v.Text += "; most of the others are of " + strings.TrimRight(strings.Join(most[:], ", "), ", ")
	}
	switch {
	case none*2 > n:
		v.Text += "; most of the others are addresses in no file"
		v.Do = "DOTNET_PerfMapEnabled=1 in the process gives names of compiled code"
	case native >= managed:
		v.Do = "tracefix top --symbols DIR " + text.ShellWord(f.File) + ", where DIR has the .so files or their debug files"
	default:
		v.Do = "DOTNET_ReadyToRun=0 in the process: .NET's precompiled code has no names in such a recording"
	}
}

// tolerableUnnamed is the share of frames without a name that whole traces have, too: stubs
// and native code.
const tolerableUnnamed = 0.05

// endWell is what makes a runtime write the names.
const endWell = "let dotnet-trace end by Enter, Ctrl+C or --duration and wait for it, with the process alive; no --rundown false"

// rundownOf is endWell, and what it cannot do: a recording that was ended in order, without a word of
// .NET's own rundown and version, may be one of a program that has neither. It is not where a method
// has a name, or where the process was started with the assembly to run.
func (f *Facts) rundownOf() string {
	native := func(p *Process) bool {
		return p.CommandLine != "" && p.OS != "" && p.Runtime == "" && !strings.Contains(p.CommandLine, ".dll")
	}
	if f.Rundown == nil && (f.Stacks == nil || f.Stacks.Named == 0) && slices.ContainsFunc(f.Processes, native) {
		return endWell + "; of a NativeAOT program no recording has names"
	}
	return endWell
}

// bigBuffer is what keeps events from being lost.
const bigBuffer = "record with --buffersize 1024 or with fewer providers"

func (g *nettraceReader) httpVerdict() Verdict {
	f := g.f
	v := Verdict{Topic: "HTTP", State: Good, of: "HTTP requests", Do: "tracefix http " + text.ShellWord(f.File)}
	h := f.HTTP
	record := g.record(recordHTTP(f.Samples.Count > 0))
	if h != nil {
		h.Recording = record
	}
	switch {
	case h == nil && g.beforeNet5():
		// Do stays: that command tells how to record them.
		v.State, v.Text = None, "System.Net.Http has events since .NET 5; the DiagnosticSource bridge tells of requests before that"
		return v
	case h == nil:
		v.State, v.Text, v.Do = None, "no events of System.Net.Http or ASP.NET Core", record
		return v
	case h.Requests == 0 && h.Served > 0:
		v.Text, v.Do = served(h), "tracefix http --side server "+text.ShellWord(f.File)
		if h.Unnamed*10 > h.Served {
			v.State, v.Do, v.Problem = Partly, record, "requests have no activity ids"
			v.Text += ", without activity ids: which of them a stop ends is a guess"
		}
		return v
	case h.Events == 0:
		v.State, v.Text = Partly, made(h)+", without phases: the DiagnosticSource bridge tells of requests, and no event of System.Net.Http does"
		v.Problem = "requests have no phases"
		return v
	case h.Requests == 0:
		v.Text = "no request began while recording"
		if h.Events > 1 {
			v.Text += fmt.Sprintf(" (%s event%s of System.Net.Http)", count(h.Events), report.Plural(int(h.Events)))
		}
		v.State = Partly
	default:
		v.Text = made(h)
	}
	if f.Lost.Events > 0 && !g.scan.LostNames() {
		v.State = Partly
		v.Text += " of which the begin was kept: events were lost"
	}
	if h.Requests > 0 && h.Linked == 0 {
		v.State, v.Do, v.Problem = Partly, record, "requests have no activity ids"
		v.Text += ", without activity ids: phases are matched by time"
	}
	if len(h.Missing) > 0 {
		var what []string
		for _, m := range httpHelpers {
			for _, p := range h.Missing {
				if m.provider == p {
					what = append(what, m.tells)
				}
			}
		}
		v.Text += ", no events of " + strings.Join(what, ", ")
		if h.Linked == 0 {
			v.State = Partly
		}
	}
	return v
}

// made tells how many requests there are.
func made(h *HTTP) string {
	t := fmt.Sprintf("%s request%s", count(h.Requests), report.Plural(int(h.Requests)))
	if h.Served > 0 {
		t += ", and " + served(h)
	}
	return t
}

func served(h *HTTP) string {
	return fmt.Sprintf("%s request%s served", count(h.Served), report.Plural(int(h.Served)))
}

// beforeNet5 reports whether a runtime older than .NET 5 was recorded: by its version or,
// where a recording ends without that, by the command line that it told without the system.
func (g *nettraceReader) beforeNet5() bool {
	if g.linux() { // which records events of .NET 10 and later, and samples of all that runs
		return false
	}
	for _, p := range g.f.Processes {
		if p.Runtime == "" && p.CommandLine != "" && p.OS == "" && g.f.Version < "6" {
			return true
		}
		if major, _, ok := strings.Cut(p.Runtime, "."); ok && len(major) == 1 && major < "5" {
			return true
		}
	}
	return false
}

func (g *nettraceReader) activityVerdict() (Verdict, bool) {
	var starts, unlinked int64
	var names, without, providers []string // without ids, and all of them to be recorded with ids
	linked := false
	of := map[string]int64{} // starts, by provider
	for _, t := range g.tallies {
		if t != nil && t.starts > 0 && ofApplication(t.meta.Provider) {
			of[t.meta.Provider] += t.starts
			linked = linked || t.linked
		}
	}
	for _, p := range g.f.Providers {
		if n := of[p.Name]; n > 0 {
			starts += n
			names = append(names, p.Name)
			providers = append(providers, collect.All(p.Name))
			switch p.Name {
			case activity.LoggingProvider, activity.KestrelProvider, activity.BridgeProvider: // whose events have ids of their own
			default:
				unlinked += n
				without = append(without, p.Name)
			}
		}
	}
	if starts == 0 {
		return Verdict{}, false
	}
	v := Verdict{
		Topic: "activities", State: Good, of: "activities", Do: "tracefix activities " + text.ShellWord(g.f.File),
		Text: fmt.Sprintf("%s started, of %s", count(starts), list(names, 3)),
	}
	if !linked && unlinked > 0 {
		v.State, v.Problem = Partly, "activities have no ids, and cannot be paired"
		if unlinked < starts {
			v.Problem = "some " + v.Problem
			v.Text += fmt.Sprintf("; %s, of %s, without activity ids: their starts and stops cannot be paired", count(unlinked), list(without, 3))
		} else {
			v.Text += ", without activity ids: starts and stops cannot be paired"
		}
		v.Do = g.record(&collect.Line{Providers: append(providers, collect.ActivityIDs)})
	}
	return v, true
}

// ofApplication reports whether the start events of a provider are activities and not
// the runtime's own doings.
func ofApplication(provider string) bool {
	for _, p := range []string{nettrace.ProviderRuntime, "Microsoft-DotNETCore-", "Universal.", "System.Net.", "System.Threading.Tasks.", "System.Buffers.", "System.Diagnostics.Metrics", "Private.InternalDiagnostics."} {
		if strings.HasPrefix(provider, p) {
			return false
		}
	}
	return true
}

func (g *nettraceReader) counterVerdict() (Verdict, bool) {
	var n int64
	var names []string
	for _, p := range g.f.Providers {
		m := int64(0)
		for _, t := range p.Types {
			if t.Name == "EventCounters" || p.Name == metricsProvider && strings.HasSuffix(t.Name, "ValuePublished") {
				m += t.Events
			}
		}
		if m > 0 {
			n += m
			names = append(names, p.Name)
		}
	}
	if n == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Topic: "counters", State: Good, of: "counters", Do: "tracefix counters " + text.ShellWord(g.f.File),
		Text: fmt.Sprintf("%s values, of %s", count(n), list(names, 3)),
	}, true
}

// What the runtime may tell, by ids of events, and the command that reports on it.
var told = []struct {
	what, one, by string
	ids           []int
}{
	{"collections", "collection", "gc", []int{runtimeevents.IDGCStart}},
	{"allocations", "allocation", "top --weight alloc", []int{runtimeevents.IDAllocationTick, runtimeevents.IDAllocationSampled}},
	{"exceptions", "exception", "top --weight exceptions", []int{runtimeevents.IDExceptionThrown}},
	{"waits for locks", "wait for a lock", "locks", []int{runtimeevents.IDContentionStart}},
	{"compilations", "compilation", "jit", []int{runtimeevents.IDMethodJittingStarted}},
	{"runs of the background compiler", "run of the background compiler", "jit", []int{runtimeevents.IDBackgroundJitStop}},
	{"changes of the thread pool", "change of the thread pool", "threads", []int{runtimeevents.IDAdjustment}},
}

// runtimeVerdict says what there is of the runtime's own doings.
func (g *nettraceReader) runtimeVerdict() (Verdict, bool) {
	var list []string
	by := map[int]int64{}
	for _, p := range g.f.Providers {
		if p.Name == nettrace.ProviderRuntime {
			for _, t := range p.Types {
				by[t.ID] += t.Events
			}
		}
	}
	if by[runtimeevents.IDMethodJittingStarted] > 0 { // which tells each of what these sum up
		delete(by, runtimeevents.IDBackgroundJitStop)
	}
	for _, k := range told {
		n := int64(0)
		for _, id := range k.ids {
			n += by[id]
		}
		switch {
		case n == 1:
			list = append(list, fmt.Sprintf("1 %s (%s)", k.one, k.by))
		case n > 1:
			list = append(list, fmt.Sprintf("%s %s (%s)", count(n), k.what, k.by))
		}
	}
	if len(list) == 0 {
		return Verdict{}, false
	}
	return Verdict{Topic: "runtime", State: Good, of: "events of the runtime", Text: strings.Join(list, ", ")}, true
}

func (g *nettraceReader) lossVerdict() Verdict {
	l := g.f.Lost
	v := Verdict{Topic: "complete", State: Good, Text: "no events were lost"}
	switch {
	case g.f.Events == 0:
		v.wrong(1, 0, "the file has no events")
		v.Text, v.Do = v.Problem, "record again"
		return v
	case l.Events == 0 && (g.f.Damages > 0 || g.f.Salvage != nil):
		v.State, v.Text = Partly, "the recorder lost no events; what damage cost is told under file"
		return v
	case l.Events == 0:
		return v
	}
	all := g.f.Events + int64(l.Events)
	v.wrong(float64(l.Events)/float64(all), 0, percentOf(int64(l.Events), all)+" of all events were lost")
	v.Text = fmt.Sprintf("%s of %s events were lost: the buffer was full", percentOf(int64(l.Events), all), count(all))
	if l.Rundown == l.Events {
		v.Text += " during the rundown, so names may be missing"
	} else if l.Samples > 0 {
		v.Text += fmt.Sprintf("; %s of them samples", count(int64(l.Samples)))
	}
	v.Do = bigBuffer
	return v
}

func (f *Facts) fileVerdict() Verdict {
	v := Verdict{Topic: "file", State: Good, Text: "whole"}
	if s := f.Salvage; s != nil {
		v.State = Partly
		v.Text = fmt.Sprintf("a whole copy of a recording that was damaged in %d place%s", s.Places, report.Plural(int(s.Places)))
		if s.LostBytes > 0 {
			v.Text += fmt.Sprintf("; %s lost", size(s.LostBytes))
		}
		if s.LeftOut > 0 {
			v.Text += fmt.Sprintf("; %s incomplete event%s left out", count(s.LeftOut), report.Plural(int(s.LeftOut)))
		}
		if s.Cut {
			v.Text += "; it was cut off"
		}
		v.Problem = "what was damaged in the recording is missing"
	}
	if f.Damages == 0 {
		return v
	}
	d := f.Damage[0]
	v.State = Partly
	v.Text = fmt.Sprintf("damaged in %d place%s, first at offset %d: %s: %s", f.Damages, report.Plural(f.Damages), d.Offset, d.Where, d.What)
	v.Problem = "the file is damaged"
	if f.Events == 0 && len(f.Threads) == 0 && f.Lost == nil { // of a nettrace lossVerdict tells
		v.wrong(1, 0, "the file is damaged, and nothing in it is whole")
	}
	if f.LostBytes > 0 {
		v.Text += fmt.Sprintf("; %s lost", size(f.LostBytes))
		v.wrong(float64(f.LostBytes)/float64(max(f.Content, f.LostBytes)), 0, percentOf(f.LostBytes, max(f.Content, f.LostBytes))+" of the file is lost by damage")
	}
	if f.Format == "nettrace" && f.Events > 0 { // else there is nothing to be copied
		v.Do = "tracefix convert " + text.ShellWord(f.File) + " -o clean.nettrace"
	}
	return v
}

// percentOf prints n of all.
func percentOf(n, all int64) string { return report.Percent(n, all) }

func list(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func count(n int64) string { return report.Count(int(n)) }

// size prints bytes for people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// cutText says where so many of n stacks were cut.
func (s *Stacks) cutText(n int64) string {
	var by []string
	add := func(kind profile.Cut, what string) {
		if k := s.Cut[kind.String()]; k > 0 {
			by = append(by, fmt.Sprintf("%s %s (%s)", count(k), what, percentOf(k, n)))
		}
	}
	add(profile.CutDepth, fmt.Sprintf("cut at %d frames", s.Limit))
	add(profile.CutBytes, "cut at the recorder's copy of the stack")
	add(profile.CutBroken, "broken")
	return strings.Join(by, ", ")
}
