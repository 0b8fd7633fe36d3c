package batch

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/httpout"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
)

// httpFormats are the outputs of DoHTTP.
func httpFormats() []NamedFormat {
	out := []NamedFormat{{"ndjson", ".http.ndjson"}}
	for _, f := range httpout.Formats {
		switch f.Name {
		case "ndjson":
		case "har":
			out = append(out, NamedFormat{f.Name, f.Extensions[0]})
		default:
			out = append(out, NamedFormat{f.Name, ".http" + f.Extensions[0]})
		}
	}
	return out
}

// workHTTP writes the HTTP requests of a trace.
func workHTTP(cfg pipeline.Config, version string) Work {
	return func(ctx context.Context, in *input.File, job Job) (*report.Trace, error) {
		rep := begin(DoHTTP, in)
		return finish(rep, httpTrace(ctx, in, job, &cfg, version, rep))
	}
}

// begin starts the report of a trace.
func begin(command string, in *input.File) *report.Trace {
	return &report.Trace{
		Command: command, Status: OK,
		Input: report.Input{Name: in.Name, Format: in.Kind.String(), Bytes: in.Stored, Layers: in.Layers},
	}
}

func finish(rep *report.Trace, err error) (*report.Trace, error) {
	if err != nil {
		rep.Status, rep.Error, rep.Output = Failed, err.Error(), nil
	}
	return rep, err
}

// strictly turns damage into an error if that was asked for.
func strictly(cfg *pipeline.Config, rep *report.Trace) error {
	if !cfg.Strict || rep.Damages == 0 {
		return nil
	}
	if len(rep.Damage) == 0 {
		return errors.New("the trace is damaged")
	}
	d := rep.Damage[0]
	return fmt.Errorf("%s: offset %d: %s: %s (%d places in all; without --strict what can be saved is saved)", rep.Input.Name, d.Offset, d.Where, d.What, rep.Damages)
}

func httpTrace(ctx context.Context, in *input.File, job Job, cfg *pipeline.Config, version string, rep *report.Trace) error {
	format := httpout.Lookup(cmp.Or(job.Format, "ndjson"))
	out, err := output.Create(job.Out, &output.Options{Force: job.Force, Inputs: []string{in.Path()}})
	if err != nil {
		return err
	}
	defer out.Close()
	h := httpWork{cfg: cfg, totals: &report.Requests{}, sum: httpout.Summary{Source: in.Name}}
	info, err := requests.Read(ctx, in, func(r *nettrace.Reader) {
		h.scan = requests.NewScanner(r, h.request, h.server)
		head := r.Header()
		h.w = format.New(out, &httpout.Options{Source: in.Name, Exporter: version, Start: head.SyncTime, Process: head.ProcessID})
	}, func(ev *nettrace.Event) { h.scan.Event(ev) })
	defer h.scan.Stop()
	if err == nil {
		h.scan.Finish()
		h.flush()
		err = h.err
	}
	if err != nil {
		return err
	}
	for _, d := range info.Damage {
		rep.AddDamage(d)
	}
	rep.Damages = info.Damages
	rep.Events, rep.Lost, rep.Requests = info.Events, int64(info.Lost), h.end()
	findings := h.scan.Findings(&h.need, requests.Client)
	for _, f := range findings {
		h.sum.Notes = append(h.sum.Notes, f.Missing+": "+f.Effect+".")
	}
	if len(findings) > 0 {
		h.sum.Notes = append(h.sum.Notes, "To record all of it: "+requests.Command(info.ProcessID, requests.Client))
	}
	rep.Notes = h.sum.Notes
	if err := h.w.Close(&h.sum); err != nil {
		return err
	}
	if err := strictly(cfg, rep); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	rep.Output = &report.Output{Name: job.Out, Format: format.Name, Bytes: out.Bytes()}
	return nil
}

// heldRequests is how many requests are put in order of their start before they are
// written as they end; `tracefix http` does the same.
const heldRequests = 20000

// An httpWork gathers the requests of one trace.
type httpWork struct {
	cfg     *pipeline.Config
	scan    *requests.Scanner
	w       httpout.Writer
	sum     httpout.Summary
	need    requests.Need
	held    []*httpphases.Request
	flowing bool
	err     error

	totals    *report.Requests
	durations []int64 // ns, of requests that ended
	slowest   slowHeap
}

func (h *httpWork) request(r *httpphases.Request) {
	h.need.Request(r)
	from, to := h.cfg.Select.From.Nanoseconds(), h.cfg.Select.To.Nanoseconds()
	if from > 0 && r.HasDuration && r.Start+r.Duration < from || to > 0 && r.Start > to {
		return
	}
	h.sum.Add(r)
	h.sum.Matched++
	h.sum.Shown++
	h.count(r)
	if h.flowing {
		h.write(r)
		return
	}
	h.held = append(h.held, r)
	if len(h.held) >= heldRequests {
		h.flush()
		h.flowing = true
	}
}

func (h *httpWork) server(*httpphases.ServerRequest) { h.sum.Servers++ }

func (h *httpWork) write(r *httpphases.Request) {
	if h.err == nil {
		h.err = h.w.Request(r)
	}
}

func (h *httpWork) flush() {
	slices.SortStableFunc(h.held, func(a, b *httpphases.Request) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range h.held {
		h.write(r)
	}
	h.held = nil
}

func (h *httpWork) count(r *httpphases.Request) {
	t := h.totals
	t.Count++
	failed := r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled
	if failed {
		t.Failed++
	}
	if failed || r.Status >= 400 {
		t.Errors++
	}
	if r.Outcome == httpphases.Incomplete {
		t.Incomplete++
	}
	if !r.HasDuration || r.Outcome == httpphases.Incomplete {
		return
	}
	h.durations = append(h.durations, r.Duration)
	if len(h.slowest) < report.MaxSlowest {
		heap.Push(&h.slowest, r)
	} else if slower(r, h.slowest[0]) {
		h.slowest[0] = r
		heap.Fix(&h.slowest, 0)
	}
}

// end computes what needs all requests.
func (h *httpWork) end() *report.Requests {
	t := h.totals
	slices.Sort(h.durations)
	at := func(q float64) float64 {
		if len(h.durations) == 0 {
			return 0
		}
		return milli(h.durations[min(int(q*float64(len(h.durations))), len(h.durations)-1)])
	}
	t.P50, t.P95, t.P99, t.Max = at(0.5), at(0.95), at(0.99), at(1)
	slices.SortFunc(h.slowest, func(a, b *httpphases.Request) int {
		if slower(a, b) {
			return -1
		}
		return 1
	})
	for _, r := range h.slowest {
		t.Slowest = append(t.Slowest, report.SlowRequest{
			Method: r.Method, URL: r.URL(), Status: r.Status, Outcome: r.Outcome.String(),
			StartMs: milli(r.Start), Duration: milli(r.Duration),
		})
	}
	return t
}

func milli(ns int64) float64 { return float64(ns) / 1e6 }

// slower says whether a is to be listed before b.
func slower(a, b *httpphases.Request) bool {
	return cmp.Or(cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) < 0
}

// A slowHeap has the fastest of the slowest requests on top.
type slowHeap []*httpphases.Request

func (s slowHeap) Len() int           { return len(s) }
func (s slowHeap) Less(i, j int) bool { return slower(s[j], s[i]) }
func (s slowHeap) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowHeap) Push(x any)        { *s = append(*s, x.(*httpphases.Request)) }
func (s *slowHeap) Pop() any {
	o := *s
	x := o[len(o)-1]
	*s = o[:len(o)-1]
	return x
}
