package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// writers are all outputs of a profile.
var writers = []struct {
	name, file string
	write      func(io.Writer, *profile.Profile, Options) error
	o          Options
}{
	{"ndjson", "example.ndjson", NDJSON, Options{}},
	{"chromium", "example.chromium.json", Chromium, Options{Name: "example", Exporter: "tracefix 1"}},
	{"chromium plain cpu", "example.cpu.chromium.json", Chromium, Options{Plain: true, Tracks: []string{"cpu"}}},
	{"speedscope", "example.speedscope.json", Speedscope, Options{}},
	{"folded", "example.folded", Folded, Options{}},
	{"folded counts by thread", "example.threads.folded", Folded, Options{ByThread: true, Counts: true}},
	{"pprof", "example.pb", Pprof, Options{}},
	{"perfetto", "example.pftrace", Perfetto, Options{}},
	{"firefox", "example.firefox.json", Firefox, Options{}},
	{"otlp profiles", "example.otlp-profiles.pb", OTLPProfiles, Options{}},
}

func TestGolden(t *testing.T) {
	for _, wr := range writers {
		t.Run(wr.name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, wr.write(&out, example(), wr.o))
			file := filepath.Join("testdata", wr.file)
			if *update {
				require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			if utf8.Valid(want) {
				assert.Equal(t, string(want), out.String())
			}
			assert.True(t, bytes.Equal(want, out.Bytes()), "%s is not what is written now", file)
			var again bytes.Buffer
			require.NoError(t, wr.write(&again, example(), wr.o))
			assert.Equal(t, out.String(), again.String(), "the same input gives the same bytes")
		})
	}
}

// TestEmptyProfile: no samples, no tracks, no threads is a valid file too.
func TestEmptyProfile(t *testing.T) {
	for _, wr := range writers {
		var out bytes.Buffer
		require.NoError(t, wr.write(&out, &profile.Profile{Table: profile.NewTable()}, wr.o), wr.name)
		if strings.HasSuffix(wr.file, ".json") {
			assert.True(t, json.Valid(out.Bytes()), "%s: %s", wr.name, out.String())
		}
	}
}

type failing struct {
	after  int
	silent bool // it does not tell, which io.Writer forbids
}

var errDisk = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		if f.silent {
			return 0, nil
		}
		return 0, errDisk
	}
	return len(p), nil
}

// TestWriteError: a failing disk is told, and nothing goes on writing.
func TestWriteError(t *testing.T) {
	for _, wr := range writers {
		assert.ErrorIs(t, wr.write(&failing{}, example(), wr.o), errDisk, wr.name)
		assert.ErrorIs(t, wr.write(&failing{after: bufferSize}, large(400), wr.o), errDisk, wr.name)
		assert.ErrorIs(t, wr.write(&failing{silent: true}, example(), wr.o), io.ErrShortWrite, wr.name)
	}
}

// A chromiumEvent is an event as a viewer reads it.
type chromiumEvent struct {
	Ph, Name, Cat string
	TS            json.Number
	PID, TID      int64
	ID            string
	BindID        string `json:"bind_id"`
	Args          map[string]any
}

// ns reads a time of at most three decimals exactly.
func ns(t testing.TB, n json.Number) int64 {
	whole, frac, _ := strings.Cut(string(n), ".")
	must(t, len(frac) <= 3, "more than three decimals")
	v, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	must(t, err == nil, "not a decimal number")
	return v
}

func readChromium(t testing.TB, b []byte) []chromiumEvent {
	require.True(t, bytes.HasPrefix(b, []byte(`{"traceEvents":[`)))
	require.True(t, utf8.Valid(b))
	// Where the first event has a tid and a category, speedscope takes the file for one of
	// the browser's devtools as soon as anything in it is called Profile.
	first, _, _ := bytes.Cut(b[15:], []byte("}"))
	require.NotContains(t, string(first), `"tid"`)
	var doc struct {
		TraceEvents     []chromiumEvent
		DisplayTimeUnit string
	}
	require.NoError(t, json.Unmarshal(b, &doc), string(b[:min(len(b), 2000)]))
	assert.Equal(t, "ms", doc.DisplayTimeUnit)
	return doc.TraceEvents
}

// A span is a closed slice of some output.
type span struct {
	track      string
	name       string
	start, end int64
}

