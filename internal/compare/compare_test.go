package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

func TestNamesThatDifferOnlyByCompilation(t *testing.T) {
	same := [][2]string{
		{"A!A.B+<Run>d__5.MoveNext()", "A!A.B+<Run>d__17.MoveNext()"},
		{"A!A.B.<Run>b__5_0(int32)", "A!A.B.<Run>b__6_0(int32)"},
		{"A!A.B+<>c__DisplayClass5_1.<Run>b__0()", "A!A.B+<>c__DisplayClass9_1.<Run>b__0()"},
		{"A!A.B.<Run>g__Loop|5_2(int32)", "A!A.B.<Run>g__Loop|7_2(int32)"},
		{"D!dynamicClass.lambda_method2(pMT: 0x7fb56c4f2530)", "D!dynamicClass.lambda_method3(pMT: 0x7f731cef2530)"},
		{"?!0x7f7319e5f851", "?!0x7fb56945f851"},
		// As perf's map and the runtime's events have them, of the same runs.
		{"lab!Lab.Chain.Walk::Mix(int64)", "lab!Lab.Chain.Walk.Mix(int64)"},
		{"a!A.B`1[System.__Canon]::Run(class [System.Runtime]System.IO.Stream,valuetype [System.Runtime]System.ReadOnlyMemory`1<uint8>)",
			"a!A.B`1[System.__Canon].Run(class System.IO.Stream,value class System.ReadOnlyMemory`1<unsigned int8>)"},
		{"a!Interop+Sys::Send(valuetype Interop/Sys/Header*,native uint,native int,int64*)", "a!Interop+Sys.Send(value class Header*,unsigned int,int,int64*)"},
		{"a!A.B::Run(char*,object,string&,class A.B/C<!0,!1>)", "a!A.B.Run(wchar*,class System.Object,class System.String&,class C<!0,!1>)"},
	}
	for _, p := range same {
		assert.Equal(t, Name(p[0]), Name(p[1]))
	}
	other := [][2]string{
		{"A!A.B.<Run>b__5_0(int32)", "A!A.B.<Run>b__5_1(int32)"},
		{"A!A.B.Run1()", "A!A.B.Run2()"},
		{"A!A.B`1.Run()", "A!A.B`2.Run()"},
		{"libx.so.6!std::sort(char)", "libx.so.6!std.sort(wchar)"},
		{"app!core::fmt::write", "app!core.fmt::write"},
		{"std::sort(char)", "std.sort(wchar)"},
	}
	for _, p := range other {
		assert.NotEqual(t, Name(p[0]), Name(p[1]))
	}
}

// batch makes the trace of a program that runs one method after the other, each for the
// time of work, ms, but for some noise.
func batch(seed uint64, work map[string]int, polls bool) *Trace {
	rng := rand.New(rand.NewPCG(seed, 7))
	table := profile.NewTable()
	frame := func(module, name string) profile.FrameID {
		return table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Module: module, Name: name})})
	}
	root := table.Push(0, frame("App", "App.Main()"))
	poll := frame("System.Private.CoreLib", "System.Threading.Thread.PollGC()")
	pr := &profile.Process{PID: 1}
	th := &profile.Thread{Process: pr, TID: 1}
	now := int64(0)
	var stacks [][2]profile.StackID
	var left []int
	for _, name := range slices.Sorted(maps.Keys(work)) { // the noise of a seed is the same in every run
		ms := work[name]
		s := table.Push(root, frame("App", name))
		stacks = append(stacks, [2]profile.StackID{s, table.Push(s, poll)})
		left = append(left, int(float64(ms)*(1+0.01*rng.NormFloat64())))
	}
	for i, n := range left {
		for range n {
			now += 1_000_000
			stack := stacks[i][0]
			if polls && rng.IntN(3) == 0 {
				stack = stacks[i][1]
			}
			th.Samples.Append(profile.Sample{Time: now, Stack: stack, Type: profile.SampleManaged})
		}
	}
	tr := &Trace{Name: "trace " + strconv.Itoa(int(seed)), Profile: &profile.Profile{Meta: profile.Meta{End: now}, Table: table, Processes: []*profile.Process{pr}, Threads: []*profile.Thread{th}}}
	tr.unrecorded = tr.notRecorded(&session{})
	return tr
}

func verdictOf(r *Result, method string) string {
	for i := range r.Methods {
		if r.Methods[i].Method == method {
			return r.Methods[i].Self.Verdict
		}
	}
	return "(not there)"
}

func TestOneSlowerMethodOfABatchIsFound(t *testing.T) {
	work := map[string]int{"App.Fast()": 300, "App.Slow()": 800, "App.Other()": 900}
	slower := map[string]int{"App.Fast()": 300, "App.Slow()": 1200, "App.Other()": 900}
	for seed := range uint64(20) {
		r := Traces(batch(2*seed, work, false), batch(2*seed+1, slower, false))
		require.Equal(t, More, verdictOf(r, "App!App.Slow()"), "seed %d", seed)
		require.Equal(t, Unclear, verdictOf(r, "App!App.Fast()"))
		require.Equal(t, Unclear, verdictOf(r, "App!App.Other()"))
		same := Traces(batch(2*seed, work, false), batch(2*seed+100, work, false))
		for i := range same.Methods {
			require.False(t, same.Methods[i].Self.Moved() || same.Methods[i].Total.Moved())
		}
		assert.Equal(t, "nothing moved beyond noise", same.Summary())
	}
}

// The first sentences say whether the traces can be compared, name the three methods that moved
// most by themselves, and count the others.
func TestVerdictNamesWhatMoved(t *testing.T) {
	work, slower := map[string]int{"App.Same()": 900}, map[string]int{"App.Same()": 900}
	for i := range 5 {
		name := fmt.Sprintf("App.M%d()", i)
		work[name], slower[name] = 400, 700+400*i
	}
	v := Traces(batch(1, work, false), batch(2, slower, false)).verdict()
	require.GreaterOrEqual(t, len(v), 5)
	assert.Contains(t, v[0], "totals are not comparable")
	v = v[1:]
	for i, name := range []string{"App!App.M4()", "App!App.M3()", "App!App.M2()"} {
		assert.Regexp(t, `^`+regexp.QuoteMeta(name)+`: [0-9,.]+ -> [0-9,.]+ ms of CPU time in all, \+[0-9]+ % \(95 %: .*\)\.$`, v[i])
	}
	assert.Equal(t, "2 more methods moved by themselves.", v[3])
	assert.NotContains(t, strings.Join(v, "\n"), "Same")
}

// How long the recording of a file of sums lasted is not known, however long its threads are together.
func TestSumsTellNoLength(t *testing.T) {
	a, b := batch(1, map[string]int{"App.Slow()": 800}, false), batch(2, map[string]int{"App.Slow()": 800, "App.Waits()": 9000}, false)
	b.Profile.Meta.Sums = true
	for _, r := range []*Result{Traces(a, b), Traces(b, a)} {
		assert.NotContains(t, strings.Join(r.verdict(), "\n"), "The traces last")
		assert.Contains(t, r.Seconds, 0.)
		assert.Contains(t, r.Seconds, a.seconds())
	}
}

func TestPollsBelongToTheirCallers(t *testing.T) {
	work := map[string]int{"App.A()": 500, "App.B()": 700}
	a, b := batch(1, work, false), batch(2, work, true)
	b.Profile.FoldPolls()
	r := Traces(a, b)
	assert.Equal(t, Unclear, verdictOf(r, "App!App.A()"))
	raw := Traces(a, batch(2, work, true))
	assert.Equal(t, Less, verdictOf(raw, "App!App.A()"), "without folding the marks hide a third")
}

func TestGates(t *testing.T) {
	r := Traces(batch(1, map[string]int{"App.Slow()": 800, "App.Other()": 900}, false), batch(2, map[string]int{"App.Slow()": 1200, "App.Other()": 900}, false))
	tests := map[string]bool{
		"cpu:App.Slow>+10%":        true,
		"cpu:*Slow*>10":            true,
		"self:App!App.Slow()>+10%": true,
		"cpu:App.Main>+10%":        true,  // with what it calls
		"self:App.Main>+10%":       false, // it has no time of its own
		"cpu:App.Slow>+80%":        false,
		"cpu:App.Slow<-10%":        false,
		"cpu:App.Other>+0%":        false,
		"cpu:App.Gone>+10%":        true, // a gate that fits nothing would never close
		"alloc:*>+10%":             true,
	}
	for text, fails := range tests {
		g, err := ParseGate(text)
		require.NoError(t, err, text)
		assert.Equal(t, fails, reason(g, r) != "", "%s: %s", text, reason(g, r))
	}
	for _, text := range []string{"", "cpu", "cpu:", "cpu:X", "speed:X>1%", "cpu:X>many", "cpu:>1%", "cpu:X>NaN%"} {
		_, err := ParseGate(text)
		assert.Error(t, err, text)
	}
}

