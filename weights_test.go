package tracefix_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// weighted reads a recording of testdata with weights, repaired.
func weighted(t *testing.T, name string, weights ...string) *profile.Profile {
	t.Helper()
	f, err := tracefix.Open(context.Background(), "testdata/nettrace/runtime-"+name+".nettrace.zst")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	p, err := f.Profile(context.Background(), &tracefix.ReadOptions{Evidence: true, Weights: weights})
	require.NoError(t, err)
	tracefix.Repair(p, nil)
	p.DropEvidence()
	return p
}

// Amounts that are no whole numbers add up in the same order each time, so that outputs are the
// same byte for byte.
func TestAmountsAreTheSameEachTime(t *testing.T) {
	p := weighted(t, "alloc", "alloc")
	want := p.TopValues(0, 0, true)
	for range 5 {
		assert.Equal(t, want, p.TopValues(0, 0, true))
	}
}

// TestWeights compares with what the reference library computes of the same recordings.
func TestWeights(t *testing.T) {
	tests := []struct {
		name, weight string
		unit         profile.Unit
		events       int
		total        float64
		names        map[string]float64
	}{
		{"alloc", "alloc", profile.Bytes, 8698, 898559428.231808, nil},
		{"exceptions", "exceptions", profile.Count, 734, 734, map[string]float64{"Lab.Rt.LabException": 267, "System.InvalidOperationException": 150}},
		{"locks", "contention", profile.Nanoseconds, 282, 8930.803599e6, nil},
		{"locks", "wait", profile.Nanoseconds, 1075, math.NaN(), nil},
		{"gc", "GC/Start", profile.Count, 310, 310, map[string]float64{"GC/Start": 310}},
		{"gc", "1", profile.Count, 310, 310, nil}, // the id of GC/Start
		{"gc", "gcstart", profile.Count, 310, 310, nil},
		{"gc", "GCStart=Depth", profile.NoUnit, 310, 12 + 2*14, nil}, // generations
		{"alloc", "Microsoft-Windows-DotNETRuntime/GC/AllocationSampled=ObjectSize", profile.NoUnit, 8698, math.NaN(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.weight, func(t *testing.T) {
			p := weighted(t, tt.name, tt.weight)
			top := p.TopValues(0, 0, false)
			assert.Equal(t, tt.unit, top.Unit)
			assert.Equal(t, tt.events, top.Events)
			if !math.IsNaN(tt.total) {
				assert.InEpsilon(t, tt.total, top.Total, 1e-6)
			}
			sum := 0.0
			for _, n := range top.Names {
				sum += n.Amount
				if want, ok := tt.names[n.Name]; ok {
					assert.EqualValues(t, want, n.Amount, n.Name)
				}
			}
			assert.InDelta(t, top.Total, sum, 1e-6*top.Total)
			self := 0.0
			for _, m := range top.Methods {
				self += m.Self
				assert.LessOrEqual(t, m.Self, m.Total*(1+1e-9))
			}
			assert.LessOrEqual(t, self, top.Total*(1+1e-9))
		})
	}
}

// TestEstimatesSayHowFarOff: what the program itself counted lies within, for 19 of 20 groups.
func TestEstimatesSayHowFarOff(t *testing.T) {
	truth := map[string]float64{"Render": 396.81e6, "Load": 306.32e6, "Parse": 107.91e6, "Cache": 66.22e6, "Ship": 24.73e6} // bytes
	within := 0
	for _, m := range weighted(t, "alloc", "alloc").TopValues(0, 0, false).Methods {
		for name, bytes := range truth {
			if strings.Contains(m.Method, "AllocMode."+name+"(") {
				off := 100 * math.Abs(m.Self-bytes) / m.Self
				assert.Less(t, off, 1.5*m.Within, m.Method)
				if off <= m.Within {
					within++
				}
				assert.InEpsilon(t, 196/math.Sqrt(float64(m.Events)), m.Within, 1e-9)
			}
		}
	}
	assert.GreaterOrEqual(t, within, 4)
	for _, n := range weighted(t, "locks", "contention").TopValues(0, 0, false).Names {
		assert.Zero(t, n.Within, "counted, not estimated")
	}
}

// TestEveryFormatWeighsTheSame adds up what the formats hold.
func TestEveryFormatWeighsTheSame(t *testing.T) {
	p := weighted(t, "locks", "contention", "wait")
	total := p.TopValues(0, 1, false).Total
	only := &tracefix.WriteOptions{Weights: []string{"contention"}}

	var out bytes.Buffer
	require.NoError(t, tracefix.Write(&out, p, "ndjson", only))
	sum, lines := 0.0, 0
	for s := bufio.NewScanner(&out); s.Scan(); lines++ {
		var row struct {
			Value  float64
			Name   string
			Type   *string
			Frames []string
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &row))
		assert.Nil(t, row.Type)
		assert.Contains(t, row.Name, "lock 0x")
		assert.NotEmpty(t, row.Frames)
		sum += row.Value
	}
	assert.Equal(t, 282, lines)
	assert.InDelta(t, total/1e6, sum, 1e-6)

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "folded", only))
	micros := 0.0
	for line := range strings.Lines(out.String()) {
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		require.NoError(t, err)
		micros += n
		assert.Contains(t, line, ";lock 0x")
	}
	assert.InEpsilon(t, total/1e3, micros, 1e-4)

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "speedscope", only))
	var doc struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Type, Name, Unit string
			EndValue         float64
			Samples          [][]int
			Weights          []float64
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
	require.Greater(t, len(doc.Profiles), 2)
	for i, pr := range doc.Profiles {
		assert.Equal(t, "sampled", pr.Type)
		assert.Equal(t, "nanoseconds", pr.Unit)
		require.Len(t, pr.Weights, len(pr.Samples))
		sum := 0.0
		for k, s := range pr.Samples {
			sum += pr.Weights[k]
			for _, f := range s {
				require.Less(t, f, len(doc.Shared.Frames))
			}
		}
		assert.InEpsilon(t, pr.EndValue, sum, 1e-9)
		if i == 0 {
			assert.Equal(t, "All threads", pr.Name)
			assert.InEpsilon(t, total, sum, 1e-9)
		}
	}

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "pprof", &tracefix.WriteOptions{Weights: []string{profile.TimeWeight, "contention", "wait"}}))
	pb, err := pprof.ParseData(out.Bytes())
	require.NoError(t, err)
	require.Len(t, pb.SampleType, 5)
	assert.Equal(t, "contention", pb.SampleType[3].Type)
	var contended int64
	for _, s := range pb.Sample {
		require.Len(t, s.Value, 5)
		if contended += s.Value[3]; s.Value[3] > 0 {
			assert.NotEmpty(t, s.Label["lock"])
			assert.Zero(t, s.Value[0]+s.Value[1]+s.Value[2]+s.Value[4])
		}
	}
	assert.InEpsilon(t, total, contended, 1e-9)

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "html", only))
	assert.Contains(t, out.String(), "contention, 8,931 ms in 282 events")
	assert.Contains(t, out.String(), "<svg")
	assert.NotContains(t, out.String(), "<script")
	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "svg", only))
	assert.Contains(t, out.String(), "contention, 8,931 ms")

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "firefox", only))
	var fox struct {
		Threads []struct {
			Samples struct {
				WeightType string
				Weight     []float64
			}
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &fox))
	sum = 0
	for _, th := range fox.Threads {
		for _, w := range th.Samples.Weight {
			assert.Equal(t, "tracing-ms", th.Samples.WeightType)
			sum += w
		}
	}
	assert.InEpsilon(t, total/1e6, sum, 1e-9)

	out.Reset()
	require.NoError(t, tracefix.Write(&out, p, "otlp-profiles-alpha", &tracefix.WriteOptions{Weights: []string{"contention", "wait"}}))
	op, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(out.Bytes())
	require.NoError(t, err)
	profiles := op.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, 2, profiles.Len())
	contended = 0
	for _, s := range profiles.At(0).Samples().All() {
		contended += s.Values().At(0)
	}
	assert.InEpsilon(t, total, contended, 1e-9)

	for _, refused := range []string{"folded", "speedscope", "chromium", "html", "svg", "firefox"} {
		require.Error(t, tracefix.Write(&out, p, refused, &tracefix.WriteOptions{Weights: []string{"contention", "wait"}}), refused)
	}
}

