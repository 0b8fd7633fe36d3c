package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

func count(p *profile.Profile) map[profile.SampleType]int {
	n := map[profile.SampleType]int{}
	for _, th := range p.Threads {
		for _, s := range th.Samples.All() {
			n[s.Type]++
		}
	}
	return n
}

func TestFilters(t *testing.T) {
	open := opener(t, "dotnet10/async.nettrace")
	load := func(o Options) *profile.Profile {
		p, _, err := Profile(context.Background(), open, &o)
		require.NoError(t, err)
		return p
	}
	all := load(Options{})
	require.Equal(t, 12700, count(all)[profile.SampleManaged]+count(all)[profile.SampleExternal])
	var busiest *profile.Thread
	for _, th := range all.Threads {
		if busiest == nil || th.Samples.Len() > busiest.Samples.Len() {
			busiest = th
		}
	}
	tid := strconv.FormatInt(busiest.TID, 10)

	p := load(Options{Threads: []string{tid}})
	require.Len(t, p.Threads, 1)
	assert.Equal(t, busiest.Samples.Len(), p.Threads[0].Samples.Len())
	assert.Equal(t, frames(all, stackOf(busiest, 7)), frames(p, stackOf(p.Threads[0], 7)))

	p = load(Options{Threads: []string{"*ThreadPool*"}})
	require.NotEmpty(t, p.Threads)
	for _, th := range p.Threads {
		assert.Contains(t, th.Name, "ThreadPool")
	}

	for _, name := range []string{"lab", "L?b", strconv.FormatInt(busiest.Process.PID, 10)} {
		p = load(Options{Processes: []string{name}})
		assert.Equal(t, count(all), count(p), name)
	}
	p = load(Options{Processes: []string{"other"}})
	assert.Empty(t, p.Threads)
}

func stackOf(th *profile.Thread, i int) profile.StackID {
	for j, s := range th.Samples.All() {
		if j == i {
			return s.Stack
		}
	}
	return 0
}

// A file that ends anywhere gives the samples before its end, or an error.
func TestCutOffFiles(t *testing.T) {
	in, err := opener(t, "dotnet10/async.nettrace")()
	require.NoError(t, err)
	whole, err := io.ReadAll(in)
	require.NoError(t, err)
	last := -1
	for n := 0; n <= len(whole); n += 1 + len(whole)/20 {
		told := 0
		p, info, err := Profile(context.Background(), bytesOpener(whole[:n]), &Options{Warn: func(*nettrace.FormatError) { told++ }})
		if err != nil {
			assert.Less(t, n, 1000, "%v", err)
			continue
		}
		assert.Positive(t, told, "%d bytes", n)
		c := count(p)
		got := c[profile.SampleManaged] + c[profile.SampleExternal]
		assert.GreaterOrEqual(t, got, last, "more bytes, more samples")
		assert.EqualValues(t, got, info.Samples)
		last = got
	}
	assert.Positive(t, last)
}

// A process id that is used again is another process, also for a repair that is
// written back; and so is a program that was begun in the place of another (exec), of which no exit tells.
func TestProcessIDUsedAgain(t *testing.T) {
	for _, exits := range []bool{true, false} {
		processIDUsedAgain(t, exits)
	}
}

