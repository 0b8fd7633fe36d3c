package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// firefoxFile is what the Firefox Profiler reads of a profile (src/types/profile.ts, version 60).
type firefoxFile struct {
	Meta struct {
		Version    int `json:"preprocessedProfileVersion"`
		Interval   float64
		End        float64 `json:"profilingEndTime"`
		Categories []struct {
			Name, Color   string
			Subcategories []string
		}
		MarkerSchema []struct {
			Name   string
			Fields []struct{ Key string }
		}
	}
	Threads []struct {
		Name, Pid string
		Tid       int64
		Samples   struct {
			WeightType         string
			Stack              []*int
			TimeDeltas, Weight []float64
			ThreadCPUDelta     []float64
			Length             int
		}
		Markers struct {
			Name, Phase, Category []int
			StartTime, EndTime    []*float64
			Data                  []map[string]string
			Length                int
		}
	}
	Shared struct {
		StackTable struct {
			Frame  []int
			Prefix []*int
			Length int
		}
		FrameTable struct {
			Func, Category, Subcategory, Address, InlineDepth, InnerWindowID []int
			NativeSymbol, Line, Column                                       []*int
			Length                                                           int
		}
		FuncTable struct {
			Name, Resource                   []int
			IsJS, RelevantForJS              []bool
			Source, LineNumber, ColumnNumber []*int
			Length                           int
		}
		ResourceTable struct {
			Name, Type []int
			Lib, Host  []*int
			Length     int
		}
		StringArray []string
	}
}

// readFirefox reads a profile and holds it to the rules of the viewer: columns of one length,
// indices that exist, parents before children, time that does not go back.
func readFirefox(t testing.TB, b []byte) *firefoxFile {
	t.Helper()
	f := &firefoxFile{}
	require.NoError(t, json.Unmarshal(b, f), "%.300s", b)
	require.Equal(t, firefoxVersion, f.Meta.Version)
	s := &f.Shared
	lengths := func(n int, columns ...int) {
		t.Helper()
		for _, c := range columns {
			require.Equal(t, n, c)
		}
	}
	ft, fn, rt, st := &s.FrameTable, &s.FuncTable, &s.ResourceTable, &s.StackTable
	lengths(st.Length, len(st.Frame), len(st.Prefix))
	lengths(ft.Length, len(ft.Func), len(ft.Category), len(ft.Subcategory), len(ft.Address), len(ft.InlineDepth), len(ft.InnerWindowID), len(ft.NativeSymbol), len(ft.Line), len(ft.Column))
	lengths(fn.Length, len(fn.Name), len(fn.Resource), len(fn.IsJS), len(fn.RelevantForJS), len(fn.Source), len(fn.LineNumber), len(fn.ColumnNumber))
	lengths(rt.Length, len(rt.Name), len(rt.Type), len(rt.Lib), len(rt.Host))
	below := func(values []int, n, least int) {
		t.Helper()
		for _, v := range values {
			if v < least || v >= n {
				require.Fail(t, "an index of nothing", "%d of %d", v, n)
			}
		}
	}
	below(st.Frame, ft.Length, 0)
	below(ft.Func, fn.Length, 0)
	below(ft.Category, len(f.Meta.Categories), 0)
	below(fn.Name, len(s.StringArray), 0)
	below(fn.Resource, rt.Length, -1)
	below(rt.Name, len(s.StringArray), 0)
	for i, p := range st.Prefix {
		require.True(t, p == nil || *p < i, "parents come first")
	}
	grey := 0
	for _, c := range f.Meta.Categories {
		require.Equal(t, "Other", c.Subcategories[0])
		below(ft.Subcategory, len(c.Subcategories), 0)
		if c.Color == "grey" {
			grey++
		}
	}
	require.Equal(t, 1, grey)
	type id struct {
		pid string
		tid int64
	}
	ids := map[id]bool{}
	for i := range f.Threads {
		th := &f.Threads[i]
		require.False(t, ids[id{th.Pid, th.Tid}], "two threads of one id")
		ids[id{th.Pid, th.Tid}] = true
		x, m := &th.Samples, &th.Markers
		lengths(x.Length, len(x.Stack), len(x.TimeDeltas))
		if x.Length > 0 {
			lengths(x.Length, len(x.Weight))
		}
		for k, v := range x.Stack {
			require.GreaterOrEqual(t, x.TimeDeltas[k], 0.0)
			if v == nil {
				require.Zero(t, x.Weight[k])
			} else {
				below([]int{*v}, st.Length, 0)
			}
		}
		lengths(m.Length, len(m.Name), len(m.Phase), len(m.Category), len(m.StartTime), len(m.EndTime), len(m.Data))
		below(m.Name, len(s.StringArray), 0)
	}
	return f
}

