package spans

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

func opener(in []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(in)), nil }
}

func readBytes(t testing.TB, in []byte, o *Options) *Trace {
	if o == nil {
		o = &Options{Log: true}
	}
	tr, err := Read(context.Background(), opener(in), o)
	require.NoError(t, err)
	return tr
}

// rewriteBytes rewrites a trace, and checks that it makes no difference to pass on unread
// what stays as it is.
func rewriteBytes(t testing.TB, tr *Trace, plain bool) []byte {
	var out bytes.Buffer
	out.Grow(int(tr.size + tr.size/8)) // what grows by itself is copied many times
	require.NoError(t, tr.Rewrite(context.Background(), &out, plain))
	end := tr.eventsEnd
	tr.eventsEnd = -1
	read := expecting{want: out.Bytes()}
	require.NoError(t, tr.Rewrite(context.Background(), &read, plain))
	tr.eventsEnd = end
	if read.differs || read.n < out.Len() {
		require.Fail(t, "passing on unread makes a difference", "at %d: %.200q, and read %.200q", read.n, out.Bytes()[read.n:], read.got)
	}
	return out.Bytes()
}

// An expecting is a writer that compares what it gets.
type expecting struct {
	want    []byte
	n       int // bytes that are as wanted
	differs bool
	got     []byte // in place of what was wanted
}

// Write implements io.Writer.
func (x *expecting) Write(p []byte) (int, error) {
	if x.differs {
		return len(p), nil
	}
	if bytes.HasPrefix(x.want[x.n:], p) {
		x.n += len(p)
		return len(p), nil
	}
	same := 0
	for same < min(len(p), len(x.want)-x.n) && p[same] == x.want[x.n+same] {
		same++
	}
	x.n, x.differs, x.got = x.n+same, true, bytes.Clone(p[same:])
	return len(p), nil
}

// repairBytes is the whole way of `tracefix repair`.
func repairBytes(t testing.TB, in []byte, plain bool) ([]byte, *Trace) {
	tr := readBytes(t, in, nil)
	pass.FixStacks(tr.Profile, 0.9)
	return rewriteBytes(t, tr, plain), tr
}

// event is what the checks see of an event, read by encoding/json.
type event struct {
	Name string
	Cat  string
	Ph   string
	TS   json.Number
	PID  any
	TID  any
	SF   any
	Args json.RawMessage
}

func (e event) ts() float64 {
	f, _ := e.TS.Float64()
	return f
}

func (e event) thread() string { return fmt.Sprint(e.PID, "/", e.TID) }

type document struct {
	TraceEvents []event
	StackFrames map[string]struct{ Name, Category string }
}

func parse(t testing.TB, in []byte) document {
	var d document
	in = bytes.TrimPrefix(in, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(bytes.TrimSpace(in), []byte("[")) {
		require.NoError(t, json.Unmarshal(in, &d.TraceEvents))
		return d
	}
	require.NoError(t, json.Unmarshal(in, &d))
	return d
}

// checkSpans asserts what must hold of a repaired file: begins and ends match by name and category, time
// does not go back within a thread, every sf is in the table.
func checkSpans(t testing.TB, d document) {
	open := map[string][]string{}
	last := map[string]float64{}
	for i, e := range d.TraceEvents {
		if e.Ph != "B" && e.Ph != "E" {
			continue
		}
		th := e.thread()
		if l, ok := last[th]; ok {
			require.GreaterOrEqual(t, e.ts(), l, "event %d: time goes back", i)
		}
		last[th] = e.ts()
		id := fmt.Sprint(e.Name, " ", e.SF, " ", e.Cat)
		if e.Ph == "B" {
			open[th] = append(open[th], id)
		} else {
			s := open[th]
			require.NotEmpty(t, s, "event %d ends nothing", i)
			require.Equal(t, s[len(s)-1], id, "event %d", i)
			open[th] = s[:len(s)-1]
		}
		if e.SF != nil && d.StackFrames != nil {
			f, ok := d.StackFrames[fmt.Sprint(e.SF)]
			require.True(t, ok, "sf %v is not in stackFrames", e.SF)
			require.Equal(t, f.Name, e.Name)
		}
	}
	for th, s := range open {
		require.Empty(t, s, "thread %s", th)
	}
}

// frameTimes returns for each thread and frame the time in which it is open.
func frameTimes(d document) map[string]float64 {
	type span struct {
		id string
		ts float64
	}
	open := map[string][]span{}
	count := map[string]int{}
	sum := map[string]float64{}
	for _, e := range d.TraceEvents {
		id := fmt.Sprint(e.thread(), " ", e.Name, " ", e.SF)
		switch e.Ph {
		case "B":
			open[e.thread()] = append(open[e.thread()], span{id, e.ts()})
			count[id]++
		case "E":
			s := open[e.thread()]
			if len(s) == 0 {
				continue
			}
			top := s[len(s)-1]
			open[e.thread()] = s[:len(s)-1]
			if count[top.id]--; count[top.id] == 0 {
				sum[top.id] += e.ts() - top.ts
			}
		}
	}
	return sum
}

func checkNeverShrinks(t testing.TB, before, after document) {
	b, a := frameTimes(before), frameTimes(after)
	for id, want := range b {
		require.GreaterOrEqual(t, a[id], want-1e-3, "%s lost time", id)
	}
}

func corpus(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for _, pattern := range []string{"../../testdata/chromium/*", "../../../shared/corpus/chromium/*", "../../../shared/corpus/chromium/small/*"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			if st, err := os.Stat(name); err != nil || st.IsDir() || strings.HasSuffix(name, ".md") {
				continue
			}
			files[filepath.Base(name)] = unpack(t, name)
		}
	}
	require.NotEmpty(t, files)
	return files
}