func processIDUsedAgain(t *testing.T, exits bool) {
	var out bytes.Buffer
	h := &nettrace.Header{Version: 6, SyncQPC: 1000, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)}
	w, err := nettrace.NewWriter(&out, h)
	require.NoError(t, err)
	meta := map[string]*nettrace.Metadata{}
	event := func(at int64, provider, name string, id int, tid uint64, payload []byte, stack ...uint64) {
		m := meta[name]
		if m == nil {
			m = &nettrace.Metadata{Index: len(meta), ID: uint32(len(meta) + 1), Provider: provider, Name: name, EventID: id}
			meta[name] = m
		}
		require.NoError(t, w.Write(&nettrace.Event{
			Time: 1000 + at, ProcessID: 5, ThreadID: tid, CaptureThreadID: tid, Metadata: m, Payload: payload,
			Thread: &nettrace.Thread{ProcessID: 5, ID: tid}, Stack: nettrace.NewStack(stack),
		}))
	}
	process := func(name string) []byte {
		b := binary.AppendUvarint(nil, 5)
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(name))), name...)
		return append(b, 0, 0)
	}
	mapping := func(id uint64, file string) []byte {
		var b []byte
		for _, v := range []uint64{id, 0x1000, 0x2000, 0} {
			b = binary.AppendUvarint(b, v)
		}
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(file))), file...)
		return append(binary.AppendUvarint(b, 0), 0, 0, 0, 0)
	}
	long := make([]uint64, 12)
	for i := range long {
		long[i] = 0x1000 + uint64(i)*16
	}
	event(0, "Universal.System", "ProcessCreate", systemProcessCreate, 0, process("first"))
	event(0, "Universal.System", "ProcessMapping", 3, 0, mapping(0, "/bin/first.so"))
	event(10, "Universal.Events", "cpu", 1, 5, []byte{1}, long...)
	if exits {
		event(20, "Universal.System", "ProcessExit", systemProcessExit, 0, nil)
	}
	event(30, "Universal.Events", "cpu", 1, 5, []byte{1}, 0x1100) // its last moments
	for range 2 {                                                 // the recorder repeats itself
		event(40, "Universal.System", "ProcessCreate", systemProcessCreate, 0, process("second"))
	}
	event(40, "Universal.System", "ProcessMapping", 3, 0, mapping(1, "/bin/second.so"))
	event(50, "Universal.Events", "cpu", 1, 5, []byte{1}, long...)
	event(60, "Universal.Events", "cswitch", 2, 5, binary.AppendUvarint(nil, 7), long...)
	require.NoError(t, w.Close())

	check := func(b []byte) *profile.Profile {
		p, _, err := Profile(context.Background(), bytesOpener(b), nil)
		require.NoError(t, err)
		require.Len(t, p.Processes, 2)
		require.Len(t, p.Threads, 2)
		assert.Equal(t, "first", p.Threads[0].Process.Name)
		assert.Equal(t, "second", p.Threads[1].Process.Name)
		require.Equal(t, 2, p.Threads[0].Samples.Len())
		require.Equal(t, 2, p.Threads[1].Samples.Len())
		return p
	}
	p := check(out.Bytes())
	for i, file := range []string{"first.so", "second.so"} {
		f := p.Table.AppendFrames(nil, stackOf(p.Threads[i], 0))
		require.Len(t, f, 12)
		assert.Equal(t, file+"!0xb0", p.Table.MethodOf(f[0]).Full())
	}
	for i, s := range p.Threads[1].Samples.All() {
		assert.Equal(t, profile.CutBytes, s.Cut)
		if i == 1 {
			assert.Equal(t, profile.SampleOffCPU, s.Type)
			assert.Equal(t, [2]int64{60, 7}, [2]int64{s.Time, s.Dur})
		}
	}

	// Repaired: every stack of the second process gets a root, the first stays.
	var fixed bytes.Buffer
	_, _, err = Rewrite(context.Background(), bytesOpener(out.Bytes()), &fixed, &Options{}, func(p *profile.Profile) {
		th := p.Threads[1]
		var samples profile.Samples
		root := p.Table.AddFrame(profile.Frame{Addr: 0x1ff0})
		for i, s := range th.Samples.All() {
			th.Repairs.Append(profile.Repair{Index: i, Recorded: s.Stack, How: "caller", Restored: 1})
			fs := p.Table.AppendFrames(nil, s.Stack)
			s.Stack = p.Table.Push(0, root)
			for _, f := range fs {
				s.Stack = p.Table.Push(s.Stack, f)
			}
			samples.Append(s)
		}
		th.Samples = samples
	})
	require.NoError(t, err)
	p = check(fixed.Bytes())
	assert.Equal(t, 12, p.Table.Depth(stackOf(p.Threads[0], 0)))
	for i := range 2 {
		f := p.Table.AppendFrames(nil, stackOf(p.Threads[1], i))
		require.Len(t, f, 13)
		assert.Equal(t, "second.so!0xff0", p.Table.MethodOf(f[0]).Full())
	}
}

