package samples

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	pprof "github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// read reads text of a kind, and returns what it told of damage.
// kind is the one of that name.
func kind(name string) input.Kind {
	for _, k := range input.Kinds() {
		if k.String() == name {
			return k
		}
	}
	panic("no kind " + name)
}

func read(t testing.TB, k input.Kind, r io.Reader) (*profile.Profile, []string) {
	var told []string
	p, err := Read(context.Background(), k, r, &Options{Source: "x", Warn: func(e *FormatError) {
		told = append(told, fmt.Sprintf("%d: %v", e.Offset, e.Err))
	}})
	require.NoError(t, err)
	return p, told
}

// rows are the samples of a profile as text: thread, time and length in µs, type, cut, stack.
func rows(p *profile.Profile) (out []string) {
	for _, t := range p.Threads {
		for _, s := range t.Samples.All() {
			var names []string
			for _, f := range p.Table.AppendFrames(nil, s.Stack) {
				names = append(names, p.Table.MethodOf(f).Full())
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d/%d %q %d+%d %v %s %s", t.Process.PID, t.TID, t.Title(), s.Time/1000, s.Dur/1000, s.Type, strings.Join(names, ";"), s.Cut)))
		}
	}
	return out
}

const managedEvent = `app 7/9 [001] 100.000001:  1001001 cpu-clock:ppp: 
	7f1e00001000 void [Lab] Lab.Work::Spin(int32)[Tier0]+0x12 (/tmp/perf-7.map)
	7f1e00002000 instance void [System.Private.CoreLib] System.Threading.Thread::StartCallback()[PreJIT] (/usr/share/dotnet/System.Private.CoreLib.dll)
	7f1e00003000 [unknown] (/usr/share/dotnet/libcoreclr.so)
	ffffffff81000130 do_syscall_64 ([kernel.kallsyms])

`

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind input.Kind
		text string
		want []string
	}{
		{"folded", kind("folded"), "main;App!work(a;b) 12\r\n\nidle 0.5\n[no frames] 3", []string{
			`0/0 "all threads" 0+12 managed main;App!work(a;b)`,
			`0/0 "all threads" 12+0 managed idle`,
			`0/0 "all threads" 12+3 managed`,
		}},
		{"folded with a byte order mark", kind("folded"), "\ufeffmain;a 3\nmain 2\n", []string{`0/0 "all threads" 0+3 managed main;a`, `0/0 "all threads" 3+2 managed main`}},
		{"ndjson off the CPU", kind("ndjson"), `{"ts":1,"pid":1,"tid":2,"type":"offcpu","duration_ms":2.5,"depth":1,"cut":false,"frames":["wait"]}` + "\n" +
			`{"ts":9,"pid":1,"tid":2,"type":"cpu","duration_ms":2.5,"depth":1,"cut":false,"frames":["work"]}` + "\n", []string{`1/2 "Thread 2" 1000+2500 offcpu wait`, `1/2 "Thread 2" 9000+2500 cpu work`}},
		{"folded off the CPU", kind("folded"), "main;wait;[off CPU] 5\n", []string{`0/0 "all threads" 0+5 offcpu main;wait`}},
		{"ndjson", kind("ndjson"), `{"ts":1.5,"pid":1,"tid":2,"type":"managed","depth":1,"cut":false,"frames":["A!a"]}
{"ts":2.5,"pid":1,"tid":2,"type":"external","depth":2,"cut":true,"why":"depth","frames":["[frames lost]","A!b","c"],"repair":{"how":"bridge","restored":0,"confidence":0}}
{"ts":0.5,"pid":1,"tid":2,"type":"cpu","depth":0,"cut":false,"frames":[]}`, []string{
			`1/2 "Thread 2" 500+0 cpu`,
			`1/2 "Thread 2" 1500+0 managed A!a`,
			`1/2 "Thread 2" 2500+0 external [frames lost];A!b;c depth`,
		}},
		{"perf script", kind("perf script"), managedEvent, []string{
			`7/9 "app" 0+0 cpu [kernel.kallsyms]!do_syscall_64;libcoreclr.so!0x7f1e00003000;system.private.corelib!System.Threading.Thread::StartCallback();lab!Lab.Work::Spin(int32)`,
		}},
		{"perf script without process and time", kind("perf script"), "V8 Worker  44 cycles: \n\t 10 a (b) (/x/y)\n\nV8 Worker  44 cycles: \n\t 10 a(int)\n", []string{
			`0/44 "V8 Worker" 0+0 cpu y!a (b)`,
			`0/44 "V8 Worker" 1000+0 cpu a(int)`,
		}},
		{"perf script with switches", kind("perf script"), `a 1/1 [000] 5.000: sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
	10 wait (/bin/a)

b 2/2 [000] 5.500: sched:sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
	20 read (/bin/b)
`, []string{`1/1 "a" 0+500000 offcpu a!wait`, `2/2 "b" 500000+0 event b!read`}},
		{"idle threads of two CPUs", kind("perf script"), "swapper 0 [000] 1.0: 1 cpu-clock: \n\t10 idle (/k)\n\nswapper 0 [001] 1.0: 1 cpu-clock: \n\t10 idle (/k)\n", []string{
			`0/0 "swapper/000" 0+0 cpu k!idle`,
			`0/4194305 "swapper/001" 0+0 cpu k!idle`,
		}},
		{"the idle thread of a CPU and the thread of that number", kind("perf script"), "swapper 0 [001] 1.0: 1 cpu-clock: \n\t10 idle (/k)\n\nsystemd 1 [000] 1.0: 1 cpu-clock: \n\t20 main (/systemd)\n", []string{
			`0/4194305 "swapper/001" 0+0 cpu k!idle`,
			`0/1 "systemd" 0+0 cpu systemd!main`,
		}},
		{"idle threads with their process", kind("perf script"), "swapper 0/0 [000] 1.0: 1 cpu-clock: \n\t10 idle (/k)\n\nswapper 0/0 [001] 1.0: 1 cpu-clock: \n\t10 idle (/k)\n", []string{
			`0/0 "swapper/000" 0+0 cpu k!idle`,
			`0/1 "swapper/001" 0+0 cpu k!idle`,
		}},
		{"perf script of a thread without a name", kind("perf script"), "    27012/27019 81236.656317:    2004008 cpu-clock: \n\t10 x (/a)\n\n    27012/27019 [001] 81236.656318:    2004008 cpu-clock: \n\t10 x (/a)\n", []string{
			`27012/27019 "Thread 27019" 0+0 cpu a!x`,
			`27012/27019 "Thread 27019" 1+0 cpu a!x`,
		}},
		{"perf script of a name of numbers", kind("perf script"), "12 13 27012/27018 1.0: 2004008 cpu-clock: \n\t10 x (/a)\n\n  12 13 27018 [001] 2.0: 2004008 cpu-clock: \n\t10 x (/a)\n", []string{
			`27012/27018 "12 13" 0+0 cpu a!x`,
			`0/27018 "12 13" 1000000+0 cpu a!x`,
		}},
		{"perf script with its mode", kind("perf script"), "a 1/2 K     1.0:    2004008 cpu-clock: \n\t10 x (/a)\n\na 1/2 [001] U     2.0:    2004008 cpu-clock: \n\t10 x (/a)\n", []string{
			`1/2 "a" 0+0 cpu a!x`,
			`1/2 "a" 1000000+0 cpu a!x`,
		}},
		{"perf script of a thread that got its name later", kind("perf script"), "dotnet 1/2 1.0: 1 cpu-clock: \n\t10 x (/a)\n\n.NET TP Worker 1/2 2.0: 1 cpu-clock: \n\t10 x (/a)\n", []string{
			`1/2 ".NET TP Worker" 0+0 cpu a!x`,
			`1/2 ".NET TP Worker" 1000000+0 cpu a!x`,
		}},
		{"perf script of names like addresses", kind("perf script"), `              dd 1/1 [000] 5.000: sched:sched_switch: prev_comm=dd prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=bc next_pid=2 next_prio=120
              bc 2/2 [000] 5.500: sched:sched_switch: prev_comm=bc prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=dd next_pid=1 next_prio=120
dd 1/1 [000] 6.000: 1000000 cpu-clock: 
	10 x (/a)
`, []string{`1/1 "dd" 0+500000 offcpu`, `1/1 "dd" 1000000+0 cpu a!x`, `2/2 "bc" 500000+0 event`}},
		{"perf script with offsets in files", kind("perf script"), "a 1/2 1.0: 1 cpu-clock: \n\t10 x+0x2 (/a.so+0x10)\n\t20 [unknown] (/b.so (deleted)+0x20)\n", []string{`1/2 "a" 0+0 cpu b.so!0x20;a.so!x`}},
		{"perf script behind perf inject --jit", kind("perf script"), "app 1/2 1.0: 1 cpu-clock: \n\t12f int32[0...,0...] [Lab] Lab.Grid::Make(int32[0...,0...])[Tier0]+0xaf (/tmp/jitted-1-2.so)\n", []string{`1/2 "app" 0+0 cpu lab!Lab.Grid::Make(int32[0...,0...])`}},
		{"perf script with a byte order mark", kind("perf script"), "\ufeff" + managedEvent[:strings.Index(managedEvent, "\n")+1] + "\t10 x (/a)\n", []string{`7/9 "app" 0+0 cpu a!x`}},
		{"perf script of two kinds of cores", kind("perf script"), "a 1/1 [000] 1.0: 9 cpu_core/cycles/P: \n\t10 x (/a)\n\na 1/1 [001] 1.5: 9 cpu_atom/cycles/P: \n\t20 y (/a)\n", []string{
			`1/1 "a" 0+0 cpu a!x`,
			`1/1 "a" 500000+0 cpu a!y`,
		}},
		{"perf script of a name with a number", kind("perf script"), "Pool 12 123/4567 1.0: 9 cpu-clock: \n\t10 x (/a)\n", []string{`123/4567 "Pool 12" 0+0 cpu a!x`}},
		{"perf script of a name with a number and no process", kind("perf script"), "worker 3 4567 1.0: 9 cpu-clock: \n\t10 x (/a)\n", []string{`0/4567 "worker 3" 0+0 cpu a!x`}},
		{"perf script with flags", kind("perf script"), "a 1/2 [000] d..1. 1.0: 9 cpu-clock: \n\t10 x (/a)\n", []string{`1/2 "a" 0+0 cpu a!x`}},
		{"perf script of a wall clock", kind("perf script"), "a 1/2 1764284400.000000001: 9 cpu-clock: \n\t10 x (/a)\n\na 1/2 1764284400.000002: 9 cpu-clock: \n\t10 x (/a)\n", []string{
			`1/2 "a" 0+0 cpu a!x`,
			`1/2 "a" 1+0 cpu a!x`,
		}},
		{"perf script with its records", kind("perf script"), "a 1/2 1.0: PERF_RECORD_MMAP2 1/2: [0x7f00(0x1000) @ 0 fd:01 1 0]: r-xp /a\na 1/2 1.0: 9 cpu-clock: \n\t10 x (/a)\na 1/2 1.1: PERF_RECORD_LOST lost 17\n\n", []string{
			`1/2 "a" 0+0 cpu a!x`,
		}},
		{"perf script of a fault", kind("perf script"), "a 1/1 5.0: page-faults: \n\t10 touch (/bin/a)\n", []string{`1/1 "a" 0+0 cpu a!touch`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				p, told := read(t, tt.kind, r)
				assert.Empty(t, told)
				assert.Equal(t, tt.want, rows(p))
			}
		})
	}
}

