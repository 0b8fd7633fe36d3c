package load

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/internal/trace"
)

const corpus = "../../../shared/corpus"

// opener opens a file of the corpus, and skips the test where there is none.
func opener(t testing.TB, name string) Open {
	t.Helper()
	path := filepath.Join(corpus, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	return func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil || !strings.HasSuffix(path, ".gz") {
			return f, err
		}
		return gzip.NewReader(f)
	}
}

// refSample is a line of the reference's samples.
type refSample struct {
	TS     float64  `json:"ts"`
	PID    int64    `json:"pid"`
	TID    int64    `json:"tid"`
	Type   string   `json:"type"`
	Frames []string `json:"frames"`
}

func reference(t testing.TB, name string) []refSample {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus, "dotnet10/reference", name))
	if err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	var out []refSample
	r := bufio.NewReaderSize(z, 1<<20)
	d := json.NewDecoder(r)
	for {
		var s refSample
		err := d.Decode(&s)
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out = append(out, s)
	}
}

type sampleKey struct {
	tid int64
	ts  int64
}

// frames renders a stack.
func frames(p *trace.Profile, s trace.StackID) string {
	var b strings.Builder
	for _, f := range p.Table.AppendFrames(nil, s) {
		b.WriteString(p.Table.MethodOf(f).Full())
		b.WriteByte('\n')
	}
	return b.String()
}

// Every sample of the reference library, with the same names, and no other.
func TestSamplesEqualReference(t *testing.T) {
	for _, name := range []string{"chain", "shared", "recursion", "async", "library", "noise", "csc", "web",
		"v6-chain", "v6-shared", "v6-nosymbols", "v6-web-faults", "v6-machine"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "csc" || name == "web" || name == "async") {
				t.Skip("large")
			}
			p, info, err := Profile(context.Background(), opener(t, "dotnet10/"+name+".nettrace"), &Options{Rules: symbol.Reference})
			require.NoError(t, err)
			assert.Zero(t, info.BadNames)
			ours := map[sampleKey][]string{}
			n := 0
			for _, th := range p.Threads {
				for _, s := range th.Samples.All() {
					k := sampleKey{th.TID, s.Time}
					ours[k] = append(ours[k], frames(p, s.Stack))
					n++
				}
			}
			ref := reference(t, name+".samples.ndjson.zst")
			assert.Equal(t, len(ref), n)
			bad := 0
			for _, r := range ref {
				k := sampleKey{r.TID, int64(math.Round(r.TS * 1e6))}
				want := strings.Join(r.Frames, "\n") + "\n"
				if len(r.Frames) == 0 {
					want = ""
				}
				found := false
				for i, got := range ours[k] {
					if got == want {
						ours[k] = append(ours[k][:i:i], ours[k][i+1:]...)
						found = true
						break
					}
				}
				if !found {
					if bad++; bad < 4 {
						t.Errorf("thread %d at %v ms:\nours %q\nreference %q", r.TID, r.TS, ours[k], want)
					}
				}
			}
			assert.Zero(t, bad)
		})
	}
}
