package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A trackKind is a group of things that can be drawn.
type trackKind struct {
	name string // of --tracks
	noun string // what it holds
	// What records it: keywords of the runtime's provider, or providers.
	keywords  uint64
	providers []string
}

var trackKinds = []trackKind{
	{name: "cpu", noun: "CPU samples"},
	{name: "activities", noun: "activities", providers: []string{collect.All("EVENTSOURCE"), collect.ActivityIDs}},
	{name: "gc", noun: "garbage collections", keywords: 0x1},
	{name: "exceptions", noun: "exceptions", keywords: 0x8000},
	{name: "contention", noun: "lock contentions", keywords: 0x4000},
	{name: "faults", noun: "page faults"},
	{name: "http", noun: "HTTP requests", providers: append(requests.ClientProviders(), collect.ActivityIDs)},
	{name: "events", noun: "other events"},
}

// Counted is the group of counters, which the page of view draws as curves: as spans, that other viewers
// would make of them, they tell nothing.
const Counted = "counters"

// TrackNames are the groups of things that can be drawn.
var TrackNames = func() (names []string) {
	for _, k := range trackKinds {
		names = append(names, k.name)
	}
	return names
}()

// missing says why a trace has none of these groups, and what would record them.
func missing(m *profile.Meta, c *Config, groups []string) string {
	switch cpu := slices.Contains(groups, "cpu"); {
	case m.Version == 0 && cpu:
		text := "the trace holds no samples"
		if m.Format == "chromium" {
			text = "the trace holds no spans of threads that take time, which stacks are made of"
			if len(m.NoSpans) > 0 {
				text += ", but " + strings.Join(m.NoSpans, ", ")
			}
		}
		if n := len(m.Notes); n > 0 { // of a pprof it is which sample types there are
			text += "; " + m.Notes[n-1]
		}
		return text
	case m.Version == 0: // of spans only the sampled stacks are read
		return "of such a trace only the sampled stacks are read; take the .nettrace that it was made from"
	case cpu:
		return noSamples(m.Version, m.Events)
	}
	var nouns, providers []string
	keywords := uint64(0)
	for _, k := range trackKinds {
		if !slices.Contains(groups, k.name) {
			continue
		}
		nouns = append(nouns, k.noun)
		keywords |= k.keywords
		for _, p := range k.providers {
			if k.name == "activities" && p != collect.ActivityIDs && len(m.WithoutIDs) > 0 {
				for _, s := range m.WithoutIDs {
					providers = append(providers, collect.All(s))
				}
				continue
			}
			if !slices.Contains(providers, p) {
				providers = append(providers, p)
			}
		}
	}
	if slices.Contains(groups, Counted) {
		nouns, providers = append(nouns, "counters"), append(providers, collect.RuntimeCounters)
	}
	what := strings.Join(nouns, ", no ")
	if sel := c.Select; !sel.IsZero() {
		return "the filters leave no " + what
	}
	unpaired := slices.Contains(groups, "activities") && len(m.WithoutIDs) > 0
	if unpaired {
		what += ", since their starts and stops have no activity ids"
	}
	what = fmt.Sprintf("the trace holds %s event%s but no %s", report.Count(int(m.Events)), report.Plural(int(m.Events)), what)
	if keywords != 0 {
		providers = append(providers, fmt.Sprintf("%s:%#x:4", nettrace.ProviderRuntime, keywords))
	}
	line := collect.Line{Providers: providers}
	if slices.Contains(groups, "faults") {
		line.Linux, line.PerfEvents = true, "exceptions:page_fault_user,exceptions:page_fault_kernel"
	}
	if len(providers) > 0 || line.PerfEvents != "" {
		what += "; `" + line.For(m.Version) + "` records them"
	}
	if unpaired {
		what += ", and `tracefix activities --pair-by-thread` pairs them by thread: a guess that is wrong for async code"
	}
	return what
}

// noSamples says why a nettrace has no samples and what would record some.
func noSamples(version int, events int64) string {
	what, rest := "the trace holds no events", ""
	if events > 0 {
		what = fmt.Sprintf("the trace holds %s events but no CPU samples", report.Count(int(events)))
		rest = ", and `tracefix info` tells what there is"
	}
	return what + "; `" + collect.Samples.For(version) + "` records them" + rest
}

// hold tells which groups of tracks that c asks for have something to draw. They are
// asked for no more than their first slice.
func hold(p *profile.Profile, c *Config) map[string]bool {
	found := map[string]bool{}
	for _, t := range p.Tracks {
		if slices.Contains(c.Tracks, t.Group) && !found[t.Group] {
			for range t.Slices {
				found[t.Group] = true
				break
			}
		}
	}
	return found
}

// count makes the tracks tell the report how much was drawn of them. A writer may go
// through a track more than once: the last time counts.
func count(p *profile.Profile, rep *report.Trace) {
	for _, t := range p.Tracks {
		all, last := t.Slices, 0
		t.Slices = func(yield func(*profile.Slice) bool) {
			n := 0
			for s := range all {
				n++
				if !yield(s) {
					break
				}
			}
			if rep.Tracks == nil {
				rep.Tracks = map[string]int{}
			}
			rep.Tracks[t.Group] += n - last
			last = n
		}
	}
}
