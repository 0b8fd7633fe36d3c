package tracefix

import (
	"cmp"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/profile"
)

// An attributor finds for whom threads worked, while a trace is read for its samples. rec is a
// consumer of that reading, and rows is told of its requests.
type attributor struct {
	rec  *requests.Recorder
	rows requests.Index
}

// newAttributor returns one that takes the events of a loading.
func newAttributor(o *load.Options) *attributor {
	a := &attributor{rec: requests.NewRecorder(o.DepthLimit)}
	o.Take = a.rec.Take
	return a
}

// finish notes in p what was found.
func (a *attributor) finish(p *profile.Profile) error {
	requests.Attribute(p, &a.rec.Log)
	err := a.rows.Name(p)
	p.Activities.Done()
	return cmp.Or(err, a.rec.Err())
}
