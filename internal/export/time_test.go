package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/profile"
)

// times are self and total time by method name, ns. A method that calls itself counts once.
type times map[string]*[2]int64

func (t times) add(name string, self, total int64) {
	x := t[name]
	if x == nil {
		x = new([2]int64)
		t[name] = x
	}
	x[0] += self
	x[1] += total
}

// stack adds time in which a stack was there.
func (t times) stack(names []string, ns int64) {
	for i, n := range names {
		if !slices.Contains(names[:i], n) {
			t.add(n, 0, ns)
		}
	}
	if len(names) > 0 {
		t.add(names[len(names)-1], ns, 0)
	}
}

// timesOfSpans adds up nested spans, as a viewer does.
func timesOfSpans(list []span) times {
	byTrack := map[string][]span{}
	for _, s := range list {
		byTrack[s.track] = append(byTrack[s.track], s)
	}
	t := times{}
	for _, list := range byTrack {
		slices.Reverse(list) // they come as they end, the inner ones first
		slices.SortStableFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
		var open []span
		for _, s := range list {
			for len(open) > 0 && open[len(open)-1].end <= s.start {
				open = open[:len(open)-1]
			}
			outer := s.end - s.start
			for _, o := range open {
				if o.name == s.name {
					outer = 0
				}
			}
			t.add(s.name, s.end-s.start, outer)
			if len(open) > 0 {
				t.add(open[len(open)-1].name, -(s.end - s.start), 0)
			}
			open = append(open, s)
		}
	}
	return t
}

// same asserts that two sums differ by no more than the nanoseconds that rounding and the
// Chromium writer take.
func sameTimes(t *testing.T, format string, want, got times, slack int64) {
	t.Helper()
	for _, name := range unionOf(want, got) {
		w, g := want[name], got[name]
		if w == nil {
			w = new([2]int64)
		}
		if g == nil {
			g = new([2]int64)
		}
		for i, what := range []string{"self", "total"} {
			if d := w[i] - g[i]; d > slack || -d > slack {
				assert.Fail(t, fmt.Sprintf("%s: %s time of %.80s is %d ns, %d expected", format, what, name, g[i], w[i]))
			}
		}
	}
}

