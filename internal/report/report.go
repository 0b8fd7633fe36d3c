// Package report holds what a run did: the facts for JSON, and the one line and the
// few lines that a person reads.
package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Damage is a place where the input breaks its format.
type Damage struct {
	Offset int64  `json:"offset"` // in the unpacked content
	Where  string `json:"where"`
	What   string `json:"what"`
}

// MaxDamages is how many damages a report lists; all are counted.
const MaxDamages = 100

// Trace is what was done with one input. It holds no times and no machine, so the
// same input gives the same report.
type Trace struct {
	Progress *Progress `json:"-"` // while it is made

	Command string   `json:"command"`
	Input   Input    `json:"input"`
	Output  *Output  `json:"output,omitempty"`
	Status  string   `json:"status"` // ok, damaged, failed
	Error   string   `json:"error,omitempty"`
	Damages int      `json:"damages,omitempty"`
	Damage  []Damage `json:"damage,omitempty"`

	Threads  int            `json:"threads,omitempty"` // with samples
	Samples  int            `json:"samples,omitempty"`
	Events   int64          `json:"events,omitempty"`
	Lost     int64          `json:"lost_events,omitempty"`
	Cut      int            `json:"cut,omitempty"`
	CutsKept bool           `json:"cuts_not_counted,omitempty"` // --compat takes stacks as they are
	CutBy    map[string]int `json:"cut_by,omitempty"`           // depth, bytes, broken
	Repaired map[string]int `json:"repaired,omitempty"`         // by how
	Restored int            `json:"restored_frames,omitempty"`
	// MinConfidence is what a repair needed to be taken; 0: not told.
	MinConfidence float64 `json:"min_confidence,omitempty"`

	// Tracks counts what was drawn beside the samples, by group: activities, gc, ...
	Tracks map[string]int `json:"tracks,omitempty"`

	// Stacks of other events than samples: evidence for a repair, and repaired too.
	CutEvents      int `json:"cut_events,omitempty"`
	RepairedEvents int `json:"repaired_events,omitempty"`

	Repairs *Repairs `json:"repairs,omitempty"` // nil: there are none, or nobody wants to know
	// Rest tells where the cut samples are that could not be repaired.
	Rest *Rest `json:"rest,omitempty"`

	Requests *Requests `json:"requests,omitempty"`
	// Measures are what batches are compared by; only they gather them.
	Measures *Measures       `json:"measures,omitempty"`
	Detail   json.RawMessage `json:"summary,omitempty"` // what the command sums up in its output

	// Done tells in words what was done, if that was not about samples.
	Done string `json:"done,omitempty"`
	// Notes tell a person what to do about what is wrong.
	Notes []string `json:"notes,omitempty"`
	// Next is what to do with the output.
	Next string `json:"-"`
}

// Rest tells where cut samples are that could not be repaired: those with the most first.
type Rest struct {
	Threads []Share `json:"threads"` // by name or id
	Methods []Share `json:"methods"` // the outermost method that was recorded
}

// MaxRest is how many threads and methods a Rest names.
const MaxRest = 3

// A Share is a part of the samples.
type Share struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
}

// Input is the file that was read.
type Input struct {
	Name   string   `json:"name"`
	Format string   `json:"format,omitempty"`
	Bytes  int64    `json:"bytes"`
	Layers []string `json:"layers,omitempty"`
}

// Output is the file that was written.
type Output struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

// A Repair is what was done about one cut sample.
type Repair struct {
	Ms         float64 `json:"ms"` // since the start of the trace
	PID        int64   `json:"pid"`
	TID        int64   `json:"tid"`
	Why        string  `json:"why"`
	Depth      int     `json:"depth"` // as recorded
	How        string  `json:"how"`
	Restored   int     `json:"restored"`
	Confidence float64 `json:"confidence"`
	// Of a bridge: frames put back behind it, and how sure these are and those before it.
	Above           int     `json:"above,omitempty"`
	AboveConfidence float64 `json:"above_confidence,omitempty"`
	BaseConfidence  float64 `json:"base_confidence,omitempty"`
}

