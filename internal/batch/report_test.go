package batch

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	gojson "github.com/goccy/go-json"
	"github.com/joshdk/go-junit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// sample is a report with something of everything, and with names that want to break out.
func sample(t *testing.T) *Report {
	t.Helper()
	r := &Report{Command: "batch", Version: "v1", Do: "http", List: List{Inputs: 5, Digest: "d"}, Traces: []*Result{}}
	r.add(&Result{Index: 0, Trace: report.Trace{
		Command: "http", Status: OK, Input: report.Input{Name: "a/fine.nettrace", Format: "nettrace", Bytes: 1000},
		Output: &report.Output{Name: "a/fine #1.http.ndjson", Format: "ndjson", Bytes: 10}, Samples: 200, Cut: 20,
		CutBy: map[string]int{"depth": 20}, Repaired: map[string]int{"before": 15, "bridge": 5}, Restored: 900,
		Requests: &report.Requests{RequestCounts: report.RequestCounts{Count: 150, Failed: 1, Errors: 3}, Made: &report.Side{RequestCounts: report.RequestCounts{Count: 150, Failed: 1, Errors: 3}, Durations: report.Durations{P50: 10, P95: 400, P99: 500, Max: 900}}, Durations: report.Durations{P50: 10, P95: 400, P99: 500, Max: 900}, Slowest: []report.SlowRequest{
			{Method: "GET", URL: "http://x/?a=<b>|c", Status: 200, Outcome: "ok", Duration: 900},
			{Method: "GET", URL: "http://y/", Outcome: "failed", Duration: 500},
		}},
	}})
	r.add(&Result{Index: 1, Trace: report.Trace{
		Status: Damaged, Input: report.Input{Name: "b/<script>alert(1)</script>|`x`.nettrace", Bytes: 2000}, Damages: 3,
		Damage: []report.Damage{{Offset: 41, Where: "StackBlock", What: "unexpected \x00 EOF & ]]>"}},
		Output: &report.Output{Name: "b/javascript:x.http.ndjson", Bytes: 20}, Lost: 7,
		Requests: &report.Requests{RequestCounts: report.RequestCounts{Count: 50}, Made: &report.Side{RequestCounts: report.RequestCounts{Count: 50}, Durations: report.Durations{P50: 20, P95: 600, P99: 700, Max: 800}}, Durations: report.Durations{P50: 20, P95: 600, P99: 700, Max: 800}, Slowest: []report.SlowRequest{{URL: "http://z/", Status: 500, Outcome: "ok", Duration: 800}}},
	}})
	r.add(&Result{Index: 2, Trace: report.Trace{Status: Failed, Error: "c.nettrace: offset 0: \x1b[31mno\nway", Input: report.Input{Name: "c.nettrace"}}})
	r.add(&Result{Index: 3, Trace: report.Trace{Status: Skipped, Input: report.Input{Name: "d.txt"}}, Reason: skipNoTrace})
	var gates []Gate
	for _, s := range []string{"damaged", "http-error-rate>1%", "p95>1s"} {
		g, err := ParseGate(s, "http")
		require.NoError(t, err)
		gates = append(gates, g)
	}
	require.NoError(t, r.finish(gates))
	return r
}

func TestGoldenReports(t *testing.T) {
	r := sample(t)
	for _, w := range r.writers("") {
		if w.end == ".html" {
			continue // checked by what is in it
		}
		t.Run(w.end, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, w.write(&b))
			name := filepath.Join("testdata", "report"+w.end)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o777))
				require.NoError(t, os.WriteFile(name, b.Bytes(), 0o666))
			}
			want, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, string(want), b.String())
		})
	}
}

func TestJSONReadsBack(t *testing.T) {
	r := sample(t)
	std, err := json.Marshal(r)
	require.NoError(t, err)
	fast, err := gojson.Marshal(r)
	require.NoError(t, err)
	assert.JSONEq(t, string(std), string(fast), "the faster encoder writes the same document")
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	back, err := ReadReport(&b)
	require.NoError(t, err)
	assert.Equal(t, r.Totals, back.Totals)
	assert.Equal(t, r.Traces[1].Damage, back.Traces[1].Damage)
	for _, s := range []string{"", "{", "[]", "{}", `{"command":"repair"}`, `{"command":"batch","traces":[null]}`} {
		_, err := ReadReport(strings.NewReader(s))
		assert.Error(t, err, s)
	}
}

