package stackfix

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

var (
	learnPriors = flag.Bool("priors", false, "learn the weights of priors.go anew from the corpus: takes minutes")
	update      = flag.Bool("update", false, "write priors.go: with -priors the weights, otherwise their labels")
	scorePriors = flag.Bool("scores", true, "with -priors: print what comes of the weights, also of those learnt from other programs only")
	showRows    = flag.Bool("evidence", false, "with -priors: print the evidence whose held-out confidence is off")
)

// TestPriorsLabels holds that priors.go has a weight for every feature and says of each one
// what it stands for; with -update, also without -priors, it writes the labels anew.
func TestPriorsLabels(t *testing.T) {
	want := source(t, prior)
	for _, labels := range [][]string{answerLabels(), extLabels(byOverlap), extLabels(byContext)} {
		assert.NotContains(t, labels, "", "a weight that no evidence has")
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(labels))), len(labels), "two weights for the same")
	}
	if *update && !*learnPriors {
		require.NoError(t, os.WriteFile("priors.go", want, 0o644))
	}
	got, err := os.ReadFile("priors.go")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run with -update")
}

// A lesson is a recording. Its whole stacks are cut on purpose, to each of the depths.
// Those of the lab programs that the recorder cut are known, too.
type lesson struct {
	program string // what is held out together
	file    string // in the corpus
	depths  []int
	lab     bool   // Alpha, Beta and Gamma: names tell the place
	truth   string // of Shared: what was called when
}

var lessons = []lesson{
	{program: "walk", file: "dotnet10/chain.nettrace", depths: []int{40, 60}, lab: true},
	{program: "walk", file: "dotnet10/noise.nettrace", depths: []int{40, 60}, lab: true},
	{program: "walk", file: "dotnet10/shared.nettrace", depths: []int{40, 60}, lab: true, truth: "dotnet10/shared.truth.ndjson"},
	{program: "walk", file: "dotnet10/v6-chain.nettrace", lab: true},
	{program: "walk", file: "dotnet10/v6-shared.nettrace", lab: true, truth: "dotnet10/v6-shared.truth.ndjson"},
	{program: "recursion", file: "dotnet10/recursion.nettrace", depths: []int{30, 40, 60}},
	{program: "async", file: "dotnet10/async.nettrace", depths: []int{30, 40, 60}},
	{program: "library", file: "dotnet10/library.nettrace", depths: []int{30, 40, 60}},
	{program: "csc", file: "dotnet10/csc.nettrace", depths: []int{30, 40, 60}},
	{program: "web", file: "dotnet10/web.nettrace", depths: []int{25, 30, 40, 55}},
	{program: "web", file: "dotnet10/v6-web-faults.nettrace", depths: []int{20, 30}},
	{program: "machine", file: "dotnet10/v6-machine.nettrace", depths: []int{15, 25}},
	{program: "http", file: "dotnet10/http-cpu.nettrace", depths: []int{30, 40}},
	{program: "http", file: "dotnet10/http-net8.nettrace", depths: []int{40}},
	{program: "http", file: "dotnet10/http-bridge.nettrace", depths: []int{40}},
	{program: "dropped", file: "dotnet10/dropped.nettrace", depths: []int{30, 45}},
	{program: "activities", file: "dotnet10/activities.nettrace", depths: []int{15, 20}},
	{program: "webapp", file: "nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz", depths: []int{15, 20, 25, 30}},
	{program: "linux20", file: "nettrace/microsoft-perfview/eventpipe-dotnetcore2.0-linux.netperf.gz", depths: []int{40, 60}},
	{program: "desktop", file: "nettrace/getsentry-sentry-dotnet/sample.nettrace.gz", depths: []int{15}},
	{program: "heart", file: "nettrace/microsoft-perfview/speedscope/HeartRateMonitor.10068.nettrace.gz", depths: []int{15, 25}},
	{program: "trace", file: "nettrace/dotnet-diagnostics/trace.nettrace.gz", depths: []int{12, 18}},
}

const lessonCorpus = "../../shared/corpus/"