// Repairs are those of the cut samples of a trace, at least one: there may be millions.
type Repairs struct {
	All iter.Seq[Repair]
	Err func() error // of going through them
}

// MarshalJSON implements json.Marshaler: it holds the place of the list, which writeJSON writes.
func (*Repairs) MarshalJSON() ([]byte, error) { return []byte("[null]"), nil }

// placeOfRepairs is where such a list begins in indented JSON, in whose strings no line ends.
var placeOfRepairs = []byte("\"repairs\": [\n")

// write writes the list without its brackets, so far in.
func (r *Repairs) write(w io.Writer, indent string) error {
	separator := indent
	for x := range r.All {
		b, err := json.MarshalIndent(&x, indent, "  ")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, b); err != nil {
			return err
		}
		separator = ",\n" + indent
	}
	return r.Err()
}

// Requests are totals of HTTP requests, of the sides that were asked for.
type Requests struct {
	RequestCounts
	// Made are those of them that the process made, Served those that it served; nil: nobody asked
	// for that side.
	Made   *Side `json:"made,omitempty"`
	Served *Side `json:"served,omitempty"`
	// Durations of two sides cannot be joined, as one often lies in the other: each here is that of
	// the side where it is highest.
	Durations
	// Slowest are the slowest requests, the slowest first: at most MaxSlowest.
	Slowest []SlowRequest `json:"slowest,omitempty"`
	// Service is what a summary of the service found.
	Service *Service `json:"service,omitempty"`
}

// A Side is the requests that a process made, or those that it served.
type Side struct {
	RequestCounts
	Durations
}

// RequestCounts say how many requests there are.
type RequestCounts struct {
	Count      int `json:"count"`
	Failed     int `json:"failed"` // without an answer: failed or canceled; served: by an exception that nobody handled
	Errors     int `json:"errors"` // Failed, or answered with a status of 400 and above
	Incomplete int `json:"incomplete"`
}

// Durations say how long requests took, ms. They are absent where it is known of none.
type Durations struct {
	P50 float64 `json:"p50_ms,omitzero"`
	P90 float64 `json:"p90_ms,omitzero"`
	P95 float64 `json:"p95_ms,omitzero"`
	P99 float64 `json:"p99_ms,omitzero"`
	Max float64 `json:"max_ms,omitzero"`
}

// Add adds those of others.
func (n *RequestCounts) Add(o *RequestCounts) {
	n.Count += o.Count
	n.Failed += o.Failed
	n.Errors += o.Errors
	n.Incomplete += o.Incomplete
}

// Higher takes each duration of others that is higher.
func (d *Durations) Higher(o *Durations) {
	d.P50, d.P90, d.P95, d.P99, d.Max = max(d.P50, o.P50), max(d.P90, o.P90), max(d.P95, o.P95), max(d.P99, o.P99), max(d.Max, o.Max)
}

// ToldRequests tells in words how many requests there are, and how many of them were served, if
// anybody asked.
func ToldRequests(n int, asked bool, served int) string {
	told := fmt.Sprintf("%s request%s", Count(n), Plural(n))
	switch {
	case !asked:
		return told
	case served == n:
		return told + " served"
	}
	return fmt.Sprintf("%s (%s served)", told, Count(served))
}

// Told tells in words how many requests there are, and how many of them were served.
func (q *Requests) Told() string {
	if q.Served == nil {
		return ToldRequests(q.Count, false, 0)
	}
	return ToldRequests(q.Count, true, q.Served.Count)
}