// spansOf checks what every viewer needs and returns the spans: per thread times do
// not go back, each E fits the newest B by name and category, everything is closed;
// for async events the same per id; every thread is named before it is used.
func spansOf(t testing.TB, events []chromiumEvent) []span {
	var spans []span
	type open struct {
		name, cat string
		at        int64
	}
	stacks := map[string][]open{}
	last := map[string]int64{}
	named := map[string]bool{}
	for _, e := range events {
		track := strconv.FormatInt(e.PID, 10) + "/" + strconv.FormatInt(e.TID, 10)
		must(t, e.Name != "", "an event without a name, category or id")
		must(t, e.Cat != "", "an event without a name, category or id")
		if e.Ph == "M" {
			named[track+e.Name] = true
			continue
		}
		must(t, named[track+"thread_name"], "an event is on a track without a name")
		at := ns(t, e.TS)
		must(t, at >= last[track], "time goes back")
		last[track] = at
		if strings.ContainsAny(e.Ph, "ben") {
			must(t, e.ID != "", "an event without a name, category or id")
			track += "/" + e.Cat + e.ID
		}
		switch e.Ph {
		case "B", "b":
			stacks[track] = append(stacks[track], open{e.Name, e.Cat, at})
		case "E", "e":
			s := stacks[track]
			must(t, len(s) > 0, "an event ends nothing")
			top := s[len(s)-1]
			must(t, top.name == e.Name && top.cat == e.Cat, "an event ends another one than the top")
			stacks[track] = s[:len(s)-1]
			spans = append(spans, span{track, e.Name, top.at, at})
		case "i", "n", "s", "f":
		default:
			require.Fail(t, "phase "+e.Ph)
		}
	}
	for track, s := range stacks {
		require.Empty(t, s, "left open on %s", track)
	}
	return spans
}

func TestChromiumIsWhatViewersNeed(t *testing.T) {
	for seed := range uint64(60) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, Chromium(&out, p, Options{}))
		spans := spansOf(t, readChromium(t, out.Bytes()))

		// Every stack is there for as long as it was: the innermost frames of a thread
		// are open for the sum of all its stretches.
		want, got := expectedSpans(p), spans[:0:0]
		slices := map[string]int{}
		for _, s := range spans {
			if strings.HasPrefix(s.name, "f") || s.name == "[off CPU]" {
				got = append(got, s)
			} else if strings.Count(s.track, "/") == 2 || strings.HasPrefix(s.name, "s") {
				slices[s.name]++
			}
		}
		sameSpans(t, want, got)
		checkSpeedscope(t, readChromium(t, out.Bytes()))
		wantSlices := map[string]int{}
		for _, tr := range p.Tracks {
			for s := range tr.Slices {
				if !s.Instant {
					wantSlices[s.Name]++
				}
			}
		}
		assert.Equal(t, wantSlices, slices, "no slice of a track is lost")
	}
}

// expectedSpans is the plain version of what the writers do: it holds all stretches,
// compares whole stacks by name, and knows nothing of trees.
func expectedSpans(p *profile.Profile) []span {
	var spans []span
	timing := p.Timing()
	ids := newNumbers(p)
	for _, th := range p.Threads {
		track := fmt.Sprint(ids.pid(th.Owner()), "/", ids.tids[th])
		var open []span
		end := int64(0)
		closeTo := func(n int) {
			for len(open) > n {
				s := open[len(open)-1]
				s.end = end
				spans = append(spans, s)
				open = open[:len(open)-1]
			}
		}
		sts := timing.Cursor(th)
		for st, ok := sts.Next(); ok; st, ok = sts.Next() {
			var names []string
			for _, f := range p.Table.AppendFrames(nil, st.Stack) {
				if m := p.Table.MethodOf(f); m.Kind != profile.Synthetic || m.Name == profile.Bridge {
					names = append(names, m.Name)
				}
			}
			if st.Type == profile.SampleOffCPU {
				names = append(names, "[off CPU]")
			}
			n := 0
			for st.Joined && n < len(open) && n < len(names)-int(st.Fresh) && open[n].name == names[n] && names[n] != "[off CPU]" {
				n++
			}
			closeTo(n)
			for _, name := range names[n:] {
				open = append(open, span{track: track, name: name, start: st.Start})
			}
			end = st.End
		}
		closeTo(0)
	}
	return spans
}