// reason is why a gate fails, empty if it does not.
func reason(g Gate, r *Result) string { return r.Check([]Gate{g}) }

// All gates that fail are told, in the documents too, with how many things each fails for, and figures that are
// on the side of the gate on which they are judged to be.
func TestGatesThatFail(t *testing.T) {
	bare := &costs{names: &names{}, trace: &Trace{Profile: &profile.Profile{}}}
	r := &Result{CPU: Figure{Verdict: Unclear}, a: bare, b: bare, Types: []Named{
		{Name: "A", Figure: Figure{Before: 1000, After: 1104, Change: 10.4, Low: 8, High: 12, Verdict: More}},
		{Name: "B", Figure: Figure{Before: 1000, After: 1200, Change: 20, Low: 8, High: 32, Verdict: More}},
		{Name: "C", Figure: Figure{Before: 1000, After: 700, Change: -30, Low: -32, High: -28, Verdict: Less}},
	}}
	var gates []Gate
	for _, s := range []string{"alloc:A>+10%", "alloc:A>+10.5%", "alloc:*>+10%", "alloc:C<-29.96%"} {
		g, err := ParseGate(s)
		require.NoError(t, err)
		gates = append(gates, g)
	}
	want := []string{
		"--fail-on alloc:A>+10%: A changed by +10.4 % (95 %: +8 to +12 %)",
		"--fail-on alloc:*>+10%: A changed by +10.4 % (95 %: +8 to +12 %); and 1 more",
		"--fail-on alloc:C<-29.96%: C changed by -30 % (95 %: -32 to -28 %)",
	}
	assert.Equal(t, strings.Join(want, "\n"), r.Check(gates))
	assert.Equal(t, want, r.Failed)
	var md strings.Builder
	require.NoError(t, r.Markdown(&md, 10))
	for _, w := range want {
		assert.Contains(t, md.String(), "- "+text.Markdown(w)+".\n")
	}
}

// A gate on what neither trace has passes where both recorded it: a good program throws nothing.
func TestGateOnNone(t *testing.T) {
	work := map[string]int{"App.Slow()": 800}
	for _, gate := range []string{"exceptions:*>+10%", "exceptions:*LabException>+10%", "gc:pause>+10%", "alloc:*<-10%"} {
		g, err := ParseGate(gate)
		require.NoError(t, err)
		a, b := batch(1, work, false), batch(2, work, false)
		a.unrecorded = nil
		assert.Contains(t, reason(g, Traces(a, b)), "neither trace has anything of that name", "%s of a trace that may not have recorded it", gate)
		b.unrecorded = nil
		assert.Empty(t, reason(g, Traces(a, b)), gate)
	}
}

// TestNotRecordedIsNoZero: what one trace did not record has not gone, and no gate on it passes.
func TestNotRecordedIsNoZero(t *testing.T) {
	tests := []struct {
		before, after string
		leftOut       []string
		gate, why     string
	}{
		{"async", "runtime-exceptions", []string{"cpu"}, "self:*<-10%", "cannot be judged: the trace after has no CPU samples"},
		{"runtime-exceptions", "async", []string{"cpu"}, "cpu:*>+10%", "cannot be judged: the trace before has no CPU samples"},
		{"async", "runtime-exceptions", []string{"cpu"}, "exceptions:*LabException>+10%", "Lab.Rt.LabException is new"}, // async has none, but recorded them
		{"runtime-exceptions", "async", []string{"cpu"}, "exceptions:*LabException>+10%", ""},
		{"runtime-alloc", "runtime-exceptions", []string{"alloc", "exceptions", "gc"}, "gc:*<-10%", "cannot be judged: the trace after records no collections"},
		{"runtime-alloc", "runtime-exceptions", []string{"alloc", "exceptions", "gc"}, "cpu:*>+10%", "neither trace has anything of that name"},
		{"counters", "runtime-exceptions", []string{"exceptions", "counters"}, "counters:*cpu*>+10%", "cannot be judged: the trace after has no counters"},
		{"runtime-exceptions", "counters", []string{"exceptions", "counters"}, "counters:*cpu*<-10%", "cannot be judged: the trace before has no counters"},
		{"runtime-locks", "counters", []string{"locks", "counters"}, "locks:*Hold*<-10%", "cannot be judged: the trace after records no waits for locks"},
		{"counters", "counters", nil, "counters:nothing>+10%", "neither trace has anything of that name"},
	}
	for _, tt := range tests {
		t.Run(tt.before+" "+tt.after+" "+tt.gate, func(t *testing.T) {
			r := Traces(readTestdata(t, tt.before), readTestdata(t, tt.after))
			var kinds []string
			for _, n := range r.NotCompared {
				kinds = append(kinds, n.Kind)
			}
			assert.Equal(t, tt.leftOut, kinds)
			assert.Empty(t, r.Methods)
			var out bytes.Buffer
			require.NoError(t, r.Text(&out, 0, 0))
			assert.Equal(t, len(kinds), strings.Count(out.String(), "Not compared: "))
			g, err := ParseGate(tt.gate)
			require.NoError(t, err)
			if why := reason(g, r); tt.why == "" {
				assert.Empty(t, why)
			} else {
				assert.Contains(t, why, tt.why)
			}
		})
	}
}

// What was recorded of which there is none is told by other events: those of profiles of dotnet-trace, as they come.
func TestAskedFor(t *testing.T) {
	const suspend, handle, move, dynamic, created, thread, loader, unload, tiered = 0x1, 0x2, 0x400000, 0x3f00003, 0x10001, 0x10000, 0x8, 0x30, 0x1000000000
	for name, tt := range map[string]struct {
		keywords []uint64
		asked    []string
	}{
		"gc-collect":     {[]uint64{suspend, dynamic, created}, []string{"gc"}},
		"gc-verbose":     {[]uint64{suspend, handle, dynamic, created}, []string{"exceptions", "gc"}},
		"jit":            {[]uint64{unload, tiered}, nil},
		"thread pool":    {[]uint64{thread, created}, nil},
		"dotnet-common":  {[]uint64{suspend, dynamic, created, thread, loader, unload, tiered}, []string{"exceptions", "gc"}},
		"without GC":     {[]uint64{thread, tiered}, []string{"exceptions", "gc"}},
		"cpu-sampling":   {[]uint64{suspend, move, dynamic, thread, loader, unload, tiered}, []string{"exceptions", "locks", "gc"}},
		"0x1c001":        {[]uint64{suspend, dynamic, thread}, []string{"exceptions", "locks", "gc"}},
		"from the start": {[]uint64{suspend, dynamic, thread, loader, unload}, []string{"exceptions", "locks", "gc"}},
		"contention":     {[]uint64{keywordContention}, []string{"locks"}},
		"nothing":        {[]uint64{0}, nil},
	} {
		s := &session{}
		for _, k := range append(tt.keywords, tt.keywords...) {
			require.NoError(t, s.Event(&nettrace.Event{Metadata: &nettrace.Metadata{Provider: nettrace.ProviderRuntime, Level: 4}, Keywords: k, Level: 4}))
		}
		var asked []string
		for _, k := range kinds {
			if k.asked != nil && k.asked(s) {
				asked = append(asked, k.name)
			}
		}
		assert.Equal(t, tt.asked, asked, name)
		assert.Len(t, s.all, len(tt.keywords), name)
	}
}

// TestWaitsForLocks: they are those of the methods that wanted one, and one that many wait for together is one thing
// that happened.
func TestWaitsForLocks(t *testing.T) {
	const hold = "Rt!Lab.Rt.LockMode.Hold(class System.String,class Lab.Rt.Named,float64,bool)"
	locks, threads := readTestdata(t, "runtime-locks"), readTestdata(t, "runtime-threads")
	threads.unrecorded = slices.DeleteFunc(threads.unrecorded, func(kind string) bool { return kind == "locks" })
	assert.Equal(t, "nothing moved beyond noise", Traces(locks, locks).Summary())
	r := Traces(locks, threads)
	assert.Equal(t, "1 moved beyond noise", r.Summary())
	require.Len(t, r.Locks, 4)
	x := r.Locks[0]
	assert.Equal(t, hold, x.Name)
	assert.InDelta(t, 8648, x.Before, 1) // ms, as locks has it
	assert.Equal(t, [2]int{238, 0}, x.Count)
	assert.Equal(t, Less, x.Verdict)
	var out bytes.Buffer
	require.NoError(t, r.Text(&out, 0, 1))
	assert.Contains(t, out.String(), hold+": 8648 -> 0 ms of waiting for locks, gone")
	assert.Contains(t, out.String(), "Waits for locks, ms in all\n")
	for gate, want := range map[string]string{"locks:*.Hold>+10%": "--fail-on locks:*.Hold>+10%: " + hold + " is new", "locks:*TryStep>+10%": "", "locks:Nobody>+10%": "neither trace has anything of that name"} {
		g, err := ParseGate(gate)
		require.NoError(t, err)
		if why := reason(g, Traces(threads, locks)); want == "" {
			assert.Empty(t, why)
		} else {
			assert.Contains(t, why, want)
		}
	}

	var together, apart amount
	for i := range int64(20) {
		together.add(10, 1e9+i*1e6, convoy)
		apart.add(10, i*5*convoy, convoy)
	}
	assert.Equal(t, together.sum, apart.sum)
	const whole = 100 * convoy
	assert.InDelta(t, 200*200*0.99, together.variance(convoy, whole), 1)
	assert.InDelta(t, 20*10*10*0.8, apart.variance(convoy, whole), 1)
	steady := amount{}
	for i := range int64(100) {
		steady.add(10, i*convoy, convoy)
	}
	assert.InDelta(t, 0, steady.variance(convoy, whole), 1e-6)
}

