package spans

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// The programs of these recordings call F000, F001, ... in order, so that the true
// stack of a cut one is known: all frames up to the innermost, below what whole
// stacks of the thread show under F000.
var labFrame = regexp.MustCompile(`(Alpha|Beta|Gamma|Shared)\.[FGS](\d\d\d)\b`)

// A labMark is a frame of the program: its family and level.
type labMark struct {
	family string
	level  int
}

func labMarks(frames []string) (head []string, marks []labMark) {
	first := -1
	for i, f := range frames {
		if m := labFrame.FindStringSubmatch(f); m != nil {
			if first < 0 {
				first = i
			}
			n, _ := strconv.Atoi(m[2])
			marks = append(marks, labMark{m[1], n})
		}
	}
	return frames[:max(first, 0)], marks
}

func run(family string, to int) (m []labMark) {
	for i := range to + 1 {
		m = append(m, labMark{family, i})
	}
	return m
}

// A labHop is what the program shared says of a thread from a moment on: it went from
// its own chain into the shared one at level from, and is shared levels deep there.
type labHop struct {
	QPC, TID     int64
	From, Shared int
}

// score judges the repaired stacks of cut samples. A sample stands for each
// millisecond that it covers. want returns the true marks at a time, nil where they
// are not known.
func score(t *testing.T, tr *Trace, want func(tid, ns int64, marks []labMark) []labMark) map[string]int {
	heads := map[int64]map[string]bool{}
	table := tr.Profile.Table
	for _, th := range tr.Profile.Threads {
		heads[th.TID] = map[string]bool{}
		for _, s := range th.Samples.All() {
			if head, marks := labMarks(names(table, s.Stack)); s.Cut == profile.Whole && len(marks) > 0 {
				heads[th.TID][strings.Join(head, "\n")] = true
			}
		}
	}
	got := map[string]int{}
	for _, th := range tr.Profile.Threads {
		next := 0
		repairs := th.Repairs.Cursor()
		for i, s := range th.Samples.All() {
			if s.Cut == profile.Whole {
				continue
			}
			rep := repairs.Of(i)
			require.NotNil(t, rep, "a cut sample without a repair")
			next++
			frames := names(table, s.Stack)
			recorded := names(table, rep.Recorded)
			require.Equal(t, recorded, frames[len(frames)-len(recorded):], "what was recorded stays")
			head, marks := labMarks(frames)
			for at := s.Time; at == s.Time || at < s.Time+s.Dur; at += 1e6 {
				truth := want(th.TID, at, marks)
				if truth == nil {
					got["not judged"]++
					continue
				}
				got["judged"]++
				bridge := slices.Index(frames, profile.Bridge)
				switch {
				case bridge >= 0:
					_, before := labMarks(frames[:bridge])
					_, after := labMarks(frames[bridge:])
					if len(after) <= len(truth) && slices.Equal(truth[len(truth)-len(after):], after) && len(before) <= len(truth) && slices.Equal(truth[:len(before)], before) {
						got["bridged"]++
					} else {
						got["wrong"]++
					}
				case slices.Equal(truth, marks) && (len(heads[th.TID]) == 0 || heads[th.TID][strings.Join(head, "\n")]):
					got["exact"]++
				default:
					got["wrong"]++
				}
			}
		}
		require.Equal(t, next, th.Repairs.Len(), "a repair of a sample that is not cut")
	}
	return got
}

func percent(got map[string]int, what string) float64 {
	return 100 * float64(got[what]) / float64(max(1, got["judged"]))
}

// The repair of real dotnet-trace files whose true stacks are known.
func TestTruth(t *testing.T) {
	t.Run("chain", func(t *testing.T) {
		tr := readBytes(t, unpack(t, "../../testdata/chain.chromium.json.zst"), nil)
		pass.FixStacks(tr.Profile, 0.9)
		got := score(t, tr, func(_, _ int64, marks []labMark) []labMark {
			if len(marks) == 0 {
				return nil
			}
			last := marks[len(marks)-1]
			return run(last.family, last.level)
		})
		t.Logf("chain: %.1f %% exact, %.1f %% wrong, %.1f %% bridged of %d", percent(got, "exact"), percent(got, "wrong"), percent(got, "bridged"), got["judged"])
		assert.GreaterOrEqual(t, percent(got, "exact"), 97.0)
		assert.LessOrEqual(t, percent(got, "wrong"), 0.3)
	})
	t.Run("shared", func(t *testing.T) {
		file := unpack(t, tracetest.Corpus(t, "dotnet10", "reference", "shared.chromium.json.zst"))
		own, err := os.Open(tracetest.Corpus(t, "dotnet10", "shared.nettrace"))
		require.NoError(t, err)
		defer own.Close()
		r, err := nettrace.NewReader(own, nil)
		require.NoError(t, err)
		zero, freq := r.Header().SyncQPC, r.Header().Frequency
		b, err := os.ReadFile(tracetest.Corpus(t, "dotnet10", "shared.truth.ndjson"))
		require.NoError(t, err)
		hops := map[int64][]labHop{}
		for line := range strings.Lines(string(b)) {
			var h labHop
			require.NoError(t, json.Unmarshal([]byte(line), &h))
			h.QPC = int64(float64(h.QPC-zero) * 1e9 / float64(freq))
			hops[h.TID] = append(hops[h.TID], h)
		}
		tr := readBytes(t, file, nil)
		pass.FixStacks(tr.Profile, 0.9)
		family := map[int64]string{}
		for _, th := range tr.Profile.Threads {
			for _, s := range th.Samples.All() {
				if _, m := labMarks(names(tr.Profile.Table, s.Stack)); s.Cut == profile.Whole && len(m) > 0 && m[0].family != "Shared" {
					family[th.TID] = m[0].family
				}
			}
		}
		got := score(t, tr, func(tid, ns int64, marks []labMark) []labMark {
			h := hops[tid]
			i := sort.Search(len(h), func(i int) bool { return h[i].QPC > ns }) - 1
			// Just behind and before an entry the program still moves.
			if i < 0 || ns-h[i].QPC < 1e6 || i+1 < len(h) && h[i+1].QPC-ns < 3e5 || len(marks) == 0 {
				return nil
			}
			truth := run(family[tid], h[i].From)
			if h[i].Shared >= 0 {
				truth = append(truth, run("Shared", h[i].Shared)...)
			}
			if truth[len(truth)-1] != marks[len(marks)-1] {
				return nil
			}
			return truth
		})
		t.Logf("shared: %.1f %% exact, %.1f %% wrong, %.1f %% bridged of %d", percent(got, "exact"), percent(got, "wrong"), percent(got, "bridged"), got["judged"])
		assert.GreaterOrEqual(t, percent(got, "exact"), 60.0, fmt.Sprint(got))
		assert.LessOrEqual(t, percent(got, "wrong"), 2.0, fmt.Sprint(got))
	})
}
