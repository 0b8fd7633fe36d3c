package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// topExample has recursion, names that the reference hides or damages, waits, and
// samples at a GC poll.
func topExample() *profile.Profile {
	m := newMaker()
	m.p.Meta.Interval, m.p.Meta.End = ms, 12*ms
	th := m.thread(m.process(5, "shop", ""), 7, "")
	other := m.thread(m.p.Processes[0], 8, "Worker")
	const (
		order = "shop!Shop.OrderProcessor.Process(class ROOT.X)"
		ctor  = "shop!Shop.Map`2[System.__Canon,System.Int32]..ctor(!0,!1)"
		wait  = "System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)"
		poll  = "System.Private.CoreLib!System.Threading.Thread.PollGC()"
		poll2 = "System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()"
	)
	for i, s := range []struct {
		typ    profile.SampleType
		frames []string
	}{
		{profile.SampleManaged, []string{order}},
		{profile.SampleManaged, []string{order, order + "@2", ctor}},
		{profile.SampleManaged, []string{order, ctor, order}},
		{profile.SampleExternal, []string{order, wait}},
		{profile.SampleManaged, []string{order, poll, poll2}},
		{profile.SampleEvent, []string{"no!Sample()"}},
		{profile.SampleManaged, []string{order, ctor}},
		{profile.SampleManaged, nil},
	} {
		th.Samples.Append(profile.Sample{Time: int64(i) * ms, Type: s.typ, Stack: m.stack(s.frames...)})
	}
	other.Samples.Append(profile.Sample{Time: 0, Type: profile.SampleExternal, Stack: m.stack(wait)})
	other.Samples.Append(profile.Sample{Time: 5 * ms, Type: profile.SampleExternal, Cut: profile.CutDepth, Stack: m.stack(wait)})
	return m.p
}

func TestTop(t *testing.T) {
	top := topExample().Top(profile.TopOptions{Raw: true})
	assert.Equal(t, 9, top.Samples)
	assert.Equal(t, 1, top.Cut)
	assert.Equal(t, 1, top.NoStack)
	assert.InDelta(t, 7, top.CPU, 1e-9)
	assert.InDelta(t, 7, top.Wait, 1e-9)
	assert.InDelta(t, 2, top.Polls, 1e-9)
	require.Len(t, top.Groups, 1)
	const order = "shop!Shop.OrderProcessor.Process(class ROOT.X)"
	want := []profile.TopRow{
		{Method: order, Module: "shop", CPUSelf: 2, CPUTotal: 6, WaitTotal: 1, Samples: 2},
		{Method: "shop!Shop.Map`2[System.__Canon,System.Int32]..ctor(!0,!1)", Module: "shop", CPUSelf: 2, CPUTotal: 3, Samples: 2},
		{Method: "System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()", Module: "System.Private.CoreLib", CPUSelf: 2, CPUTotal: 2, Samples: 1},
		{Method: "System.Private.CoreLib!System.Threading.Thread.PollGC()", Module: "System.Private.CoreLib", CPUTotal: 2},
		{Method: "System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)", Module: "System.Private.CoreLib", WaitSelf: 7, WaitTotal: 7, Samples: 3},
	}
	assert.Equal(t, want, top.Groups[0].Rows)

	folded := topExample().Top(profile.TopOptions{})
	assert.Equal(t, profile.TopRow{Method: order, Module: "shop", CPUSelf: 4, CPUTotal: 6, WaitTotal: 1, Samples: 3}, folded.Groups[0].Rows[0])
	assert.Len(t, folded.Groups[0].Rows, 3)

	waits := topExample().Top(profile.TopOptions{Wait: true, Limit: 1, Raw: true})
	require.Len(t, waits.Groups[0].Rows, 1)
	assert.Equal(t, want[4], waits.Groups[0].Rows[0])
	assert.Equal(t, 5, waits.Groups[0].Methods)
}

func TestTopByThread(t *testing.T) {
	top := topExample().Top(profile.TopOptions{ByThread: true})
	require.Len(t, top.Groups, 2)
	assert.Equal(t, int64(7), top.Groups[0].TID)
	assert.Equal(t, "Worker", top.Groups[1].Thread)
	assert.InDelta(t, 0, top.Groups[1].CPU, 1e-9)
	assert.InDelta(t, 6, top.Groups[1].Wait, 1e-9)
	assert.Len(t, top.Groups[1].Rows, 1)

	var out bytes.Buffer
	require.NoError(t, TopCSV(&out, top))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, []string{"process", "pid", "thread", "tid", "method", "module", "cpu_self_ms", "cpu_total_ms", "wait_self_ms", "wait_total_ms", "samples"}, rows[0])
	assert.Equal(t, []string{"shop", "5", "Worker", "8"}, rows[len(rows)-1][:4])
}

