package info

import (
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

// restartEnd is GCRestartEEEnd, behind every standstill of the threads.
const restartEnd = 3

// causeVerdict tells whether the trace says where the time of requests and activities went.
func (g *nettraceReader) causeVerdict() (Verdict, bool) {
	var ids, samples, tasks, requests, runtime, stops bool
	for _, t := range g.tallies {
		if t == nil || t.events == 0 {
			continue
		}
		p := t.meta.Provider
		ids = ids || t.linked && t.starts > 0
		samples = samples || p == nettrace.ProviderSampler || t.meta.Role == nettrace.RoleCPU
		tasks = tasks || p == nettrace.ProviderTasks
		runtime = runtime || p == nettrace.ProviderRuntime
		stops = stops || p == nettrace.ProviderRuntime && t.meta.EventID == restartEnd
		requests = requests || p == httpphases.ProviderHTTP || p == httpphases.ProviderHosting
	}
	if !ids {
		return Verdict{}, false
	}
	what := "activities"
	if requests {
		what = "http"
	}
	v := Verdict{
		Topic: "causes", State: Good, Text: "activity ids, CPU samples and task events tell where their time went",
		Do: "tracefix " + what + " --explain --format ndjson " + text.ShellWord(g.f.File),
	}
	var lacks, providers []string
	if !samples {
		lacks = append(lacks, "no CPU samples to tell what ran and what blocked")
		if !g.linux() {
			providers = append(providers, nettrace.ProviderSampler)
		}
	}
	if !tasks {
		lacks = append(lacks, "no task events to tell whose work goes on, and what waited for the thread pool, where no other event does")
		providers = append(providers, collect.TaskCauses)
	}
	switch {
	case !runtime:
		lacks = append(lacks, "no events of the runtime to tell of collections, exceptions, locks and how the thread pool grew")
		providers = append(providers, collect.RuntimeCauses)
	case samples && !stops: // threads are stopped for each sample, which the same keyword tells
		lacks = append(lacks, "no events of the garbage collector to tell what time it took")
		providers = append(providers, nettrace.ProviderRuntime+":0x1:4")
	}
	if len(lacks) > 0 {
		v.State, v.Text = Partly, "activity ids tell whose time it is; "+strings.Join(lacks, "; ")
		var add []string
		if len(providers) > 0 {
			add = append(add, "to the providers recorded add "+strings.Join(providers, ","))
		}
		if !samples && g.linux() {
			add = append(add, "to the profiles cpu-sampling")
		}
		v.Do = strings.Join(add, ", ")
	}
	return v, true
}
