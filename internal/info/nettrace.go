package info

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

const metricsProvider = "System.Diagnostics.Metrics"

// httpHelpers tell of the phases of a request that System.Net.Http leaves out.
var httpHelpers = []struct{ provider, tells string }{
	{httpphases.ProviderDNS, "DNS"},
	{httpphases.ProviderSockets, "connect"},
	{httpphases.ProviderSecurity, "TLS"},
}

// A tally counts the events of one definition.
type tally struct {
	meta   *nettrace.Metadata
	events int64
	bytes  int64
	starts int64 // that begin an activity: in v6 an event tells its own opcode
	linked bool  // an event has an activity id
}

type threadKey struct {
	pid int
	tid uint64
}

// A nettraceReader gathers facts while events go by.
type nettraceReader struct {
	f         *Facts
	r         *nettrace.Reader
	tallies   []*tally
	threads   map[threadKey]*Thread
	processes map[int]*Process
	recent    [64]*Thread // by their id: which had events lately
	lastProc  *Process
	sampler   map[uint64]bool // capture threads of the sampler
	sampledBy uint64          // of these, that of the newest sample

	end         int64 // ns, of all that is no rundown
	rundownFrom int64
	rundownTo   int64
	rundown     Rundown
	http        HTTP
	scan        *requests.Scanner // of http: what it finds is what there is
	samples     Samples
	types       profile.TypeTally
	depths      []int64
	unnamed     map[string]int64 // frames, by module; v6
}

// maxDepths limits the histogram of depths.
const maxDepths = 10000

