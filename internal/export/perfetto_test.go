package export

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/profile"
)

// A field is one field of a protobuf message.
type field struct {
	num   protowire.Number
	typ   protowire.Type
	v     uint64
	bytes []byte
}

// must is require.True without its cost, for checks of millions of events.
func must(t testing.TB, ok bool, what string) {
	if !ok {
		t.Helper()
		require.Fail(t, what)
	}
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

func fieldsOf(t testing.TB, b []byte) (fs []field) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		must(t, n > 0, "a broken field")
		b = b[n:]
		f := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			require.Fail(t, "wire type", "%v", typ)
		}
		must(t, n > 0, "a broken field")
		b = b[n:]
		fs = append(fs, f)
	}
	return fs
}

func one(fs []field, num protowire.Number) (field, bool) {
	for _, f := range fs {
		if f.num == num {
			return f, true
		}
	}
	return field{}, false
}

// A perfettoTrace is what Perfetto's importer makes of a file: slices by track.
type perfettoTrace struct {
	spans    []span // track is "pid/tid" of threads, the name of others
	instants int
	args     map[string]string // of slices, by "slice.key"
	tracks   map[uint64]perfettoTrack
	flows    map[uint64]string // the newest slice of each
	arrows   []string          // from a slice to one that it caused
	deepest  int
	realtime int64
	samples  []perfettoSample
}

// A perfettoSample is one of a profiler.
type perfettoSample struct {
	pid, tid uint64
	at       int64
	frames   []string // root first
	cut      uint64   // unwind error
}

type perfettoTrack struct {
	name     string
	pid, tid int64
	parent   uint64
}

