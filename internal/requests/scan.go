// Package requests finds the HTTP requests and activities of a nettrace, by feeding packages
// httpphases and activity, and ties what threads did to them, by package causality.
package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/nettrace"
)

// Class is what an event type is to a Scanner.
type class uint8

const (
	classNew    class = iota // not looked at yet
	classSkip                // tells nothing about requests
	classServed              // of ASP.NET Core or Kestrel, whose ids are given out at run time before .NET 5
	classNamed               // of the log or the bridge, whose ids always are
	classStart               // starts an activity that may lie between a request and its phases
	classNet                 // the first of the System.Net providers, in the order of netProviders
)

// A Scanner turns nettrace events into HTTP requests.
type Scanner struct {
	builder *httpphases.Builder
	decoder httpphases.Decoder
	reader  *nettrace.Reader
	class   []class
	batch   []httpphases.Event // decoded and not passed on yet
	work    chan []httpphases.Event
	free    chan []httpphases.Event
	done    chan struct{}      // closed when the builder has everything
	failed  *relay.Panic       // what the builder, or who takes requests, panicked with; known when done is closed
	exited  bool               // likewise: that ended its goroutine
	ended   *endedLine         // to who takes requests
	losses  int                // that were passed on, or are held
	rundown int64              // when the rundown began, if nothing of requests came since, in ticks; else 0
	held    []httpphases.Event // losses since then
	latest  int64              // of all events but those of the rundown, in ticks
	end     int64              // likewise in ns, when all is read
	seen    session
	origin  input.Origin
}

// Session is what a trace tells of how it was recorded.
type session struct {
	providers [4]int64 // events of the netProviders
	served    int64    // events of ASP.NET Core and Kestrel
	old       bool     // .NET before 5, which has no netProviders
}

// Batches of events that go from the goroutine that reads to the one that builds requests, and how
// many there are: on one processor few enough to stay in the cache, on several so many that who has
// work to do rarely waits for the other.
const (
	sizeAlone     = 256
	batchesAlone  = 4
	sizeBeside    = 512
	batchesBeside = 8
)

// NewScanner returns a Scanner that calls request and server, which may be nil, for
// every request that ends. They are called on a goroutine of the Scanner's, one after
// the other, until Finish or Stop returns; one of those must be called.
func NewScanner(r *nettrace.Reader, request func(*httpphases.Request), server func(*httpphases.ServerRequest)) *Scanner {
	size, batches := sizeAlone, batchesAlone
	if relay.Workers() > 1 {
		size, batches = sizeBeside, batchesBeside
	}
	ended := newEndedLine(request, server)
	s := &Scanner{
		reader:  r,
		ended:   ended,
		builder: httpphases.NewBuilder(&ended.options),
		batch:   make([]httpphases.Event, 0, size),
		work:    make(chan []httpphases.Event, batches),
		free:    make(chan []httpphases.Event, batches),
		done:    make(chan struct{}),
	}
	for range batches - 1 {
		s.free <- nil
	}
	go s.builds(&activity.Decoder{})
	return s
}

// builds takes what there is to build from. Where who takes requests ends the goroutine, as FailNow
// of a test does, another one lets who sends on.
func (s *Scanner) builds(ids *activity.Decoder) {
	ended := false
	defer func() {
		if !ended {
			s.exited = true
			s.free <- nil
			go s.builds(ids)
			return
		}
		close(s.done)
	}()
	for b := range s.work {
		if s.failed == nil && !s.exited {
			s.build(b, ids)
		}
		s.free <- b[:0]
	}
	ended = true
}

// build takes a batch of events. A panic of who takes requests is kept for the caller of Stop:
// nobody could recover it here, and it would end the whole program.
func (s *Scanner) build(b []httpphases.Event, ids *activity.Decoder) {
	defer func() {
		if what := recover(); what != nil {
			s.failed = relay.Recovered(what)
		}
	}()
	for i := range b {
		setPath(ids, &b[i])
		s.builder.Add(&b[i])
	}
}

var netProviders = [4]string{httpphases.ProviderHTTP, httpphases.ProviderDNS, httpphases.ProviderSockets, httpphases.ProviderSecurity}

func classify(ev *nettrace.Event) class {
	p := ev.Metadata.Provider
	for i, n := range netProviders {
		if n == p {
			return classNet + class(i)
		}
	}
	switch p {
	case httpphases.ProviderHosting, "Microsoft-AspNetCore-Hosting", httpphases.ProviderKestrel:
		return classServed
	case httpphases.ProviderLogging, httpphases.ProviderBridge:
		return classNamed
	}
	if ev.Opcode == 1 && !nettrace.OfRuntime(p) {
		return classStart
	}
	return classSkip
}

