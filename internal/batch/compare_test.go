package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/compare"
	"github.com/tracefix/tracefix/internal/report"
)

// A day is a batch that is made up: how slow its requests are, how many fail, what burns.
type day struct {
	folder           string
	p95, errors, hot float64 // factors
	failed           map[int]string
}

const dayTraces = 60

// write writes the reports of a day's batch, as one or as shards.
func (d day) write(t *testing.T, seed uint64, shards int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	dir := t.TempDir()
	reports := make([]*Report, shards)
	for i := range reports {
		reports[i] = &Report{Command: "batch", Do: "repair", List: List{Inputs: dayTraces, Digest: "d"}, Traces: []*Result{}}
		if shards > 1 {
			reports[i].Shard = &Shard{Index: i + 1, Count: shards}
			reports[i].List.Parts, reports[i].List.Own = dayTraces, dayTraces/shards
		}
	}
	for i := range dayTraces {
		res := &Result{Index: i, Trace: report.Trace{Status: OK, Input: report.Input{Name: fmt.Sprintf("%s/pod%d/trace.nettrace", d.folder, i)}}}
		if why := d.failed[i]; why != "" {
			res.Status, res.Error = Failed, why
		} else {
			var m report.Measurer
			burn := 200 * d.hot * (1 + 0.1*rng.NormFloat64())
			m.Hot(map[string]float64{"Shop!Shop.Price.Sum(int32[])": burn, "Shop!Shop.Cart+<Load>d__5.MoveNext()": 300, "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)": 100}, burn+400)
			for range 50 {
				ns := int64(1e6 * (5 + rng.ExpFloat64()*20*d.p95))
				m.Request("server", "", "GET /orders/{id}", rng.Float64() < 0.02*d.errors, ns)
				m.Request("client", "db", "POST /query", false, int64(1e6*(1+rng.ExpFloat64())))
			}
			res.Measures = m.One()
		}
		reports[i%shards].add(res)
	}
	for _, r := range reports {
		require.NoError(t, r.finish(nil))
		for _, w := range r.writers("") {
			var b bytes.Buffer
			require.NoError(t, w.write(&b))
			require.NoError(t, os.WriteFile(filepath.Join(dir, r.Shard.orAll().report()+w.end), b.Bytes(), 0o644))
		}
	}
	return dir
}

func compareDirs(t *testing.T, before, after string) *Comparison {
	t.Helper()
	x, err := Compare(context.Background(), Config{}, before, after)
	require.NoError(t, err)
	return x
}

func (x *Comparison) route(name string) RouteChange {
	for _, r := range x.Routes {
		if r.name() == name {
			return r
		}
	}
	return RouteChange{}
}

// TestCompareWithoutRequests: the rate of errors of a side without requests is not 0, and that of
// the other one stays.
func TestCompareWithoutRequests(t *testing.T) {
	failed := map[int]string{}
	for i := range dayTraces {
		failed[i] = "offset 10: bad"
	}
	all, none := day{"in", 1, 4, 1, nil}.write(t, 1, 1), day{"in", 1, 1, 1, failed}.write(t, 2, 1)
	g, err := ParseComparisonGate("http-error-rate>1%")
	require.NoError(t, err)
	x := compareDirs(t, all, none)
	assert.Zero(t, x.Requests[1])
	assert.Contains(t, x.Check([]ComparisonGate{g}), "nothing tells it: no trace of "+none+" has HTTP requests")
	x = compareDirs(t, none, all)
	assert.Greater(t, x.Errors.After, 1.0)
	assert.Equal(t, compare.Unclear, x.Errors.Verdict)
	assert.Contains(t, x.Check([]ComparisonGate{g}), "http-error-rate is ")
}