// sameSpans asserts that got are the spans want but for the nanoseconds that the
// Chromium writer puts in.
func sameSpans(t *testing.T, want, got []span) {
	byTrack := func(a, b span) int { return strings.Compare(a.track, b.track) }
	slices.SortStableFunc(want, byTrack)
	slices.SortStableFunc(got, byTrack)
	require.Equal(t, len(want), len(got))
	for i, w := range want {
		g := got[i]
		require.Equal(t, w.track+" "+w.name, g.track+" "+g.name)
		require.InDelta(t, w.start, g.start, 4)
		require.InDelta(t, w.end, g.end, 4)
	}
}

// checkSpeedscope asserts that speedscope nests all spans of a Chromium JSON.
func checkSpeedscope(t *testing.T, events []chromiumEvent) {
	threads := map[string][]tracetest.SpanEvent{}
	for _, e := range events {
		if e.Ph == "B" || e.Ph == "E" {
			th := fmt.Sprint(e.PID, "/", e.TID)
			ts, err := e.TS.Float64()
			require.NoError(t, err)
			ev := tracetest.SpanEvent{Phase: e.Ph[0], Name: e.Name, TS: ts}
			if e.Args != nil {
				ev.Args = fmt.Sprint(e.Args)
			}
			threads[th] = append(threads[th], ev)
		}
	}
	for th, events := range threads {
		lost, open, _ := tracetest.Speedscope(events)
		require.Zero(t, lost+open, "thread %s", th)
	}
}

// TestStretches holds the rules of what a sample speaks for.
func TestStretches(t *testing.T) {
	m := newMaker()
	p := m.process(1, "", "")
	busy := m.thread(p, 1, "")
	th := m.thread(p, 2, "")
	for i := range int64(100) {
		busy.Samples.Append(profile.Sample{Time: i * ms, Stack: 0})
	}
	for _, at := range []int64{0, 1, 2, 15, 50, 51, 52, 300, 2000} {
		th.Samples.Append(profile.Sample{Time: at * ms})
	}
	th.Breaks = []int64{51*ms + ms/2}
	type row struct {
		start, end int64
		joined     bool
	}
	var got []row
	sts := m.p.Timing().Cursor(th)
	for st, ok := sts.Next(); ok; st, ok = sts.Next() {
		got = append(got, row{st.Start, st.End, st.Joined})
	}
	assert.Equal(t, []row{
		{0, 1 * ms, false},
		{1 * ms, 2 * ms, true},
		{2 * ms, 15 * ms, true},       // a short gap
		{15 * ms, 16 * ms, true},      // the sampler went round 34 times without it
		{50 * ms, 51 * ms, false},     //
		{51 * ms, 51*ms + ms/2, true}, // events were lost
		{52 * ms, 53 * ms, false},     // 47 rounds without it
		{300 * ms, 301 * ms, false},   // nobody was seen, for too long
		{2000 * ms, 2001 * ms, false}, // the last one is not lost
	}, got)
}

// TestStretchesNeverOverlap: whatever the samples, time goes on.
func TestStretchesNeverOverlap(t *testing.T) {
	for seed := range uint64(100) {
		p := random(seed)
		timing := p.Timing()
		for _, th := range p.Threads {
			end := int64(math.MinInt64)
			n := 0
			sts := timing.Cursor(th)
			for st, ok := sts.Next(); ok; st, ok = sts.Next() {
				require.LessOrEqual(t, st.Start, st.End)
				require.GreaterOrEqual(t, st.Start, end)
				end = st.End
				n++
			}
			for _, s := range th.Samples.All() {
				if s.Type != profile.SampleEvent {
					n--
				}
			}
			require.Zero(t, n, "every sample has its stretch")
		}
	}
}

// A speedscopeFile is what its importer reads.
type speedscopeFile struct {
	Schema   string `json:"$schema"`
	Shared   struct{ Frames []struct{ Name string } }
	Active   *int `json:"activeProfileIndex"`
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue int64
		Events               []struct {
			Type  string
			Frame int
			At    int64
		}
		Samples [][]int
		Weights []int64
	}
}