// TestJUnitParses reads the report with a parser that others wrote for what CI systems get.
func TestJUnitParses(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample(t).WriteJUnit(&b))
	suites, err := junit.Ingest(b.Bytes())
	require.NoError(t, err)
	require.Len(t, suites, 2)
	traces, gates := suites[0], suites[1]
	assert.Equal(t, junit.Totals{Tests: 3, Passed: 1, Failed: 1, Error: 1}, traces.Totals)
	assert.Equal(t, junit.Totals{Tests: 3, Passed: 1, Failed: 2}, gates.Totals)
	assert.Equal(t, "a/fine.nettrace", traces.Tests[0].Name)
	assert.Equal(t, "tracefix.http.a", traces.Tests[0].Classname)
	assert.Contains(t, traces.Tests[0].SystemOut, "150 requests")
	assert.Equal(t, "b/<script>alert(1)</script>|`x`.nettrace", traces.Tests[1].Name)
	assert.Equal(t, junit.StatusError, traces.Tests[1].Status)
	assert.Contains(t, traces.Tests[1].Error.Error(), "offset 41: StackBlock: unexpected � EOF & ]]>")
	assert.Contains(t, traces.Tests[1].Error.Error(), "and 2 more")
	assert.Equal(t, junit.StatusFailed, traces.Tests[2].Status)
	assert.Contains(t, traces.Tests[2].Error.Error(), "no\nway")
}

func TestMarkdownStaysInItsCells(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample(t).WriteMarkdown(&b))
	columns := 0
	for line := range strings.Lines(b.String()) {
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if columns == 0 {
			columns = n
		}
		assert.Equal(t, columns, n, "%q", line)
	}
	assert.NotContains(t, b.String(), "<script>alert(1)</script>|")
}

func TestOverviewIsOnePageAndSafe(t *testing.T) {
	r := sample(t)
	for links, want := range map[string]string{"": "./a/fine%20%231.http.ndjson", "../x y": "../x%20y/a/fine%20%231.http.ndjson"} {
		var b bytes.Buffer
		require.NoError(t, r.WriteHTML(&b, links))
		doc, err := html.Parse(&b)
		require.NoError(t, err)
		var hrefs []string
		scripts, text := 0, ""
		var visit func(*html.Node)
		visit = func(n *html.Node) {
			if n.Type == html.ElementNode {
				if n.Data == "script" {
					scripts++
				}
				assert.NotContains(t, []string{"link", "img", "iframe", "object"}, n.Data, "nothing from outside")
				for _, a := range n.Attr {
					assert.False(t, strings.HasPrefix(a.Key, "on"), "%s=%s", a.Key, a.Val)
					assert.NotEqual(t, "src", a.Key)
					if a.Key == "href" {
						hrefs = append(hrefs, a.Val)
					}
				}
			}
			if n.Type == html.TextNode {
				text += n.Data
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				visit(c)
			}
		}
		visit(doc)
		assert.Equal(t, 2, scripts, "the data and what shows it: names of traces are no markup")
		assert.Contains(t, hrefs, want)
		for _, h := range hrefs {
			assert.True(t, strings.HasPrefix(h, "."), "%s: a file beside the page", h)
		}
		for _, s := range []string{"<script>alert(1)</script>", "http://x/?a=<b>|c", "offset 41: StackBlock", "http-error-rate>1%", "known from the stack before", "no\nway"} {
			assert.Contains(t, text, s)
		}
	}
	var b bytes.Buffer
	require.NoError(t, r.WriteHTML(&b, "s3://bucket/x"))
	assert.NotContains(t, b.String(), "href=", "a browser cannot open a bucket")
}

