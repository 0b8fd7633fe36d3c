package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// A gap says why nothing was sampled, and looks at all processes.
func TestGapsInBrowser(t *testing.T) {
	tab := profile.NewTable()
	stack := tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "A()"})}))
	one, two := &profile.Process{PID: 1, Name: "one"}, &profile.Process{PID: 2, Name: "two"}
	thread := func(of *profile.Process, tid int64, kind profile.SampleType, at ...int64) *profile.Thread {
		th := &profile.Thread{Process: of, TID: tid}
		for _, ms := range at {
			th.Samples.Append(profile.Sample{Time: ms * 1e6, Stack: stack, Type: kind})
		}
		return th
	}
	every := func(from, to int64) (at []int64) {
		for ; from < to; from++ {
			at = append(at, from)
		}
		return at
	}
	gap := append(every(0, 10), every(2010, 2020)...)
	for _, c := range []struct {
		want  string
		first *profile.Thread
		other *profile.Thread
	}{
		{"the thread was not on a CPU", thread(one, 10, profile.SampleCPU, gap...), thread(two, 20, profile.SampleCPU, every(0, 2020)...)},
		{"the sampler saw other processes and not this one", thread(one, 10, profile.SampleManaged, gap...), thread(two, 20, profile.SampleManaged, every(0, 2020)...)},
		{"the sampler saw other threads and not this one", thread(one, 10, profile.SampleManaged, gap...), thread(one, 20, profile.SampleManaged, every(0, 2020)...)},
		{"no thread was sampled", thread(one, 10, profile.SampleManaged, gap...), thread(two, 20, profile.SampleManaged, gap...)},
	} {
		b := tracetest.NewBrowser(t, 1400, 900)
		b.Open(pageFor(t, &profile.Profile{Table: tab, Processes: []*profile.Process{one, two}, Threads: []*profile.Thread{c.first, c.other}, Meta: profile.Meta{Source: "a.nettrace", End: 2020e6}})+"#view=limits", drawn)
		look(t, b)
		why := map[string]bool{}
		for line := range strings.Lines(text(t, b, "table")) {
			for _, text := range []string{"not on a CPU", "the sampler saw", "no thread was"} {
				if i := strings.Index(line, text); i >= 0 {
					why[strings.TrimSpace(line[strings.LastIndexByte(line, '\t')+1:])] = true
				}
			}
		}
		assert.Equal(t, map[string]bool{c.want: true}, why)
	}
}
