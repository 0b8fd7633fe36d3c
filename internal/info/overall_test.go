package info

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// The first line names what is wrong with its share, the worst first, and what a repair
// would do about it.
func TestOverall(t *testing.T) {
	for name, want := range map[string]Verdict{
		"dropped":        {State: Bad, Share: 92.42, Text: "92.4 % of the frames have no name; 68.1 % of all events were lost"},
		"http-cpu":       {State: Good, Text: "CPU stacks, HTTP requests, events of the runtime can be used as they are"},
		"recursion":      {State: Partly, Share: 45.81, Text: "45.8 % of the CPU stacks are cut, a repair restores 71.7 % of them"},
		"net6-notpl":     {State: Partly, Text: "only methods compiled while recording have names; requests have no activity ids; some activities have no ids, and cannot be paired"},
		"net31-log4":     {State: Partly, Text: "only methods compiled while recording have names; some activities have no ids, and cannot be paired"},
		"v6-machine":     {State: Partly, Share: 47.23, Text: "47.2 % of the CPU stacks are cut, a repair restores 15.5 % of them; 18.1 % of the frames have no name"},
		"requests-short": {State: Good, Text: "CPU stacks, HTTP requests, activities, events of the runtime can be used as they are"},
	} {
		got := facts(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")).Overall
		assert.Equal(t, want, got, name)
	}
}

// Three problems are named, the worst first, and the others counted.
func TestOverallCounts(t *testing.T) {
	for n, want := range []string{
		"activities can be used as they are", "p1", "p2; p1", "p3; p2; p1", "p4; p3; p2; and 1 more", "p5; p4; p3; and 2 more",
	} {
		f := &Facts{Events: 1, Verdicts: []Verdict{{State: Good, of: "activities", Text: "good"}}}
		for i := range n {
			f.Verdicts = append(f.Verdicts, Verdict{State: Partly, Share: float64(i), Problem: fmt.Sprint("p", i+1)})
		}
		f.sumUp()
		assert.Equal(t, want, f.Overall.Text)
	}
}

// A file of which nothing is whole is not usable with care.
func TestNothingIsWhole(t *testing.T) {
	for name, content := range map[string]string{
		"a.ndjson": `{"ts":1,"pid":1,"tid":1,"type":"Unheard","depth":1,"frames":["a"]}` + "\n",
		"a.json":   `[{"name":"a","ph":`,
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o666))
		assert.Equal(t, Verdict{State: Bad, Share: 100, Text: "the file is damaged, and nothing in it is whole"}, facts(t, path).Overall, name)
	}
}

// Amounts are no events, and those before the damage count.
func TestAmountsAreWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.speedscope.json")
	content := `{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","unit":"bytes","name":"t",
		"startValue":0,"endValue":3,"samples":[[0],[0]],"weights":[1,2]},`
	require.NoError(t, os.WriteFile(path, []byte(content), 0o666))
	assert.Equal(t, Verdict{State: Partly, Text: "the file is damaged"}, facts(t, path).Overall)
}

// A whole copy of a damaged recording says what it lacks, beside what is damaged in the copy.
func TestSalvaged(t *testing.T) {
	for _, c := range []struct {
		salvage Salvage
		text    string
	}{
		{Salvage{Places: 1}, "a whole copy of a recording that was damaged in 1 place"},
		{Salvage{Places: 2, LostBytes: 2000, LeftOut: 3, Cut: true}, "a whole copy of a recording that was damaged in 2 places; " + size(2000) + " lost; 3 incomplete events left out; it was cut off"},
		{Salvage{Places: 1, Cut: true}, "a whole copy of a recording that was damaged in 1 place; it was cut off"},
	} {
		f := &Facts{Format: "nettrace", Salvage: &c.salvage}
		v := f.fileVerdict()
		assert.Equal(t, c.text, v.Text)
		assert.Equal(t, Partly, v.State)
		assert.Equal(t, "what was damaged in the recording is missing", v.Problem)
		assert.Empty(t, v.Do)
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

// Whose frames have no name is said, and what would name most of them.
func TestUnnamedModules(t *testing.T) {
	for _, x := range []struct {
		by       map[string]int64
		n        int64
		text, do string
	}{
		{map[string]int64{"libcoreclr.so": 5, "[vdso]": 2, "system.private.corelib": 6}, 13, "most of the others are of system.private.corelib, libcoreclr.so, [vdso]", "tracefix top --symbols DIR 'a b.nettrace', where"},
		{map[string]int64{"libc.so.6": 1, "system.private.corelib": 6}, 7, "most of the others are of system.private.corelib, libc.so.6", "DOTNET_ReadyToRun=0"},
		{map[string]int64{"?": 90, "libc.so.6": 9}, 99, "of libc.so.6; most of the others are addresses in no file", "DOTNET_PerfMapEnabled=1"},
		{map[string]int64{"": 3}, 3, "addresses in no file", "DOTNET_PerfMapEnabled=1"},
		{map[string]int64{"d": 1, "b": 1, "a": 1, "c": 1}, 4, "of a, b, c", "DOTNET_ReadyToRun=0"},
	} {
		var v Verdict
		v.unnamed(&Facts{File: "a b.nettrace"}, x.by, x.n)
		assert.Contains(t, v.Text, x.text)
		assert.Contains(t, v.Do, x.do)
	}
}

// A recording of the runtime's doings alone is not one that holds nothing: what there is stands there with the
// command that reports on it.
func TestRuntimeVerdict(t *testing.T) {
	for name, want := range map[string]string{
		"alloc-tick": "36 collections (gc), 8,482 allocations (top --weight alloc)",
		"locks":      "290 waits for locks (locks)",
		"jit":        "574 compilations (jit)",
		"common":     "40 runs of the background compiler (jit), 22 changes of the thread pool (threads)",
	} {
		f := facts(t, tracetest.Corpus(t, "runtime", name+".nettrace"))
		i := slices.IndexFunc(f.Verdicts, func(v Verdict) bool { return v.Topic == "runtime" })
		require.GreaterOrEqual(t, i, 0, name)
		assert.Equal(t, want, f.Verdicts[i].Text, name)
	}
	f := facts(t, tracetest.Corpus(t, "runtime", "gc-verbose.nettrace"))
	assert.Equal(t, "events of the runtime can be used as they are", f.Overall.Text)
}