func TestGates(t *testing.T) {
	r := sample(t)
	for _, c := range []struct {
		gate   string
		failed bool
		found  string
	}{
		{"damaged", true, "1"}, {"damaged>1", false, "1"}, {"failed >= 1", true, "1"}, {"traces<3", false, "3"}, {"traces<=3", true, "3"},
		{"http-error-rate>1%", true, "1.5%"}, {"http-error-rate>1.5%", false, "1.5%"}, {"http-error-rate>1", true, "1.5%"},
		{"http-errors>3", false, "3"}, {"p95>500ms", true, "600ms"}, {"p95>0.6s", false, "600ms"}, {"p50>1m", false, "20ms"},
		{"max>899ms", true, "900ms"}, {"lost", true, "7"}, {"requests<1000", true, "200"}, {"skipped", true, "1"},
		{"starvation<1", true, "nothing: no trace was done with --summary"}, // and does not pass in silence
	} {
		g, err := ParseGate(c.gate, "http")
		require.NoError(t, err, c.gate)
		got := g.check(r)
		assert.Equal(t, c.failed, got.Failed, c.gate)
		assert.Equal(t, c.found, got.Found, c.gate)
	}
	assert.Equal(t, "b/<script>alert(1)</script>|`x`.nettrace", r.Totals.Requests.P95.Trace)
	for _, s := range []string{"", "x", "cut", "p95>500", "p95>5x", "damaged>1ms", "damaged>", ">1", "p95>1.2.3ms", "damaged>1.2.3", "damaged>.", "http-error-rate>1ms"} {
		_, err := ParseGate(s, "http")
		assert.ErrorContains(t, err, "--fail-on", s)
	}
	for _, s := range []string{"cut", "cut-rate>5%", "unrepaired"} {
		_, err := ParseGate(s, DoRepair)
		assert.NoError(t, err)
	}
	_, err := ParseGate("p95>1s", DoRepair)
	assert.ErrorContains(t, err, "--do http")
}

// A gate on what nothing tells does not pass; a count of nothing is none.
func TestGatesOnNothing(t *testing.T) {
	one, asked := Totals{Traces: 1}, Totals{Traces: 1, Requests: &Requests{RequestCounts: report.RequestCounts{Count: 1}}}
	part := &Shard{Index: 1, Count: 3}
	for _, c := range []struct {
		gate   string
		do     string
		totals Totals
		shard  *Shard
		failed bool
		found  string
	}{
		{"p95>500ms", "http", one, nil, true, "nothing: no trace has HTTP requests that tell it"},
		{"max<1s", "http", Totals{Traces: 1, Requests: &Requests{}}, nil, true, "nothing: no trace has HTTP requests that tell it"},
		{"p95>500ms", "http", asked, nil, true, "nothing: no trace has HTTP requests that tell it"}, // it did not end
		{"http-error-rate>1%", "http", one, nil, true, "nothing: no trace has HTTP requests that tell it"},
		{"http-error-rate>1%", "http", asked, nil, false, "0%"},
		{"http-errors", "http", one, nil, true, "nothing: no trace has HTTP requests that tell it"},
		{"http-errors", "http", Totals{Traces: 1, Requests: &Requests{Served: &Side{}}}, nil, true, "nothing: no trace has HTTP requests that tell it"},
		{"http-errors", "http", one, part, false, "nothing: no trace has HTTP requests that tell it"},
		{"http-errors", "http", asked, nil, false, "0"},
		{"requests", "http", one, nil, false, "0"},
		{"cut-rate>5%", DoRepair, one, nil, true, "nothing: no trace has CPU samples"},
		{"cut-rate>5%", DoRepair, Totals{Traces: 1, Samples: 1}, nil, false, "0%"},
		{"cut", DoRepair, one, nil, false, "0"},
		{"damaged", DoRepair, one, nil, false, "0"},
		{"damaged", DoRepair, Totals{Skipped: 3}, nil, true, "nothing: no trace was found"},
		{"damaged", DoRepair, Totals{}, part, false, "0"},
		{"p95>500ms", "http", one, part, false, "nothing: no trace has HTTP requests that tell it"},
	} {
		g, err := ParseGate(c.gate, c.do)
		require.NoError(t, err, c.gate)
		got := g.check(&Report{Totals: c.totals, Shard: c.shard})
		assert.Equal(t, c.failed, got.Failed, c.gate)
		assert.Equal(t, c.found, got.Found, c.gate)
	}
}

