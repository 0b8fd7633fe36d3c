package httpreport

import (
	"io"
	"strings"
	"time"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/profile"
)

// A Writer takes the requests of one trace.
type Writer interface {
	Request(*httpphases.Request) error
	Server(*httpphases.ServerRequest) error
	// Close ends the output. It does not close what is below.
	Close(*Summary) error
}

// Options of a Writer. The zero value works.
type Options struct {
	Source   string    // name of the input
	Exporter string    // name and version of this program
	Start    time.Time // wall clock of time 0; zero if not known
	Process  int
	Width    int  // columns of the table; 0: no limit
	Totals   bool // the table begins with its totals: of more requests than it lists
	Plain    bool
	// Stacks is the address of the page of the trace's stacks (see package view), to which each
	// request leads; empty: there is none.
	Stacks string
	// Origin tells what is known by now of the process: its name, command line and the
	// version of its runtime. nil: nothing.
	Origin func() (name, command, runtime string)
	// Spool takes what a writer keeps until it is closed and has no memory for; nil: none.
	Spool *profile.Spool
}

// A Format is one output of requests.
type Format struct {
	Name       string
	Extensions []string
	Help       string
	New        func(w io.Writer, o *Options) Writer
}

// Formats are the outputs of requests.
var Formats = []Format{
	{"table", []string{".txt"}, "a table for the terminal, with a summary per host", newTable},
	{"json", []string{".json"}, "one JSON document: requests, hosts, what the recording lacks", newJSON},
	{"ndjson", []string{".ndjson", ".jsonl"}, "one line of JSON per request", newNDJSON},
	{"har", []string{".har"}, "HTTP Archive 1.2, for the network panel of a browser's devtools", newHAR},
	{"chromium", []string{".chromium.json"}, "trace events, one track per connection, for Perfetto", newChromium},
	{"otlp", []string{".otlp.json", ".otlp.jsonl"}, "OpenTelemetry spans as lines of OTLP JSON, as the file exporter writes them", newOTLP},
	{"html", []string{".html", ".htm"}, "one page with a waterfall, for any browser, without network", newHTML},
}

// Lookup returns the format of that name, nil if there is none.
func Lookup(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i]
		}
	}
	return nil
}

// A Host is the summary of one host.
type Host struct {
	Name       string
	Requests   int
	Outcomes   [4]int // by httpphases.Outcome
	Client     int    // answers 400 to 499
	Server     int    // answers 500 to 599
	New        int    // new connections
	Redirected int
	Durations  quantile.Numbers // ns, of requests that ended
	Upgraded   int              // to a WebSocket: their durations are not among these
}

// A PhaseSum adds up one phase over all requests.
type PhaseSum struct {
	Count int
	Sum   int64
	Max   int64
}

// A Summary is what all requests have in common that the filters let pass.
type Summary struct {
	Source   string
	Requests int // those that the process made, passed or not
	Matched  int // those that the filters let pass, of the sides that are asked for
	Shown    int // those that were written
	Servers  int
	Outcomes [4]int
	Guessed  int // requests with guessed links
	Missing  int // requests with events missing
	Hosts    []*Host
	Served   *Host // those that the process served, passed and asked for; nil: there are none
	Phases   [httpphases.Other]PhaseSum
	Notes    []string // what the recording lacks, in sentences
	// Spool takes the durations for which its memory has no room; nil: none. Quantiles are not to
	// be believed if it has an error.
	Spool *profile.Spool

	index map[string]*Host
}

// maxHosts bounds the summary: a crawler's hosts beyond it count as one.
const maxHosts = 10000

// Add counts r, which the filters let pass.
func (s *Summary) Add(r *httpphases.Request) {
	s.Outcomes[r.Outcome]++
	if r.Guessed > 0 {
		s.Guessed++
	}
	if len(r.Missing) > 0 {
		s.Missing++
	}
	name := hostText(r)
	if s.index == nil {
		s.index = map[string]*Host{}
	}
	h := s.index[name]
	if h == nil {
		if len(s.Hosts) >= maxHosts {
			name = "(other hosts)"
		}
		if h = s.index[name]; h == nil {
			h = &Host{Name: name, Durations: quantile.Numbers{Spool: s.Spool}}
			s.index[name] = h
			s.Hosts = append(s.Hosts, h)
		}
	}
	h.count(r.Status, r.Outcome)
	if r.Connection != nil && r.Connection.New {
		h.New++
	}
	if len(r.Redirects) > 0 {
		h.Redirected++
	}
	if Lasted(r) {
		h.Durations.Add(r.Duration)
	}
	var seen [httpphases.Other]int64
	for i := range r.Phases {
		if p := &r.Phases[i]; !p.Open && p.Name < httpphases.Other {
			seen[p.Name] += p.Duration
			s.Phases[p.Name].Sum += p.Duration
			s.Phases[p.Name].Count++
		}
	}
	for n, v := range seen {
		s.Phases[n].Max = max(s.Phases[n].Max, v)
	}
}

// count counts a request with that status.
func (h *Host) count(status int, o httpphases.Outcome) {
	h.Requests++
	h.Outcomes[o]++
	switch {
	case status >= 500:
		h.Server++
	case status >= 400:
		h.Client++
	}
}

// AddServed counts s, which the filters let pass. It has a share in none of the hosts, which are
// those that were asked, nor in the phases.
func (s *Summary) AddServed(r *httpphases.ServerRequest) {
	s.Outcomes[r.Outcome]++
	if r.Guessed > 0 {
		s.Guessed++
	}
	if s.Served == nil {
		s.Served = &Host{Name: "all requests", Durations: quantile.Numbers{Spool: s.Spool}}
	}
	s.Served.count(r.Status, r.Outcome)
	switch {
	case r.Upgraded():
		s.Served.Upgraded++
	case r.Whole():
		s.Served.Durations.Add(r.Duration)
	}
}

// began returns when a request began that ended at end: what is told of one from before the recording begins at start.
func (o *Options) began(start, end, took int64) int64 {
	if took > 0 && !o.Start.IsZero() { // else it would be before the beginning of all time
		return end - took
	}
	return start
}

// tookText says how long a request took that began before the recording.
func tookText(took int64) string {
	return "it began before the recording, and took " + strings.TrimSpace(cell(took)) + " ms in all"
}

// Lasted reports whether it is known how long r took.
func Lasted(r *httpphases.Request) bool {
	return r.HasDuration && r.Outcome != httpphases.Incomplete
}

// ServedDurations are those of what was served.
func (s *Summary) ServedDurations() []*quantile.Numbers {
	if s.Served == nil {
		return nil
	}
	return []*quantile.Numbers{&s.Served.Durations}
}

// Durations are those of all hosts.
func (s *Summary) Durations() []*quantile.Numbers {
	all := make([]*quantile.Numbers, len(s.Hosts))
	for i, h := range s.Hosts {
		all[i] = &h.Durations
	}
	return all
}

func hostText(r *httpphases.Request) string {
	if r.Host == "" {
		return "(unknown)"
	}
	u := *r
	u.Target = ""
	return u.URL()
}
