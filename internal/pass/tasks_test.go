package pass

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"sort"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// An awaitLevel is what the program wrote down: from at on the thread runs level Level of a
// chain of awaits that the pool resumed at level From.
type awaitLevel struct {
	QPC   int64  `json:"qpc"`
	TID   int64  `json:"tid"`
	Chain string `json:"chain"`
	From  int    `json:"from"`
	Level int    `json:"level"`
}

func awaitTruth(t *testing.T, name string) map[int64][]awaitLevel {
	f, err := os.Open(tracetest.Corpus(t, "dotnet10", name))
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	out := map[int64][]awaitLevel{}
	for s := bufio.NewScanner(z); s.Scan(); {
		var l awaitLevel
		require.NoError(t, json.Unmarshal(s.Bytes(), &l))
		out[l.TID] = append(out[l.TID], l)
	}
	return out
}

var chainBody = regexp.MustCompile(`^Lab\.Await\+<(Same|Validate|Trace|Retry)>d__\d+\.MoveNext\(\)`)

// The depth of awaits that are resumed inside each other is right, as the program itself
// tells it, whichever kinds of task events the trace holds.
func TestTaskEventsTellTheDepth(t *testing.T) {
	path := tracetest.Corpus(t, "dotnet10", "await-full.nettrace")
	truth := awaitTruth(t, "await-full.truth.ndjson.zst")
	for _, tt := range []struct {
		name    string
		without []profile.TaskKind
		least   float64 // % of the cut samples that are right
	}{
		{"all", nil, 99},
		{"without work", []profile.TaskKind{profile.TaskBegins, profile.TaskEnds}, 90},
		{"causality only", []profile.TaskKind{profile.TaskBegins, profile.TaskEnds, profile.TaskAwaited, profile.TaskResumes, profile.TaskResumed}, 83},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, info, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, &load.Options{Evidence: true})
			require.NoError(t, err)
			for _, th := range p.Threads {
				var some profile.TaskMarks
				for m := range th.Tasks.All() {
					if !slices.Contains(tt.without, m.Kind) {
						some.Append(m)
					}
				}
				th.Tasks = some
			}
			FixStacks(p, 0)
			right, wrong, rest := 0, 0, 0
			for _, th := range p.Threads {
				levels := truth[th.TID]
				repairs := th.Repairs.Cursor()
				for i, s := range th.Samples.All() {
					repair := repairs.Of(i)
					if s.Cut == profile.Whole || s.Type == profile.SampleEvent {
						continue
					}
					qpc := info.Header.SyncQPC + s.Time
					k := sort.Search(len(levels), func(k int) bool { return levels[k].QPC > qpc }) - 1
					if k < 0 || k+1 == len(levels) || levels[k].Level < 0 || qpc-levels[k].QPC < 1e5 || levels[k+1].QPC-qpc < 1e5 {
						continue // not known, or just changing
					}
					got := 0
					for _, f := range p.Table.AppendFrames(nil, s.Stack) {
						if m := chainBody.FindStringSubmatch(p.Table.MethodOf(f).Name); m != nil && (m[1] == "Same") == (levels[k].Chain == "Same") {
							got++
						}
					}
					switch {
					case repair.How != taskHow:
						rest++
					case got == levels[k].Level-levels[k].From+1:
						right++
					default:
						wrong++
					}
				}
			}
			require.NotZero(t, right)
			assert.Zero(t, wrong)
			assert.GreaterOrEqual(t, 100*float64(right)/float64(right+wrong+rest), tt.least, "%d right, %d not told", right, rest)
		})
	}
}