// readPerfetto decodes a trace by the rules of Perfetto's importer and demands what it
// only counts as errors: state cleared before it is needed, ids interned before use,
// tracks described before use, known clocks, slices that end.
func readPerfetto(t testing.TB, b []byte) *perfettoTrace {
	tr := &perfettoTrace{args: map[string]string{}, tracks: map[uint64]perfettoTrack{}, flows: map[uint64]string{}}
	type sequence struct {
		valid  bool
		tables map[protowire.Number]map[uint64]string
		lists  map[protowire.Number]map[uint64][]uint64 // field 2 of what is interned: frames, callstacks
		track  uint64
		clock  uint64
		at     int64
		clocks map[uint64]bool
	}
	sequences := map[uint64]*sequence{}
	stacks := map[uint64][]span{}
	text := func(b []byte) string {
		must(t, utf8.Valid(b), "a rule of the importer")
		return string(b)
	}
	if len(b) > 0 {
		require.Equal(t, byte(0x0a), b[0], "how readers recognise it")
	}
	for _, p := range fieldsOf(t, b) {
		must(t, p.num == 1, "an unexpected value")
		fs := fieldsOf(t, p.bytes)
		id, ok := one(fs, packetSequenceID)
		must(t, ok, "a rule of the importer")
		must(t, id.v != 0, "a missing field")
		s := sequences[id.v]
		if s == nil {
			s = &sequence{tables: map[protowire.Number]map[uint64]string{}, clocks: map[uint64]bool{}}
			sequences[id.v] = s
		}
		flags, _ := one(fs, packetSequenceFlags)
		if flags.v&stateCleared != 0 {
			*s = sequence{valid: true, tables: map[protowire.Number]map[uint64]string{1: {}, 2: {}, 3: {}, internFunction: {}, internFrame: {}, internCallstack: {}, internMappingPath: {}, internMapping: {}},
				lists: map[protowire.Number]map[uint64][]uint64{internFrame: {}, internCallstack: {}}, clocks: map[uint64]bool{}}
		}
		if f, ok := one(fs, packetDefaults); ok {
			d := fieldsOf(t, f.bytes)
			te, _ := one(d, 11)
			u, _ := one(fieldsOf(t, te.bytes), 11)
			s.track = u.v
			c, _ := one(d, 58)
			s.clock = c.v
		}
		if f, ok := one(fs, packetInternedData); ok {
			must(t, s.valid, "a rule of the importer")
			for _, e := range fieldsOf(t, f.bytes) {
				es := fieldsOf(t, e.bytes)
				iid, _ := one(es, 1)
				name, _ := one(es, 2)
				must(t, iid.v != 0, "a missing field")
				must(t, !has(s.tables[e.num], iid.v), "described twice")
				s.tables[e.num][iid.v] = text(name.bytes)
				for _, x := range es {
					if x.num == 2 && s.lists[e.num] != nil {
						s.lists[e.num][iid.v] = append(s.lists[e.num][iid.v], x.v)
					}
				}
				switch at, _ := one(es, 3); e.num {
				case internFrame:
					_, has := one(es, 4)
					must(t, s.tables[internMapping][at.v] == "" && has, "a frame has a mapping and a place in it")
				case internMapping:
					path, _ := one(es, 7)
					must(t, s.tables[internMappingPath][path.v] != "", "a mapping has a path")
				}
			}
		}
		if f, ok := one(fs, packetClockSnapshot); ok {
			for _, c := range fieldsOf(t, f.bytes) {
				if c.num != 1 {
					continue
				}
				cs := fieldsOf(t, c.bytes)
				cid, _ := one(cs, 1)
				at, _ := one(cs, 2)
				inc, _ := one(cs, 3)
				s.clocks[cid.v] = true
				switch cid.v {
				case clockRealtime:
					tr.realtime = int64(at.v)
				case clockSequence:
					must(t, inc.v == 1, "an unexpected value")
					s.at = int64(at.v)
				}
			}
			continue // the importer reads nothing more of such a packet
		}
		if f, ok := one(fs, packetTrackDescriptor); ok {
			d := fieldsOf(t, f.bytes)
			uuid, _ := one(d, 1)
			must(t, uuid.v != 0, "a missing field")
			must(t, !has(tr.tracks, uuid.v), "described twice")
			name, _ := one(d, 2)
			parent, _ := one(d, 5)
			track := perfettoTrack{name: text(name.bytes), parent: parent.v, pid: -1, tid: -1}
			if parent.v != 0 {
				must(t, has(tr.tracks, parent.v), "not described")
			}
			if th, ok := one(d, 4); ok {
				ths := fieldsOf(t, th.bytes)
				pid, _ := one(ths, 1)
				tid, _ := one(ths, 2)
				name, _ := one(ths, 5)
				track.pid, track.tid, track.name = int64(pid.v), int64(tid.v), text(name.bytes)
			} else if pr, ok := one(d, 3); ok {
				prs := fieldsOf(t, pr.bytes)
				pid, _ := one(prs, 1)
				name, _ := one(prs, 6)
				track.pid, track.name = int64(pid.v), text(name.bytes)
			}
			must(t, track.name != "", "an empty text")
			tr.tracks[uuid.v] = track
			continue
		}
		if _, ok := one(fs, packetDefaults); ok && s.track == 0 {
			continue // of samples
		}
		if f, ok := one(fs, packetPerfSample); ok {
			must(t, s.valid && flags.v&stateNeeded != 0, "a rule of the importer")
			at, ok := one(fs, packetTimestamp)
			must(t, ok && s.clock == 0, "a time of the trace's clock")
			must(t, int64(at.v) >= 0, "a time before the start, which the importer drops")
			e := fieldsOf(t, f.bytes)
			pid, _ := one(e, 2)
			tid, _ := one(e, 3)
			cut, _ := one(e, 16)
			sample := perfettoSample{pid: pid.v, tid: tid.v, at: int64(at.v), cut: cut.v}
			if stack, ok := one(e, 4); ok {
				frames := s.lists[internCallstack][stack.v]
				must(t, len(frames) > 0, "a stack of nothing")
				for _, f := range frames {
					function := s.lists[internFrame][f]
					must(t, len(function) == 1, "a frame that is not described")
					sample.frames = append(sample.frames, s.tables[internFunction][function[0]])
				}
			}
			tr.samples = append(tr.samples, sample)
			continue
		}
		f, ok := one(fs, packetTrackEvent)
		must(t, ok, "a packet of an unknown kind")
		must(t, flags.v&stateNeeded != 0, "a missing field")
		must(t, s.valid, "a rule of the importer")
		delta, ok := one(fs, packetTimestamp)
		must(t, ok, "a rule of the importer")
		must(t, s.clock == clockSequence, "an unexpected value")
		must(t, s.clocks[s.clock] && s.clocks[clockBoottime], "the clock has a way to the trace's")
		must(t, int64(delta.v) >= 0, "time goes back")
		s.at += int64(delta.v)

		e := fieldsOf(t, f.bytes)
		track := s.track
		if u, ok := one(e, eventTrack); ok {
			track = u.v
		}
		must(t, has(tr.tracks, track), "not described")
		where := tr.tracks[track].name
		if tr.tracks[track].tid >= 0 {
			where = fmt.Sprint(tr.tracks[track].pid, "/", tr.tracks[track].tid)
		}
		kind, _ := one(e, eventType)
		if kind.v == sliceEnd {
			stack := stacks[track]
			must(t, len(stack) > 0, "ends nothing")
			top := stack[len(stack)-1]
			top.end = s.at
			tr.spans = append(tr.spans, top)
			stacks[track] = stack[:len(stack)-1]
			continue
		}
		iid, _ := one(e, eventName)
		name, ok := s.tables[internName][iid.v]
		must(t, ok, "a rule of the importer")
		must(t, name != "", "an empty text")
		cat, _ := one(e, eventCategory)
		must(t, s.tables[internCategory][cat.v] != "", "an empty text")
		for _, a := range e {
			switch a.num {
			case eventAnnotation:
				as := fieldsOf(t, a.bytes)
				key, _ := one(as, 1)
				k, ok := s.tables[internKey][key.v]
				must(t, ok, "a rule of the importer")
				v := as[len(as)-1]
				if v.num == 11 { // a dictionary, whose entries are messages
					v.bytes = nil
				}
				tr.args[name+"."+k] = fmt.Sprint(v.num, " ", v.v, " ", text(v.bytes))
			case eventFlow:
				require.Equal(t, protowire.Fixed64Type, a.typ)
				if from, ok := tr.flows[a.v]; ok {
					tr.arrows = append(tr.arrows, from+" -> "+name)
				}
				tr.flows[a.v] = name
			}
		}
		switch kind.v {
		case sliceBegin:
			stacks[track] = append(stacks[track], span{track: where, name: name, start: s.at})
			tr.deepest = max(tr.deepest, len(stacks[track]))
			must(t, len(stacks[track]) <= 512, "too deep")
		case instant:
			tr.instants++
		default:
			require.Fail(t, "event type", "%d", kind.v)
		}
	}
	for u, s := range stacks {
		require.Empty(t, s, "slices left open on track %d", u)
	}
	return tr
}