// stackOf returns the names of a stack's functions, root first, and how many a repair put back.
func (f *firefoxFile) stackOf(i int) (names []string, marked int) {
	for {
		frame := f.Shared.StackTable.Frame[i]
		names = append([]string{f.Shared.StringArray[f.Shared.FuncTable.Name[f.Shared.FrameTable.Func[frame]]]}, names...)
		if f.Shared.FrameTable.Subcategory[frame] != 0 {
			marked++
		}
		p := f.Shared.StackTable.Prefix[i]
		if p == nil {
			return names, marked
		}
		i = *p
	}
}

// times adds up what a viewer shows of self and total time.
func (f *firefoxFile) times() times {
	got := times{}
	for _, th := range f.Threads {
		for i, s := range th.Samples.Stack {
			if s == nil {
				continue
			}
			if names, _ := f.stackOf(*s); names[0] != noFrames {
				got.stack(names, int64(math.Round(th.Samples.Weight[i]*1e6)))
			}
		}
	}
	return got
}

func writeFirefox(t testing.TB, p *profile.Profile, o Options) *firefoxFile {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Firefox(&out, p, o))
	return readFirefox(t, out.Bytes())
}

// TestFirefoxHoldsTheLastSample: the viewer leaves out what is at the end of the profile or behind
// it. Recordings whose last event is a sample lost it, and the time of a thread that ran until
// then.
func TestFirefoxHoldsTheLastSample(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable(), Meta: profile.Meta{End: 2e6}, Names: []string{""}, Weights: []profile.Weight{{Name: "alloc", Unit: profile.Bytes}}}
	th := &profile.Thread{Process: &profile.Process{PID: 1}, TID: 1}
	p.Processes, p.Threads = []*profile.Process{th.Process}, []*profile.Thread{th}
	id := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: "F()"})}))
	for i := range int64(3) {
		th.Samples.Append(profile.Sample{Time: i * 1e6, Dur: 1e6, Stack: id, Type: profile.SampleCPU})
		th.Values.Append(profile.Value{Index: int32(i), Amount: 8})
	}
	tracked := *p
	tracked.Tracks = []*profile.Track{{Group: "events", Slices: func(yield func(*profile.Slice) bool) { yield(&profile.Slice{Start: 5e6, Instant: true}) }}}
	assert.Greater(t, writeFirefox(t, &tracked, Options{}).Meta.End, 5.0)
	for _, weights := range [][]string{nil, {"alloc"}} {
		f := writeFirefox(t, p, Options{Weights: weights})
		at, seen := 0.0, 0.0
		for i, d := range f.Threads[0].Samples.TimeDeltas {
			if at += d; at < f.Meta.End {
				seen += f.Threads[0].Samples.Weight[i]
			}
		}
		assert.Equal(t, map[bool]float64{true: 3, false: 24}[weights == nil], seen)
	}
}

