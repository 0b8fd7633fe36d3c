package spans

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// The inputs on which the two public tools fail (dotnet-trace-convert.md section 4),
// with the right result: the true stack of each sample, if it can be known ("exact"),
// else a bridge below frames that are truly there ("bridge"), and either of them where
// evidence is thin ("honest"). In "same" nothing is to be repaired: the bytes stay.
func TestKnownFailures(t *testing.T) {
	type thread []string // true stacks, a ms each
	var roots thread     // show that Root is where threads begin
	for i := range 20 {
		roots = append(roots, fmt.Sprintf("Root r0..r%d", 20+i%7))
	}
	for _, c := range []struct {
		name    string
		threads []thread
		limit   int // 0: 100
		want    string
	}{
		{"P0 C0 between the frames it continues", []thread{{b90, d120, b90}}, 0, "exact"},
		{"P1 base not open before", []thread{{"Root wait", d120, "Root wait"}}, 0, "bridge"},
		{"P2 base open two samples ago", []thread{{b90, "Root wait", d120, "Root wait", b90}}, 0, "honest"},
		{"P3 base on another thread only", []thread{{b90, b90 + "x"}, {"Root wait", d120, "Root wait"}}, 0, "honest"},
		{"P4 C1 first sample", []thread{{d120, d120 + " d30", b90, d120}}, 0, "exact"},
		{"P5 base with two children", []thread{{"Root m X q", "Root m X c1..c99", "Root m X e1..e99", "Root m X q"}}, 0, "exact"},
		{"P6 C4 recursion", []thread{{"Root F*40 g0..g19", "Root F*60 g0..g69", "Root F*40 g0..g19"}}, 0, "honest"},
		{"P7 C7 base twice in the stack before", []thread{{"Root X p X q", "Root X p X c0..c98"}}, 0, "honest"},
		{"P8 complete and deeper", []thread{{"Boot b0..b9", "Root r0..r258", "Boot b0..b9"}}, 1000, "same"},
		{"P9 complete with the root of another thread", []thread{roots, roots, {"Boot b0..b9", "Root r0..r98", "Boot b0..b9"}}, 0, "honest"},
		{"C2 anchored from afar", []thread{{b90, "Root wait", d120, d120, b90}}, 0, "exact"},
		{"C3 the next sample anchors it", []thread{{"Boot w", d120, b90}}, 0, "exact"},
		{"C5 recursion on the root", []thread{{"F*60", "F*150", "F*60"}}, 0, "honest"},
		{"C6 one frame in common, at three places", []thread{{"Root Run A Run B Run C", "Root Run A Run x0..x98"}}, 0, "honest"},
		{"C9 complete, the limit is another", []thread{{"Boot b0..b9", "Root r0..r148", "Boot b0..b9"}}, 1000, "same"},
		{"C10 more new frames than the limit", []thread{{b90, b90 + "d0..d149", b90 + "d0..d149", b90}}, 0, "bridge"},
		{"C11 P17 unresolved frames", []thread{{"Root ? a ? b", "Root ? a ? c0..c98", "Root ? a ? b"}}, 0, "honest"},
		{"P11 another limit", []thread{{b90, d120, b90}}, 99, "exact"},
		{"P11 another limit, no base", []thread{{"Root wait", d120, "Root wait"}}, 99, "bridge"},
		{"P11 recursion on the root", []thread{{"Root a0..a20 Root r0..r9", "Root a0..a20 Root r0..r98", "Root a0..a20 Root r0..r9"}}, 0, "honest"},
		{"P11 recursion on the root with the frames that are open", []thread{{"Root a b c Root a b r0", "Root a b c Root a b r0..r96", "Root a b c"}}, 0, "honest"},
		// Begins where the thread does, and nothing shows a call of Root: complete, for
		// all that the file tells.
		{"P11 recursion on the root that is not seen", []thread{{"Root a0..a20", "Root a0..a20 Root r0..r98", "Root a0..a20"}}, 0, "same"},
		{"P16 equal samples, two in a row, at the end", []thread{{b90, d120, d120, d120 + " d30", d120 + " d30 d31"}}, 0, "exact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := c.limit
			if limit == 0 {
				limit = 100
			}
			var cut, whole bytes.Buffer
			a, b := tracetest.NewDotnetWriter(&cut), tracetest.NewDotnetWriter(&whole)
			truth := map[string][]string{}
			for i, th := range c.threads {
				tid := int64(7 + i)
				a.Thread(tid)
				b.Thread(tid)
				for j, n := range th {
					s := stack(n)
					at := float64(100*i + j + 10)
					truth[truthKey(tid, int64(at)*1e6)] = s
					a.Sample(at, 1, withRoots(tid, s[max(0, len(s)-limit):]))
					b.Sample(at, 1, withRoots(tid, s))
				}
			}
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
			ask := &Options{}
			if limit < 100 {
				ask.MaxDepth = limit // as the user says: the file does not
			}
			repair := func(in []byte) ([]byte, *Trace) {
				tr := readBytes(t, in, ask)
				pass.FixStacks(tr.Profile, 0.9)
				return rewriteBytes(t, tr, true), tr
			}
			out, tr := repair(cut.Bytes())
			got := parse(t, out)
			checkSpans(t, got)
			checkNeverShrinks(t, parse(t, cut.Bytes()), got)
			again, _ := repair(out)
			assert.True(t, bytes.Equal(out, again), "repair of the repaired trace changes it")
			if c.want == "same" {
				assert.True(t, bytes.Equal(cut.Bytes(), out), "bytes differ")
				return
			}
			if c.want == "exact" {
				assert.Equal(t, spansOf(parse(t, whole.Bytes())), spansOf(got))
			}
			bridged := 0
			for _, th := range tr.Profile.Threads {
				for _, s := range th.Samples.All() {
					want := truth[truthKey(th.TID, s.Time)]
					have := names(tr.Profile.Table, s.Stack)
					if slices.Equal(want, have) {
						continue
					}
					i := slices.Index(have, profile.Bridge)
					if !assert.GreaterOrEqual(t, i, 0, "at %d ms: wrong: %d frames, %d are true", s.Time/1e6, len(have), len(want)) {
						continue
					}
					bridged++
					assert.Equal(t, want[:i], have[:i], "before the bridge")
					assert.Equal(t, want[len(want)-limit:], have[i+1:], "behind the bridge")
				}
			}
			assert.True(t, c.want != "exact" || bridged == 0, "bridged")
			assert.True(t, c.want != "bridge" || bridged > 0, "not bridged")
		})
	}
}