// Service is how a service did, in numbers that gates can ask for. One that the trace does not tell
// is nil: none of what nobody recorded is no zero.
type Service struct {
	Starvation          *float64 `json:"starvation,omitempty"`             // times that the pool changed its number of threads since it starved, or its threads blocked
	PoolBlocked         *float64 `json:"pool_blocked_pct,omitempty"`       // share of the time of served requests in which a thread waited for an event or a task
	PoolWaitMs          *float64 `json:"pool_wait_ms,omitempty"`           // in which work of requests was queued for a thread of the pool
	LockWaitMs          *float64 `json:"lock_wait_ms,omitempty"`           // of all threads
	ConvoyWaits         *float64 `json:"convoy_waits,omitempty"`           // waits at locks with a convoy
	ClientQueueMs       *float64 `json:"client_queue_ms,omitempty"`        // in which requests waited until another one gave its connection back
	DNSOutliers         int      `json:"dns_outliers"`                     // name resolutions that took far longer than the others
	TLSOutliers         int      `json:"tls_outliers"`                     // and TLS handshakes
	GCPauseMs           *float64 `json:"gc_pause_ms,omitempty"`            // of all collections
	GCInRequestsMs      *float64 `json:"gc_in_requests_ms,omitempty"`      // in which a thread that ran for a request stood still
	CompileInRequestsMs *float64 `json:"compile_in_requests_ms,omitempty"` // for which threads that ran for requests compiled methods
	Opened              *float64 `json:"connections_opened,omitempty"`     // of the client
	Closed              *float64 `json:"connections_closed,omitempty"`
	FailedConnections   *float64 `json:"failed_connections,omitempty"`      // attempts to connect
	RequestsEach        *float64 `json:"requests_per_connection,omitempty"` // on average
	Rate                float64  `json:"rate"`                              // requests made or served, per second
	MaxConcurrency      int      `json:"max_concurrency"`                   // of requests made or served at once
	Findings            int      `json:"findings"`                          // things that are wrong
}

// Add adds those of another trace: sums, of shares, rate and concurrency the higher one, of
// requests per connection the lower one. What one of them does not tell is that of the other.
func (s *Service) Add(o *Service) {
	sum := func(a, b float64) float64 { return a + b }
	higher := func(a, b float64) float64 { return max(a, b) }
	lower := func(a, b float64) float64 { return min(a, b) }
	for _, x := range []struct {
		to   **float64
		of   *float64
		join func(a, b float64) float64
	}{
		{&s.Starvation, o.Starvation, sum},
		{&s.PoolBlocked, o.PoolBlocked, higher},
		{&s.PoolWaitMs, o.PoolWaitMs, sum},
		{&s.LockWaitMs, o.LockWaitMs, sum},
		{&s.ConvoyWaits, o.ConvoyWaits, sum},
		{&s.ClientQueueMs, o.ClientQueueMs, sum},
		{&s.GCPauseMs, o.GCPauseMs, sum},
		{&s.GCInRequestsMs, o.GCInRequestsMs, sum},
		{&s.CompileInRequestsMs, o.CompileInRequestsMs, sum},
		{&s.Opened, o.Opened, sum},
		{&s.Closed, o.Closed, sum},
		{&s.FailedConnections, o.FailedConnections, sum},
		{&s.RequestsEach, o.RequestsEach, lower},
	} {
		switch {
		case x.of == nil:
		case *x.to == nil:
			*x.to = new(*x.of)
		default:
			*x.to = new(x.join(**x.to, *x.of))
		}
	}
	s.DNSOutliers += o.DNSOutliers
	s.TLSOutliers += o.TLSOutliers
	s.Rate = max(s.Rate, o.Rate)
	s.MaxConcurrency = max(s.MaxConcurrency, o.MaxConcurrency)
	s.Findings += o.Findings
}

// MaxSlowest is how many of the slowest requests a report lists.
const MaxSlowest = 10

// A SlowRequest is a request worth a look.
type SlowRequest struct {
	Kind     string  `json:"kind,omitempty"` // server: the process served it
	Method   string  `json:"method,omitempty"`
	URL      string  `json:"url,omitempty"`
	Status   int     `json:"status,omitempty"`
	Outcome  string  `json:"outcome"`
	StartMs  float64 `json:"start_ms"`
	Duration float64 `json:"duration_ms"`
}

// A UsageError is a mistake in what was asked for: exit code 2.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.Err }

// AddDamage counts d and keeps it while there is room.
func (t *Trace) AddDamage(d Damage) {
	t.Damages++
	if len(t.Damage) < MaxDamages {
		t.Damage = append(t.Damage, d)
	}
	if t.Status != "failed" {
		t.Status = "damaged"
	}
}

// WriteJSON writes the report, indented.
func (t *Trace) WriteJSON(w io.Writer) error { return writeJSON(w, t, t) }

