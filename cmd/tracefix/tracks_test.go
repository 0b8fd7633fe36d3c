package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// An output that would show nothing is refused, with the line that records what was
// asked for.
func TestNothingToWrite(t *testing.T) {
	const runtime = "Microsoft-Windows-DotNETRuntime:"
	for _, c := range []struct{ file, args, want string }{
		{"chain", "--tracks http", "no HTTP requests; `dotnet-trace collect -p PID --providers 'System.Net.Http:"},
		{"chain", "--tracks activities", "System.Threading.Tasks.TplEventSource:0x80:4"},
		{"chain", "--tracks contention", runtime + "0x4000:4"},
		{"chain", "--tracks exceptions,contention", "no exceptions, no lock contentions; `dotnet-trace collect -p PID --providers '" + runtime + "0xc000:4'` records them"},
		{"chain", "--tracks faults", "no page faults; `dotnet-trace collect-linux "},
		{"v6-chain", "--tracks gc", "`dotnet-trace collect-linux -p PID --providers '" + runtime + "0x1:4'"},
		{"v6-chain", "--tracks events", "no other events\n"},
		{"activities", "--tracks cpu", "no CPU samples; `dotnet-trace collect --profile"},
		{"activities", "--tracks activities --to 1us", "the filters leave no activities"},
		{"chain", "--frame nosuch", "no sample is left: the filters drop all"},
	} {
		for _, format := range []string{"chromium", "perfetto"} {
			args := append([]string{"convert", tracetest.Corpus(t, "dotnet10", c.file+".nettrace"), "--format", format, "-o", "-"}, strings.Fields(c.args)...)
			code, out, words := tracefix(t, args...)
			assert.Equal(t, 1, code, "%s %s", c.file, c.args)
			assert.Empty(t, out, "%s %s", c.file, c.args)
			assert.Contains(t, words, "nothing to write: ", "%s %s", c.file, c.args)
			assert.Contains(t, words, c.want, "%s %s", c.file, c.args)
		}
	}
	for _, command := range []string{"convert", "repair"} {
		for _, format := range []string{"ndjson", "speedscope", "chromium", "perfetto", "folded"} {
			code, out, words := tracefix(t, command, filepath.Join("..", "..", "testdata", "chain.nettrace.zst"), "--frame", "nosuch", "--format", format, "-o", "-")
			assert.Equal(t, 1, code, "%s %s", command, format)
			assert.Empty(t, out)
			assert.Contains(t, words, "the filters drop all")
		}
	}

	code, _, words := tracefix(t, "convert", tracetest.Corpus(t, "dotnet10", "chain.nettrace"), "--with", "http", "-o", os.DevNull, "--format", "chromium")
	assert.Equal(t, 0, code)
	assert.Contains(t, words, "samples, ")
	assert.Contains(t, words, "no HTTP requests; `dotnet-trace collect")
}

// Requests that were served have a field that is called like the path of an activity.
func TestActivitiesChromiumKeepsFields(t *testing.T) {
	for _, args := range [][]string{{"activities"}, {"convert", "--tracks", "activities,events"}} {
		code, out, words := tracefix(t, append(args, tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace"), "--format", "chromium", "-o", "-")...)
		require.Equal(t, 0, code, words)
		assert.Contains(t, out, `"args":{"path":"1/12","thread":3853,"method":"GET","payload.path":"/ok"}`)
	}
}

// As Chromium JSON or as a tree: what is told is about activities.
func TestActivitiesChromium(t *testing.T) {
	count := func(out string) (n int) {
		var doc struct {
			TraceEvents []struct{ Ph string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &doc))
		for _, e := range doc.TraceEvents {
			if e.Ph == "b" || e.Ph == "B" || e.Ph == "i" {
				n++
			}
		}
		return n
	}
	file := func(name string) string { return tracetest.Corpus(t, "dotnet10", name+".nettrace") }

	code, out, words := tracefix(t, "activities", file("activities"), "--format", "chromium")
	require.Equal(t, 0, code, words)
	assert.Contains(t, words, ": 5,249 activities\n")
	assert.Equal(t, 5249, count(out))
	_, _, tree := tracefix(t, "activities", file("activities"), "-o", filepath.Join(t.TempDir(), "x.txt"))
	assert.Contains(t, tree, ": 5,249 activities, ")
	assert.NotContains(t, words, "samples")

	code, out, words = tracefix(t, "activities", file("activities-notpl"), "--format", "chromium")
	assert.Equal(t, 1, code)
	assert.Empty(t, out)
	assert.Contains(t, words, "no activity ids; `dotnet-trace collect -p PID --providers 'Lab-Orders:0xFFFFFFFFFFFFFFFF:4,System.Threading.Tasks.TplEventSource:0x80:4'`")
	assert.Contains(t, words, "--pair-by-thread")
	assert.NotContains(t, words, "samples")

	code, out, words = tracefix(t, "activities", file("activities-notpl"), "--format", "chromium", "--pair-by-thread")
	assert.Equal(t, 0, code, words)
	assert.Equal(t, 4228, count(out))
	assert.Contains(t, words, ": 4,228 activities\n")
	assert.Contains(t, words, "durations are guesses")

	code, out, words = tracefix(t, "activities", file("web"), "--format", "chromium")
	assert.Equal(t, 1, code)
	assert.Empty(t, out)
	assert.Contains(t, words, "no activities; `dotnet-trace collect")
	assert.NotContains(t, words, "samples")

	code, _, words = tracefix(t, "activities", file("activities"), "--format", "chromium", "--depth", "2")
	assert.Equal(t, 2, code)
	assert.Contains(t, words, "--depth do not apply to --format chromium")
}
