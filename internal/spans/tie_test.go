package spans

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// A threadText is what a thread is in a file.
type threadText struct {
	raw    []string
	events []tracetest.SpanEvent
}

func threadsOf(t testing.TB, in []byte) map[string]*threadText {
	r, err := chromium.NewReader(bytes.NewReader(in), nil)
	require.NoError(t, err)
	out := map[string]*threadText{}
	for ev, err := range r.All() {
		require.NoError(t, err)
		if ev.Phase != 'B' && ev.Phase != 'E' {
			continue
		}
		th := out[string(ev.TID)]
		if th == nil {
			th = &threadText{}
			out[string(ev.TID)] = th
		}
		ts, err := strconv.ParseFloat(string(ev.TS.Text), 64)
		require.NoError(t, err)
		th.raw = append(th.raw, string(ev.Raw))
		th.events = append(th.events, tracetest.SpanEvent{Phase: ev.Phase, Name: string(ev.Name), Args: string(ev.Args), TS: ts})
	}
	return out
}

// checkSpeedscope asserts that speedscope loses no end of a thread with a repair, and
// that events without the mark have kept their bytes. It
// returns how many ends speedscope lost before.
func checkSpeedscope(t testing.TB, in, out []byte, tr *Trace, plain bool) int {
	repaired := map[string]bool{}
	for _, th := range tr.Profile.Threads {
		if th.Repairs.Len() > 0 {
			repaired[strconv.FormatInt(th.TID, 10)] = true
		}
	}
	lostBefore := 0
	before, after := threadsOf(t, in), threadsOf(t, out)
	for tid, b := range before {
		a := after[tid]
		if !repaired[tid] {
			require.Equal(t, b.raw, a.raw, "thread %s", tid)
			continue
		}
		lost, _, _ := tracetest.Speedscope(b.events)
		lostBefore += lost
		lost, open, _ := tracetest.Speedscope(a.events)
		assert.Zero(t, lost, "lost ends of thread %s", tid)
		assert.Zero(t, open, "open frames of thread %s", tid)
		if plain {
			continue // inserted events look like others
		}
		rest := b.raw
		for _, raw := range a.raw {
			if strings.Contains(raw, repairMark+`"`) {
				continue // put in, moved, or paired with such
			}
			for len(rest) > 0 && rest[0] != raw {
				rest = rest[1:] // left out
			}
			require.NotEmpty(t, rest, "thread %s: %s was not in the file", tid, raw)
			rest = rest[1:]
		}
	}
	return lostBefore
}

func TestSpeedscopeReal(t *testing.T) {
	files := []string{"../../testdata/chain.chromium.json.zst"}
	if !testing.Short() {
		names := "[rw]*" // recursion, requests of a client, a server
		if tracetest.Every(t) {
			names = "*"
		}
		more, err := filepath.Glob("../../../shared/corpus/dotnet10/reference/" + names + ".chromium.json.zst")
		require.NoError(t, err)
		files = append(files, more...)
	}
	marked := 0 // not every recording has a clash
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in := unpack(t, file)
			tr := readBytes(t, in, &Options{Lean: true})
			pass.FixStacks(tr.Profile, 0.9)
			for _, plain := range []bool{false, true} {
				marked += int(checkSpeedscope(t, in, rewriteBytes(t, tr, plain), tr, plain))
			}
		})
	}
	assert.NotZero(t, marked, "no recording has a clash")
}

// The smallest file that speedscope misreads: a call ends with its caller, and the
// next call is of the same name.
func TestSpeedscopeTie(t *testing.T) {
	deep := stack("Root b0..b129")
	for i, c := range []struct{ one, two string }{
		{"Root Run Wait", "Root Wait Go"},
		{"Root Run Wait x", "Root Wait"},
		{"Root Wait Wait Run Wait Run Wait", "Root Wait Run"},
		{"Root Run Wait Wait", "Root Wait Wait Wait"},
		{"Root a b c", "Root b c a"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var b bytes.Buffer
			d := tracetest.NewDotnetWriter(&b)
			d.Thread(7)
			at := 10.0
			for _, s := range [][]string{deep[:90], deep[len(deep)-100:], deep[:90], stack(c.one), stack(c.two), stack(c.one), stack("Root")} {
				d.Sample(at, 1, withRoots(7, s))
				at++
			}
			require.NoError(t, d.Close())
			for _, plain := range []bool{false, true} {
				out, tr := repairBytes(t, b.Bytes(), plain)
				require.NotZero(t, tr.Profile.Threads[0].Repairs.Len())
				assert.NotZero(t, checkSpeedscope(t, b.Bytes(), out, tr, plain))
				checkSpans(t, parse(t, out))
			}
		})
	}
}

