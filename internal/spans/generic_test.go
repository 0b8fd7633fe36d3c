package spans

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// Threads that dotnet-trace did not write become weighted samples of their slices.
func TestWeighted(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string // us:stack:us
	}{
		{"begin and end", `{"ph":"B","name":"a","ts":10},{"ph":"B","name":"b","ts":12},{"ph":"E","name":"b","ts":15},{"ph":"E","ts":20}`,
			[]string{"0:a:2", "2:a;b:3", "5:a:5"}},
		{"complete, parent last", `{"ph":"X","name":"b","ts":12,"dur":3},{"ph":"X","name":"a","ts":10,"dur":10}`,
			[]string{"0:a:2", "2:a;b:3", "5:a:5"}},
		{"same start, the longer is the parent", `{"ph":"X","name":"b","ts":10,"dur":3},{"ph":"X","name":"a","ts":10,"dur":10}`,
			[]string{"0:a;b:3", "3:a:7"}},
		{"overlap is cut at the parent's end", `{"ph":"X","name":"a","ts":0,"dur":10},{"ph":"X","name":"b","ts":5,"dur":10}`,
			[]string{"0:a:5", "5:a;b:5"}},
		{"both kinds", `{"ph":"B","name":"a","ts":0},{"ph":"X","name":"x","ts":2,"dur":4},{"ph":"E","name":"a","ts":10}`,
			[]string{"0:a:2", "2:a;x:4", "6:a:4"}},
		{"an end that is rounded is that of the span around it", `{"ph":"X","name":"a","ts":1.0009,"dur":2.0009},{"ph":"X","name":"b","ts":1.5,"dur":1.5018}`,
			[]string{"0:a:0", "0:a;b:1"}},
		{"out of order", `{"ph":"E","name":"a","ts":20},{"ph":"B","name":"a","ts":10}`, []string{"0:a:10"}},
		{"begin without end", `{"ph":"B","name":"a","ts":0},{"ph":"B","name":"b","ts":1},{"ph":"E","name":"a","ts":3}`, []string{"0:a:1", "1:a;b:2"}},
		{"end without begin", `{"ph":"E","name":"z","ts":0},{"ph":"B","name":"a","ts":1},{"ph":"E","name":"q","ts":2},{"ph":"E","name":"a","ts":3}`, []string{"1:a:2"}},
		{"no time, no length, other phases", `{"ph":"B","name":"a"},{"ph":"X","name":"a","ts":1},{"ph":"X","name":"a","ts":1,"dur":-1},{"ph":"X","name":"a","ts":1,"dur":0},{"ph":"i","name":"a","ts":1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := readBytes(t, []byte("["+c.in+"]"), &Options{Weighted: true})
			var got []string
			for _, th := range tr.Profile.Threads {
				for _, s := range th.Samples.All() {
					assert.Equal(t, profile.Whole, s.Cut)
					got = append(got, fmt.Sprintf("%d:%s:%d", s.Time/1000, strings.Join(names(tr.Profile.Table, s.Stack), ";"), s.Dur/1000))
				}
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, strings.HasPrefix(c.name, "overlap"), tr.Facts.Crossing > 0)
			assert.Equal(t, "["+c.in+"]", string(rewriteBytes(t, tr, false)))
		})
	}
}

// The facts of a small file.
func TestFacts(t *testing.T) {
	f := readBytes(t, small(t), nil).Facts
	assert.Equal(t, "object", f.Form.String())
	assert.Equal(t, "dotnet-trace (Microsoft.Diagnostics.Tracing.TraceEvent@3.1.23.0)", f.Producer)
	assert.Equal(t, []string{"otherData", "traceEvents", "displayTimeUnit", "stackFrames"}, f.Keys)
	assert.Equal(t, f.Phases["B"], f.Phases["E"])
	assert.Equal(t, f.Phases["B"]+f.Phases["E"], f.Events())
	assert.Equal(t, [2]int64{5_000_000, 13_000_000}, [2]int64{f.First, f.Last})
	assert.Equal(t, [3]int{4, 1, 1}, [3]int{f.Samples, f.Cut, f.Spikes})
	assert.Equal(t, int64(1), f.Depths[100])
	assert.Equal(t, int64(2), f.Depths[90])
	assert.Len(t, f.Depths, 101)
	if assert.Len(t, f.Threads, 2) {
		th := f.Threads[0]
		assert.Equal(t, "Test", th.Process)
		assert.Equal(t, int64(1), th.ProcessID())
		assert.Equal(t, "1", th.TID)
		assert.Equal(t, [3]int{3, 1, 1}, [3]int{th.Samples, th.Cut, th.Spikes})
		assert.Equal(t, 105, th.MaxDepth)
		assert.Zero(t, th.Unmatched)
	}
}

// Producers of real files.
func TestProducer(t *testing.T) {
	want := map[string]string{
		"catapult-lthi_cats.json.gz": "Chrome", "catapult-webview.json.gz": "Chrome", "catapult-fuchsia_trace.json.gz": "Fuchsia",
		"speedscope-chrome116-Trace-20230603T221323.json": "Chrome DevTools", "speedscope-chrome66-worker.json": "Chrome",
		"clang-ftime-trace-19-main.json": "clang -ftime-trace", "clang-ftime-trace-verylong-symbol.json.gz": "clang -ftime-trace",
		"bazel-profile-with_queuing.json.gz": "Bazel", "pytorch-hta-df_index_resolver.json.gz": "PyTorch profiler",
		"pytorch-hta-triton_example.json": "PyTorch profiler", "node-bashlib-node_trace.1.log": "Node.js",
		"tsc-generateTrace-trace.json": "tsc --generateTrace", "viztracer-vdb_basic.json": "VizTracer",
		"small/speedscope-simple-partial-whitespace.json": "",
	}
	files := corpus(t)
	seen := 0
	for name, producer := range want {
		in, ok := files[name]
		if !ok || len(in) > 40<<20 && testing.Short() {
			continue
		}
		seen++
		got := readBytes(t, in, nil).Facts.Producer
		if producer == "Bazel" && strings.HasPrefix(got, "Bazel ") {
			continue
		}
		assert.Equal(t, producer, got, name)
	}
	assert.NotZero(t, seen)
}

// A process and a thread whose ids are texts are called so where nothing else names them.
func TestTextualIDs(t *testing.T) {
	in, err := os.ReadFile("../../testdata/chromium/pytorch-hta-triton_example.json")
	require.NoError(t, err)
	names := map[string]string{}
	for _, th := range readBytes(t, in, &Options{Weighted: true}).Profile.Threads {
		names[th.Title()] = th.Process.Title()
	}
	assert.Equal(t, map[string]string{
		"PyTorch Profiler": "Spans", "Thread 3100453": "Process 3100453",
		"stream 7 ": "python3.10", "thread 1670242 (python3.10)": "python3.10",
	}, names)
}

// Numbers that are written as floats are numbers, and those that are no int64 are names, as texts are.
func TestOddIDs(t *testing.T) {
	var in []string
	for _, ids := range []string{`"pid":1.0,"tid":2.0`, `"pid":1e1,"tid":-3`, `"pid":1,"tid":18446744073709551615`, `"pid":1,"tid":13838446744073709551`, `"pid":9007199254740993.0,"tid":1.5`, `"pid":null,"tid":""`} {
		in = append(in, `{"ph":"X","name":"a","ts":1,"dur":1,`+ids+`}`)
	}
	var got []string
	for _, th := range readBytes(t, []byte("["+strings.Join(in, ",")+"]"), &Options{Weighted: true}).Profile.Threads {
		got = append(got, fmt.Sprintf("%d %q %d %q", th.Process.PID, th.Process.Name, th.TID, th.Name))
	}
	assert.ElementsMatch(t, []string{`1 "" 2 ""`, `10 "" -3 ""`, `1 "" 0 "18446744073709551615"`, `1 "" 0 "13838446744073709551"`, `0 "9007199254740993.0" 0 "1.5"`, `0 "" 0 ""`}, got)
}

// Node.js records what V8 has in Chrome, too.
func TestProducerByCategories(t *testing.T) {
	const v8 = `{"ph":"P","name":"Profile","cat":"disabled-by-default-v8.cpu_profiler","ts":1,"pid":1,"tid":1,"id":1},{"ph":"X","name":"V8.GC","cat":"devtools.timeline,v8","ts":1,"dur":1,"pid":1,"tid":1}`
	for events, want := range map[string]string{
		v8: "Chrome",
		v8 + `,{"ph":"b","name":"Environment","cat":"node,node.environment","ts":1,"pid":1,"tid":1,"id":1}`:                                                                             "Node.js",
		v8 + `,{"ph":"b","name":"Environment","cat":"node,node.environment","ts":1,"pid":1,"tid":1,"id":1},{"ph":"X","name":"RunTask","cat":"toplevel","ts":1,"dur":1,"pid":1,"tid":1}`: "Chrome",
	} {
		assert.Equal(t, want, readBytes(t, []byte("["+events+"]"), nil).Facts.Producer)
	}
}
