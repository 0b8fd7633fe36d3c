package pass

import (
	"testing"

	"github.com/tracefix/tracefix/stackfix"
)

// BenchmarkFix is what stackfix takes for recordings of the corpus.
func BenchmarkFix(b *testing.B) {
	for _, name := range []string{"web-60s", "csc", "recursion", "shared", "v6-chain"} {
		b.Run(name, func(b *testing.B) {
			r := loadRecording(b, corpus+"dotnet10/"+name+".nettrace", false)
			cuts := 0
			for _, t := range r.threads {
				for _, s := range t.Samples {
					if s.Cut != stackfix.Whole {
						cuts++
					}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				r.fix()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(cuts, 1)), "ns/cut")
		})
	}
}