func unpack(t testing.TB, name string) []byte {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(b))
		require.NoError(t, err)
		b, err = io.ReadAll(z)
		require.NoError(t, err)
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(nil)
		require.NoError(t, err)
		defer z.Close()
		b, err = z.DecodeAll(b, nil)
		require.NoError(t, err)
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		f, err := z.File[0].Open()
		require.NoError(t, err)
		b, err = io.ReadAll(f)
		require.NoError(t, err)
	}
	return b
}

// A trace with nothing to repair comes back byte by byte, on the short way and when
// every event is read and written; an array without an end gets one.
func TestIdentity(t *testing.T) {
	for name, in := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			out, tr := repairBytes(t, in, false)
			if tr.Facts.Form == chromium.FormOpen {
				end := bytes.TrimRight(in, ", \n\r\t")
				in = slices.Concat(end, bytes.ReplaceAll(in[len(end):], []byte{','}, nil), []byte{']'})
			}
			assert.True(t, bytes.Equal(in, out), "the copy differs")
			assert.True(t, tr.clean)
			tr.clean = false
			assert.True(t, bytes.Equal(in, rewriteBytes(t, tr, false)), "the copy of each event differs")
		})
	}
}

// walk makes a synthetic file and its truth, and the file that dotnet-trace would
// have written had there been no limit.
func walk(t testing.TB, k tracetest.Walk) (cut, whole []byte, truth map[string][]string) {
	truth = map[string][]string{}
	k.Truth = func(tid int64, ms float64, stack []string) {
		truth[truthKey(tid, int64(math.Round(ms*1e6)))] = append([]string(nil), stack...)
	}
	var a, b bytes.Buffer
	_, err := k.WriteTo(&a)
	require.NoError(t, err)
	k.Truth = nil
	k.Whole = true
	_, err = k.WriteTo(&b)
	require.NoError(t, err)
	return a.Bytes(), b.Bytes(), truth
}

func truthKey(tid, ns int64) string { return fmt.Sprint(tid, "@", ns) }

// fixer makes repairs from names.
type fixer struct {
	p      *profile.Profile
	frames map[string]profile.FrameID
}

func newFixer(p *profile.Profile) *fixer {
	f := &fixer{p: p, frames: map[string]profile.FrameID{}}
	for i := range p.Table.Frames() {
		f.frames[p.Table.MethodOf(profile.FrameID(i)).Full()] = profile.FrameID(i)
	}
	return f
}

// fix replaces the stacks of cut samples by what of returns; nil leaves one alone.
func (f *fixer) fix(of func(t *profile.Thread, s profile.Sample) []string) {
	bridge := pass.BridgeFrame(f.p.Table)
	for _, th := range f.p.Threads {
		var fixed profile.Samples
		for i, s := range th.Samples.All() {
			if s.Cut != profile.Whole {
				if names := of(th, s); names != nil {
					how := "before"
					stack := profile.StackID(0)
					for _, n := range names {
						fr := bridge
						if n == profile.Bridge {
							how = "bridge"
						} else {
							fr = f.frames[n]
						}
						stack = f.p.Table.Push(stack, fr)
					}
					th.Repairs.Append(profile.Repair{Index: i, Recorded: s.Stack, How: how})
					s.Stack = stack
				}
			}
			fixed.Append(s)
		}
		th.Samples = fixed
	}
}

