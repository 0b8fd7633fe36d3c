package compare

import (
	"fmt"
	"slices"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A kind of costs is what a gate can be about, and what a trace may not have recorded.
type kind struct {
	name  string
	words string // in "Not compared: ..."
	none  string // what the trace without it does, in "the trace before ..."
	// asked reports whether events tell that it was recorded, if there is any of it or not. nil:
	// only what there is of it does.
	asked func(*session) bool
	holds func(*Trace) bool
	list  func(*Result) *[]Named // nil: methods
	of    string                 // the kind whose things these figures are about, if they are
}

// self is the other kind of gate on methods.
const self = "self"

var kinds = []kind{
	{"cpu", "CPU time", "has no CPU samples", nil, (*Trace).sampled, nil, ""},
	{"alloc", "what is allocated", "records no allocations",
		func(s *session) bool { return s.verbose.tell(keywordGC) },
		func(t *Trace) bool { return t.weighs("alloc") }, func(r *Result) *[]Named { return &r.Types }, ""},
	{"exceptions", "exceptions", "records no exceptions",
		func(s *session) bool {
			return s.all.tell(keywordException) || s.all.tell(keywordHandle) || s.all.broad()
		},
		func(t *Trace) bool { return t.weighs("exceptions") }, func(r *Result) *[]Named { return &r.Exceptions }, ""},
	{"locks", "waits for locks", "records no waits for locks",
		func(s *session) bool {
			return s.all.tell(keywordContention) || s.all.tell(keywordSurvival) || s.all.broad() && !s.all.tell(keywordCompilation)
		},
		func(t *Trace) bool { return t.weighs("contention") }, func(r *Result) *[]Named { return &r.Locks }, ""},
	{"requests", "requests", "has no requests", nil,
		(*Trace).asked, func(r *Result) *[]Named { return &r.Routes }, ""},
	{"p95", "durations of requests", "tells how long no request took", nil,
		(*Trace).asked, func(r *Result) *[]Named { return &r.Tails }, "requests"},
	{"errors", "errors of requests", "tells the status of no request", nil,
		(*Trace).answers, func(r *Result) *[]Named { return &r.Errors }, "requests"},
	{"gc", "collections", "records no collections",
		func(s *session) bool { return s.all.tell(keywordsOfGC) || s.all.broad() },
		func(t *Trace) bool { return len(t.GC) > 0 }, func(r *Result) *[]Named { return &r.GC }, ""},
	{"memory", "what survives collections", "records no collections", nil,
		func(t *Trace) bool { return len(t.GC) > 0 }, func(r *Result) *[]Named { return &r.Memory }, "gc"},
	{"counters", "counters", "has no counters", nil,
		func(t *Trace) bool { return len(t.counted) > 0 }, func(r *Result) *[]Named { return &r.Counters }, ""},
}

// gateKinds are what a gate may name.
func gateKinds() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
		if kinds[i].list == nil {
			names = append(names, self)
		}
	}
	return names
}

// kindOf returns the kind that a gate is about, by one of gateKinds.
func kindOf(what string) *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == what || k.list == nil && what == self })
	return &kinds[i]
}

// A NotCompared is a kind of costs that only one of the traces recorded.
type NotCompared struct {
	Kind  string `json:"kind"` // as in gates
	Why   string `json:"why"`
	words string
}

// leaveOut leaves out what only one of the traces recorded.
func (r *Result) leaveOut(before, after *Trace) {
	for i := range kinds {
		k := &kinds[i]
		side, lacking, other := "before", before, after
		without := !before.records(k)
		if !after.records(k) {
			side, lacking, other, without = "after", after, before, !without
		}
		if !without || !k.holds(other) {
			continue
		}
		if k.list == nil {
			r.CPU, r.Methods = Figure{Verdict: Unclear}, []Method{}
		} else {
			*k.list(r) = []Named{}
		}
		if k.of != "" && !r.compares(k.of) { // which says it all
			continue
		}
		r.NotCompared = append(r.NotCompared, NotCompared{k.name, fmt.Sprintf("the trace %s %s", side, lacking.without(k)), k.words})
	}
}

// compares reports whether both traces, or neither, recorded a kind.
func (r *Result) compares(kind string) bool {
	return !slices.ContainsFunc(r.NotCompared, func(n NotCompared) bool { return n.Kind == kind })
}

