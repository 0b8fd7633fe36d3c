package view_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/internal/view"
)

// pageOf writes the page of a repaired trace and returns its address.
func pageOf(t *testing.T, file string) string {
	p, err := tracefix.Read(t.Context(), file, &tracefix.ReadOptions{Tracks: []string{"gc", "http", "exceptions", "contention"}})
	require.NoError(t, err)
	tracefix.Repair(p, nil)
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
	Threads           []int
}

const drawn = "window.tracefix && document.getElementById('selected').textContent"

// TestPageInBrowser drives the page as a user does.
func TestPageInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	address := pageOf(t, "../../testdata/chain.nettrace.zst")
	b.Open(address, drawn)
	look := func() (s state) {
		t.Helper()
		var text string
		b.Eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => { const s = tracefix.state; done(JSON.stringify({ ...s, threads: [...s.threads].map(t => t.cut) })) })))`, &text)
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		return s
	}
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
