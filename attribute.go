package tracefix

import (
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// An attributor finds for whom threads worked, while a trace is read for its samples.
type attributor struct {
	rec  *requests.Recorder
	rows requests.Index
	scan *requests.Scanner
}

// newAttributor returns one that takes the events of a loading.
func newAttributor(o *load.Options) *attributor {
	a := &attributor{rec: requests.NewRecorder(o.DepthLimit)}
	o.Take = a.rec.Take
	return a
}

func (a *attributor) Begin(r *nettrace.Reader) {
	a.rec.Begin(r)
	a.scan = requests.NewScanner(r, a.rows.Client, a.rows.Server)
}

func (a *attributor) Event(ev *nettrace.Event) error {
	a.scan.Event(ev)
	return nil
}

func (a *attributor) End() { a.scan.Finish() }

// finish notes in p what was found.
func (a *attributor) finish(p *profile.Profile) {
	requests.Attribute(p, &a.rec.Log)
	a.rows.Name(p)
}
