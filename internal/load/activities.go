package load

import "github.com/tracefix/tracefix/nettrace"

type activities struct{}

func newActivities(k *tracker) *activities { return &activities{} }

func (a *activities) event(ev *nettrace.Event, now int64, t *thread) bool { return false }

func (a *activities) finish(end int64) {}