// A session rides on the reading for what the runtime was asked to record: no trace says it, but
// events of a keyword tell that it was on.
type session struct {
	all     asks
	verbose asks // those at that level
	named   bool // all methods were, at the end
}

// asks are the keywords of events, each combination once: one of an event's was on.
type asks []uint64

// Keywords of the runtime's provider.
const (
	keywordGC         = 0x1
	keywordHandle     = 0x2 // of the profile gc-verbose, which has exceptions as well
	keywordContention = 0x4000
	keywordException  = 0x8000
	// Of the profiles with tiered compilation cpu-sampling of dotnet-trace up to 9 has that of what each
	// collection leaves, and contention; dotnet-common has neither.
	keywordCompilation = 0x1000000000
	keywordSurvival    = 0x400000

	keywordsOfGC = keywordGC | keywordHandle
)

// families are keywords of events that come in any program. Who asks for one has a question; profiles ask for
// several, and for collections and exceptions too, of which a good run has none.
var families = [...]uint64{
	keywordsOfGC,
	0x8,                       // Loader
	keywordCompilation | 0x30, // and JIT, NGen
	0x10000 | 0x80000000,      // Threading
}

// tell reports whether an event tells that one of these keywords was on: it has no other.
func (a asks) tell(keywords uint64) bool {
	return slices.ContainsFunc(a, func(of uint64) bool { return of != 0 && of&^keywords == 0 })
}

// broad reports whether a profile was recorded.
func (a asks) broad() bool {
	n := 0
	for _, f := range families {
		if a.tell(f) {
			n++
		}
	}
	return n > 1
}

func (a *asks) add(keywords uint64) {
	if !slices.Contains(*a, keywords) {
		*a = append(*a, keywords)
	}
}

func (s *session) Begin(*nettrace.Reader) {}
func (s *session) End()                   {}
func (s *session) Event(ev *nettrace.Event) error {
	s.named = s.named || ev.Metadata.Role == nettrace.RoleRundownComplete
	if ev.Metadata.Provider == nettrace.ProviderRuntime {
		s.all.add(ev.Keywords)
		if ev.Level >= 5 {
			s.verbose.add(ev.Keywords)
		}
	}
	return nil
}

// notRecorded are the names of the kinds that a trace does not hold, though nothing tells that they
// were recorded: that there is none of them is no zero.
func (t *Trace) notRecorded(s *session) (names []string) {
	for i := range kinds {
		if k := &kinds[i]; k.of == "" && !k.holds(t) && (k.asked == nil || !k.asked(s)) {
			names = append(names, k.name)
		}
	}
	return names
}

// records reports whether a kind was recorded: that there is none of it is a zero then.
func (t *Trace) records(k *kind) bool {
	if k.of != "" {
		if of := kindOf(k.of); of.asked != nil {
			return t.records(of)
		}
		return k.holds(t) // of the requests that are compared
	}
	return !slices.Contains(t.unrecorded, k.name)
}

// without says what the trace does that did not record a kind.
func (t *Trace) without(k *kind) string {
	switch { // see alike
	case k.name == "requests" && t.asked() && !t.Requests.named():
		return "does not tell what was asked for"
	case k.name == "requests" && t.made.Len() > 0:
		return "has none that were served"
	}
	return k.none
}

// asked reports whether there are requests.
func (t *Trace) asked() bool { return t.Requests.Len() > 0 }

// answers reports whether there is the status of any request.
func (t *Trace) answers() bool {
	for r := range t.Requests.all() {
		if r.answer == fine || r.answer == refused {
			return true
		}
	}
	return false
}

// sampled reports whether there are samples.
func (t *Trace) sampled() bool {
	return slices.ContainsFunc(t.Profile.Threads, func(th *profile.Thread) bool { return th.Samples.Written() > 0 })
}

// weighs reports whether anything weighs of one of the profile's weights.
func (t *Trace) weighs(weight string) bool {
	w := t.Profile.WeightNamed(weight)
	return w >= 0 && slices.ContainsFunc(t.Profile.Threads, func(th *profile.Thread) bool {
		for range t.Profile.Values(th, w) {
			return true
		}
		return false
	})
}
