package view_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// Time order holds what is chosen, and says what does not act in it.
func TestTimeOrderFollowsInBrowser(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, threadsOf(1))+"#view=time", drawn)
	look(t, b)
	spans := func() (n int) {
		b.Eval(`tracefix.spans()`, &n)
		return n
	}
	picture := func() (s string) {
		b.Eval(`document.getElementById("chart").toDataURL()`, &s)
		return s
	}
	all := picture()
	assert.Equal(t, 3, spans(), "one of the outer frame, two of the inner one")
	b.Key("k")
	look(t, b)
	assert.Equal(t, 4, spans(), "CPU: each sample alone")
	assert.NotEqual(t, all, picture())
	b.Key("t")
	look(t, b)
	assert.Equal(t, 2, rows(b))
	assert.NotContains(t, text(t, b, "table"), "waiting")
	b.Key("k")
	look(t, b)
	assert.Equal(t, 2, rows(b))
	assert.NotContains(t, text(t, b, "table"), "in managed code")

	b.Eval(`tracefix.state.hidden.add("Other"), tracefix.redraw()`, nil)
	look(t, b)
	assert.Contains(t, text(t, b, "rules"), "not in time order")
	var off, on bool
	b.Eval(`document.getElementById("recursion").disabled`, &off)
	b.Key("1")
	look(t, b)
	b.Eval(`!document.getElementById("recursion").disabled`, &on)
	assert.True(t, off && on)
	assert.NotContains(t, text(t, b, "rules"), "not in time order")
}