// TestSelectionHidesValues: what is hidden weighs nothing, and what stays keeps its value.
func TestSelectionHidesValues(t *testing.T) {
	all := weighted(t, "exceptions", "exceptions").TopValues(0, 0, false)
	p := weighted(t, "exceptions", "exceptions")
	p.Select(profile.Selection{Frame: "*PlainA*"})
	some := p.TopValues(0, 0, false)
	assert.Less(t, some.Events, all.Events)
	require.Len(t, some.Names, 1)
	assert.Equal(t, "System.InvalidOperationException", some.Names[0].Name)
	assert.Equal(t, 150, some.Names[0].Events)
}

// TestOnCPUHidesNoValues: --cpu-only, and --weight cpu beside others, is about the samples.
func TestOnCPUHidesNoValues(t *testing.T) {
	p := weighted(t, "locks", "contention")
	total := p.TopValues(0, 0, false).Total
	p.Select(profile.Selection{CPUOnly: true})
	assert.InEpsilon(t, total, p.TopValues(0, 0, false).Total, 1e-9)
}

// A speedscope file of weights is read with each of them once, and what they are is said.
func TestWeighedSpeedscopeReadAgain(t *testing.T) {
	p := weighted(t, "alloc", "alloc")
	var out bytes.Buffer
	require.NoError(t, tracefix.Write(&out, p, "speedscope", &tracefix.WriteOptions{Weights: []string{"alloc"}}))
	file := filepath.Join(t.TempDir(), "alloc.speedscope.json")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	back, err := tracefix.Read(t.Context(), file, nil)
	require.NoError(t, err)
	require.Equal(t, []profile.Weight{{Name: "bytes", Unit: profile.Bytes, Sums: true}}, back.Weights)
	assert.InEpsilon(t, 898559428, back.TopValues(0, 0, false).Total, 1e-6)
	assert.NotContains(t, strings.Join(back.Meta.Notes, "\n"), "on a CPU")

	back, err = tracefix.Read(t.Context(), file, &tracefix.ReadOptions{Weights: []string{profile.TimeWeight}})
	require.NoError(t, err)
	assert.Empty(t, back.Weights)
	sum := 0.0
	for _, th := range back.Threads {
		assert.NotEqual(t, "All threads", th.Name)
		for _, s := range th.Samples.All() {
			sum += float64(s.Dur) / 1e3 // each byte counts as a microsecond
		}
	}
	assert.InEpsilon(t, 898559428, sum, 1e-6)
	assert.Contains(t, strings.Join(back.Meta.Notes, "\n"), `no times (unit "bytes")`)
}

