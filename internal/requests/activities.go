package requests

import (
	"context"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// Activities reads the start/stop activities of all event sources of a nettrace file.
func Activities(ctx context.Context, in *input.File, o *activity.Options) (*activity.Tree, *Info, error) {
	b := activity.NewBuilder(o)
	var reader *nettrace.Reader
	var names []string // by Metadata.Index: of starts and stops
	info, err := Read(ctx, in, func(r *nettrace.Reader) { reader = r }, func(ev *nettrace.Event) {
		op := activity.Opcode(0)
		if ev.Opcode == 1 || ev.Opcode == 2 {
			op = activity.Opcode(ev.Opcode)
		}
		if op == activity.Info && ev.ActivityID.IsZero() {
			return
		}
		m := ev.Metadata
		e := activity.Event{
			Time: reader.Nanos(ev.Time), Thread: ev.ThreadID, Process: uint32(ev.ProcessID), Provider: m.Provider,
			Opcode: op, ID: activity.ID(ev.ActivityID), Related: activity.ID(ev.RelatedActivityID),
		}
		if op != activity.Info {
			for m.Index >= len(names) {
				names = append(names, "")
			}
			if names[m.Index] == "" {
				if names[m.Index] = m.Name; m.Name == "" {
					names[m.Index] = ev.EventName()
				}
			}
			e.Name = names[m.Index]
			if m.Provider == activity.BridgeProvider && strings.Contains(e.Name, "Activity") {
				e.Span, _ = activity.DecodeSpan(ev.Payload)
			} else {
				e.Key, e.Label = activity.DecodeKey(m.Provider, ev.Payload)
			}
		}
		b.Add(&e)
	})
	if err != nil {
		return nil, nil, err
	}
	return b.Finish(), info, nil
}