// TestDamage holds that what is broken is told with its place, and that the rest is read.
func TestDamage(t *testing.T) {
	const sample = `{"ts":1,"pid":1,"tid":2,"type":"managed","depth":1,"cut":false,"frames":["a"]}` + "\n"
	for _, tt := range []struct {
		name string
		kind input.Kind
		text string
		told []string
		kept int
	}{
		{"folded without a count", kind("folded"), "a;b 1\na;c\na;d 2\n", []string{"6: expected a stack and a count, as in `main;work 12`, found \"a;c\""}, 2},
		{"folded with too much", kind("folded"), "a;b 1e300\na;c NaN\na 1\n", []string{"0: a count of 1e+300, more microseconds than a trace can have", "10: expected a stack and a count, as in `main;work 12`, found \"a;c NaN\""}, 1},
		{"zero bytes", kind("folded"), "a;b 1\na\x00;c 2\n", []string{"7: " + errZero.Error()}, 1},
		{"no UTF-8", kind("folded"), "a;b 1\na;\xff 2\n", []string{"8: " + errUTF8.Error()}, 1},
		{"ndjson cut off", kind("ndjson"), sample + sample[:30], []string{"79: expected a sample as one line of JSON: unexpected end of JSON input, found \"{\\\"ts\\\":1,\\\"pid\\\":1,\\\"tid\\\":2,\\\"type\\\"\""}, 1},
		{"ndjson without a time", kind("ndjson"), sample + strings.Replace(sample, `"ts":1,`, "", 1), []string{`79: a sample without a time (ts): "{\"pid\":1,\"tid\":2,\"type\":\"managed\",\"depth"...`}, 1},
		{"ndjson of another type", kind("ndjson"), strings.Replace(sample, "managed", "tea", 1) + sample, []string{`0: a sample of an unknown type: "{\"ts\":1,\"pid\":1,\"tid\":2,\"type\":\"tea\",\"de"...`}, 1},
		{"perf script cut off", kind("perf script"), managedEvent + managedEvent[:len(managedEvent)-9], []string{fmt.Sprintf("%d: the text breaks off within this sample", len(managedEvent))}, 2},
		{"perf script with noise", kind("perf script"), managedEvent + "????\n" + managedEvent, []string{fmt.Sprintf("%d: expected an event or a frame of perf script, found \"????\"", len(managedEvent))}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, told := read(t, tt.kind, strings.NewReader(tt.text))
			assert.Equal(t, tt.told, told)
			assert.Len(t, rows(p), tt.kept)
		})
	}
}

