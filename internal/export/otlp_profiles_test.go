package export

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// readOTLPProfiles reads profiles with the collector's package, and holds them to the rules of
// the format: entry 0 of a table is nothing, and what is referred to exists.
func readOTLPProfiles(t testing.TB, b []byte) pprofile.Profiles {
	t.Helper()
	ps, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(b)
	require.NoError(t, err)
	d := ps.Dictionary()
	require.Empty(t, d.StringTable().At(0))
	require.Zero(t, d.StackTable().At(0).LocationIndices().Len())
	require.Zero(t, d.LocationTable().At(0).Lines().Len())
	require.Zero(t, d.FunctionTable().At(0).NameStrindex())
	require.True(t, d.LinkTable().At(0).TraceID().IsEmpty())
	require.Zero(t, d.AttributeTable().At(0).KeyStrindex())
	require.Zero(t, d.MappingTable().At(0).FilenameStrindex())
	for _, l := range d.LocationTable().All() {
		require.Less(t, int(l.MappingIndex()), d.MappingTable().Len())
		for _, a := range l.AttributeIndices().All() {
			require.Less(t, int(a), d.AttributeTable().Len())
		}
	}
	return ps
}

// eachOTLPSample yields the samples of all profiles of one kind: names of frames, root first.
func eachOTLPSample(ps pprofile.Profiles, kind string, yield func(frames []string, value int64)) {
	d := ps.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, r := range ps.ResourceProfiles().All() {
		for _, s := range r.ScopeProfiles().All() {
			for _, p := range s.Profiles().All() {
				if text(p.SampleType().TypeStrindex()) != kind {
					continue
				}
				for _, sample := range p.Samples().All() {
					var names []string
					for _, l := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
						f := d.LocationTable().At(int(l)).Lines().At(0).FunctionIndex()
						names = append([]string{text(d.FunctionTable().At(int(f)).NameStrindex())}, names...)
					}
					yield(names, sample.Values().At(0))
				}
			}
		}
	}
}

// timesOfOTLP adds up the time of frames; short has their names without the module.
func timesOfOTLP(t testing.TB, p *profile.Profile, short map[string]string) times {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, OTLPProfiles(&out, p, Options{}))
	got := times{}
	eachOTLPSample(readOTLPProfiles(t, out.Bytes()), "wall", func(frames []string, value int64) {
		for i := range frames {
			frames[i] = short[frames[i]]
		}
		got.stack(frames, value)
	})
	return got
}

func TestOTLPProfilesExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, OTLPProfiles(&out, example(), Options{}))
	ps := readOTLPProfiles(t, out.Bytes())
	require.NoError(t, pprofileotlp.NewExportRequest().UnmarshalProto(out.Bytes()), "what a receiver takes")
	require.Equal(t, 2, ps.ResourceProfiles().Len())
	name, _ := ps.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "shop", name.Str())
	put := map[string]int{}
	for _, l := range ps.Dictionary().LocationTable().All() {
		for _, a := range l.AttributeIndices().All() {
			kv := ps.Dictionary().AttributeTable().At(int(a))
			if ps.Dictionary().StringTable().At(int(kv.KeyStrindex())) == "tracefix.repair" {
				put[kv.Value().Str()]++
			}
		}
	}
	assert.Equal(t, map[string]int{"both-sides": 2, "bridge": 2}, put)
	cpu := int64(0)
	eachOTLPSample(ps, "cpu", func(_ []string, value int64) { cpu += value })
	assert.Equal(t, int64(example().Top(profile.TopOptions{}).CPU*1e6), cpu)
}

// TestSelectedTime holds that a profile tells when what it holds was, and which trace that is of,
// whatever the output is called.
func TestSelectedTime(t *testing.T) {
	start := example().Meta.Start
	for _, c := range []struct {
		of       profile.Selection
		from, to int64
	}{
		{profile.Selection{}, 0, 400 * ms},
		{profile.Selection{From: 5 * ms}, 5 * ms, 400 * ms},
		{profile.Selection{From: 5 * ms, To: 9 * ms}, 5 * ms, 9 * ms},
		{profile.Selection{To: 900 * ms}, 0, 400 * ms},
	} {
		p := example()
		p.Select(c.of)
		var out bytes.Buffer
		require.NoError(t, OTLPProfiles(&out, p, Options{Name: "out"}))
		found := 0
		for _, r := range readOTLPProfiles(t, out.Bytes()).ResourceProfiles().All() {
			source, _ := r.Resource().Attributes().Get("tracefix.source")
			assert.Equal(t, "example.nettrace", source.Str())
			for _, s := range r.ScopeProfiles().All() {
				for _, x := range s.Profiles().All() {
					found++
					assert.Equal(t, start.Add(time.Duration(c.from)), x.Time().AsTime(), "%+v", c.of)
					assert.EqualValues(t, c.to-c.from, x.DurationNano(), "%+v", c.of)
				}
			}
		}
		assert.NotZero(t, found, "%+v", c.of)
		out.Reset()
		require.NoError(t, Pprof(&out, p, Options{Name: "out"}))
		prof := readPprof(t, out.Bytes())
		assert.Equal(t, start.UnixNano()+c.from, prof.TimeNanos, "%+v", c.of)
		assert.Equal(t, c.to-c.from, prof.DurationNanos, "%+v", c.of)
	}
}

// TestOTLPProfilesGrowth: each process has one thread.
func TestOTLPProfilesGrowth(t *testing.T) {
	tracetest.Growth(t, 2000, func(n int) {
		p := &profile.Profile{Table: profile.NewTable()}
		p.Meta.End = 2e6
		stack := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: "A"})}))
		for i := range n {
			th := &profile.Thread{TID: int64(i), Process: &profile.Process{PID: int64(i)}}
			th.Samples.Append(profile.Sample{Time: 1e6, Stack: stack, Type: profile.SampleCPU})
			p.Threads = append(p.Threads, th)
		}
		require.NoError(t, OTLPProfiles(io.Discard, p, Options{}))
	})
}
