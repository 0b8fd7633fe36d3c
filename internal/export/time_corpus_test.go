package export_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

// TestTimeOfCorpus holds the time of every method in every output, the page included, against
// the stretches, for every file of the corpus that holds stacks or spans.
func TestTimeOfCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("reads recordings as large as a service's")
	}
	every := tracetest.Every(t)
	few := []string{"library.nettrace", "v6-cl-web", "single-thread", "clang-ftime-trace-19", "bazel-profile", "requests-short.speedscope", "getsentry", "small"}
	tried := 0
	for _, dir := range []string{"chromium", "dotnet10", "nettrace", "real", "runtime"} {
		require.NoError(t, filepath.WalkDir(tracetest.Corpus(t, dir), func(file string, d fs.DirEntry, err error) error {
			wanted := every || slices.ContainsFunc(few, func(s string) bool { return strings.Contains(file, s) })
			if err != nil || d.IsDir() || !wanted || strings.Contains(file, ".truth.") {
				return err
			}
			f, err := tracefix.Open(t.Context(), file)
			if err != nil {
				return nil // a table of requests, a list of allocations
			}
			defer f.Close()
			t.Run(d.Name(), func(t *testing.T) {
				p, err := f.Profile(t.Context(), &tracefix.ReadOptions{Evidence: true})
				if err != nil {
					t.Skip(err)
				}
				if len(p.Threads) == 0 {
					t.Skip("no stacks")
				}
				tracefix.Repair(p, nil)
				p.DropEvidence()
				export.CheckTime(t, p)
				checkPage(t, p)
				tried++
			})
			return nil
		}))
	}
	assert.Greater(t, tried, 10)
}

var pageData = regexp.MustCompile(`(?s)<script type="[^"]*" class="(\w+)">(.*?)</script>`)

// checkPage holds what the data of the page of view add up to against the table of methods, which
// CheckTime holds against all else.
func checkPage(t *testing.T, p *profile.Profile) {
	want, got := map[string][2]int64{}, timesOfPage(t, p)
	for r := range p.Top(profile.TopOptions{Raw: true}).Rows() {
		x := want[text.Line(r.Method)]
		x[0] += int64((r.CPUSelf+r.WaitSelf)*1e6 + 0.5)
		x[1] += int64((r.CPUTotal+r.WaitTotal)*1e6 + 0.5)
		want[text.Line(r.Method)] = x
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			assert.Fail(t, "the page", "%.80s is a method of the page only", name)
		}
	}
	for name, w := range want {
		for i, what := range []string{"self", "total"} {
			if d := got[name][i] - w[i]; d < -2 || d > 2 {
				assert.Fail(t, "the page", "%s time of %.80s is %d ns, %d expected", what, name, got[name][i], w[i])
			}
		}
	}
}

// timesOfPage adds up the data of the page of view: self and total time by full name.
func timesOfPage(t *testing.T, p *profile.Profile) map[string][2]int64 {
	var out bytes.Buffer
	require.NoError(t, view.Write(&out, p))
	data := map[string][][]byte{} // parts
	for _, m := range pageData.FindAllSubmatch(out.Bytes(), -1) {
		data[string(m[1])] = append(data[string(m[1])], m[2])
	}
	require.Len(t, data["head"], 1)
	var head struct {
		Nodes   int      `json:"nodes"`
		Methods []string `json:"methods"`
		Threads []struct {
			Samples int `json:"samples"`
		} `json:"threads"`
	}
	require.NoError(t, json.Unmarshal(data["head"][0], &head))
	column := func(name string) func() int64 {
		var b []byte
		for _, part := range data[name] {
			raw, err := base64.StdEncoding.DecodeString(string(part))
			require.NoError(t, err)
			b = append(b, raw...)
		}
		return func() int64 {
			v, n := binary.Uvarint(b)
			require.Positive(t, n)
			b = b[n:]
			return int64(v)
		}
	}
	type node struct{ parent, method int64 }
	nodes := []node{{}}
	for next := column("nodes"); len(nodes) < head.Nodes; {
		up := next()
		nodes = append(nodes, node{int64(len(nodes)) - up, next()})
	}
	spent := make([]int64, len(nodes))
	next := column("samples")
	for _, th := range head.Threads {
		for range th.Samples {
			next() // when it begins
			ns := next()
			spent[next()] += ns
			flags := next()
			if flags&32 != 0 {
				next()
			}
			for i := 0; flags>>6 != 0 && i < 4; i++ {
				next()
			}
		}
	}
	times := map[string][2]int64{}
	for i, ns := range spent {
		seen := map[string]bool{}
		for n := int64(i); n != 0 && ns != 0; n = nodes[n].parent {
			name := head.Methods[nodes[n].method]
			x := times[name]
			if n == int64(i) {
				x[0] += ns
			}
			if !seen[name] {
				x[1] += ns
			}
			seen[name] = true
			times[name] = x
		}
	}
	return times
}