// TestReadPerf reads what perf recorded of a program that goes down 150 calls and up again.
func TestReadPerf(t *testing.T) {
	f, err := os.Open("testdata/app.perf.txt.zst")
	require.NoError(t, err)
	defer f.Close()
	r, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer r.Close()
	p, told := read(t, kind("perf script"), r)
	assert.Empty(t, told)
	c := p.Counts()
	assert.Equal(t, 43, c.Samples)
	assert.Equal(t, map[string]int{"depth": 21}, c.CutBy)
	assert.Equal(t, 127, p.Meta.DepthLimit)
	assert.EqualValues(t, 1003009, p.Meta.Interval)
	require.Len(t, p.Threads, 1)
	assert.Equal(t, "app", p.Processes[0].Name)
	top := p.Top(profile.TopOptions{})
	for row := range top.Rows() {
		assert.Equal(t, "app!Hash", row.Method)
		break
	}
}

// What is no sample is told by name, and what perf lost is counted.
func TestPerfOthers(t *testing.T) {
	text := "a 1/2 1.0: PERF_RECORD_LOST lost 17\n"
	for _, event := range []string{"cycles", "offcpu-time", "b", "b", "c", "d", "e", "f"} {
		text += "a 1/2 1.0: 9 " + event + ": \n\t10 x (/a)\n\n"
	}
	require.Equal(t, kind("perf script"), input.Sniff([]byte(text)))
	p, told := read(t, kind("perf script"), strings.NewReader(text))
	assert.Empty(t, told)
	assert.EqualValues(t, 17, p.Meta.Lost)
	assert.Equal(t, []string{
		"samples are those of cycles, and not 2 of b, 1 of c, 1 of d, 1 of e, 1 of f and of 1 other kinds",
		"how far apart samples of a CPU were taken is not told: each counts for 1 ms, an estimate by how far apart they are",
	}, p.Meta.Notes)
}

// What was recorded without -g has the address in the line of the sample. Tracepoints tell other
// things there.
func TestPerfWithoutStacks(t *testing.T) {
	text := "a 1/2 [000] 1.0: 1000000 cpu-clock:ppp:      7f10 f(int)+0x10 (/bin/a)\n" +
		"a 1/2 [000] 1.05: 1000000 cpu-clock:ppp:  ffffffff81000010 schedule ([kernel.kallsyms])\n" +
		"a 1/2 [000] 1.1: 1000000 cpu-clock:ppp:      7f20 [unknown] (/bin/b)\n"
	require.Equal(t, kind("perf script"), input.Sniff([]byte(text)))
	require.NotEqual(t, kind("perf script"), input.Sniff([]byte("a 1/2 1.0: sched:sched_wakeup: 7f10 f (/bin/a)\n")))
	p, told := read(t, kind("perf script"), strings.NewReader(text))
	assert.Empty(t, told)
	assert.Equal(t, []string{"3 samples tell where a thread was and not who called: `perf record -g` records stacks"}, p.Meta.Notes)
	got := map[string]float64{}
	for row := range p.Top(profile.TopOptions{}).Rows() {
		got[row.Method] = row.CPUSelf
	}
	assert.Equal(t, map[string]float64{"a!f(int)": 1, "[kernel.kallsyms]!schedule": 1, "b!0x7f20": 1}, got)
}

// Where no stacks follow perf sets the names of threads to the right: some begin like the line of a
// source, and some like an address.
func TestPerfNamesToTheRight(t *testing.T) {
	text := ""
	names := []string{".NET TP Worker", ".NET TP Worker", "dd", "dd", "a", ".NET SynchManag"}
	for i, name := range names {
		text += fmt.Sprintf("%16s %d/%d 1.%d: 1000000 cpu-clock:ppp: 7f10 f+0x10 (/bin/a)\n", name, 7, 10+i, i)
		if i == 1 {
			text += "  /src/my file.c:3\n"
		}
	}
	require.Equal(t, kind("perf script"), input.Sniff([]byte(text)))
	p, told := read(t, kind("perf script"), strings.NewReader(text))
	assert.Empty(t, told)
	var got []string
	for _, th := range p.Threads {
		got = append(got, th.Name)
		assert.Equal(t, 1, th.Samples.Len(), th.Name)
	}
	assert.Equal(t, names, got)
	assert.Equal(t, profile.Place{File: "/src/my file.c", Line: 3}, p.Table.PlaceOf(0))
}

// A thread that left its CPU and is not seen to come back stays an event, which is told. What stood
// in order of time is in order.
func TestPerfSwitchesWithoutReturn(t *testing.T) {
	left := func(at string, tid, next int) string {
		return fmt.Sprintf("a 1/%d [000] %s: sched:sched_switch: prev_comm=a prev_pid=%d prev_prio=120 prev_state=S ==> next_comm=a next_pid=%d next_prio=120\n\t10 wait (/a)\n\n", tid, at, tid, next)
	}
	ran := "a 1/1 [000] 1.3: 1000000 cpu-clock: \n\t20 run (/a)\n\n"
	for name, c := range map[string]struct {
		text  string
		types string
	}{
		"with samples":    {left("1.0", 1, 0) + left("1.1", 1, 0) + left("1.2", 2, 1) + ran, "event offcpu cpu event"},
		"without samples": {left("1.0", 1, 0) + left("1.1", 1, 0) + left("1.2", 2, 1), "event offcpu event"},
	} {
		p, told := read(t, kind("perf script"), strings.NewReader(c.text))
		assert.Empty(t, told, name)
		var types []string
		for _, th := range p.Threads {
			for _, s := range th.Samples.All() {
				types = append(types, s.Type.String())
			}
		}
		assert.Equal(t, c.types, strings.Join(types, " "), name)
		notes := strings.Join(p.Meta.Notes, "\n")
		assert.Contains(t, notes, "2 times a thread left its CPU are left out", name)
		assert.NotContains(t, notes, "sorted", name)
		assert.NotContains(t, notes, "counts as a sample", name)
	}
}

// perf script -F +pid prints no stacks of tracepoints, which is told where others have some.
func TestPerfSwitchesWithoutStacks(t *testing.T) {
	text := "a 1/1 [000] 1.0: 1000000 cpu-clock: \n\t10 run (/a)\n\n"
	for _, at := range []string{"1.1", "1.2"} {
		text += "  a 1/1 [000] " + at + ": sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n"
	}
	p, told := read(t, kind("perf script"), strings.NewReader(text))
	assert.Empty(t, told)
	assert.Contains(t, strings.Join(p.Meta.Notes, "\n"), "-F +pid,+ip,+sym,+dso")
	p, _ = read(t, kind("perf script"), strings.NewReader(text+"\t10 wait (/a)\n"))
	assert.NotContains(t, strings.Join(p.Meta.Notes, "\n"), "-F +pid,+ip,+sym,+dso")
}

// A thread that ends has no id when it leaves its CPU for the last time, and does not come back.
func TestPerfSwitchesOfTheDead(t *testing.T) {
	for _, state := range []string{"X", "Z"} {
		text := "prev_comm=w prev_pid=9 prev_prio=120 prev_state=" + state + " ==> next_comm=a next_pid=1 next_prio=120"
		text = "w 7/9 [000] 1.0: 1000000 cpu-clock: \n\t10 run (/a)\n\n:-1 7/-1 [000] 1.5: sched:sched_switch: " + text + "\n\t10 exit (/a)\n\n"
		p, told := read(t, kind("perf script"), strings.NewReader(text))
		assert.Empty(t, told)
		assert.Empty(t, p.Meta.Notes)
		assert.Equal(t, []string{`7/9 "w" 0+0 cpu a!run`, `7/9 "w" 500000+0 event a!exit`}, rows(p))
		assert.Equal(t, "w", p.Processes[0].Name)
	}
}

