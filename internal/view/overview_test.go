package view_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// threadsOf is a profile of n threads of one process, each sampled 4 times, on a CPU at every second time.
func threadsOf(n int) *profile.Profile {
	tab := profile.NewTable()
	frame := func(module, name string) profile.FrameID {
		return tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: module, Name: name})})
	}
	outer := tab.Push(0, frame("Mod,ule", "Outer()"))
	inner := tab.Push(outer, frame("Other", "Inner()"))
	process := &profile.Process{PID: 7, Name: "app"}
	p := &profile.Profile{Table: tab, Processes: []*profile.Process{process}, Meta: profile.Meta{Source: "many.nettrace", End: 40e6}}
	for i := range n {
		th := &profile.Thread{Process: process, TID: int64(100 + i)}
		for k := range 4 {
			s := profile.Sample{Time: int64(k) * 10e6, Stack: inner}
			if k%2 == 1 {
				s.Type, s.Stack = profile.SampleExternal, outer
			}
			th.Samples.Append(s)
		}
		p.Threads = append(p.Threads, th)
	}
	return p
}

// rows counts those of the tables.
func rows(b *tracetest.Browser) (n int) {
	b.Eval(`document.querySelectorAll("#table tbody tr").length`, &n)
	return n
}

// However many threads there are, the overview shows them, and tables say what they leave out.
func TestManyThreadsInBrowser(t *testing.T) {
	const n = 9000
	b := tracetest.NewBrowser(t, 1400, 900)
	p := threadsOf(n)
	for i := range 1200 {
		p.Losses = append(p.Losses, profile.Loss{From: int64(i) * 1e4, To: int64(i)*1e4 + 10, Events: 1})
	}
	b.Open(pageFor(t, p)+"#threads=all&view=tracks", drawn)
	look(t, b)
	blue := func() (n int) {
		b.Eval(`(() => { const c = document.getElementById("overview"), d = c.getContext("2d").getImageData(300, 0, 400, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 2] > d[i] + 60) n++; return n })()`, &n)
		return n
	}
	assert.Greater(t, blue(), 1000, "what ran on a CPU")
	b.Eval(`document.getElementById("lanes").scrollTop = 1e6`, nil)
	look(t, b)
	assert.Greater(t, blue(), 1000, "of the last threads, too")
	b.Screenshot("many-threads")
	var box struct{ X, Y float64 }
	b.Eval(`(r => ({ X: r.left + 60, Y: r.bottom - 12 }))(document.getElementById("lanes").getBoundingClientRect())`, &box)
	b.Click(box.X, box.Y)
	assert.Equal(t, []string{fmt.Sprintf("Thread %d", 100+n-1)}, look(t, b).Names, "a click finds the lane below it")
	assert.Contains(t, text(t, b, "table"), "The first 1,000 of 9,000;")
	assert.Equal(t, 1000, rows(b))
	b.Key("8")
	look(t, b)
	assert.Contains(t, text(t, b, "table"), "The first 1,000 of 1,200;")
}