// A gate on a figure of --summary says in which trace that is, or is most of it.
func TestServiceGatesNameTheTrace(t *testing.T) {
	r := &Report{}
	for _, x := range []struct {
		name string
		s    report.Service
	}{
		{"a", report.Service{RequestsEach: new(9.), Rate: 3}},
		{"b", report.Service{RequestsEach: new(2.), Rate: 7, Findings: 1, GCPauseMs: new(5.)}},
		{"c", report.Service{RequestsEach: new(4.), Rate: 5, GCPauseMs: new(8.)}},
		{"d", report.Service{}},
	} {
		r.Totals.add(&Result{Trace: report.Trace{
			Input: report.Input{Name: x.name}, Status: OK,
			Requests: &report.Requests{RequestCounts: report.RequestCounts{Count: 1}, Service: &x.s},
		}})
	}
	for gate, told := range map[string]string{
		"findings": "1 in b", "gc-pause>1ms": "13ms in c and 1 more", "rate>1": "7 in b", "requests-per-connection<3": "2 in b", "tls-outliers": "0",
	} {
		g, err := ParseGate(gate, "http")
		require.NoError(t, err)
		assert.Equal(t, told, g.check(r).Told(), gate)
	}
	_, err := ParseGate("findngs", "http")
	assert.ErrorContains(t, err, "did you mean findings?")
}

// So does one on a count or a share; and figures are rounded, unless that would hide why a gate failed.
func TestGatesNameTheTrace(t *testing.T) {
	r := &Report{Skipped: []Skip{{Name: "readme.txt"}}}
	r.Totals.Skipped = 3
	for _, x := range []struct {
		name, status         string
		samples, cut, bridge int
		requests, errors     int
		damages              int
		lost                 int64
		p95                  float64
	}{
		{name: "a", status: OK, samples: 1000, cut: 10, requests: 600, errors: 1, p95: 500.00412},
		{name: "b", status: Damaged, samples: 90, cut: 60, bridge: 7, requests: 30, errors: 12, damages: 2, lost: 5, p95: 0.0123456},
		{name: "c", status: Damaged, requests: 7},
		{name: "d", status: Failed},
		{name: "e", status: OK, samples: 700, lost: 5},
	} {
		r.Totals.add(&Result{Trace: report.Trace{
			Input: report.Input{Name: x.name}, Status: x.status, Lost: x.lost, Damages: x.damages,
			Samples: x.samples, Cut: x.cut, Repaired: map[string]int{bridge: x.bridge},
			Requests: &report.Requests{RequestCounts: report.RequestCounts{Count: x.requests, Errors: x.errors}, Durations: report.Durations{P95: x.p95}},
		}})
	}
	for gate, told := range map[string]string{
		"cut": "70 in b and 1 more", "cut-rate>1%": "3.911% in b (66.67%) and 1 more", "unrepaired": "7 in b", "lost": "10 in b and 1 more",
		"damaged": "2 in b and 1 more", "failed": "1 in d", "skipped": "3 in readme.txt and 2 more",
		"http-errors": "13 in b and 1 more", "http-error-rate>1%": "2.041% in b (40%) and 1 more", "traces": "5", "requests<5": "637",
		"p95>500ms": "500.004ms in a", "p95>1s": "500ms in a",
	} {
		do := "http"
		if strings.HasPrefix(gate, "cut") || gate == "unrepaired" {
			do = DoRepair
		}
		g, err := ParseGate(gate, do)
		require.NoError(t, err)
		assert.Equal(t, told, g.check(r).Told(), gate)
	}
}

// Every figure of a summary has a gate.
func TestServiceGates(t *testing.T) {
	gates := []string{
		"starvation", "pool-blocked", "pool-wait", "lock-wait", "convoy-waits", "client-queue", "dns-outliers", "tls-outliers", "gc-pause", "gc-in-requests", "compile-in-requests",
		"connections-opened", "connections-closed", "connect-failed", "requests-per-connection", "rate", "concurrency", "findings",
	}
	s := report.Service{}
	fields := reflect.ValueOf(&s).Elem()
	require.Equal(t, fields.NumField(), len(gates), "in the order of the fields")
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(int64(i + 1))
		case reflect.Pointer:
			f.Set(reflect.ValueOf(new(float64(i + 1))))
		default:
			f.SetFloat(float64(i + 1))
		}
	}
	r := &Report{Totals: Totals{Traces: 1, Requests: &Requests{Service: &s}}}
	for i, name := range gates {
		g, err := ParseGate(name, "http")
		require.NoError(t, err)
		got := g.check(r)
		assert.True(t, got.Failed, name)
		assert.Equal(t, strconv.Itoa(i+1), strings.TrimRight(got.Found, "%ms"), name)
	}
}

