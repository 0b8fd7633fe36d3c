package info

import (
	"strconv"
	"testing"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// TestActivityGrowth: each provider begins one activity.
func TestActivityGrowth(t *testing.T) {
	tracetest.Growth(t, 1000, func(n int) {
		g := &nettraceReader{f: &Facts{File: "x.nettrace", Samples: &Samples{}}}
		for i := range n {
			name := "Lab-" + strconv.Itoa(i)
			g.tallies = append(g.tallies, &tally{meta: &nettrace.Metadata{Provider: name}, events: 1, starts: 1})
			g.f.Providers = append(g.f.Providers, &Provider{Name: name})
		}
		g.activityVerdict()
	})
}