// beforeNet5 reports whether an event type is one of .NET Core 3: ASP.NET Core then had its
// ids given out at run time, and the last event of a trace told the command line only.
func beforeNet5(m *nettrace.Metadata) bool {
	switch m.Provider {
	case httpphases.ProviderHosting:
		return m.Name == "RequestStart" && m.EventID != 3
	case "Microsoft-DotNETCore-EventPipe":
		return m.Name == "ProcessInfo" && len(m.Fields) == 1
	}
	return false
}

// Event takes the next event of the reader.
func (s *Scanner) Event(ev *nettrace.Event) {
	if n := len(ev.Losses()); n > s.losses {
		for i := range ev.Losses()[s.losses:] {
			s.lost(&ev.Losses()[s.losses+i])
		}
		s.losses = n
	}
	_ = s.origin.Event(ev) // it takes all that comes
	// The rundown is written when the session is over.
	if ev.Metadata.Source != nettrace.SourceRundown {
		s.latest = max(s.latest, ev.Time)
	} else if s.rundown == 0 {
		s.rundown = ev.Time
	}
	n := len(s.batch)
	s.batch = s.batch[:n+1]
	if !s.decode(&s.batch[n], ev) {
		s.batch = s.batch[:n]
		return
	}
	s.ofRequests()
}

// lost takes a loss. What is lost of the rundown, for which a small buffer often has no room, is names, and
// nothing of requests.
func (s *Scanner) lost(l *nettrace.Loss) {
	pid := l.ProcessID
	if pid == 0 {
		pid = s.reader.Header().ProcessID
	}
	e := httpphases.Event{
		Kind: httpphases.EventsLost, Process: uint32(pid), Thread: l.CaptureThreadID,
		Length: s.reader.Nanos(l.After), Time: s.reader.Nanos(l.Before),
	}
	if s.rundown > 0 && l.After >= s.rundown {
		s.held = append(s.held, e)
		return
	}
	s.add(e)
}

// LostNames reports whether all losses that were seen are of the rundown, when all is read.
func (s *Scanner) LostNames() bool { return s.losses > 0 && s.losses == len(s.held) }

// ofRequests passes on an event that was decoded: a rundown before it was not the end.
func (s *Scanner) ofRequests() {
	s.full()
	for s.rundown = 0; len(s.held) > 0; s.held = s.held[1:] {
		s.add(s.held[0])
	}
}

func (s *Scanner) add(e httpphases.Event) {
	s.batch = append(s.batch, e)
	s.full()
}

// full passes the batch on if nothing fits into it any more.
func (s *Scanner) full() {
	size := cap(s.batch)
	if len(s.batch) < size {
		return
	}
	s.work <- s.batch
	if s.batch = <-s.free; s.batch == nil {
		s.batch = make([]httpphases.Event, 0, size)
	}
}

// Stop ends the Scanner without what is still in flight. It does nothing after Finish
// and on nil. It panics if who takes requests did.
func (s *Scanner) Stop() {
	if s == nil || s.work == nil {
		return
	}
	close(s.work)
	<-s.done
	s.work = nil
	switch {
	case s.failed != nil:
		defer panic(s.failed) // also where close has one of its own
	case s.exited:
		defer runtime.Goexit()
	}
	s.ended.close()
}

// decode reads into e what ev tells about requests but for the path of its id, and false if it is nothing.
func (s *Scanner) decode(e *httpphases.Event, ev *nettrace.Event) bool {
	i := ev.Metadata.Index
	for i >= len(s.class) {
		s.class = append(s.class, classNew)
	}
	c := s.class[i]
	if c == classNew {
		c = classify(ev)
		s.class[i] = c
		s.seen.old = s.seen.old || beforeNet5(ev.Metadata)
	}
	if c == classSkip {
		return false
	}
	m := ev.Metadata
	*e = httpphases.Event{} // and not a copy of one: it is large
	e.Time, e.Thread, e.Process = s.reader.Nanos(ev.Time), ev.ThreadID, uint32(ev.ProcessID)
	e.ID, e.Related = ev.ActivityID, ev.RelatedActivityID
	if c >= classNet {
		s.seen.providers[c-classNet]++
	}
	if c == classServed {
		s.seen.served++
	}
	name := m.Name
	if (c == classServed || c == classNamed) && name == "" {
		name = ev.EventName()
	}
	return s.decoder.Decode(e, m.Provider, m.EventID, ev.Version, name, ev.Opcode, ev.Payload)
}