// A lessonFile is a recording as Fix takes it, with the true stacks where they are
// known.
type lessonFile struct {
	names   []string   // of methods
	frame   []MethodID // of each frame
	tree    *stacks.Tree
	threads []Thread
	samples [][]Sample  // of each thread
	truth   [][]StackID // of each sample; nil or 0: what was recorded
}

func (r *lessonFile) Method(f FrameID) MethodID { return r.frame[f] }

func readLesson(t testing.TB, l *lesson, namesOnly bool) *lessonFile {
	path := lessonCorpus + l.file
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil || filepath.Ext(path) != ".gz" {
			return f, err
		}
		return gzip.NewReader(f)
	}
	p, info, err := load.Profile(context.Background(), open, &load.Options{Evidence: !namesOnly})
	require.NoError(t, err)
	tab := p.Table
	r := &lessonFile{tree: stacks.NewTree()}
	for m := range tab.Methods() {
		r.names = append(r.names, tab.MethodAt(profile.MethodID(m)).Full())
		if namesOnly {
			r.frame = append(r.frame, MethodID(m))
		}
	}
	if !namesOnly {
		for f := range tab.Frames() {
			r.frame = append(r.frame, tab.Method(profile.FrameID(f)))
		}
	}
	cuts := [...]Cut{profile.Whole: Whole, profile.CutDepth: Depth, profile.CutBytes: Bytes, profile.CutBroken: Broken}
	memo := map[profile.StackID]StackID{}
	var fs []FrameID
	var tids []int64
	for _, pt := range p.Threads {
		var samples []Sample
		for _, s := range pt.Samples.All() {
			id, ok := memo[s.Stack]
			if !ok {
				fs = tab.AppendFrames(fs[:0], s.Stack)
				for i, f := range fs {
					if namesOnly {
						fs[i] = tab.Method(f)
					}
				}
				id = r.tree.Add(fs...)
				memo[s.Stack] = id
			}
			samples = append(samples, Sample{Time: s.Time, Stack: id, Cut: cuts[s.Cut], Suspect: s.Suspect, Evidence: s.Type == profile.SampleEvent})
		}
		r.threads = append(r.threads, Thread{Process: uint32(pt.Process.PID), Breaks: pt.Breaks, Samples: Slice(samples)})
		r.samples = append(r.samples, samples)
		tids = append(tids, pt.TID)
	}
	if l.lab {
		var calls map[int64][]labCall
		if l.truth != "" {
			calls = readLabCalls(t, lessonCorpus+l.truth, info.Header.SyncQPC, info.Header.Frequency)
		}
		r.knowLab(tids, calls)
	}
	return r
}

// A labCall is a call of the lab programs: from which level of the own chain, and
// down to which of Shared.
type labCall struct {
	at           float64 // ms
	shared, from int
}

func readLabCalls(t testing.TB, path string, q0, freq int64) map[int64][]labCall {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	out := map[int64][]labCall{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var e struct {
			Qpc, Tid     int64
			Shared, From int
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &e))
		out[e.Tid] = append(out[e.Tid], labCall{float64(e.Qpc-q0) * 1000 / float64(freq), e.Shared, e.From})
	}
	for _, c := range out {
		slices.SortFunc(c, func(a, b labCall) int { return cmp.Compare(a.at, b.at) })
	}
	return out
}

var labMethod = regexp.MustCompile(`(Alpha|Beta|Gamma|Shared)(?:\.|::)[FGS](\d\d\d)\b`)

