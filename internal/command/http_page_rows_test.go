package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestHTTPPageTellsAsNDJSON opens every row of the page and compares its marks, the cause of its failure
// and its small timeline with the row of ndjson.
func TestHTTPPageTellsAsNDJSON(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	for _, name := range []string{"http-more", "http-notpl", "net31-more", "net6-notpl", "requests-short"} {
		file := tracetest.Corpus(t, "dotnet10", name+".nettrace")
		address, _ := httpPage(t, file, &HTTP{Side: "both", Explain: true})
		b.Open(address, `document.querySelectorAll(".row").length > 3`)
		type shown struct {
			Note, Cause string
			Time        map[string]float64 // ms, by the width of what is drawn
			Parts       int
		}
		rows := map[int]shown{}
		b.Eval(`(() => { const out = {}; for (const r of all) { show(r); const d = document.getElementById("detail");
			const told = (c, p) => { for (const e of d.querySelectorAll(":scope>." + c)) if (e.textContent.startsWith(p)) return e.textContent.slice(p.length).split(". ")[0]; return "" };
			const o = out[r.id] = {Note: told("warn", "marked: "), Cause: [...d.querySelectorAll(":scope>.bad")].map(e => e.textContent).filter(x => x.startsWith("cause: ")).map(x => x.slice(7)).join(""), Time: {}, Parts: 0};
			const title = [...d.querySelectorAll(":scope>.dim")].find(e => e.textContent === "where the time went");
			if (title) for (const e of title.nextElementSibling.children) {
				const k = e.title.split(":")[0]; o.Parts++;
				o.Time[k] = (o.Time[k] || 0) + parseFloat(e.style.width) * r.dur / 100;
			}
		} return out })()`, &rows)
		text, _ := runHTTP(t, name, "ndjson", &HTTP{Side: "both", Explain: true})
		n := 0
		for line := range bytes.Lines(text) {
			var want struct {
				ID       int
				Duration *float64 `json:"duration_ms"`
				Marks    []string
				Cause    string `json:"error_cause"`
				Time     *struct {
					CPU       float64            `json:"cpu_ms"`
					GC        float64            `json:"gc_ms"`
					Pool      float64            `json:"pool_ms"`
					OtherSide float64            `json:"other_side_ms"`
					Await     float64            `json:"await_ms"`
					Unknown   float64            `json:"unknown_ms"`
					Blocked   map[string]float64 `json:"blocked_ms"`
				}
			}
			require.NoError(t, json.Unmarshal(line, &want))
			got, ok := rows[want.ID]
			n++
			require.True(t, ok, "%s: %s", name, line)
			require.Equal(t, strings.Join(want.Marks, ", "), got.Note, "%s: %s", name, line)
			require.Equal(t, want.Cause, got.Cause, "%s: %s", name, line)
			if want.Time == nil {
				require.Empty(t, got.Time, "%s: %s", name, line)
				continue
			}
			w := want.Time
			drawn := map[string]float64{"CPU": w.CPU, "GC pause": w.GC, "pool queue": w.Pool, "other side": w.OtherSide, "await": w.Await, "not told": w.Unknown}
			for kind, label := range map[string]string{"lock": "lock", "sleep": "sleep", "wait": "wait", "io": "I/O", "other": "blocked"} {
				drawn[label] = w.Blocked[kind]
			}
			room := 0.001*float64(got.Parts)**want.Duration + 0.002 // nothing is narrower than a thousandth
			for label, ms := range drawn {
				require.InDelta(t, ms, got.Time[label], room, "%s: %s of %s", name, label, line)
			}
		}
		require.Len(t, rows, n, name)
	}
}
