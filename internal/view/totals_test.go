package view_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

// TestTotals runs the page's program in Node.js and holds what it sums up against the
// totals of package profile.
func TestTotals(t *testing.T) {
	files := []string{"../../testdata/chain.nettrace.zst"}
	if _, err := os.Stat("../../../shared/corpus"); err == nil {
		for _, f := range []string{"recursion", "web"} {
			files = append(files, "../../../shared/corpus/dotnet10/"+f+".nettrace")
		}
		files = append(files, "../../../shared/corpus/real/bus.nettrace.zst")
	} else {
		t.Log("no ../shared/corpus: only the trace in testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := tracefix.Read(t.Context(), file, nil)
			require.NoError(t, err)
			tracefix.Repair(p, nil)
			got := sumsOf(t, p)
			assert.InDelta(t, got.Sampled, got.Spanned, 1, "spans last as long as their samples")
			assert.Positive(t, got.Restored)
			assert.InDelta(t, repairedTime(p), got.Moved, 1, "as recorded, all that was repaired is marked")
			assert.Equal(t, restoredRuns(p), got.Runs)

			for row := range p.Top(profile.TopOptions{}).Rows() {
				cpu := got.Kinds["charged"][row.Method]
				assert.InDelta(t, row.CPUSelf, cpu[0]/1e6, 0.001, "%s, itself, with the sampler's stops", row.Method)
				assert.InDelta(t, row.CPUTotal, cpu[1]/1e6, 0.001, "%s, in all, with the sampler's stops", row.Method)
			}
			rows := 0
			for row := range p.Top(profile.TopOptions{Raw: true}).Rows() {
				cpu, wait := got.Kinds["cpu"][row.Method], got.Kinds["wait"][row.Method]
				for i, want := range []float64{row.CPUSelf, row.CPUTotal, row.WaitSelf, row.WaitTotal} {
					have := []float64{cpu[0], cpu[1], wait[0], wait[1]}[i] / 1e6
					assert.InDelta(t, want, have, 0.001, "%s, figure %d", row.Method, i)
				}
				rows++
			}
			assert.NotZero(t, rows)
			assertAround(t, p, got.Around)
		})
	}
}

// sums are what the page sums up: times in ns.
type sums struct {
	Kinds            map[string]map[string][2]float64
	Checks           []string
	Spanned, Sampled float64
	Restored, Moved  float64
	Runs             [][6]int64
	Around           map[string]struct{ Callers, Callees map[string]float64 }
	Requests         map[int][2]float64
}

// sumsOf runs the program of p's page.
func sumsOf(t *testing.T, p *profile.Profile) (got sums) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on the PATH: the page's program was not run")
	}
	page := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(page)
	require.NoError(t, err)
	require.NoError(t, view.Write(f, p))
	require.NoError(t, f.Close())
	out, err := exec.Command(node, "testdata/totals.cjs", page, "page").Output()
	require.NoError(t, err, "%s", stderr(err))
	require.NoError(t, json.Unmarshal(out, &got))
	assert.Empty(t, got.Checks)
	return got
}

// assertAround holds callers and callees of many methods against what top --method tells.
func assertAround(t *testing.T, p *profile.Profile, got map[string]struct{ Callers, Callees map[string]float64 }) {
	t.Helper()
	names := slices.Sorted(maps.Keys(got))
	for i := 0; i < len(names); i += 1 + len(names)/60 {
		want := p.Around(names[i], false)
		if len(want.Methods) != 1 || want.Methods[0] != names[i] {
			continue // a * in it is wild
		}
		for k, rows := range [][]profile.AroundRow{want.Callers, want.Callees} {
			have := []map[string]float64{got[names[i]].Callers, got[names[i]].Callees}[k]
			assert.Len(t, have, len(rows), names[i])
			for _, row := range rows {
				name := row.Method
				if name == profile.Root || name == profile.Self {
					name = ""
				}
				assert.InDelta(t, row.CPU+row.Wait, have[name]/1e6, 0.001, "%s beside %s", row.Method, names[i])
			}
		}
	}
}