func TestPerfettoIsWhatItsImporterNeeds(t *testing.T) {
	for seed := range uint64(60) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, Perfetto(&out, p, Options{}))
		tr := readPerfetto(t, out.Bytes())
		var got []span
		slices := map[string]int{}
		for _, s := range tr.spans {
			if strings.Contains(s.track, "/") {
				got = append(got, s)
			} else {
				slices[s.name]++
			}
		}
		assert.ElementsMatch(t, expectedSpans(p), got, "seed %d", seed)
		want, instants := map[string]int{}, 0
		for _, track := range p.Tracks {
			for s := range track.Slices {
				if s.Instant {
					instants++
				} else {
					want[s.Name]++
				}
			}
		}
		assert.Equal(t, want, slices)
		assert.Equal(t, instants, tr.instants)
	}
}

func TestPerfettoExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, example(), Options{}))
	tr := readPerfetto(t, out.Bytes())
	assert.Equal(t, example().Meta.Start.UnixNano(), tr.realtime)
	for key, want := range map[string]string{
		"GC #1.gen":      "4 2 ",
		"GC #1.reason":   "6 0 Alloc\u2028\"small\"",
		"GC #1.blocking": "2 1 ",
		"GC #1.bytes":    "3 9223372036854775808 ",
		"GC #1.ratio":    fmt.Sprint("5 ", math.Float64bits(0.25), " "),
		"GC #1.more":     `9 0 {"a":[1,null]}`,
	} {
		assert.Equal(t, want, tr.args[key], key)
	}
	assert.Contains(t, tr.args, "Shop.Run().tracefix")
	assert.NotContains(t, tr.args, "Shop.Deep().tracefix")
	assert.Contains(t, tr.args, "GC #2.tracefix.open")
	assert.Equal(t, []string{"GC #1 -> mark"}, tr.arrows)
	assert.Equal(t, map[uint64]string{1: "mark", 2: "GET /b"}, tr.flows)
	requests := 0
	for _, track := range tr.tracks {
		if track.name == "Requests" {
			requests++
			assert.Equal(t, int64(42), tr.tracks[track.parent].pid)
		}
	}
	assert.Equal(t, 4, requests, "GET /a, GET /b, late and zero overlap: a lane each")
	assert.Contains(t, tr.spans, span{"Requests", "connect", 2 * ms, 5 * ms})

	out.Reset()
	require.NoError(t, Perfetto(&out, example(), Options{Plain: true, Tracks: []string{"cpu"}}))
	tr = readPerfetto(t, out.Bytes())
	assert.NotContains(t, tr.args, "Shop.Run().tracefix")
	assert.Empty(t, tr.flows)
}

