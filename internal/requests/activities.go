package requests

import (
	"context"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// Activities reads the start/stop activities of all event sources of a nettrace file. What does not
// fit into memory is on disk: their Err is to be asked when they were read.
func Activities(ctx context.Context, in *input.File, o *activity.Options) (*activity.Rows, *Info, error) {
	var own activity.Options
	if o != nil {
		own = *o
	}
	own.Spool = input.Aside(1)
	s := NewActivityScanner(&own)
	info, err := ReadFor(ctx, in, s)
	if err != nil {
		return nil, nil, err
	}
	return s.Rows(), info, nil
}

// An ActivityScanner is an input.Consumer that turns the events of all event sources into
// start/stop activities.
type ActivityScanner struct {
	builder *activity.Builder
	reader  *nettrace.Reader
	names   []string // by Metadata.Index: of starts and stops
	rows    *activity.Rows
}

// NewActivityScanner returns an ActivityScanner.
func NewActivityScanner(o *activity.Options) *ActivityScanner {
	return &ActivityScanner{builder: activity.NewBuilder(o)}
}

// Begin implements input.Consumer.
func (s *ActivityScanner) Begin(r *nettrace.Reader) { s.reader = r }

// Event implements input.Consumer.
func (s *ActivityScanner) Event(ev *nettrace.Event) error {
	op := activity.Opcode(0)
	if ev.Opcode == 1 || ev.Opcode == 2 {
		op = activity.Opcode(ev.Opcode)
	}
	if op == activity.Info && ev.ActivityID.IsZero() {
		return nil
	}
	m := ev.Metadata
	e := activity.Event{
		Time: s.reader.Nanos(ev.Time), Thread: ev.ThreadID, Process: uint32(ev.ProcessID), Provider: m.Provider,
		Opcode: op, ID: activity.ID(ev.ActivityID), Related: activity.ID(ev.RelatedActivityID),
	}
	if op != activity.Info {
		e.Name = s.name(ev)
		e.ReadPayload(ev.Payload)
	}
	s.builder.Add(&e)
	return nil
}

func (s *ActivityScanner) name(ev *nettrace.Event) string {
	m := ev.Metadata
	for m.Index >= len(s.names) {
		s.names = append(s.names, "")
	}
	if s.names[m.Index] == "" {
		if s.names[m.Index] = m.Name; m.Name == "" {
			s.names[m.Index] = ev.EventName()
		}
	}
	return s.names[m.Index]
}

// End implements input.Consumer.
func (s *ActivityScanner) End() { s.rows = s.builder.FinishRows() }

// Rows returns the activities, after End.
func (s *ActivityScanner) Rows() *activity.Rows { return s.rows }