// knowLab works out the true stacks of the lab programs: the names of the frames that
// were recorded tell which ones call them.
func (r *lessonFile) knowLab(tids []int64, calls map[int64][]labCall) {
	type level struct {
		family string
		n      int
	}
	levels := map[MethodID]level{}
	frames := map[level]FrameID{}
	for f, m := range r.frame {
		if g := labMethod.FindStringSubmatch(r.names[m]); g != nil {
			n, _ := strconv.Atoi(g[2])
			levels[m] = level{g[1], n}
			frames[level{g[1], n}] = FrameID(f)
		}
	}
	// first returns the place of the first frame of the lab
	first := func(fs []FrameID) int {
		return slices.IndexFunc(fs, func(f FrameID) bool { _, ok := levels[r.frame[f]]; return ok })
	}
	for i, samples := range r.samples {
		var own string
		heads := map[StackID]bool{}
		for _, s := range samples {
			if s.Cut != Whole {
				continue
			}
			fs := r.tree.AppendFrames(nil, s.Stack)
			if k := first(fs); k >= 0 {
				heads[r.tree.Add(fs[:k]...)] = true
				if l := levels[r.frame[fs[k]]]; l.family != "Shared" {
					own = l.family
				}
			}
		}
		truth := make([]StackID, len(samples))
		r.truth = append(r.truth, truth)
		if len(heads) != 1 {
			continue
		}
		var head StackID
		for h := range heads {
			head = h
		}
		for j, s := range samples {
			fs := r.tree.AppendFrames(nil, s.Stack)
			k := first(fs)
			if s.Cut == Whole || k < 0 || k > int(s.Suspect) {
				continue
			}
			at := levels[r.frame[fs[k]]]
			family := at.family
			if family != "Shared" {
				own = family
			}
			from := -1 // the level that calls into Shared
			last := at
			for _, f := range fs[k:] {
				if l, ok := levels[r.frame[f]]; ok {
					last = l
				}
			}
			if calls != nil {
				// while a call goes down or comes back nobody knows
				c := calls[tids[i]]
				ms := float64(s.Time) / 1e6
				n, _ := slices.BinarySearchFunc(c, ms, func(c labCall, ms float64) int { return cmp.Compare(c.at, ms) })
				n--
				if n < 0 || ms-c[n].at < 1 || n+1 < len(c) && c[n+1].at-ms < 0.3 {
					continue
				}
				want := level{"Shared", c[n].shared}
				if c[n].shared < 0 {
					want = level{own, c[n].from}
				}
				if last != want {
					continue
				}
				from = c[n].from
			} else if family == "Shared" {
				continue
			}
			s, ok := head, true
			push := func(l level) {
				f, known := frames[l]
				ok = ok && known
				s = r.tree.Push(s, f)
			}
			if family == "Shared" {
				for n := 0; n <= from; n++ {
					push(level{own, n})
				}
			}
			for n := range at.n {
				push(level{family, n})
			}
			for _, f := range fs[k:] {
				s = r.tree.Push(s, f)
			}
			if ok {
				truth[j] = s
			}
		}
	}
}

// worlds returns the recording cut to limit frames, or as it was recorded if limit is
// 0, one world for each process, each with an engine of its own.
func (r *lessonFile) worlds(limit int) (es []*engine, ws []*world) {
	of := map[uint32][]int{}
	for i, t := range r.threads {
		of[t.Process] = append(of[t.Process], i)
	}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		e := newEngine(r.tree, r, Options{Bridge: math.MaxUint32})
		w, _ := e.load(r.threads, of[p], math.MaxInt)
		if limit > 0 {
			w = e.copies(w, []int{limit}, math.MaxInt, []*engine{e})[0]
		} else {
			for i := range w.runs {
				r.judge(e, &w.runs[i])
			}
			w.judged = true
		}
		if slices.ContainsFunc(w.runs, func(r run) bool {
			return slices.ContainsFunc(r.blocks, func(b block) bool { return !b.rooted })
		}) {
			es, ws = append(es, e), append(ws, w)
		}
	}
	return es, ws
}

// judge gives the blocks of a run their true stacks. A block whose samples differ in
// them becomes several.
func (r *lessonFile) judge(e *engine, run *run) {
	var out []block
	for _, b := range run.blocks {
		b.truth, b.whole = b.stack, b.rooted
		if b.rooted || r.truth == nil {
			out = append(out, b)
			continue
		}
		truth := r.truth[run.thread]
		for j := b.first; j < b.first+b.n; {
			c := b
			c.first, c.n = j, 0
			c.follows = c.follows || j > b.first
			for j < b.first+b.n && truth[j] == truth[c.first] {
				j++
				c.n++
			}
			if s := truth[c.first]; s != 0 {
				if e.innermost(s, c.stack) {
					c.truth, c.whole = s, true
				}
			}
			out = append(out, c)
		}
	}
	run.blocks = out
}

