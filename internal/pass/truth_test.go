package pass

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// The truth tests judge the repair by recordings whose true stacks are known: by
// construction (the programs of the corpus call methods whose names tell their
// place), or because whole stacks are cut on purpose. They print a table.

const bridgeName = profile.Bridge

// recording is a loaded trace: the input of stackfix, and names to judge by.
type recording struct {
	methods []string
	frame   []stackfix.MethodID // of each frame
	bridge  stackfix.FrameID
	tree    *stacks.Tree
	tids    []int64
	threads []recordedThread
	info    *load.Info
}

func (r *recording) Method(f stackfix.FrameID) stackfix.MethodID { return r.frame[f] }

func (r *recording) names(s stackfix.StackID) []string {
	var out []string
	for _, f := range r.tree.AppendFrames(nil, s) {
		out = append(out, r.methods[r.frame[f]])
	}
	return out
}

const corpus = "../../../shared/corpus/"

// loadRecording reads a trace. With namesOnly two frames are one if they have one
// name, as in Chromium JSON.
func loadRecording(t testing.TB, path string, namesOnly bool) *recording {
	t.Helper()
	p, info := loadTrace(t, path, !namesOnly)
	return newRecording(p, info, namesOnly)
}

// loadTrace reads a trace; with evidence as a repair does.
func loadTrace(t testing.TB, path string, evidence bool) (*profile.Profile, *load.Info) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		switch filepath.Ext(path) {
		case ".gz":
			return gzip.NewReader(f)
		case ".zst":
			z, err := zstd.NewReader(f)
			if err != nil {
				return nil, err
			}
			return z.IOReadCloser(), nil
		}
		return f, nil
	}
	p, info, err := load.Profile(context.Background(), open, &load.Options{Evidence: evidence})
	require.NoError(t, err)
	return p, info
}

func newRecording(p *profile.Profile, info *load.Info, namesOnly bool) *recording {
	r := &recording{tree: stacks.NewTree(), info: info}
	tab := p.Table
	for m := range tab.Methods() {
		r.methods = append(r.methods, tab.MethodAt(profile.MethodID(m)).Full())
	}
	r.methods = append(r.methods, bridgeName)
	if namesOnly {
		for m := range r.methods {
			r.frame = append(r.frame, stackfix.MethodID(m))
		}
	} else {
		for f := range tab.Frames() {
			r.frame = append(r.frame, tab.Method(profile.FrameID(f)))
		}
		r.frame = append(r.frame, stackfix.MethodID(len(r.methods)-1))
	}
	r.bridge = stackfix.FrameID(len(r.frame) - 1)
	memo := map[profile.StackID]stackfix.StackID{}
	var fs []profile.FrameID
	for _, t := range p.Threads {
		th := recordedThread{Breaks: t.Breaks}
		walks := t.Walks.From(0)
		for _, s := range t.Samples.All() {
			th.walks = append(th.walks, walks.Next())
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
			th.Samples = append(th.Samples, stackfix.Sample{Time: s.Time, Stack: id, Cut: cutOf[s.Cut], Suspect: s.Suspect, Evidence: s.Type == profile.SampleEvent})
		}
		r.tids = append(r.tids, t.TID)
		r.threads = append(r.threads, th)
	}
	return r
}

func (r *recording) fix() [][]stackfix.Repair {
	threads := make([]stackfix.Thread, len(r.threads))
	pace := r.pace()
	for i, t := range r.threads {
		threads[i] = stackfix.Thread{Samples: stackfix.Slice(t.Samples), Breaks: t.Breaks}
		if pace == nil {
			continue
		}
		threads[i].Spread = float32(pace.spread)
		for k, w := range t.walks {
			if s := &t.Samples[k]; w != 0 {
				s.Effort = float32(pace.work(s.Time, w))
			}
		}
	}
	res := stackfix.Fix(r.tree, r, threads, stackfix.Options{Bridge: r.bridge}).Repairs
	for i, reps := range res {
		res[i] = nil
		for _, rep := range reps { // one for each sample
			for n := rep.N; n > 0; n-- {
				rep.N = 1
				res[i] = append(res[i], rep)
				rep.Index++
			}
		}
	}
	return res
}