// Nettrace tells the facts of a nettrace or netperf file.
func Nettrace(ctx context.Context, in *input.File, o *Options) (*Facts, error) {
	f := newFacts(in)
	g := &nettraceReader{f: f, threads: map[threadKey]*Thread{}, processes: map[int]*Process{}, sampler: map[uint64]bool{}, rundownFrom: -1}
	warn := func(e *nettrace.FormatError) {
		f.damaged(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
	}
	defer func() { g.scan.Stop() }()
	if o.Light {
		if _, err := input.Read(ctx, in.Reader, warn, g); err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		g.facts()
		return f, nil
	}
	p, _, err := load.Profile(ctx, in.Reader, &load.Options{Warn: warn, Evidence: true}, g)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	g.facts()
	g.cuts(p)
	if f.Stacks != nil && f.Stacks.CutTotal() > 0 && f.Stacks.Before == nil {
		if f.Forecast, err = forecast(ctx, p, f.Samples.Looks(), f.Stacks.Frames); err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	f.Verdicts = g.verdicts()
	return f, nil
}

// Begin implements input.Consumer.
func (g *nettraceReader) Begin(r *nettrace.Reader) {
	g.r, g.scan = r, requests.NewScanner(r, nil, nil)
}

// Event implements input.Consumer.
func (g *nettraceReader) Event(ev *nettrace.Event) error {
	g.scan.Event(ev)
	g.event(ev)
	return nil
}

// End implements input.Consumer.
func (g *nettraceReader) End() { g.scan.Finish() }

func (g *nettraceReader) tally(m *nettrace.Metadata) *tally {
	i := m.Index
	if i < 0 {
		return &tally{meta: m}
	}
	for i >= len(g.tallies) {
		g.tallies = append(g.tallies, nil)
	}
	if g.tallies[i] == nil {
		g.tallies[i] = &tally{meta: m}
	}
	return g.tallies[i]
}

func (g *nettraceReader) process(pid int) *Process {
	if p := g.lastProc; p != nil && p.PID == pid {
		return p
	}
	p := g.processes[pid]
	if p == nil {
		p = &Process{PID: pid}
		g.processes[pid] = p
		g.f.Processes = append(g.f.Processes, p)
	}
	g.lastProc = p
	return p
}

func (g *nettraceReader) thread(ev *nettrace.Event, now int64) *Thread {
	recent := &g.recent[ev.ThreadID%uint64(len(g.recent))]
	t := *recent
	if t == nil || t.TID != ev.ThreadID || t.PID != ev.ProcessID {
		key := threadKey{ev.ProcessID, ev.ThreadID}
		if t = g.threads[key]; t == nil {
			t = &Thread{PID: key.pid, TID: key.tid, FirstMs: text.Millis(now)}
			g.threads[key] = t
			g.f.Threads = append(g.f.Threads, t)
		}
		*recent = t
	}
	if t.Name == "" && ev.Thread != nil {
		t.Name = ev.Thread.Name
	}
	t.LastMs = text.Millis(now)
	return t
}

func (g *nettraceReader) event(ev *nettrace.Event) {
	now := g.r.Nanos(ev.Time)
	k := g.tally(ev.Metadata)
	k.events++
	k.bytes += int64(len(ev.Payload))
	if ev.Opcode == 1 {
		k.starts++
	}
	p := g.process(ev.ProcessID)
	p.Events++
	m := ev.Metadata
	if m.Source == nettrace.SourceSystem {
		g.system(ev, p)
		return // the time of a fact, not of an event; and no thread
	}
	t := g.thread(ev, now)
	t.Events++
	if m.Source == nettrace.SourceRundown {
		if g.rundownFrom < 0 {
			g.rundownFrom = now
		}
		g.rundownTo = max(g.rundownTo, now)
		g.rundownEvent(ev, p)
		return
	}
	if now < maxPlausible {
		g.end = max(g.end, now)
	}
	switch {
	case m.Role == nettrace.RoleSample, m.Role == nettrace.RoleCPU:
		g.sample(ev, t, p)
		t.interval.add(now)
	case m.Role == nettrace.RoleContextSwitch:
		g.samples.OffCPU++
		t.Waits++
	case m.Role == nettrace.RoleRuntimeInformation:
		g.runtimeInformation(ev, p)
	case m.Role == nettrace.RoleMethodLoad:
		g.rundown.Loaded++
	case m.Source == nettrace.SourceRuntime:
		if ev.Stack.Len() > 0 {
			g.samples.Other++
		}
	case m.Role == nettrace.RoleProcessInfo:
		c := ev.Cursor()
		p.CommandLine = c.UTF16().String()
		p.OS, p.Arch = c.UTF16().String(), c.UTF16().String()
		if name := input.ProcessName(p.CommandLine); name != "" {
			p.Name = name
		}
	case m.Provider == activity.BridgeProvider: // tells of activities, and is none
	case m.Provider == httpphases.ProviderHTTP:
		g.http.Events++
		if !ev.ActivityID.IsZero() {
			g.http.Linked++
		}
	default:
		k.linked = k.linked || !ev.ActivityID.IsZero()
		if ev.Stack.Len() > 0 {
			g.samples.Other++
		}
	}
}

// maxPlausible is the time after which an event is damage (nettrace.md section 14).
const maxPlausible = int64(30 * 24 * time.Hour)

func (g *nettraceReader) sample(ev *nettrace.Event, t *Thread, p *Process) {
	t.Samples++
	p.Samples++
	if ev.Metadata.Role == nettrace.RoleCPU {
		g.samples.CPU++
	} else {
		if ev.CaptureThreadID != g.sampledBy || len(g.sampler) == 0 {
			g.sampledBy = ev.CaptureThreadID
			g.sampler[ev.CaptureThreadID] = true
		}
		typ := load.SampleType(ev)
		g.types.Look(typ, &t.look, ev.Stack.Len(), ev.Stack.Leaf())
		switch typ {
		case profile.SampleExternal:
			g.samples.External++
		case profile.SampleManaged:
			g.samples.Managed++
		default:
			g.samples.Unknown++
		}
	}
	g.depths = countDepth(g.depths, ev.Stack.Len())
}

func countDepth(depths []int64, d int) []int64 {
	d = min(d, maxDepths)
	for d >= len(depths) {
		depths = append(depths, 0)
	}
	depths[d]++
	return depths
}

// histogram takes the number of samples by depth, and what follows from it.
func (s *Stacks) histogram(depths []int64) {
	half := int64(0)
	for _, n := range depths {
		half += n
	}
	half /= 2
	s.Depths, s.Max = depths, len(depths)-1
	for d, n := range depths {
		if half -= n; half < 0 {
			s.Median = d
			break
		}
	}
}

func (g *nettraceReader) rundownEvent(ev *nettrace.Event, p *Process) {
	g.rundown.Events++
	switch ev.Metadata.Role {
	case nettrace.RoleMethodDCStop:
		g.rundown.Methods++
	case nettrace.RoleRundownComplete:
		g.rundown.Complete = true
	case nettrace.RoleRuntimeInformation:
		g.runtimeInformation(ev, p)
	}
}

// runtimeInformation takes what the runtime says of itself.
func (g *nettraceReader) runtimeInformation(ev *nettrace.Event, p *Process) {
	cmd, version := input.RuntimeInformation(ev)
	g.types.Runtime(version)
	p.CommandLine, p.Runtime = cmp.Or(p.CommandLine, cmd), cmp.Or(version, p.Runtime)
}

func (g *nettraceReader) system(ev *nettrace.Event, p *Process) {
	if ev.Metadata.Role == nettrace.RoleMapping {
		var told nettrace.Mapping
		if ev.Mapping(&told) == nil {
			p.maps(told.FileName.String())
		}
		return
	}
	if ev.Metadata.Role != nettrace.RoleProcess || len(p.Then) >= maxThen {
		return
	}
	var told nettrace.Process
	_ = ev.Process(&told) // a short one may have the name all the same
	switch name := told.Name.String(); {
	case p.Name == "":
		p.Name = name
	case ev.Metadata.EventID != processCreate || name == "" || len(p.Then) == 0 && name == p.Name || len(p.Then) > 0 && name == p.Then[len(p.Then)-1]:
	default:
		p.Then = append(p.Then, name)
	}
}

// maxAssemblies is how many of a process are looked at.
const maxAssemblies = 1000

// maps takes a file that a process has in its memory. Its command line is not told, and every
// `dotnet App.dll` is called dotnet: which runtime there is, and where the assemblies lie, says
// what it is.
func (p *Process) maps(file string) {
	dir, name := path.Split(strings.TrimSuffix(file, " (deleted)"))
	_, shared, framework := strings.Cut(dir, "/shared/Microsoft.")
	switch {
	case name == "libcoreclr.so":
		p.DotNet = true
		if kind, version, _ := strings.Cut(strings.Trim(shared, "/"), "/"); kind == "NETCore.App" {
			p.Runtime = cmp.Or(p.Runtime, version)
		}
	case strings.HasSuffix(name, ".dll") && !framework && len(p.assemblies[dir]) < maxAssemblies && len(p.assemblies) < maxAssemblies:
		if p.assemblies == nil {
			p.assemblies = map[string]map[string]bool{}
		}
		if p.assemblies[dir] == nil {
			p.assemblies[dir] = map[string]bool{}
		}
		p.assemblies[dir][name] = true
	}
}

// settle says what of a process is known at the end.
func (p *Process) settle() {
	most := 0
	for dir, names := range p.assemblies {
		if dir = path.Clean(dir); len(names) > most || len(names) == most && dir < p.Directory {
			most, p.Directory = len(names), dir
		}
	}
	if !p.DotNet { // a file of another world, called so
		p.Directory = ""
	}
}

const (
	processCreate = 1 // the id of ProcessCreate, whose role is that of ExistingProcess
	maxThen       = 8
)

// facts puts together what the events told.
func (g *nettraceReader) facts() {
	f, h, st := g.f, g.r.Header(), g.r.Stats()
	f.Version = strconv.Itoa(h.Version)
	if h.Version >= 6 {
		f.Version += "." + strconv.Itoa(h.MinorVersion)
	}
	f.Content = g.r.InputOffset()
	if t := h.SyncTime; !t.IsZero() {
		f.Start = &t
	}
	f.Clock = &Clock{Frequency: h.Frequency, Sync: h.SyncQPC}
	f.PointerSize, f.Processors = h.PointerSize, h.Processors
	if h.Version < 6 {
		f.SamplingIntervalMs = text.Millis(int64(h.SamplingInterval))
	}
	for _, kv := range h.KeyValues {
		f.Properties = append(f.Properties, Property(kv))
	}
	f.DurationMs = text.Millis(g.end)
	if g.rundownTo > g.end {
		f.RundownMs = text.Millis(g.rundownTo - max(g.end, 0))
	}
	f.Events, f.PayloadBytes, f.LostBytes = st.Events, st.PayloadBytes, st.LostBytes
	for _, b := range st.Blocks {
		f.Blocks = append(f.Blocks, Block{b.Kind, b.Count, b.Bytes})
	}
	f.Samples = &g.samples
	g.samples.Untyped = g.types.Untyped()
	g.samples.Count = g.samples.Managed + g.samples.External + g.samples.Unknown + g.samples.CPU
	if g.rundown != (Rundown{}) {
		f.Rundown = &g.rundown
	}
	g.providers()
	g.lost(st)
	if g.samples.Count > 0 {
		f.Stacks = &Stacks{Cut: map[string]int64{}}
		f.Stacks.histogram(g.depths)
	}
	// Id 0 stands for a process that the file does not tell, but in v6 for the idle one.
	if h.Version < 6 {
		f.Processes = slices.DeleteFunc(f.Processes, func(p *Process) bool { return p.PID == 0 && p.Name == "" && p.Runtime == "" })
	}
	for _, p := range f.Processes {
		p.settle()
	}
	slices.SortStableFunc(f.Processes, func(a, b *Process) int {
		if a.DotNet != b.DotNet { // of a machine's many processes
			return map[bool]int{true: -1, false: 1}[a.DotNet]
		}
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Events, a.Events), cmp.Compare(a.PID, b.PID))
	})
	for _, t := range f.Threads {
		t.IntervalMs = t.interval.medianMs()
	}
	slices.SortStableFunc(f.Threads, func(a, b *Thread) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Events, a.Events), cmp.Compare(a.TID, b.TID))
	})
}

