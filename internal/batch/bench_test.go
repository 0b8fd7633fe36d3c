package batch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/command"
)

// BenchmarkJobs converts the real traces of ../shared/corpus/dotnet10 that are not too
// large, with one job and with two: two on two cores should come near twice the rate.
func BenchmarkJobs(b *testing.B) {
	all, err := filepath.Glob("../../../shared/corpus/dotnet10/*.nettrace")
	require.NoError(b, err)
	if len(all) == 0 {
		b.Skip("no ../shared/corpus")
	}
	var paths []string
	var size int64
	for _, p := range all {
		st, err := os.Stat(p)
		require.NoError(b, err)
		if st.Size() < 10<<20 {
			paths = append(paths, p)
			size += st.Size()
		}
	}
	for _, jobs := range []int{1, 2} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				_, err := Run(b.Context(), Config{
					Paths: paths, Out: b.TempDir(), Do: "convert", Format: "speedscope", Jobs: jobs,
					Work: WorkOf(command.Lookup("convert"), &command.Convert{}, command.Options{}),
				})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkMembers takes tiny traces through everything but the work: what the batch
// itself costs for each.
func BenchmarkMembers(b *testing.B) {
	const n = 1000
	in := b.TempDir()
	for i := range n {
		require.NoError(b, os.WriteFile(filepath.Join(in, fmt.Sprintf("%04d.json", i)), []byte(trace(strings.Repeat("x", 100))), 0o666))
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := Run(b.Context(), Config{Paths: []string{in}, Out: b.TempDir(), Do: DoRepair, Work: fake})
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/trace")
}
