package view_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// Whoever uses the keys stays where they are when what they acted on is drawn anew.
func TestFocusStaysInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, threadsOf(5))+"#view=methods", drawn)
	act := func(find string) (on string) {
		t.Helper()
		look(t, b)
		b.Eval(find+`.focus()`, nil)
		b.Eval(`document.activeElement.click()`, nil)
		look(t, b)
		b.Eval(`document.activeElement.id || document.activeElement.textContent`, &on)
		return on
	}
	assert.Equal(t, "Total ↓", act(`document.querySelectorAll("#table thead button")[1]`))
	b.Key("7")
	assert.Equal(t, "Thread 103", act(`[...document.querySelectorAll("#table tbody button")].find(b => b.textContent === "Thread 103")`))
	b.Eval(`["Mod,ule", "Other"].forEach(m => tracefix.state.hidden.add(m)), tracefix.redraw()`, nil)
	assert.Equal(t, "hidden: Other ×", act(`document.querySelector("#rules button")`), "the next one")
	assert.Equal(t, "table", act(`document.querySelector("#rules button")`), "after the last one")
	b.Eval(`tracefix.explainMethod(0)`, nil)
	assert.Equal(t, "details", act(`(tracefix.explain([...tracefix.state.threads][0], 0), document.querySelector("#details li button"))`))

	// The menu of evidence closes.
	open := func() (is bool) { b.Eval(`document.querySelector("details").open`, &is); return is }
	b.Eval(`document.getElementById("repair").hidden = false, document.querySelector("summary").focus(), document.querySelector("summary").click()`, nil)
	require.True(t, open())
	b.Key("Escape")
	assert.False(t, open())
	b.Eval(`document.querySelector("summary").click()`, nil)
	require.True(t, open())
	b.Click(500, 600)
	assert.False(t, open())
}

// Tables wait while somebody drags.
func TestDragWaitsInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, threadsOf(5))+"#view=methods", drawn)
	look(t, b)
	var drawnAnew [3]int
	b.Eval(`new Promise(async done => {
		const c = document.getElementById("overview"), frame = () => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
		let n = 0;
		const views = tracefix.views.methods, draw = views.draw, counts = [];
		views.draw = () => { n++; draw(); };
		c.setPointerCapture = () => {};
		const send = (type, x) => c.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: c.getBoundingClientRect().top + 30, bubbles: true }));
		send("pointerdown", 400);
		for (let x = 410; x < 500; x += 30) { send("pointermove", x); await frame(); }
		counts.push(n);
		await new Promise(r => setTimeout(r, 500));
		counts.push(n);
		send("pointermove", 520); send("pointerup", 520); await frame();
		counts.push(n);
		done(counts);
	})`, &drawnAnew)
	assert.Equal(t, [3]int{0, 1, 2}, drawnAnew, "while dragging, after a pause, at its end")
}