func TestFirefoxExample(t *testing.T) {
	f := writeFirefox(t, example(), Options{})
	marked, idle, gaps := 0, 0, 0
	for _, th := range f.Threads {
		for _, s := range th.Samples.Stack {
			if s == nil {
				gaps++
				continue
			}
			names, n := f.stackOf(*s)
			marked += n
			if names[len(names)-1] == profile.OffCPU {
				idle++
			}
		}
	}
	assert.Equal(t, 2+2, marked, "two frames of one repair, one of the other and its bridge")
	assert.Equal(t, 1, idle)
	assert.NotZero(t, gaps)
	plain := writeFirefox(t, example(), Options{Plain: true})
	for _, c := range plain.Meta.Categories {
		assert.Len(t, c.Subcategories, 1)
	}
	markers, fields := 0, map[string]bool{}
	for _, th := range f.Threads {
		markers += th.Markers.Length
	}
	for _, s := range f.Meta.MarkerSchema {
		for _, k := range s.Fields {
			fields[s.Name+" "+k.Key] = true
		}
	}
	assert.Equal(t, 5+5+1+1, markers)
	for _, want := range []string{"gc gen", "gc reason", "gc bytes", "gc tracefix.open", "cpu events"} {
		assert.True(t, fields[want], want)
	}
	for _, th := range f.Threads {
		if th.Name == "GC" {
			assert.Equal(t, "9223372036854775808", th.Markers.Data[0]["bytes"], "not rounded")
			assert.InDelta(t, 15, *th.Markers.EndTime[0], 0)
		}
	}
}

// TestOpensInFirefoxProfiler opens a profile in the command of the Firefox Profiler, which
// shares its code, and compares what it shows with top. It needs node and the unpacked package:
//
//	npm install @firefox-devtools/profiler-cli
//	TRACEFIX_FIREFOX=node_modules/@firefox-devtools/profiler-cli go test ./internal/export -run FirefoxProfiler
func TestOpensInFirefoxProfiler(t *testing.T) {
	dir := os.Getenv("TRACEFIX_FIREFOX")
	if dir == "" {
		t.Skip("TRACEFIX_FIREFOX does not name the npm package @firefox-devtools/profiler-cli")
	}
	script, err := filepath.Abs(filepath.Join(dir, "dist", "profiler-cli.js"))
	require.NoError(t, err)
	home := t.TempDir()
	try := func(args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		return cmd.CombinedOutput()
	}
	run := func(args ...string) []byte {
		out, err := try(args...)
		require.NoError(t, err, "%s", out)
		return out
	}
	p := example()
	file := filepath.Join(home, "example.firefox.json")
	var out bytes.Buffer
	require.NoError(t, Firefox(&out, p, Options{}))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	said, _ := try("load", file) // it gives its server half a second to start
	defer func() { _, _ = try("stop") }()
	require.Eventually(t, func() bool {
		_, err := try("profile", "info")
		return err == nil
	}, time.Minute, time.Second, "%s", said)
	threads := p.Top(profile.TopOptions{ByThread: true, Raw: true}).Groups
	require.NotEmpty(t, threads)
	for i, th := range writeFirefox(t, p, Options{}).Threads {
		for _, want := range threads {
			if want.TID != th.Tid {
				continue
			}
			run("thread", "select", fmt.Sprintf("t-%d", i))
			var got struct {
				Functions []struct {
					NameWithLibrary           string
					SelfSamples, TotalSamples float64
				}
			}
			require.NoError(t, json.Unmarshal(run("thread", "functions", "--include-idle", "--json"), &got))
			shown := map[string][2]float64{}
			for _, f := range got.Functions {
				shown[f.NameWithLibrary] = [2]float64{f.SelfSamples, f.TotalSamples}
			}
			for _, row := range want.Rows {
				f := shown[strings.TrimPrefix(row.Method, "?!")]
				assert.InDelta(t, row.CPUSelf+row.WaitSelf, f[0], 1e-6, row.Method)
				assert.InDelta(t, row.CPUTotal+row.WaitTotal, f[1], 1e-6, row.Method)
			}
		}
	}
}