// readTestdata reads a recording of testdata.
func readTestdata(t *testing.T, name string) *Trace {
	f, err := tracefix.Open(context.Background(), "../../testdata/nettrace/"+name+".nettrace.zst")
	require.NoError(t, err)
	defer f.Close()
	tr, err := Read(context.Background(), f, name, Options{})
	require.NoError(t, err)
	return tr
}

// TestTooFewToJudge: a gate on what one trace has too little of cannot pass, and says why.
func TestTooFewToJudge(t *testing.T) {
	a, b := batch(1, map[string]int{"App.A()": 500}, false), batch(2, map[string]int{"App.A()": 500}, false)
	a.Requests, b.Requests = newRequests(false), newRequests(false)
	for i := range 2 * minRequests {
		a.Requests.add(i, "GET", "/often", "", 1, int64(i)*1e6, 1e6, true, fine)
		b.Requests.add(i, "GET", "/often", "", 1, int64(i)*1e6, 1e6, true, fine)
		if i < minRequests {
			a.Requests.add(100+i, "GET", "/rare", "", 1, int64(i)*1e6, 1e6, true, fine)
		}
	}
	b.Requests.add(100, "GET", "/rare", "", 1, 0, 1e6, true, fine)
	a.Counters = map[string][]Value{"Lab/both": valuesOf(0, 0, 0, 0), "Lab/few": valuesOf(1, 2)}
	b.Counters = map[string][]Value{"Lab/both": valuesOf(0, 0, 0, 0), "Lab/new": valuesOf(0, 0, 0, 0)}
	r := Traces(a, b)
	for text, want := range map[string]string{
		"requests:*/often>+10%":   "",
		"requests:*/rare>+10%":    "a trace has too few values of that name",
		"requests:*/never>+10%":   "neither trace has anything of that name",
		"counters:Lab/both>+10%":  "",
		"counters:Lab/few>+10%":   "a trace has too few values of that name",
		"counters:Lab/new>+10%":   "a trace has too few values of that name",
		"counters:Lab/never>+10%": "neither trace has anything of that name",
	} {
		g, err := ParseGate(text)
		require.NoError(t, err)
		if why := reason(g, r); want == "" {
			assert.Empty(t, why, text)
		} else {
			assert.Contains(t, why, want, text)
		}
	}
}

// TestIntervalsArePossible: an end that is too large to print is so at either end, and the change with it.
func TestIntervalsArePossible(t *testing.T) {
	tests := []struct {
		f                Figure
		change, interval string
	}{
		{Figure{Before: 1, After: 1.2, Change: 20, Low: 5, High: 35}, "+20 %", "+5 to +35 %"},
		{Figure{Before: 1, After: 6, Change: 500, Low: -100, High: 1200}, "+500 %", "-100 to > +999 %"},
		{Figure{Before: 1, After: 11, Change: 1000, Low: 999, High: 1001}, "> +999 %", "+999 to > +999 %"},
		{Figure{Before: 1, After: 40, Change: 3900, Low: 2592, High: 5208}, "> +999 %", "> +999 %"},
		{Figure{After: 40}, "new", "new"},
		{Figure{Before: 40, Change: -100, Low: -100, High: -90}, "gone", "-100 to -90 %"},
		{Figure{Before: 5797, After: 10, Change: -99.83, Low: -100, High: -88}, "-99.8 %", "-100 to -88 %"},
		{Figure{Before: 1e6, After: 1, Change: -99.9999, Low: -100, High: -88}, "-99.9 %", "-100 to -88 %"},
		{Figure{Before: 40, After: 39.9, Change: -0.25, Low: -3, High: 2.5}, "0 %", "-3 to +2 %"},
		{Figure{}, "", ""},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.change, tt.f.change())
		assert.Equal(t, tt.interval, tt.f.interval())
	}
	f := Judge(1, 6, 5, 3)
	assert.Equal(t, -100.0, f.Low, "in JSON, too")
	f = Judge(-1, -6, 5, 3) // a counter
	assert.Less(t, f.Low, -100.0)
}

// TestUnitsOfCollections: their pause is a time, the rest are numbers.
func TestUnitsOfCollections(t *testing.T) {
	a, b := batch(1, map[string]int{"App.A()": 500}, false), batch(2, map[string]int{"App.A()": 500}, false)
	for i := range int64(100) {
		if i%10 == 0 {
			a.GC = append(a.GC, collection{generation: 1, start: i, end: i + 1, pause: 1e6})
		}
		b.GC = append(b.GC, collection{generation: 1, start: i, end: i + 1, pause: 1e6})
	}
	told := strings.Join(Traces(a, b).verdict(), "\n")
	assert.Contains(t, told, "pause: 10.0 -> 100.0 ms, +900 %")
	assert.Contains(t, told, "gen1: 10.0 -> 100.0 collections, +900 %")
}

// TestMemory: what survives collections of generation 2 is compared by its mean and its scatter, where
// there are enough of them.
func TestMemory(t *testing.T) {
	of := func(survived ...float64) *Trace { // MB
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		for i, mb := range survived {
			at := int64(i)
			tr.GC = append(tr.GC, collection{generation: 2, start: at, end: at + 1, pause: 1e6, survived: int64(mb * 1e6)},
				collection{generation: 1, start: at, end: at + 1, survived: 1e9}, collection{generation: 2, start: at, end: at + 1, survived: -1})
		}
		return tr
	}
	fails, err := ParseGate("memory:live>+10%")
	require.NoError(t, err)
	gate := []Gate{fails}
	two := of(20, 21, 19, 20, 20)
	for i, mb := range []float64{70, 71, 69, 70} {
		two.GC = append(two.GC, collection{process: 2, generation: 2, start: int64(i), end: int64(i) + 1, survived: int64(mb * 1e6)})
	}
	for name, tt := range map[string]struct {
		after   *Trace
		verdict string
	}{
		"as before":     {of(39, 41, 40, 38, 42), Unclear},
		"a little":      {of(43, 42, 44, 43, 42), Unclear},
		"by a third":    {of(54, 53, 55, 54, 52), More},
		"two processes": {two, More},
		"it grows":      {of(20, 30, 40, 50, 60, 70), Unclear},
	} {
		r := Traces(of(40, 41, 39, 40, 42), tt.after)
		require.Len(t, r.Memory, 1, name)
		assert.Equal(t, tt.verdict, r.Memory[0].Verdict, name)
		assert.Equal(t, tt.verdict == More, r.Check(gate) != "", name)
	}
	assert.InDelta(t, 90e6, Traces(of(40, 41, 39, 40, 42), two).Memory[0].After, 1e3)
	assert.Contains(t, strings.Join(Traces(of(40, 41, 39, 40), of(54, 53, 55, 54)).verdict(), "\n"), "live: 40.00 MB -> 54.00 MB survived generation 2 on average, +35 %")

	r := Traces(of(40, 41, 39), of(54, 53, 55, 54))
	assert.Empty(t, r.Memory)
	assert.Contains(t, r.Check(gate), "too few values")
}

// TestTimesThatDiffer: totals of unlike times come with a warning, costs of a request need none.
func TestTimesThatDiffer(t *testing.T) {
	traces := func(a, b int) *Result {
		return Traces(batch(1, map[string]int{"App.A()": a}, false), batch(2, map[string]int{"App.A()": b}, false))
	}
	r := traces(2000, 20000)
	assert.Regexp(t, `^The traces last [12]\.\d\d s and (19|20)\.\d s: .* not comparable\.$`, r.verdict()[0])
	r.Seconds = [2]float64{5.22, 52e-6}
	assert.Contains(t, r.verdict()[0], "The traces last 5.22 s and 0.05 ms: ")
	r.Seconds = [2]float64{0.25, 5.22}
	assert.Contains(t, r.verdict()[0], "The traces last 250.0 ms and 5.22 s: ")
	r.bare = true
	assert.NotContains(t, strings.Join(r.verdict(), ""), "The traces last", "nothing is compared")
	r.bare, r.PerRequest = false, true
	assert.NotContains(t, strings.Join(r.verdict(), ""), "The traces last")
	assert.NotContains(t, strings.Join(traces(2000, 2600).verdict(), ""), "The traces last")
	part := batch(1, map[string]int{"App.A()": 20000}, false)
	part.from, part.to = 5e9, 7e9
	assert.Equal(t, 2.0, part.seconds())
}