// A process is there once, whatever the number of its threads; its name is that of its main thread,
// wherever that comes.
func TestPerfProcesses(t *testing.T) {
	event := func(comm string, pid, tid int) string {
		return fmt.Sprintf("%s %d/%d 1.0: 9 cpu-clock: \n\t10 x (/a)\n\n", comm, pid, tid)
	}
	for name, text := range map[string]string{
		"first":  event("dotnet", 7, 7) + event(".NET TP Worker", 7, 9) + event("other", 8, 9) + event(".NET TP Worker", 7, 10),
		"last":   event(".NET TP Worker", 7, 9) + event("other", 8, 9) + event(".NET TP Worker", 7, 10) + event("dotnet", 7, 7),
		"middle": event(".NET TP Worker", 7, 9) + event("dotnet", 7, 7) + event("other", 8, 9) + event(".NET TP Worker", 7, 10),
	} {
		p, told := read(t, kind("perf script"), strings.NewReader(text))
		assert.Empty(t, told, name)
		var got []string
		for _, x := range p.Processes {
			got = append(got, fmt.Sprintf("%d %s", x.PID, x.Name))
		}
		assert.Equal(t, []string{"7 dotnet", "8 other"}, got, name)
		assert.Len(t, p.Threads, 4, name)
	}
}

// Samples that do not stand in order of time are sorted, which is told, and a thread is there from
// its first to its last.
func TestOrder(t *testing.T) {
	line := func(tid, ms int, cut bool) string {
		return fmt.Sprintf(`{"ts":%d,"pid":1,"tid":%d,"type":"managed","depth":1,"cut":%v,"why":"depth","frames":["f%d"]}`+"\n", ms, tid, cut, ms)
	}
	for name, c := range map[string]struct {
		text  string
		notes []string
	}{
		"in order":   {line(1, 5, false) + line(2, 1, false) + line(1, 7, true) + line(2, 1, false) + line(1, 9, false), nil},
		"one is not": {line(1, 7, true) + line(2, 1, false) + line(1, 9, false) + line(2, 1, false) + line(1, 5, false), []string{"the samples of 1 of 2 threads did not stand in order of time; they were sorted"}},
	} {
		p, told := read(t, kind("ndjson"), strings.NewReader(c.text))
		assert.Empty(t, told, name)
		assert.Equal(t, c.notes, p.Meta.Notes, name)
		require.Len(t, p.Threads, 2, name)
		assert.Equal(t, []int64{5e6, 9e6, 1e6, 1e6}, []int64{p.Threads[0].First, p.Threads[0].Last, p.Threads[1].First, p.Threads[1].Last}, name)
		var got []string
		for _, s := range p.Threads[0].Samples.All() {
			got = append(got, fmt.Sprint(s.Time/1e6, " ", p.Table.MethodOf(p.Table.Frame(s.Stack)).Name, " ", s.Cut != profile.Whole))
		}
		assert.Equal(t, []string{"5 f5 false", "7 f7 true", "9 f9 false"}, got, name)
	}
}

// A disk that fails is no end of the text.
func TestReadFails(t *testing.T) {
	failed := &fs.PathError{Op: "read", Path: "x", Err: errors.New("input/output error")}
	for _, k := range []string{"folded", "ndjson", "perf script", "pprof"} {
		_, err := Read(t.Context(), kind(k), io.MultiReader(strings.NewReader("a;b 1\n"), iotest.ErrReader(failed)), &Options{Warn: func(*FormatError) {}})
		assert.ErrorIs(t, err, failed, k)
	}
}

// Figures of a repair may be any.
func TestNDJSONRepairOfAnySize(t *testing.T) {
	for _, figure := range []string{"9223372036854775807", "-9223372036854775808"} {
		text := `{"ts":1,"pid":1,"tid":1,"type":"managed","depth":100,"cut":true,"why":"depth","frames":["[frames lost]","a","b"],"repair":{"how":"bridge","restored":` + figure + `,"above":` + figure + `,"confidence":1}}` + "\n"
		p, told := read(t, kind("ndjson"), strings.NewReader(text+text))
		assert.Empty(t, told)
		assert.GreaterOrEqual(t, p.Counts().Restored, 0)
	}
}

// What is too much for sums to hold is no amount.
func TestNDJSONAmountsOfAnySize(t *testing.T) {
	line := func(value string) string {
		return `{"ts":1,"pid":1,"tid":1,"weight":"alloc","value":` + value + `,"unit":"ms","depth":1,"cut":false,"frames":["a"]}` + "\n"
	}
	p, told := read(t, kind("ndjson"), strings.NewReader(line("1.7e308")+line("-1.7e308")+line("2")))
	assert.Len(t, told, 2)
	assert.Contains(t, told[0], "a value that nothing weighs")
	assert.EqualValues(t, 2e6, p.TopValues(0, 0, false).Total)
}

// Samples of one activity name one activity.
func TestNDJSONActivities(t *testing.T) {
	var text strings.Builder
	for i, a := range []string{"//1", "//2", "//1", "-", "//1"} {
		fmt.Fprintf(&text, `{"ts":%d,"pid":1,"tid":2,"type":"managed","depth":1,"frames":["a"],"activity":%q}`+"\n", i, a)
	}
	p, told := read(t, kind("ndjson"), strings.NewReader(text.String()))
	assert.Empty(t, told)
	var paths []string
	for i := range p.Activities.Len() {
		paths = append(paths, p.Activities.Path(int32(i)))
	}
	assert.Equal(t, []string{"//1", "//2"}, paths)
}

// What `perf script -F` may tell beside: the line of the source behind each frame; or no event.
// Where the runtime called each sample external, the stacks tell what was managed code, as in the recording.
func TestNDJSONUntyped(t *testing.T) {
	text := func(managed bool) string {
		var b strings.Builder
		for i := range 300 {
			typ, leaf := "external", fmt.Sprintf("Shop!Shop.M%d()", i%7)
			if i%3 == 0 {
				leaf = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)"
			} else if managed {
				typ = "managed"
			}
			fmt.Fprintf(&b, `{"ts":%d,"pid":1,"tid":2,"type":"%s","depth":2,"cut":false,"frames":["Shop!Shop.Main()","%s"]}`+"\n", i, typ, leaf)
		}
		return b.String()
	}
	for _, told := range []bool{true, false} {
		p, _ := read(t, kind("ndjson"), strings.NewReader(text(told)))
		assert.Equal(t, !told, p.Meta.Untyped)
		assert.Equal(t, !told, slices.Contains(p.Meta.Notes, profile.UntypedNote))
		top := p.Top(profile.TopOptions{})
		assert.InDelta(t, 200, top.CPU, 1, "told: %v", told)
		assert.InDelta(t, 100, top.Wait, 1, "told: %v", told)
	}
}

