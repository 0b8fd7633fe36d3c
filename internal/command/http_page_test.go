package command

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tracetest.KeepBrowser(m)) }

var _ = flag.Bool("update", false, "write the golden picture anew")

// httpPage writes the page of a trace's requests and returns its address.
func httpPage(t *testing.T, file string, h *HTTP) (string, *report.Trace) {
	t.Helper()
	in, err := input.Open(t.Context(), file, nil)
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, h.Check("html"))
	var out bytes.Buffer
	rep := &report.Trace{}
	require.NoError(t, h.Do(t.Context(), &Call{In: in, Out: &out, Format: "html", Report: rep}))
	page := filepath.Join(t.TempDir(), "requests.html")
	require.NoError(t, os.WriteFile(page, out.Bytes(), 0o600))
	return "file://" + filepath.ToSlash(page), rep
}

// TestHTTPPageInBrowser drives the page of requests: percentiles and sums that it carries,
// units, the link to the stacks, keys, and the state in the address.
func TestHTTPPageInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address, rep := httpPage(t, "../requests/testdata/http-more.nettrace.zst", &HTTP{Stacks: "stacks.html"})
	assert.NotContains(t, strings.Join(rep.Notes, "\n"), "Hosting", "what was not asked for is not missed")
	b.Open(address, `document.querySelectorAll(".row").length > 3`)
	b.Golden(filepath.Join("testdata", "requests.png"))
	text := func(id string) (s string) {
		t.Helper()
		b.Eval(`document.getElementById("`+id+`").textContent`, &s)
		return s
	}
	assert.Regexp(t, `^\d+ made: p50 [\d.,]+ m?s · p90 [\d.,]+ m?s · p95 [\d.,]+ m?s · p99 [\d.,]+ m?s · longest [\d.,]+ m?s$`, text("quick"))
	for _, want := range []string{"Phases of all requests made" + "phase" + "count", "wait", "of all", "mean", "Hosts", "p99"} {
		assert.Contains(t, text("tables"), want)
	}
	// The percentile is that of the rows, and the sum of a phase that of the summary.
	var own, told float64
	b.Eval(`(() => { const d = all.filter(r => r.dur !== null && r.out !== 3).map(r => r.dur).sort((a, b) => a - b); return d[Math.floor(d.length / 2)] })()`, &told)
	b.Eval(`parseFloat(document.getElementById("quick").textContent.match(/p50 ([\d.]+)/)[1])`, &own)
	assert.InDelta(t, told, own, 0.01)
	assert.Regexp(t, `^[\d.,]+ m?s$`, func() (s string) { b.Eval(`document.querySelector("#axis span").textContent`, &s); return s }())

	b.Eval(`document.getElementById("list").focus()`, nil)
	b.Key("ArrowDown")
	b.Key("ArrowDown")
	var link, id string
	b.Eval(`document.querySelector("#detail a").getAttribute("href")`, &link)
	b.Eval(`String(sel.id)`, &id)
	assert.Equal(t, "stacks.html#request="+id+"&view=flame", link)
	b.Wait(`location.hash === "#id=` + id + `"`)
	b.Open("about:blank", "document.readyState === 'complete'")
	b.Open(address+"#q=failed&sort=dur.-1", `document.querySelectorAll(".row").length > 0`)
	var sorted bool
	b.Eval(`rows.length > 0 && rows.every((r, i) => (r.text.includes("failed")) && (!i || (rows[i - 1].dur ?? -1) >= (r.dur ?? -1)))`, &sorted)
	assert.True(t, sorted)
	b.Screenshot("requests")
}

// TestHTTPPageIsAsWideAsItsWindow holds the pages of requests with a note that names a command
// without a blank in it, which made them wider than any window.
func TestHTTPPageIsAsWideAsItsWindow(t *testing.T) {
	b := tracetest.NewBrowser(t, 1300, 800)
	for _, h := range []*HTTP{{Side: "both"}, {Summary: true}} {
		address, _ := httpPage(t, "../requests/testdata/http-more.nettrace.zst", h)
		for _, wide := range []int{1300, 380} {
			b.Show(wide, 800, wide < 1300)
			b.Open(address, `document.querySelectorAll(".row, td").length > 3`)
			var told string
			b.Eval(`document.body.textContent`, &told)
			require.Contains(t, told, "System.Net.Http:0x")
			var over int
			b.Eval(`document.documentElement.scrollWidth - innerWidth`, &over)
			assert.LessOrEqual(t, over, 0, "%d px wide", wide)
		}
		b.Screenshot("requests-narrow")
	}
}

// TestHTTPPageShowsServed shows the served side, by route, and leads from a request to how it was served.
func TestHTTPPageShowsServed(t *testing.T) {
	file := "../../../shared/corpus/dotnet10/requests-full.nettrace"
	if _, err := os.Stat(file); err != nil {
		t.Skip("no ../shared/corpus: it holds the recording of a service with its requests")
	}
	b := tracetest.NewBrowser(t, 1400, 900)
	address, _ := httpPage(t, file, &HTTP{Side: "both"})
	b.Open(address, `document.querySelectorAll(".row").length > 3`)
	var n, served int
	b.Eval(`all.length`, &n)
	b.Eval(`window.served.length`, &served)
	assert.Equal(t, []int{2 * 869, 869}, []int{n, served})
	var text string
	b.Eval(`document.getElementById("tables").textContent`, &text)
	assert.Contains(t, text, "Served, by route")
	b.Eval(`(() => { const s = document.getElementById("side"); s.value = "s"; s.onchange() })()`, nil)
	b.Eval(`document.getElementById("count").textContent`, &text)
	assert.Equal(t, "869 of 1,738", text)
	b.Eval(`document.getElementById("quick").textContent`, &text)
	assert.Regexp(t, `^869 served: p50 [\d.]+ ms`, text, "a side has percentiles of its own")
	b.Screenshot("requests-served")
}

// On paper there is each request, and not those that the screen had room for.
func TestHTTPPageOnPaper(t *testing.T) {
	b := tracetest.NewBrowser(t, 1000, 500)
	address, _ := httpPage(t, "../requests/testdata/http-more.nettrace.zst", &HTTP{})
	b.Open(address, `document.querySelectorAll(".row").length > 3`)
	var shown, all int
	count := func(expression string) (n int) {
		t.Helper()
		b.Eval(expression, &n)
		return n
	}
	const rows = `document.querySelectorAll(".row").length`
	shown, all = count(rows), count("rows.length")
	assert.Less(t, shown, all)
	b.Paper()
	assert.Equal(t, all, count(rows))
	assert.GreaterOrEqual(t, count(`document.documentElement.scrollHeight`), 24*all)
	b.Eval(`dispatchEvent(new Event("afterprint"))`, nil)
	b.Show(1000, 500, false)
	b.Eval(`rows = Array(3000).fill(rows[0])`, nil)
	b.Paper()
	assert.Equal(t, 2000, count(rows))
	var told string
	b.Eval(`document.getElementById("count").textContent`, &told)
	assert.Equal(t, "the first 2,000 of 3,000", told)
}