// Traces are the reports of a run over several inputs, in their order.
type Traces struct {
	Traces []*Trace `json:"traces"`
}

// WriteJSON writes them as one document.
func (t *Traces) WriteJSON(w io.Writer) error { return writeJSON(w, t, t.Traces...) }

// writeJSON writes what holds reports.
func writeJSON(w io.Writer, v any, reports ...*Trace) error {
	rest, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for _, t := range reports {
		if t.Repairs == nil {
			continue
		}
		before, list, _ := bytes.Cut(rest, placeOfRepairs)
		rest = bytes.TrimLeft(list, " ")
		out.Write(before)
		out.Write(placeOfRepairs)
		if err := t.Repairs.write(out, string(list[:len(list)-len(rest)])); err != nil {
			return err
		}
		rest = rest[len("null"):]
	}
	out.Write(rest)
	out.WriteByte('\n')
	return out.Flush()
}

// Summary is the one line at the end of a run.
func (t *Trace) Summary() string {
	var b strings.Builder
	b.WriteString(t.Input.Name)
	if t.Output != nil && t.Output.Name != "-" {
		fmt.Fprintf(&b, " -> %s", t.Output.Name)
	}
	b.WriteString(": ")
	if t.Status == "failed" {
		b.WriteString("failed: " + t.Error)
		return b.String()
	}
	samples := fmt.Sprintf("%s sample%s", Count(t.Samples), Plural(t.Samples))
	switch {
	case t.Done != "":
		b.WriteString(t.Done)
	case t.Samples == 0 && len(t.Tracks) > 0:
		b.WriteString(t.drawn())
	case t.CutsKept:
		b.WriteString(samples + ", as dotnet-trace writes them")
	case t.Cut == 0:
		b.WriteString(samples + ", none cut")
	case len(t.Repaired) == 0:
		fmt.Fprintf(&b, "%s, %s cut (%s)", samples, Count(t.Cut), Percent(int64(t.Cut), int64(t.Samples)))
	default:
		t.tellRepairs(&b)
	}
	if t.Lost > 0 {
		fmt.Fprintf(&b, "; %s event%s lost while recording", Count(int(t.Lost)), Plural(int(t.Lost)))
	}
	if t.Damages > 0 {
		fmt.Fprintf(&b, "; damaged in %d place%s, what could be saved was saved", t.Damages, Plural(t.Damages))
	}
	return b.String()
}

// tellRepairs tells what became of the cut samples.
func (t *Trace) tellRepairs(b *strings.Builder) {
	bridged := t.Repaired["bridge"]
	done := 0
	for _, n := range t.Repaired {
		done += n
	}
	Outcome{Samples: t.Samples, Cut: t.Cut, Repaired: done - bridged, Bridged: bridged, Restored: t.Restored}.tell(b)
}

// An Outcome is what became of cut samples, of one trace or of many.
type Outcome struct {
	Samples, Cut      int
	Repaired, Bridged int // of Cut
	Restored          int // frames
}

// String tells it in words, the share of what is right again first.
func (o Outcome) String() string {
	var b strings.Builder
	o.tell(&b)
	return b.String()
}

func (o Outcome) tell(b *strings.Builder) {
	share := func(n int) string { return Percent(int64(n), int64(o.Cut)) }
	fmt.Fprintf(b, "%s of %s cut stack%s repaired", share(o.Repaired), Count(o.Cut), Plural(o.Cut))
	if o.Bridged > 0 {
		fmt.Fprintf(b, ", %s bridged", share(o.Bridged))
	}
	fmt.Fprintf(b, "; %s frame%s restored; %s sample%s", Count(o.Restored), Plural(o.Restored), Count(o.Samples), Plural(o.Samples))
}

// drawn tells what there is in an output without samples.
func (t *Trace) drawn() string {
	var list []string
	for _, group := range slices.Sorted(maps.Keys(t.Tracks)) {
		n := t.Tracks[group]
		noun, ok := drawnNouns[group]
		if !ok {
			noun = [2]string{"slice of " + group, "slices of " + group}
		}
		word := noun[1]
		if n == 1 {
			word = noun[0]
		}
		list = append(list, Count(n)+" "+word)
	}
	return strings.Join(list, ", ")
}

