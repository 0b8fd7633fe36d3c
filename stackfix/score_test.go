package stackfix

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const bridgeName = "[frames lost]"

// recording is a loaded trace: the input of Fix, and names to judge by.
type recording struct {
	name    string
	methods []string
	frame   []MethodID // of each frame
	bridge  FrameID
	tree    *Tree
	tids    []int64
	threads []Thread
	q0      int64
	freq    int64
}

func (r *recording) Method(f FrameID) MethodID { return r.frame[f] }

func (r *recording) names(s StackID) []string {
	var out []string
	for _, f := range r.tree.AppendFrames(nil, s) {
		out = append(out, r.methods[r.frame[f]])
	}
	return out
}

// score is a count of answers.
type score struct{ judged, exact, wrong, bridged, left, deleted, wholeChanged int }

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

// load reads the JSON dump; namesOnly makes the identity of frames their name.
func load(path string, namesOnly bool) (*recording, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d struct {
		Q0, Freq int64
		Methods  []string
		Frames   [][2]any
		Stacks   [][]uint32
		Samples  [][4]int64
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	r := &recording{name: path, methods: append(d.Methods, bridgeName), tree: NewTree(), q0: d.Q0, freq: d.Freq}
	id := make([]FrameID, len(d.Frames))
	if namesOnly {
		for i := range r.methods {
			r.frame = append(r.frame, MethodID(i))
		}
		for i, f := range d.Frames {
			id[i] = FrameID(f[0].(float64))
		}
	} else {
		for i, f := range d.Frames {
			r.frame = append(r.frame, MethodID(f[0].(float64)))
			id[i] = FrameID(i)
		}
		r.frame = append(r.frame, MethodID(len(r.methods)-1))
	}
	r.bridge = FrameID(len(r.frame) - 1)
	st := make([]StackID, len(d.Stacks))
	for i, s := range d.Stacks {
		for _, f := range s {
			st[i] = r.tree.Push(st[i], id[f])
		}
	}
	idx := map[int64]int{}
	for _, s := range d.Samples {
		if namesOnly && s[3] != 0 && os.Getenv("NOEV") != "" {
			continue
		}
		k, ok := idx[s[0]]
		if !ok {
			k = len(r.tids)
			idx[s[0]] = k
			r.tids = append(r.tids, s[0])
			r.threads = append(r.threads, Thread{})
		}
		r.threads[k].Samples = append(r.threads[k].Samples, Sample{Time: s[1], Stack: st[s[2]], Evidence: s[3] != 0})
	}
	return r, nil
}

// cutTo cuts every stack of r to n frames, as a recorder with that limit would
// have, and returns the true stacks.
func (r *recording) cutTo(n int) [][]StackID {
	truth := make([][]StackID, len(r.threads))
	memo := map[StackID]StackID{}
	for i := range r.threads {
		for j := range r.threads[i].Samples {
			s := &r.threads[i].Samples[j]
			truth[i] = append(truth[i], s.Stack)
			d := r.tree.Depth(s.Stack)
			if d >= n {
				s.Cut = Depth
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

func (r *recording) key(s StackID) string { return strings.Join(r.names(s), "\x00") }

// scoreCut holds repairs of a trace that was cut to n frames against the truth,
// of which stacks of full frames and more are not judged.
func (r *recording) scoreCut(truth [][]StackID, res [][]Repair, n, full int, show int) (score, verdicts) {
	var sc score
	v := verdicts{}
	memo := map[[2]StackID]string{}
	for i, t := range r.threads {
		reps := res[i]
		for j, s := range t.Samples {
			var rep *Repair
			if len(reps) > 0 && reps[0].Index == j {
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
			k := [2]StackID{truth[i][j], got}
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
			}
			v[how+":"+ans]++
			if ans == "wrong" && show > 0 {
				show--
				fmt.Println("WRONG", how, rep.Confidence, "thread", i, "sample", j, "of", len(t.Samples))
				showDiff(r.names(truth[i][j]), r.names(got), n)
			}
		}
	}
	return sc, v
}

func showDiff(want, got []string, n int) {
	pre := len(want) - n
	fmt.Println("  want prefix:", strings.Join(short(want[:pre]), " > "))
	fmt.Println("  got  prefix:", strings.Join(short(got[:max(0, len(got)-n)]), " > "))
	fmt.Println("  window head:", strings.Join(short(want[pre:min(pre+8, len(want))]), " > "))
}

func short(ss []string) []string {
	var out []string
	for _, s := range ss {
		if i := strings.IndexByte(s, '('); i > 0 {
			s = s[:i]
		}
		p := strings.Split(s, ".")
		if len(p) > 2 {
			p = p[len(p)-2:]
		}
		out = append(out, strings.Join(p, "."))
	}
	return out
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
	v6Root   = regexp.MustCompile(`!(__clone3?|_start|__libc_start_main\S*|__libc_start_call_main)$`)
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
func (r *recording) scoreLab(mode string, res [][]Repair, truth map[int64][]truthRow, show int) (score, verdicts) {
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
	memo := map[StackID]*info{}
	mm := map[string]*mark{}
	get := func(s StackID) *info {
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
		repOf := make([]*Repair, len(t.Samples))
		for k := range res[i] {
			repOf[res[i][k].Index] = &res[i][k]
		}
		for j, s := range t.Samples {
			if s.Evidence || s.Cut != Whole && (repOf[j] == nil || repOf[j].How != Complete) {
				continue
			}
			if x := get(s.Stack); len(x.marks) > 0 {
				heads[x.head]++
				if fam == "" && x.marks[0].fam != "Shared" {
					fam = x.marks[0].fam
				}
			}
		}
		L := truth[r.tids[i]%1000000]
		for j, s := range t.Samples {
			rep := repOf[j]
			if s.Evidence || rep == nil || rep.How == Complete {
				continue
			}
			x := get(rep.Stack)
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
				if show > 0 {
					show--
					fmt.Println("WRONG", rep.How, rep.Confidence, "thread", i, "sample", j, "want", wantN, "got", n, "restored", rep.Restored, "head known", heads[x.head], strings.ReplaceAll(x.head, "\x00", " > "))
				}
			}
			v[rep.How.String()+":"+ans]++
		}
	}
	return sc, v
}

func labDir(t testing.TB) string {
	d := os.Getenv("SFX")
	if d == "" {
		t.Skip("no dumps")
	}
	return d
}

func envf(n string, d float64) float64 {
	if v, err := strconv.ParseFloat(os.Getenv(n), 64); err == nil {
		return v
	}
	return d
}

func TestLab(t *testing.T) {
	dir := labDir(t)
	strength, virtualShare = envf("FS", strength), envf("VF", virtualShare)
	shiftVar, groupVar = envf("SV", shiftVar), envf("GV", groupVar)
	minConf := envf("CONF", 0)
	show, _ := strconv.Atoi(os.Getenv("SHOW"))
	only := os.Getenv("ONLY")
	want := func(n string) bool { return only == "" || strings.Contains(","+only+",", ","+n+",") }
	for _, names := range []bool{false, true} {
		if m := os.Getenv("MODE"); m == "names" && !names || m == "ips" && names {
			continue
		}
		md := "ips  "
		if names {
			md = "names"
		}
		for _, c := range []struct {
			file, mode, truth string
			n                 int
		}{
			{"chain", "chain", "", 100}, {"noise", "chain", "", 100},
			{"shared", "shared", "shared", 100}, {"recursion", "recursion", "recursion", 100},
			{"v6-chain", "chain", "", 0}, {"v6-shared", "shared", "v6-shared", 0},
			{"golden", "cut", "", 30}, {"golden", "cut", "", 20},
			{"web", "cut", "", 40}, {"csc", "cut", "", 40}, {"async", "cut", "", 40},
			{"http-cpu", "cut", "", 40}, {"library", "cut", "", 40}, {"recursion", "cut", "", 50}, {"shared", "cut", "", 50}, {"csc", "cut", "", 60}, {"web", "cut", "", 25},
		} {
			if !want(c.file) {
				continue
			}
			v6 := strings.HasPrefix(c.file, "v6")
			r, err := load(dir+"/"+c.file+".json", names || v6)
			if err != nil {
				t.Fatal(err)
			}
			if c.mode == "cut" {
				truth := r.cutTo(c.n)
				type last struct {
					cell int
					conf float64
					ok   bool
					ext  bool
					n    int32
					in   bool
				}
				final := map[[2]int]last{}
				if os.Getenv("CELLS") != "" {
					debugHook = func(e *solver, ri int, blk *block, cd *cand, cell int, conf float64) {
						th := e.runs[ri].thread
						w := truth[th][blk.first]
						if r.tree.Depth(w) >= 100 {
							return
						}
						wn := r.tree.AppendFrames(nil, w)
						right := func(p StackID) bool {
							fs := append(e.t.AppendFrames(nil, p), e.o...)
							if len(fs) != len(wn) {
								return false
							}
							for i := range fs {
								if r.frame[fs[i]] != r.frame[wn[i]] {
									return false
								}
							}
							return true
						}
						in := false
						for _, y := range e.cs {
							in = in || right(y.p)
						}
						final[[2]int{th, int(blk.first)}] = last{cell, conf, right(cd.p), blk.ext != blk.stack, blk.n, in}
					}
				}
				res := Fix(r.tree, r, r.threads, Options{Bridge: r.bridge, MinConfidence: minConf})
				debugHook = nil
				agg := map[string][3]int{}
				for _, l := range final {
					a, b, d, g := cellParts(l.cell)
					k := fmt.Sprintf("ext=%v rec%d votes%d sides%d bits%d conf=%.2f", l.ext, a, b, d, g, l.conf)
					x := agg[k]
					if l.ok {
						x[0] += int(l.n)
					} else if l.in {
						x[1] += int(l.n)
					} else {
						x[2] += int(l.n)
					}
					agg[k] = x
				}
				for k, x := range agg {
					fmt.Println("FINAL", c.file, k, "right, wrong in, out:", x)
				}
				sc, v := r.scoreCut(truth, res.Repairs, c.n, 100, show)
				fmt.Printf("%s %-10s@%-3d %v wc=%d %v\n", md, c.file, c.n, sc, sc.wholeChanged, v)
				continue
			}
			if v6 {
				r.markV6()
			} else {
				r.cutTo(c.n)
			}
			var tr map[int64][]truthRow
			if c.truth != "" {
				q0, fr := r.q0, r.freq
				if v6 {
					q0, fr = v6Clock(t, dir+"/"+c.truth)
				}
				if tr, err = loadTruth(os.Getenv("CORPUS")+"/"+c.truth+".truth.ndjson", q0, fr); err != nil {
					t.Fatal(err)
				}
			}
			agg := map[[2]int]string{}
			if os.Getenv("CELLS") != "" {
				debugHook = func(e *solver, ri int, blk *block, cd *cand, cell int, conf float64) {
					a, b, d, g := cellParts(cell)
					agg[[2]int{e.runs[ri].thread, int(blk.first)}] = fmt.Sprintf("rec%d votes%d sides%d bits%d conf=%.2f cell=%.2f n=%.0f ext=%.2f f=%v b=%v", a, b, d, g, conf, e.cal.confidence(cell), e.cal.n[cell], float64(int(blk.conf*20))/20, e.sides[0].ok, e.sides[1].ok)
				}
			}
			res := Fix(r.tree, r, r.threads, Options{Bridge: r.bridge, MinConfidence: minConf})
			debugHook = nil
			cnt := verdicts{}
			for _, v := range agg {
				cnt[v]++
			}
			for k, n := range cnt {
				if n > 5 {
					fmt.Println("FINAL", n, k)
				}
			}
			sc, v := r.scoreLab(c.mode, res.Repairs, tr, show)
			fmt.Printf("%s %-14s %v %v\n", md, c.file, sc, v)
		}
	}
}

func v6Clock(t *testing.T, p string) (int64, int64) {
	b, err := os.ReadFile(p + ".clock")
	if err != nil {
		t.Fatal(err)
	}
	var q, f int64
	fmt.Sscan(string(b), &q, &f)
	return q, f
}

// markV6 marks the cut samples of a collect-linux recording by its rules.
func (r *recording) markV6() {
	memo := map[StackID]Sample{}
	for i := range r.threads {
		for j := range r.threads[i].Samples {
			s := &r.threads[i].Samples[j]
			m, ok := memo[s.Stack]
			if !ok {
				fs := r.tree.AppendFrames(nil, s.Stack)
				strip := 0
				for len(fs) > 0 && (r.methods[r.frame[fs[0]]] == "!?" || r.methods[r.frame[fs[0]]] == "?!?") {
					fs = fs[1:]
					strip++
				}
				m.Stack = r.tree.Add(fs...)
				switch {
				case len(fs) > 0 && (v6Root.MatchString(r.methods[r.frame[fs[0]]]) || strings.HasSuffix(r.methods[r.frame[fs[0]]], "!start_thread")):
				case len(fs) < 8:
					m.Cut = Broken
				default:
					m.Cut = Bytes
					m.Suspect = uint8(max(0, 2-strip))
				}
				memo[s.Stack] = m
			}
			s.Stack, s.Cut, s.Suspect = m.Stack, m.Cut, m.Suspect
		}
	}
}

func TestTrain(t *testing.T) {
	dir := labDir(t)
	if os.Getenv("TRAIN") == "" {
		t.Skip()
	}
	iters, _ := strconv.Atoi(os.Getenv("TRAIN"))
	for it := range iters {
		var X, XE [][]float64
		var R, N, RE, NE []float64
		for _, names := range []bool{false, true} {
			for _, f := range []string{"chain", "noise", "shared", "recursion", "golden", "web", "csc", "async", "library", "http-cpu", "v6-chain", "v6-shared", "v6-machine", "v6-web-faults", "v6-nosymbols"} {
				v6 := strings.HasPrefix(f, "v6")
				if v6 && !names {
					continue
				}
				for _, n := range []int{25, 40, 60} {
					r, err := load(dir+"/"+f+".json", names)
					if err != nil {
						t.Fatal(err)
					}
					if v6 {
						r.markV6()
					} else {
						r.cutTo(100)
					}
					e := newEngine(r, Options{Bridge: r.bridge})
					v := e.virtual(e.load(r.tree, r.threads), n)
					s := solver{engine: e, world: v, learn: true}
					s.solve()
					var c calibration
					c.learn(s.rows)
					for i := range c.n {
						if c.n[i] > 0 {
							a, b, d, g := cellParts(i)
							if it == iters-1 {
								fmt.Printf("CELL %v %s %d rec%d votes%d sides%d bits%d %.0f %.0f\n", names, f, n, a, b, d, g, c.right[i], c.n[i])
							}
							w := min(1, 50/c.n[i])
							X, R, N = append(X, cellFeatures(i)), append(R, w*c.right[i]), append(N, w*c.n[i])
						}
					}
					for i := range c.extN {
						if c.extN[i] > 0 && i >= numOverlaps && it == iters-1 {
							fmt.Printf("CALLER %v %s %d c%d - - - %.0f %.0f\n", names, f, n, i-numOverlaps, c.extRight[i], c.extN[i])
						}
						if c.extN[i] > 0 && i < numOverlaps {
							a, b, d, g := extParts(i)
							if it == iters-1 {
								fmt.Printf("EXT %v %s %d rec%d bits%d lead%d both%d %.0f %.0f\n", names, f, n, a, b, d, g, c.extRight[i], c.extN[i])
							}
							w := min(1, 50/c.extN[i])
							XE, RE, NE = append(XE, extFeatures(i)), append(RE, w*c.extRight[i]), append(NE, w*c.extN[i])
						}
					}
				}
			}
		}
		cellPrior = logistic(X, R, N)
		extPrior = logistic(XE, RE, NE)
	}
	pr := func(n string, w []float64) {
		fmt.Printf("var %s = []float64{", n)
		for i, x := range w {
			if i > 0 {
				fmt.Print(", ")
			}
			fmt.Printf("%.2f", x)
		}
		fmt.Println("}")
	}
	pr("cellPrior", cellPrior)
	pr("extPrior", extPrior)
}

// logistic fits weights by gradient descent.
func logistic(X [][]float64, R, N []float64) []float64 {
	w := make([]float64, len(X[0]))
	tot := 0.0
	for _, n := range N {
		tot += n
	}
	for range 4000 {
		g := make([]float64, len(w))
		for i, x := range X {
			d := R[i] - N[i]*sigmoid(dot(x, w))
			for k, v := range x {
				g[k] += d * v
			}
		}
		for k := range w {
			w[k] += 2 * (g[k] - 0.5*w[k]) / tot
		}
	}
	return w
}