func TestCompareFindsWhatMoved(t *testing.T) {
	before := day{"in/monday", 1, 1, 1, map[int]string{3: "offset 10: bad", 4: "offset 11: bad"}}.write(t, 1, 1)
	after := day{"in/tuesday", 1.5, 4, 1.4, map[int]string{4: "offset 900: bad", 7: "offset 12: bad"}}.write(t, 2, 1)
	x := compareDirs(t, before, after)
	assert.Equal(t, [2]int{dayTraces, dayTraces}, x.Traces)
	assert.Equal(t, 1, x.NewFailures)
	assert.Equal(t, 1, x.Recovered)
	assert.Equal(t, []NewFailure{{"in/tuesday/pod7/trace.nettrace", "offset 12: bad", OK}}, x.Failed, "names below the days' folders are the same")
	assert.Equal(t, []Cause{{"offset N: bad", [2]int{2, 2}}}, x.Causes)
	assert.Equal(t, compare.Unclear, x.Failures.Verdict)
	slow := x.route("server GET /orders/{id}")
	assert.Equal(t, compare.More, slow.P95.Verdict)
	assert.InDelta(t, 50, slow.P95.Change, 20)
	assert.Equal(t, compare.More, slow.Errors.Verdict)
	same := x.route("client db POST /query")
	assert.Equal(t, compare.Unclear, same.P95.Verdict)
	assert.Equal(t, compare.Unclear, same.Errors.Verdict)
	require.NotEmpty(t, x.Methods)
	for _, m := range x.Methods {
		assert.NotContains(t, m.Method, "Thread.Sleep", "a wait is no cost")
	}
	assert.Equal(t, "Shop!Shop.Price.Sum(int32[])", x.Methods[0].Method)
	assert.Equal(t, compare.More, x.Methods[0].Share.Verdict)

	for gate, fails := range map[string]bool{
		"new-failures": true, "new-failures>1": false, "failed-rate>3%": true, "failed-rate>4%": false, "http-error-rate>1%": true, "http-error-rate>20%": false,
		"p95:GET /orders/*>+10%": true, "p95:server*>+10%": true, "p95:*query>+10%": false, "p95:*orders*>+300%": false, "p50:*orders*<-10%": false,
		"errors:*orders*>+10%": true, "cpu:Shop.Price.Sum>+10%": true, "cpu:Shop.Cart*>+10%": false, "p95:*gone*>+10%": true,
	} {
		g, err := ParseComparisonGate(gate)
		require.NoError(t, err, gate)
		assert.Equal(t, fails, x.Check([]ComparisonGate{g}) != "", gate)
	}
	g, err := ParseComparisonGate("failed-rate>3.333%")
	require.NoError(t, err)
	assert.Equal(t, "--fail-on failed-rate>3.333%: failed-rate is 3.3333", x.Check([]ComparisonGate{g}), "as many digits as tell it from the gate")
	for _, bad := range []string{"", "failures", "p99:*>+10%", "p95:x", "new-failures>x", "cpu:>+10%", "new-failures>1ms"} {
		_, err := ParseComparisonGate(bad)
		assert.Error(t, err, bad)
	}
	var md, text, doc bytes.Buffer
	require.NoError(t, x.Document(10).Markdown(&md))
	require.NoError(t, x.Document(10).Text(&text, 100))
	require.NoError(t, x.JSON(&doc))
	assert.Contains(t, md.String(), "- --fail-on")
	assert.Contains(t, md.String(), "pod7")
	assert.Contains(t, text.String(), "GET /orders/{id}: p95")
	assert.Contains(t, doc.String(), `"new_failures": 1`)
}

// TestCompareTellsWhatMoved: whatever moved is told, be it the only thing that did.
func TestCompareTellsWhatMoved(t *testing.T) {
	still := compare.Figure{Before: 10, After: 10, Verdict: compare.Unclear}
	moved := compare.Figure{Before: 10, After: 20, Change: 100, Low: 80, High: 120, Verdict: compare.More}
	for _, c := range []struct {
		name    string
		x       Comparison
		verdict string
		table   string // with a row of what moved
	}{
		{"nothing", Comparison{Routes: []RouteChange{{Route: "GET /a", P50: still, P95: still, Errors: still}}}, "Nothing moved beyond noise.", ""},
		{"p95", Comparison{Routes: []RouteChange{{Route: "GET /a", P50: still, P95: moved, Errors: still}}}, "GET /a: p95 10.0 -> 20.0 ms", "p95 of requests, ms"},
		{"p50", Comparison{Routes: []RouteChange{{Route: "GET /b", P50: still, P95: still, Errors: still}, {Route: "GET /a", P50: moved, P95: still, Errors: still}}}, "GET /a: p50 10.0 -> 20.0 ms", "Median of requests, ms"},
		{"errors of a route", Comparison{Errors: moved, Routes: []RouteChange{{Route: "GET /a", P50: still, P95: still, Errors: moved}}}, "GET /a: errors 10.0 -> 20.0 %", "Requests with errors, %"},
		{"errors of rare routes", Comparison{Errors: moved}, "All requests: errors 10.0 -> 20.0 %", ""},
		{"share of the CPU", Comparison{Methods: []MethodChange{{Method: "M", Share: moved}}}, "M: share of the CPU time 10.0 -> 20.0 %", "Share of the CPU time, %, by itself"},
		{"failures", Comparison{Failures: moved}, "Traces that failed: 10.0 -> 20.0 %", ""},
	} {
		for _, f := range []*compare.Figure{&c.x.Failures, &c.x.Errors} {
			if *f == (compare.Figure{}) {
				*f = still
			}
		}
		d := c.x.Document(1)
		require.Len(t, d.Verdict, 1, c.name)
		assert.Contains(t, d.Verdict[0], c.verdict, c.name)
		for _, table := range d.Tables {
			if table.Title == c.table {
				assert.Contains(t, strings.Join(table.Rows[0], " "), "20.0", c.name)
				c.table = ""
			}
		}
		assert.Empty(t, c.table, c.name)
	}
}

