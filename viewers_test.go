package tracefix_test

import (
	"bytes"
	"context"
	"encoding/base64"
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