func names(t *profile.Table, s profile.StackID) []string {
	var out []string
	for _, f := range t.AppendFrames(nil, s) {
		out = append(out, t.MethodOf(f).Full())
	}
	return out
}

// With the true stacks in the place of the cut ones, the events are those that
// dotnet-trace would have written without a limit.
func TestRewriteTruth(t *testing.T) {
	for seed := range uint64(12) {
		k := tracetest.Walk{Seed: seed, Threads: 1 + int(seed)%3, Bytes: 1 << 20, Deep: 0.5}
		cut, whole, truth := walk(t, k)
		tr := readBytes(t, cut, nil)
		require.NotZero(t, len(tr.zones))
		newFixer(tr.Profile).fix(func(th *profile.Thread, s profile.Sample) []string {
			full := truth[truthKey(th.TID, s.Time)]
			require.NotNil(t, full, "no truth at %d", s.Time)
			rec := names(tr.Profile.Table, s.Stack)
			require.Equal(t, full[len(full)-len(rec):], rec)
			return full
		})
		for _, clean := range []bool{true, false} {
			tr.clean = clean
			out := rewriteBytes(t, tr, true)
			got, want := parse(t, out), parse(t, whole)
			checkSpans(t, got)
			require.Equal(t, len(want.TraceEvents), len(got.TraceEvents), "seed %d", seed)
			for i, w := range want.TraceEvents {
				g := got.TraceEvents[i]
				require.Equal(t, [3]string{w.Name, w.Ph, w.thread()}, [3]string{g.Name, g.Ph, g.thread()}, "seed %d event %d", seed, i)
				require.InDelta(t, w.ts(), g.ts(), 1e-9+earlier*w.ts(), "seed %d event %d", seed, i) // an end may take place earlier, see tie
				require.Nil(t, g.Args)
			}
			checkNeverShrinks(t, parse(t, cut), got)
		}
	}
}

// Any repairs give balanced spans; what was recorded stays.
func TestRewriteAny(t *testing.T) {
	for seed := range uint64(12) {
		cut, _, truth := walk(t, tracetest.Walk{Seed: 100 + seed, Threads: 2, Bytes: 512 << 10, Deep: 0.6})
		tr := readBytes(t, cut, nil)
		rnd := rand.New(rand.NewPCG(seed, 2))
		newFixer(tr.Profile).fix(func(th *profile.Thread, s profile.Sample) []string {
			full := truth[truthKey(th.TID, s.Time)]
			rec := names(tr.Profile.Table, s.Stack)
			above := full[:len(full)-len(rec)]
			switch rnd.IntN(4) {
			case 0: // not repaired
				return nil
			case 1: // bridged
				return append(append(append([]string(nil), above[:rnd.IntN(len(above)+1)]...), profile.Bridge), rec...)
			case 2: // wrong
				return append(append([]string(nil), full[rnd.IntN(len(full)):]...), rec...)
			}
			return full
		})
		before := parse(t, cut)
		for _, plain := range []bool{false, true} {
			out := rewriteBytes(t, tr, plain)
			got := parse(t, out)
			checkSpans(t, got)
			checkNeverShrinks(t, before, got)
			marked := 0
			for _, e := range got.TraceEvents {
				require.Nil(t, e.Args)
				if strings.HasSuffix(e.Cat, repairMark) {
					marked++
				}
			}
			assert.Equal(t, plain, marked == 0)

			again := readBytes(t, out, nil)
			same := map[string][]string{}
			for _, th := range again.Profile.Threads {
				for _, s := range th.Samples.All() {
					same[truthKey(th.TID, s.Time)] = names(again.Profile.Table, s.Stack)
				}
			}
			for _, th := range tr.Profile.Threads {
				var last []string
				for _, s := range th.Samples.All() {
					want := names(tr.Profile.Table, s.Stack)
					if got, ok := same[truthKey(th.TID, s.Time)]; ok {
						last = got
					}
					require.Equal(t, want, last)
				}
			}
		}
	}
}

