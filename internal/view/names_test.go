package view_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// A "!" stands behind a module where the trace says so, or what is before it looks like one.
func TestNamesInBrowser(t *testing.T) {
	tab, th := profile.NewTable(), &profile.Thread{Process: &profile.Process{PID: 7}, TID: 8}
	want := map[string][2]string{}
	for i, m := range []struct {
		module, name string
		shown        [2]string // module, short name
	}{
		{"", "Hello! It works (twice)", [2]string{"", "Hello! It works "}},
		{"", "Done!", [2]string{"", "Done!"}},
		{"", "Say <b>!</b>", [2]string{"", "Say <b>!</b>"}},
		{"", "System.Core!A.B(int32)", [2]string{"System.Core", "A.B"}},
		{"Shop", "C.D(!!0)", [2]string{"Shop", "C.D"}},
		{"My Shop", "E.F()", [2]string{"My Shop", "E.F"}},
		{"µ (x)!y", "G!H()", [2]string{"µ (x)!y", "G!H"}},
	} {
		method := profile.Method{Module: m.module, Name: m.name}
		want[method.Full()] = m.shown
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(method)}))})
	}
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, &profile.Profile{Table: tab, Threads: []*profile.Thread{th}, Meta: profile.Meta{Source: "a.json", End: 7e6}}), drawn)
	got := map[string][2]string{}
	b.Eval(`Object.fromEntries(tracefix.trace.methods.map(m => [m, [moduleOf(m), shortName(m)]]))`, &got)
	assert.Equal(t, want, got)
	var label string
	b.Eval(`tracefix.label(0, 1000)`, &label)
	assert.Equal(t, "Hello! It works (twice)", label)
	// What nobody calls has nothing to open.
	b.Key("4")
	look(t, b)
	var twists int
	b.Eval(`document.querySelectorAll("#table button.twist").length`, &twists)
	assert.Zero(t, twists)
}

// Threads of two processes of one name are told apart, those of two programs of one number have the name
// of their own, and the number of a thread is not taken for part of another in its name.
func TestThreadNamesInBrowser(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable(), Meta: profile.Meta{Source: "a.json", End: 4e6}}
	stack := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: "F"})}))
	for _, x := range []struct {
		process *profile.Process
		name    string
	}{{&profile.Process{PID: 3, Name: "Lab"}, ""}, {&profile.Process{PID: 4, Name: "Lab"}, ""}, {&profile.Process{PID: 5, Name: "Web"}, "Worker 23"}, {&profile.Process{PID: 6}, "Worker 4"}, {&profile.Process{PID: 5, Name: "Shell"}, ""}} {
		th := &profile.Thread{Process: x.process, Name: x.name, TID: int64(len(p.Threads) + 1)}
		th.Samples.Append(profile.Sample{Stack: stack})
		p.Threads, p.Processes = append(p.Threads, th), append(p.Processes, x.process)
	}
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, p), drawn)
	var got []string
	b.Eval(`tracefix.trace.threads.map(tracefix.threadName)`, &got)
	assert.ElementsMatch(t, []string{"Thread 1 of Lab (3)", "Thread 2 of Lab (4)", "Worker 23 (3) of Web", "Worker 4 of 6", "Thread 5 of Shell"}, got)

	b.Eval(`[".NET ThreadPool Worker (14) of Lab (3)", "VizCompositorThread (40195) of GPU Process", "Thread 2 of a process of a long name (4)", "Worker (7) of it", "x".repeat(1e6) + " (7)"]
		.map(name => clipped({ measureText: s => ({ width: s.length }) }, name, 24))`, &got)
	assert.Equal(t, []string{".NET Th… (14) of Lab (3)", "VizC… (40195) of GPU Pr…", "Thread 2 of a proce… (4)", "Worker (7) of it", "xxxxxxxxxxxxxxxxxxx… (7)"}, got)
}

// The table of threads tells what is known again from what is bridged.
func TestBridgedOfThreadsInBrowser(t *testing.T) {
	p, err := tracefix.Read(t.Context(), "../../testdata/chain.nettrace.zst", nil)
	require.NoError(t, err)
	tracefix.Repair(p, &tracefix.RepairOptions{MinConfidence: 0.9999})
	c := p.Counts()
	require.Positive(t, c.Known)
	require.Positive(t, c.Bridged)
	b := tracetest.NewBrowser(t, 1400, 900)
	b.Open(pageFor(t, p), drawn)
	b.Key("7")
	look(t, b)
	var got []int
	b.Eval(`[3, 4, 5].map(k => [...document.querySelectorAll("#table tbody tr")].reduce((n, r) => n + +r.cells[k].textContent.replaceAll(",", ""), 0))`, &got)
	assert.Equal(t, []int{c.Cut, c.Known, c.Bridged}, got)
}