// TestCompareWithoutMethods: where one batch tells the methods of requests and the other one none, routes are the same.
func TestCompareWithoutMethods(t *testing.T) {
	of := func(get, post, client string) *report.Measures {
		var m report.Measurer
		for range leastRequests {
			m.Request("server", "", get, false, 5e6)
			m.Request("server", "", post, true, 5e6)
			m.Request("client", "db", client, false, 1e6)
		}
		return m.All()
	}
	told, untold := of("GET /orders/*", "POST /orders/*", "POST /query"), of("/orders/*", "/orders/*", "POST /query")
	for i, sides := range [][2]*report.Measures{{told, untold}, {untold, told}} {
		x := &Comparison{}
		x.routes(routesAlike(sides[0], sides[1]))
		require.Len(t, x.Routes, 2, i)
		r := x.route("server /orders/*")
		assert.Equal(t, [2]int{2 * leastRequests, 2 * leastRequests}, r.Count)
		assert.Equal(t, 50.0, r.Errors.After)
		assert.Equal(t, compare.Unclear, r.P95.Verdict)
		assert.Equal(t, leastRequests, x.route("client db POST /query").Count[1], "where both tell them they stay")
	}
	a, b := routesAlike(told, told)
	assert.True(t, a == told && b == told)
}

// TestCompareTellsOtherRoutes: a route that has another name, or is asked for by one batch only, is no quiet one.
func TestCompareTellsOtherRoutes(t *testing.T) {
	of := func(counts map[string]int) *report.Measures {
		var m report.Measurer
		for route, n := range counts {
			for range n {
				m.Request("server", "", route, false, 5e6)
			}
		}
		return m.All()
	}
	x := &Comparison{Failures: compare.Figure{Verdict: compare.Unclear}}
	x.routes(of(map[string]int{"GET /a": 100, "GET /old": 1200, "GET /rare": 39}), of(map[string]int{"GET /a": 100, "GET /new": 1100, "GET /more": 50, "GET /most": 41, "GET /rare": 3}))
	assert.Len(t, x.Routes, 1)
	assert.Equal(t, []string{"Of what is compared nothing moved beyond noise.",
		"routes that are not compared, as one batch has fewer than 40 requests of them: 4, such as server GET /old (1200 -> 0)"}, x.Document(10).Verdict)
}

// TestCompareOfTheSame: of days that do not differ hardly any seems to.
func TestCompareOfTheSame(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		x := compareDirs(t, day{"a", 1, 1, 1, nil}.write(t, 10+2*seed, 1), day{"b", 1, 1, 1, nil}.write(t, 11+2*seed, 1))
		require.Len(t, x.Routes, 2)
		for _, r := range x.Routes {
			for _, f := range []compare.Figure{r.P50, r.P95, r.Errors} {
				if f.Moved() {
					found++
				}
			}
		}
		for i := range x.Methods {
			if x.Methods[i].Share.Moved() {
				found++
			}
		}
	}
	assert.LessOrEqual(t, found, 2, "of 20 pairs")
}

// TestCompareTakesShards: a folder whose shards were not merged yet tells the same.
func TestCompareTakesShards(t *testing.T) {
	before := day{"a", 1, 1, 1, nil}.write(t, 1, 1)
	one, many := compareDirs(t, before, day{"b", 2, 1, 1, nil}.write(t, 2, 1)), compareDirs(t, before, day{"b", 2, 1, 1, nil}.write(t, 2, 3))
	assert.Equal(t, one.Routes, many.Routes)
	require.Len(t, many.Methods, len(one.Methods))
	assert.InDelta(t, one.Methods[0].Share.After, many.Methods[0].Share.After, 1e-9)
	rows := filepath.Join(before, "batch-report.ndjson")
	assert.Equal(t, one.Routes[0].Count, compareDirs(t, rows, filepath.Join(before, "batch-report.json")).Routes[0].Count)
	for _, none := range []string{t.TempDir(), filepath.Join(before, "gone")} {
		_, err := Compare(context.Background(), Config{}, before, none)
		assert.Error(t, err)
	}
	missing := day{"b", 1, 1, 1, nil}.write(t, 2, 3)
	require.NoError(t, os.Remove(filepath.Join(missing, "batch-report-2-of-3.ndjson")))
	require.NoError(t, os.Remove(filepath.Join(missing, "batch-report-2-of-3.json")))
	_, err := Compare(context.Background(), Config{}, before, missing)
	assert.ErrorContains(t, err, "missing")
}