// pace learns that of the recorder, as a repair does of what is not cut.
func (r *recording) pace() *pace {
	var walked []*profile.Thread
	for _, t := range r.threads {
		th := &profile.Thread{}
		for i, s := range t.Samples {
			th.Last = max(th.Last, s.Time)
			x := profile.Sample{Time: s.Time, Stack: s.Stack}
			if s.Cut != stackfix.Whole {
				x.Cut = profile.CutDepth
			}
			th.Samples.Append(x)
			th.Walks.Add(i, t.walks[i])
		}
		walked = append(walked, th)
	}
	return newPace(struct {
		*stacks.Tree
		*recording
	}{r.tree, r}, walked)
}

// A recordedThread is a stackfix.Thread whose samples can be changed.
type recordedThread struct {
	Samples []stackfix.Sample
	walks   []profile.Walk // of them
	Breaks  []int64
}

// previous is what the public repairs do: it looks at the previous sample of the
// thread only, for the name of the outermost frame. longest takes the place with
// the longest overlap (the C# tool), else the shallowest (the Python script). A
// stack without a place is deleted: it has Stack 0.
func (r *recording) previous(longest bool) [][]stackfix.Repair {
	out := make([][]stackfix.Repair, len(r.threads))
	for i, t := range r.threads {
		var prev []stackfix.FrameID
		for j, s := range t.Samples {
			if s.Evidence {
				continue
			}
			f := r.tree.AppendFrames(nil, s.Stack)
			if s.Cut == stackfix.Whole || len(f) == 0 {
				prev = f
				continue
			}
			rep := stackfix.Repair{Index: int32(j), N: 1, Stack: s.Stack, How: stackfix.Before}
			if len(prev) > 0 && r.frame[prev[0]] != r.frame[f[0]] {
				best, bestK := -1, -1
				for p := range prev {
					if r.frame[prev[p]] != r.frame[f[0]] {
						continue
					}
					k := 0
					for p+k < len(prev) && k < len(f) && r.frame[prev[p+k]] == r.frame[f[k]] {
						k++
					}
					if k > bestK && (longest || best < 0) {
						best, bestK = p, k
					}
				}
				if best < 0 {
					rep.Stack = 0
				} else {
					f = append(append([]stackfix.FrameID(nil), prev[:best]...), f...)
					rep.Stack = r.tree.Add(f...)
				}
			}
			if rep.Stack != 0 {
				prev = f
			}
			out[i] = append(out[i], rep)
		}
	}
	return out
}

// score is a count of answers.
type score struct {
	judged, exact, wrong, bridged, left, deleted, wholeChanged int
	bands                                                      bands
}

// bands tell how many answers of a confidence are right: five, each from the confidence
// that bandFrom says on.
type bands [5]struct {
	n, right int
	expected float64 // sum of confidences
}

var bandFrom = [len(bands{})]float32{0, 0.93, 0.95, 0.97, 0.99}

// add takes in an answer, which is no bridge.
func (b *bands) add(confidence float32, right bool) {
	k := len(b) - 1
	for confidence < bandFrom[k] {
		k--
	}
	b[k].n++
	b[k].expected += float64(confidence)
	if right {
		b[k].right++
	}
}

func (b *bands) addAll(c *bands) {
	for k := range b {
		b[k].n, b[k].right, b[k].expected = b[k].n+c[k].n, b[k].right+c[k].right, b[k].expected+c[k].expected
	}
}

func (b *bands) String() string {
	var out strings.Builder
	for k, x := range b {
		n := float64(max(1, x.n))
		fmt.Fprintf(&out, "  %.2f+: %d, said %.1f %%, right %.1f %%", max(bandFrom[k], stackfix.DefaultConfidence), x.n, 100*x.expected/n, 100*float64(x.right)/n)
	}
	return out.String()
}

func (s score) pct(n int) float64 { return 100 * float64(n) / float64(max(1, s.judged)) }

func (s score) String() string {
	return fmt.Sprintf("%6d  exact %6.2f  wrong %5.2f  bridged %6.2f  left %5.2f deleted %5.2f", s.judged, s.pct(s.exact), s.pct(s.wrong), s.pct(s.bridged), s.pct(s.left), s.pct(s.deleted))
}

type verdicts map[string]int

