package view_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on the PATH: the page's program was not run")
	}
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
			page := filepath.Join(t.TempDir(), "page.html")
			f, err := os.Create(page)
			require.NoError(t, err)
			require.NoError(t, view.Write(f, p))
			require.NoError(t, f.Close())
			out, err := exec.Command(node, "testdata/totals.cjs", page, "page").Output()
			require.NoError(t, err, "%s", stderr(err))
			var got struct {
				Kinds            map[string]map[string][2]float64
				Checks           []string
				Spanned, Sampled float64
				Restored, Moved  float64
				Runs             [][6]int64
			}
			require.NoError(t, json.Unmarshal(out, &got))
			assert.Empty(t, got.Checks)
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
		})
	}
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