// setPath decodes the id of the next event. Who builds requests does that, as who takes events has
// more to do.
func setPath(ids *activity.Decoder, e *httpphases.Event) {
	if e.ID == ([16]byte{}) {
		return
	}
	if p, ok := ids.Decode(activity.ID(e.ID)); ok {
		e.PathLen = uint8(copy(e.Path[:], p.Numbers()))
		over, _ := p.Overflow()
		e.Overflow = over != activity.Fits
	}
}

// Finish ends the scan.
func (s *Scanner) Finish() {
	if s.work != nil {
		s.work <- s.batch
		s.Stop()
		s.end = s.reader.Nanos(s.latest)
		s.builder.Finish(s.end) // what is still in flight is taken at once, and lasted until then
	}
}

// End returns the time of the last event of the trace before its rundown, ns; before Finish nobody
// knows it, and it is later than all.
func (s *Scanner) End() int64 { return cmp.Or(s.end, math.MaxInt64) }

// Origin returns what is known by now of the process: its name, its command line and the
// version of its runtime.
func (s *Scanner) Origin() (name, command, runtime string) {
	command, runtime = s.origin.Told()
	return input.ProcessName(command), command, runtime
}

// Header returns that of the trace.
func (s *Scanner) Header() *nettrace.Header { return s.reader.Header() }

// Stats returns what the Builder counted, after Finish.
func (s *Scanner) Stats() httpphases.Stats { return s.builder.Stats() }

// Info is what is known about the trace after a read.
type Info struct {
	Start     time.Time // wall clock of time 0, zero if not told
	ProcessID int
	Version   int   // of the nettrace
	End       int64 // ns: the last event
	Lost      uint64
	Events    int64
	Damage    []report.Damage
	Damages   int
}

// maxDamage is how many defects are kept; the others are counted.
const maxDamage = 1000

// ErrNotNettrace reports an input of another kind.
var ErrNotNettrace = errors.New("is not a nettrace file; HTTP requests and activities are in those only")

// Read reads a nettrace file and calls each for every event, in time order. An error
// means that the file could not be read at all; damage is in the Info.
func Read(ctx context.Context, in *input.File, begin func(*nettrace.Reader), each func(*nettrace.Event)) (*Info, error) {
	return ReadFor(ctx, in, caller{begin, each})
}

// Readable returns an error if requests and activities can't be in a file of its kind.
func Readable(in *input.File) error {
	switch in.Kind {
	case input.Nettrace, input.Netperf:
		return nil
	case input.Unknown:
		return in.NotATrace()
	}
	return fmt.Errorf("%s: %w; this is a %s trace: take the .nettrace that it was made from", in.Name, ErrNotNettrace, in.Kind)
}

// Defect notes a defect of the file.
func (i *Info) Defect(e *nettrace.FormatError) {
	i.Damages++
	if len(i.Damage) < maxDamage {
		i.Damage = append(i.Damage, report.Damage{Offset: e.Offset, Where: e.Where, What: fmt.Sprint(e.Err)})
	}
}

// Told notes what a reader knows at the end of a file, whose last event was then.
func (i *Info) Told(h *nettrace.Header, st nettrace.Stats, end int64) {
	i.Start, i.ProcessID, i.Version, i.End, i.Lost, i.Events = h.SyncTime, h.ProcessID, h.Version, end, st.Lost, st.Events
}

// ReadFor reads a nettrace file for consumers; see Read.
func ReadFor(ctx context.Context, in *input.File, consumers ...input.Consumer) (*Info, error) {
	if err := Readable(in); err != nil {
		return nil, err
	}
	info := &Info{}
	last := int64(0)
	at := func(ev *nettrace.Event) { last = max(last, ev.Time) }
	r, err := input.Read(ctx, in.Reader, info.Defect, append(slices.Clip(consumers), caller{func(*nettrace.Reader) {}, at})...)
	switch {
	case err != nil && (err == ctx.Err() || strings.HasPrefix(err.Error(), in.Name+":")):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	info.Told(r.Header(), r.Stats(), r.Nanos(last))
	return info, nil
}

// A caller is a consumer of two functions.
type caller struct {
	begin func(*nettrace.Reader)
	each  func(*nettrace.Event)
}

func (c caller) Begin(r *nettrace.Reader) { c.begin(r) }

func (c caller) Event(ev *nettrace.Event) error {
	c.each(ev)
	return nil
}

func (c caller) End() {}
