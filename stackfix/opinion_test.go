package stackfix

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// What opinions are learnt from: recordings of programs whose stacks were really cut, with what perf saw of
// them, and these and others cut on purpose. A program and its recording with task events go together.
var (
	realOpinions  = []string{"script", "serial", "roslyn", "mvc-ef", "graphql", "bus", "tests", "mvc-ef-tpl", "graphql-tpl", "bus-tpl"}
	otherOpinions = []string{"shared", "web", "library", "csc", "http-cpu", "compare-after"}
	opinionCuts   = []int{20, 40}
)

const (
	// realWeight is how many recordings that were cut on purpose weigh as much as one that was really cut.
	realWeight = 5
	// mostlyRight is from where on opinions are held against how often they are right.
	mostlyRight = 0.5
)

// A schooled opinion is one with how many samples it was on, and of how many it was right.
type schooled struct {
	program   string
	recording string
	really    bool
	x         opinion
	n, right  float64 // in percent of the cut samples of the recording
}

// opinions returns those on a recording, as it was cut or cut to a depth, given which methods are
// missing of a sample, outermost first; nil where that is not known.
func opinions(program, recording string, p *profile.Profile, cut int, missing func(tid int64, s *profile.Sample, fs []profile.FrameID) []string) (out []schooled) {
	tab := p.Table
	tree := stacks.NewTree()
	var frames methodOf
	for f := range tab.Frames() {
		frames = append(frames, tab.Method(profile.FrameID(f)))
	}
	cuts := [...]Cut{profile.Whole: Whole, profile.CutDepth: Depth, profile.CutBytes: Bytes, profile.CutBroken: Broken}
	var threads []Thread
	var which []int
	var truth [][][]string
	n := 0.0
	for i, t := range p.Threads {
		var samples []Sample
		var want [][]string
		for _, s := range t.Samples.All() {
			fs := tab.AppendFrames(nil, s.Stack)
			x := Sample{Time: s.Time, Cut: cuts[s.Cut], Suspect: s.Suspect, Evidence: s.Type == profile.SampleEvent}
			if cut > 0 && len(fs) >= cut {
				x.Cut = Depth
			}
			var m []string
			if x.Cut != Whole && !x.Evidence {
				if m = missing(t.TID, &s, fs); m != nil {
					n++
				}
			}
			if cut > 0 && len(fs) > cut {
				fs = fs[len(fs)-cut:]
			}
			x.Stack = tree.Add(fs...)
			samples, want = append(samples, x), append(want, m)
		}
		threads = append(threads, Thread{Breaks: t.Breaks, Samples: Slice(samples)})
		truth, which = append(truth, want), append(which, i)
	}
	s := newSolver(tree, frames, Options{Bridge: math.MaxUint32, Found: func(int, []Repair) {}})
	s.observe = func(thread int, b *block, x opinion) {
		o := schooled{program: program, recording: recording, really: cut == 0, x: x}
		put := s.t.AppendFrames(nil, b.guess)
		put = append(put, s.t.AppendFrames(nil, b.ext)...)
		put = put[:len(put)-s.t.Depth(b.stack)]
		for _, m := range truth[thread][b.first : b.first+b.n] {
			if m == nil {
				continue
			}
			o.n++
			if slices.EqualFunc(m, put, func(m string, f FrameID) bool { return m == tab.MethodOf(f).Full() }) {
				o.right++
			}
		}
		if o.n > 0 {
			out = append(out, o)
		}
	}
	s.fix(threads, which, &Result{})
	for i := range out {
		out[i].n, out[i].right = 100*out[i].n/n, 100*out[i].right/n
	}
	return out
}

// methodOf is the method of each frame.
type methodOf []MethodID

func (m methodOf) Method(f FrameID) MethodID { return m[f] }

func readOpinions(t testing.TB) (out []schooled) {
	read := func(file string) *profile.Profile {
		p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) {
			f, err := os.Open(lessonCorpus + file)
			if err != nil || filepath.Ext(file) != ".zst" {
				return f, err
			}
			z, err := zstd.NewReader(f)
			return z.IOReadCloser(), err
		}, &load.Options{Evidence: true})
		require.NoError(t, err)
		return p
	}
	onPurpose := func(name string, p *profile.Profile) {
		for _, cut := range opinionCuts {
			out = append(out, opinions(strings.TrimSuffix(name, "-tpl"), fmt.Sprintf("%s@%d", name, cut), p, cut, func(_ int64, s *profile.Sample, fs []profile.FrameID) []string {
				if s.Cut != profile.Whole || len(fs) <= cut {
					return nil
				}
				var m []string
				for _, f := range fs[:len(fs)-cut] {
					m = append(m, p.Table.MethodOf(f).Full())
				}
				return m
			})...)
		}
	}
	for _, name := range realOpinions {
		p := read("real/" + name + ".nettrace.zst")
		truth := tracetest.Missing(t, lessonCorpus+"real/"+name+".truth.ndjson.zst")
		out = append(out, opinions(strings.TrimSuffix(name, "-tpl"), name, p, 0, func(tid int64, s *profile.Sample, _ []profile.FrameID) []string {
			return truth[tracetest.CutSampleAt(tid, s.Time)]
		})...)
		onPurpose(name, p)
	}
	for _, name := range otherOpinions {
		onPurpose(name, read("dotnet10/"+name+".nettrace"))
	}
	return out
}

