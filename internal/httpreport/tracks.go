package httpreport

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A Drawing draws requests: one track per connection, a slice per request and the phases
// nested in it. Requests that overlap on a connection (HTTP/2, and those that waited
// for it) get further tracks of its name. What was served is drawn, too: on tracks of its own,
// since the trace tells no connection of it. It keeps what is drawn of a request, some hundred
// bytes, and not the request. The zero value is empty.
type Drawing struct {
	// Spool takes what some megabytes of memory have no room for; nil: all stays there. It is set
	// before the first request.
	Spool *profile.Spool

	log            profile.SliceLog
	client, served *spool.Sorter[drawn]
	names          []string // of tracks
	number         map[string]uint32
	end            int64           // of the last one
	made           []profile.Slice // scratch
}

// A drawn is a request of either side that has become slices.
type drawn struct {
	start, end int64
	at         profile.SlicePlace
	pid        uint32
	name       uint32 // of its track, in Drawing.names
}

// Client adds a request that the process made.
func (d *Drawing) Client(r *httpphases.Request) {
	end := knownEnd(r)
	d.end = max(d.end, end)
	d.made = appendSlices(d.made[:0], r, end)
	d.add(&d.client, &drawn{r.Start, end, d.keep(), r.Process, d.name(trackName(r))})
}

// Server adds a request that the process served.
func (d *Drawing) Server(r *httpphases.ServerRequest) {
	end := r.Start + r.Duration
	d.end = max(d.end, end)
	d.made = append(d.made[:0], servedSlice(r))
	d.add(&d.served, &drawn{r.Start, end, d.keep(), r.Process, d.name("HTTP served")})
}

// add adds a request to those of its side, which come in the order of their ends and are drawn in
// that of their starts.
func (d *Drawing) add(side **spool.Sorter[drawn], x *drawn) {
	if *side == nil {
		*side = spool.SorterIn(d.Spool, func(x *drawn) int64 { return x.start })
	}
	(*side).Add(x)
}

// keep keeps the slices that were made, and returns where they are.
func (d *Drawing) keep() profile.SlicePlace {
	d.log.Spool = d.Spool
	return d.log.Add(d.made)
}

func (d *Drawing) name(s string) uint32 {
	n, ok := d.number[s]
	if !ok {
		if d.number == nil {
			d.number = map[string]uint32{}
		}
		n = uint32(len(d.names))
		d.names, d.number[s] = append(d.names, s), n
	}
	return n
}

// Tracks returns the tracks. process, which may be nil, tells the owner of a track. Nothing is
// added any more.
func (d *Drawing) Tracks(process func(pid uint32) *profile.Process) []*profile.Track {
	var l lanes
	for _, side := range []*spool.Sorter[drawn]{d.client, d.served} {
		if side == nil {
			continue
		}
		for r := range side.Ascending {
			l.drawn(r.pid, d.names[r.name], r.start, r.end).add(r.at)
		}
	}
	d.client, d.served, d.number, d.made = nil, nil, nil, nil
	d.log.Done()
	return l.tracks(&d.log, process)
}

// lanes spread what overlaps under one name over several tracks.
type lanes struct {
	groups map[string]*laneGroup
	order  []*laneGroup
}

type laneGroup struct {
	name       string
	pid        uint32
	lanes      []*lane
	busy, free laneHeap // free ones have no end
}

// A lane is what is drawn on one track: places in a SliceLog, by how much each is more than the one
// before, as varints.
type lane struct {
	places []byte
	last   profile.SlicePlace
}

func (l *lane) add(at profile.SlicePlace) {
	l.places = binary.AppendVarint(l.places, int64(at-l.last))
	l.last = at
}

type laneEnd struct {
	end  int64
	lane int
}

// laneHeap has the lane on top that ends first, of several the first one.
type laneHeap []laneEnd

func (h laneHeap) Len() int { return len(h) }

func (h laneHeap) Less(i, k int) bool {
	return h[i].end < h[k].end || h[i].end == h[k].end && h[i].lane < h[k].lane
}

