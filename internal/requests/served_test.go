package requests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// A witness is what a program wrote down of a request, on either side.
type witness struct {
	Side, URL, Method, Error string
	Status                   int
	TraceID                  string `json:"trace_id"` // Kestrel's
	Start                    int64  `json:"qpc_start"`
	Headers                  int64  `json:"qpc_headers"`
	Stop                     int64  `json:"qpc_stop"`
	Completed                int64  `json:"qpc_completed"`
	Streamed                 bool
}

func witnesses(t *testing.T, path string) []witness {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		data, err = os.ReadFile(path + ".zst")
		require.NoError(t, err)
		d, err := zstd.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		defer d.Close()
		data, err = io.ReadAll(d)
		require.NoError(t, err)
	}
	require.NoError(t, err)
	var l []witness
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var w witness
		require.NoError(t, d.Decode(&w))
		l = append(l, w)
	}
	return l
}

// agree reports whether two durations agree: within 1 ms or 5 %.
func agree(a, b int64) bool {
	d := max(a-b, b-a)
	return d <= 1e6 || d*20 <= b
}

// What both sides wrote down is what the rows say: of ASP.NET Core 3.1, whose events are
// found by name, of the bridge where nothing else tells of requests, and of recordings
// without activity ids, where Kestrel's ids, the log's and the bridge's pair requests.
func TestServed(t *testing.T) {
	for name, c := range map[string]struct {
		made       float64 // share of the requests made with the right duration; 0: the trace tells none
		madeStatus float64 // likewise with the right status
		status     bool    // of those served, too
	}{
		// What the bridge tells ends with the headers; contents only where the other side tells.
		"net31-http":          {.96, .98, true},
		"net31-more":          {.93, .98, true}, // six answers are read in part or not at all
		"net31-server":        {0, 0, false},
		"net31-server-bridge": {.94, .95, true},
		"net31-log4":          {0, 0, true},
		"net6-http-bridge":    {.98, .98, true},
		"net6-log4":           {0, 0, true},
		"net6-notpl":          {.97, .97, true},
		"net80rtm-server":     {.98, .96, true},
	} {
		t.Run(name, func(t *testing.T) {
			trace, truth := filepath.Join("testdata", name+".nettrace.zst"), filepath.Join("testdata", name+".truth.ndjson")
			if name != "net31-more" {
				trace = tracetest.Corpus(t, "dotnet10", name+".nettrace")
				truth = strings.TrimSuffix(trace, ".nettrace") + ".truth.ndjson"
			}
			rec := loadFile(t, trace)
			all := witnesses(t, truth)
			checkServed(t, rec, all, c.status)
			checkMade(t, rec, all, c.made, c.madeStatus)
		})
	}
}

func checkServed(t *testing.T, rec *recording, all []witness, status bool) {
	t.Helper()
	byID := map[string]*httpphases.ServerRequest{}
	for _, s := range rec.served {
		assert.Nil(t, byID[s.RequestID], "two rows of %s", s.RequestID)
		byID[s.RequestID] = s
		assert.Zero(t, s.Marks(), "%+v", s)
	}
	n, right := 0, 0
	for _, w := range all {
		if w.Side != "server" {
			continue
		}
		n++
		s := byID[w.TraceID]
		if !assert.NotNil(t, s, "no row of %+v", w) {
			continue
		}
		path, _, _ := strings.Cut(s.Target, "?")
		assert.Equal(t, w.Method, s.Method)
		assert.True(t, strings.HasSuffix(strings.SplitN(w.URL, "?", 2)[0], path), "%s is not of %s", path, w.URL)
		assert.Equal(t, w.Error != "", s.Outcome == httpphases.Failed, "%+v", w)
		if status && !assert.Equal(t, w.Status, s.Status, "%+v", w) {
			continue
		}
		if agree(s.Duration, w.Completed-w.Start) {
			right++
		}
	}
	assert.Len(t, rec.served, n)
	assert.GreaterOrEqual(t, float64(right)/float64(n), .97, "durations of %d served", n)
}

func checkMade(t *testing.T, rec *recording, all []witness, durations, statuses float64) {
	t.Helper()
	var made []*witness
	for i := range all {
		if all[i].Side == "client" {
			made = append(made, &all[i])
		}
	}
	if durations == 0 {
		assert.Empty(t, rec.rows)
		return
	}
	slices.SortFunc(made, func(a, b *witness) int { return cmp.Compare(a.Start, b.Start) })
	used := map[*httpphases.Request]bool{}
	right, status := 0, 0
	for _, w := range made {
		at := rec.nanos(w.Start)
		var row *httpphases.Request
		for _, r := range rec.rows {
			if used[r] || r.Start < at-50e3 || r.Start > at+300e6 || row != nil && row.Start < r.Start {
				continue
			}
			a, _, _ := strings.Cut(r.URL(), "?")
			b, _, _ := strings.Cut(w.URL, "?")
			if a == strings.TrimSuffix(b, "/") || a == b {
				row = r
			}
		}
		if !assert.NotNil(t, row, "no row of %+v", *w) {
			continue
		}
		used[row] = true
		assert.Equal(t, w.Method, row.Method, "%+v", *w)
		end := w.Stop
		if w.Headers > 0 {
			end = w.Headers
		}
		if row.HasDuration && agree(row.Duration, end-w.Start) {
			right++
		}
		if row.Status == w.Status {
			status++
		}
	}
	assert.GreaterOrEqual(t, float64(right)/float64(len(made)), durations, "durations of %d made", len(made))
	assert.GreaterOrEqual(t, float64(status)/float64(len(made)), statuses, "status of %d made", len(made))
}

// What is advised fits the runtime that wrote the trace, and nobody is told that a
// provider was not enabled whose events are there.
func TestAdviceOfOldRuntimes(t *testing.T) {
	rec := loadFile(t, filepath.Join("testdata", "net31-more.nettrace.zst"))
	both := Client | Server
	findings := rec.scan.Findings(&rec.need, both)
	require.Len(t, findings, 1)
	assert.Equal(t, "System.Net.Http", findings[0].Missing)
	assert.Contains(t, findings[0].Effect, "before 5")
	assert.NotContains(t, findings[0].Effect, "not enabled")
	line := rec.scan.Line(0, both, false)
	assert.NotContains(t, line, "System.Net.Http:")
	assert.Contains(t, line, `HttpRequestOut.Stop@Activity1Stop:-Response.StatusCode;`)
	assert.Contains(t, line, `HttpRequestIn.Start@Activity2Start:-`)
	assert.Contains(t, line, `:FilterAndPayloadSpecs=\"HttpHandlerDiagnosticListener/`, "which dotnet-trace takes for a quote, in any shell")

	modern := loadFile(t, filepath.Join("testdata", "http-more.nettrace.zst"))
	assert.Regexp(t, `-p 7 --providers "System\.Net\.Http:`, modern.scan.Line(7, Client, false))
	causes := modern.scan.Line(7, Client, true)
	assert.Contains(t, causes, `-p 7 --profile dotnet-sampled-thread-time --providers "System.Net.Http:`)
	assert.Contains(t, causes, `,System.Threading.Tasks.TplEventSource:0x1FF:4,Microsoft-Windows-DotNETRuntime:0x1C001:4"`)
	assert.NotContains(t, causes, ":0x80:4", "which is among all of the tasks")
	assert.Contains(t, rec.scan.Line(0, both, true), ",Microsoft-Windows-DotNETRuntime:0x1C001:4,Microsoft-Diagnostics-DiagnosticSource:")
}