// TestPerfettoFlows: the slices of one flow are a chain to Perfetto, each caused by the one before, so that what
// caused several begins a flow to each. What is not known to have a cause has none.
func TestPerfettoFlows(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	p.Tracks = []*profile.Track{{Name: "Activities", Group: "activities", Slices: slicesOf(
		profile.Slice{Start: 1, Dur: 5, Name: "job", FlowOut: 2, Ties: 3},
		profile.Slice{Start: 2, Dur: 9, Name: "first", FlowIn: 2, FlowOut: 5, Ties: 2},
		profile.Slice{Start: 3, Dur: 9, Name: "second", FlowIn: 2},
		profile.Slice{Start: 4, Dur: 9, Name: "inner", FlowIn: 5},
		profile.Slice{Start: 8, Dur: 9, Name: "third", FlowIn: 2},
		profile.Slice{Start: 9, Dur: 9, Name: "last", FlowIn: 5},
		profile.Slice{Start: 10, Dur: 1, Name: "untold", FlowOut: 9},
		profile.Slice{Start: 11, Dur: 9, Name: "one", FlowIn: 9},
		profile.Slice{Start: 12, Dur: 9, Name: "another", FlowIn: 9},
		profile.Slice{Start: 13, Dur: 9, Name: "orphan", FlowIn: 11},
		profile.Slice{Start: 14, Dur: 9, Name: "its sister", FlowIn: 11},
	)}}
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, p, Options{}))
	assert.Equal(t, []string{"job -> first", "job -> second", "first -> inner", "job -> third", "first -> last", "untold -> one"}, readPerfetto(t, out.Bytes()).arrows)
}