func unionOf(a, b times) []string {
	var names []string
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if a[n] == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// CheckTime is checkTime for tests that read recordings with a package that imports this one.
var CheckTime = checkTime

// checkTime holds the time of every method in every output against the stretches.
func checkTime(t *testing.T, p *profile.Profile) {
	t.Helper()
	q := *p
	q.Tracks, q.Losses = nil, nil
	p = &q
	want, stretches := times{}, int64(0)
	timing := p.Timing()
	short := map[string]string{profile.OffCPU: profile.OffCPU, "?": "?"} // by full name
	for i := range p.Table.Methods() {
		m := p.Table.MethodAt(profile.MethodID(i))
		full := cmp.Or(m.Full(), "?")
		short[full] = cmp.Or(m.Name, "?")
		short[strings.NewReplacer(";", ":", "\n", " ", "\r", " ").Replace(full)] = cmp.Or(m.Name, "?")
	}
	for _, th := range p.Threads {
		for st := range timing.Stretches(th) {
			stretches++
			names := namesOf(p, &st.Sample)
			if st.Type == profile.SampleOffCPU {
				names = append(names, profile.OffCPU)
			}
			want.stack(names, st.Nanos())
		}
	}

	var out bytes.Buffer
	require.NoError(t, Chromium(&out, p, Options{}))
	sameTimes(t, "chromium", want, timesOfSpans(spansOf(t, readChromium(t, out.Bytes()))), 3*stretches)

	out.Reset()
	require.NoError(t, Speedscope(&out, p, Options{}))
	sameTimes(t, "speedscope", want, timesOfSpans(speedscopeSpans(t, out.Bytes(), short)), stretches)
	if all, ok := timesOfAllThreads(t, out.Bytes(), short); ok {
		sameTimes(t, "speedscope's profile of all threads", want, all, 0)
	}

	out.Reset()
	require.NoError(t, Perfetto(&out, p, Options{}))
	if pt := readPerfetto(t, out.Bytes()); pt.deepest < perfettoDepth {
		sameTimes(t, "perfetto", want, timesOfSpans(pt.spans), stretches)
	}

	out.Reset()
	require.NoError(t, Folded(&out, p, Options{}))
	got, lines := times{}, int64(0)
	for line := range strings.Lines(out.String()) {
		lines++
		at := strings.LastIndexByte(line, ' ')
		us, err := strconv.ParseInt(strings.TrimSpace(line[at:]), 10, 64)
		require.NoError(t, err)
		var names []string
		for i, n := range strings.Split(line[:at], ";") {
			if s, ok := short[n]; ok {
				names = append(names, s)
			} else {
				require.Zero(t, i, "only the process is no method: %s", n)
			}
		}
		got.stack(names, us*1000)
	}
	sameTimes(t, "folded", want, got, 500*lines)

	out.Reset()
	require.NoError(t, Pprof(&out, p, Options{}))
	got = times{}
	if out.Len() > 0 && stretches > 0 {
		for _, s := range readPprof(t, out.Bytes()).Sample {
			var names []string
			for i := len(s.Location) - 1; i >= 0; i-- {
				names = append(names, short[s.Location[i].Line[0].Function.Name])
			}
			got.stack(names, s.Value[1])
		}
		sameTimes(t, "pprof", want, got, 0)
	}

	checkPerfettoSamples(t, p)
	sameTimes(t, "otlp-profiles-alpha", want, timesOfOTLP(t, p, short), 0)

	sameTimes(t, "firefox", want, writeFirefox(t, p, Options{}).times(), stretches)

	got = times{}
	raw, folded := 0.0, 0.0
	for r := range p.Top(profile.TopOptions{Raw: true}).Rows() {
		got.add(short[r.Method], int64((r.CPUSelf+r.WaitSelf)*1e6+0.5), int64((r.CPUTotal+r.WaitTotal)*1e6+0.5))
		raw += r.CPUSelf + r.WaitSelf
	}
	sameTimes(t, "top", want, got, 2*int64(p.Table.Methods()))
	for r := range p.Top(profile.TopOptions{}).Rows() {
		folded += r.CPUSelf + r.WaitSelf
	}
	assert.InDelta(t, raw, folded, 0.01, "ms; polls are charged to other methods, not lost")
}

func speedscopeSpans(t *testing.T, b []byte, short map[string]string) []span {
	var doc speedscopeFile
	require.NoError(t, json.Unmarshal(b, &doc))
	var list []span
	for k, pr := range doc.Profiles {
		var open []span
		for _, e := range pr.Events {
			name := short[doc.Shared.Frames[e.Frame].Name]
			if e.Type == "O" {
				open = append(open, span{track: strconv.Itoa(k), name: name, start: e.At})
				continue
			}
			s := open[len(open)-1]
			open = open[:len(open)-1]
			require.Equal(t, s.name, name)
			s.end = e.At
			list = append(list, s)
		}
		require.Empty(t, open)
	}
	return list
}

// timesOfAllThreads are those of the profile that sums up the others, which a file of one thread
// does not have.
func timesOfAllThreads(t *testing.T, b []byte, short map[string]string) (got times, ok bool) {
	var doc speedscopeFile
	require.NoError(t, json.Unmarshal(b, &doc))
	got = times{}
	for _, pr := range doc.Profiles {
		for i, stack := range pr.Samples {
			ok = true
			names := make([]string, len(stack))
			for j, frame := range stack {
				names[j] = short[doc.Shared.Frames[frame].Name]
			}
			got.stack(names, pr.Weights[i])
		}
	}
	return got, ok
}

// TestTimeIsOne: per method, self and total time are the same in every output, whatever was
// sampled. Real recordings are held to it by TestTimeOfCorpus.
func TestTimeIsOne(t *testing.T) {
	for seed := range uint64(60) {
		p := random(seed)
		for i := range p.Table.Methods() { // folded stacks tell some names apart only by what they cannot hold
			if m := p.Table.MethodAt(profile.MethodID(i)); strings.ContainsAny(m.Name, ";\n\r") {
				t.Fatalf("seed %d: method %q", seed, m.Name)
			}
		}
		checkTime(t, p)
	}
}

// A recorded is a span of a foreign trace.
type recorded struct {
	name     string
	from, to int64 // ns
}

// TestRecordedSpans: of spans that were recorded and not sampled each stays itself, with its
// own time; what crosses its parent's end is cut there and counted.
func TestRecordedSpans(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []recorded
		clip  int64
	}{
		{"a millisecond apart", []recorded{{"a", 0, 10_000}, {"a", 1_000_000, 1_010_000}}, 0},
		{"one after the other", []recorded{{"a", 0, 10_000}, {"a", 10_000, 20_000}, {"a", 20_000, 30_000}}, 0},
		{"one after the other in a caller", []recorded{{"p", 0, 40_000}, {"a", 0, 10_000}, {"a", 10_000, 20_000}, {"b", 20_000, 30_000}, {"b", 35_000, 40_000}}, 0},
		{"both begin and end at once", []recorded{{"a", 0, 10_000}, {"b", 0, 10_000}, {"a", 10_000, 20_000}, {"b", 10_000, 20_000}}, 0},
		{"crossing", []recorded{{"a", 0, 10_000}, {"b", 5_000, 12_000}}, 2_000},
		{"the caller calls itself", []recorded{{"a", 0, 10_000}, {"a", 2_000, 4_000}, {"a", 4_000, 6_000}}, 0},
		{"deep ones, one after the other", twice(31), 0},
		{"deeper ones", twice(32), 0},
		{"much deeper ones", twice(400), 0},
	} {
		t.Run(c.name, func(t *testing.T) { checkRecorded(t, c.spans, c.clip) })
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 19))
		var list []recorded
		for range 1 + rng.IntN(40) {
			from := rng.Int64N(200) * 1000
			list = append(list, recorded{string(rune('a' + rng.IntN(4))), from, from + (1+rng.Int64N(1+rng.Int64N(100)))*1000})
		}
		checkRecorded(t, list, -1)
	}
}

