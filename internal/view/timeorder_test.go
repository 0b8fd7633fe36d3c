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

func TestAxisOfAnyLength(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, threadsOf(1)), drawn)
	for _, c := range []struct{ from, to, want string }{
		{"0", "3e3", "0.000 ms,0.001 ms,0.002 ms"},
		{"0", "60e9", "0 s,20 s,40 s"},
		{"600e9", "720e9", "10 min,11 min"},
		{"0", "7200e9", "0 min,30 min,1 h,1 h 30"},
		{"3600e9", "4500e9", "1 h,1 h 05,1 h 10"},
		{"0", "86400e9", "0 min,6 h,12 h,18 h"},
		{"0", "11*86400e9", "0 min,72 h,144 h,216 h"},
	} {
		var got string
		b.Eval(`ticks(`+c.from+`, `+c.to+`, 440).map(t => t[1]).filter(t => t).join()`, &got)
		assert.Equal(t, c.want, got, "%s to %s", c.from, c.to)
	}
}