// Whatever is repaired, and in whatever order the file is, speedscope loses nothing.
func TestSpeedscopeWalk(t *testing.T) {
	lost := 0
	for seed := range uint64(6) {
		in, _, _ := walk(t, tracetest.Walk{Seed: 300 + seed, Threads: 3, Bytes: 512 << 10, Deep: 0.4})
		switch seed % 3 {
		case 1:
			evs := rawsOf(t, in)
			slices.SortStableFunc(evs, func(a, b raw) int { return cmp.Compare(a.ns, b.ns) })
			in = assemble(t, in, evs, ", ")
		case 2: // latest first
			evs := rawsOf(t, in)
			slices.SortStableFunc(evs, func(a, b raw) int { return cmp.Compare(b.ns, a.ns) })
			in = assemble(t, in, evs, ", ")
		}
		for _, plain := range []bool{false, true} {
			out, tr := repairBytes(t, in, plain)
			lost += checkSpeedscope(t, in, out, tr, plain)
			again, _ := repairBytes(t, out, plain)
			require.True(t, bytes.Equal(out, again), "seed %d: repair of the repaired trace changes it", seed)
		}
	}
	assert.NotZero(t, lost)
}

// With times that count from 1970 in microseconds a float64 tells no more than some microseconds
// apart: ends of a span that is shorter have no earlier time, and stay within it.
func TestSpeedscopeShortSpans(t *testing.T) {
	deep := stack("Root b0..b129")
	for _, step := range []float64{0.001, 0.004, 0.25, 1} {
		var b bytes.Buffer
		d := tracetest.NewDotnetWriter(&b)
		d.Thread(7)
		at := 1712195495519.0
		for _, s := range [][]string{deep[:90], deep[len(deep)-100:], deep[:90], stack("Root Run Wait"), stack("Root Wait Go"), deep[:90], stack("Root Run Wait"), deep[len(deep)-100:], stack("Root Wait Go")} {
			d.Sample(at, float32(step), withRoots(7, s))
			at += step
		}
		require.NoError(t, d.Close())
		out, tr := repairBytes(t, b.Bytes(), false)
		require.NotZero(t, tr.Profile.Threads[0].Repairs.Len())
		checkSpans(t, parse(t, out))
	}
}

// Between two samples of tracefix's own output there may be ends only. Those of a sample that takes
// no time have no earlier time.
func TestSpeedscopeEndsOnly(t *testing.T) {
	var evs []string
	add := func(ts int, list string) {
		for _, x := range strings.Fields(list) {
			evs = append(evs, fmt.Sprintf(`{"ph":%q,"ts":%d,"pid":1,"tid":1,"name":%q,"cat":"s"}`, x[:1], ts, x[1:]))
		}
	}
	add(1000, "BM Ba Bc Bd Bd Ed Ed Ec") // cut, and over at once
	add(1001, "Ea BM BM Ba Ea EM EM EM")
	add(1001, "Ba Bb Ba Ba BM")
	add(2001, "EM Ea Ea Eb BM BM Bc Ba")
	add(2002, "Ea Ec EM EM Ea")
	in := `{"traceEvents":[{"ph":"M","ts":0,"pid":1,"tid":1,"name":"thread_name","args":{"name":"t","tracefix":{"holds":"samples","cut":1}}},` + strings.Join(evs, ",") + `]}`
	tr := readBytes(t, []byte(in), &Options{MaxDepth: 5})
	pass.FixStacks(tr.Profile, 0.9)
	require.NotZero(t, tr.Profile.Threads[0].Repairs.Len())
	checkSpans(t, parse(t, rewriteBytes(t, tr, false)))
}