// TestPageShowsNoControls: what turns the direction of text or ends a line does not reach the page.
func TestPageShowsNoControls(t *testing.T) {
	const name = "App.Slow\u202e\x1b[31m()"
	r := Traces(batch(1, map[string]int{name: 800, "App.Other()": 900}, false), batch(2, map[string]int{name: 1600, "App.Other()": 900}, false))
	var out bytes.Buffer
	require.NoError(t, r.HTML(&out))
	assert.Contains(t, out.String(), "App.Slow")
	for _, bad := range []string{"\u202e", "\x1b", `\u202e`, `\u001b`} {
		assert.NotContains(t, out.String(), bad)
	}
}

// TestPageDraws opens the page: it shows the verdict and a frame for each method, and looks closer
// at the one that is chosen. Frames are buttons, which keys reach.
func TestPageDraws(t *testing.T) {
	b := tracetest.NewBrowser(t, 1100, 700)
	r := Traces(batch(1, map[string]int{"App.Slow()": 800, "App.Other()": 900}, false), batch(2, map[string]int{"App.Slow()": 1600, "App.Other()": 900}, false))
	path := filepath.Join(t.TempDir(), "diff.html")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, r.HTML(f))
	require.NoError(t, f.Close())
	b.Open("file://"+path, `document.querySelectorAll("#verdict li").length > 0`)
	b.Screenshot("compare")
	frames := func() (names []string) {
		b.Eval(`[...document.querySelectorAll("#flame button")].map(f => f.textContent)`, &names)
		return names
	}
	var told string
	all := []string{"all", "App!App.Main()", "App!App.Other()", "App!App.Slow()"}
	assert.Equal(t, all, frames())
	b.Eval(`document.querySelector("#flame button:last-child").focus(), document.getElementById("tip").textContent`, &told)
	assert.Equal(t, "App!App.Slow(): 789.0 → 1625.0 ms, 106 %", told)
	b.Eval(`document.activeElement.click()`, nil)
	assert.Equal(t, []string{"App!App.Slow()"}, frames())
	b.Eval(`document.getElementById("reset").click()`, nil)
	assert.Equal(t, all, frames())
	b.Eval(`document.getElementById("title").textContent = "a".repeat(99), document.querySelector("li").textContent = "b".repeat(99)`, nil)
	b.Show(360, 740, false)
	b.Wait(`innerWidth === 360 && document.documentElement.scrollWidth <= 360`)
	b.Eval(`[-99.99, -99.4, -0.2, 12].map(percent).join()`, &told)
	assert.Equal(t, "-99.9 %,-99 %,0 %,12 %", told)
}

// TestPageDrawsDeepStacks: a stack may be deeper than a browser's program may call itself, and a
// frame too narrow for its name shows the method, not the module.
func TestPageDrawsDeepStacks(t *testing.T) {
	const depth = 20000
	table := profile.NewTable()
	frame := table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Module: "System.Private.CoreLib", Name: "System.Collections.Generic.Comparers.Deep(class System.Object)"})})
	stack := profile.StackID(0)
	for range depth {
		stack = table.Push(stack, frame)
	}
	th := &profile.Thread{Process: &profile.Process{PID: 1}, TID: 1}
	th.Samples.Append(profile.Sample{Time: 1e6, Stack: stack, Type: profile.SampleManaged})
	p := &profile.Profile{Meta: profile.Meta{End: 2e6}, Table: table, Processes: []*profile.Process{th.Process}, Threads: []*profile.Thread{th}}
	path := filepath.Join(t.TempDir(), "deep.html")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, Traces(&Trace{Name: "a", Profile: p}, &Trace{Name: "b", Profile: p}).HTML(f))
	require.NoError(t, f.Close())
	b := tracetest.NewBrowser(t, 300, 700)
	b.Open("file://"+path, `document.querySelectorAll("#verdict li").length > 0`)
	var got []string
	b.Eval(`(f => ["" + f.length, f[f.length - 1].textContent])(document.querySelectorAll("#flame button"))`, &got)
	assert.Equal(t, []string{strconv.Itoa(depth + 1), "Collections.Generic.Comparers.Deep"}, got)
}

func TestFormats(t *testing.T) {
	r := Traces(batch(1, map[string]int{"App.Slow<T>()": 800, "App.O|ther()": 900}, false), batch(2, map[string]int{"App.Slow<T>()": 1200, "App.O|ther()": 900}, false))
	var out bytes.Buffer
	require.NoError(t, r.Folded(&out))
	var before, after float64
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		x, err := strconv.ParseFloat(f[len(f)-2], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(f[len(f)-1], 64)
		require.NoError(t, err)
		before, after = before+x, after+y
		assert.True(t, strings.HasPrefix(line, "App!App.Main();App!"), line)
	}
	assert.InEpsilon(t, r.a.all/1e3, before, 1e-6)
	assert.InEpsilon(t, r.b.all/1e3, after, 1e-6)

	out.Reset()
	require.NoError(t, r.HTML(&out))
	assert.NotContains(t, out.String(), "Slow<T>", "names end no element")
	assert.Contains(t, out.String(), `Slow\u003cT\u003e`)
	out.Reset()
	require.NoError(t, r.Markdown(&out, 10))
	assert.Contains(t, out.String(), `App.Slow&lt;T&gt;()`)
	assert.Contains(t, out.String(), `O\|ther`)
	out.Reset()
	require.NoError(t, r.JSON(&out))
	var doc map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
	assert.Equal(t, false, doc["per_request"])
	out.Reset()
	require.NoError(t, r.Text(&out, 80, 5))
	assert.Contains(t, out.String(), "App!App.Slow<T>()")
}

// TestServices compares real recordings of one service: before and after differ in what one
// method costs a request of one route, before and same in nothing.
func TestServices(t *testing.T) {
	const dir = "../../../shared/corpus/dotnet10/compare-"
	if _, err := os.Stat(dir + "before.nettrace"); err != nil {
		t.Skip("no corpus beside the repository")
	}
	read := func(name string) *Trace {
		f, err := tracefix.Open(context.Background(), dir+name+".nettrace")
		require.NoError(t, err)
		defer f.Close()
		tr, err := Read(context.Background(), f, name, Options{})
		require.NoError(t, err)
		return tr
	}
	before, after, same := read("before"), read("after"), read("same")
	moved := func(r *Result) (names []string) {
		for i := range r.Methods {
			if r.Methods[i].Self.Moved() {
				names = append(names, r.Methods[i].Method)
			}
		}
		return names
	}
	for _, pair := range [][2]*Trace{{before, after}, {same, after}} {
		r := Traces(pair[0], pair[1])
		require.True(t, r.PerRequest)
		require.Equal(t, []string{"Lab!Lab.Req.BurnA(float64)"}, moved(r))
		for i := range r.Methods {
			if m := &r.Methods[i]; m.Method == "Lab!Lab.Req.BurnA(float64)" {
				assert.InDelta(t, 5.75, m.Self.Before, 0.1)
				assert.InDelta(t, 4.7, m.Self.After, 0.1)
				assert.Equal(t, Less, m.Self.Verdict)
				require.NotEmpty(t, m.Routes)
				assert.Equal(t, "GET /cpu/*", m.Routes[0].Route)
			}
		}
		g, err := ParseGate("cpu:Lab.Req.BurnA<-10%")
		require.NoError(t, err)
		assert.NotEmpty(t, reason(g, r))
	}
	for _, pair := range [][2]*Trace{{before, same}, {same, before}} {
		r := Traces(pair[0], pair[1])
		assert.Equal(t, "nothing moved beyond noise", r.Summary())
		for i := range r.Methods {
			assert.False(t, r.Methods[i].Total.Moved(), r.Methods[i].Method)
		}
	}
}

func TestCounters(t *testing.T) {
	side := func(queue float64) *Trace {
		tr := batch(1, map[string]int{"App.A()": 100}, false)
		tr.Counters = map[string][]Value{"R/queue": valuesOf(queue, queue+1, queue-1, queue+1, queue), "R/steady": valuesOf(5, 6, 5, 4, 5), "R/few": valuesOf(1)}
		return tr
	}
	r := Traces(side(10), side(40))
	require.Len(t, r.Counters, 2)
	assert.Equal(t, "R/queue", r.Counters[0].Name)
	assert.Equal(t, More, r.Counters[0].Verdict)
	assert.Equal(t, Unclear, r.Counters[1].Verdict)
	g, err := ParseGate("counters:*/queue>+50%")
	require.NoError(t, err)
	assert.NotEmpty(t, reason(g, r))
}

