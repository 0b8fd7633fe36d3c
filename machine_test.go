package tracefix

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// What is written of a recording of a whole machine is read again as that: samples of CPUs and
// waits, what code ran, and for how long. Sums have no cuts, folded stacks no more than
// microseconds, and ndjson no names of processes.
func TestMachineRoundTrip(t *testing.T) {
	files := []string{"v6-machine"}
	if tracetest.Every(t) {
		files = []string{"v6-machine", "v6-web-faults", "v6-cl-web", "v6-chain", "v6-nosymbols", "v6-shared"}
	}
	type facts struct {
		kinds map[profile.FrameKind]int
		nanos map[profile.SampleType]int64
		who   map[string]int
	}
	look := func(name string) (f facts) {
		in, err := Open(t.Context(), name)
		require.NoError(t, err)
		p, err := in.Profile(t.Context(), nil)
		require.NoError(t, err)
		f = facts{map[profile.FrameKind]int{}, map[profile.SampleType]int64{}, map[string]int{}}
		used := map[profile.MethodID]bool{}
		timing := p.Timing()
		for _, th := range p.Threads {
			for st := range timing.Stretches(th) {
				f.nanos[st.Type] += st.Nanos()
				if st.Stack != 0 && st.Nanos() > 0 {
					f.who[th.Process.Title()]++
				}
				for id := st.Stack; id != 0; id = p.Table.Parent(id) {
					used[p.Table.Method(p.Table.Frame(id))] = true
				}
			}
		}
		for m := range used {
			f.kinds[p.Table.MethodAt(m).Kind]++
		}
		for who := range f.who {
			f.who[who] = 1
		}
		return f
	}
	for _, file := range files {
		from := tracetest.Corpus(t, "dotnet10", file+".nettrace")
		want := look(from)
		in, err := Open(t.Context(), from)
		require.NoError(t, err)
		p, err := in.Profile(t.Context(), nil)
		require.NoError(t, err)
		for _, format := range []string{"ndjson", "pprof", "folded", "speedscope", "chromium"} {
			name := filepath.Join(t.TempDir(), "x."+format)
			out, err := os.Create(name)
			require.NoError(t, err)
			require.NoError(t, Write(out, p, format, nil))
			require.NoError(t, out.Close())
			got := look(name)
			if format != "folded" { // which has a frame for each process
				assert.Equal(t, want.kinds, got.kinds, "%s %s", file, format)
			}
			if format != "folded" && format != "ndjson" {
				assert.Equal(t, want.who, got.who, "%s %s", file, format)
			}
			assert.Len(t, got.nanos, len(want.nanos), "%s %s", file, format)
			for typ, ns := range want.nanos {
				assert.InDelta(t, ns, got.nanos[typ], 2e6, "%s %s %v", file, format, typ)
			}
		}
	}
}

// An id that two programs had, one after the other, is two processes in what is written, for
// viewers and for who reads it again.
func TestProgramsOfOneID(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	p.Meta.Interval, p.Meta.Format = time.Millisecond, "nettrace 6"
	for i, name := range []string{"sh", "Shop", ""} {
		pr := &profile.Process{PID: 5, Name: name}
		th := &profile.Thread{Process: pr, TID: 5}
		f := p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Module: "lab", Name: "Run" + name + "()"})})
		for k := range int64(3) {
			th.Samples.Append(profile.Sample{Time: int64(i)*1e8 + k*1e6, Type: profile.SampleCPU, Stack: p.Table.Push(0, f)})
		}
		th.First, th.Last = int64(i)*1e8, int64(i)*1e8+2e6
		p.Processes, p.Threads, p.Meta.End = append(p.Processes, pr), append(p.Threads, th), th.Last
	}
	for _, format := range []string{"chromium", "speedscope", "pprof", "ndjson"} {
		name := filepath.Join(t.TempDir(), "x."+format)
		out, err := os.Create(name)
		require.NoError(t, err)
		require.NoError(t, Write(out, p, format, nil))
		require.NoError(t, out.Close())
		in, err := Open(t.Context(), name)
		require.NoError(t, err)
		got, err := in.Profile(t.Context(), nil)
		require.NoError(t, err)
		var who []string
		for _, th := range got.Threads {
			who = append(who, fmt.Sprintf("%d/%d %s %s", th.Process.PID, th.TID, th.Process.Name, got.Table.MethodOf(got.Table.Frame(firstStack(th))).Name))
		}
		assert.Equal(t, []string{"5/5 sh Runsh()", "5/5 Shop RunShop()", "5/5  Run()"}, who, format)
	}
	for _, format := range []string{"chromium", "perfetto", "firefox"} {
		var out bytes.Buffer
		require.NoError(t, Write(&out, p, format, nil))
		for _, name := range []string{"sh", "Shop (5)", "Process 5"} {
			assert.Contains(t, out.String(), name, format)
		}
	}
}

func firstStack(th *profile.Thread) profile.StackID {
	for _, s := range th.Samples.All() {
		return s.Stack
	}
	return 0
}