// TestTopSums: self times add up to all time, and no total is less than its self time.
func TestTopSums(t *testing.T) {
	for seed := range uint64(40) {
		p := random(seed)
		for _, o := range []profile.TopOptions{{Raw: true}, {Raw: true, ByThread: true}, {Total: true}} {
			top := p.Top(o)
			cpu, wait, samples := 0.0, 0.0, top.NoStack
			for _, g := range top.Groups {
				last := -1.0
				for _, r := range g.Rows {
					cpu += r.CPUSelf
					wait += r.WaitSelf
					samples += r.Samples
					require.GreaterOrEqual(t, r.CPUTotal, r.CPUSelf)
					require.GreaterOrEqual(t, r.WaitTotal, r.WaitSelf)
					require.LessOrEqual(t, r.CPUTotal, g.CPU+1e-6)
					key := r.CPUSelf
					if o.Total {
						key = r.CPUTotal
					}
					if g.CPU > 0 && last >= 0 {
						require.LessOrEqual(t, key, last)
					}
					last = key
				}
			}
			assert.Equal(t, top.Samples, samples)
			if top.NoStack == 0 {
				assert.InDelta(t, top.CPU, cpu, 1e-6)
				assert.InDelta(t, top.Wait, wait, 1e-6)
			}
			var out bytes.Buffer
			require.NoError(t, TopJSON(&out, top))
			require.True(t, json.Valid(out.Bytes()))
		}
	}
}

func TestTopText(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120, 200} {
		var out bytes.Buffer
		require.NoError(t, TopText(&out, topExample().Top(profile.TopOptions{Limit: 2, Raw: true}), width))
		text := out.String()
		assert.Contains(t, text, "Process", "nothing is hidden for its name")
		assert.Contains(t, text, " 2 more; --limit 0 shows all")
		assert.Less(t, strings.Index(text, "MANAGED SELF"), strings.Index(text, "NATIVE/WAIT SELF"), "as much of both: managed code comes first")
		assert.Contains(t, text, "1 of 9 stacks are cut")
		assert.Contains(t, text, "without --raw")
		if width > 0 {
			table, _, _ := strings.Cut(text, "\n\n")
			for line := range strings.Lines(table) {
				if strings.Contains(line, "%") {
					assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
				}
			}
		} else {
			assert.Contains(t, text, "shop!Shop.Map`2[System.__Canon,System.Int32]..ctor(!0,!1)")
		}
	}
	var out bytes.Buffer
	require.NoError(t, TopText(&out, (&profile.Profile{Table: profile.NewTable()}).Top(profile.TopOptions{}), 80))
	assert.Empty(t, out.String())
}

// A table says how many methods it leaves out, not how many there are with the other kind of time.
func TestTopTextMore(t *testing.T) {
	m := newMaker()
	th := m.thread(m.process(1, "x", ""), 1, "")
	for i, s := range []struct {
		typ    profile.SampleType
		frames []string
	}{
		{profile.SampleManaged, []string{"a!A.Main()", "a!A.One()"}},
		{profile.SampleManaged, []string{"a!A.Main()", "a!A.Two()"}},
		{profile.SampleManaged, []string{"a!A.Main()", "a!A.Three()"}},
		{profile.SampleExternal, []string{"a!A.Main()", "a!A.Wait()"}},
	} {
		th.Samples.Append(profile.Sample{Time: int64(i) * ms, Dur: ms, Type: s.typ, Stack: m.stack(s.frames...)})
	}
	for _, o := range []profile.TopOptions{{Limit: 1}, {Limit: 1, Total: true}, {Limit: 1, ByThread: true}} {
		var out bytes.Buffer
		require.NoError(t, TopText(&out, m.p.Top(o), 0))
		managed, waits, both := strings.Cut(out.String(), "\n\n")
		require.True(t, both)
		assert.Contains(t, managed, " 3 more; --limit 0 shows all", o)
		assert.Contains(t, waits, " 1 more; --limit 0 shows all", o)
	}
	var out bytes.Buffer
	require.NoError(t, TopText(&out, m.p.Top(profile.TopOptions{Limit: 1, Wait: true}), 0))
	assert.Contains(t, out.String(), " 1 more; --limit 0 shows all")
}