// TestIdleCounters holds that an interval in which an EventCounter measured nothing is no value of
// it: the event tells 0.
func TestIdleCounters(t *testing.T) {
	payload := nettrace.Field{Name: "Payload", Type: nettrace.TypeObject, Fields: []nettrace.Field{
		{Name: "Name", Type: nettrace.TypeString}, {Name: "Mean", Type: nettrace.TypeFloat64}, {Name: "Count", Type: nettrace.TypeInt32}, {Name: "Min", Type: nettrace.TypeFloat64},
	}}
	m := &nettrace.Metadata{ID: 1, EventID: 2, Provider: "Lab", Name: "EventCounters", Fields: []nettrace.Field{{Type: nettrace.TypeObject, Fields: []nettrace.Field{payload}}}}
	name := filepath.Join(t.TempDir(), "idle.nettrace")
	out, err := os.Create(name)
	require.NoError(t, err)
	w, err := nettrace.NewWriter(out, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	for i, mean := range []float64{10, 0, 0, 20, math.Inf(1)} {
		le := binary.LittleEndian
		b := le.AppendUint64([]byte("q\x00\x00\x00"), math.Float64bits(mean))
		least, count := mean, uint32(3)
		if mean == 0 {
			least, count = math.Inf(1), 0
		}
		b = le.AppendUint64(le.AppendUint32(b, count), math.Float64bits(least))
		require.NoError(t, w.Write(&nettrace.Event{Metadata: m, Time: int64(i+1) * 1e9, ThreadID: 1, Sorted: true, Payload: b}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	f, err := tracefix.Open(t.Context(), name)
	require.NoError(t, err)
	defer f.Close()
	tr, err := Read(t.Context(), f, name, Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string][]Value{"Lab/q": {{10, 3}, {20, 3}}}, tr.Counters)
}

// TestMeanOfValues holds that the mean is that of all measurements, and that equal weights change nothing.
func TestMeanOfValues(t *testing.T) {
	m := meanOfValues([]Value{{10, 1}, {20, 3}, {20, 6}})
	assert.InDelta(t, 19, m.value, 1e-9)
	a, b := meanOfValues(valuesOf(1, 2, 4, 9)), meanOfValues([]Value{{1, 7}, {2, 7}, {4, 7}, {9, 7}})
	assert.InDelta(t, 4, a.value, 1e-9)
	assert.InDelta(t, math.Sqrt((9+4+0+25)/3./4), a.sigma, 1e-9)
	assert.InDelta(t, a.sigma, b.sigma, 1e-9)
}

// TestHistograms holds that a histogram is compared by the mean of what it measured and by its quantiles.
func TestHistograms(t *testing.T) {
	histogram := func(tr *Trace, count int64, sum float64, cumulative, wanted bool) {
		tr.count(&events.Point{Provider: "M", Name: "ms", Type: events.Histogram, Count: count, Sum: sum, Cumulative: cumulative, Value: math.NaN(), Total: math.NaN(),
			Quantiles: []events.Quantile{{Share: 0.5, Value: 3}, {Share: 0.999, Value: 8}}}, wanted)
	}
	for _, cumulative := range []bool{false, true} {
		tr := &Trace{counted: map[counter]*counterValues{}, Profile: &profile.Profile{}, Requests: newRequests(false)}
		histogram(tr, 10, 100, cumulative, false) // before the time that is compared
		if cumulative {
			histogram(tr, 14, 120, true, true)
			histogram(tr, 14, 120, true, true)
			histogram(tr, 16, 140, true, true)
		} else {
			histogram(tr, 4, 20, false, true)
			histogram(tr, 0, 0, false, true)
			histogram(tr, 2, 20, false, true)
		}
		tr.choose(&profile.Selection{})
		assert.Equal(t, map[string][]Value{"M/ms": {{5, 4}, {10, 2}}, "M/ms p50": {{3, 4}, {3, 2}}, "M/ms p99.9": {{8, 4}, {8, 2}}}, tr.Counters)
	}
}

func valuesOf(list ...float64) (values []Value) {
	for _, v := range list {
		values = append(values, Value{v, 1})
	}
	return values
}

// A counter may be less than nothing: its change is that by its size.
func TestFiguresBelowZero(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		told, verdict string
	}{
		{-5, -10, "-100 % (95 %: -104 to -96 %)", Less},
		{-5, 5, "+200 % (95 %: +196 to +204 %)", More},
		{2, -4, "-300 % (95 %: -310 to -290 %)", Less},
		{-100, -101, "-1 % (95 %: -1 to -1 %)", Unclear},
		{2, 0, "gone (95 %: -100 to -90 %)", Less},
	} {
		f := Judge(c.before, c.after, 0.1, 3)
		assert.Equal(t, c.told, f.Told())
		assert.Equal(t, c.verdict, f.Verdict, c.told)
	}
}

// What is compared of a stretch of time is as much of the pauses as lies in it.
func TestPausesOfATime(t *testing.T) {
	pauses := func(from, to time.Duration) (sum int64) {
		name := "../../testdata/nettrace/runtime-gc.nettrace.zst"
		f, err := tracefix.Open(t.Context(), name)
		require.NoError(t, err)
		defer f.Close()
		tr, err := Read(t.Context(), f, name, Options{Select: profile.Selection{From: int64(from), To: int64(to)}})
		require.NoError(t, err)
		for _, g := range tr.GC {
			sum += g.pause
		}
		return sum
	}
	const cut = 1450 * time.Millisecond // in the longest of all, from 1444 to 1465 ms
	whole, first, second := pauses(0, 0), pauses(0, cut), pauses(cut, 0)
	assert.Equal(t, whole, first+second)
	assert.EqualValues(t, time.Millisecond, pauses(cut, cut+time.Millisecond))
}

// Growth in a second is that of the whole time: the first interval of an EventCounter may be of some milliseconds.
func TestGrowthOfUnlikeIntervals(t *testing.T) {
	tr := &Trace{counted: map[counter]*counterValues{}, Profile: &profile.Profile{}, Requests: newRequests(false)}
	grown := func(name string, growth, seconds float64) {
		p := &events.Point{Provider: "P", Name: name, Type: events.Rate, Value: growth, Interval: seconds, Total: math.NaN()}
		tr.count(p, true)
	}
	grown("things", 0, 0.004)
	for range 4 {
		grown("things", 200, 2)
	}
	grown("untimed", 5, 0) // in how many seconds nobody knows
	tr.choose(&profile.Selection{})
	require.Equal(t, []string{"P/things"}, slices.Collect(maps.Keys(tr.Counters)))
	assert.InDelta(t, 100, meanOfValues(tr.Counters["P/things"]).value, 0.1)
}

// Counters of one name that are not one counter are not compared as one.
func TestCountersOfOneName(t *testing.T) {
	payload := nettrace.Field{Name: "Payload", Type: nettrace.TypeObject, Fields: []nettrace.Field{
		{Name: "Name", Type: nettrace.TypeString}, {Name: "DisplayUnits", Type: nettrace.TypeString}, {Name: "Mean", Type: nettrace.TypeFloat64},
	}}
	m := &nettrace.Metadata{ID: 1, EventID: 2, Provider: "Lab", Name: "EventCounters", Fields: []nettrace.Field{{Type: nettrace.TypeObject, Fields: []nettrace.Field{payload}}}}
	name := filepath.Join(t.TempDir(), "twins.nettrace")
	out, err := os.Create(name)
	require.NoError(t, err)
	w, err := nettrace.NewWriter(out, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	for i, mean := range []float64{10, 1, 20, 2} {
		b := []byte("q\x00\x00\x00" + []string{"m\x00", "k\x00"}[i%2] + "\x00\x00")
		require.NoError(t, w.Write(&nettrace.Event{Metadata: m, Time: int64(i+1) * 1e9, ThreadID: 1, Sorted: true, Payload: binary.LittleEndian.AppendUint64(b, math.Float64bits(mean))}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	f, err := tracefix.Open(t.Context(), name)
	require.NoError(t, err)
	defer f.Close()
	tr, err := Read(t.Context(), f, name, Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string][]Value{"Lab/q (m)": valuesOf(10, 20), "Lab/q (k)": valuesOf(1, 2)}, tr.Counters)
}

// What goes up and down is compared by where it stands, not by how fast it grows, which is nothing
// in the mean.
func TestUpDownCounters(t *testing.T) {
	name := "../../testdata/nettrace/counters.nettrace.zst"
	f, err := tracefix.Open(t.Context(), name)
	require.NoError(t, err)
	defer f.Close()
	tr, err := Read(t.Context(), f, name, Options{})
	require.NoError(t, err)
	assert.Equal(t, valuesOf(4, 4, 4, 4, 4), tr.Counters["Lab.Meter/inflight"])
}

// A verdict that the interval does not show is that of a route, and says so.
func TestVerdictOfARoute(t *testing.T) {
	for want, f := range map[string]Figure{
		"less":          {Before: 3, After: 2, Low: -50, High: -9, Verdict: Less},
		"less by route": {Before: 3, After: 2, Low: -50, High: 1, Verdict: Less},
		"more by route": {Before: 3, After: 4, Low: -2, High: 50, Verdict: More},
		"more":          {After: 4, Verdict: More},
		"can't tell":    {Before: 3, After: 4, Low: -2, High: 50, Verdict: Unclear},
	} {
		assert.Equal(t, want, f.word())
	}
}

// Each table of methods begins with those that moved most in it: a limit leaves these.
func TestTablesBeginWithWhatMovedMost(t *testing.T) {
	r := &Result{}
	for name, change := range map[string][2]float64{"Leaf": {-3, -3}, "Near": {-0.2, -1}, "Outer": {0, -3}, "Far": {-0.1, -2}} {
		moved := func(d float64) Figure {
			f := Figure{Before: 10, After: 10 + d, Verdict: Unclear}
			if d <= -1 {
				f.Verdict = Less
			}
			return f
		}
		r.Methods = append(r.Methods, Method{Method: name, Self: moved(change[0]), Total: moved(change[1])})
	}
	text.SortRows(r.Methods, func(x, y *Method) int { return strings.Compare(x.Method, y.Method) })
	for _, table := range r.tables(2) {
		if !strings.Contains(table.Title, "with what they call") {
			continue
		}
		var names []string
		for _, row := range table.Rows {
			names = append(names, row[len(row)-1])
		}
		assert.Equal(t, []string{"Outer", "Far"}, names)
		assert.Equal(t, 1, table.More)
		// A table that is cut says so.
		d := &Document{Tables: []Table{table}}
		var out bytes.Buffer
		require.NoError(t, d.Text(&out, 80))
		assert.Contains(t, out.String(), "\n  1 more; --limit 0 shows all\n")
		out.Reset()
		require.NoError(t, d.Markdown(&out))
		assert.Contains(t, out.String(), "\n\n1 more; --limit 0 shows all\n\n</details>")
		return
	}
	assert.Fail(t, "no table of totals")
}

// What is longer than a comment may be is cut, and says how much of it is missing.
func TestMarkdownFitsComment(t *testing.T) {
	long := strings.Repeat("&", 5000)
	for _, c := range []struct{ verdict, tables, rows int }{{1, 3, 10}, {1, 8, 5000}, {5000, 2, 3}, {1, 200, 10}} {
		d := &Document{Before: long, After: "b", Verdict: slices.Repeat([]string{long}, c.verdict)}
		for range c.tables {
			d.Tables = append(d.Tables, Table{Title: "T", Head: []string{"n", "name"}, Rows: slices.Repeat([][]string{{"1", long}}, c.rows), More: 7})
		}
		var out bytes.Buffer
		require.NoError(t, d.Markdown(&out))
		assert.Less(t, out.Len(), 64<<10)
		lines := out.String()
		assert.Equal(t, c.tables, strings.Count(lines, "</details>"))
		rows := strings.Count(lines, "| 1 | ")
		assert.Zero(t, rows%c.tables)
		if left := c.rows - rows/c.tables; left > 0 {
			assert.Equal(t, c.tables, strings.Count(lines, fmt.Sprintf("\n%d more: a comment holds 65,536 characters; --format text --limit 0 shows all\n", left+7)))
		}
		told := strings.Count(lines, "- &amp;")
		assert.NotZero(t, told)
		if c.verdict > told {
			assert.Contains(t, lines, fmt.Sprintf("- and %d more, which --format text prints", c.verdict-told))
		}
	}
}

// Where the recorder of one of the traces did not tell managed code from the rest, their CPU times
// are not of one kind.
func TestUntypedOne(t *testing.T) {
	work := map[string]int{"App.Slow()": 800}
	for _, untyped := range [][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
		a, b := batch(1, work, false), batch(2, work, false)
		a.Name, b.Name = "before.nettrace", "after.nettrace"
		a.Profile.Meta.Untyped, b.Profile.Meta.Untyped = untyped[0], untyped[1]
		told := strings.Join(Traces(a, b).verdict(), "\n")
		if untyped[0] == untyped[1] {
			assert.NotContains(t, told, "did not tell managed code", untyped)
		} else {
			name := map[bool]string{true: a.Name, false: b.Name}[untyped[0]]
			assert.Contains(t, told, "The recorder of "+name+" did not tell managed code", untyped)
		}
	}
	a, b := batch(1, work, false), batch(2, nil, false)
	a.Profile.Meta.Untyped = true
	told := strings.Join(Traces(a, b).verdict(), "\n")
	assert.Contains(t, told, "Not compared: CPU time")
	assert.NotContains(t, told, "did not tell managed code", "of a trace without samples there is no CPU time to count otherwise")
}

// Too few samples do not tell whether their recorder told types. Beside a trace that shows that its
// recorder did not, they do not show that all of its methods are gone.
func TestUntypedFew(t *testing.T) {
	work := map[string]int{"App.Slow()": 80, "App.Other()": 60}
	external := func(seed uint64) *Trace {
		tr := batch(seed, work, false)
		of := tr.Profile.Threads[0]
		th := &profile.Thread{Process: of.Process, TID: of.TID}
		for _, s := range of.Samples.All() {
			s.Type = profile.SampleExternal
			th.Samples.Append(s)
		}
		tr.Profile.Threads[0] = th
		return tr
	}
	for i := range 2 {
		sides := [2]*Trace{external(1), external(2)}
		sides[i].Profile.Meta.Untyped = true
		r := Traces(sides[0], sides[1])
		assert.Equal(t, []string{"Nothing moved beyond noise."}, r.verdict())
		assert.InDelta(t, 140, r.CPU.Before, 5)
		assert.InDelta(t, 140, r.CPU.After, 5)

		sides[1-i] = batch(3, work, false)
		assert.Contains(t, strings.Join(Traces(sides[0], sides[1]).verdict(), "\n"), "did not tell managed code", "of the other one, which told them")
	}
}

// A file that does not tell what waited is said to count that as CPU time, unless both do.
func TestUntoldOne(t *testing.T) {
	work := map[string]int{"App.Slow()": 800}
	for _, untold := range [][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
		a, b := batch(1, work, false), batch(2, work, false)
		a.Profile.Meta.Untold, b.Profile.Meta.Untold = untold[0], untold[1]
		told := strings.Join(Traces(a, b).verdict(), "\n")
		const says = " does not tell of all samples whether they were on a CPU or waited"
		if untold[0] == untold[1] {
			assert.NotContains(t, told, says)
		} else {
			assert.Contains(t, told, map[bool]string{true: a.Name, false: b.Name}[untold[0]]+says)
		}
	}
}

// Waits of a file that does not tell them are none that the other trace has less of.
func TestUntoldWaits(t *testing.T) {
	waits := func(typ profile.SampleType) *Trace {
		tr := batch(1, map[string]int{"App.Slow()": 800, "App.Read()": 3000}, false)
		of := tr.Profile.Threads[0]
		th := &profile.Thread{Process: of.Process, TID: of.TID}
		for i, s := range of.Samples.All() {
			if i < 3000 { // App.Read comes first
				s.Type = typ
			}
			th.Samples.Append(s)
		}
		tr.Profile.Threads[0] = th
		return tr
	}
	for i := range 2 {
		sides := [2]*Trace{waits(profile.SampleExternal), waits(profile.SampleExternal)}
		sides[i] = waits(profile.SampleManaged)
		sides[i].Profile.Meta.Untold = true
		r := Traces(sides[0], sides[1])
		assert.InEpsilon(t, r.CPU.Before, r.CPU.After, 0.01)
		assert.Equal(t, "Nothing moved beyond noise.", r.verdict()[0])
		tree := r.tree()
		assert.Equal(t, tree.total[0], tree.total[1])
	}
}

func TestSpinsAreWaits(t *testing.T) {
	for name, want := range map[string]bool{
		"System.Private.CoreLib!System.Threading.LowLevelSpinWaiter.Wait(int32)": true,
		"System.Private.CoreLib!System.Threading.Thread.UninterruptibleSleep0()": true,
		"System.Private.CoreLib!System.Threading.Thread.Yield()":                 true, // innermost on .NET 10
		"System.Private.CoreLib!System.Threading.Tasks.Task.Yield()":             false,
		"Lab!System.Threading.Thread.Yield()":                                    false,
	} {
		assert.Equal(t, want, IsWait(name), name)
	}
}

// What the runtime's events and perf's map call a method by is one method, but the time is not of one
// kind that processors and the sampler of the runtime tell.
func TestUnlikeSamplers(t *testing.T) {
	of := func(module, name string, typ profile.SampleType) *Trace {
		tr := batch(1, nil, false)
		table := tr.Profile.Table
		stack := table.Push(0, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Module: module, Name: name})}))
		spin := table.Push(stack, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{
			Module: strings.ToLower("System.Private.CoreLib"), Name: "System.Threading.LowLevelSpinWaiter::Wait(int32)"})}))
		th := tr.Profile.Threads[0]
		for i := range 1000 {
			th.Samples.Append(profile.Sample{Time: int64(2*i+1) * 1e6, Stack: stack, Type: typ})
			th.Samples.Append(profile.Sample{Time: int64(2*i+2) * 1e6, Stack: spin, Type: typ})
		}
		tr.Profile.Meta.End = 2_000_000_000
		tr.unrecorded = tr.notRecorded(&session{})
		return tr
	}
	const says = "Processors took the samples of trace 1"
	a, b := of("Lab", "Lab.Walk.Mix(class System.String)", profile.SampleManaged), of("lab", "Lab.Walk::Mix(string)", profile.SampleCPU)
	r := Traces(a, b)
	require.Len(t, r.Methods, 1)
	assert.Equal(t, "Lab!Lab.Walk.Mix(class System.String)", r.Methods[0].Method)
	assert.InDelta(t, 1000, r.Methods[0].Self.Before, 5, "without what spins")
	assert.InDelta(t, 1000, r.Methods[0].Self.After, 5)
	assert.Contains(t, r.verdict()[0], says)
	for pattern, fits := range map[string]bool{"Lab.Walk.Mix": true, "lab!Lab.Walk::Mix(string)": true, "Lab.Walk::M*": true, "Lab.Walk::Mixer": false} {
		assert.Equal(t, fits, (&Change{pattern: pattern}).Fits(r.Methods[0].Method), pattern)
	}
	gate, err := ParseGate("cpu:*>+10%")
	require.NoError(t, err)
	assert.Contains(t, reason(gate, r), "cannot be judged: processors took the samples of trace 1", "it would pass or fail by chance")
	assert.Empty(t, reason(gate, Traces(b, b)))
	assert.NotContains(t, strings.Join(Traces(b, b).verdict(), "\n"), says)
	b.Name = "perf"
	assert.Contains(t, Traces(b, a).verdict()[0], "Processors took the samples of perf")
}