func (v verdicts) String() string {
	var ks []string
	for k := range v {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	var b strings.Builder
	for _, k := range ks {
		fmt.Fprintf(&b, " %s=%d", k, v[k])
	}
	return b.String()
}

// cutTo cuts every stack of r to n frames, as a recorder with that limit would
// have, and returns the true stacks.
func (r *recording) cutTo(n int) [][]stackfix.StackID {
	truth := make([][]stackfix.StackID, len(r.threads))
	memo := map[stackfix.StackID]stackfix.StackID{}
	for i := range r.threads {
		for j := range r.threads[i].Samples {
			s := &r.threads[i].Samples[j]
			truth[i] = append(truth[i], s.Stack)
			d := r.tree.Depth(s.Stack)
			if d >= n {
				s.Cut = stackfix.Depth
			}
			if d > n {
				c, ok := memo[s.Stack]
				if !ok {
					c = r.tree.Add(r.tree.AppendFrames(nil, s.Stack)[d-n:]...)
					memo[s.Stack] = c
				}
				s.Stack = c
			}
		}
	}
	return truth
}

// scoreCut holds repairs of a trace that was cut to n frames against the truth,
// of which stacks of full frames and more are not judged.
func (r *recording) scoreCut(truth [][]stackfix.StackID, res [][]stackfix.Repair, n, full int) (score, verdicts) {
	var sc score
	v := verdicts{}
	memo := map[[2]stackfix.StackID]string{}
	for i, t := range r.threads {
		reps := res[i]
		for j, s := range t.Samples {
			var rep *stackfix.Repair
			if len(reps) > 0 && int(reps[0].Index) == j {
				rep = &reps[0]
				reps = reps[1:]
			}
			if s.Evidence {
				continue
			}
			d := r.tree.Depth(truth[i][j])
			if d >= full {
				continue
			}
			got := s.Stack
			if rep != nil {
				got = rep.Stack
			}
			if d <= n {
				if got != truth[i][j] {
					sc.wholeChanged++
				}
				continue
			}
			sc.judged++
			if got == 0 {
				sc.deleted++
				continue
			}
			k := [2]stackfix.StackID{truth[i][j], got}
			ans, ok := memo[k]
			if !ok {
				ans = judgeCut(r.names(truth[i][j]), r.names(got))
				memo[k] = ans
			}
			switch ans {
			case "exact":
				sc.exact++
			case "bridged":
				sc.bridged++
			case "left":
				sc.left++
			default:
				sc.wrong++
			}
			how := "-"
			if rep != nil {
				how = rep.How.String()
				if rep.How != stackfix.Bridge {
					sc.bands.add(rep.Confidence, ans == "exact")
				}
			}
			v[how+":"+ans]++
		}
	}
	return sc, v
}

// meanBase is how many frames stand before a bridge on average.
func meanBase(res [][]stackfix.Repair) float64 {
	n, frames := 0, 0
	for _, reps := range res {
		for _, rep := range reps {
			if rep.How == stackfix.Bridge {
				n++
				frames += int(rep.Restored)
			}
		}
	}
	return float64(frames) / float64(max(1, n))
}

func judgeCut(t, f []string) string {
	if equal(f, t) {
		return "exact"
	}
	for i, n := range f {
		if n == bridgeName {
			k := len(f) - i - 1
			if i <= len(t) && k <= len(t) && equal(f[:i], t[:i]) && equal(t[len(t)-k:], f[i+1:]) {
				return "bridged"
			}
			return "wrong"
		}
	}
	if len(f) <= len(t) && equal(f, t[len(t)-len(f):]) {
		return "left"
	}
	return "wrong"
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

var (
	labFrame = regexp.MustCompile(`(Alpha|Beta|Gamma|Shared)(?:\.|::)([FGS])(\d\d\d)\b`)
	recFrame = regexp.MustCompile(`Rec(?:\.|::)Visit(Binary|Unary|Call)\b`)
)

type truthRow struct {
	at                   float64 // ms
	target, shared, from int
}

func loadTruth(path string, q0, freq int64) (map[int64][]truthRow, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[int64][]truthRow{}
	for _, l := range strings.Split(string(b), "\n") {
		if l == "" {
			continue
		}
		var e struct {
			Qpc, Tid             int64
			Target, Shared, From int
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			return nil, err
		}
		out[e.Tid] = append(out[e.Tid], truthRow{float64(e.Qpc-q0) * 1000 / float64(freq), e.Target, e.Shared, e.From})
	}
	for _, v := range out {
		sort.Slice(v, func(i, j int) bool { return v[i].at < v[j].at })
	}
	return out, nil
}

type mark struct {
	pos int
	fam string
	k   int
}

// scoreLab judges repairs of the lab programs, whose true stacks are known by
// construction.
func (r *recording) scoreLab(mode string, res [][]stackfix.Repair, truth map[int64][]truthRow) (score, verdicts) {
	rx := labFrame
	if mode == "recursion" {
		rx = recFrame
	}
	type info struct {
		names  []string
		marks  []mark
		head   string
		bridge int
	}
	memo := map[stackfix.StackID]*info{}
	mm := map[string]*mark{}
	get := func(s stackfix.StackID) *info {
		if x, ok := memo[s]; ok {
			return x
		}
		x := &info{names: r.names(s), bridge: -1}
		for i, n := range x.names {
			m, ok := mm[n]
			if !ok {
				if g := rx.FindStringSubmatch(n); g != nil {
					m = &mark{fam: g[1]}
					if len(g) > 3 {
						m.k, _ = strconv.Atoi(g[3])
					}
				}
				mm[n] = m
			}
			if m != nil {
				x.marks = append(x.marks, mark{i, m.fam, m.k})
			}
			if n == bridgeName {
				x.bridge = i
			}
		}
		if len(x.marks) > 0 {
			x.head = strings.Join(x.names[:x.marks[0].pos], "\x00")
		}
		memo[s] = x
		return x
	}
	var sc score
	v := verdicts{}
	for i, t := range r.threads {
		heads := map[string]int{}
		fam := ""
		repOf := make([]*stackfix.Repair, len(t.Samples))
		for k := range res[i] {
			repOf[res[i][k].Index] = &res[i][k]
		}
		for j, s := range t.Samples {
			if s.Evidence || s.Cut != stackfix.Whole && (repOf[j] == nil || repOf[j].How != stackfix.Complete) {
				continue
			}
			if x := get(s.Stack); len(x.marks) > 0 {
				heads[x.head]++
				if fam == "" && x.marks[0].fam != "Shared" {
					fam = x.marks[0].fam
				}
			}
		}
		L := truth[r.tids[i]]
		for j, s := range t.Samples {
			rep := repOf[j]
			if s.Evidence || rep == nil || rep.How == stackfix.Complete {
				continue
			}
			x := get(rep.Stack)
			if rep.Stack == 0 {
				if len(get(s.Stack).marks) > 0 {
					sc.judged++
					sc.deleted++
				}
				continue
			}
			if len(x.marks) == 0 {
				continue
			}
			n := len(x.marks)
			var want []mark // pos unused
			wantN := 0
			if mode == "chain" {
				last := x.marks[n-1]
				for k := 0; k <= last.k; k++ {
					want = append(want, mark{0, last.fam, k})
				}
			} else {
				at := float64(s.Time) / 1e6
				k := sort.Search(len(L), func(k int) bool { return L[k].at > at }) - 1
				if k < 0 || at-L[k].at < 1 || (k+1 < len(L) && L[k+1].at-at < 0.3) {
					continue
				}
				e := L[k]
				if mode == "recursion" {
					wantN = e.target + 1
				} else {
					f := fam
					for _, m := range x.marks {
						if m.fam != "Shared" {
							f = m.fam
							break
						}
					}
					for q := 0; q <= e.from; q++ {
						want = append(want, mark{0, f, q})
					}
					for q := 0; q <= e.shared; q++ {
						want = append(want, mark{0, "Shared", q})
					}
					l, w := x.marks[n-1], want[len(want)-1]
					if l.fam != w.fam || l.k != w.k {
						continue
					}
				}
			}
			if mode != "recursion" {
				wantN = len(want)
			}
			tailEq := func(got []mark) bool {
				if len(got) > wantN {
					return false
				}
				if mode == "recursion" {
					return true
				}
				for q, m := range got {
					w := want[len(want)-len(got)+q]
					if m.fam != w.fam || m.k != w.k {
						return false
					}
				}
				return true
			}
			sc.judged++
			ans := "wrong"
			if x.bridge >= 0 {
				q := 0
				for q < n && x.marks[q].pos < x.bridge {
					q++
				}
				if tailEq(x.marks[q:]) && (mode != "recursion" || n <= wantN) {
					ans = "bridged"
					for z, m := range x.marks[:q] {
						if mode != "recursion" && (z >= len(want) || m.fam != want[z].fam || m.k != want[z].k) {
							v["CLAIMED"]++
							break
						}
					}
				}
			} else {
				_, known := heads[x.head]
				switch {
				case n == wantN && tailEq(x.marks) && (len(heads) == 0 || known):
					ans = "exact"
				case rep.Stack == s.Stack:
					ans = "left"
				case tailEq(x.marks) && x.head == "":
					ans = "left"
				}
			}
			switch ans {
			case "exact":
				sc.exact++
			case "bridged":
				sc.bridged++
			case "left":
				sc.left++
			default:
				sc.wrong++
			}
			v[rep.How.String()+":"+ans]++
			if rep.How != stackfix.Bridge {
				sc.bands.add(rep.Confidence, ans == "exact")
			}
		}
	}
	return sc, v
}

// bars are what a repair must reach, in percent of the cut samples that can be
// judged. A negative bar does not count.
type bars struct{ exact, wrong float64 }

// The rows of the table.
var truthRows = []struct {
	file      string // in the corpus
	mode      string // how to judge; cut: cut on purpose
	truth     string
	n         int // cut: frames that are left
	ips       bars
	namesOnly bars
}{
	{"dotnet10/chain.nettrace", "chain", "", 0, bars{99, 0.3}, bars{97, 0.3}},
	{"dotnet10/noise.nettrace", "chain", "", 0, bars{99, 0.3}, bars{97, 0.3}},
	{"dotnet10/shared.nettrace", "shared", "dotnet10/shared.truth.ndjson", 0, bars{62, 0.5}, bars{60, 2}},
	{"dotnet10/recursion.nettrace", "recursion", "dotnet10/recursion.truth.ndjson", 0, bars{60, 1}, bars{55, 1}},
	{"dotnet10/v6-chain.nettrace", "chain", "", 0, bars{70, 0.3}, bars{65, 0.3}},
	{"nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz", "cut", "", 30, bars{90, 0.5}, bars{90, 0.5}},
	{"nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz", "cut", "", 20, bars{80, 1}, bars{80, 1}},
	{"dotnet10/web.nettrace", "cut", "", 20, bars{44, 0.5}, bars{44, 0.5}}, // a method is inlined in it, and no stack shows when
	{"dotnet10/web.nettrace", "cut", "", 40, bars{85, 1}, bars{85, 1}},
	{"dotnet10/web.nettrace", "cut", "", 55, bars{85, 0.5}, bars{85, 0.5}},
	{"dotnet10/http-cpu.nettrace", "cut", "", 40, bars{80, 1}, bars{30, 1}},
	{"dotnet10/csc.nettrace", "cut", "", 40, bars{15, 1}, bars{15, 1}},
	{"dotnet10/async.nettrace", "cut", "", 40, bars{-1, 1}, bars{-1, 1}},
}

func TestTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("reads thirteen recordings twice")
	}
	var all bands
	for _, row := range truthRows {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(row.file), ".gz"), ".nettrace")
		if row.n > 0 {
			name = fmt.Sprintf("%s@%d", name, row.n)
		}
		t.Run(name, func(t *testing.T) {
			for _, namesOnly := range []bool{false, true} {
				r := loadRecording(t, corpus+row.file, namesOnly)
				mode, bar := "ips", row.ips
				if namesOnly {
					mode, bar = "names", row.namesOnly
				}
				var judge func(res [][]stackfix.Repair) (score, verdicts)
				if row.mode == "cut" {
					truth := r.cutTo(row.n)
					judge = func(res [][]stackfix.Repair) (score, verdicts) { return r.scoreCut(truth, res, row.n, 100) }
				} else {
					var truth map[int64][]truthRow
					if row.truth != "" {
						var err error
						truth, err = loadTruth(corpus+row.truth, r.info.Header.SyncQPC, r.info.Header.Frequency)
						require.NoError(t, err)
					}
					judge = func(res [][]stackfix.Repair) (score, verdicts) { return r.scoreLab(row.mode, res, truth) }
				}
				began := time.Now()
				res := r.fix()
				took := time.Since(began)
				sc, v := judge(res)
				all.addAll(&sc.bands)
				t.Logf("%-5s %v  %v%v  frames before a bridge %.2f", mode, sc, took.Round(time.Millisecond), v, meanBase(res))
				for _, peer := range []struct {
					name    string
					longest bool
				}{{"previous sample, longest overlap", true}, {"previous sample, shallowest place", false}} {
					p, _ := judge(r.previous(peer.longest))
					t.Logf("%-5s %v  %s", mode, p, peer.name)
				}
				require.Positive(t, sc.judged)
				assert.Zero(t, sc.deleted, "nothing is deleted")
				assert.Zero(t, sc.wholeChanged, "whole stacks stay as they are")
				if bar.exact >= 0 {
					assert.GreaterOrEqual(t, sc.pct(sc.exact), bar.exact, "%s: exact, percent", mode)
				}
				if bar.wrong >= 0 {
					assert.LessOrEqual(t, sc.pct(sc.wrong), bar.wrong, "%s: wrong, percent", mode)
				}
			}
		})
	}
	t.Logf("BANDS%v", &all)
}