// providers groups the counts by provider and event type.
func (g *nettraceReader) providers() {
	type typeKey struct {
		id, version int
		name        string
	}
	f := g.f
	byName := map[string]*Provider{}
	types := map[string]map[typeKey]*EventType{}
	for _, t := range g.tallies {
		if t == nil || t.events == 0 {
			continue
		}
		m := t.meta
		p := byName[m.Provider]
		if p == nil {
			p = &Provider{Name: m.Provider}
			byName[m.Provider] = p
			types[m.Provider] = map[typeKey]*EventType{}
			f.Providers = append(f.Providers, p)
		}
		p.Events += t.events
		p.PayloadBytes += t.bytes
		key := typeKey{m.EventID, m.Version, m.EventName()}
		e := types[m.Provider][key]
		if e == nil {
			e = &EventType{ID: key.id, Version: key.version, Name: key.name}
			types[m.Provider][key] = e
			p.Types = append(p.Types, e)
			f.EventTypes++
		}
		e.Events += t.events
		e.PayloadBytes += t.bytes
	}
	slices.SortStableFunc(f.Providers, func(a, b *Provider) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range f.Providers {
		slices.SortStableFunc(p.Types, func(a, b *EventType) int {
			return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version))
		})
	}
	found := g.scan.Stats()
	g.http.Requests, g.http.Served = found.Requests, found.Servers
	g.http.Unnamed = found.Unnamed
	if g.http.Events > 0 {
		for _, h := range httpHelpers {
			if byName[h.provider] == nil {
				g.http.Missing = append(g.http.Missing, h.provider)
			}
		}
	}
	if g.http.Events > 0 || found.Requests > 0 || found.Servers > 0 {
		f.HTTP = &g.http
	}
}