// What a recorder lost seems to be less, and that is said first.
func TestLost(t *testing.T) {
	a, b := batch(1, map[string]int{"App.Slow()": 800}, false), batch(2, map[string]int{"App.Slow()": 800}, false)
	assert.Equal(t, []string{"Nothing moved beyond noise."}, Traces(a, b).verdict())
	b.Profile.Meta.Lost = 7
	r := Traces(a, b)
	assert.Equal(t, []int64{0, 7}, r.Lost)
	assert.Equal(t, "Events of trace 2 that were lost while recording: 7. What there was of them is less here.", r.verdict()[0])
	a.Profile.Meta.Lost = 5
	assert.Contains(t, Traces(a, b).verdict()[0], "Events of trace 1 that were lost while recording: 5.")
}

// answered gives a trace requests of one route, by how they ended.
func answered(t *Trace, counts map[answer]int) *Trace {
	t.Requests = newRequests(false)
	for _, end := range slices.Sorted(maps.Keys(counts)) {
		for range counts[end] {
			t.Requests.add(t.Requests.Len()+1, "GET", "/pay/*", "", 1, 0, 1e6, end != unended, end)
		}
	}
	t.unrecorded = t.notRecorded(&session{})
	return t
}

// TestErrors: a service of which half of the answers are errors now is no service that did not change.
func TestErrors(t *testing.T) {
	tests := []struct {
		name          string
		before, after map[answer]int
		verdict, gate string
	}{
		{"answers", map[answer]int{fine: 100}, map[answer]int{fine: 50, refused: 50}, More, "GET /pay/*: 50.0 % of requests with errors, none before"},
		{"failures", map[answer]int{fine: 100, failed: 10}, map[answer]int{fine: 50, failed: 50}, More, "GET /pay/* changed by +450 %"},
		{"fewer", map[answer]int{fine: 50, refused: 50}, map[answer]int{fine: 100}, Less, ""},
		{"no status", map[answer]int{ended: 100}, map[answer]int{ended: 50, failed: 50}, More, "50.0 % of requests with errors"},
		{"few", map[answer]int{fine: 100}, map[answer]int{fine: 99, refused: 1}, Unclear, ""},
		{"open at the end", map[answer]int{fine: 100}, map[answer]int{fine: 50, unended: 50}, Unclear, ""},
		{"some told", map[answer]int{fine: 100}, map[answer]int{fine: 50, ended: 50}, Unclear, ""},
		{"always", map[answer]int{refused: 100}, map[answer]int{refused: 100}, Unclear, ""},
	}
	gate, err := ParseGate("errors:*/pay/*>+10%")
	require.NoError(t, err)
	work := map[string]int{"App.A()": 500}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Traces(answered(batch(1, work, false), tt.before), answered(batch(1, work, false), tt.after))
			require.Len(t, r.Errors, 1)
			assert.Equal(t, tt.verdict, r.Errors[0].Verdict)
			assert.Empty(t, r.NotCompared)
			var out bytes.Buffer
			require.NoError(t, r.Text(&out, 0, 0))
			assert.Equal(t, tt.verdict == Unclear, strings.HasPrefix(out.String(), "Nothing moved"), out.String())
			assert.NotContains(t, out.String(), "(95 %: new)", "what is new has no interval")
			assert.Equal(t, tt.verdict == Unclear, r.Summary() == "nothing moved beyond noise")
			assert.Equal(t, r.Errors[0].Before+r.Errors[0].After > 0, strings.Contains(out.String(), "Requests with errors, %"))
			if tt.gate == "" {
				assert.Empty(t, reason(gate, r))
			} else {
				assert.Contains(t, reason(gate, r), tt.gate)
			}
		})
	}
	// One that tells failures only is no better than one that tells answers, too.
	r := Traces(answered(batch(1, work, false), map[answer]int{fine: 50, refused: 50}), answered(batch(1, work, false), map[answer]int{ended: 100}))
	assert.Empty(t, r.Errors)
	require.Len(t, r.NotCompared, 1)
	assert.Equal(t, "the trace after tells the status of no request", r.NotCompared[0].Why)
	assert.Contains(t, reason(gate, r), "cannot be judged: the trace after tells the status of no request")
	// Without requests there are no errors of any, which is no news.
	r = Traces(answered(batch(1, work, false), nil), answered(batch(1, work, false), map[answer]int{fine: 50}))
	require.Len(t, r.NotCompared, 1)
	assert.Equal(t, "requests", r.NotCompared[0].Kind)
	assert.Contains(t, reason(gate, r), "cannot be judged: the trace before has no requests")
}