func TestPerfFields(t *testing.T) {
	source := `my prog 7/8 20915.372780:    1001001 cpu-clock:ppp: 
	            1152 leaf+0x29 (/tmp/my prog)
  a.c:3
	            1152 inner (inlined)
  a.h:12 (discriminator 2)
	ffffffff81000d62 entry+0x77 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff81000d62]
	            11c6 main+0x1d (/tmp/my prog)
  /src/a.c:5

my prog 7/8 20915.373780:    1001001 cpu-clock:ppp: 
	            11c6 main+0x1d (/tmp/my prog)
  /src/a.c:5
`
	require.Equal(t, kind("perf script"), input.Sniff([]byte(source)))
	p, told := read(t, kind("perf script"), strings.NewReader(source))
	assert.Empty(t, told)
	assert.Empty(t, p.Meta.Notes)
	assert.Equal(t, []string{
		`7/8 "my prog" 0+0 cpu my prog!main;[kernel.kallsyms]!entry;inner;my prog!leaf`,
		`7/8 "my prog" 1000+0 cpu my prog!main`,
	}, rows(p))
	var places []string
	for f := profile.FrameID(0); int(f) < p.Table.Frames(); f++ {
		at := p.Table.PlaceOf(f)
		places = append(places, fmt.Sprintf("%s %s:%d", p.Table.MethodOf(f).Name, at.File, at.Line))
	}
	slices.Sort(places)
	assert.Equal(t, []string{"entry :0", "inner a.h:12", "leaf a.c:3", "main /src/a.c:5"}, places)

	bare := `my prog 8 20915.372780: 
	            1152 leaf
	            11c6 main

my prog 8 [003] 20915.373780:    1001001 
	            11c6 main
`
	require.Equal(t, kind("perf script"), input.Sniff([]byte(bare)))
	p, told = read(t, kind("perf script"), strings.NewReader(bare))
	assert.Empty(t, told)
	assert.Contains(t, strings.Join(p.Meta.Notes, "\n"), "the text names no event")
	assert.Len(t, rows(p), 2)
	for _, text := range []string{"my prog 8 20915.372780\n\t  1152 leaf\n", "8 20915.372780:\n\t  1152 leaf\n", "a b c:\n  d:3\n"} {
		assert.NotEqual(t, kind("perf script"), input.Sniff([]byte(text)), text)
	}
}

// With the lines of the source perf tells behind these that a frame was inlined, which it did not record.
func TestPerfInlined(t *testing.T) {
	text := func(frames int) string {
		return "a 1/2 1.0: 1000000 cpu-clock: \n\t10 in\n  a.h:12 (inlined)\n" + strings.Repeat("\t10 x (/a)\n  a.c:3\n", frames) + "\n"
	}
	p, told := read(t, kind("perf script"), strings.NewReader(text(126)+text(127)))
	assert.Empty(t, told)
	var cuts []profile.Cut
	for _, s := range p.Threads[0].Samples.All() {
		cuts = append(cuts, s.Cut)
	}
	assert.Equal(t, []profile.Cut{profile.Whole, profile.CutDepth}, cuts)
	assert.Equal(t, profile.Place{File: "a.h", Line: 12}, p.Table.PlaceOf(0))
}

// aPprof is a profile of Go's kind: two counts, a mapping, an inlined call.
func aPprof(t testing.TB) []byte {
	m := &pprof.Mapping{ID: 1, File: "/srv/bin/shop", HasFunctions: true}
	f := []*pprof.Function{{ID: 1, Name: "main.main"}, {ID: 2, Name: "main.sum"}, {ID: 3, Name: "main.add"}}
	l := []*pprof.Location{
		{ID: 1, Mapping: m, Address: 0x10, Line: []pprof.Line{{Function: f[0]}}},
		{ID: 2, Mapping: m, Address: 0x20, Line: []pprof.Line{{Function: f[2]}, {Function: f[1]}}},
		{ID: 3, Mapping: m, Address: 0x30},
	}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Mapping:    []*pprof.Mapping{m}, Function: f, Location: l, DurationNanos: 2e9,
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{l[1], l[0]}, Value: []int64{3, 30e6}, NumLabel: map[string][]int64{"tid": {8}}},
			{Location: []*pprof.Location{l[2], l[0]}, Value: []int64{1, 10e6}, NumLabel: map[string][]int64{"tid": {8}}},
			{Location: []*pprof.Location{l[0]}, Value: []int64{-1, -10e6}},
		},
	}
	var b bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&b))
	return b.Bytes()
}

func TestReadPprof(t *testing.T) {
	data := aPprof(t)
	require.Equal(t, kind("pprof"), input.Sniff(data))
	p, told := read(t, kind("pprof"), bytes.NewReader(data))
	assert.Empty(t, told)
	assert.Equal(t, []string{
		`0/8 "Thread 8" 0+10000 cpu shop!main.main;shop!main.sum;shop!main.add`,
		`0/8 "Thread 8" 10000+10000 cpu shop!main.main;shop!main.sum;shop!main.add`,
		`0/8 "Thread 8" 20000+10000 cpu shop!main.main;shop!main.sum;shop!main.add`,
		`0/8 "Thread 8" 30000+10000 cpu shop!main.main;shop!0x30`,
	}, rows(p))
	assert.Equal(t, "shop", p.Processes[0].Name)
	assert.EqualValues(t, 2e9, p.Meta.End, "as long as it was recorded, not as its busiest thread")
	assert.Contains(t, strings.Join(p.Meta.Notes, "\n"), "1 sample of the profile weighs less than nothing, as in a difference of two, and was left out")
}

// Profilers that know no number of a thread tell threads apart by their names.
func TestPprofThreadsByName(t *testing.T) {
	for _, label := range []string{"thread", "thread_name", "thread name", "comm"} {
		in, err := pprof.ParseData(aPprof(t))
		require.NoError(t, err)
		in.Sample = append(in.Sample, &pprof.Sample{Location: in.Sample[0].Location, NumLabel: map[string][]int64{"thread id": {5}}})
		for i, s := range in.Sample {
			s.Value = []int64{1, int64(i+1) * 1e6}
			s.Label = map[string][]string{label: {[]string{"main", "worker", "main", "main"}[i]}}
			if i < 3 {
				s.NumLabel = nil
			}
		}
		var b bytes.Buffer
		require.NoError(t, in.WriteUncompressed(&b))
		p, told := read(t, kind("pprof"), &b)
		assert.Empty(t, told)
		got := ""
		for _, th := range p.Threads {
			sum := int64(0)
			for _, s := range th.Samples.All() {
				sum += s.Dur
			}
			got += fmt.Sprintf("%s/%d %d, ", th.Name, th.TID, sum/1e6)
		}
		assert.Equal(t, "main/0 4, worker/0 2, main/5 4, ", got, label)
	}
}

// Each kind of value has a unit of its own, and no value is more than all time.
func TestPprofUnits(t *testing.T) {
	f := &pprof.Function{ID: 1, Name: "f"}
	l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f}}}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}, {Type: "wall", Unit: "microseconds"}},
		Function:   []*pprof.Function{f}, Location: []*pprof.Location{l}, DefaultSampleType: "wall",
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{l}, Value: []int64{1e6, 1e6}}, // 1 ms of 1 s
			{Location: []*pprof.Location{l}, Value: []int64{0, -math.MaxInt64}},
		},
	}
	var b bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&b))
	back, _ := read(t, kind("pprof"), &b)
	got := map[bool]int64{}
	for _, th := range back.Threads {
		for _, s := range th.Samples.All() {
			got[s.Type.OnCPU()] += s.Dur
		}
	}
	assert.Equal(t, map[bool]int64{true: 1e6, false: 999e6}, got)
}

