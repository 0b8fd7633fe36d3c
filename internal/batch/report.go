package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/tracefix/tracefix/internal/report"
)

// Outcomes of an input.
const (
	OK      = "ok"
	Damaged = "damaged" // what could be saved was saved
	Failed  = "failed"  // no output
	Skipped = "skipped" // not a trace
)

// Limits of what a report lists; everything is counted.
const (
	maxSkips   = 1000
	maxDamages = 20 // of one trace
)

// A Result is what became of one input.
type Result struct {
	Index  int    `json:"index"`            // place in the list of inputs
	Member int    `json:"member,omitempty"` // place in the archive that the input is
	Reason string `json:"reason,omitempty"` // why it was skipped
	// Quarantined says that it failed without being tried: it killed too many runs.
	Quarantined bool `json:"quarantined,omitempty"`
	// Unreached says that a store or the network failed, not the trace: run it again.
	Unreached bool `json:"unreached,omitempty"`
	report.Trace

	seq     int // order among those of one place
	resumed bool
}

// take takes over what an earlier run did.
func (r *Result) take(old *record) {
	name := r.Input.Name
	r.Trace = *old.Trace
	r.Input.Name = name
	r.resumed = true
	if old.Skip != "" {
		r.Status, r.Reason = Skipped, old.Skip
	}
}

func (r *Result) fail(err error) {
	r.Status, r.Error, r.Unreached = Failed, err.Error(), ofStores(err)
}

// why is the error without the trace's name, which stands beside it in tables.
func (r *Result) why() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.Error, r.Input.Name), ": ")
}

// trim drops details that only a report on one trace has room for.
func (r *Result) trim() {
	if len(r.Damage) > maxDamages {
		r.Damage = slices.Clone(r.Damage[:maxDamages])
	}
	r.Repairs, r.Detail = nil, nil
}

// A Report is what a batch did. It holds no times of the run and nothing of the
// machine: the same inputs give the same bytes.
type Report struct {
	Command string `json:"command"` // "batch"
	Version string `json:"version,omitempty"`
	Do      string `json:"do"`
	Format  string `json:"format,omitempty"`
	Shard   *Shard `json:"shard,omitempty"`
	List    List   `json:"list"`

	Totals Totals       `json:"totals"`
	Gates  []GateResult `json:"gates,omitempty"`
	Traces []*Result    `json:"traces"`
	// TracesIn names the file beside this one that has all traces, where Traces are only the
	// worst of them.
	TracesIn string         `json:"traces_in,omitempty"`
	Skipped  []Skip         `json:"skipped,omitempty"` // the first 1000
	Reasons  map[string]int `json:"skipped_by_reason,omitempty"`
	Notes    []string       `json:"notes,omitempty"`

	// Paths are where traces were looked for. They are for who runs it to read: a report is the
	// same wherever it was made.
	Paths []string `json:"-"`

	// Redone is how many traces were done before, by another version or with other flags. The
	// run that did them again tells it; it is no part of what the report says.
	Redone int `json:"-"`

	ledger   *ledger // has all traces, where Traces has those that a document lists
	folder   string  // that all traces lie in
	measures report.Measurer
}