// TestSidesOfRequests: what a request costs that a service serves is not what one costs that it makes.
func TestSidesOfRequests(t *testing.T) {
	work := map[string]int{"App.A()": 500}
	of := func(served, made int) *Trace {
		tr := answered(batch(1, work, false), map[answer]int{fine: served})
		tr.made = newRequests(false)
		for i := range made {
			tr.made.add(1000+i, "", "/made", "", 1, 0, 1e6, true, fine)
		}
		tr.preferServed()
		tr.unrecorded = tr.notRecorded(&session{})
		return tr
	}
	for _, tt := range []struct {
		before, after *Trace
		requests      [2]int
		why           string
	}{
		{of(20, 90), of(25, 95), [2]int{20, 25}, ""},
		{of(0, 90), of(0, 95), [2]int{90, 95}, ""},
		{of(20, 90), of(0, 95), [2]int{90, 95}, ""},
		{of(0, 90), of(25, 95), [2]int{90, 95}, ""},
		{of(20, 0), of(0, 95), [2]int{20, 0}, "the trace after has none that were served"},
		{of(0, 90), of(25, 0), [2]int{0, 25}, "the trace before has none that were served"},
		{of(20, 90), of(0, 0), [2]int{20, 0}, "the trace after has no requests"},
	} {
		r := Traces(tt.before, tt.after)
		assert.Equal(t, tt.requests, r.Requests)
		assert.Equal(t, tt.why == "", r.PerRequest)
		if tt.why == "" {
			assert.Empty(t, r.NotCompared)
			continue
		}
		require.Len(t, r.NotCompared, 1)
		assert.Equal(t, NotCompared{"requests", tt.why, "requests"}, r.NotCompared[0])
		assert.Empty(t, r.Routes)
	}
}