func (h laneHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

func (h *laneHeap) Push(x any) { *h = append(*h, x.(laneEnd)) }

func (h *laneHeap) Pop() any {
	l := *h
	x := l[len(l)-1]
	*h = l[:len(l)-1]
	return x
}

// drawn is the first lane of that name that is free at start. What is asked
// for must come in order of start.
func (l *lanes) drawn(pid uint32, name string, start, end int64) *lane {
	key := strconv.Itoa(int(pid)) + " " + name
	g := l.groups[key]
	if g == nil {
		g = &laneGroup{name: name, pid: pid}
		if l.groups == nil {
			l.groups = map[string]*laneGroup{}
		}
		l.groups[key] = g
		l.order = append(l.order, g)
	}
	for len(g.busy) > 0 && g.busy[0].end <= start {
		heap.Push(&g.free, laneEnd{lane: heap.Pop(&g.busy).(laneEnd).lane})
	}
	i := len(g.lanes)
	if len(g.free) > 0 {
		i = heap.Pop(&g.free).(laneEnd).lane
	} else {
		g.lanes = append(g.lanes, &lane{})
	}
	heap.Push(&g.busy, laneEnd{max(end, start+1), i})
	return g.lanes[i]
}

func (l *lanes) tracks(log *profile.SliceLog, process func(pid uint32) *profile.Process) []*profile.Track {
	var tracks []*profile.Track
	for _, g := range l.order {
		for i, lane := range g.lanes {
			name := g.name
			if i > 0 {
				name = fmt.Sprintf("%s (%d)", g.name, i+1)
			}
			t := &profile.Track{Name: name, Group: "http", Nested: true, Err: log.Spool.Err}
			if process != nil {
				t.Process = process(g.pid)
			}
			t.Slices = func(yield func(*profile.Slice) bool) {
				r := log.Reader()
				at := profile.SlicePlace(0)
				for rest := lane.places; len(rest) > 0; {
					more, n := binary.Varint(rest)
					at, rest = at+profile.SlicePlace(more), rest[n:]
					made := r.Read(at)
					for i := range made {
						if !yield(&made[i]) {
							return
						}
					}
				}
			}
			tracks = append(tracks, t)
		}
	}
	return tracks
}

// servedSlice draws a request that was served. "client" is the id of the request that
// asked, where that is in the trace.
func servedSlice(r *httpphases.ServerRequest) profile.Slice {
	s := profile.Slice{
		Start: r.Start, Dur: r.Duration, Category: "http.server", Open: !r.HasDuration,
		Name: cmp.Or(strings.TrimSpace(r.Method+" "+r.Target), "request"),
		Args: []profile.Arg{{Key: "outcome", Value: r.Outcome.String()}},
	}
	for _, f := range []struct{ k, v string }{
		{"marks", r.Marks().String()}, {"route", r.Route}, {"activity", pathText(r.Path)}, {"trace_id", r.TraceID}, {"span_id", r.SpanID},
	} {
		if f.v != "" {
			s.Args = append(s.Args, profile.Arg{Key: f.k, Value: f.v})
		}
	}
	s.Args = append(s.Args, profile.Arg{Key: "id", Value: int64(r.ID)})
	if r.Status != 0 {
		s.Args = append(s.Args, profile.Arg{Key: "status", Value: int64(r.Status)})
	}
	if r.Client != 0 {
		s.Args = append(s.Args, profile.Arg{Key: "client", Value: int64(r.Client)})
	}
	return s
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

func appendSlices(dst []profile.Slice, r *httpphases.Request, end int64) []profile.Slice {
	root := profile.Slice{Start: r.Start, Dur: end - r.Start, Name: title(r), Category: "http", Open: !r.HasDuration || r.StartUnknown}
	arg := func(k string, v any) { root.Args = append(root.Args, profile.Arg{Key: k, Value: v}) }
	arg("outcome", r.Outcome.String())
	for _, f := range []struct{ k, v string }{
		{"url", r.URL()}, {"version", r.Version}, {"error", r.Error}, {"error_type", r.ErrorType},
		{"error_cause", r.ErrorCause}, {"marks", r.Marks().String()}, {"activity", pathText(r.Path)},
		{"trace_id", r.TraceID}, {"span_id", r.SpanID}, {"failed_attempts", strings.Join(failedAttempts(r), "; ")},
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
		s := profile.Slice{Start: p.Start, Dur: p.Duration, Name: p.Name.String(), Category: "http.phase", Open: p.Open}
		if p.Error != "" {
			s.Args = append(s.Args, profile.Arg{Key: "error", Value: p.Error})
		}
		if p.Inferred {
			s.Args = append(s.Args, profile.Arg{Key: "marks", Value: httpphases.Inferred.String()})
		}
		if p.Name == httpphases.RedirectHop && redirect < len(r.Redirects) {
			d := &r.Redirects[redirect]
			redirect++
			s.Args = append(s.Args, profile.Arg{Key: "from", Value: d.From}, profile.Arg{Key: "to", Value: d.URL}, profile.Arg{Key: "status", Value: int64(d.Status)})
			dst = append(dst, s)
			for _, q := range nest(d.Phases, d.Start+d.Duration) {
				dst = append(dst, profile.Slice{Start: q.Start, Dur: q.Duration, Name: q.Name.String(), Category: "http.phase", Open: q.Open})
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
	text.SortRows(l, func(a, b *httpphases.Phase) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Duration, a.Duration))
	})
	return l
}

// chromiumWriter draws requests as a profile without samples.
type chromiumWriter struct {
	w     io.Writer
	o     Options
	drawn Drawing
}

func newChromium(w io.Writer, o *Options) Writer {
	return &chromiumWriter{w: w, o: *o, drawn: Drawing{Spool: o.Spool}}
}

func (w *chromiumWriter) Request(r *httpphases.Request) error {
	w.drawn.Client(r)
	return nil
}

func (w *chromiumWriter) Server(s *httpphases.ServerRequest) error {
	w.drawn.Server(s)
	return nil
}

func (w *chromiumWriter) Close(*Summary) error {
	p := &profile.Profile{
		Meta:  profile.Meta{Source: w.o.Source, Format: "nettrace", Start: w.o.Start, End: w.drawn.end},
		Table: profile.NewTable(),
	}
	procs := map[uint32]*profile.Process{}
	p.Tracks = w.drawn.Tracks(func(pid uint32) *profile.Process {
		q := procs[pid]
		if q == nil {
			q = &profile.Process{PID: int64(pid)}
			procs[pid] = q
			p.Processes = append(p.Processes, q)
		}
		return q
	})
	return export.Chromium(w.w, p, export.Options{Exporter: w.o.Exporter})
}