// innermost tells whether s ends with the methods of tail.
func (e *engine) innermost(s, tail StackID) bool {
	for ; tail != 0; s, tail = e.t.Parent(s), e.t.Parent(tail) {
		if s == 0 || e.method(e.t.Frame(s)) != e.method(e.t.Frame(tail)) {
			return false
		}
	}
	return true
}

// An outcome is what came of repairing one lesson.
type outcome struct {
	program, name  string
	trial, real    []row // answers that can be judged; equal ones once
	judged         int   // cut samples with a known whole stack
	exact, wrong   int
	expected       float64 // exact, by the confidences
	givenN, givenR [numSteps]int
	wrongs         map[string]int // samples by kind and evidence
}

// steps of confidence, to hold it against what is right.
var steps = [...]float64{0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99}

const numSteps = len(steps) + 1

func step(p float64) int {
	n, ok := slices.BinarySearch(steps[:], p)
	if ok {
		n++
	}
	return n
}

func (o *outcome) pct(n int) float64 { return 100 * float64(n) / float64(max(1, o.judged)) }

// repair repairs a lesson and holds every answer against the truth.
func (r *lessonFile) repair(program, name string, limit int) outcome {
	out := outcome{program: program, name: name, wrongs: map[string]int{}}
	es, ws := r.worlds(limit)
	for i, e := range es {
		w := ws[i]
		s := solver{engine: e}
		out.trial = append(out.trial, distinct(s.repair(w))...)
		whole := map[uint64]bool{} // keys of questions
		for ri, run := range w.runs {
			for bi, b := range run.blocks {
				if b.cut == Whole || !b.whole {
					continue
				}
				whole[e.question(b.truth, 0)[0]] = true
				if e.t.Depth(b.truth) <= e.t.Depth(b.stack) {
					continue
				}
				n := int(b.n)
				out.judged += n
				if !b.rooted {
					continue
				}
				k := step(float64(b.conf))
				out.givenN[k] += n
				out.expected += float64(n) * float64(b.conf)
				if e.innermost(b.ext, b.truth) && e.innermost(b.truth, b.ext) {
					out.exact += n
					out.givenR[k] += n
				} else {
					out.wrong += n
					why := "misled"
					if i, ok := s.last[int64(ri)<<32|int64(bi)]; ok {
						why = s.rows[i].evidence.String()
					}
					out.wrongs[fmt.Sprintf("%v %s %.2f", b.how, why, b.conf)] += n
				}
			}
		}
		for _, x := range distinct(s.rows) {
			// an answer above what is known of a stack cannot be judged
			if x.kind != forAnswer || whole[x.key[0]] {
				out.real = append(out.real, x)
			}
		}
	}
	return out
}