// Without the DiagnosticSource bridge no event tells the method of a request that is made: with it the same
// routes are asked for.
func TestRoutesOfUntoldMethods(t *testing.T) {
	of := func(method string) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Requests = newRequests(false)
		for i := range 40 {
			tr.Requests.add(i+1, method, "/pay/*", "", 1, 0, 1e6, true, fine)
		}
		tr.Requests = tr.Requests.chosen(func(*Request) bool { return true }) // as all are
		tr.unrecorded = tr.notRecorded(&session{})
		return tr
	}
	for _, tt := range [][3]string{{"", "", "/pay/*"}, {"GET", "GET", "GET /pay/*"}, {"GET", "", "/pay/*"}, {"", "GET", "/pay/*"}} {
		r := Traces(of(tt[0]), of(tt[1]))
		require.Len(t, r.Routes, 1, tt)
		assert.Equal(t, tt[2], r.Routes[0].Name)
		assert.Equal(t, [2]int{40, 40}, r.Routes[0].Count)
		assert.Empty(t, r.mix)
	}
	assert.Empty(t, Traces(of("GET"), of("POST")).Routes)
}

// TestWebSocketsAreNotSlower: they last as long as who talks there wants.
func TestWebSocketsAreNotSlower(t *testing.T) {
	of := func(end answer, ms int64) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Requests = newRequests(false)
		for i := range 40 {
			tr.Requests.add(i+1, "GET", "/chat", "", 1, 0, ms*1e6, true, end)
		}
		return tr
	}
	r := Traces(of(fine, 100), of(fine, 900))
	assert.Len(t, r.Routes, 1)
	assert.Len(t, r.Tails, 1)
	r = Traces(of(upgraded, 100), of(upgraded, 900))
	assert.Empty(t, r.Routes)
	assert.Empty(t, r.Tails)
	for want, s := range map[answer]httpphases.ServerRequest{
		upgraded: {Status: 101, Outcome: httpphases.OK},
		failed:   {Status: 101, Outcome: httpphases.Failed},
		unended:  {Method: "CONNECT", Outcome: httpphases.Incomplete},
		refused:  {Method: "CONNECT", Status: 403, Outcome: httpphases.OK},
		fine:     {Method: "GET", Status: 200, Outcome: httpphases.OK},
	} {
		assert.Equal(t, want, answerOfServed(&s), "an error of a WebSocket counts")
	}
}

// TestTailOfDurations: where few requests become slow, a mean tells less than the 95th percentile; where they are
// rarer than that, it stays.
func TestTailOfDurations(t *testing.T) {
	of := func(n, slow int) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Requests = newRequests(false)
		for i := range n {
			ms := 100 + i%7
			if i*slow/n != (i+1)*slow/n {
				ms = 150
			}
			tr.Requests.add(i+1, "GET", "/a", "", 1, 0, int64(ms)*1e6, true, fine)
		}
		tr.unrecorded = tr.notRecorded(&session{})
		return tr
	}
	for _, tt := range []struct {
		n, slow int
		verdict string
		gate    string
	}{
		{1000, 0, Unclear, ""},
		{1000, 20, Unclear, ""},
		{1000, 120, More, "GET /a changed by +42 %"},
		{39, 20, "", "cannot be judged: a trace has too few values of that name"},
	} {
		r := Traces(of(1000, 0), of(tt.n, tt.slow))
		if tt.verdict != "" {
			require.Len(t, r.Tails, 1)
			assert.Equal(t, tt.verdict, r.Tails[0].Verdict, r.Tails[0])
			assert.Equal(t, 106.0, r.Tails[0].Before)
			assert.Equal(t, Unclear, r.Routes[0].Verdict, r.Routes[0])
		}
		g, err := ParseGate("p95:GET */a>+10%")
		require.NoError(t, err)
		assert.Contains(t, strings.Join(g.check(r), ""), tt.gate)
		assert.Equal(t, tt.gate == "", len(g.check(r)) == 0)
	}
}

// What is thrown and collected once, as at a start, or all the while, is no less of a request for more of them.
func TestDoneOnce(t *testing.T) {
	of := func(requests, thrown int, seconds int64) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Requests = newRequests(false)
		for i := range requests {
			tr.Requests.add(i+1, "GET", "/a", "", 1, 0, 1e6, true, fine)
		}
		p := tr.Profile
		p.Weights, p.Names = []profile.Weight{{Name: "exceptions"}}, []string{"StartEx"}
		for range thrown {
			p.Threads[0].Values.Append(profile.Value{Amount: 1})
			tr.GC = append(tr.GC, collection{pause: 1e6})
		}
		p.Meta.End = seconds * 1e9
		return tr
	}
	for _, tt := range []struct {
		before, after *Trace
		verdict       string
	}{
		{of(100, 200, 10), of(400, 200, 10), Unclear}, // once
		{of(100, 200, 10), of(400, 400, 20), Unclear}, // all the while
		{of(100, 200, 10), of(400, 800, 10), Unclear}, // for each
		{of(100, 200, 10), of(400, 500, 10), Unclear}, // some once, some for each
		{of(100, 200, 10), of(400, 60, 10), Less},
		{of(100, 200, 10), of(400, 2000, 10), More},
		{of(100, 200, 10), of(100, 400, 10), More},
	} {
		r := Traces(tt.before, tt.after)
		require.Len(t, r.Exceptions, 1)
		assert.Equal(t, tt.verdict, r.Exceptions[0].Verdict, r.Exceptions[0])
		assert.Equal(t, tt.verdict, r.GC[0].Verdict, r.GC[0])
	}
}

// Lists of which there is nothing are empty in JSON, not null, over which jq does not go.
func TestJSONHasLists(t *testing.T) {
	none := func() *Trace {
		return &Trace{Profile: &profile.Profile{Table: profile.NewTable()}, Requests: newRequests(false)}
	}
	for _, r := range []*Result{Traces(none(), none()), Traces(batch(1, map[string]int{"A()": 100}, false), none())} {
		var b strings.Builder
		require.NoError(t, r.JSON(&b))
		assert.NotContains(t, b.String(), "null")
	}
}

// TestLimitOfRows: a limit holds for what moved, too; that comes first where not all is shown, and what is
// cut off of it is counted.
func TestLimitOfRows(t *testing.T) {
	of := func(times ...int) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Profile.Weights, tr.Profile.Names = []profile.Weight{{Name: "exceptions"}}, []string{"AEx", "BEx", "CEx"}
		for i, n := range times {
			for range n {
				tr.Profile.Threads[0].Values.Append(profile.Value{Amount: 1, Name: uint32(i)})
			}
		}
		return tr
	}
	r := Traces(of(1000, 100, 100), of(1200, 300, 300))
	require.Equal(t, []string{Unclear, More, More}, []string{r.Exceptions[0].Verdict, r.Exceptions[1].Verdict, r.Exceptions[2].Verdict})
	rows := func(limit int) (names []string, more string) {
		for _, table := range r.tables(limit) {
			if strings.HasPrefix(table.Title, "Exceptions") {
				for _, row := range table.Rows {
					names = append(names, row[len(row)-1])
				}
				return names, table.more()
			}
		}
		return nil, ""
	}
	for limit, want := range map[int]struct {
		names []string
		more  string
	}{
		0: {[]string{"AEx", "BEx", "CEx"}, "0 more; --limit 0 shows all"},
		1: {[]string{"BEx"}, "2 more, of which 1 moved; --limit 0 shows all"},
		2: {[]string{"BEx", "CEx"}, "1 more; --limit 0 shows all"},
		3: {[]string{"AEx", "BEx", "CEx"}, "0 more; --limit 0 shows all"},
	} {
		names, more := rows(limit)
		assert.Equal(t, want.names, names, limit)
		assert.Equal(t, want.more, more, limit)
	}
}

// TestRoutesOfFew: which routes are not compared, as one of the traces has few requests of them, is said.
func TestRoutesOfFew(t *testing.T) {
	of := func(counts map[string]int) *Trace {
		tr := batch(1, map[string]int{"App.A()": 500}, false)
		tr.Requests = newRequests(false)
		id := 0
		for _, path := range slices.Sorted(maps.Keys(counts)) {
			for range counts[path] {
				id++
				tr.Requests.add(id, "GET", path, "", 1, 0, 1e6, true, fine)
			}
		}
		return tr
	}
	told := func(before, after map[string]int) string {
		return strings.Join(Traces(of(before), of(after)).verdict(), "\n")
	}
	const says = "less than 8 requests are not compared: "
	assert.NotContains(t, told(map[string]int{"/a": 10, "/b": 8}, map[string]int{"/a": 10, "/b": 8}), says)
	assert.Contains(t, told(map[string]int{"/a": 10, "/b": 10}, map[string]int{"/a": 10, "/b": 7}), says+"GET /b.")
	assert.Contains(t, told(map[string]int{"/a": 10, "/c": 9, "/b": 9, "/e": 1, "/d": 9}, map[string]int{"/a": 10}), says+"GET /b, GET /c, GET /d and 1 more.")
}
