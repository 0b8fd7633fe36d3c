package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// Filters apply to requests that were served as to those that were made; orders by what a
// served request does not tell are refused.
func TestHTTPServed(t *testing.T) {
	trace := tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace")
	type row struct {
		Kind     string
		Start    float64 `json:"start_ms"`
		Duration float64 `json:"duration_ms"`
	}
	list := func(args ...string) []row {
		code, out, words := tracefix(t, append([]string{"http", trace, "--format", "ndjson"}, args...)...)
		require.Equal(t, 0, code, words)
		return jsonLines[row](t, out)
	}
	all := list("--side", "server")
	require.Len(t, all, 168)
	count := func(keep func(row) bool) (n int) {
		for _, r := range all {
			if keep(r) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, all[:1], list("--side", "server", "--limit", "1"))
	assert.Empty(t, list("--side", "server", "--failed"))
	assert.Len(t, list("--side", "server", "--slow", "50ms"), count(func(r row) bool { return r.Duration >= 50 }))
	assert.Len(t, list("--side", "server", "--from", "1s", "--to", "2s"),
		count(func(r row) bool { return r.Start+r.Duration >= 1000 && r.Start <= 2000 }))
	assert.Empty(t, list("--side", "server", "--status", "200"), "the trace does not tell it")
	old := tracetest.Corpus(t, "dotnet10", "net31-http.nettrace")
	for args, want := range map[string]int{"--status 404": 4, "--status 5xx --host localhost": 4, "--status 5xx --host elsewhere": 0} {
		_, out, _ := tracefix(t, append([]string{"http", old, "--format", "ndjson", "--side", "server"}, strings.Fields(args)...)...)
		assert.Len(t, jsonLines[row](t, out), want, args)
	}
	longest := list("--side", "server", "--sort", "duration", "--limit", "2")
	require.Len(t, longest, 2)
	assert.Equal(t, 2, count(func(r row) bool { return r.Duration >= longest[1].Duration }))
	both := list("--side", "both", "--limit", "3")
	require.Len(t, both, 3)
	assert.Equal(t, []string{"", "server", ""}, []string{both[0].Kind, both[1].Kind, both[2].Kind}, "in order of their start")

	for _, args := range [][]string{
		{"--side", "server", "--sort", "queue"}, {"--side", "both", "--sort", "wait"},
		{"--side", "server", "--sort", "host"}, {"--side", "server", "--sort", "status"},
	} {
		code, out, words := tracefix(t, append([]string{"http", trace}, args...)...)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out, args)
		assert.Contains(t, words, "does not go with --side", args)
	}
}

func jsonLines[T any](t *testing.T, text string) (rows []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r T
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		rows = append(rows, r)
	}
	return rows
}

// What lacks is told of the sides that are asked for.
func TestHTTPServedNotRecorded(t *testing.T) {
	const net = "System.Net.Http:0x"
	const hosting = "Microsoft.AspNetCore.Hosting:0xFFFFFFFFFFFFFFFF:4"
	for _, c := range []struct {
		file, side string
		has, not   []string
	}{
		{"http-full.nettrace", "server", []string{"0 served", hosting}, []string{net, "0 requests"}},
		{"http-full.nettrace", "both", []string{"0 served", hosting, net}, nil},
		{"http-full.nettrace", "client", nil, []string{"--providers", "served"}},
		{"http-bridge.nettrace", "server", []string{"168 served"}, []string{"--providers"}},
		{"web.nettrace", "server", []string{hosting}, []string{net}},
		{"web.nettrace", "client", []string{net}, []string{hosting}},
	} {
		code, _, words := tracefix(t, "http", tracetest.Corpus(t, "dotnet10", c.file), "--side", c.side, "--format", "ndjson")
		require.Equal(t, 0, code, words)
		for _, s := range c.has {
			assert.Contains(t, words, s, "%s, %s", c.file, c.side)
		}
		for _, s := range c.not {
			assert.NotContains(t, words, s, "%s, %s", c.file, c.side)
		}
	}
}

