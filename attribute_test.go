package tracefix_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A truthRun says for which job a thread works from a time on; 0: for none.
type truthRun struct {
	at int64 // ns
	id int
}

// truthOf reads what the program wrote down itself, by thread.
func truthOf(t *testing.T, file string, h *nettrace.Header) map[int64][]truthRun {
	t.Helper()
	b, err := os.ReadFile(strings.TrimSuffix(file, ".nettrace") + ".truth.ndjson")
	if err != nil {
		f, err := os.Open(strings.TrimSuffix(file, ".nettrace") + ".truth.ndjson.zst")
		require.NoError(t, err)
		defer f.Close()
		z, err := zstd.NewReader(f)
		require.NoError(t, err)
		defer z.Close()
		b, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	runs := map[int64][]truthRun{}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r struct {
			Kind string
			TID  int64
			QPC  int64
			ID   int
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		if r.Kind == "run" {
			runs[r.TID] = append(runs[r.TID], truthRun{(r.QPC - h.SyncQPC) * 1e9 / h.Frequency, r.ID})
		}
	}
	for _, v := range runs {
		sort.SliceStable(v, func(i, j int) bool { return v[i].at < v[j].at })
	}
	return runs
}

// jobsOf reads which job each activity is.
func jobsOf(t *testing.T, file string) (*nettrace.Header, map[string]int) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	r, err := nettrace.NewReader(f, nil)
	require.NoError(t, err)
	jobs := map[string]int{}
	var ev nettrace.Event
	for r.Read(&ev) == nil {
		if ev.Metadata.Provider == "Lab-Req" && strings.HasPrefix(ev.EventName(), "Job") && ev.Opcode == 1 {
			c := ev.Cursor()
			jobs[string(ev.ActivityID[:])] = int(c.U32())
		}
	}
	return r.Header(), jobs
}

// Whose samples: held against what the program knew of itself.
func TestWhoseSamples(t *testing.T) {
	for _, c := range []struct {
		file         string
		right, wrong float64 // %
	}{
		{"requests-full", 99, 1},
		{"requests-short", 99, 1},
		{"requests-starve", 99, 1},
		{"requests-convoy", 99, 1},
		{"requests-pool", 98, 1},
		{"requests-flow", 85, 2},
		{"requests-none", 60, 2},
	} {
		t.Run(c.file, func(t *testing.T) {
			file := tracetest.Corpus(t, "dotnet10", c.file+".nettrace")
			header, jobs := jobsOf(t, file)
			truth := truthOf(t, file, header)
			p, err := tracefix.Read(context.Background(), file, &tracefix.ReadOptions{Work: true})
			require.NoError(t, err)
			job := make([]int, p.Activities.Len()) // of each activity: its own, or that below which it lies
			above := map[int32]int{}
			for i, a := range p.Activities.All() {
				if job[i] = jobs[string(a.ID[:])]; job[i] == 0 && a.Parent >= 0 {
					job[i] = job[a.Parent]
				} else if job[i] != 0 && a.Parent >= 0 {
					above[a.Parent] = job[i] // the request begins before and ends behind its job
				}
			}
			var right, wrong, inside, outside, claimed float64
			for _, th := range p.Threads {
				runs := truth[th.TID]
				for _, s := range th.Samples.All() {
					k := sort.Search(len(runs), func(i int) bool { return runs[i].at > s.Time }) - 1
					if k < 0 || s.Time-runs[k].at < 1e5 || k+1 < len(runs) && runs[k+1].at-s.Time < 1e5 {
						continue
					}
					w := th.Work.At(s.Time)
					got := 0
					if w != nil && w.Activity >= 0 {
						got = job[w.Activity]
					}
					switch want := runs[k].id; {
					case want == 0:
						outside++
						if got != 0 {
							claimed++
						}
					default:
						inside++
						if w != nil && w.Activity >= 0 && (got == want || above[w.Activity] == want) {
							right++
						} else if w != nil {
							wrong++
						}
					}
				}
			}
			require.Greater(t, inside, 500.)
			assert.GreaterOrEqual(t, 100*right/inside, c.right, "right of %v", inside)
			assert.LessOrEqual(t, 100*wrong/inside, c.wrong, "wrong of %v", inside)
			assert.LessOrEqual(t, 100*claimed/outside, c.wrong, "claimed of %v", outside)
		})
	}
}

// Samples of one request, and those of a kind of activity, are what Select leaves.
func TestSelectByActivity(t *testing.T) {
	file := tracetest.Corpus(t, "dotnet10", "requests-short.nettrace")
	p, err := tracefix.Read(context.Background(), file, &tracefix.ReadOptions{Work: true})
	require.NoError(t, err)
	byRequest := map[int]int{} // samples
	jobs := 0
	for _, th := range p.Threads {
		for _, s := range th.Samples.All() {
			if w := th.Work.At(s.Time); w != nil && w.Activity >= 0 {
				inJob, seen := false, map[int]bool{}
				for i := w.Activity; i >= 0; i = p.Activities.Parent(i) {
					inJob = inJob || p.Activities.At(i).Name == "Job"
					if r := p.Activities.At(i).Request; r > 0 && !seen[r] {
						seen[r] = true
						byRequest[r]++
					}
				}
				if inJob {
					jobs++
				}
			}
		}
	}
	require.NotZero(t, jobs)
	written := func(s profile.Selection) (n int) {
		p, err := tracefix.Read(context.Background(), file, &tracefix.ReadOptions{Work: true})
		require.NoError(t, err)
		p.Select(s)
		for _, th := range p.Threads {
			n += th.Samples.Written()
		}
		return n
	}
	assert.Equal(t, jobs, written(profile.Selection{Activities: []string{"Job"}}))
	assert.Equal(t, jobs, written(profile.Selection{Activities: []string{"Lab-R*/J*"}}))
	assert.Zero(t, written(profile.Selection{Activities: []string{"Jo"}}))
	for i, a := range p.Activities.All() {
		if n := byRequest[a.Request]; a.Request > 0 && n > 5 {
			assert.Equal(t, n, written(profile.Selection{Activities: []string{p.Activities.Path(i)}}), p.Activities.Path(i))
			id := activity.ID(a.ID).String()
			assert.Equal(t, n, written(profile.Selection{Activities: []string{"{" + strings.ToUpper(id) + "}"}}), id)
			break
		}
	}
}
