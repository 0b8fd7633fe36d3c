package work

import (
	"encoding/binary"

	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A Recorder keeps of the events of a trace what tells who worked for whom.
type Recorder struct {
	Log causality.Log
	// Limit is the number of frames at which stacks are cut; 0: they are not.
	Limit  int
	reader *nettrace.Reader
}

// Begin takes the reader of the events.
func (r *Recorder) Begin(reader *nettrace.Reader) { r.reader = reader }

// Take keeps an event.
func (r *Recorder) Take(ev *nettrace.Event, ns int64, stack func() profile.StackID) {
	m := ev.Metadata
	e := causality.Event{Time: ns, Process: uint32(ev.ProcessID), Thread: ev.ThreadID}
	if ev.Thread != nil {
		e.Thread = ev.Thread.ID
	}
	switch {
	case m.Source == nettrace.SourceRundown, m.Source == nettrace.SourceSystem, m.Role == nettrace.RolePageFault:
		return
	case m.Role == nettrace.RoleCPU:
		e.Kind, e.OnCPU = causality.Sample, true
	case m.Role == nettrace.RoleContextSwitch:
		e.Kind, e.External, e.Blocked = causality.Sample, true, r.offCPU(ev, ns)
	case m.Source == nettrace.SourceEvents: // others of the machine
	default:
		causality.Decode(&e, ev)
	}
	if ev.Stack.Len() > 0 {
		e.Stack = stack()
		e.Cut = r.Limit > 0 && ev.Stack.Len() >= r.Limit
	}
	r.Log.Add(&e)
}

// offCPU returns for how long a thread was off its processor when it came back.
func (r *Recorder) offCPU(ev *nettrace.Event, ns int64) int64 {
	if v, n := binary.Uvarint(ev.Payload); n > 0 && v < 1<<62 {
		return max(0, ns-r.reader.Nanos(ev.Time-int64(v)))
	}
	return 0
}
