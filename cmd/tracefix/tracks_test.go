package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
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
		{"chain", "--tracks http", "no HTTP requests; `dotnet-trace collect -p PID --providers \"System.Net.Http:"},
		{"chain", "--tracks activities", "System.Threading.Tasks.TplEventSource:0x80:4"},
		{"chain", "--tracks contention", runtime + "0x4000:4"},
		{"chain", "--tracks exceptions,contention", "no exceptions, no lock contentions; `dotnet-trace collect -p PID --providers " + runtime + "0xc000:4` records them"},
		{"chain", "--tracks faults", "no page faults; `dotnet-trace collect-linux "},
		{"v6-chain", "--tracks gc", "`dotnet-trace collect-linux --providers " + runtime + "0x1:4"},
		{"v6-chain", "--tracks events", "no other events\n"},
		{"activities", "--tracks cpu", "no CPU samples; `dotnet-trace collect -p PID --profile"},
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

// Where nothing is left because a file is damaged, the error says where.
func TestNothingToWriteOfDamage(t *testing.T) {
	whole, err := os.ReadFile(tracetest.Corpus(t, "dotnet10", "chain.nettrace"))
	require.NoError(t, err)
	short := filepath.Join(t.TempDir(), "short.nettrace")
	require.NoError(t, os.WriteFile(short, whole[:3000], 0o600))
	for _, command := range []string{"convert", "top"} {
		code, out, words := tracefix(t, command, short, "-o", "-", "--format", map[string]string{"convert": "ndjson", "top": "text"}[command])
		assert.Equal(t, 1, code)
		assert.Empty(t, out)
		assert.Contains(t, words, "no CPU samples")
		assert.Contains(t, words, "; the file is damaged: offset ")
	}
}

// Requests that were served have a field that is called like the path of an activity.
func TestActivitiesChromiumKeepsFields(t *testing.T) {
	for _, args := range [][]string{{"activities"}, {"convert", "--tracks", "activities,events"}} {
		code, out, words := tracefix(t, append(args, tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace"), "--format", "chromium", "-o", "-")...)
		require.Equal(t, 0, code, words)
		assert.Contains(t, out, `"args":{"path":"//1/12","thread":3853,"method":"GET","payload.path":"/ok"}`)
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
	assert.Contains(t, words, "no activity ids; `dotnet-trace collect -p PID --providers \"Lab-Orders:0xFFFFFFFFFFFFFFFF:4,System.Threading.Tasks.TplEventSource:0x80:4\"`")
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
	assert.Contains(t, words, "filters, --depth, --limit and --explain do not apply to --format chromium")
}

// A request that lasts through the whole of the time that is wanted stays.
func TestRequestsAroundFilter(t *testing.T) {
	convert := func(args ...string) (events []struct {
		Ph, Name string
		TS       float64
		TID      int
	}) {
		var doc struct{ TraceEvents json.RawMessage }
		code, out, words := tracefix(t, append([]string{"convert", tracetest.Corpus(t, "dotnet10", "http-full.nettrace"), "--tracks", "http", "--format", "chromium", "-o", "-"}, args...)...)
		require.Equal(t, 0, code, words)
		require.NoError(t, json.Unmarshal([]byte(out), &doc))
		require.NoError(t, json.Unmarshal(doc.TraceEvents, &events))
		return events
	}
	begun := map[int]float64{}
	var from, long float64
	for _, e := range convert() {
		switch {
		case e.Ph == "B" && begun[e.TID] == 0:
			begun[e.TID] = e.TS
		case e.Ph == "E" && begun[e.TID] != 0:
			if d := e.TS - begun[e.TID]; d > long {
				from, long = begun[e.TID]+d/2, d
			}
			begun[e.TID] = 0
		}
	}
	require.Positive(t, long)
	at := func(us float64) string { return strconv.FormatFloat(us, 'f', 3, 64) + "us" }
	slices := 0
	for _, e := range convert("--from", at(from), "--to", at(from+1)) {
		if e.Ph == "B" && e.TS < from {
			slices++
		}
	}
	assert.NotZero(t, slices)
}
