package httpout

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/trace"
)

// Tracks draws requests: one track per connection, a slice per request and the phases
// nested in it. Requests that overlap on a connection (HTTP/2, and those that waited
// for it) get further tracks of its name. process, which may be nil, tells the owner
// of a track.
func Tracks(list []*httpphases.Request, process func(pid uint32) *trace.Process) []*trace.Track {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *httpphases.Request) int { return cmp.Compare(a.Start, b.Start) })
	type lane struct {
		slices []trace.Slice
		end    int64
	}
	type group struct {
		name  string
		pid   uint32
		lanes []*lane
	}
	groups := map[string]*group{}
	var order []*group
	for _, r := range list {
		end := knownEnd(r)
		name := trackName(r)
		key := strconv.Itoa(int(r.Process)) + " " + name
		g := groups[key]
		if g == nil {
			g = &group{name: name, pid: r.Process}
			groups[key] = g
			order = append(order, g)
		}
		var l *lane
		for _, x := range g.lanes {
			if x.end <= r.Start {
				l = x
				break
			}
		}
		if l == nil {
			l = &lane{}
			g.lanes = append(g.lanes, l)
		}
		l.slices = appendSlices(l.slices, r, end)
		l.end = max(end, r.Start+1)
	}
	var tracks []*trace.Track
	for _, g := range order {
		for i, l := range g.lanes {
			name := g.name
			if i > 0 {
				name = fmt.Sprintf("%s (%d)", g.name, i+1)
			}
			t := &trace.Track{Name: name, Group: "http", Nested: true}
			if process != nil {
				t.Process = process(g.pid)
			}
			t.Slices = func(yield func(*trace.Slice) bool) {
				for i := range l.slices {
					if !yield(&l.slices[i]) {
						return
					}
				}
			}
			tracks = append(tracks, t)
		}
	}
	return tracks
}

// knownEnd is the end of r, or of what is known of it.
func knownEnd(r *httpphases.Request) int64 {
	if r.HasDuration {
		return r.Start + r.Duration
	}
	end := r.Start
	for i := range r.Phases {
		end = max(end, r.Phases[i].End())
	}
	return end
}

func trackName(r *httpphases.Request) string {
	c := r.Connection
	host := hostText(r)
	if n := len(r.Redirects); n > 0 { // the connection is that of the last hop
		if scheme, name, port := splitAuthority(r.Redirects[n-1].URL); name != "" {
			host = hostText(&httpphases.Request{Scheme: scheme, Host: name, Port: port})
		}
	}
	switch {
	case c == nil:
		return "HTTP " + host + ", no connection"
	case c.HasID:
		return "HTTP " + host + " #" + strconv.FormatInt(c.ID, 10)
	}
	return "HTTP " + host
}

func title(r *httpphases.Request) string {
	t := r.Target
	if r.Host != "" {
		t = r.Host + t
	}
	if r.Method != "" {
		t = r.Method + " " + t
	}
	if t == "" {
		t = "request"
	}
	return t
}

func appendSlices(dst []trace.Slice, r *httpphases.Request, end int64) []trace.Slice {
	root := trace.Slice{Start: r.Start, Dur: end - r.Start, Name: title(r), Category: "http", Open: !r.HasDuration || r.StartUnknown}
	arg := func(k string, v any) { root.Args = append(root.Args, trace.Arg{Key: k, Value: v}) }
	arg("outcome", r.Outcome.String())
	for _, f := range []struct{ k, v string }{
		{"url", r.URL()}, {"version", r.Version}, {"error", r.Error}, {"error_type", r.ErrorType}, {"activity", pathText(r.Path)},
		{"trace_id", r.TraceID}, {"span_id", r.SpanID},
	} {
		if f.v != "" {
			arg(f.k, f.v)
		}
	}
	arg("id", int64(r.ID))
	if r.Status != 0 {
		arg("status", int64(r.Status))
	}
	if c := r.Connection; c != nil {
		if c.HasID {
			arg("connection", c.ID)
		}
		if c.NewTold {
			arg("connection_new", c.New)
		}
		if c.Remote != "" {
			arg("remote", c.Remote)
		}
		if c.Proxy != "" {
			arg("proxy", c.Proxy)
		}
	}
	dst = append(dst, root)
	redirect := 0
	for _, p := range nest(r.Phases, end) {
		s := trace.Slice{Start: p.Start, Dur: p.Duration, Name: p.Name.String(), Category: "http.phase", Open: p.Open}
		if p.Error != "" {
			s.Args = append(s.Args, trace.Arg{Key: "error", Value: p.Error})
		}
		if p.Name == httpphases.RedirectHop && redirect < len(r.Redirects) {
			d := &r.Redirects[redirect]
			redirect++
			s.Args = append(s.Args, trace.Arg{Key: "from", Value: d.From}, trace.Arg{Key: "to", Value: d.URL}, trace.Arg{Key: "status", Value: int64(d.Status)})
			dst = append(dst, s)
			for _, q := range nest(d.Phases, d.Start+d.Duration) {
				dst = append(dst, trace.Slice{Start: q.Start, Dur: q.Duration, Name: q.Name.String(), Category: "http.phase", Open: q.Open})
			}
			continue
		}
		dst = append(dst, s)
	}
	return dst
}

// nest returns phases in order of start, the outer one first, so that they nest: what
// runs over the ends of its queue is clipped to it.
func nest(list []httpphases.Phase, end int64) []httpphases.Phase {
	l := slices.Clone(list)
	for i := range l {
		if l[i].Open {
			l[i].Duration = max(end-l[i].Start, 0)
		}
	}
	for i := range l {
		if p := &l[i]; p.Name >= httpphases.DNS && p.Name <= httpphases.TLS {
			for _, q := range list {
				if q.Name == httpphases.Queue && p.Start < q.End() && p.End() > q.Start {
					e := min(p.End(), q.End())
					p.Start = max(p.Start, q.Start)
					p.Duration = e - p.Start
				}
			}
		}
	}
	slices.SortStableFunc(l, func(a, b httpphases.Phase) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Duration, a.Duration))
	})
	return l
}

// chromiumWriter draws requests as a profile without samples.
type chromiumWriter struct {
	w    io.Writer
	o    Options
	list []*httpphases.Request
}

func newChromium(w io.Writer, o *Options) Writer { return &chromiumWriter{w: w, o: *o} }

func (w *chromiumWriter) Request(r *httpphases.Request) error {
	r.Detail = "" // long, and not drawn
	w.list = append(w.list, r)
	return nil
}

func (w *chromiumWriter) Server(*httpphases.ServerRequest) error { return nil }

func (w *chromiumWriter) Close(*Summary) error {
	p := &trace.Profile{
		Meta:  trace.Meta{Source: w.o.Source, Format: "nettrace", Start: w.o.Start},
		Table: trace.NewTable(),
	}
	procs := map[uint32]*trace.Process{}
	p.Tracks = Tracks(w.list, func(pid uint32) *trace.Process {
		q := procs[pid]
		if q == nil {
			q = &trace.Process{PID: int64(pid)}
			procs[pid] = q
			p.Processes = append(p.Processes, q)
		}
		return q
	})
	for _, r := range w.list {
		p.Meta.End = max(p.Meta.End, knownEnd(r))
	}
	return export.Chromium(w.w, p, export.Options{Exporter: w.o.Exporter})
}
