package spans

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// marked counts the events with the mark.
func marked(d document) (n int) {
	for _, e := range d.TraceEvents {
		if strings.HasSuffix(e.Cat, repairMark) || e.Cat == repairMark[1:] {
			n++
		}
	}
	return n
}

// A repaired file that is repaired again stays as it is; with --plain it loses its marks, as if it
// had been repaired so at first.
func TestAgain(t *testing.T) {
	for seed := range uint64(4) {
		cut, _, _ := walk(t, tracetest.Walk{Seed: 300 + seed, Threads: 2, Bytes: 1 << 20, Deep: 0.4})
		for _, array := range []bool{false, true} {
			in := cut
			if array {
				in = []byte("[" + strings.Join(rawEvents(t, cut, ""), ", ") + "]")
			}
			once, tr := repairBytes(t, in, false)
			require.NotEmpty(t, tr.zones)
			require.NotZero(t, marked(parse(t, once)))
			plain, _ := repairBytes(t, in, true)
			for _, c := range []struct {
				name     string
				in, want []byte
				plain    bool
			}{
				{"marks", once, once, false},
				{"then plain", once, plain, true},
				{"plain", plain, plain, true},
			} {
				got, _ := repairBytes(t, c.in, c.plain)
				if !bytes.Equal(c.want, got) {
					n := 0
					for n < min(len(got), len(c.want)) && got[n] == c.want[n] {
						n++
					}
					t.Errorf("seed %d array %v %s: at %d want %.200q got %.200q", seed, array, c.name, n, c.want[max(0, n-100):], got[max(0, n-100):])
				}
			}
			got, _ := repairBytes(t, plain, false)
			assert.Equal(t, rawEvents(t, plain, ""), rawEvents(t, got, ""), "plain, then with marks")
		}
	}
}

// What a second repair puts in beside what the first one did has the category of what it is paired with.
func TestAgainDeeper(t *testing.T) {
	for seed := range uint64(4) {
		cut, _, _ := walk(t, tracetest.Walk{Seed: 300 + seed, Threads: 2, Bytes: 1 << 20, Deep: 0.4})
		for _, plain1 := range []bool{false, true} {
			once, _ := repairBytes(t, cut, plain1)
			deepest := readBytes(t, once, nil).Facts.Deepest
			require.NotZero(t, deepest)
			for _, plain2 := range []bool{false, true} {
				t.Run(fmt.Sprint(seed, plain1, plain2), func(t *testing.T) {
					tr := readBytes(t, once, &Options{Log: !plain2, MaxDepth: deepest})
					require.NotEmpty(t, tr.zones)
					newFixer(tr.Profile).fix(func(th *profile.Thread, s profile.Sample) []string {
						rec := names(tr.Profile.Table, s.Stack)
						return slices.Concat(rec[1:3], []string{profile.Bridge}, rec)
					})
					out := rewriteBytes(t, tr, plain2)
					d := parse(t, out)
					checkSpans(t, d)
					checkPairs(t, d)
					checkNeverShrinks(t, parse(t, once), d)
					if plain2 {
						assert.Zero(t, marked(d))
					}
					tr = readBytes(t, out, nil)
					pass.FixStacks(tr.Profile, 0.9)
					assert.True(t, bytes.Equal(out, rewriteBytes(t, tr, plain2)))
				})
			}
		}
	}
}