// What dominates is listed first; who asks for one kind gets only that.
func TestTopTextOrder(t *testing.T) {
	p := topExample()
	p.Threads[0].Samples = profile.Samples{} // the other only waits
	m := newMaker()
	th := m.thread(m.process(1, "x", ""), 1, "")
	for i, typ := range []profile.SampleType{profile.SampleManaged, profile.SampleExternal, profile.SampleExternal} {
		th.Samples.Append(profile.Sample{Time: int64(i) * ms, Dur: ms, Type: typ, Stack: m.stack("a!B.C()")})
	}
	text := func(p *profile.Profile, o profile.TopOptions) string {
		var out bytes.Buffer
		require.NoError(t, TopText(&out, p.Top(o), 80))
		return out.String()
	}
	both := text(m.p, profile.TopOptions{})
	assert.Less(t, strings.Index(both, "NATIVE/WAIT SELF"), strings.Index(both, "MANAGED SELF"))
	assert.NotContains(t, text(m.p, profile.TopOptions{Wait: true}), "MANAGED SELF")
	assert.NotContains(t, text(p, profile.TopOptions{}), "MANAGED SELF")

	// What an idle process waits is not told to be off the CPUs, which EventPipe does not see.
	assert.Contains(t, text(p, profile.TopOptions{}), "0.0 ms in managed code, 6.0 ms in native code or waiting")
	assert.Contains(t, text(p, profile.TopOptions{}), "NATIVE/WAIT SELF")
	assert.True(t, p.Around("*Wait*", false).Managed)
	th.Samples = profile.Samples{}
	for i, typ := range []profile.SampleType{profile.SampleCPU, profile.SampleExternal} {
		th.Samples.Append(profile.Sample{Time: int64(i) * ms, Dur: ms, Type: typ, Stack: m.stack("a!B.C()")})
	}
	assert.Contains(t, text(m.p, profile.TopOptions{}), "1.0 ms on a CPU, 1.0 ms off the CPUs")
}

func TestAround(t *testing.T) {
	p := topExample()
	a := p.Around("*OrderProcessor.Process", false)
	const order, ctor = "shop!Shop.OrderProcessor.Process(class ROOT.X)", "shop!Shop.Map`2[System.__Canon,System.Int32]..ctor(!0,!1)"
	assert.Contains(t, a.Methods, order)
	assert.Equal(t, 6, a.Samples)
	callers, callees := map[string]int{}, map[string]int{}
	for _, r := range a.Callers {
		callers[r.Method] = r.Samples
	}
	for _, r := range a.Callees {
		callees[r.Method] = r.Samples
	}
	assert.Equal(t, 6, callers[profile.Root], "each stack counts once, though the method calls itself")
	assert.Equal(t, 1, callers[ctor])
	assert.Equal(t, 3, callees[profile.Self], "the poll is not one that it calls")
	assert.Equal(t, 3, callees[ctor])
	assert.Equal(t, 1, callees["System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)"])
	raw := p.Around("*OrderProcessor.Process", true)
	assert.Contains(t, fmt.Sprint(raw.Callees), "PollGC")

	var out bytes.Buffer
	require.NoError(t, AroundText(&out, a, 1, 80))
	assert.Contains(t, out.String(), "CALLED BY")
	assert.Contains(t, out.String(), "more; --limit 0 shows all")
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	out.Reset()
	require.NoError(t, AroundCSV(&out, a))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+len(a.Callers)+len(a.Callees))
	out.Reset()
	require.NoError(t, AroundJSON(&out, a))
	assert.True(t, json.Valid(out.Bytes()))
	assert.Zero(t, p.Around("nosuch", false).Samples)
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"a!B.C()", 80, "a!B.C()"},
		{"mod!Ns.Type.Method(class System.String,int32)", 25, "mod!Ns.Type.Method(…)"},
		{"mod!Ns.Type.Method(class System.String,int32)", 18, "Ns.Type.Method(…)"},
		{"mod!Ns.Sub.Type.Method()", 17, "…Type.Method()"},
		{"mod!Ns.Sub.Type.Method()", 20, "Ns.Sub.Type.Method()"},
		{"mod!Ns.Sub.Type..ctor(class X.Y)", 17, "…Type..ctor(…)"},
		{"m!N.Dictionary`2[System.__Canon,System.Int32].Find(!0)", 51, "N.Dictionary`2[System.__Canon,System.Int32].Find(…)"},
		{"m!N.M.Dictionary`2[System.__Canon,System.Int32].Find(!0)", 50, "…Dictionary`2[System.__Canon,System.Int32].Find(…)"},
		{"m!A.B(value class F(int32)[])", 12, "m!A.B(…)"},
		{strings.Repeat("x", 50), 20, "xxxxxx…xxxxxxxxxxxxx"},
		{"", 5, ""},
	} {
		got := Shorten(c.name, c.width)
		assert.Equal(t, c.want, got, c.name)
		assert.LessOrEqual(t, utf8.RuneCountInString(got), c.width)
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("mod!Ns.Type.Method(class System.String,int32)", 20)
	f.Add(")(", 1)
	f.Add("..ctor[[<(", 4)
	f.Fuzz(func(t *testing.T, name string, width int) {
		if width = width % 300; width < 0 {
			width = -width
		}
		assert.LessOrEqual(t, utf8.RuneCountInString(Shorten(name, width)), max(width, 0))
	})
}

func BenchmarkTop(b *testing.B) {
	p := large(10000)
	b.ReportAllocs()
	for b.Loop() {
		p.Top(profile.TopOptions{Limit: 30})
	}
}