// TestSpeedscopeRules holds what speedscope's importer throws on.
func TestSpeedscopeRules(t *testing.T) {
	for seed := range uint64(60) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, Speedscope(&out, p, Options{}))
		var doc speedscopeFile
		require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
		assert.Equal(t, "https://www.speedscope.app/file-format-schema.json", doc.Schema)
		var got []span
		if n := len(doc.Profiles); n > 1 { // the sum stands behind the threads
			require.Equal(t, "sampled", doc.Profiles[n-1].Type)
			require.Equal(t, "All threads", doc.Profiles[n-1].Name)
			doc.Profiles = doc.Profiles[:n-1]
		}
		for _, pr := range doc.Profiles {
			require.Equal(t, "evented", pr.Type)
			require.Equal(t, "nanoseconds", pr.Unit)
			var stack []span
			last := pr.StartValue
			for _, e := range pr.Events {
				require.GreaterOrEqual(t, e.At, last)
				last = e.At
				require.Less(t, e.Frame, len(doc.Shared.Frames))
				name := strings.TrimPrefix(doc.Shared.Frames[e.Frame].Name, "m!")
				if e.Type == "O" {
					stack = append(stack, span{name: name, start: e.At})
					continue
				}
				require.Equal(t, "C", e.Type)
				require.NotEmpty(t, stack)
				top := stack[len(stack)-1]
				require.Equal(t, top.name, name, "closes the top")
				stack = stack[:len(stack)-1]
				top.end = e.At
				got = append(got, top)
			}
			require.Empty(t, stack)
			require.LessOrEqual(t, last, pr.EndValue)
		}
		want := expectedSpans(p)
		for i := range want {
			want[i].track = ""
		}
		assert.ElementsMatch(t, want, got, "seed %d", seed)
	}
}

// TestFoldedSums: the lines add up to all samples and to all time.
func TestFoldedSums(t *testing.T) {
	for seed := range uint64(40) {
		p := random(seed)
		timing := p.Timing()
		count, micros := int64(0), 0.0
		for _, th := range p.Threads {
			sts := timing.Cursor(th)
			for st, ok := sts.Next(); ok; st, ok = sts.Next() {
				count++
				micros += float64(st.Nanos()) / 1000
			}
		}
		sum := func(o Options) (n int64, lines int) {
			var out bytes.Buffer
			require.NoError(t, Folded(&out, p, o))
			seen := map[string]bool{}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				i := strings.LastIndexByte(line, ' ')
				v, err := strconv.ParseInt(line[i+1:], 10, 64)
				require.NoError(t, err)
				require.False(t, seen[line[:i]], "a stack has one line")
				seen[line[:i]] = true
				n += v
			}
			return n, len(seen)
		}
		n, lines := sum(Options{Counts: true})
		assert.Equal(t, count, n)
		n, _ = sum(Options{})
		assert.InDelta(t, micros, float64(n), float64(lines)/2+1)
	}
}

// A line is UTF-8, and its frames and its end are where they are meant to be.
func TestFoldedNames(t *testing.T) {
	m := newMaker()
	m.thread(m.process(1, "", ""), 2, "").Samples.Append(profile.Sample{Stack: m.stack("m!A(int32;\n)", "m!B\xff")})
	var out bytes.Buffer
	told := 0
	require.NoError(t, Folded(&out, m.p, Options{Counts: true, Warn: func(string) { told++ }}))
	assert.Equal(t, "m!A(int32: );m!B\uFFFD 1\n", out.String())
	assert.Equal(t, 1, told)
}

func TestNDJSONOrderAndFields(t *testing.T) {
	for seed := range uint64(20) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, NDJSON(&out, p, Options{}))
		want, off := 0, int64(0)
		for _, th := range p.Threads {
			for _, s := range th.Samples.All() {
				if s.Type != profile.SampleEvent {
					want++
				}
				if s.Type != profile.SampleEvent {
					off += s.Dur
				}
			}
		}
		last := -1.0
		n := 0
		for line := range bytes.Lines(out.Bytes()) {
			var s struct {
				TS     float64
				Type   string
				Depth  int
				Frames []string
				Off    *float64 `json:"duration_ms"`
			}
			require.NoError(t, json.Unmarshal(line, &s))
			require.False(t, s.Type == "offcpu" && s.Off == nil)
			if s.Off != nil {
				off -= int64(math.Round(*s.Off * 1e6))
			}
			require.GreaterOrEqual(t, s.TS, last)
			require.Len(t, s.Frames, s.Depth)
			require.True(t, slices.Contains([]string{"managed", "external", "cpu", "offcpu"}, s.Type))
			require.False(t, slices.Contains(s.Frames, "<hidden>"))
			last = s.TS
			n++
		}
		assert.Equal(t, want, n)
		assert.Zero(t, off)
	}
}

