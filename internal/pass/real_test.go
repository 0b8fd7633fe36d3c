package pass

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix"
)

// A realTruth tells what is missing of the stacks that a recorder really cut: what perf
// saw of them at the same moment.
type realTruth struct {
	names   map[int]string      // of frames
	missing map[sampleKey][]int // frames, outermost first
}

type sampleKey struct {
	tid   int64
	ticks int64 // 100 ns
}

func loadRealTruth(t testing.TB, path string) realTruth {
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	out := realTruth{map[int]string{}, map[sampleKey][]int{}}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Frame   *int
			Name    string
			TID     *int64
			TS      float64
			Missing []int
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		switch {
		case e.Frame != nil:
			out.names[*e.Frame] = e.Name
		case e.TID != nil:
			out.missing[sampleKey{*e.TID, int64(math.Round(e.TS * 1e4))}] = e.Missing
		}
	}
	require.NoError(t, lines.Err())
	return out
}

// A realScore counts answers to stacks that were really cut.
type realScore struct {
	judged, exact, wrong, bridged int
	missing, put, right           int // frames
	bands                         bands
}

func (s *realScore) pct(n int) float64    { return 100 * float64(n) / float64(max(1, s.judged)) }
func (s *realScore) frames(n int) float64 { return 100 * float64(n) / float64(max(1, s.missing)) }

func (s *realScore) String() string {
	return fmt.Sprintf("%5d  exact %6.2f  wrong %5.2f  bridged %6.2f  frames restored %6.2f wrong %5.2f", s.judged, s.pct(s.exact), s.pct(s.wrong), s.pct(s.bridged),
		s.frames(s.right), s.frames(s.put-s.right))
}

// scoreReal holds repairs against what perf saw.
func (r *recording) scoreReal(truth realTruth, res [][]stackfix.Repair) (sc realScore, v verdicts) {
	v = verdicts{}
	for i, t := range r.threads {
		for _, rep := range res[i] {
			s := t.Samples[rep.Index]
			missing, ok := truth.missing[sampleKey{r.tids[i], int64(math.Round(float64(s.Time) / 100))}]
			if s.Evidence || !ok {
				continue
			}
			want := make([]string, len(missing))
			for k, f := range missing {
				want[k] = truth.names[f]
			}
			sc.judged++
			sc.missing += len(want)
			verdict := "bridged"
			if rep.Stack != 0 {
				got := r.names(rep.Stack)
				verdict = sc.judge(want, got[:len(got)-(r.tree.Depth(s.Stack)-int(rep.Dropped))])
			}
			switch verdict {
			case "exact":
				sc.exact++
			case "wrong":
				sc.wrong++
			default:
				sc.bridged++
			}
			v[rep.How.String()+":"+verdict]++
			if rep.Stack != 0 && rep.How != stackfix.Bridge {
				sc.bands.add(&rep, verdict == "exact")
			}
		}
	}
	return sc, v
}

// judge holds the frames that were put before those recorded against those that were missing.
func (s *realScore) judge(want, put []string) string {
	pre, post, bridge := put, []string(nil), false
	for i, n := range put {
		if n == bridgeName {
			pre, post, bridge = put[:i], put[i+1:], true
			break
		}
	}
	okPre, okPost := 0, 0
	for okPre < min(len(pre), len(want)) && pre[okPre] == want[okPre] {
		okPre++
	}
	for okPost < min(len(post), len(want)) && post[len(post)-1-okPost] == want[len(want)-1-okPost] {
		okPost++
	}
	s.put += len(pre) + len(post)
	switch {
	case bridge:
		s.right += okPre + okPost
		if okPre == len(pre) && okPost == len(post) && okPre+okPost <= len(want) {
			return "bridged"
		}
		return "wrong"
	case len(put) == 0 && len(want) > 0:
		return "bridged"
	case len(pre) == len(want) && okPre == len(want):
		s.right += okPre
		return "exact"
	}
	return "wrong"
}

// The recordings of real programs.
var realRows = []string{"script", "serial", "roslyn", "mvc-ef", "graphql", "bus", "tests", "mvc-ef-tpl", "graphql-tpl", "bus-tpl"}

// TestTruthReal judges by stacks that a recorder really cut.
func TestTruthReal(t *testing.T) {
	if testing.Short() {
		t.Skip("reads ten recordings")
	}
	var exact, wrong, frames float64
	var all bands
	n := 0
	for _, name := range realRows {
		t.Run(name, func(t *testing.T) {
			path := corpus + "real/" + name
			truth := loadRealTruth(t, path+".truth.ndjson.zst")
			r := loadRecording(t, path+".nettrace.zst", false)
			began := time.Now()
			res := r.fix()
			took := time.Since(began)
			sc, v := r.scoreReal(truth, res)
			all.addAll(&sc.bands)
			t.Logf("REAL %-12s %v  %v %v", name, &sc, took.Round(time.Millisecond), v)
			p, _ := r.scoreReal(truth, r.previous(true))
			t.Logf("PEER %-12s %v", name, &p)
			require.Positive(t, sc.judged)
			assert.LessOrEqual(t, sc.pct(sc.wrong), 3.0, "wrong, percent")
			exact, wrong, frames, n = exact+sc.pct(sc.exact), wrong+sc.pct(sc.wrong), frames+sc.frames(sc.right), n+1
		})
	}
	if n > 0 {
		t.Logf("BANDS%v", &all)
		t.Logf("MEAN exact %.2f wrong %.2f frames %.2f", exact/float64(n), wrong/float64(n), frames/float64(n))
	}
}