// TestPprofWeights holds which of its sample types a profile is read for, and in which unit.
func TestPprofWeights(t *testing.T) {
	heap := []string{"alloc_objects count", "alloc_space bytes", "inuse_objects count", "inuse_space bytes"}
	mutex := []string{"contentions count", "delay nanoseconds"}
	for _, tt := range []struct {
		name, shown string
		types       []string
		period      string
		asked       []string
		all         bool
		want        string // weights, then samples
		err         string
	}{
		{name: "the last by default", types: heap, want: "inuse_space 40 bytes, 0 ms in 0"},
		{name: "the profile's own default", types: heap, shown: "alloc_space", want: "alloc_space 20 bytes, 0 ms in 0"},
		{name: "a default that is not there", types: heap, shown: "cheese", want: "inuse_space 40 bytes, 0 ms in 0"},
		{name: "asked", types: heap, asked: []string{"alloc_objects", "inuse_space"}, want: "alloc_objects 10 count, inuse_space 40 bytes, 0 ms in 0"},
		{name: "time of a heap", types: heap, asked: []string{profile.TimeWeight}, err: "this pprof holds no time; it holds alloc_objects (count), alloc_space (bytes), inuse_objects (count), inuse_space (bytes)"},
		{name: "a type of no profile", types: mutex, asked: []string{"alloc"}, err: "this pprof holds no sample type alloc; it holds contentions (count), delay (nanoseconds)"},
		{name: "a delay is no time of the thread", types: mutex, want: "delay 20 nanoseconds, 0 ms in 0"},
		{name: "a clock is no lock", types: []string{"cpu-clock nanoseconds", "lock-time nanoseconds"}, want: "0 ms in 1"},
		{name: "time before bytes", types: []string{"cpu milliseconds", "inuse_space bytes"}, want: "10 ms in 1"},
		{name: "bytes by default before time", types: []string{"cpu milliseconds", "inuse_space bytes"}, shown: "inuse_space", want: "inuse_space 20 bytes, 0 ms in 0"},
		{name: "both", types: []string{"cpu milliseconds", "inuse_space bytes"}, asked: []string{profile.TimeWeight, "inuse_space"}, want: "inuse_space 20 bytes, 10 ms in 1"},
		{name: "numbers of samples are their time", types: []string{"samples count", "cpu milliseconds"}, shown: "samples", want: "20 ms in 10"},
		{name: "asked for numbers", types: []string{"samples count", "cpu milliseconds"}, asked: []string{"samples"}, want: "samples 10 count, 0 ms in 0"},
		{name: "numbers of samples with a period", types: []string{"samples count"}, period: "cpu milliseconds", want: "50 ms in 10"},
		{name: "without one", types: []string{"samples count"}, want: "samples 10 count, 0 ms in 0"},
		{name: "larger units", types: []string{"size kilobytes"}, want: "size 10240 bytes, 0 ms in 0"},
		{name: "of time", types: []string{"lock_delay microseconds"}, want: "lock_delay 10000 nanoseconds, 0 ms in 0"},
		{name: "all, the default first", types: heap, all: true, want: "inuse_space 40 bytes, alloc_objects 10 count, alloc_space 20 bytes, inuse_objects 30 count, 0 ms in 0"},
		{name: "all but what says the same as time", types: []string{"samples count", "cpu milliseconds", "delay nanoseconds"}, all: true, want: "delay 30 nanoseconds, 20 ms in 10"},
		{name: "of all what is asked", types: heap, all: true, asked: []string{"alloc_space"}, want: "alloc_space 20 bytes, 0 ms in 0"},
		{name: "unknown units", types: []string{"goroutine widgets"}, want: "goroutine 10 widgets, 0 ms in 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			valueType := func(s string) *pprof.ValueType {
				kind, unit, _ := strings.Cut(s, " ")
				return &pprof.ValueType{Type: kind, Unit: unit}
			}
			f := &pprof.Function{ID: 1, Name: "f"}
			l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f}}}
			s := &pprof.Sample{Location: []*pprof.Location{l}}
			in := &pprof.Profile{Function: []*pprof.Function{f}, Location: []*pprof.Location{l}, Sample: []*pprof.Sample{s}, DefaultSampleType: tt.shown}
			for i, v := range tt.types {
				in.SampleType = append(in.SampleType, valueType(v))
				s.Value = append(s.Value, int64(10*(i+1)))
			}
			if tt.period != "" {
				in.PeriodType, in.Period = valueType(tt.period), 5
			}
			var b bytes.Buffer
			require.NoError(t, in.WriteUncompressed(&b))
			p, err := Read(t.Context(), kind("pprof"), &b, &Options{Weights: tt.asked, AllWeights: tt.all, Warn: func(e *FormatError) { t.Error(e) }})
			if tt.err != "" {
				assert.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			got := ""
			for i, w := range p.Weights {
				got += fmt.Sprintf("%s %v %s, ", w.Name, p.TopValues(i, 0, false).Total, w.Unit)
			}
			ns, n := int64(0), 0
			for _, s := range p.Threads[0].Samples.All() {
				if s.Type != profile.SampleEvent {
					ns += s.Dur
					n++
				}
			}
			assert.Equal(t, tt.want, fmt.Sprintf("%s%d ms in %d", got, ns/1e6, n))
		})
	}
}

// What the counts of folded stacks are, only the user knows.
func TestFoldedWeights(t *testing.T) {
	for _, tt := range []struct {
		asked []string
		want  string
		err   string
	}{
		{nil, "0.022 ms", ""},
		{[]string{"samples"}, "samples 22 count, 0 ms", ""},
		{[]string{profile.TimeWeight, "bytes"}, "bytes 22 bytes, 0.022 ms", ""},
		{[]string{"alloc"}, "", "folded stacks have one count each, of time (wall), samples or bytes, as --weight says, and none of alloc"},
	} {
		p, err := Read(t.Context(), kind("folded"), strings.NewReader("main;a 10\nmain 5\nmain;a 7\nmain;b 0\n"), &Options{Weights: tt.asked, Warn: func(e *FormatError) { t.Error(e) }})
		if tt.err != "" {
			assert.EqualError(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		got := ""
		for i, w := range p.Weights {
			got += fmt.Sprintf("%s %v %s, ", w.Name, p.TopValues(i, 0, false).Total, w.Unit)
		}
		assert.Equal(t, tt.want, fmt.Sprintf("%s%v ms", got, float64(p.Meta.End)/1e6))
	}
}

// A profile of many small messages takes many times its size, and is refused before it does.
// TestPprofBeyondTime: time that is more than a trace can have is told where it is cut, not only behind that.
func TestPprofBeyondTime(t *testing.T) {
	f := &pprof.Function{ID: 1, Name: "f"}
	l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f}}}
	in := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, Function: []*pprof.Function{f}, Location: []*pprof.Location{l},
		Sample: []*pprof.Sample{{Location: []*pprof.Location{l}, Value: []int64{2e18}}},
	}
	var b bytes.Buffer
	require.NoError(t, in.WriteUncompressed(&b))
	var told []string
	_, err := Read(t.Context(), kind("pprof"), &b, &Options{Warn: func(e *FormatError) { told = append(told, e.Err.Error()) }})
	require.NoError(t, err)
	assert.Equal(t, []string{"sample 0 takes more time than a trace can have"}, told)
}

