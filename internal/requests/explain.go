package requests

import (
	"cmp"
	"math"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Bounds of what is told of one request.
const (
	maxHot      = 5
	maxBlocked  = 3
	maxFrames   = 24
	maxChildren = 100
	maxSteps    = 500
)

// maxNames is how many names of activities are made once only.
const maxNames = 1 << 10

// How long things are kept, ns: activities that have ended and that nobody asks for; and what
// threads did for nobody, and pauses, in the time of one that is asked for later: of its first part
// they are not known then.
const (
	forget     = int64(60e9)
	forgetOpen = int64(1800e9)
)

// An Explainer tells where the time of requests went, of each once. It goes through the log as far as the
// requests that it is asked for, which come about in the order of their ends.
type Explainer struct {
	// Steps says that explanations tell the time of a request step by step, too.
	Steps bool
	// Pairs is for Others, where who served whom is not known before requests are explained.
	Pairs *Pairs

	x      *causality.Explainer
	wants  func(*causality.Activity) bool
	rec    *Recorder
	table  *profile.Table
	log    *causality.LogReader
	next   causality.Event
	more   bool
	roots  map[requestKey]*causality.Activity
	names  map[[2]string]string // of activities
	swept  int                  // as many roots are swept
	dropAt int64                // when what was before all of them is dropped
	open   int64                // ns for which what was before one that has not ended is kept
}

// NewExplainer returns one for the requests that a Recorder saw, whose stacks are those of a
// table. It empties the log.
func NewExplainer(t *profile.Table, rec *Recorder) *Explainer {
	return newExplainer(t, rec, func(a *causality.Activity) bool { return a.Call || isServed(a) }, true)
}

// newExplainer returns one for activities. forgets says that some of them may never be asked for,
// and that of the first part of one that takes very long less may be known.
func newExplainer(t *profile.Table, rec *Recorder, wants func(*causality.Activity) bool, forgets bool) *Explainer {
	x := &Explainer{table: t, rec: rec, wants: wants, swept: math.MaxInt, dropAt: forget, open: math.MaxInt64}
	if forgets {
		x.swept, x.open = 1<<12, forgetOpen
	}
	x.log, x.roots, x.names = rec.Log.Read(), map[requestKey]*causality.Activity{}, map[[2]string]string{}
	o := Options(x.table)
	o.Unsampled = !rec.Log.Sampled()
	o.Interval, o.OnCPU = rec.Log.Interval, rec.Log.OnCPU()
	x.x = causality.NewExplainer(&causality.ExplainOptions{Options: o, Root: x.root, Processors: rec.reader.Header().Processors})
	x.more = x.log.Next(&x.next)
	return x
}

func isServed(a *causality.Activity) bool {
	return a.Name == "Request" && (a.Provider == httpphases.ProviderHosting || a.Provider == "Microsoft-AspNetCore-Hosting")
}

// root takes the activities that are wanted.
func (x *Explainer) root(a *causality.Activity) bool {
	if !x.wants(a) {
		return false
	}
	x.roots[requestKey{a.Process, a.ID, a.Start}] = a
	if len(x.roots) >= x.swept {
		for k, old := range x.roots {
			if old.Stopped && old.Stop < a.Start-forget {
				delete(x.roots, k)
			}
		}
		x.swept = 2*len(x.roots) + 1<<12
	}
	if a.Start >= x.dropAt {
		oldest := a.Start
		for _, old := range x.roots {
			oldest = min(oldest, old.Start)
		}
		x.x.Drop(max(oldest, a.Start-x.open))
		x.dropAt = a.Start + forget
	}
	return true
}

// until goes through the log up to a time, and on while work before it is not known yet.
func (x *Explainer) until(t int64) {
	for x.more && (x.next.Time <= t || !x.x.Settled(t)) {
		x.x.Add(&x.next)
		if x.more = x.log.Next(&x.next); !x.more {
			x.x.Finish()
		}
	}
}

// Findings are those of the Recorder.
func (x *Explainer) Findings() []Finding { return x.rec.Findings() }

// OnlyCPU reports whether the recording tells when threads were on a CPU and not when they were off.
func (x *Explainer) OnlyCPU() bool { return x.rec.Log.OnCPU() && !x.rec.Log.OffCPU() }

// Err is the error of the log, which is to be asked when all is explained: what lies behind it was not seen.
func (x *Explainer) Err() error { return x.rec.Err() }

// Client explains a request that the process made.
func (x *Explainer) Client(r *httpphases.Request) *httpphases.Explanation {
	if !r.HasDuration {
		return nil
	}
	var wire []causality.Span // the other side is at work, or the network
	for _, p := range r.Phases {
		switch p.Name {
		case httpphases.Wait, httpphases.ResponseHeaders, httpphases.ResponseContent:
			if !p.Open {
				wire = append(wire, causality.Span{From: p.Start, To: p.End()})
			}
		}
	}
	e := x.explain(requestKey{r.Process, r.Activity, r.StartEvent}, r.Start, r.Start+r.Duration, wire)
	if r.SpanOnly { // what it waited for is not told
		untellAwaits(e)
	}
	return e
}

// untellAwaits makes the time that e was not seen to be worked for unknown.
func untellAwaits(e *httpphases.Explanation) {
	e.Time.Unknown, e.Time.Await = e.Time.Unknown+e.Time.Await, 0
	for i := range e.Steps {
		if s := &e.Steps[i]; s.Cause == causality.ByAwait.String() {
			s.Cause = causality.ByUnknown.String()
		}
	}
}

// Server explains a request that the process served.
func (x *Explainer) Server(r *httpphases.ServerRequest) *httpphases.Explanation {
	if !r.HasDuration {
		return nil
	}
	return x.explain(requestKey{r.Process, r.Activity, r.Start}, r.Start, r.Start+r.Duration, nil)
}

// explain explains the activity of a request from one time to another.
func (x *Explainer) explain(k requestKey, from, to int64, wire []causality.Span) *httpphases.Explanation {
	x.until(to)
	root := x.roots[k]
	delete(x.roots, k)
	defer x.x.Forget(root)
	e, ok := x.x.Explain(root, from, to, wire, x.Steps)
	if !ok {
		return x.untold(from, to, wire)
	}
	t := &e.Time
	out := &httpphases.Explanation{
		Time: httpphases.TimeByCause{
			GC: t.GC, CPU: t.CPU, Pool: t.Pool, OtherSide: t.Other, Unknown: t.Unknown, Await: t.Await,
			Lock: t.Of(causality.Lock), Sleep: t.Of(causality.Sleep), Wait: t.Of(causality.Wait), IO: t.Of(causality.IO), Other: t.Of(causality.Blocked),
		},
		CPUTotal:  t.Total,
		PoolTotal: t.Queued, CompileTotal: t.Compiled, Compiled: t.Methods,
	}
	for _, v := range e.Exceptions {
		out.Exceptions = append(out.Exceptions, httpphases.Exception{Type: v.Type, Message: v.Message, Cause: v.Cause, At: v.At, Count: v.Count})
	}
	for _, h := range e.Hot[:min(len(e.Hot), maxHot)] {
		out.Hot = append(out.Hot, httpphases.MethodTime{Method: x.table.MethodOf(h.Method).Full(), Time: h.Time})
	}
	for _, s := range e.Stuck[:min(len(e.Stuck), maxBlocked)] {
		out.Blocked = append(out.Blocked, httpphases.StackTime{Kind: s.State.String(), Time: s.Time, Frames: x.frames(s.Stack)})
	}
	if n := min(len(e.Children), maxChildren); n > 0 {
		out.Children = make([]httpphases.Child, n)
	}
	ids := x.x.Engine().IDs()
	for i := range out.Children {
		c := e.Children[i]
		_, path := ids.Text(c.ID)
		out.Children[i] = httpphases.Child{Name: x.name(c), Path: path, Start: c.Start, Duration: c.Stop - c.Start, HasDuration: c.Stopped}
	}
	for _, s := range e.Steps[:min(len(e.Steps), maxSteps)] {
		out.Steps = append(out.Steps, httpphases.Step{From: s.From, To: s.To, Cause: s.Cause.String(), Thread: s.Thread})
	}
	if !x.rec.Log.Sampled() && !x.rec.Log.Awaited() {
		untellAwaits(out) // a thread may have worked for it unseen
	}
	return out
}

// untold explains a request of which nothing but its own phases is known.
func (x *Explainer) untold(from, to int64, wire []causality.Span) *httpphases.Explanation {
	e := &httpphases.Explanation{}
	until := func(at int64, c causality.Cause, ns *int64) {
		if at = min(at, to); at <= from {
			return
		}
		*ns += at - from
		if n := len(e.Steps); n > 0 && e.Steps[n-1].Cause == c.String() {
			e.Steps[n-1].To = at
		} else if x.Steps {
			e.Steps = append(e.Steps, httpphases.Step{From: from, To: at, Cause: c.String()})
		}
		from = at
	}
	for _, w := range wire {
		until(w.From, causality.ByUnknown, &e.Time.Unknown)
		until(w.To, causality.ByOtherSide, &e.Time.OtherSide)
	}
	until(to, causality.ByUnknown, &e.Time.Unknown)
	return e
}

// name returns what an activity is called: Provider/Name, of a span Source/Name.
func (x *Explainer) name(a *causality.Activity) string {
	if a.Label != "" && a.Provider == activity.BridgeProvider {
		return a.Label
	}
	k := [2]string{a.Provider, cmp.Or(a.Label, a.Name)}
	name, ok := x.names[k]
	if !ok {
		name = strings.TrimPrefix(a.Provider+"/"+k[1], "/")
		if len(x.names) < maxNames {
			x.names[k] = name
		}
	}
	return name
}

// frames returns the names of the innermost frames of a stack.
func (x *Explainer) frames(s profile.StackID) (names []string) {
	for ; s != 0 && len(names) < maxFrames; s = x.table.Parent(s) {
		names = append(names, x.table.MethodOf(x.table.Frame(s)).Full())
	}
	return names
}