// fitOpinions learns weights, the last of which is the bias, from all but one program.
func fitOpinions(all []schooled, without string) []float64 {
	var examples []example
	for _, o := range all {
		if o.program != without {
			weight := 1.0
			if o.really {
				weight = realWeight
			}
			examples = append(examples, example{append(slices.Clone(o.x[:]), 1), weight * o.n, weight * o.right})
		}
	}
	return logistic(examples, numOpinions+1)
}

// held returns what opinions are on each, in logits, by weights that were learnt from other programs.
func held(all []schooled) []float64 {
	w := map[string][]float64{}
	z := make([]float64, len(all))
	for i, o := range all {
		if w[o.program] == nil {
			w[o.program] = fitOpinions(all, o.program)
		}
		z[i] = dot(append(slices.Clone(o.x[:]), 1), w[o.program])
	}
	return z
}

// TestHear holds what whole stacks say of an answer.
func TestHear(t *testing.T) {
	tree := stacks.NewTree()
	cut := tree.Add(7, 8, 9)
	this, other := tree.Add(1, 2, 3), tree.Add(1, 3)
	prefix, longer, whole := tree.Add(1, 2), tree.Add(3, 7, 8, 9), tree.Add(1, 2, 3, 7, 8, 9)
	turns := tree.Add(7, 8, 9, 10, 11, 12, 13, 14, 7, 8, 9, 10, 11, 12, 13, 14)
	for name, x := range map[string]struct {
		votes []ballot // the nearest first
		want  hearing
	}{
		"nobody":             {nil, hearing{}},
		"all":                {[]ballot{{above: this, ago: 1}, {above: this, ago: -1}}, hearing{share: 0.5, both: true}},
		"before only":        {[]ballot{{above: this, ago: 1}, {above: this, ago: 2}}, hearing{share: 0.5}},
		"another one before": {[]ballot{{above: other, ago: 1}, {above: this, ago: -1}, {above: this, ago: 2}}, hearing{share: 0.4, otherwise: true}},
		"another one after":  {[]ballot{{above: this, ago: 1}, {above: other, ago: -1}}, hearing{share: 0.25}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &inquiry{consensus: &consensus{engine: newEngine(tree, Names{}, Options{})}}
			var all assembly
			for _, v := range x.votes {
				v.camp = all.add(v.above, true)
				all.votes = append(all.votes, v)
			}
			b := &block{stack: cut, ext: longer, guess: prefix}
			x.want.heard = true
			assert.Equal(t, x.want, q.hear(b, &all))
			b.ext, b.guess = whole, 0
			assert.Equal(t, x.want, q.hear(b, &all), "what it was extended by is all that is missing")
			b.stack, b.ext = turns, turns
			assert.True(t, q.hear(b, &all).comesAgain)
		})
	}
}

// TestGuesses holds which answers that were not sure enough are asked about.
func TestGuesses(t *testing.T) {
	tree := stacks.NewTree()
	cut, prefix, longer := tree.Add(7, 8, 9), tree.Add(1, 2), tree.Add(3, 7, 8, 9)
	for name, x := range map[string]struct {
		b    block
		want bool
	}{
		"none was found":             {block{stack: cut, ext: longer}, false},
		"a prefix":                   {block{stack: cut, ext: longer, guess: prefix, guessed: 0.8}, true},
		"what it was extended by":    {block{stack: cut, ext: longer, guessed: 0.8}, true},
		"nothing that would be told": {block{stack: cut, ext: cut, guessed: 0.8}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, x.want, x.b.guesses())
			s := newSolver(tree, Names{}, Options{MinConfidence: 0.5})
			x.b.triedExt = x.b.ext
			heard := &consensus{parts: map[*block]*part{&x.b: {hearing: hearing{heard: true, share: 0.9, both: true}}}}
			assert.Equal(t, x.want, s.mayBeSure(&x.b, heard))
		})
	}
}

