package pass

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// A realTruth tells what is missing of the stacks that a recorder really cut: what perf
// saw of them at the same moment.
type realTruth map[tracetest.CutSample][]string

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

// score holds what was put back against what perf saw. samples tells of each repaired sample what
// stands in front of the frames that were recorded.
func (t realTruth) score(samples iter.Seq[realAnswer]) (sc realScore, v verdicts) {
	v = verdicts{}
	for a := range samples {
		want, ok := t[tracetest.CutSampleAt(a.tid, a.time)]
		if !ok {
			continue
		}
		sc.judged++
		sc.missing += len(want)
		verdict := "bridged"
		if !a.deleted {
			verdict = sc.judge(want, a.put)
		}
		switch verdict {
		case "exact":
			sc.exact++
		case "wrong":
			sc.wrong++
		default:
			sc.bridged++
		}
		v[a.how+":"+verdict]++
		if !a.deleted && a.how != stackfix.Bridge.String() {
			sc.bands.add(a.confidence, verdict == "exact")
		}
	}
	return sc, v
}

// A realAnswer is what was made of a sample.
type realAnswer struct {
	tid, time  int64
	put        []string // in front of the frames that were recorded
	deleted    bool
	how        string
	confidence float32
}

// answers yields what FixStacks put into p.
func answers(p *profile.Profile) iter.Seq[realAnswer] {
	return func(yield func(realAnswer) bool) {
		tab := p.Table
		for _, t := range p.Threads {
			at := t.Samples.Cursor()
			for rep := range t.Repairs.All() {
				var s profile.Sample
				at.Seek(rep.Index)
				if !at.Read(&s) || s.Type == profile.SampleEvent {
					continue
				}
				fs := tab.AppendFrames(nil, s.Stack)
				fs = fs[:len(fs)-(tab.Depth(rep.Recorded)-rep.Dropped)]
				a := realAnswer{tid: t.TID, time: s.Time, how: rep.How, confidence: rep.Confidence}
				for _, f := range fs {
					a.put = append(a.put, tab.MethodOf(f).Full())
				}
				if !yield(a) {
					return
				}
			}
		}
	}
}

// answers yields what other repairs made of r.
func (r *recording) answers(res [][]stackfix.Repair) iter.Seq[realAnswer] {
	return func(yield func(realAnswer) bool) {
		for i, t := range r.threads {
			for _, rep := range res[i] {
				s := t.Samples[rep.Index]
				if s.Evidence {
					continue
				}
				a := realAnswer{tid: r.tids[i], time: s.Time, deleted: rep.Stack == 0, how: rep.How.String()}
				if !a.deleted {
					got := r.names(rep.Stack)
					a.put = got[:len(got)-(r.tree.Depth(s.Stack)-int(rep.Dropped))]
				}
				if !yield(a) {
					return
				}
			}
		}
	}
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

// judgeReal judges a repair of each recording, of which most percent may be wrong, and returns the
// means of those at hand and how many these are.
func judgeReal(t *testing.T, most float64, repair func(t *testing.T, path string, truth realTruth) realScore) (exact, wrong, frames float64, n int) {
	if testing.Short() {
		t.Skip("reads ten recordings")
	}
	for _, name := range realRows {
		t.Run(name, func(t *testing.T) {
			path := corpus + "real/" + name
			sc := repair(t, path+".nettrace.zst", tracetest.Missing(t, path+".truth.ndjson.zst"))
			require.Positive(t, sc.judged)
			assert.LessOrEqual(t, sc.pct(sc.wrong), most, "wrong, percent")
			exact, wrong, frames, n = exact+sc.pct(sc.exact), wrong+sc.pct(sc.wrong), frames+sc.frames(sc.right), n+1
		})
	}
	if n > 0 {
		exact, wrong, frames = exact/float64(n), wrong/float64(n), frames/float64(n)
		t.Logf("MEAN exact %.2f wrong %.2f frames %.2f", exact, wrong, frames)
	}
	return exact, wrong, frames, n
}

// TestTruthReal judges what the command does by stacks that a recorder really cut, and prints it
// with how often answers of a confidence are right.
func TestTruthReal(t *testing.T) {
	var all bands
	exact, wrong, frames, n := judgeReal(t, 1.5, func(t *testing.T, path string, truth realTruth) realScore {
		p, info := loadTrace(t, path, true)
		before := newRecording(p, info, false)
		began := time.Now()
		FixStacks(p, DefaultConfidence)
		took := time.Since(began)
		sc, v := truth.score(answers(p))
		all.addAll(&sc.bands)
		t.Logf("REAL %v  %v %v", &sc, took.Round(time.Millisecond), v)
		peer, _ := truth.score(before.answers(before.previous(true)))
		t.Logf("PEER %v", &peer)
		return sc
	})
	t.Logf("BANDS%v", &all)
	if n == len(realRows) {
		assert.GreaterOrEqual(t, exact, 60.0, "exact, percent")
		assert.LessOrEqual(t, wrong, 0.5, "wrong, percent")
		assert.GreaterOrEqual(t, frames, 61.0, "frames restored, percent")
		for k, x := range all {
			if x.n >= 100 {
				assert.GreaterOrEqual(t, float64(x.right)/float64(x.n), x.expected/float64(x.n)-0.03, "right from a confidence of %.2f on", bandFrom[k])
			}
		}
	}
}

// TestTruthRealChromium judges what becomes of the same recordings where only Chromium JSON of them
// is at hand: names in place of addresses, no stacks of other events, and stacks that follow each
// other unchanged as one.
func TestTruthRealChromium(t *testing.T) {
	exact, wrong, frames, n := judgeReal(t, 1.0, func(t *testing.T, path string, truth realTruth) realScore {
		recorded, _ := loadTrace(t, path, false)
		var file bytes.Buffer
		require.NoError(t, export.Chromium(&file, recorded, export.Options{Name: "real", Exporter: "test"}))
		tr, err := spans.Read(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil },
			&spans.Options{Weighted: true, MaxDepth: 100})
		require.NoError(t, err)
		FixStacks(tr.Profile, DefaultConfidence)
		sc, v := truth.score(answers(tr.Profile))
		t.Logf("NAMES %v  %v", &sc, v)
		return sc
	})
	if n == len(realRows) {
		assert.GreaterOrEqual(t, exact, 50.0, "exact, percent")
		assert.LessOrEqual(t, wrong, 0.4, "wrong, percent")
		assert.GreaterOrEqual(t, frames, 48.0, "frames restored, percent")
	}
}