// All gives the traces in the order of their inputs.
func (r *Report) All() iter.Seq2[*Result, error] {
	if r.ledger != nil {
		return r.ledger.all
	}
	return func(yield func(*Result, error) bool) {
		for _, t := range r.Traces {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// Troubled gives those that failed or are damaged.
func (r *Report) Troubled() iter.Seq2[*Result, error] {
	if r.ledger != nil {
		return r.ledger.troubled
	}
	return func(yield func(*Result, error) bool) {
		for _, t := range r.Traces {
			if troubled(t.Status) && !yield(t, nil) {
				return
			}
		}
	}
}

func troubled(status string) bool { return status == Failed || status == Damaged }

// A List tells what the batch looked at.
type List struct {
	Inputs int    `json:"inputs"` // over all shards, with what was skipped; an archive is one
	Digest string `json:"digest"` // of their names and sizes: equal for all shards of one list
	// Of a shard: how many parts the list was dealt out in, and how many of them it had. A
	// part is an input, or a run of members of a large zip.
	Parts int `json:"parts,omitempty"`
	Own   int `json:"own,omitempty"`
}

// A Skip is an input that is not a trace.
type Skip struct {
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Totals are sums over traces.
type Totals struct {
	Traces  int `json:"traces"` // ok + damaged + failed
	OK      int `json:"ok"`
	Damaged int `json:"damaged"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"` // not traces
	// Quarantined are those of Failed that killed too many runs to be tried again.
	Quarantined int `json:"quarantined,omitempty"`
	// Unreached are those of Failed that a store or the network failed.
	Unreached int `json:"unreached,omitempty"`

	InputBytes  int64 `json:"input_bytes"`
	OutputBytes int64 `json:"output_bytes"`

	Samples  int            `json:"samples"`
	Events   int64          `json:"events"`
	Lost     int64          `json:"lost_events"`
	WithLoss int            `json:"traces_with_lost_events,omitempty"`
	WithCuts int            `json:"traces_with_cuts"`
	Cut      int            `json:"cut"`
	CutBy    map[string]int `json:"cut_by,omitempty"`
	Repaired map[string]int `json:"repaired,omitempty"`
	Restored int            `json:"restored_frames"`
	Damages  int            `json:"damages"`

	Requests *Requests `json:"requests,omitempty"`
	// Measures are what batch compare looks at.
	Measures *report.Measures `json:"measures,omitempty"`

	most map[string]Most // as Requests.Most, of what is known without a summary
}

// Requests are totals of HTTP requests. Percentiles of several traces cannot be
// joined into one: those here are of the trace in which they are highest.
type Requests struct {
	report.RequestCounts
	// Made are those of them that were made, Served those that were served, as report.Requests has them.
	Made   *Side `json:"made,omitempty"`
	Served *Side `json:"served,omitempty"`
	HighestDurations
	Slowest []Slowest `json:"slowest,omitempty"`
	// Service is what summaries found: sums, and of shares and concurrency the highest.
	Service *report.Service `json:"service,omitempty"`
	// Most tells by the name of a gate which trace has most of what summaries found.
	Most map[string]Most `json:"most,omitempty"`
}

// A Most is what one trace has most of, or of what is better high the least.
type Most struct {
	Value  float64 `json:"value"`
	Trace  string  `json:"trace"`
	Traces int     `json:"traces"` // that have any
}

// where names the trace, and says how many others have a part in a sum.
func (m Most) where(j joining) string {
	if j != added || m.Traces < 2 {
		return m.Trace
	}
	return fmt.Sprintf("%s and %d more", m.Trace, m.Traces-1)
}

// seeMost notes which trace has most of what gates count. Of a share its own is told, too.
func (t *Totals) seeMost(x *Result) {
	for i := range counted {
		m := &counted[i]
		if m.part == nil {
			continue
		}
		n := m.part(x)
		if n == 0 {
			continue
		}
		most := t.most[m.name]
		if v := float64(n); v > most.Value {
			most.Value, most.Trace = v, x.Input.Name
			if m.whole != nil {
				most.Trace += fmt.Sprintf(" (%s%%)", toDigits(100*v/float64(max(n, m.whole(x))), 4))
			}
		}
		most.Traces++
		if t.most == nil {
			t.most = map[string]Most{}
		}
		t.most[m.name] = most
	}
}

// seeService takes what the summary of a trace found.
func (q *Requests) seeService(s *report.Service, x *Result) {
	if q.Service == nil {
		q.Service, q.Most = &report.Service{}, map[string]Most{}
	}
	q.Service.Add(s)
	for i := range figures {
		f := &figures[i]
		v := f.get(s)
		if !(v > 0) { // or NaN
			continue
		}
		most := q.Most[f.name]
		if most.Traces == 0 || v > most.Value && f.join != lowestOf || v < most.Value && f.join == lowestOf {
			most.Value, most.Trace = v, x.Input.Name
		}
		most.Traces++
		q.Most[f.name] = most
	}
}

// A Side is what report.Side is, of several traces.
type Side struct {
	report.RequestCounts
	HighestDurations
}

// HighestDurations are absent where no request has a duration.
type HighestDurations struct {
	P50 Highest `json:"highest_p50,omitzero"`
	P90 Highest `json:"highest_p90,omitzero"`
	P95 Highest `json:"highest_p95,omitzero"`
	P99 Highest `json:"highest_p99,omitzero"`
	Max Highest `json:"max,omitzero"`
}

// see takes those of a trace that are higher.
func (h *HighestDurations) see(d *report.Durations, x *Result) {
	h.P50.see(d.P50, x)
	h.P90.see(d.P90, x)
	h.P95.see(d.P95, x)
	h.P99.see(d.P99, x)
	h.Max.see(d.Max, x)
}

// add adds a side of a trace, if anybody asked for it, to the sum of them.
func (s *Side) add(o *report.Side, x *Result) *Side {
	if o == nil {
		return s
	}
	if s == nil {
		s = &Side{}
	}
	s.RequestCounts.Add(&o.RequestCounts)
	s.see(&o.Durations, x)
	return s
}

// told tells in words how many requests there are, and how many of them were served.
func (q *Requests) told() string {
	if q.Served == nil {
		return report.ToldRequests(q.Count, false, 0)
	}
	return report.ToldRequests(q.Count, true, q.Served.Count)
}

// A Highest is the highest value of all traces.
type Highest struct {
	Ms    float64 `json:"ms"`
	Trace string  `json:"trace,omitempty"`
}

// Slowest is one of the slowest requests of all.
type Slowest struct {
	Trace  string `json:"trace"`
	Output string `json:"output,omitempty"`
	report.SlowRequest
}

const maxSlowest = 20

func (q *Requests) keepSlowest() {
	sort.SliceStable(q.Slowest, func(i, j int) bool { return q.Slowest[i].Duration > q.Slowest[j].Duration })
	q.Slowest = q.Slowest[:min(len(q.Slowest), maxSlowest)]
}

// add takes a result; results come in input order.
func (r *Report) add(res *Result) {
	if res.Status == Skipped {
		r.skip(Skip{res.Index, res.Input.Name, res.Reason})
		return
	}
	r.measures.Add(res.Measures)
	res.Measures = nil // of a hundred thousand traces they are told together
	r.Traces = append(r.Traces, res)
}

func (r *Report) skip(s Skip) {
	if r.Reasons == nil {
		r.Reasons = map[string]int{}
	}
	r.Reasons[s.Reason]++
	if len(r.Skipped) < maxSkips {
		r.Skipped = append(r.Skipped, s)
	}
}

// A commonFolder is the folder that all names lie in, with its slash; empty if there is none.
type commonFolder struct {
	dir   string
	names bool // there was one
}

func (c *commonFolder) add(name string) {
	if !c.names {
		c.dir, c.names = name[:strings.LastIndexByte(name, '/')+1], true
	}
	for !strings.HasPrefix(name, c.dir) {
		c.dir = c.dir[:strings.LastIndexByte(c.dir[:len(c.dir)-1], '/')+1]
	}
}

// finish sums up and asks the gates.
func (r *Report) finish(gates []Gate) error {
	t := &Totals{}
	for _, n := range r.Reasons {
		t.Skipped += n
	}
	in := commonFolder{}
	worst := worstTraces{list: []*Result{}}
	if r.ledger != nil {
		worst.cut = len(r.ledger.lines) > maxInline
	}
	for x, err := range r.All() {
		if err != nil {
			return err
		}
		t.add(x)
		in.add(x.Input.Name)
		if r.ledger != nil {
			worst.add(x)
		}
	}
	r.folder = in.dir
	if r.ledger != nil {
		r.Traces = worst.all()
	}
	if q := t.Requests; q != nil {
		q.keepSlowest()
	}
	t.Measures = r.measures.All()
	r.Totals = *t
	if t.Traces == 0 {
		r.note(noTrace)
	}
	r.Gates = nil
	for _, g := range gates {
		r.Gates = append(r.Gates, g.check(r))
	}
	r.Totals.most = nil // the gates have it
	return nil
}

func (r *Report) note(s string) {
	if !slices.Contains(r.Notes, s) {
		r.Notes = append(r.Notes, s)
	}
}

func (t *Totals) add(x *Result) {
	t.Traces++
	switch x.Status {
	case Failed:
		t.Failed++
		if x.Quarantined {
			t.Quarantined++
		}
		if x.Unreached {
			t.Unreached++
		}
	case Damaged:
		t.Damaged++
	default:
		t.OK++
	}
	t.InputBytes += x.Input.Bytes
	if x.Output != nil {
		t.OutputBytes += x.Output.Bytes
	}
	t.Samples += x.Samples
	t.Events += x.Events
	t.Lost += x.Lost
	if x.Lost > 0 {
		t.WithLoss++
	}
	t.Cut += x.Cut
	if x.Cut > 0 {
		t.WithCuts++
	}
	t.CutBy = sum(t.CutBy, x.CutBy)
	t.Restored += x.Restored
	t.Repaired = sum(t.Repaired, x.Repaired)
	t.Damages += x.Damages
	t.seeMost(x)
	if q := x.Requests; q != nil {
		if t.Requests == nil {
			t.Requests = &Requests{}
		}
		r := t.Requests
		r.RequestCounts.Add(&q.RequestCounts)
		r.Made, r.Served = r.Made.add(q.Made, x), r.Served.add(q.Served, x)
		r.see(&q.Durations, x)
		if q.Service != nil {
			r.seeService(q.Service, x)
		}
		for _, s := range q.Slowest {
			out := ""
			if x.Output != nil {
				out = x.Output.Name
			}
			r.Slowest = append(r.Slowest, Slowest{x.Input.Name, out, s})
		}
		if len(r.Slowest) > 1000 { // of a hundred thousand traces not all can wait for the end
			r.keepSlowest()
		}
	}
}

func (h *Highest) see(ms float64, x *Result) {
	if ms > h.Ms {
		h.Ms, h.Trace = ms, x.Input.Name
	}
}

func sum(into, m map[string]int) map[string]int {
	for k, n := range m {
		if into == nil {
			into = map[string]int{}
		}
		into[k] += n
	}
	return into
}

// Verdict is what a batch comes to.
type Verdict int

// Verdicts, the worse the higher.
const (
	AllGood Verdict = iota
	SomeDamaged
	SomeFailed
)

// part reports whether it is of one part of the work. The others may have what it lacks: the merge judges.
func (r *Report) part() bool { return r.Shard != nil && r.Shard.Count > 1 }

// Nothing says what was looked at where no trace was found, and is empty where there is one, or
// where other parts of the work may have some.
func (r *Report) Nothing() string {
	if r.Totals.Traces > 0 || r.part() {
		return ""
	}
	what := noTrace
	if len(r.Paths) > 0 {
		what += " in " + strings.Join(r.Paths[:min(len(r.Paths), 3)], ", ")
		if n := len(r.Paths) - 3; n > 0 {
			what += fmt.Sprintf(" and %d more paths", n)
		}
	}
	if len(r.Skipped) == 0 {
		return what + ", nor any other file; is this where they are?"
	}
	return what + fmt.Sprintf(", but %s other file%s, such as %s (%s); is this where they are?", report.Count(r.Totals.Skipped), report.Plural(r.Totals.Skipped), r.Skipped[0].Name, r.Skipped[0].Reason)
}

// Verdict returns the worst of what happened, gates included.
func (r *Report) Verdict() Verdict {
	for _, g := range r.Gates {
		if g.Failed {
			return SomeFailed
		}
	}
	switch {
	case r.Totals.Failed > 0:
		return SomeFailed
	case r.Totals.Damaged > 0:
		return SomeDamaged
	}
	return AllGood
}

// maxInline is how many traces a report lists in one document. Of more it lists the worst,
// and the rows beside it have all.
const (
	maxInline = 10_000
	maxWorst  = 1000
)

// WriteJSON writes the report, indented.
func (r *Report) WriteJSON(w io.Writer) error {
	short := *r
	if r.Totals.Traces > maxInline {
		short.TracesIn = r.Shard.orAll().report() + rowsEnd
		worst := worstTraces{cut: true}
		for _, t := range r.Traces {
			worst.add(t)
		}
		short.Traces = worst.all()
	}
	b, err := json.MarshalIndent(&short, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// worstTraces are all that are added or, if those are to be cut, the ones to look at first.
type worstTraces struct {
	cut  bool
	list []*Result
}

func (w *worstTraces) add(t *Result) {
	if w.list = append(w.list, t); w.cut && len(w.list) == 4*maxWorst {
		w.all()
	}
}

func (w *worstTraces) all() []*Result {
	if w.cut {
		slices.SortStableFunc(w.list, worse)
		n := min(len(w.list), maxWorst)
		clear(w.list[n:])
		w.list = w.list[:n]
	}
	return w.list
}

// worse puts what failed before what is damaged, and then what has more errors, slower
// requests, more cuts.
func worse(a, b *Result) int {
	rank := map[string]int{Failed: 0, Damaged: 1}
	of := func(t *Result) (n int, ms float64) {
		if q := t.Requests; q != nil {
			return q.Errors, q.Max
		}
		return 0, 0
	}
	place := func(t *Result) int {
		if n, ok := rank[t.Status]; ok {
			return n
		}
		return len(rank)
	}
	na, ma := of(a)
	nb, mb := of(b)
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(nb, na), cmp.Compare(mb, ma), cmp.Compare(b.Cut, a.Cut))
}

// ReadReport reads what WriteJSON wrote.
func ReadReport(rd io.Reader) (*Report, error) {
	d := json.NewDecoder(rd)
	r := &Report{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("offset %d: not a report of tracefix batch: %w", d.InputOffset(), err)
	}
	if r.Command != "batch" {
		return nil, errNoReport
	}
	for i, t := range r.Traces {
		if t == nil {
			return nil, fmt.Errorf("%w: traces[%d] is null", errNoReport, i)
		}
	}
	return r, nil
}

const noTrace = "no trace was found"

var errNoReport = errors.New("not a report of tracefix batch")

// A reportWriter is one form of the report.
type reportWriter struct {
	end   string
	write func(io.Writer) error
}

// writers are the forms of the report. links leads from the report's folder to the
// outputs; empty if they lie beside it.
func (r *Report) writers(links string) []reportWriter {
	return []reportWriter{
		{".json", r.WriteJSON},
		{".md", func(w io.Writer) error { return r.WriteMarkdown(w) }},
		{".xml", r.WriteJUnit},
		{".html", func(w io.Writer) error { return r.WriteHTML(w, links) }},
		{rowsEnd, r.WriteRows},
	}
}

// Names are those of its files, in the folder of the outputs.
func (r *Report) Names() (names []string) {
	s := r.Shard.orAll()
	for _, end := range s.ends() {
		names = append(names, s.report()+end)
	}
	return names
}

// Summary is the one line at the end of a run.
func (r *Report) Summary() string {
	t := r.Totals
	var b strings.Builder
	fmt.Fprintf(&b, "%s trace%s: %s ok", report.Count(t.Traces), report.Plural(t.Traces), report.Count(t.OK))
	for _, x := range []struct {
		n    int
		what string
	}{{t.Damaged, "damaged"}, {t.Failed, "failed"}, {t.Quarantined, "of these given up"}, {t.Unreached, "of these because the store failed"}} {
		if x.n > 0 {
			fmt.Fprintf(&b, ", %s %s", report.Count(x.n), x.what)
		}
	}
	if t.Skipped > 0 {
		fmt.Fprintf(&b, "; %s other file%s skipped", report.Count(t.Skipped), report.Plural(t.Skipped))
	}
	if t.Cut > 0 && r.countsSamples() {
		if done, bridged := t.repaired(), t.Repaired[bridge]; done+bridged == 0 {
			fmt.Fprintf(&b, "; %s of %s samples cut", report.Count(t.Cut), report.Count(t.Samples))
		} else {
			fmt.Fprintf(&b, "; %s", report.Outcome{Samples: t.Samples, Cut: t.Cut, Repaired: done, Bridged: bridged, Restored: t.Restored})
		}
	}
	if q := t.Requests; q != nil {
		fmt.Fprintf(&b, "; %s, %s with errors", q.told(), report.Count(q.Errors))
	}
	return b.String()
}

const bridge = "bridge" // how a cut is marked whose frames cannot be known

func (t *Totals) repaired() int {
	n := 0
	for how, k := range t.Repaired {
		if how != bridge {
			n += k
		}
	}
	return n
}