// A figure of a summary that no request tells, or that needs events which no trace has, fails its
// gate, of a shard it does not.
func TestServiceGatesWithoutRequests(t *testing.T) {
	for _, c := range []struct {
		gate   string
		count  int
		s      report.Service
		failed bool
		found  string
	}{
		{"pool-blocked>10%", 0, report.Service{}, true, "nothing: no trace has HTTP requests that tell it"},
		{"gc-pause>1s", 0, report.Service{}, true, "nothing: no trace has HTTP requests that tell it"},
		{"gc-pause>1s", 0, report.Service{GCPauseMs: new(7.)}, false, "7ms"},
		{"findings", 0, report.Service{}, true, "nothing: no trace has HTTP requests that tell it"},
		{"findings", 3, report.Service{}, false, "0"},
		{"pool-blocked>10%", 3, report.Service{PoolBlocked: new(0.)}, false, "0%"},
		{"pool-blocked>10%", 3, report.Service{}, true, "nothing: no trace has the events that tell it"},
		{"gc-pause>1s", 3, report.Service{}, true, "nothing: no trace has the events that tell it"},
		{"connections-opened>9", 3, report.Service{}, true, "nothing: no trace has the events that tell it"},
		{"requests-per-connection>0", 3, report.Service{}, true, "nothing: no trace has the events that tell it"},
	} {
		g, err := ParseGate(c.gate, "http")
		require.NoError(t, err)
		r := &Report{Totals: Totals{Traces: 1, Requests: &Requests{Service: &c.s}}}
		r.Totals.Requests.Count = c.count
		got := g.check(r)
		assert.Equal(t, c.failed, got.Failed, c.gate)
		assert.Equal(t, c.found, got.Found, c.gate)
		r.Shard = &Shard{Index: 1, Count: 2}
		if strings.HasPrefix(c.found, "nothing") {
			assert.False(t, g.check(r).Failed, c.gate)
		}
	}
}

func TestVerdicts(t *testing.T) {
	mk := func(statuses ...string) *Report {
		r := &Report{}
		for _, s := range statuses {
			r.add(&Result{Trace: report.Trace{Status: s}})
		}
		require.NoError(t, r.finish(nil))
		return r
	}
	assert.Equal(t, AllGood, mk().Verdict())
	assert.NotEmpty(t, mk(Skipped).Nothing())
	shard := mk(Skipped)
	shard.Shard = &Shard{Index: 1, Count: 2} // the other one may have some
	assert.Empty(t, shard.Nothing())
	assert.Equal(t, AllGood, shard.Verdict())
	assert.Equal(t, AllGood, mk(OK, Skipped).Verdict())
	assert.Equal(t, SomeDamaged, mk(OK, Damaged).Verdict())
	assert.Equal(t, SomeFailed, mk(Damaged, Failed, OK).Verdict())
	assert.Contains(t, mk().Notes, "no trace was found")
}