// TestRequestTotals: what the page shows of a request is what top --request counts.
func TestRequestTotals(t *testing.T) {
	t.Run("made up", func(t *testing.T) {
		got := sumsOf(t, nestedRequests())
		// A sample counts whole where its own time lies: the one at 10 ms reaches into the request
		// and is not of it, the one at 30 ms reaches out of it and is. What a request asked of
		// another service belongs to both.
		assert.Equal(t, map[int][2]float64{59: {20e6, 0}, 60: {10e6, 0}, 61: {0, 0}}, got.Requests)
	})
	file := "../../../shared/corpus/dotnet10/requests-full.nettrace"
	if _, err := os.Stat(file); err != nil {
		t.Skip("no ../shared/corpus: it holds the recording of a service with its requests")
	}
	read := func() *profile.Profile {
		p, err := tracefix.Read(t.Context(), file, &tracefix.ReadOptions{Tracks: []string{"http"}, Work: true})
		require.NoError(t, err)
		tracefix.Repair(p, nil)
		return p
	}
	p := read()
	got := sumsOf(t, p)
	timing, positive := p.Timing(), 0
	for id, have := range got.Requests {
		kept := (&profile.Selection{Requests: []string{strconv.Itoa(id)}}).Inside(p)
		var want [2]float64
		for _, th := range p.Threads {
			work := th.Work.Cursor()
			for st := range timing.Stretches(th) {
				if w := work.At(st.Time); w == nil || w.Activity < 0 || !kept[w.Activity] {
					continue
				}
				k := 0
				if !st.Type.OnCPU() {
					k = 1
				}
				want[k] += float64(st.Nanos())
			}
		}
		assert.Equal(t, want, have, "request %d", id)
		if want != [2]float64{} {
			positive++
		}
	}
	assert.Greater(t, positive, 50)
	p = read()
	p.Select(profile.Selection{Requests: []string{"59"}})
	top := p.Top(profile.TopOptions{})
	assert.InDelta(t, top.CPU, got.Requests[59][0]/1e6, 0.001)
	assert.InDelta(t, top.Wait, got.Requests[59][1]/1e6, 0.001)
}

// nestedRequests is a thread that is sampled each 10 ms and works for request 59 from 15 to 35 ms,
// in it from 25 ms on for request 60 below it, and then for request 61 between two samples.
func nestedRequests() *profile.Profile {
	tab := profile.NewTable()
	stack := tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "A()"})}))
	th := &profile.Thread{Process: &profile.Process{PID: 7}, TID: 8}
	for i := range 6 {
		th.Samples.Append(profile.Sample{Time: int64(i) * 10e6, Stack: stack})
	}
	p := &profile.Profile{Table: tab, Threads: []*profile.Thread{th}, Meta: profile.Meta{Source: "-", End: 60e6}}
	outer := p.Activities.Add(&profile.Activity{Name: "HttpIn", Parent: -1, Request: 59})
	inner := p.Activities.Add(&profile.Activity{Name: "HttpOut", Parent: outer, Request: 60})
	below := p.Activities.Add(&profile.Activity{Name: "Connect", Parent: inner})
	after := p.Activities.Add(&profile.Activity{Name: "HttpIn", Parent: -1, Request: 61})
	p.Activities.Done()
	th.Work.Add(profile.Work{From: 15e6, To: 25e6, Activity: outer})
	th.Work.Add(profile.Work{From: 25e6, To: 35e6, Activity: below})
	th.Work.Add(profile.Work{From: 35e6, To: 38e6, Activity: -1})
	th.Work.Add(profile.Work{From: 42e6, To: 48e6, Activity: after})
	p.Tracks = []*profile.Track{{Name: "Requests", Group: "http", Slices: slices.Values([]*profile.Slice{
		{Start: 12e6, Dur: 20e6, Name: "GET /outer", Args: []profile.Arg{{Key: "id", Value: int64(59)}}},
		{Start: 25e6, Dur: 7e6, Name: "GET /inner", Args: []profile.Arg{{Key: "id", Value: int64(60)}}},
		{Start: 42e6, Dur: 6e6, Name: "GET /after", Args: []profile.Arg{{Key: "id", Value: int64(61)}}},
	})}}
	return p
}

// repairedTime is how long repaired samples speak.
func repairedTime(p *profile.Profile) (ns float64) {
	stretches := p.Timing().Stretches
	for _, th := range p.Threads {
		repairs := th.Repairs.Cursor()
		for s := range stretches(th) {
			if repairs.Of(s.Index) != nil {
				ns += float64(s.Nanos())
			}
		}
	}
	return ns
}

// restoredRuns are the times in which restored frames stand, from the samples themselves: process, thread,
// from, to, frames in front of the bridge, behind it.
func restoredRuns(p *profile.Profile) (runs [][6]int64) {
	stretches := p.Timing().Stretches
	for _, th := range p.Threads {
		repairs, last := th.Repairs.Cursor(), -1
		for s := range stretches(th) {
			r := repairs.Of(s.Index)
			if r == nil || r.Restored == 0 {
				continue
			}
			row := [6]int64{th.Owner().PID, th.TID, s.Start, s.End, int64(r.Restored - r.Above), int64(r.Above)}
			if last >= 0 && runs[last][3] == s.Start && runs[last][4] == row[4] && runs[last][5] == row[5] {
				runs[last][3] = s.End
				continue
			}
			last = len(runs)
			runs = append(runs, row)
		}
	}
	return runs
}

func stderr(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return string(e.Stderr)
	}
	return ""
}