func distinct(rows []row) []row {
	var out []row
	seen := map[row]bool{}
	for _, x := range rows {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// classroom holds the lessons, read.
type classroom struct {
	names    []string
	programs []string
	files    []*lessonFile
	limits   []int
}

func (c *classroom) read(t testing.TB) {
	for i := range lessons {
		l := &lessons[i]
		for _, namesOnly := range []bool{false, true} {
			name, _, _ := strings.Cut(filepath.Base(l.file), ".")
			mode := "ips"
			if namesOnly {
				mode = "names"
			}
			if l.program == "webapp" {
				name = "webapp"
			}
			r := readLesson(t, l, namesOnly)
			depths := l.depths
			if l.lab {
				depths = append([]int{0}, depths...)
			}
			for _, d := range depths {
				at := ""
				if d > 0 {
					at = fmt.Sprintf("@%d", d)
				}
				c.names = append(c.names, name+at+" "+mode)
				c.programs = append(c.programs, l.program)
				c.files = append(c.files, r)
				c.limits = append(c.limits, d)
			}
		}
	}
}

// repair repairs the lessons of the programs wanted.
func (c *classroom) repair(want func(program string) bool) []outcome {
	out := make([]outcome, len(c.files))
	var wg sync.WaitGroup
	byFile := map[*lessonFile][]int{}
	var files []*lessonFile
	for i, f := range c.files {
		if byFile[f] == nil {
			files = append(files, f)
		}
		byFile[f] = append(byFile[f], i)
	}
	// files one beside the other; those of one file share its tree
	work := make(chan *lessonFile)
	for range 2 {
		wg.Go(func() {
			for f := range work {
				for _, i := range byFile[f] {
					if want(c.programs[i]) {
						out[i] = f.repair(c.programs[i], c.names[i], c.limits[i])
					}
				}
			}
		})
	}
	for _, f := range files {
		work <- f
	}
	close(work)
	wg.Wait()
	return slices.DeleteFunc(out, func(o outcome) bool { return o.program == "" })
}

func (v evidence) String() string {
	switch v.kind {
	case byOverlap, byContext:
		what := "overlap"
		if v.kind == byContext {
			what = "context"
		}
		return fmt.Sprintf("%s {rec:%d bits:%d lead:%d both:%d doubts:%d share:%d}", what, v.rec, v.bits, v.lead, v.both, v.doubts, v.share)
	case byCallers:
		return fmt.Sprintf("callers %d", v.calls)
	}
	return fmt.Sprintf("answer {rec:%d votes:%d share:%d sides:%d margin:%d win:%d}", v.rec, v.votes, v.share, v.sides, v.margin, v.win)
}

// programCap is how many answers with equal evidence a program counts for.
const programCap = 40

// tally counts the answers of each program by evidence, those of programs with many
// answers at less weight.
func tally(outs []outcome, without string) map[string]map[evidence]count {
	all := map[string]map[evidence]count{}
	for i := range outs {
		o := &outs[i]
		if o.program == without {
			continue
		}
		m := all[o.program]
		if m == nil {
			m = map[evidence]count{}
			all[o.program] = m
		}
		for _, x := range o.real {
			c := m[x.evidence]
			c.n++
			if x.right {
				c.right++
			}
			m[x.evidence] = c
		}
	}
	for _, m := range all {
		for k, c := range m {
			if c.n > programCap {
				m[k] = count{programCap, c.right * programCap / c.n}
			}
		}
	}
	return all
}

// An example is evidence with how often its answers were right.
type example struct {
	x        []float64
	n, right float64
}

// ridge is the precision of the weights before anything is learnt.
const ridge = 0.1

// dense is 1 at each of the features.
func dense(f features, n int) []float64 {
	x := make([]float64, n)
	for _, i := range f {
		if i >= 0 {
			x[i] = 1
		}
	}
	return x
}

func dot(x, w []float64) float64 {
	z := 0.0
	for i, v := range x {
		z += v * w[i]
	}
	return z
}

// logistic fits weights to examples: Newton's method on the penalised likelihood.
func logistic(examples []example, n int) []float64 {
	w := make([]float64, n)
	for range 50 {
		g := make([]float64, n)
		h := make([][]float64, n)
		for i := range h {
			h[i] = make([]float64, n)
			g[i] = -ridge * w[i]
			h[i][i] = ridge
		}
		for _, e := range examples {
			p := sigmoid(dot(e.x, w))
			d, q := e.right-e.n*p, e.n*p*(1-p)
			for i, xi := range e.x {
				if xi == 0 {
					continue
				}
				g[i] += d * xi
				for j, xj := range e.x {
					h[i][j] += q * xi * xj
				}
			}
		}
		step := solveLinear(h, g)
		far := 0.0
		for i, s := range step {
			far = max(far, math.Abs(s))
			w[i] += max(-2, min(2, s))
		}
		if far < 1e-9 {
			break
		}
	}
	return w
}

// solveLinear solves a x = b for a positive definite a, which it spoils.
func solveLinear(a [][]float64, b []float64) []float64 {
	n := len(b)
	x := slices.Clone(b)
	for i := range n {
		for j := i + 1; j < n; j++ {
			f := a[j][i] / a[i][i]
			if f == 0 {
				continue
			}
			for k := i; k < n; k++ {
				a[j][k] -= f * a[i][k]
			}
			x[j] -= f * x[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

// learn fits the weights to outcomes, those of one program left out.
func learn(outs []outcome, without string) weights {
	var answers, overlaps, contexts, callers []example
	all := tally(outs, without)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		m := all[p]
		keys := slices.SortedFunc(maps.Keys(m), evidence.compare)
		for _, k := range keys {
			c := m[k]
			switch k.kind {
			case forAnswer:
				answers = append(answers, example{dense(answerFeatures(k), numAnswerFeatures), c.n, c.right})
			case byOverlap:
				overlaps = append(overlaps, example{dense(extFeatures(k), numExtFeatures), c.n, c.right})
			case byCallers:
				callers = append(callers, example{[]float64{1, float64(k.calls)}, c.n, c.right})
			case byContext:
				contexts = append(contexts, example{dense(extFeatures(k), numExtFeatures), c.n, c.right})
			}
		}
	}
	return weights{
		answer:   round(logistic(answers, numAnswerFeatures)),
		overlap:  round(logistic(overlaps, numExtFeatures)),
		context:  round(logistic(contexts, numExtFeatures)),
		caller:   round(logistic(callers, 2)),
		strength: prior.strength, shiftVar: prior.shiftVar, groupVar: prior.groupVar, slopeVar: prior.slopeVar,
	}
}

func round(w []float64) []float64 {
	for i := range w {
		w[i] = math.Round(w[i]*100) / 100
	}
	return w
}

// with runs f with other weights.
func with(w weights, f func()) {
	old := prior
	defer func() { prior = old }()
	prior = w
	f()
}

// TestPriors learns the weights of priors.go anew and holds what comes of them against
// what comes of those that are there; -update writes them. It also repairs every lesson with weights learnt
// from the other programs only, and prints what then comes of it.
func TestPriors(t *testing.T) {
	if !*learnPriors {
		t.Skip("takes minutes: run with -priors, and with -update to write priors.go")
	}
	if _, err := os.Stat(lessonCorpus); err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	var room classroom
	room.read(t)
	committed := prior
	defer func() { prior = committed }()
	all := func(string) bool { return true }

	// What is learnt says which answers are given, and those what is learnt next.
	prior = weights{
		answer: make([]float64, numAnswerFeatures), overlap: make([]float64, numExtFeatures), context: make([]float64, numExtFeatures), caller: make([]float64, 2),
		strength: committed.strength, shiftVar: committed.shiftVar, groupVar: committed.groupVar, slopeVar: committed.slopeVar,
	}
	var outs []outcome
	for round := range 4 {
		outs = append(outs, room.repair(all)...)
		w := learn(outs, "")
		t.Logf("round %d: moved by %.2f", round, distance(w, prior))
		prior = w
	}
	learnt := prior
	if *update {
		require.NoError(t, os.WriteFile("priors.go", source(t, learnt), 0o644))
	}
	if !*scorePriors {
		return
	}
	programs := map[string]weights{}
	for _, o := range outs {
		if _, ok := programs[o.program]; !ok {
			programs[o.program] = learn(outs, o.program)
		}
	}
	names := slices.Sorted(maps.Keys(programs))

	prior = committed
	before := room.repair(all)
	prior = learnt
	own := room.repair(all)
	var held []outcome
	for _, p := range names {
		w := programs[p]
		with(w, func() {
			o := room.repair(func(q string) bool { return p == q })
			held = append(held, o...)
			if *showRows {
				logEvidence(t, p, o)
			}
		})
	}
	logScores(t, before, own, held)

	if *update {
		return
	}
	// Weights that are right more often are not better if they mislead more often.
	assert.GreaterOrEqual(t, worth(before), worth(own)-1, "the corpus gives better weights than those of priors.go: look at the table, and run with -update")
}

// worth sums up outcomes: percent exact, less five times percent wrong, on average.
func worth(outs []outcome) float64 {
	sum, n := 0.0, 0
	for i := range outs {
		if o := &outs[i]; o.judged >= 50 {
			sum += o.pct(o.exact) - 5*o.pct(o.wrong)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// distance is the largest difference of two weights.
func distance(a, b weights) float64 {
	d := max(math.Abs(a.strength-b.strength), math.Abs(a.shiftVar-b.shiftVar), math.Abs(a.groupVar-b.groupVar), math.Abs(a.slopeVar-b.slopeVar))
	for _, p := range [][2][]float64{{a.answer, b.answer}, {a.overlap, b.overlap}, {a.context, b.context}, {a.caller, b.caller}} {
		if len(p[0]) != len(p[1]) {
			return math.Inf(1)
		}
		for i := range p[0] {
			d = max(d, math.Abs(p[0][i]-p[1][i]))
		}
	}
	return d
}

func logScores(t *testing.T, before, own, held []outcome) {
	byName := map[string]*outcome{}
	for i := range held {
		byName[held[i].name] = &held[i]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "percent of cut samples                  | priors.go      | learnt         | held out\n%-32s %6s | %7s %6s | %7s %6s | %7s %6s %8s\n",
		"", "judged", "exact", "wrong", "exact", "wrong", "exact", "wrong", "expected")
	for i := range own {
		o, p, h := &before[i], &own[i], byName[own[i].name]
		if o.judged == 0 {
			continue
		}
		fmt.Fprintf(&b, "%-32s %6d | %7.2f %6.2f | %7.2f %6.2f | %7.2f %6.2f %8.2f\n", o.name, o.judged, o.pct(o.exact), o.pct(o.wrong), p.pct(p.exact), p.pct(p.wrong),
			h.pct(h.exact), h.pct(h.wrong), h.pct(h.exact+h.wrong)-100*h.expected/float64(h.judged))
	}
	var givenN, givenR [numSteps]int
	for _, o := range held {
		for k := range givenN {
			givenN[k] += o.givenN[k]
			givenR[k] += o.givenR[k]
		}
	}
	b.WriteString("answers given, held out: confidence, samples, right\n")
	for k, n := range givenN {
		if n > 0 {
			fmt.Fprintf(&b, "  %s %7d %6.2f %%\n", stepName(k), n, 100*float64(givenR[k])/float64(n))
		}
	}
	t.Log("\n" + b.String())
}

func stepName(k int) string {
	lo, hi := 0.0, 1.0
	if k > 0 {
		lo = steps[k-1]
	}
	if k < len(steps) {
		hi = steps[k]
	}
	return fmt.Sprintf("%.2f to %.2f", lo, hi)
}

// logEvidence prints for each evidence how sure it is and how often it is right.
func logEvidence(t *testing.T, program string, outs []outcome) {
	var b strings.Builder
	for i := range outs {
		o := &outs[i]
		c := &calibration{}
		c.learn(o.trial, wholeWorth)
		m := map[evidence]count{}
		for _, x := range o.real {
			k := m[x.evidence]
			k.n++
			if x.right {
				k.right++
			}
			m[x.evidence] = k
		}
		for k, v := range m {
			fmt.Fprintf(&b, "EVIDENCE %-12s %-32s %-32s trial %4.0f conf %.3f n %4.0f right %.3f\n", program, o.name, k, c.seen[k].n, c.confidence(k), v.n, v.right/v.n)
		}
	}
	for i := range outs {
		for _, k := range slices.Sorted(maps.Keys(outs[i].wrongs)) {
			fmt.Fprintf(&b, "WRONG %-12s %-32s %4d  %s\n", program, outs[i].name, outs[i].wrongs[k], k)
		}
	}
	t.Log("\n" + b.String())
}

// source is priors.go with these weights.
func source(t *testing.T, w weights) []byte {
	var b bytes.Buffer
	b.WriteString(`// Code generated by go test ./stackfix -run TestPriors -priors -update. DO NOT EDIT.
// It fits them to answers to recordings whose true stacks are known: lessons. What no
// lesson shows has 0. The weights of an answer, in logits, add up: one of each measure.

package stackfix

var prior = weights{
`)
	list := func(name string, weights []float64, labels []string) {
		require.Len(t, labels, len(weights), name)
		fmt.Fprintf(&b, "%s: []float64{\n", name)
		for i, w := range weights {
			fmt.Fprintf(&b, "%.2f, // %s\n", w, labels[i])
		}
		b.WriteString("},\n")
	}
	list("answer", w.answer, answerLabels())
	list("overlap", w.overlap, extLabels(byOverlap))
	list("context", w.context, extLabels(byContext))
	list("caller", w.caller, []string{"callers that never vary", "for each level of calls: " + fmt.Sprint(unvarying)})
	fmt.Fprintf(&b, `// chosen, not fitted
		strength: %v, // answers
		shiftVar: %v,
		groupVar: %v,
		slopeVar: %v,
	}`, w.strength, w.shiftVar, w.groupVar, w.slopeVar)
	src, err := format.Source(append(b.Bytes(), '\n'))
	require.NoError(t, err)
	return src
}

// What the levels of measures that are no ranges of numbers say.
var (
	recLabels   = [numRecs]string{"no recursion", "recursion", "recursion with this caller"}
	sidesLabels = [numSides]string{"no overlap", "one overlap", "both overlap"}
	bothLabels  = map[kind][numBoth]string{byOverlap: {"one neighbour", "both neighbours agree"}, byContext: {"few stacks", "many stacks"}}
)

// mostLevels is the number of levels of the measure that has most.
const mostLevels = numMargins

// answerLabels says of each weight of answers for which evidence it stands.
func answerLabels() []string {
	labels := make([]string, numAnswerFeatures)
	for rec := range level(numRecs) {
		for sides := range level(numSides) {
			for l := range level(mostLevels) {
				v := evidence{kind: forAnswer, rec: rec, sides: sides, votes: min(l, numVotes-1), share: min(l, numShares-1), margin: l, win: min(l, numWins-1)}
				f, r, s := answerFeatures(v), recLabels[rec], sidesLabels[sides]
				labels[f[0]] = fmt.Sprintf("%s: votes of known stacks: %s", r, votesLabel(v.votes))
				labels[f[1]] = fmt.Sprintf("%s: share of the callers %s", r, rangeLabel(shares[:], v.share))
				labels[f[2]] = fmt.Sprintf("%s, %s: margin in bits %s", r, s, rangeLabel(margins[:], v.margin))
				labels[f[3]] = fmt.Sprintf("%s, %s: lead in bits %s", r, s, rangeLabel(wins[:], v.win))
			}
		}
	}
	return labels
}

// extLabels says of each weight of extensions of a kind for which evidence it stands.
func extLabels(kind kind) []string {
	labels := make([]string, numExtFeatures)
	for rec := range level(numRecs) {
		for l := range level(mostLevels) {
			v := evidence{kind: kind, rec: rec, bits: min(l, numBits-1), lead: min(l, numLeads-1), both: min(l, numBoth-1), doubts: min(l, numDoubts-1), share: min(l, numShares-1)}
			for i, label := range [...]string{
				"bits " + rangeLabel(overlaps[:], v.bits), "lead in bits " + rangeLabel(leads[:], v.lead), bothLabels[kind][v.both],
				"doubt in bits " + rangeLabel(doubts[:], v.doubts), "share of the callers " + rangeLabel(shares[:], v.share),
			} {
				labels[extFeatures(v)[i]] = recLabels[rec] + ": " + label
			}
		}
	}
	return labels
}

// votesLabel says which votes are of a level.
func votesLabel(l level) string {
	switch l {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("share below %v", clearVotes[0].share)
	}
	return fmt.Sprintf("share from %v, unseen to %v", clearVotes[l-2].share, clearVotes[l-2].unseen)
}

// rangeLabel says which numbers are of a level.
func rangeLabel(begin []float64, l level) string {
	switch {
	case l == 0:
		return fmt.Sprintf("below %v", begin[0])
	case int(l) == len(begin):
		return fmt.Sprintf("from %v", begin[l-1])
	}
	return fmt.Sprintf("from %v to %v", begin[l-1], begin[l])
}
