package info

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// The first line names what is wrong with its share, the worst first, and what a repair
// would do about it.
func TestOverall(t *testing.T) {
	for name, want := range map[string]Verdict{
		"dropped":        {State: Bad, Share: 92.42, Text: "92.4 % of the frames have no name; 68.1 % of all events were lost"},
		"http-cpu":       {State: Good, Text: "CPU stacks, HTTP requests can be used as they are"},
		"recursion":      {State: Partly, Share: 45.81, Text: "45.8 % of the CPU stacks are cut, a repair restores 71.9 % of them"},
		"net6-notpl":     {State: Partly, Text: "only methods compiled while recording have names; requests have no activity ids"},
		"net31-log4":     {State: Partly, Text: "only methods compiled while recording have names; some activities have no ids, and cannot be paired"},
		"v6-machine":     {State: Partly, Share: 47.23, Text: "47.2 % of the CPU stacks are cut, a repair restores 16.5 % of them; 18.1 % of the frames have no name"},
		"requests-short": {State: Good, Text: "CPU stacks, HTTP requests, activities can be used as they are"},
	} {
		got := facts(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")).Overall
		assert.Equal(t, want, got, name)
	}
}

// What a repair would do is tried, so it is what a repair does.
func TestForecast(t *testing.T) {
	f := facts(t, filepath.Join(data, "..", "chain.nettrace.zst"))
	assert.True(t, f.Forecast.All)
	assert.Equal(t, f.Stacks.CutTotal(), f.Forecast.Tried)
	assert.NotZero(t, f.Forecast.Repaired)

	f = facts(t, tracetest.Corpus(t, "dotnet10", "web-60s.nettrace"))
	assert.False(t, f.Forecast.All, "%d samples are too many to try all", f.Samples.Looks())
	share := float64(f.Forecast.Repaired) / float64(f.Forecast.Tried)
	assert.InDelta(t, 0.21, share, 0.05, "a repair of all of it restores 21.0 %")
}
