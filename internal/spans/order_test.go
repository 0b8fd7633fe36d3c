package spans

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// raw is an event as text with what sorting needs.
type raw struct {
	text, thread string
	ph           byte
	ns           int64
}

func rawsOf(t testing.TB, in []byte) []raw {
	r, err := chromium.NewReader(bytes.NewReader(in), nil)
	require.NoError(t, err)
	var out []raw
	for ev, err := range r.All() {
		require.NoError(t, err)
		out = append(out, raw{string(ev.Raw), string(ev.PID) + "/" + string(ev.TID), ev.Phase, ev.TS.NS})
	}
	return out
}

// assemble replaces the events of the file in by evs.
func assemble(t testing.TB, in []byte, evs []raw, sep string) []byte {
	var b strings.Builder
	for i, e := range evs {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(e.text)
	}
	from := bytes.Index(in, []byte(`"traceEvents": [`)) + len(`"traceEvents": [`)
	to := bytes.Index(in, []byte(`], "displayTimeUnit"`))
	require.Less(t, from, to)
	return slices.Concat(in[:from], []byte(b.String()), in[to:])
}

// spansOf returns begin and end events per thread in order of time.
func spansOf(d document) map[string][]string {
	byThread := map[string][]event{}
	for _, e := range d.TraceEvents {
		if e.Ph == "B" || e.Ph == "E" {
			byThread[e.thread()] = append(byThread[e.thread()], e)
		}
	}
	out := map[string][]string{}
	for th, evs := range byThread {
		slices.SortStableFunc(evs, func(a, b event) int {
			switch {
			case a.ts() < b.ts():
				return -1
			case a.ts() > b.ts():
				return 1
			}
			return 0
		})
		for _, e := range evs {
			out[th] = append(out[th], fmt.Sprintf("%s %s %.5f", e.Ph, e.Name, e.ts()+1e-7)) // an end may take place earlier, see tie
		}
	}
	return out
}

// Neither the order of the events in the file nor other events in between make a
// difference to the repair, nor the repair to them.
func TestAnyOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		order func(evs []raw, rnd *rand.Rand)
	}{
		{"as written", func([]raw, *rand.Rand) {}},
		{"by time over all threads", func(evs []raw, _ *rand.Rand) {
			slices.SortStableFunc(evs, func(a, b raw) int { return int(a.ns - b.ns) })
		}},
		{"latest first", func(evs []raw, _ *rand.Rand) {
			slices.SortStableFunc(evs, func(a, b raw) int { return int(b.ns - a.ns) })
		}},
		{"shuffled", func(evs []raw, rnd *rand.Rand) {
			// Events of one time keep their order: it is all that tells their nesting.
			key := map[int64]int{}
			for _, e := range evs {
				if _, ok := key[e.ns]; !ok {
					key[e.ns] = rnd.Int()
				}
			}
			slices.SortStableFunc(evs, func(a, b raw) int {
				switch {
				case key[a.ns] < key[b.ns]:
					return -1
				case key[a.ns] > key[b.ns]:
					return 1
				}
				return 0
			})
		}},
		{"one thread shuffled", func(evs []raw, rnd *rand.Rand) {
			for i := 0; i+400 < len(evs); i += 400 {
				if evs[i].thread == "0/1001" && evs[i+399].thread == "0/1001" {
					a := slices.Clone(evs[i : i+400])
					slices.SortStableFunc(a, func(a, b raw) int { return int(b.ns - a.ns) })
					copy(evs[i:], a)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut, whole, truth := walk(t, tracetest.Walk{Seed: 7, Threads: 3, Bytes: 1 << 20, Deep: 0.5})
			rnd := rand.New(rand.NewPCG(1, 1))
			evs := rawsOf(t, cut)
			c.order(evs, rnd)
			// Other events, of the same threads and of others.
			var mixed []raw
			others := []string{
				`{"ph":"M","name":"thread_name","pid":0,"tid":1001,"args":{"name":"x"}}`,
				`{"ph":"C","name":"Thread (1001)","pid":0,"tid":1001,"ts":%d,"args":{"v":1}}`,
				`{"ph":"X","name":"x","pid":0,"tid":1001,"ts":%d,"dur":5}`,
				`{"ph":"i","name":"y","pid":0,"tid":1000,"ts":%d,"s":"t"}`,
				`{"ph":"b","cat":"sql","name":"CPU_TIME","id":"0x1","pid":0,"tid":1001,"ts":%d}`,
				`{"ph":"e","cat":"sql","name":"CPU_TIME","id":"0x1","pid":0,"tid":1001,"ts":%d}`,
				`{"ph":"B","name":"other","pid":0,"tid":"x","ts":%d}`,
				`{"ph":"E","name":"other","pid":0,"tid":"x","ts":%d}`,
				`{}`,
			}
			for i, e := range evs {
				mixed = append(mixed, e)
				for i%7 == 0 && rnd.IntN(3) > 0 {
					o := others[rnd.IntN(len(others))]
					if strings.Contains(o, "%d") {
						o = fmt.Sprintf(o, e.ns/1000)
					}
					mixed = append(mixed, raw{text: o})
				}
			}
			in := assemble(t, cut, mixed, ",\n")
			tr := readBytes(t, in, nil)
			newFixer(tr.Profile).fix(func(th *profile.Thread, s profile.Sample) []string {
				full := truth[truthKey(th.TID, s.Time)]
				require.NotNil(t, full, "no truth at %d", s.Time)
				return full
			})
			out := rewriteBytes(t, tr, true)
			got, want := spansOf(parse(t, out)), spansOf(parse(t, whole))
			for th := range want {
				require.Equal(t, len(want[th]), len(got[th]), th)
				assert.Equal(t, want[th], got[th], th)
			}
			// The other events are where they were, and so is what is left of the rest.
			kept := map[string]bool{}
			for _, o := range mixed {
				if o.thread == "" {
					kept[o.text] = true
				}
			}
			only := func(evs []raw) (o []string) {
				for _, e := range evs {
					if kept[e.text] {
						o = append(o, e.text)
					}
				}
				return o
			}
			assert.Equal(t, only(mixed), only(rawsOf(t, out)))
		})
	}
}