// TestPprofWeights holds that bytes and counts of a pprof stay what they are, in every format and
// on the way back.
func TestPprofWeights(t *testing.T) {
	again := func(data []byte, o *tracefix.ReadOptions) *profile.Profile {
		f, err := tracefix.NewFile("x.pb", bytes.NewReader(data))
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		p, err := f.Profile(t.Context(), o)
		require.NoError(t, err)
		return p
	}
	// Tracefix's own: the names of what weighs come back, and the weights stay apart from time.
	p := weighted(t, "locks", "contention", "wait")
	var out bytes.Buffer
	require.NoError(t, tracefix.Write(&out, p, "pprof", &tracefix.WriteOptions{Weights: []string{profile.TimeWeight, "contention", "wait"}}))
	back := again(out.Bytes(), &tracefix.ReadOptions{Weights: []string{"contention", "wait"}})
	for i := range 2 {
		want, got := p.TopValues(i, 0, false), back.TopValues(i, 0, false)
		assert.InEpsilon(t, want.Total, got.Total, 1e-9)
		require.Len(t, got.Names, len(want.Names))
		for k := range want.Names {
			assert.Equal(t, want.Names[k].Name, got.Names[k].Name)
			assert.InEpsilon(t, want.Names[k].Amount, got.Names[k].Amount, 1e-6)
		}
		require.Len(t, got.Methods, len(want.Methods))
		for k := range want.Methods {
			assert.Equal(t, want.Methods[k].Method, got.Methods[k].Method)
			assert.InDelta(t, want.Methods[k].Self, got.Methods[k].Self, 2000)
			assert.InDelta(t, want.Methods[k].Total, got.Methods[k].Total, 2000)
		}
	}
	assert.Empty(t, again(out.Bytes(), nil).Weights, "time is the default")

	// A heap profile as Go writes it, which names no types.
	f := []*pprof.Function{{ID: 1, Name: "main.main"}, {ID: 2, Name: "main.keep"}}
	l := []*pprof.Location{{ID: 1, Line: []pprof.Line{{Function: f[0]}}}, {ID: 2, Line: []pprof.Line{{Function: f[1]}}}}
	heap := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &pprof.ValueType{Type: "space", Unit: "bytes"}, Period: 512 << 10,
		Function: f, Location: l, DefaultSampleType: "alloc_space",
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{l[1], l[0]}, Value: []int64{3_000_001, 1000}},
			{Location: []*pprof.Location{l[0]}, Value: []int64{500_000, 0}},
			{Value: []int64{11, 0}},
		},
	}
	out.Reset()
	require.NoError(t, heap.Write(&out))
	p = again(out.Bytes(), nil)
	require.Len(t, p.Weights, 1)
	assert.Equal(t, profile.Weight{Name: "alloc_space", Unit: profile.Bytes, Sums: true}, p.Weights[0])
	written := map[string]string{}
	for _, f := range tracefix.Formats() {
		if f.FromProfile() {
			out.Reset()
			require.NoError(t, tracefix.Write(&out, p, f.Name, nil), f.Name)
			written[f.Name] = out.String()
		}
	}
	assert.Equal(t, "[no frames] 11\nmain.main 500000\nmain.main;main.keep 3000001\n", written["folded"])
	assert.Contains(t, written["speedscope"], `"unit":"bytes","startValue":0,"endValue":3500012,`)
	assert.Contains(t, written["speedscope"], `"weights":[3000001,500000,11]`)
	assert.Contains(t, written["ndjson"], `"weight":"alloc_space","value":3000001,"unit":"bytes","depth":2,`)
	assert.Contains(t, written["svg"], "alloc_space, 3.50 MB")
	assert.Contains(t, written["html"], "alloc_space, 3.50 MB in 3 stacks")
	assert.Contains(t, written["firefox"], `"weightType":"bytes"`)
	assert.Contains(t, written["chromium"], `trace: alloc_space, 1 ms is 1.00 MB`)
	assert.NotContains(t, strings.Join([]string{written["folded"], written["speedscope"], written["chromium"], written["firefox"]}, ""), `"?"`)
	pb, err := pprof.ParseData([]byte(written["pprof"]))
	require.NoError(t, err)
	require.Len(t, pb.SampleType, 1)
	assert.Equal(t, pprof.ValueType{Type: "alloc_space", Unit: "bytes"}, *pb.SampleType[0])
	assert.Equal(t, "alloc_space", pb.DefaultSampleType)
	sum := int64(0)
	for _, s := range pb.Sample {
		sum += s.Value[0]
		assert.Len(t, s.Label, 2, "thread and process, and no type")
	}
	assert.EqualValues(t, 3500012, sum)
}
