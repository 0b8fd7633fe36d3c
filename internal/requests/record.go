package requests

import (
	"time"

	"cmp"

	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A Recorder keeps of the events of a trace what tells who worked for whom.
type Recorder struct {
	Log    causality.Log
	limit  int
	reader *nettrace.Reader
}

// depthLimit is the number of frames at which the runtime cuts stacks.
const depthLimit = 100

// NewRecorder returns one for stacks that are cut at a number of frames; 0: at that at which
// the runtime cuts them.
func NewRecorder(limit int) *Recorder {
	r := &Recorder{limit: cmp.Or(limit, depthLimit)}
	r.Log.Spool = input.Aside(logMemory)
	return r
}

// logMemory is what the log of 30 MB of a web service takes.
const logMemory = 8 << 20

// Err is the error of events that were put aside and could not be read again: those behind them are
// missing. It is to be asked when they were used.
func (r *Recorder) Err() error { return r.Log.Spool.Err() }

// Begin takes the reader of the events. Begin, Event and End are those of a consumer of the
// same reading that calls Take.
func (r *Recorder) Begin(reader *nettrace.Reader) {
	r.reader, r.Log.Interval = reader, int64(reader.Header().SamplingInterval)
	if r.Log.Interval > int64(time.Second) { // none is so slow
		r.Log.Interval = 0
	}
}

// Event does nothing: Take does.
func (r *Recorder) Event(*nettrace.Event) error { return nil }

// End does nothing.
func (r *Recorder) End() {}

// Take keeps an event.
func (r *Recorder) Take(ev *nettrace.Event, ns int64, stack func() profile.StackID) {
	m := ev.Metadata
	e := causality.Event{Time: ns, Process: uint32(ev.ProcessID), Thread: ev.ThreadID}
	if ev.Thread != nil {
		e.Thread = ev.Thread.ID
	}
	switch {
	case m.Role == nettrace.RoleSample: // as Decode does, without asking for the provider's name: most events are samples
		e.Kind, e.External = causality.Sample, ev.SampleType() != nettrace.SampleManaged
	case m.Source == nettrace.SourceRundown, m.Source == nettrace.SourceSystem, m.Role == nettrace.RolePageFault:
		return
	case m.Role == nettrace.RoleCPU:
		e.Kind, e.OnCPU = causality.Sample, true
	case m.Role == nettrace.RoleContextSwitch:
		e.Kind, e.External, e.Blocked = causality.Sample, true, r.reader.SwitchedOut(ev)
	case m.Source == nettrace.SourceEvents: // others of the machine
	default:
		causality.Decode(&e, ev)
		if e.Kind == causality.Start {
			e.Call, e.Span = httpphases.Call(e.Provider, e.Name, ev.Payload)
			e.Text = httpphases.ServedRoute(e.Provider, e.Name, ev.Payload)
		}
	}
	if ev.Stack.Len() > 0 {
		e.Stack = stack()
		e.Cut = ev.Stack.Len() >= r.limit && r.reader.Header().Version < 6
	}
	r.Log.Add(&e)
}