func TestFixed(t *testing.T) {
	for want, v := range map[string]int64{
		"0": 0, "0.001": 1, "1": 1000, "1.5": 1500, "-0.5": -500, "12.345": 12345, "9223372036854775.807": math.MaxInt64, "-9223372036854775.808": math.MinInt64,
	} {
		assert.Equal(t, want, string(appendMicros(nil, v)))
	}
	assert.Equal(t, "5.699888", string(text.AppendMillis(nil, 5699888)))
	assert.Equal(t, "0.000001", string(text.AppendMillis(nil, 1)))
}

// FuzzNames: whatever a method is called, every output stays valid and JSON gives the
// name back.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "a!b", `"quoted\`, "\x00\x1f\n\t\r", "\xff\xfe", "\u2028\u2029\u0085", "😀!x", "\xed\xa0\x80", "a;b c", "hi!", "<T>&'", profile.Bridge} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, module, name string) {
		m := newMaker()
		th := m.thread(m.process(1, name, module), 2, name)
		id := m.p.Table.AddFrame(profile.Frame{Method: m.p.Table.AddMethod(profile.Method{Module: module, Name: name})})
		th.Samples.Append(profile.Sample{Stack: m.p.Table.Push(0, id)})
		m.p.Tracks = []*profile.Track{{Name: name, Slices: slicesOf(profile.Slice{Name: module, Category: name, Args: []profile.Arg{{Key: name, Value: module}}})}}
		want := strings.ToValidUTF8(name, "\uFFFD")
		for _, wr := range writers {
			var out bytes.Buffer
			require.NoError(t, wr.write(&out, m.p, wr.o))
			if strings.Contains(wr.file, "json") {
				require.True(t, utf8.Valid(out.Bytes()))
			}
			for line := range bytes.Lines(out.Bytes()) {
				if wr.name == "ndjson" {
					require.True(t, json.Valid(line), string(line))
				}
			}
			if wr.name == "chromium" {
				events := readChromium(t, out.Bytes())
				spansOf(t, events)
				// Each invalid byte becomes a character of its own.
				if name != "" && want == name {
					assert.Equal(t, name, events[0].Args["name"])
				}
			}
			if wr.name == "perfetto" {
				readPerfetto(t, out.Bytes())
			}
			if wr.name == "pprof" {
				readPprof(t, out.Bytes())
			}
			if wr.name == "speedscope" {
				var doc speedscopeFile
				require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
				if full := (profile.Method{Module: module, Name: name}).Full(); full != "" && utf8.ValidString(full) {
					assert.Equal(t, full, doc.Shared.Frames[0].Name)
				}
			}
		}
	})
}

// large makes a profile like those of real services: n samples each on four threads,
// some 60 frames deep, of which a few change from one sample to the next.
func large(n int) *profile.Profile {
	m := newMaker()
	m.p.Meta.Interval = ms
	pr := m.process(4242, "service", "dotnet service.dll")
	var frames []profile.FrameID
	for i := range 3000 {
		name := fmt.Sprintf("Service.Component%d!Company.Service.Component%d.Handler`1[System.__Canon].Step%d(class System.String,int32)", i%40, i%40, i)
		frames = append(frames, m.frame(name))
	}
	state := uint64(1)
	next := func(k int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state>>33) % k
	}
	for tid := range 4 {
		th := m.thread(pr, int64(4242+tid), "")
		stack := make([]profile.StackID, 1, 100)
		for i := range n {
			depth := 40 + next(40)
			keep := min(len(stack), max(1, depth-next(12)))
			stack = stack[:keep]
			for len(stack) < depth {
				stack = append(stack, m.p.Table.Push(stack[len(stack)-1], frames[(len(stack)*37+next(3))%len(frames)]))
			}
			th.Samples.Append(profile.Sample{Time: int64(i)*1_100_123 + int64(tid)*1000, Stack: stack[len(stack)-1], Type: profile.SampleType(i / 50 % 2)})
		}
	}
	return m.p
}

func BenchmarkWrite(b *testing.B) {
	p := large(10000)
	for _, wr := range writers {
		b.Run(wr.name, func(b *testing.B) {
			var size counter
			require.NoError(b, wr.write(&size, p, wr.o))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := wr.write(io.Discard, p, wr.o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