// drawnNouns name what tracks hold: one of it, and more.
var drawnNouns = map[string][2]string{
	"activities": {"activity", "activities"},
	"contention": {"lock contention", "lock contentions"},
	"events":     {"event", "events"},
	"faults":     {"page fault", "page faults"},
}

// How the words of a repair read to a person, in the order they are told.
var hows = []struct{ how, text string }{
	{"tasks", "known from task events"},
	{"both-sides", "known from the stacks before and after"},
	{"before", "known from the stack before"},
	{"after", "known from the stack after"},
	{"chain", "known through a run of overlapping cut stacks"},
	{"caller", "known because the caller never varies in this trace"},
	{"elsewhere", "known from whole stacks elsewhere in the trace"},
	{"bridge", unsure + ": " + bridgedBy},
}

const (
	unsure    = "not sure enough"
	bridgedBy = "bridged by one frame \"[frames lost]\""
)

// unsure tells in words why samples were not repaired.
func (t *Trace) unsure() string {
	switch c := t.MinConfidence; {
	case c == 0:
		return unsure
	case c < 0:
		return "without an answer"
	default:
		return fmt.Sprintf("below %v confidence", c)
	}
}

// How tells in words what a repair's kind means; "" for a kind without words.
func How(how string) string {
	for _, h := range hows {
		if h.how == how {
			return h.text
		}
	}
	return ""
}

// Explain writes a few lines on how the cut samples were repaired, and the notes; sentences are
// broken at width characters, 0 is any width.
func (t *Trace) Explain(w io.Writer, width int) {
	if t.Cut > 0 {
		t.explainRepairs(w, width)
	}
	for _, n := range t.Notes {
		fmt.Fprintln(w, text.Wrapped("  note: "+text.Line(n), width, 4))
	}
	if t.Next != "" {
		fmt.Fprintln(w, text.Wrapped("  next: "+text.Line(t.Next), width, 4))
	}
}

func (t *Trace) explainRepairs(w io.Writer, width int) {
	known := map[string]bool{}
	for _, h := range hows {
		known[h.how] = true
		text := h.text
		if h.how == "bridge" {
			text = t.unsure() + ": " + bridgedBy
			if t.Output != nil && t.Output.Format == "nettrace" {
				text += ` ("?!?" in PerfView)`
			}
		}
		if n := t.Repaired[h.how]; n > 0 {
			fmt.Fprintf(w, "  %10s  %s\n", Count(n), text)
		}
	}
	var rest []string
	for how := range t.Repaired {
		if !known[how] {
			rest = append(rest, how)
		}
	}
	sort.Strings(rest)
	for _, how := range rest {
		fmt.Fprintf(w, "  %10s  %s\n", Count(t.Repaired[how]), how)
	}
	if t.Rest != nil {
		t.Rest.explain(w, width)
	}
}

func (r *Rest) explain(w io.Writer, width int) {
	for _, list := range []struct {
		what string
		of   []Share
	}{{"on", r.Threads}, {"cut above", r.Methods}} {
		what := list.what
		for _, s := range list.of {
			name, _, _ := strings.Cut(text.Line(s.Name), "(")
			head, samples := fmt.Sprintf("  %10s  %-9s  ", "", what), fmt.Sprintf(" (%s)", Count(s.Samples))
			if width > 0 {
				name = text.Fit(name, max(width-len(head)-len(samples), 20))
			}
			fmt.Fprintln(w, head+name+samples)
			what = ""
		}
	}
}

// Count prints n with separators, for reading.
func Count(n int) string {
	s := fmt.Sprint(n)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

// Percent prints n of all so that neither nothing nor everything is claimed by rounding.
func Percent[N int64 | float64](n, all N) string {
	if n == 0 || all <= 0 {
		return "0 %"
	}
	switch p := 100 * float64(n) / float64(all); {
	case n == all:
		return "100 %"
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9 && p < 100:
		return "> 99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// Plural is the ending of a noun that n stands before.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