// TestCompareTakesRowsOfOthers: rows that another program filtered have spaces, or their keys in another order; taken
// for a document they were a report of no trace, and no gate failed.
func TestCompareTakesRowsOfOthers(t *testing.T) {
	before, after := day{"a", 1, 1, 1, nil}.write(t, 1, 1), day{"b", 2, 1, 1, nil}.write(t, 2, 1)
	want := compareDirs(t, before, after)
	rows, err := os.ReadFile(filepath.Join(after, "batch-report.ndjson"))
	require.NoError(t, err)
	var sorted []byte
	for line := range bytes.Lines(rows) {
		var row map[string]any
		require.NoError(t, json.Unmarshal(line, &row))
		line, err := json.Marshal(row)
		require.NoError(t, err)
		sorted = append(append(sorted, line...), '\n')
	}
	require.NotEqual(t, rows, sorted)
	for _, b := range [][]byte{sorted, bytes.ReplaceAll(rows, []byte(`{"k":"`), []byte(`{ "k": "`))} {
		other := filepath.Join(t.TempDir(), "other.ndjson")
		require.NoError(t, os.WriteFile(other, b, 0o600))
		got := compareDirs(t, before, other)
		assert.Equal(t, want.Traces, got.Traces)
		assert.Equal(t, want.Routes, got.Routes)
	}
	doc := filepath.Join(t.TempDir(), "cut.json")
	require.NoError(t, os.WriteFile(doc, bytes.TrimRight(rows[:bytes.IndexByte(rows, '\n')+1], "\n"), 0o600))
	_, err = Compare(context.Background(), Config{}, before, doc)
	assert.ErrorContains(t, err, "breaks off")
	require.NoError(t, os.WriteFile(doc, []byte(`{"command":"batch","do":"repair","totals":{"traces":3},"traces":[]}`), 0o600))
	_, err = Compare(context.Background(), Config{}, before, doc)
	assert.ErrorContains(t, err, "breaks off: 0 of its 3 traces are there")
}

// TestCompareNamesSomeFailures: what is left out of a list is told of the list, which need not be of all.
func TestCompareNamesSomeFailures(t *testing.T) {
	x := &Comparison{NewFailures: 3000, Failed: make([]NewFailure, maxSkips)}
	assert.Equal(t, "New failures, the first 1,000", x.Document(10).Tables[0].Title)
	assert.Equal(t, maxSkips-10, x.Document(10).Tables[0].More)
	x.NewFailures = maxSkips
	assert.Equal(t, "New failures", x.Document(10).Tables[0].Title)
}

// TestCompareFewTraces: what a few traces scatter by is not known well, and of one on each side not at all.
// Few that do not differ seem to, and a method that doubled is found.
func TestCompareFewTraces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	of := func(traces int, hot float64) *report.Measures {
		var m report.Measurer
		for range traces {
			self, all := map[string]float64{}, 0.0
			for i := range 20 {
				ms := 100 * (1 + 0.1*rng.NormFloat64())
				if i == 0 {
					ms *= hot
				}
				self[fmt.Sprintf("Shop!Shop.M%d()", i)] = ms
				all += ms
			}
			m.Hot(self, all)
		}
		return m.All()
	}
	for _, n := range [][2]int{{1, 2}, {2, 2}, {3, 1}, {3, 3}, {2, 10}, {10, 10}} {
		const pairs = 200
		wrong, found := 0, 0
		for range pairs {
			x := &Comparison{}
			x.methods(of(n[0], 1), of(n[1], 1))
			require.Len(t, x.Methods, 20)
			if slices.ContainsFunc(x.Methods, func(m MethodChange) bool { return m.Share.Moved() }) {
				wrong++
			}
			x = &Comparison{}
			x.methods(of(n[0], 1), of(n[1], 2))
			if x.Methods[0].Method == "Shop!Shop.M0()" && x.Methods[0].Share.Moved() {
				found++
			}
		}
		assert.LessOrEqual(t, wrong, pairs/20, n)
		if n[0]+n[1] >= 6 {
			assert.Greater(t, found, pairs/2, n)
		}
		t.Logf("%v: %d of %d pairs show what is not there, %d what is", n, wrong, pairs, found)
	}
	x := &Comparison{}
	x.methods(of(1, 1), of(10, 0))
	assert.Equal(t, "Shop!Shop.M0()", x.Methods[0].Method)
	assert.Equal(t, compare.Unclear, x.Methods[0].Share.Verdict, "it was seen in one trace")
	x = &Comparison{}
	x.methods(of(1, 1), of(1, 2))
	assert.Empty(t, x.Methods)
	assert.Contains(t, x.Notes[0], "methods are not compared")
	g, err := ParseComparisonGate("cpu:*>+10%")
	require.NoError(t, err)
	assert.Contains(t, x.Check([]ComparisonGate{g}), "cannot be judged: one trace each")
}
