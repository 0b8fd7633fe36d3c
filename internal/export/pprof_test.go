package export

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	pprofile "github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// readPprof reads a profile as pprof does.
func readPprof(t testing.TB, b []byte) *pprofile.Profile {
	prof, err := pprofile.ParseData(b)
	require.NoError(t, err)
	require.NoError(t, prof.CheckValid())
	return prof
}

func TestPprofSums(t *testing.T) {
	for seed := range uint64(40) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, Pprof(&out, p, Options{}))
		if out.Len() == 0 {
			continue
		}
		prof := readPprof(t, out.Bytes())
		require.Len(t, prof.SampleType, 3)
		assert.Equal(t, []string{"samples", "wall", "cpu"}, []string{prof.SampleType[0].Type, prof.SampleType[1].Type, prof.SampleType[2].Type})

		want, got := map[int64][3]int64{}, map[int64][3]int64{}
		timing := p.Timing()
		for _, th := range p.Threads {
			sts := timing.Cursor(th)
			for st, ok := sts.Next(); ok; st, ok = sts.Next() {
				v := want[th.TID]
				v[0]++
				v[1] += st.Nanos()
				if st.Type.OnCPU() {
					v[2] += st.Nanos()
				}
				want[th.TID] = v
			}
		}
		for _, s := range prof.Sample {
			tid := s.NumLabel["tid"]
			require.Len(t, s.Label["thread"], 1)
			id := int64(0)
			if len(tid) > 0 {
				id = tid[0]
			}
			v := got[id]
			for i := range v {
				v[i] += s.Value[i]
			}
			got[id] = v
		}
		assert.Equal(t, want, got)
	}
}

func TestPprofExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Pprof(&out, example(), Options{}))
	prof := readPprof(t, out.Bytes())
	assert.Equal(t, "cpu", prof.DefaultSampleType)
	assert.Equal(t, int64(1_000_000), prof.Period/1000*1000)
	assert.Equal(t, example().Meta.Start.UnixNano(), prof.TimeNanos)
	assert.Equal(t, "shop", prof.Mapping[0].File)
	for _, s := range prof.Sample {
		if s.Label["thread"][0] == "far" && len(s.Location) == 3 {
			assert.Equal(t, "vmlinux!schedule", s.Location[0].Line[0].Function.Name, "leaf first")
			assert.Equal(t, "vmlinux", s.Location[0].Mapping.File)
			assert.NotZero(t, s.Location[0].Address)
			assert.Equal(t, []int64{1, 19_500_000, 0}, s.Value)
		}
	}
}

// TestPprofTool opens a profile with the tool that users have.
func TestPprofTool(t *testing.T) {
	if testing.Short() {
		t.Skip("starts go tool pprof")
	}
	file := filepath.Join(t.TempDir(), "x.pb")
	var out bytes.Buffer
	require.NoError(t, Pprof(&out, example(), Options{}))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	top, err := exec.Command("go", "tool", "pprof", "-top", "-sample_index=wall", file).CombinedOutput()
	if err != nil {
		t.Skip("no go tool pprof here: ", err, string(top))
	}
	assert.Contains(t, string(top), "File: shop")
	assert.Contains(t, string(top), "Type: wall")
	assert.Contains(t, string(top), "shop!Shop.Main(class System.String[])")
}

// TestPprofEmpty: an empty profile is readable.
func TestPprofEmpty(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Pprof(&out, &profile.Profile{Table: profile.NewTable()}, Options{}))
	assert.Empty(t, readPprof(t, out.Bytes()).Sample)
}

// Of a machine's many processes the one with most samples names the profile.
func TestPprofMainProgram(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	assert.Equal(t, "trace", mainProgram(p))
	for i, name := range []string{"timeout", "bash", "Shop", "recorder"} {
		th := &profile.Thread{Process: &profile.Process{PID: int64(i + 1), Name: name}}
		for k := range []int{0, 1, 7, 3}[i] {
			th.Samples.Append(profile.Sample{Time: int64(k)})
		}
		p.Processes, p.Threads = append(p.Processes, th.Process), append(p.Threads, th)
	}
	assert.Equal(t, "Shop", mainProgram(p))
	p.Threads = nil
	assert.Equal(t, "timeout", mainProgram(p))
}