func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := &Progress{Out: &b, Now: func() time.Time { return now }, Every: time.Hour}
	stop := p.Start()
	dir := t.TempDir()
	put(t, dir, map[string]string{"a": strings.Repeat("x", 4000), "b/c": strings.Repeat("x", 6000)})
	p.Measure([]string{dir})
	p.began(&item{index: 3, name: "later"})
	p.began(&item{index: 1, name: "x/y.json"})
	p.ended(&item{index: 0, credit: 2500}, &Result{Trace: report.Trace{Status: OK}})
	now = now.Add(5 * time.Second)
	assert.Equal(t, "1 done  2.5 kB of 10.0 kB  500 B/s  ETA 15s  x/y.json", p.Line())
	p.ended(&item{index: 4, credit: 2500}, &Result{Trace: report.Trace{Status: Damaged}, resumed: true})
	p.ended(&item{index: 5}, &Result{Trace: report.Trace{Status: Skipped}})
	p.ended(&item{index: 6}, &Result{Trace: report.Trace{Status: Failed, Error: "broken", Input: report.Input{Name: "z"}}})
	assert.Equal(t, "2 done (1 before), 1 damaged, 1 failed, 1 skipped  5.0 kB of 10.0 kB  1.0 kB/s  ETA 5s  last failure: z: broken", p.Line())
	p.draw()
	p.Live, p.Width = true, 30
	p.draw()
	stop()
	lines := strings.Split(b.String(), "\n")
	require.Len(t, lines, 2)
	assert.NotContains(t, lines[0], "\x1b", "a log holds no escapes")
	assert.Equal(t, "\r\x1b[K2 done (1 before), 1 damaged…\r\x1b[K", lines[1])
}

// openOverview opens the page of a report with more than three traces.
func openOverview(t *testing.T, b *tracetest.Browser, r *Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "overview.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, r.WriteHTML(f, ""))
	require.NoError(t, f.Close())
	b.Open("file://"+filepath.ToSlash(file), `document.querySelectorAll("#traces tbody tr").length > 3`)
}

// TestOverviewInBrowser: the worst traces come first, one that lost events is not plainly ok, and each
// leads to its output.
func TestOverviewInBrowser(t *testing.T) {
	r := sample(t)
	r.Do = "repair"
	good := func(name string, lost int64, left int) *Result {
		return &Result{Trace: report.Trace{Status: OK, Input: report.Input{Name: name}, Output: &report.Output{Name: name + ".html"}, Samples: 100, Cut: 50, Repaired: map[string]int{"before": 50 - left, "bridge": left}, Lost: lost}}
	}
	r.add(good("whole.nettrace", 0, 0))
	r.add(good("lossy.nettrace", 5000, 0))
	r.add(good("left.nettrace", 0, 40))
	require.NoError(t, r.finish(nil))
	b := tracetest.NewBrowser(t, 1400, 900)
	openOverview(t, b, r)
	var rows [][3]string
	b.Eval(`[...document.querySelectorAll("#traces tbody tr")].map(r => [r.cells[0].textContent, r.cells[1].textContent, r.cells[0].firstChild.href || ""])`, &rows)
	var names, outcomes []string
	for _, r := range rows {
		names, outcomes = append(names, r[0]), append(outcomes, r[1])
	}
	assert.Equal(t, []string{"c.nettrace", "b/<script>alert(1)</script>|`x`.nettrace", "lossy.nettrace", "left.nettrace", "a/fine.nettrace", "whole.nettrace"}, names)
	assert.Equal(t, []string{"failed", "damaged, events lost", "ok, events lost", "ok", "ok", "ok"}, outcomes)
	assert.Contains(t, rows[2][2], "/lossy.nettrace.html")
	var tiles string
	b.Eval(`document.querySelector(".tiles").textContent.replace(/\s+/g, " ")`, &tiles)
	assert.Contains(t, tiles, "5,007events lost while recording, in 2 traces ", "of what the other reports have a number")
	var damaged string
	b.Eval(`document.querySelector("h2 + .scroll td a").getAttribute("href")`, &damaged)
	assert.Equal(t, "./b/javascript:x.http.ndjson", damaged, "what is damaged leads to what was saved of it")
	b.Golden(filepath.Join("testdata", "overview.png"))
}

