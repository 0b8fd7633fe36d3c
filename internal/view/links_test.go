package view_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// paste opens another link to the page that is open.
func paste(t *testing.T, b *tracetest.Browser, hash string) state {
	t.Helper()
	b.Eval(`new Promise(done => { addEventListener("hashchange", () => done(1), { once: true }); location.hash = "`+hash+`" })`, nil)
	return look(t, b)
}

// What a link does not say is as on a page that was just opened, and what it says comes back.
func TestLinksInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address := pageFor(t, threadsOf(3))
	b.Open(address+"#view=methods&kind=cpu&threads=all&time=10000000-20000000", drawn)
	s := look(t, b)
	assert.Len(t, s.Threads, 3)
	assert.Equal(t, []float64{10e6, 20e6}, []float64{s.From, s.To})
	s = paste(t, b, "#view=tree")
	assert.Equal(t, state{View: "tree", Kind: "all", To: 40e6, Threads: []int{0}, Names: []string{"Thread 100"}}, s)

	reopen := func() state {
		t.Helper()
		var hash string
		b.Eval(`new Promise(done => setTimeout(() => done(location.hash), 400))`, &hash)
		b.Open("about:blank", "document.readyState === 'complete'")
		b.Open(address+hash, drawn)
		return look(t, b)
	}
	b.Eval(`tracefix.pick([...tracefix.state.threads][0], true)`, nil)
	assert.Empty(t, reopen().Threads, "no thread is a selection, too")

	hidden := func() (names []string) {
		t.Helper()
		b.Eval(`[...tracefix.state.hidden]`, &names)
		return names
	}
	b.Eval(`["Mod,ule", "Other"].forEach(m => tracefix.state.hidden.add(m)), tracefix.redraw()`, nil)
	reopen()
	assert.Equal(t, []string{"Mod,ule", "Other"}, hidden(), "commas of names")
	paste(t, b, "#hide=Other,More")
	assert.Equal(t, []string{"Other", "More"}, hidden(), "links of old")
}

// A link of a thread selects it alone, also where another process had its number before.
func TestLinkOfATwinInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	p := threadsOf(2)
	p.Processes = []*profile.Process{{PID: 1, Name: "a"}, {PID: 1, Name: "b"}}
	for i, th := range p.Threads {
		th.Process, th.TID = p.Processes[i], 7
	}
	address := pageFor(t, p)
	b.Open(address, drawn)
	for i := range p.Threads {
		var hash string
		b.Eval(`tracefix.pick(tracefix.trace.head.threads[`+strconv.Itoa(i)+`]), new Promise(done => setTimeout(() => done(location.hash), 400))`, &hash)
		b.Open("about:blank", "document.readyState === 'complete'")
		b.Open(address+hash, drawn)
		var of []string
		b.Eval(`tracefix.selectedThreads().map(t => t.process)`, &of)
		assert.Equal(t, []string{p.Processes[i].Name}, of, hash)
	}
	assert.Len(t, paste(t, b, "#threads=1.7").Threads, 2, "links of old")
}

// A request that the page does not know is told, and does not stay.
func TestUnknownRequestInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, nestedRequests())+"#request=59", drawn)
	s := look(t, b)
	assert.Equal(t, 59, s.Request)
	var sum float64
	b.Eval(`tracefix.sums().all`, &sum)
	assert.Equal(t, 20e6, sum, "samples count whole, also that in which it ended")
	assert.Equal(t, "standard input - tracefix", title(b))
	b.Key("2")
	b.Key("t")
	look(t, b)
	assert.Equal(t, 2, rows(b), "the table of time order holds the same samples")
	assert.Contains(t, text(t, b, "table"), "request 59")
	for _, hash := range []string{"#request=99999", "#request=99999&time=0-20000000"} {
		assert.Zero(t, paste(t, b, hash).Request)
		assert.Contains(t, text(t, b, "details"), "No request of this page has the number 99999.")
		assert.Empty(t, text(t, b, "rules"))
	}
	assert.Equal(t, 61, paste(t, b, "#request=61").Request, "between two samples")
	b.Eval(`tracefix.sums().all`, &sum)
	assert.Zero(t, sum)
}

func title(b *tracetest.Browser) (s string) {
	b.Eval(`document.title`, &s)
	return s
}