// TestConfidenceOfOpinions holds in which direction each thing counts, whatever the weights are.
func TestConfidenceOfOpinions(t *testing.T) {
	h := hearing{share: 0.9, both: true}
	b := block{guessed: 0.6, guessSides: 2}
	good := opinionOn(&b, &h, doubt{})
	good.modelled(&b, 1)
	assert.Greater(t, good.confidence(), DefaultConfidence)
	for i, x := range map[int]float64{byConfidence: -5, byModel: leastModel, byModelBoth: leastModel, byNearest: 1, byShare: 0, byBoth: 0, byTurn: 1, byForeign: 1, byWay: 1, byWays: 1} {
		worse := good
		worse[i] = x
		assert.Less(t, worse.confidence(), good.confidence(), opinionNames[i])
	}
	h.share = 0.2
	assert.InDelta(t, 0.2/mostShow, opinionOn(&b, &h, doubt{})[byBoth], 1e-9, "most show another one")
	b.guessRec = 1
	assert.Zero(t, opinionOn(&b, &h, doubt{})[byBoth], "a recursion is cut")
	var none opinion
	assert.Less(t, none.confidence(), 0.5, "nothing is known")
	none.modelled(&b, 0)
	assert.Equal(t, float64(leastModel), none[byModel])
}

// TestOpinion learns what opinions are worth, prints what they bring to programs that the weights
// were not learnt from, and holds that they are right as often as they say; -update writes
// opinion_weights.go. Those there were learnt before answers without a prefix were heard (see
// guesses); learnt anew they differ by 0.12 at most, and 80 cuts are 68.80 % exact in place
// of 68.87, with as many wrong.
func TestOpinion(t *testing.T) {
	if !*learnPriors {
		t.Skip("takes minutes: run with -priors, and with -update to write opinion_weights.go")
	}
	if _, err := os.Stat(lessonCorpus); err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	all := readOpinions(t)
	z := held(all)
	// Weights that are held near 0 are too modest where it counts: what is probable is held against
	// what is right.
	var scale []example
	for i, o := range all {
		if sigmoid(z[i]) > mostlyRight {
			scale = append(scale, example{[]float64{z[i], 1}, o.n, o.right})
		}
	}
	by := logistic(scale, 2)
	for _, really := range []bool{true, false} {
		for _, least := range []float64{0.95, DefaultConfidence, 0.8, 0.7} {
			recordings := map[string]bool{}
			wrong := map[string]float64{}
			n, right := 0.0, 0.0
			for i, o := range all {
				if o.really != really {
					continue
				}
				recordings[o.recording] = true
				if sigmoid(by[0]*z[i]+by[1]) >= least {
					n, right = n+o.n, right+o.right
					wrong[o.recording] += o.n - o.right
				}
			}
			most := slices.MaxFunc(slices.Sorted(maps.Keys(recordings)), func(a, b string) int { return int(1e6 * (wrong[a] - wrong[b])) })
			k := float64(len(recordings))
			t.Logf("really cut %v, %.2f and more: %.2f %% exact, %.2f %% wrong in the mean, %.2f in %s", really, least, right/k, (n-right)/k, wrong[most], most)
			if least == DefaultConfidence {
				assert.GreaterOrEqual(t, right/n, least-0.05, "right of those that are given, really cut %v", really)
			}
		}
	}
	w := fitOpinions(all, "")
	for i := range w {
		w[i] = math.Round(100*by[0]*w[i]) / 100
	}
	w[numOpinions] = math.Round(100*(w[numOpinions]+by[1])) / 100
	t.Logf("weights %v, now %v %v", w, opinionWeights, opinionBias)
	if *update {
		require.NoError(t, os.WriteFile("opinion_weights.go", opinionSource(t, w), 0o644))
	}
}

// opinionSource is opinion_weights.go with these weights.
func opinionSource(t *testing.T, w []float64) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated by go test ./stackfix -run TestOpinion -priors -update. DO NOT EDIT.\n\npackage stackfix\n\n")
	b.WriteString("// opinionWeights are what each thing that an opinion is made of is worth, in logits.\nvar opinionWeights = opinion{\n")
	for i, name := range opinionNames {
		fmt.Fprintf(&b, "%s: %.2f,\n", name, w[i])
	}
	fmt.Fprintf(&b, "}\n\n// opinionBias is what an answer is worth of which nothing is known.\nconst opinionBias = %.2f\n", w[numOpinions])
	src, err := format.Source(b.Bytes())
	require.NoError(t, err)
	return src
}

var opinionNames = [numOpinions]string{"byConfidence", "byModel", "byModelBoth", "byNearest", "byShare", "byBoth", "byTurn", "byMargin", "byForeign", "byWay", "byWays"}