func TestPprofMemory(t *testing.T) {
	head := "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x02ns"
	_, err := Read(t.Context(), kind("pprof"), strings.NewReader(head+strings.Repeat("\x12\x00", 30<<20)), &Options{Warn: func(*FormatError) {}})
	assert.ErrorIs(t, err, errPprofMemory)
}

// The number of samples bounds what is made of a profile, however large the numbers in it are.
func TestPprofCounts(t *testing.T) {
	f := &pprof.Function{ID: 1, Name: "f", Filename: "f.go", StartLine: 3}
	l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f, Line: 7}}}
	in := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Function:   []*pprof.Function{f}, Location: []*pprof.Location{l},
		Sample: []*pprof.Sample{{Location: []*pprof.Location{l}, Value: []int64{math.MaxInt64, 1e15}}},
	}
	for _, tt := range []struct {
		n    int64
		want int
		sums bool
	}{{math.MaxInt64, 1, true}, {maxCounted + 1, 1, true}, {maxCounted, maxCounted, false}, {-5, 1, false}, {0, 1, false}, {3, 3, false}} {
		in.Sample[0].Value[0] = tt.n
		var b bytes.Buffer
		require.NoError(t, in.WriteUncompressed(&b))
		p, _ := read(t, kind("pprof"), &b)
		assert.Equal(t, tt.want, p.Threads[0].Samples.Len(), tt.n)
		assert.Equal(t, tt.sums, p.Meta.Sums, tt.n)
		assert.EqualValues(t, 1e15, p.Meta.End, tt.n)
		assert.Equal(t, profile.Place{File: "f.go", Line: 7}, p.Table.PlaceOf(0))
		assert.Equal(t, profile.Place{File: "f.go", Line: 3}, p.Table.BeginOf(p.Table.Method(0)))
	}
}

// TestPprofDamage cuts and breaks a profile at every byte: never a panic, never silence where
// samples went.
func TestPprofDamage(t *testing.T) {
	data := aPprof(t)
	whole, _ := read(t, kind("pprof"), bytes.NewReader(data))
	for n := range data {
		var told int
		p, err := Read(t.Context(), kind("pprof"), bytes.NewReader(data[:n]), &Options{Warn: func(e *FormatError) {
			told++
			assert.LessOrEqual(t, e.Offset, int64(n))
		}})
		if err == nil && told == 0 && len(rows(p)) > 0 {
			assert.Equal(t, rows(whole), rows(p), "cut at %d", n)
		}
		flipped := bytes.Clone(data)
		flipped[n] ^= 0x80
		_, _ = Read(t.Context(), kind("pprof"), bytes.NewReader(flipped), &Options{Warn: func(*FormatError) {}})
	}
}

// TestWeighedNDJSON reads lines of what events weigh, of several weights, beside samples and out of order.
func TestWeighedNDJSON(t *testing.T) {
	const (
		alloc  = `{"ts":3,"pid":1,"tid":2,"weight":"alloc","value":8,"unit":"bytes","name":"T","depth":1,"cut":false,"frames":["a"]}` + "\n"
		other  = `{"ts":1,"pid":1,"tid":2,"weight":"alloc","value":4,"unit":"bytes","name":"U","depth":1,"cut":false,"frames":["b"]}` + "\n"
		wait   = `{"ts":2,"pid":1,"tid":2,"weight":"wait","value":1.5,"unit":"ms","depth":1,"cut":false,"frames":["a"]}` + "\n"
		sample = `{"ts":2,"pid":1,"tid":2,"type":"managed","depth":1,"cut":false,"frames":["a"]}` + "\n"
		old    = `{"ts":1,"pid":1,"tid":2,"value":8,"name":"T","depth":1,"cut":false,"frames":["a"]}` + "\n"
	)
	for _, c := range []struct {
		name, in string
		asked    []string
		all      bool
		want     string // weights with their unit, what each name weighs by them, and samples
		err      string
		warned   int
	}{
		{name: "one", in: alloc + other, want: "alloc bytes U@1ms:4 T@3ms:8, 0 samples"},
		{name: "time", in: wait, want: "wait nanoseconds @2ms:1.5e+06, 0 samples"},
		{name: "the first", in: alloc + wait + other, want: "alloc bytes U@1ms:4 T@3ms:8, 0 samples"},
		{name: "all", in: alloc + wait + other, all: true, want: "alloc bytes U@1ms:4 T@3ms:8, wait nanoseconds @2ms:1.5e+06, 0 samples"},
		{name: "asked", in: alloc + wait, asked: []string{"wait"}, want: "wait nanoseconds @2ms:1.5e+06, 0 samples"},
		{name: "samples first", in: alloc + sample, want: "1 samples"},
		{name: "beside samples", in: alloc + sample, asked: []string{"alloc"}, want: "alloc bytes T@3ms:8, 0 samples"},
		{name: "both", in: alloc + sample, asked: []string{profile.TimeWeight, "alloc"}, want: "alloc bytes T@3ms:8, 1 samples"},
		{name: "without a unit", in: old, want: "value  T@1ms:8, 0 samples"},
		{name: "another unit", in: alloc + strings.Replace(other, "bytes", "count", 1), want: "alloc bytes T@3ms:8, 0 samples", warned: 1},
		{name: "too much", in: alloc + strings.Replace(other, ":4,", ":1e308,", 1), want: "alloc bytes T@3ms:8, 0 samples", warned: 1},
		{name: "none such", in: alloc, asked: []string{"exceptions"}, err: "this ndjson holds no weight exceptions; it holds alloc (bytes)"},
		{name: "no time", in: alloc, asked: []string{profile.TimeWeight}, err: "this ndjson holds no samples, whose time is asked for; it weighs alloc (bytes)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			warned := 0
			p, err := Read(t.Context(), kind("ndjson"), strings.NewReader(c.in), &Options{Weights: c.asked, AllWeights: c.all, Warn: func(*FormatError) { warned++ }})
			assert.Equal(t, c.warned, warned)
			if c.err != "" {
				assert.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			got := ""
			for i, w := range p.Weights {
				got += fmt.Sprintf("%s %s", w.Name, w.Unit)
				for v := range p.Values(p.Threads[0], i) {
					got += fmt.Sprintf(" %s@%dms:%g", v.Name, v.Sample.Time/1e6, v.Amount)
				}
				got += ", "
			}
			assert.Equal(t, c.want, got+fmt.Sprintf("%d samples", p.Threads[0].Samples.Written()))
		})
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for k := range readers {
		_, err := Read(ctx, k, strings.NewReader("a;b 1\n"), &Options{Warn: func(*FormatError) {}})
		assert.ErrorIs(t, err, context.Canceled, k)
	}
}

// fuzz holds for any content: no panic, times within bounds, as many samples as there can be, and
// places of damage inside the content.
func fuzz(f *testing.F, k input.Kind) {
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(t.Context(), k, bytes.NewReader(data), &Options{Warn: func(e *FormatError) {
			if e.Offset < 0 || e.Offset > int64(len(data)) {
				t.Fatalf("offset %d of %d bytes", e.Offset, len(data))
			}
		}})
		if err != nil {
			return
		}
		n := 0
		for _, th := range p.Threads {
			last := int64(-maxTime - 1)
			for _, s := range th.Samples.All() {
				n++
				if s.Time < last || s.Dur < 0 || s.Time > maxTime || s.Dur > 2*maxTime {
					t.Fatalf("a sample at %d for %d behind one at %d", s.Time, s.Dur, last)
				}
				last = s.Time
			}
		}
		if n > len(data) || p.Table.Stacks() > 4*len(data)+1 {
			t.Fatalf("%d samples and %d stacks of %d bytes", n, p.Table.Stacks(), len(data))
		}
		p.Top(profile.TopOptions{})
	})
}