// TestPerfettoDepth: Perfetto takes the end of a slice that is too deep for that of
// another, so the rest becomes one slice.
func TestPerfettoDepth(t *testing.T) {
	m := newMaker()
	th := m.thread(m.process(1, "p", ""), 1, "")
	var stack profile.StackID
	stacks := []profile.StackID{0}
	for i := range 700 {
		stack = m.p.Table.Push(stack, m.frame(fmt.Sprint("f", i)))
		stacks = append(stacks, stack)
	}
	other := m.p.Table.Push(stacks[600], m.frame("other"))
	for i, s := range []profile.StackID{stacks[700], stacks[505], stacks[509], stacks[510], stacks[511], stacks[699], other, stacks[512], stacks[3], stacks[700], 0} {
		th.Samples.Append(profile.Sample{Time: int64(i) * ms, Stack: s, Type: profile.SampleManaged})
	}
	th.Samples.Append(profile.Sample{Time: 19 * ms, Dur: ms, Stack: stacks[700], Type: profile.SampleOffCPU})
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, m.p, Options{}))
	tr := readPerfetto(t, out.Bytes())
	assert.Equal(t, 511, tr.deepest)
	deeper := []span{}
	for _, s := range tr.spans {
		if s.name == "[deeper frames]" {
			deeper = append(deeper, s)
		}
		if s.name == "f0" {
			assert.Contains(t, []int64{0, 19 * ms}, s.start)
		}
	}
	assert.Equal(t, []span{
		{"1/1", "[deeper frames]", 0, ms},
		{"1/1", "[deeper frames]", 4 * ms, 8 * ms},
		{"1/1", "[deeper frames]", 9 * ms, 10 * ms},
		{"1/1", "[deeper frames]", 19 * ms, 20 * ms},
	}, deeper)
}

// TestPerfettoIsSmall: a tenth of the JSON is what makes the format worth having.
func TestPerfettoIsSmall(t *testing.T) {
	var chromium, perfetto counter
	p := large(500)
	require.NoError(t, Chromium(&chromium, p, Options{}))
	require.NoError(t, Perfetto(&perfetto, p, Options{}))
	assert.Less(t, float64(perfetto), float64(chromium)/5)
	t.Logf("Chromium %d bytes, Perfetto %d", chromium, perfetto)
}

// TestPerfettoSamples holds the sampled stacks against the samples on a CPU: those of each
// method, and how long they speak.
func TestPerfettoSamples(t *testing.T) {
	for seed := range uint64(30) {
		checkPerfettoSamples(t, random(seed))
	}
	early := &profile.Profile{Table: profile.NewTable()}
	th := &profile.Thread{Process: &profile.Process{PID: 1}, TID: 1}
	early.Processes, early.Threads = []*profile.Process{th.Process}, []*profile.Thread{th}
	id := early.Table.Push(0, early.Table.AddFrame(profile.Frame{Method: early.Table.AddMethod(profile.Method{Name: "F()"})}))
	for i := range int64(3) {
		th.Samples.Append(profile.Sample{Time: (i - 2) * 1e6, Dur: 1e6, Stack: id, Type: profile.SampleCPU})
	}
	checkPerfettoSamples(t, early)
	p := example()
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, p, Options{}))
	cut := map[uint64]int{}
	for _, s := range readPerfetto(t, out.Bytes()).samples {
		cut[s.cut]++
	}
	assert.Equal(t, 1, cut[unwindFramesExceeded], "a bridge")
	assert.Equal(t, 1, cut[unwindMemoryInvalid], "a broken stack")
}

func checkPerfettoSamples(t *testing.T, p *profile.Profile) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, p, Options{Tracks: []string{"cpu"}}))
	want, got := times{}, times{}
	timing := p.Timing()
	for _, th := range p.Threads {
		for st := range timing.Stretches(th) {
			if st.Type.OnCPU() {
				want.stack(namesOf(p, &st.Sample), 1)
			}
		}
	}
	for _, s := range readPerfetto(t, out.Bytes()).samples {
		got.stack(s.frames, 1)
	}
	sameTimes(t, "perfetto samples", want, got, 0)
}

// namesOf are the names of the frames of a sample that are drawn, root first.
func namesOf(p *profile.Profile, s *profile.Sample) (names []string) {
	for _, f := range p.Table.AppendFrames(nil, s.Stack) {
		if m := p.Table.MethodOf(f); m.Kind != profile.Synthetic || m.Name == profile.Bridge {
			names = append(names, cmp.Or(m.Name, "?"))
		}
	}
	return names
}
