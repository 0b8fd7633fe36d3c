package spans

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// checkPairs asserts that ends find their begins as in Perfetto, each the innermost one: an end
// that has a name or a category closes the innermost span that has the same. It returns the numbers
// of the begin and end of each span among the begins and ends.
func checkPairs(t *testing.T, d document) (pairs [][2]int) {
	type span struct {
		event
		at int
	}
	open := map[string][]span{}
	at := 0
	for i, e := range d.TraceEvents {
		th := e.thread()
		switch s := open[th]; e.Ph {
		case "B":
			open[th] = append(s, span{e, at})
			at++
		case "E":
			require.NotEmpty(t, s, "event %d ends nothing", i)
			b := s[len(s)-1]
			if e.Name != "" {
				require.Equal(t, b.Name, e.Name, "event %d", i)
			}
			if e.Cat != "" {
				require.Equal(t, b.Cat, e.Cat, "event %d", i)
			}
			pairs = append(pairs, [2]int{b.at, at})
			at++
			open[th] = s[:len(s)-1]
		}
	}
	for th, s := range open {
		require.Empty(t, s, "thread %s", th)
	}
	return pairs
}

// Whatever categories begins and ends have, the repaired spans are the same, and Perfetto finds them.
func TestCategories(t *testing.T) {
	byName := func(name string) string { return [...]string{"", "System", "Lab", "a,b"}[len(name)%4] }
	for _, k := range []struct {
		name   string
		noSF   bool
		change func(e map[string]any, end bool, call int) // call counts the begins; an end has that of its begin
	}{
		{"as they are", false, func(map[string]any, bool, int) {}},
		{"ends without category", false, func(e map[string]any, end bool, _ int) {
			if end {
				delete(e, "cat")
			}
		}},
		{"ends with an empty category", false, func(e map[string]any, end bool, _ int) {
			if end {
				e["cat"] = ""
			}
		}},
		{"ends without name and category", false, func(e map[string]any, end bool, _ int) {
			if end {
				delete(e, "cat")
				delete(e, "name")
			}
		}},
		{"none", false, func(e map[string]any, _ bool, _ int) { delete(e, "cat") }},
		{"by frame", false, func(e map[string]any, _ bool, _ int) { e["cat"] = byName(e["name"].(string)) }},
		{"by frame, without sf", true, func(e map[string]any, _ bool, _ int) { e["cat"] = byName(e["name"].(string)) }},
		{"by frame, ends without", false, func(e map[string]any, end bool, _ int) {
			e["cat"] = byName(e["name"].(string))
			if end {
				delete(e, "cat")
			}
		}},
		{"by frame, ends without it and name", false, func(e map[string]any, end bool, _ int) {
			e["cat"] = byName(e["name"].(string))
			if end {
				delete(e, "cat")
				delete(e, "name")
			}
		}},
		{"by call, without sf", true, func(e map[string]any, _ bool, call int) { e["cat"] = fmt.Sprint("c", call%3) }},
		{"by call", false, func(e map[string]any, _ bool, call int) { e["cat"] = fmt.Sprint("c", call%3) }},
		{"some calls without", false, func(e map[string]any, _ bool, call int) {
			if call%2 == 0 {
				delete(e, "cat")
			}
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			for seed := range uint64(2) {
				cut, _, truth := walk(t, tracetest.Walk{Seed: seed, Threads: 2, Bytes: 1 << 20, Deep: 0.5})
				repair := func(in []byte, plain bool) document {
					tr := readBytes(t, in, nil)
					f := newFixer(tr.Profile)
					f.fix(func(th *profile.Thread, s profile.Sample) []string {
						full := truth[truthKey(th.TID, s.Time)]
						unknown := func(name string) bool { _, ok := f.frames[name]; return !ok } // the module needs sf
						if seed%2 == 0 && !slices.ContainsFunc(full, unknown) {
							return full
						}
						return append([]string{profile.Bridge}, names(tr.Profile.Table, s.Stack)...)
					})
					return parse(t, rewriteBytes(t, tr, plain))
				}
				with := func(change func(e map[string]any, end bool, call int)) []byte {
					var d map[string]any
					numbers := json.NewDecoder(bytes.NewReader(cut))
					numbers.UseNumber()
					require.NoError(t, numbers.Decode(&d))
					open, calls := map[string][]int{}, 0
					for _, e := range d["traceEvents"].([]any) {
						e := e.(map[string]any)
						th := fmt.Sprint(e["pid"], "/", e["tid"])
						if k.noSF {
							delete(e, "sf")
						}
						switch s := open[th]; e["ph"] {
						case "B":
							open[th] = append(s, calls)
							change(e, false, calls)
							calls++
						case "E":
							change(e, true, s[len(s)-1])
							open[th] = s[:len(s)-1]
						}
					}
					in, err := json.Marshal(d)
					require.NoError(t, err)
					return in
				}
				want := checkPairs(t, repair(with(func(map[string]any, bool, int) {}), true))
				in := with(k.change)
				require.NotEqual(t, want, checkPairs(t, parse(t, in)), "nothing was repaired")
				for _, plain := range []bool{false, true} {
					require.Equal(t, want, checkPairs(t, repair(in, plain)), "seed %d, plain %v", seed, plain)
				}
			}
		})
	}
}