// repair of the repaired file changes nothing, and untouched threads keep their bytes.
func TestRepairWalk(t *testing.T) {
	for seed := range uint64(6) {
		cut, _, _ := walk(t, tracetest.Walk{Seed: 200 + seed, Threads: 3, Bytes: 1 << 20, Deep: 0.3})
		out, _ := repairBytes(t, cut, false)
		checkSpans(t, parse(t, out))
		checkNeverShrinks(t, parse(t, cut), parse(t, out))
		again, _ := repairBytes(t, out, false)
		require.True(t, bytes.Equal(out, again), "seed %d: repair of the repaired trace changes it", seed)
	}
}

// rawEvents returns the texts of the events of a thread, or of all.
func rawEvents(t testing.TB, in []byte, tid string) []string {
	r, err := chromium.NewReader(bytes.NewReader(in), nil)
	require.NoError(t, err)
	var out []string
	for ev, err := range r.All() {
		require.NoError(t, err)
		if tid == "" || string(ev.TID) == tid {
			out = append(out, string(ev.Raw))
		}
	}
	return out
}

func TestUntouchedThread(t *testing.T) {
	var b bytes.Buffer
	d := tracetest.NewDotnetWriter(&b)
	deep := deepStack(130)
	for tid := range int64(3) {
		d.Thread(10 + tid)
		for i := range 5 {
			s := deep[:20+i]
			if tid == 1 && i > 1 {
				s = deep[len(deep)-100+i-3 : len(deep)+i-3][:100]
			}
			d.Sample(float64(10*(tid+1))+float64(i), 1, withRoots(10+tid, s))
		}
	}
	require.NoError(t, d.Close())
	out, tr := repairBytes(t, b.Bytes(), false)
	require.NotEmpty(t, tr.zones)
	assert.NotEqual(t, rawEvents(t, b.Bytes(), "11"), rawEvents(t, out, "11"))
	for _, tid := range []string{"10", "12"} {
		assert.Equal(t, rawEvents(t, b.Bytes(), tid), rawEvents(t, out, tid))
	}
}

func deepStack(n int) []string {
	s := []string{"m!Root"}
	for i := range n + 10 {
		s = append(s, "m!a"+strconv.Itoa(i))
	}
	return s
}

func withRoots(tid int64, stack []string) []string {
	return append(append(tracetest.Roots(1, tid), stack...), "CPU_TIME")
}

// A document may have several arrays of events, and the first of them none: what is put in before
// the first event of all stands at the beginning of the second.
func TestFirstArrayEmpty(t *testing.T) {
	var b bytes.Buffer
	d := tracetest.NewDotnetWriter(&b)
	d.Thread(1)
	for i, n := range []string{d120, "Root wait", d120} {
		s := stack(n)
		d.Sample(float64(10+i), 1, append([]string{"Thread (1)"}, s[max(0, len(s)-100):]...))
	}
	require.NoError(t, d.Close())
	in := b.Bytes()
	const key = `"traceEvents": [`
	twice := bytes.Replace(in, []byte(key), []byte(`"traceEvents": [], "x": 1, `+key), 1)
	want, _ := repairBytes(t, in, true)
	out, tr := repairBytes(t, twice, true)
	require.NotZero(t, tr.Facts.Cut)
	require.True(t, json.Valid(out), "%.300s", out)
	assert.Equal(t, rawEvents(t, want, ""), rawEvents(t, out, ""))
}

// Wherever the events are parted into two arrays, they are repaired alike. Ends need no name.
func TestTwoArrays(t *testing.T) {
	in := small(t)
	evs := rawsOf(t, in)
	for i := range evs {
		if _, rest, ok := strings.Cut(evs[i].text, `", "cat"`); ok && evs[i].ph == 'E' {
			evs[i].text = `{"cat"` + rest
		}
	}
	want, _ := repairBytes(t, assemble(t, in, evs, ", "), true)
	for k := 1; k < len(evs); k++ {
		parted := slices.Clone(evs)
		parted[k-1].text += `], "traceEvents":[` + evs[k].text
		parted = slices.Delete(parted, k, k+1)
		out, _ := repairBytes(t, assemble(t, in, parted, ", "), true)
		require.True(t, json.Valid(out), "parted before event %d", k)
		require.Equal(t, rawEvents(t, want, ""), rawEvents(t, out, ""), "parted before event %d", k)
	}
}