// A symbol names code of its own file only: not what is at its address in the program before, or behind.
// A process that only gets another name keeps its code.
func TestExec(t *testing.T) {
	create := &nettrace.Metadata{Provider: "Universal.System", EventID: systemProcessCreate, Name: "ProcessCreate"}
	mapping := &nettrace.Metadata{Provider: "Universal.System", EventID: 3, Name: "ProcessMapping"}
	symbol := &nettrace.Metadata{Provider: "Universal.System", EventID: 4, Name: "ProcessSymbol"}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	str := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
	}
	uints := func(list ...uint64) (b []byte) {
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	kernel, main := &nettrace.Thread{Index: 1, ProcessID: 7}, &nettrace.Thread{Index: 2, ProcessID: 7, ID: 7}
	b := written(t, 6, func(write func(nettrace.Event)) {
		system := func(m *nettrace.Metadata, payload []byte) {
			write(nettrace.Event{Thread: kernel, Metadata: m, Payload: payload})
		}
		sample := func() {
			write(nettrace.Event{Thread: main, Metadata: cpu, Payload: []byte{1}, Stack: nettrace.NewStack([]uint64{0x1010, 0x1110, 0x8010})})
		}
		name := func(s string) { system(create, str(str(uints(7), s), "Unknown")) }
		mapped := func(id, from, to uint64, file string) {
			system(mapping, append(str(uints(id, from, to, 0), file), 0, 0, 0, 0, 0))
		}
		named := func(id, m, from uint64, s string) { system(symbol, str(uints(id, m, from, from+0xff), s)) }
		name("sh")
		mapped(0, 0x1000, 0x2000, "/bin/sh")
		mapped(1, 0x8000, 0x9000, "/lib/libc.so")
		named(0, 0, 0x1000, "eval")
		named(1, 1, 0x8000, "main")
		sample()
		name("shell") // prctl
		sample()
		name("dotnet")
		mapped(2, 0x1000, 0x2000, "/bin/dotnet")
		named(2, 2, 0x1100, "run")
		sample()
	})
	p, _, err := Profile(context.Background(), bytesOpener(b), &Options{})
	require.NoError(t, err)
	got := map[string]string{}
	for _, th := range p.Threads {
		require.Equal(t, 1, th.Samples.Len())
		got[th.Process.Name] = frames(p, stackOf(th, 0))
	}
	assert.Equal(t, map[string]string{
		"sh":     "libc.so!main\nsh!0x110\nsh!eval\n",
		"shell":  "libc.so!main\nsh!0x110\nsh!eval\n",
		"dotnet": "libc.so!main\ndotnet!run\ndotnet!0x10\n",
	}, got)
}

// Samples that come late, as only damaged files have them, are put into order, and
// their repairs still find them.
func TestLateSamples(t *testing.T) {
	th := &thread{trace: &profile.Thread{}}
	for i, at := range []int64{10, 30, 20, 30, 5} {
		th.trace.Samples.Append(profile.Sample{Time: at, Stack: profile.StackID(i)})
	}
	th.sort(nil)
	assert.Equal(t, []int32{1, 3, 2, 4, 0}, th.perm)
	var order []profile.StackID
	for _, s := range th.trace.Samples.All() {
		order = append(order, s.Stack)
	}
	assert.Equal(t, []profile.StackID{4, 0, 2, 1, 3}, order)
}

// Lost samples and threads that begin anew break what is known of a thread.
func TestBreaks(t *testing.T) {
	var out bytes.Buffer
	h := &nettrace.Header{Version: 4, SyncQPC: 1000, Frequency: 1e9, PointerSize: 8, ProcessID: 7, SyncTime: time.Unix(1e9, 0)}
	w, err := nettrace.NewWriter(&out, h)
	require.NoError(t, err)
	sample := &nettrace.Metadata{ID: 1, Provider: "Microsoft-DotNETCore-SampleProfiler"}
	created := &nettrace.Metadata{Index: 1, ID: 2, Provider: nettrace.ProviderRuntime, EventID: 85}
	write := func(at int64, m *nettrace.Metadata, tid, capture uint64, lost uint32, payload []byte) {
		require.NoError(t, w.Write(&nettrace.Event{
			Time: 1000 + at, ThreadID: tid, CaptureThreadID: capture, Processor: -1, Metadata: m, Payload: payload, Lost: lost,
			Stack: nettrace.NewStack([]uint64{0x10}),
		}))
	}
	birth := func(tid uint32) []byte {
		return append(make([]byte, 24), binary.LittleEndian.AppendUint32(nil, tid)...)
	}
	write(5, created, 1, 1, 0, birth(1)) // the thread itself tells, before its first sample
	write(10, sample, 1, 99, 0, []byte{2, 0, 0, 0})
	write(20, sample, 2, 99, 0, []byte{2, 0, 0, 0})
	write(30, sample, 1, 99, 4, []byte{2, 0, 0, 0}) // four were lost before it
	write(35, created, 1, 1, 3, birth(1))           // the id is used again; three of its own events were lost
	write(40, sample, 1, 99, 0, []byte{2, 0, 0, 0})
	require.NoError(t, w.Close())
	p, _, err := Profile(context.Background(), bytesOpener(out.Bytes()), nil)
	require.NoError(t, err)
	require.Len(t, p.Threads, 2)
	assert.Equal(t, []int64{30, 35}, p.Threads[0].Breaks)
	assert.Equal(t, []int64{30}, p.Threads[1].Breaks)
	require.Len(t, p.Losses, 2)
	assert.Equal(t, profile.Loss{From: 20, To: 30, Events: 4}, p.Losses[0])
	assert.Equal(t, profile.Loss{From: 5, To: 35, Events: 3, Thread: p.Threads[0]}, p.Losses[1])
}