func FuzzFolded(f *testing.F) {
	f.Add([]byte("main;a;b 12\nmain 3\n"))
	fuzz(f, kind("folded"))
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte(`{"ts":1.5,"pid":1,"tid":2,"type":"managed","depth":2,"cut":true,"why":"depth","frames":["a","b"],"activity":"//1","request":1,"repair":{"how":"before","restored":1,"confidence":1}}`))
	fuzz(f, kind("ndjson"))
}

func FuzzPerfScript(f *testing.F) {
	f.Add([]byte(managedEvent))
	f.Add([]byte("a 1/1 [000] 5.0: sched:sched_switch: prev_pid=1 ==> next_comm=b next_pid=2 next_prio=1\n\t10 wait (/bin/a)\n"))
	fuzz(f, kind("perf script"))
}

func FuzzPprof(f *testing.F) {
	f.Add(aPprof(f))
	fuzz(f, kind("pprof"))
}

// TestSniffSamples holds that files of samples are known by their content, and that other text is
// not taken for them.
func TestSniffSamples(t *testing.T) {
	const event = "dotnet  7/9 [001]  12.500000:  1001001 cpu-clock:ppp: \n\t  1149 leaf+0x20 (/app/spin)\n\n"
	for text, want := range map[string]string{
		"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x01\x01\x12":                                 "pprof",
		`{"ts":1.5,"pid":1,"tid":2,"type":"managed","depth":1,"cut":false,"frames":["a"]}`: "ndjson",
		`{"ts": 1.5, "pid": 1, "tid": 2, "frames": ["a"]}` + "\n":                          "ndjson",
		`{"depth":1,"frames":["a"],"pid":1,"tid":2,"ts":1.5}`:                              "ndjson",
		`{"ts": 1.5, "tid": 2, "args": {"frames": []}}`:                                    "chromium",
		`[{"ts":1,"pid":1,"tid":2,"ph":"I","name":"a","args":{"data":{"page":"0xfff","frames":[{"url":"webpack"}]}}},
{"ts":2,"pid":1,"tid":2,"ph":"I","name":"b","args":{"data":{"id":1,"frames":[{"url":"webpack"}]}}},
`: "chromium",
		"main;a;b 12\nmain;c 3\n": "folded",
		"main;a (b);c 12\r\n":     "folded",
		"main;a;b 0.5":            "folded",
		event:                     "perf script",
		strings.Repeat("# CPU 0: Core ID 0, Die ID 0, Socket ID 0\n", 300) + event:                        "perf script",
		"swapper     0/0     [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xff(0x12) @ 0]: x k\n":          "perf script",
		"swapper     0 [000]     0.000000: PERF_RECORD_FORK(1:1):(0:0)\n":                                 "perf script",
		"a 7/9 [001] 12.500000: sched:sched_switch: a:9 [120] S ==> b:1 [120]\n\t  ff81 schedule (k)\n\n": "perf script",
		"why is there a PERF_RECORD_MMAP here?\n":                                                         "unknown",
		"# captured on: x\n#\n" + event:                                                                   "perf script",
		"java  3244 cpu-clock: \n\t    7f1e214c24d9 SpinPause (/lib/libjvm.so)\n":                         "perf script",
		".NET TP Worker  10/12 1.5: cycles:u: \n\t ffff [unknown] ([unknown])\n":                          "perf script",
		"[no frames] 3\nApp!Main.Run(string[]) 12\nwork 3\n":                                              "folded",
		"Lab.Chain.Alpha(int32) 7":                                                                        "folded",
		"work 3\nApp!Main.Run() 12\n":                                                                     "unknown", // nothing writes them in this order
		"App!A.B() 12\nnote: see below\n":                                                                 "unknown",
		"a.txt 12\nb.txt 7\n":                                                                             "unknown",
		"alpha 12\nbeta 7\n":                                                                              "unknown",
		"2026-01-01 10:00:00 info: started 12\n":                                                          "unknown",
		"port 80\nport 443\n":                                                                             "unknown",
		"a;b\nc;d\n":                                                                                      "unknown",
		"to whom it may concern; we are 12\nand more text follows here\nand here\n":                       "unknown",
	} {
		assert.Equal(t, want, input.Sniff([]byte(text)).String(), text)
	}
}

// TestPerfcollect holds that of a perfcollect archive the text of perf script is taken.
func TestPerfcollect(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.trace.zip")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for member, content := range map[string]string{
		"x.trace/perfcollect.log": "log", "x.trace/perf.data": "PERFILE2", "x.trace/perf.data.txt": "java  3244 cpu-clock: \n\t    7f1e214c24d9 SpinPause (/lib/libjvm.so)\n",
	} {
		w, err := z.Create(member)
		require.NoError(t, err)
		_, err = io.WriteString(w, content)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	f, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, kind("perf script"), f.Kind)
	assert.Equal(t, []string{"zip:x.trace/perf.data.txt"}, f.Layers)
}

// A folded stack of a deep call is longer than other lines of text are, and once it is repaired longer
// than what is looked at of a file.
func TestSniffLongStacks(t *testing.T) {
	stack := func(bytes int) string {
		var b strings.Builder
		for i := 0; b.Len() < bytes; i++ {
			fmt.Fprintf(&b, "Shop!Shop.Expression.Visit%d(class System.Object, int32);", i)
		}
		return b.String() + "[leaf] 12\n"
	}
	for _, c := range []struct {
		name, text string
		want       input.Kind
	}{
		{"one whole line", stack(40<<10) + stack(40<<10), kind("folded")},
		{"no whole line", stack(100<<10) + stack(10), kind("folded")},
		{"short ones", stack(100) + stack(200), kind("folded")},
		{"a sample", `{"tid": 1, "ts": 2, "frames": ["` + stack(100<<10), kind("ndjson")},
		{"a long line of something else", strings.Repeat("a;b;c!d;", 20<<10) + " 12\n", input.Unknown},
		{"a long line of code", strings.Repeat("if(a!=b){f(x);g(y)};", 10<<10) + "\n", input.Unknown},
	} {
		assert.Equal(t, c.want, input.Sniff([]byte(c.text)[:min(len(c.text), input.SniffSize)]), c.name)
	}
}
