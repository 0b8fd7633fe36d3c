package view_test

import (
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

func TestMain(m *testing.M) { os.Exit(tracetest.KeepBrowser(m)) }

// pageOf writes the page of a repaired trace and returns its address.
func pageOf(t *testing.T, file string) string {
	p, err := tracefix.Read(t.Context(), file, &tracefix.ReadOptions{Tracks: []string{"gc", "http", "exceptions", "contention", "activities", "counters"}, Work: true})
	require.NoError(t, err)
	tracefix.Repair(p, nil)
	return pageFor(t, p)
}

// pageFor writes the page of a profile and returns its address.
func pageFor(t *testing.T, p *profile.Profile) string {
	page := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(page)
	require.NoError(t, err)
	require.NoError(t, view.Write(f, p))
	require.NoError(t, f.Close())
	return "file://" + filepath.ToSlash(page)
}

// A state is what of the page's state the test looks at.
type state struct {
	View, Kind, Query string
	From, To          float64
	Recorded          bool
	MinConfidence     float64
	Method            *int
	Request, Zoom     int
	Words             bool
	Threads           []int // how many samples of each were cut
	Names             []string
}

// look waits until the page has drawn what it was asked for, and returns its state.
func look(t *testing.T, b *tracetest.Browser) (s state) {
	t.Helper()
	var text string
	b.Eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => { const s = tracefix.state; done(JSON.stringify({ ...s, threads: [...s.threads].map(t => t.cut), names: [...s.threads].map(tracefix.threadName) })) })))`, &text)
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

func text(t *testing.T, b *tracetest.Browser, id string) (s string) {
	t.Helper()
	b.Eval(`document.getElementById("`+id+`").innerText`, &s)
	return s
}

const drawn = "window.tracefix && document.getElementById('selected').textContent"

// TestPageInBrowser drives the page as a user does.
func TestPageInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address := pageOf(t, "../../testdata/chain.nettrace.zst")
	b.Open(address, drawn)
	look := func() state { t.Helper(); return look(t, b) }
	chart := func() (v string) {
		t.Helper()
		b.Eval(`document.getElementById("chart").toDataURL().length + ":" + document.getElementById("chart").toDataURL().slice(-400)`, &v)
		return v
	}

	s := look()
	var most int
	b.Eval(`Math.max(...tracefix.trace.threads.map(t => t.cut))`, &most)
	assert.Equal(t, []int{most}, s.Threads, "it opens on the thread that was cut most")
	assert.NotZero(t, most)
	assert.Zero(t, s.From)
	b.Screenshot("view-open")

	// A drag over the overview selects time.
	var box struct{ Left, Top, Width, Height float64 }
	b.Eval(`(r => ({ Left: r.left, Top: r.top, Width: r.width, Height: r.height }))(document.getElementById("overview").getBoundingClientRect())`, &box)
	b.Drag(box.Left+400, box.Top+40, box.Left+700, box.Top+40)
	zoomed := look()
	assert.Greater(t, zoomed.From, 0.0)
	assert.Less(t, zoomed.To, s.To)
	b.Screenshot("view-selected")

	// Views, by their keys. What was selected stays.
	b.Eval(`document.getElementById("chart").focus()`, nil)
	seen := map[string]bool{}
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		b.Key(key)
		now := look()
		seen[now.View] = true
		assert.Equal(t, zoomed.From, now.From, "view %s", now.View)
		b.Screenshot("view-" + key)
		if now.View == "time" || now.View == "flame" {
			continue
		}
		if now.View == "around" {
			continue // no method is chosen yet
		}
		var rows int
		b.Eval(`document.querySelectorAll("#table tbody tr").length`, &rows)
		assert.Greater(t, rows, 3, "view %s", now.View)
	}
	assert.Len(t, seen, 6)
	b.Key("0")
	assert.Equal(t, s.To, look().To, "0 shows all of the time")

	// As recorded and as repaired are different pictures.
	b.Key("1")
	look()
	repaired := chart()
	b.Key("r")
	assert.True(t, look().Recorded)
	assert.NotEqual(t, repaired, chart())
	b.Screenshot("view-recorded")
	b.Key("r")
	assert.False(t, look().Recorded)
	assert.Equal(t, repaired, chart())

	// What is less sure than the slider says is shown as recorded.
	b.Eval(`(c => { c.value = 100; c.oninput({ target: c }) })(document.getElementById("confidence"))`, nil)
	assert.Equal(t, 100.0, look().MinConfidence)
	assert.NotEqual(t, repaired, chart())
	b.Eval(`(c => { c.value = 0; c.oninput({ target: c }) })(document.getElementById("confidence"))`, nil)

	// Search.
	b.Key("/")
	for _, c := range "Walk.Mix" {
		b.Key(string(c))
	}
	found := look()
	assert.Equal(t, "Walk.Mix", found.Query)
	b.Key("Enter")
	var hits string
	b.Eval(`document.getElementById("hits").textContent`, &hits)
	assert.Contains(t, hits, "1 of ")
	assert.NotNil(t, look().Method)
	b.Screenshot("view-search")

	// The address holds the state.
	b.Wait(`location.hash.includes("find=Walk.Mix")`)
	b.Eval(`document.activeElement.blur()`, nil)
	b.Key("5")
	b.Wait(`location.hash.includes("view=methods")`)
	var hash string
	b.Eval(`location.hash`, &hash)
	b.Open("about:blank", "document.readyState === 'complete'")
	b.Open(address+hash, drawn)
	again := look()
	assert.Equal(t, []string{"methods", "Walk.Mix"}, []string{again.View, again.Query})

	// The totals on the page are those of the model.
	var total float64
	b.Eval(`tracefix.sums().all`, &total)
	assert.Positive(t, total)

	var bad []string
	b.Eval(`performance.getEntriesByType("resource").map(e => e.name)`, &bad)
	assert.Empty(t, bad, "the page asks for nothing")
}

// TestTracksInBrowser clicks on what tracks show: that selects its time and threads, whatever view is
// open, and keeps zoom and view.
func TestTracksInBrowser(t *testing.T) {
	for _, c := range []struct{ name, file, lane string }{
		{"exceptions", "../../testdata/nettrace/runtime-exceptions.nettrace.zst", "exceptions"},
		{"collections", "../../testdata/nettrace/runtime-gc.nettrace.zst", "gc"},
		{"contention", "../../testdata/nettrace/runtime-locks.nettrace.zst", "contention"},
		{"requests", "../requests/testdata/http-more.nettrace.zst", "http"},
		{"activities", "../../testdata/nettrace/probe10.nettrace.zst", "activities"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := tracetest.NewBrowser(t, 1400, 900)
			b.Open(pageOf(t, c.file), drawn)
			s := look(t, b)
			b.Screenshot("tracks-" + c.name)
			// Where in the page the longest slice of the lane stands.
			var at struct{ X, Y, From, To float64 }
			b.Eval(`(() => {
				const r = document.getElementById("overview").getBoundingClientRect(), groups = [...new Set(tracefix.trace.tracks.map(t => t.group || t.title))], k = groups.indexOf("`+c.lane+`");
				const tracks = tracefix.trace.tracks.filter(t => t.group === "`+c.lane+`"), end = tracefix.trace.head.end;
				let best = null;
				for (const t of tracks) for (let i = 0; i < t.slices; i++) if (!best || t.end[i] - t.start[i] > best.to - best.from) best = { from: t.start[i], to: t.end[i] };
				return { x: r.left + LABEL + (best.from + best.to) / 2 / end * (r.width - LABEL), y: r.top + HEAD + k * LANE + LANE / 2 - document.getElementById("lanes").scrollTop, from: best.from, to: best.to };
			})()`, &at)
			b.Key("2") // where there are no samples there is time order all the same
			b.Click(at.X, at.Y)
			now := look(t, b)
			assert.True(t, now.From > 0 || now.To < s.To, "a selection of time")
			middle := (at.From + at.To) / 2
			slack := s.To / 300
			assert.True(t, now.From-slack <= middle && middle <= now.To+slack, "%v is in %v to %v", middle, now.From, now.To)
			assert.Equal(t, "time", now.View)
			assert.NotEmpty(t, text(t, b, "details"))
			b.Screenshot("tracks-" + c.name + "-clicked")
			// The keys go from one to the next.
			b.Key("0")
			b.Key("o")
			for range 20 {
				b.Key("ArrowUp")
			}
			var lane int
			b.Eval(`[...new Set(tracefix.trace.tracks.map(t => t.group || t.title))].indexOf("`+c.lane+`")`, &lane)
			for range lane {
				b.Key("ArrowDown")
			}
			b.Key("Enter")
			one := look(t, b)
			b.Key("Enter")
			now = look(t, b)
			assert.Greater(t, now.From, one.From, "what comes next")
			b.Key("7")
			again := look(t, b)
			assert.Equal(t, []float64{now.From, now.To}, []float64{again.From, again.To}, "another view keeps the selection")
			assert.Equal(t, now.Names, again.Names)
			assert.Contains(t, text(t, b, "table"), "Tracks, in the selected time")
		})
	}
}

// TestRequestInBrowser opens the page as the requests page links to it.
func TestRequestInBrowser(t *testing.T) {
	file := "../../../shared/corpus/dotnet10/requests-full.nettrace"
	if _, err := os.Stat(file); err != nil {
		t.Skip("no ../shared/corpus: it holds the recording of a service with its requests")
	}
	b := tracetest.NewBrowser(t, 1400, 900)
	page := pageOf(t, file)
	b.Open(page+"#request=30&view=flame", drawn)
	s := look(t, b)
	assert.Equal(t, 30, s.Request)
	assert.Equal(t, "flame", s.View)
	assert.NotEmpty(t, s.Names)
	var own, window float64
	b.Eval(`tracefix.sums().all`, &own)
	b.Eval(`(() => { tracefix.state.request = 0; return tracefix.sums().all })()`, &window)
	b.Eval(`tracefix.state.request = 30, tracefix.redraw()`, nil)
	assert.Positive(t, own)
	assert.Less(t, own, window, "only what was done for the request")
	b.Screenshot("request")
}

// TestKeysInBrowser does everything without a mouse.
func TestKeysInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address := pageOf(t, "../../testdata/chain.nettrace.zst")
	b.Open(address, drawn)
	keys := func(keys ...string) state {
		t.Helper()
		for _, k := range keys {
			b.Key(k)
		}
		return look(t, b)
	}
	s := look(t, b)

	// The overview.
	keys("o")
	first := keys("ArrowDown", "ArrowDown", "ArrowDown")
	assert.Equal(t, s.Names, first.Names, "moving on selects nothing yet")
	var lanes int
	b.Eval(`new Set(tracefix.trace.tracks.map(t => t.group || t.title)).size`, &lanes)
	for range lanes {
		keys("ArrowDown")
	}
	other := keys("Enter").Names
	assert.NotEqual(t, other, keys("ArrowDown", "Enter").Names, "Enter selects the thread")
	keys("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp")
	on := keys("Enter")
	assert.True(t, on.From > 0 || on.To < s.To, "Enter on a track selects what is next")
	moved := keys("ArrowRight")
	assert.NotZero(t, moved.From)
	assert.Less(t, moved.To-moved.From, s.To)
	assert.Greater(t, keys("-").To-look(t, b).From, 0.0)
	assert.Zero(t, keys("0").From)

	// The flame graph.
	b.Eval(`document.getElementById("chart").focus()`, nil)
	keys("A", "1", "ArrowDown", "ArrowDown", "ArrowDown")
	assert.Contains(t, text(t, b, "details"), "of the selection")
	zoomed := keys("Enter")
	assert.NotZero(t, zoomed.Zoom)
	b.Eval(`window.copies = []; navigator.clipboard ? navigator.clipboard.writeText = t => { copies.push(t); return Promise.resolve() } : document.execCommand = () => { copies.push(document.activeElement.value) }`, nil)
	keys("c")
	var copies []string
	b.Eval(`copies`, &copies)
	require.Len(t, copies, 1)
	assert.Len(t, strings.Split(copies[0], "\n"), 3, "the frame and its callers")
	b.Screenshot("keys-flame")
	assert.NotEqual(t, zoomed.Zoom, keys("u").Zoom)
	assert.Zero(t, keys("Escape").Zoom)

	// The same as a table.
	assert.True(t, keys("t").Words)
	assert.Contains(t, text(t, b, "table"), "Method")
	b.Screenshot("keys-table")
	keys("2")
	assert.Contains(t, text(t, b, "table"), "Samples of the selection")
	assert.False(t, keys("t").Words)

	// Time order: moving, zooming, one sample after the other.
	b.Eval(`document.getElementById("chart").focus()`, nil)
	near := keys("w", "w", "d")
	assert.Greater(t, near.From, 0.0)
	keys(".")
	one := text(t, b, "details")
	assert.Contains(t, one, "Sample at")
	keys(".")
	assert.NotEqual(t, one, text(t, b, "details"))
	keys(",")
	assert.Equal(t, one, text(t, b, "details"))
	b.Screenshot("keys-time")

	// All of the state stands in the address.
	keys("r", "k")
	b.Wait(`/recorded=1/.test(location.hash) && /kind=cpu/.test(location.hash) && /sample=/.test(location.hash)`)
	var hash string
	b.Eval(`location.hash`, &hash)
	want := look(t, b)
	b.Open("about:blank", "document.readyState === 'complete'")
	b.Open(address+hash, drawn)
	assert.Equal(t, want, look(t, b))
	assert.Equal(t, one, text(t, b, "details"))

	// ? lists the keys.
	keys("?")
	var open bool
	b.Eval(`document.getElementById("keys").open`, &open)
	assert.True(t, open)
	b.Screenshot("keys-help")
}

// TestToldToScreenReaders looks at what assistive software is told: whatever can be used has a name, and the
// pictures have tables that say the same.
func TestToldToScreenReaders(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address := pageOf(t, "../../testdata/chain.nettrace.zst")
	for _, hash := range []string{"", "#view=time", "#view=flame&table=1", "#view=time&table=1", "#view=methods", "#view=tracks", "#view=limits"} {
		b.Open("about:blank", "document.readyState === 'complete'")
		b.Open(address+hash, drawn)
		look(t, b)
		names := b.Accessible()
		for _, role := range []string{"application", "button", "checkbox", "combobox", "searchbox", "tab", "tablist", "DisclosureTriangle"} {
			assert.NotContains(t, names[role], "", "a %s without a name in %s", role, hash)
		}
		assert.Len(t, names["tab"], 8)
		if hash == "" || hash == "#view=time" {
			assert.Len(t, names["application"], 2, "overview and stacks")
			continue
		}
		assert.NotEmpty(t, names["columnheader"], hash)
		assert.Greater(t, len(names["row"]), 1, hash)
	}
}

// TestExplainsRepair looks at one repaired sample: evidence, witness, how sure.
func TestExplainsRepair(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageOf(t, "../../testdata/chain.nettrace.zst"), drawn)
	assert.Regexp(t, `[\d,]+ of [\d,]+ cut repaired, [\d,]+ bridged, [\d,]+ frames restored`, text(t, b, "facts"))
	b.Eval(`(() => { const t = [...tracefix.state.threads][0]; tracefix.state.view = "time"; const i = [...t.cuts].find(i => t.flags[i] >> HOW); tracefix.select(t.start[i] - 5e6, t.end[i] + 5e6); tracefix.explain(t, i) })()`, nil)
	look(t, b)
	shown := text(t, b, "details")
	for _, want := range []string{"Recorded", "100 frames, cut", "restored", "Evidence", "known", "Confidence", "%", "Witness", "recorded whole"} {
		assert.Contains(t, shown, want)
	}
	var restored int
	b.Eval(`document.querySelectorAll("#details li.restored").length`, &restored)
	assert.Positive(t, restored)
	b.Screenshot("explain")
}

// TestExportsInBrowser saves the selection in every form.
func TestExportsInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageOf(t, "../../testdata/chain.nettrace.zst"), drawn)
	var all float64
	b.Eval(`tracefix.sums().all`, &all)
	saved := func(kind string) (name, content string) {
		t.Helper()
		b.Eval(`tracefix.saved = null, tracefix.exports["`+kind+`"](), null`, nil)
		b.Wait(`tracefix.saved`)
		b.Eval(`tracefix.saved.name`, &name)
		b.Eval(`typeof tracefix.saved.content === "string" ? tracefix.saved.content : tracefix.saved.content.arrayBuffer().then(a => String.fromCharCode(...new Uint8Array(a).slice(0, 8)))`, &content)
		return name, content
	}
	name, content := saved("folded")
	assert.Equal(t, "chain.nettrace.folded", name)
	sum := 0.0
	for line := range strings.Lines(strings.TrimSpace(content)) {
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		require.NoError(t, err)
		sum += n
	}
	assert.InEpsilon(t, all/1000, sum, 0.01, "microseconds")
	_, content = saved("speedscope")
	file := filepath.Join(t.TempDir(), "a.speedscope.json")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	read, err := tracefix.Read(t.Context(), file, nil)
	require.NoError(t, err)
	assert.NotEmpty(t, read.Threads)
	for _, view := range []string{"flame", "time"} {
		b.Eval(`tracefix.show("`+view+`")`, nil)
		look(t, b)
		name, content = saved("svg")
		assert.Equal(t, "chain.nettrace.svg", name)
		require.NoError(t, xml.Unmarshal([]byte(content), new(struct{})))
		assert.Contains(t, content, "Lab.Chain.")
		name, content = saved("png")
		assert.Equal(t, "chain.nettrace.png", name)
		assert.Equal(t, "\u0089PNG", content[:5])
	}
}

// TestExportsOfExtremes: a picture that is taller than a canvas can be is saved smaller, and time without a frame
// is in the files as it is in the page.
func TestExportsOfExtremes(t *testing.T) {
	tab := profile.NewTable()
	deep := profile.StackID(0)
	for i := range 4000 {
		deep = tab.Push(deep, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Name: "M" + strconv.Itoa(i%40)})}))
	}
	th := &profile.Thread{Process: &profile.Process{PID: 1}, TID: 2}
	for i, stack := range []profile.StackID{0, deep, deep, 0} {
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: stack})
	}
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, &profile.Profile{Table: tab, Threads: []*profile.Thread{th}, Processes: []*profile.Process{th.Process}, Meta: profile.Meta{Source: "deep.nettrace", End: 4e6}}), drawn)
	saved := func(kind, what string) (content string) {
		b.Eval(`tracefix.saved = null, tracefix.exports["`+kind+`"](), null`, nil)
		b.Wait(`tracefix.saved`)
		b.Eval(what, &content)
		return content
	}
	assert.Equal(t, "PNG", saved("png", `tracefix.saved.content.arrayBuffer().then(a => String.fromCharCode(...new Uint8Array(a).slice(1, 4)))`))
	assert.Contains(t, saved("folded", `tracefix.saved.content.slice(0, 50)`), "[no frames] 2000\n")
	assert.Equal(t, "4000000/0/4000", saved("speedscope", `(p => [p.endValue, ...p.samples.map(s => s.length)].join("/"))(JSON.parse(tracefix.saved.content).profiles[0])`))
	assert.Contains(t, saved("speedscope", `tracefix.saved.content.slice(-50)`), `"weights":[2000000,2000000]`)
}

// TestLimitsInBrowser shows what a trace lacks.
func TestLimitsInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, lossyProfile()), drawn)
	assert.Contains(t, text(t, b, "notes"), "1,234 events were lost")
	assert.Contains(t, text(t, b, "notes"), `2 places; the lane "damage" shows when; 1 behind all samples`)
	b.Key("8")
	look(t, b)
	shown := text(t, b, "table")
	for _, want := range []string{"1,234 events in 1 gap;", "Thread 10", "70.00 ms", "4,711", "45.00 ms", "StackBlock", "unexpected EOF", "behind all samples", "the sampler saw other threads and not this one", "left as recorded", "does not tell which"} {
		assert.Contains(t, shown, want)
	}
	b.Screenshot("limits")
	// The gap is drawn over the time order, and its time can be selected.
	b.Eval(`[...document.querySelectorAll("#table button")].find(b => b.textContent === "70.00 ms").click()`, nil)
	assert.InDelta(t, 70e6, look(t, b).From, 1e6)
	b.Key("2")
	look(t, b)
	b.Screenshot("limits-time")
}

// TestOpensOnUsersThread: the page opens on a thread of the process whose managed code worked most,
// and there on the one that was cut most of those that did much, else the busiest.
func TestOpensOnUsersThread(t *testing.T) {
	tab := profile.NewTable()
	push := func(kind profile.FrameKind) profile.StackID {
		return tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "A()", Kind: kind})}))
	}
	managed, native := push(profile.Managed), push(profile.Native)
	recorder, app := &profile.Process{PID: 3, Name: "recorder"}, &profile.Process{PID: 4, Name: "app"}
	thread := func(of *profile.Process, tid int64, stack profile.StackID, samples, cut int) *profile.Thread {
		th := &profile.Thread{Process: of, TID: tid}
		for i := range samples {
			s := profile.Sample{Time: int64(i) * 1e6, Stack: stack, Type: profile.SampleCPU}
			if i < cut {
				s.Cut = profile.CutDepth
			}
			th.Samples.Append(s)
		}
		return th
	}
	busiest, cut := thread(app, 11, managed, 100, 0), thread(app, 12, managed, 60, 10)
	others := []*profile.Thread{thread(recorder, 10, native, 500, 400), thread(app, 13, managed, 5, 5)}
	for name, c := range map[string]struct {
		threads []*profile.Thread
		want    string
	}{
		"the most cut": {append(others, busiest, cut), "Thread 12 of app"},
		"the busiest":  {append(others, busiest), "Thread 11 of app"},
	} {
		t.Run(name, func(t *testing.T) {
			b := tracetest.NewBrowser(t, 1400, 900)
			b.Open(pageFor(t, &profile.Profile{Table: tab, Processes: []*profile.Process{recorder, app}, Threads: c.threads, Meta: profile.Meta{Source: "a.nettrace", End: 500e6}}), drawn)
			assert.Equal(t, []string{c.want}, look(t, b).Names)
		})
	}
}

// TestOpensWithoutSamples: a trace of requests, activities or collections alone has a page.
func TestOpensWithoutSamples(t *testing.T) {
	for _, file := range []string{"../../testdata/nettrace/runtime-gc.nettrace.zst", "../../testdata/nettrace/probe10.nettrace.zst", "../../testdata/nettrace/counters.nettrace.zst"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := tracefix.Read(t.Context(), file, &tracefix.ReadOptions{Tracks: []string{"gc", "http", "exceptions", "contention", "activities", "counters"}})
			require.NoError(t, err)
			p.Threads = nil // whether it was sampled or not
			b := tracetest.NewBrowser(t, 1400, 900)
			b.Before(`window.failed = []; addEventListener("error", e => failed.push(e.message))`)
			b.Open(pageFor(t, p), drawn)
			assert.Equal(t, "tracks", look(t, b).View)
			for _, key := range []string{"1", "2", "3", "4", "5", "6", "8", "7"} {
				b.Key(key)
				look(t, b)
			}
			require.NotEmpty(t, p.Tracks)
			assert.Contains(t, text(t, b, "facts"), "no CPU samples")
			if p.Tracks[0].Group != "counters" {
				assert.Contains(t, text(t, b, "table"), "Tracks, in the selected time")
				return
			}
			var cells []string
			b.Eval(`[...[...document.querySelectorAll("#table tbody tr")].find(r => r.cells[4].textContent.startsWith("CPU Usage")).cells].map(c => c.textContent)`, &cells)
			least, most, sum, time := math.Inf(1), math.Inf(-1), 0.0, 0.0
			for sl := range p.Tracks[0].Slices {
				v := sl.Args[slices.IndexFunc(sl.Args, func(a profile.Arg) bool { return a.Key == "value" })].Value.(float64)
				least, most, sum, time = min(least, v), max(most, v), sum+v*float64(sl.Dur), time+float64(sl.Dur)
			}
			require.Equal(t, "CPU Usage (%)", p.Tracks[0].Name)
			shown := func(i int) float64 {
				v, err := strconv.ParseFloat(strings.ReplaceAll(cells[i], ",", ""), 64)
				require.NoError(t, err)
				return v
			}
			for i, want := range []float64{least, sum / time, most} {
				assert.InDelta(t, want, shown(i), 0.01)
			}
			var failed []string
			b.Eval(`failed`, &failed)
			assert.Empty(t, failed)
			b.Screenshot("without-samples-" + filepath.Base(file))
		})
	}
}

// On a narrow or low screen the page scrolls, and what is looked at is no strip at its end. On paper
// there is the whole of a table.
func TestPageOnOtherMedia(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageOf(t, "../../testdata/chain.nettrace.zst"), drawn)
	high := func(id string) (v float64) {
		t.Helper()
		b.Eval(`document.getElementById("`+id+`").getBoundingClientRect().height`, &v)
		return v
	}
	for _, size := range [][2]int{{360, 740}, {740, 360}} {
		b.Show(size[0], size[1], false)
		look(t, b)
		assert.Greater(t, high("chart"), 200.0, size)
		var end, right float64
		b.Eval(`scrollTo(0, 1e6), document.getElementById("details").getBoundingClientRect().bottom - innerHeight`, &end)
		assert.LessOrEqual(t, end, 1.0, "the end of the page can be seen")
		b.Eval(`(m => { m.parentElement.open = true; return m.getBoundingClientRect().right - innerWidth })(document.querySelector(".menu"))`, &right)
		assert.LessOrEqual(t, right, 0.0, size)
	}
	b.Show(1000, 700, false)
	b.Eval(`document.getElementById("chart").focus()`, nil)
	b.Key("5")
	look(t, b)
	var rows, page float64
	b.Eval(`document.querySelector("#table table").offsetHeight`, &rows)
	assert.Greater(t, rows, 700.0, "a table that is larger than the screen")
	b.Paper()
	b.Eval(`document.querySelector("#table table").offsetHeight`, &rows)
	assert.GreaterOrEqual(t, high("table"), rows)
	b.Eval(`document.documentElement.scrollHeight`, &page)
	assert.GreaterOrEqual(t, page, rows)
}