// fleet gives a Merger the reports of many pieces, as those of `--do http` are.
func fleet(t *testing.T, pieces, traces int) *Merger {
	t.Helper()
	m, err := NewMerger()
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	n := 0
	for i := range pieces {
		r := &Report{Command: "batch", Do: "http", Shard: &Shard{Index: i + 1, Count: pieces, Piece: true}, List: List{Inputs: pieces * traces, Digest: "d", Parts: pieces * traces, Own: traces}}
		for range traces {
			name := fmt.Sprintf("s3://bucket/day-%02d/host-%04d/app-%06d.nettrace", n%28, n%1999, n)
			x := &Result{Index: n, Trace: report.Trace{Status: OK, Input: report.Input{Name: name, Bytes: 4 << 20}, Output: &report.Output{Name: strings.TrimPrefix(name, "s3://bucket/") + ".http.ndjson", Bytes: 1 << 20}}}
			x.Requests = &report.Requests{RequestCounts: report.RequestCounts{Count: 700, Errors: n % 3}, Durations: report.Durations{P95: float64(n % 500), Max: float64(n % 900)}}
			for j := range 10 {
				x.Requests.Slowest = append(x.Requests.Slowest, report.SlowRequest{Method: "GET", URL: fmt.Sprintf("http://service-%d/orders/%d", j, n), Status: 200, Outcome: "ok", Duration: float64((n + j) % 900)})
			}
			var of report.Measurer
			for j := range 20 {
				of.Request("client", fmt.Sprintf("service-%d:80", j), fmt.Sprintf("GET /orders/%d", n%300), false, int64(n%1000)*1e5)
			}
			x.Measures = of.One()
			if n%100 == 42 {
				x.Status, x.Error, x.Output, x.Requests = Failed, name+": offset 12: no trace", nil, nil
			}
			r.add(x)
			n++
		}
		require.NoError(t, r.finish(nil))
		var rows bytes.Buffer
		require.NoError(t, r.WriteRows(&rows))
		require.NoError(t, m.Add(fmt.Sprint("piece ", i), &rows))
	}
	return m
}

// TestMergeHoldsNoRows: what a merge keeps in memory of a trace is where its row is.
func TestMergeHoldsNoRows(t *testing.T) {
	const pieces, traces = 60, 250
	held := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := held()
	m := fleet(t, pieces, traces)
	r, err := m.Report(nil)
	require.NoError(t, err)
	require.Equal(t, pieces*traces, r.Totals.Traces)
	require.Equal(t, pieces*traces/100, r.Totals.Failed)
	rows := uint64(m.ledger.size)
	require.Greater(t, rows, uint64(20<<20))
	assert.Less(t, held()-before, rows/3, "bytes in memory, of so many in rows")
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	back, err := ReadReport(&b)
	require.NoError(t, err)
	assert.Equal(t, "batch-report.ndjson", back.TracesIn)
	require.Len(t, back.Traces, maxWorst)
	assert.Equal(t, Failed, back.Traces[pieces*traces/100-1].Status, "the worst first")
	runtime.KeepAlive(m)
}

// TestOverviewOfAFleetInBrowser opens the overview of a hundred thousand traces.
func TestOverviewOfAFleetInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a page of 10 MB")
	}
	const pieces, traces = 100, 1000
	b := tracetest.NewBrowser(t, 1400, 900)
	r, err := fleet(t, pieces, traces).Report(nil)
	require.NoError(t, err)
	openOverview(t, b, r)
	var page struct {
		Ready, Drawn float64
		Rows         int
		First        []string
		Totals       string
	}
	b.Eval(`({
		ready: performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart,
		drawn: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
		rows: document.querySelectorAll("#traces tbody tr").length,
		first: [...document.querySelector("#traces tbody tr").cells].map(c => c.textContent),
		totals: document.querySelector(".tiles").textContent,
	})`, &page)
	t.Logf("ready after %.0f ms, first drawn after %.0f ms", page.Ready, page.Drawn)
	assert.Equal(t, 200, page.Rows, "a screen or two at a time")
	assert.Equal(t, "failed", page.First[1])
	assert.Contains(t, page.Totals, "100,000traces")
	assert.Contains(t, page.Totals, "1,000failed")
	var took float64
	b.Eval(`(window.began = performance.now(), document.getElementById("find").value = "app-077777", document.getElementById("find").dispatchEvent(new Event("input")), 0)`, &took)
	b.Wait(`document.querySelectorAll("#traces tbody tr").length == 1`)
	var found string
	b.Eval(`document.querySelector("#traces tbody tr td").textContent`, &found)
	assert.Equal(t, "s3://bucket/day-21/host-1815/app-077777.nettrace", found)
	b.Eval(`performance.now() - window.began`, &took)
	t.Logf("found one of 100,000 after %.0f ms", took)
}
