package info

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

// What would tell more of where the time of requests went is named, and nothing that is there.
func TestCausesNameWhatLacks(t *testing.T) {
	of := func(provider string, id int) *tally {
		return &tally{meta: &nettrace.Metadata{Provider: provider, EventID: id, Opcode: 1}, events: 1, starts: 1, linked: true}
	}
	request, sample, task := of(httpphases.ProviderHosting, 3), of(nettrace.ProviderSampler, 0), of(nettrace.ProviderTasks, 17)
	stop, exception := of(nettrace.ProviderRuntime, restartEnd), of(nettrace.ProviderRuntime, 80)
	for _, c := range []struct {
		name    string
		tallies []*tally
		state   string
		add     string
	}{
		{"all", []*tally{request, sample, task, stop}, Good, ""},
		{"no samples", []*tally{request, task, stop}, Partly, nettrace.ProviderSampler},
		{"no task events", []*tally{request, sample, stop}, Partly, nettrace.ProviderTasks + ":0x1FF:4"},
		{"no runtime", []*tally{request, sample, task}, Partly, nettrace.ProviderRuntime + ":0x1C001:4"},
		{"no collector", []*tally{request, sample, task, exception}, Partly, nettrace.ProviderRuntime + ":0x1:4"},
		{"without samples nothing stops", []*tally{request, task, exception}, Partly, nettrace.ProviderSampler},
	} {
		g := &nettraceReader{f: &Facts{File: "x.nettrace"}, tallies: c.tallies}
		v, ok := g.causeVerdict()
		require.True(t, ok, c.name)
		assert.Equal(t, c.state, v.State, c.name)
		if c.add == "" {
			assert.Contains(t, v.Do, "tracefix http --explain", c.name)
			continue
		}
		assert.Equal(t, "to the providers recorded add "+c.add, v.Do, c.name)
	}
}