// twice is a call that goes that deep, and the same again.
func twice(depth int) (list []recorded) {
	for from := range int64(2) {
		for i := range depth {
			list = append(list, recorded{fmt.Sprintf("f%d", i), from * 10_000, (from + 1) * 10_000})
		}
	}
	return list
}

// TestBeginsAndEndsOutOfOrder: begins and ends of spans that nest are put in order of time, which
// is counted, and no time is lost by it.
func TestBeginsAndEndsOutOfOrder(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 23))
		var events []string
		now, sum, n := int64(0), int64(0), 0
		var write func(depth int)
		write = func(depth int) {
			n++
			name := fmt.Sprintf("f%d", n)
			now += 1 + rng.Int64N(20)
			from := now
			events = append(events, fmt.Sprintf(`{"ph":"B","pid":1,"tid":2,"name":%q,"ts":%d}`, name, now))
			for range rng.IntN(4 - depth) {
				write(depth + 1)
			}
			now += 1 + rng.Int64N(20)
			events = append(events, fmt.Sprintf(`{"ph":"E","pid":1,"tid":2,"name":%q,"ts":%d}`, name, now))
			sum += now - from
		}
		for range 1 + rng.IntN(5) {
			write(0)
		}
		swapped := rng.IntN(3) > 0
		for i := 1; swapped && i < len(events); i += 2 {
			events[i-1], events[i] = events[i], events[i-1]
		}
		in := "[" + strings.Join(events, ",") + "]"
		tr, err := spans.Read(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in)), nil }, &spans.Options{Weighted: true})
		require.NoError(t, err)
		assert.Equal(t, swapped, tr.Facts.Reordered > 0, "seed %d", seed)
		checkTime(t, tr.Profile)
		total := int64(0)
		for _, s := range totals(tr.Profile) {
			total += s
		}
		assert.Equal(t, sum*1000, total, "seed %d: %s", seed, in)
	}
}

// totals are the total times of methods, ns.
func totals(p *profile.Profile) map[string]int64 {
	t := map[string]int64{}
	top := p.Top(profile.TopOptions{Raw: true})
	for row := range top.Rows() {
		t[row.Method] += int64(math.Round((row.CPUTotal + row.WaitTotal) * 1e6))
	}
	return t
}

// checkRecorded reads spans as complete events; clip is what is cut off, -1 for anything.
func checkRecorded(t *testing.T, list []recorded, clip int64) {
	t.Helper()
	var in strings.Builder
	in.WriteString(`{"traceEvents":[`)
	sum := int64(0)
	for i, s := range list {
		if i > 0 {
			in.WriteByte(',')
		}
		fmt.Fprintf(&in, `{"ph":"X","pid":1,"tid":2,"name":%q,"ts":%d,"dur":%d}`, s.name, s.from/1000, (s.to-s.from)/1000)
		sum += s.to - s.from
	}
	in.WriteString(`]}`)
	tr, err := spans.Read(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in.String())), nil }, &spans.Options{Weighted: true})
	require.NoError(t, err)
	if clip >= 0 {
		require.Equal(t, clip, tr.Facts.Clipped)
	}
	checkTime(t, tr.Profile)

	var out bytes.Buffer
	require.NoError(t, Speedscope(&out, tr.Profile, Options{}))
	short := map[string]string{}
	for i := range tr.Profile.Table.Methods() {
		m := tr.Profile.Table.MethodAt(profile.MethodID(i))
		short[m.Full()] = m.Name
	}
	got := speedscopeSpans(t, out.Bytes(), short)
	spent := int64(0)
	for _, s := range got {
		spent += s.end - s.start
	}
	assert.Equal(t, sum, spent+tr.Facts.Clipped, "all time is there, or was counted: %s", in.String())
	if clip == 0 {
		assert.Len(t, got, len(list), "each span stays itself")
	}
}