// What was served stands in every output.
func TestHTTPServedFormats(t *testing.T) {
	trace := tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace")
	// What a served request begins with, of which there are 168.
	mark := map[string]string{"table": "s ok   ", "json": `"kind":"server"`, "ndjson": `"kind":"server"`, "chromium": `"cat":"http.server","args":{"outcome"`, "otlp": `"kind":2`, "har": `"_side":"server"`, "html": `,"",[],0,["`}
	for _, f := range httpreport.Formats {
		for _, side := range []string{"server", "both"} {
			code, out, words := tracefix(t, "http", trace, "--side", side, "--format", f.Name)
			require.Equal(t, 0, code, words)
			assert.Equal(t, 168, strings.Count(out, mark[f.Name]), "%s, %s", f.Name, side)
		}
	}

	_, out, _ := tracefix(t, "http", trace, "--side", "both", "--format", "chromium")
	var doc struct {
		TraceEvents []struct {
			Ph, Cat, Name string
			Args          struct{ ID, Client int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	made, served := map[int]bool{}, 0
	for _, e := range doc.TraceEvents {
		if e.Cat == "http" && e.Ph != "E" {
			made[e.Args.ID] = true
		}
	}
	for _, e := range doc.TraceEvents {
		if e.Cat == "http.server" && e.Ph != "E" {
			served++
			assert.True(t, e.Args.Client == 0 || made[e.Args.Client], "%+v", e)
		}
	}
	assert.Len(t, made, 171)
	assert.Equal(t, 168, served)
}

// TestHTTPDurationsOfSides: percentiles are those of one side, the same in the report, on the
// screen, as JSON and in a summary.
func TestHTTPDurationsOfSides(t *testing.T) {
	trace := tracetest.Corpus(t, "dotnet10", "net31-more.nettrace")
	told := func(args ...string) (report.Requests, string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "report.json")
		code, out, words := tracefix(t, append([]string{"http", trace, "--report", file, "-o", "-"}, args...)...)
		require.Equal(t, 0, code, words)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var doc struct{ Requests report.Requests }
		require.NoError(t, json.Unmarshal(b, &doc))
		return doc.Requests, out
	}
	made, _ := told("--side", "client")
	served, _ := told("--side", "server")
	require.Nil(t, made.Served)
	require.Nil(t, served.Made)
	assert.Equal(t, made.Durations, made.Made.Durations, "one side is all there is")
	assert.Equal(t, served.Durations, served.Served.Durations)
	assert.NotEqual(t, made.Durations, served.Durations)
	assert.Equal(t, []int{110, 92}, []int{made.Count, served.Count})

	both, table := told("--side", "both", "--format", "table")
	higher := made.Durations
	higher.Higher(&served.Durations)
	summary, _ := told("--summary", "--format", "json")
	for name, x := range map[string]report.Requests{"both": both, "summary": summary} {
		assert.Equal(t, made.Made, x.Made, name)
		assert.Equal(t, served.Served, x.Served, name)
		assert.Equal(t, higher, x.Durations, name)
		assert.Equal(t, 202, x.Count, name)
	}
	assert.Regexp(t, `\n +92 +2 +11\.97 +35\.94 +401\.3 +401\.3  all requests\n`, table)

	_, text := told("--side", "both", "--format", "json")
	var doc struct {
		Summary struct {
			Served struct {
				Requests int
				Max      float64 `json:"max_ms"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	assert.Equal(t, 92, doc.Summary.Served.Requests)
	assert.Equal(t, served.Max, doc.Summary.Served.Max)

	_, text = told("--summary", "--format", "json")
	var service struct {
		Client, Server struct{ All report.Durations }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &service))
	assert.Equal(t, []float64{made.P50, made.P90, made.P99, made.Max}, []float64{service.Client.All.P50, service.Client.All.P90, service.Client.All.P99, service.Client.All.Max})
	assert.Equal(t, []float64{served.P50, served.P90, served.P99, served.Max}, []float64{service.Server.All.P50, service.Server.All.P90, service.Server.All.P99, service.Server.All.Max})
	for side, one := range map[string]report.Requests{"client": made, "server": served} {
		x, text := told("--summary", "--side", side, "--format", "json")
		x.Service, x.Slowest, one.Slowest = nil, nil, nil
		assert.Equal(t, one, x, "the side that is named")
		assert.Equal(t, side == "client", strings.Contains(text, `"client": {`), text[:200])
		assert.Equal(t, side == "server", strings.Contains(text, `"server": {`))
	}
	_, text = told("--summary", "--format", "markdown")
	assert.Contains(t, text, "- all of them: p50 12.0 ms, p90 35.9 ms, p99 401.3 ms, longest 401.3 ms\n")
}