func (g *nettraceReader) lost(st nettrace.Stats) {
	f := g.f
	f.Lost = &Lost{Events: st.Lost, Gaps: st.LostGaps}
	if n := g.r.Salvage(); n != nil {
		f.Salvage = &Salvage{Places: n.Places, LostBytes: n.LostBytes, LeftOut: n.LeftOut, Cut: n.Cut}
	}
	for _, l := range g.r.Losses() {
		switch {
		case g.rundownFrom >= 0 && g.r.Nanos(l.Before) >= g.rundownFrom:
			f.Lost.Rundown += uint64(l.Count)
		case g.sampler[l.CaptureThreadID]:
			f.Lost.Samples += uint64(l.Count)
		}
	}
}

// cuts tells what only the profile can, whose names come last: which stacks are cut, and how
// many frames have a name. The verdict on a stack is that of the repair.
func (g *nettraceReader) cuts(p *profile.Profile) {
	if g.samples.Count == 0 {
		return
	}
	s := g.f.Stacks
	s.Limit, s.Before = p.Meta.DepthLimit, repairedBefore(p)
	tab := p.Table
	named := make([]int32, tab.Stacks()) // frames with a name, of the stack
	for id := 1; id < len(named); id++ {
		k := profile.StackID(id)
		named[id] = named[tab.Parent(k)]
		if tab.MethodOf(tab.Frame(k)).Kind != profile.Unresolved {
			named[id]++
		}
	}
	type sum struct {
		frames, named int64
		depths        []int64
		cut           [profile.CutBroken + 1]int64
		_             [64]byte // those of another thread are not in its cache line
	}
	sums := make([]sum, len(p.Threads))
	relay.Each(len(p.Threads), func(i int) {
		own := &sums[i]
		c := p.Threads[i].Samples.Cursor()
		var x profile.Sample
		for c.Read(&x) {
			if x.Type != profile.SampleEvent {
				d := tab.Depth(x.Stack)
				own.frames += int64(d)
				if x.Type != profile.SampleOffCPU {
					own.depths = countDepth(own.depths, d)
				}
				own.named += int64(named[x.Stack])
				own.cut[x.Cut]++
			}
		}
	})
	// Those of the profile: a stack of a file may begin with what unwinding left there, which is no frame.
	var depths []int64
	for i, t := range p.Threads {
		cut := int64(0)
		for d, n := range sums[i].depths {
			if d >= len(depths) {
				depths = append(depths, 0)
			}
			depths[d] += n
		}
		s.Frames += sums[i].frames
		s.Named += sums[i].named
		for how, n := range sums[i].cut {
			if n > 0 && profile.Cut(how) != profile.Whole {
				s.Cut[profile.Cut(how).String()] += n
				cut += n
			}
		}
		if q := g.threads[threadKey{int(t.Process.PID), uint64(t.TID)}]; q != nil {
			q.Cut += cut
			if q.Name == "" {
				q.Name = t.Name
			}
		}
	}
	s.histogram(depths)
	if g.r.Header().Version >= 6 {
		g.unnamed = unnamed(p)
	}
}

// unnamed are the modules whose code has no names in a profile, by the frames of all samples.
func unnamed(p *profile.Profile) map[string]int64 {
	tab := p.Table
	seen := make([]int64, tab.Stacks())
	for _, t := range p.Threads {
		c := t.Samples.Cursor()
		var x profile.Sample
		for c.Read(&x) {
			if x.Type != profile.SampleEvent {
				seen[x.Stack]++
			}
		}
	}
	out := map[string]int64{}
	for id := len(seen) - 1; id > 0; id-- { // a stack stands behind those that it goes on
		k := profile.StackID(id)
		seen[tab.Parent(k)] += seen[id]
		if m := tab.MethodOf(tab.Frame(k)); m.Kind == profile.Unresolved && seen[id] > 0 {
			out[m.Module] += seen[id]
		}
	}
	return out
}
