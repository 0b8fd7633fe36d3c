package spans

import (
	"context"
	"flag"
	"io"
	"os"
	"testing"

	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
)

var bigFile = flag.String("bigfile", "", "unpacked dotnet-trace file for the benchmarks instead of a synthetic one")

func benchInput(b *testing.B) []byte {
	if *bigFile != "" {
		in, err := os.ReadFile(*bigFile)
		require.NoError(b, err)
		return in
	}
	var in bytes.Buffer
	_, err := tracetest.Walk{Seed: 1, Threads: 4, Bytes: 32 << 20, Deep: 0.2}.WriteTo(&in)
	require.NoError(b, err)
	return in.Bytes()
}

// BenchmarkRead is the first of the two readings.
func BenchmarkRead(b *testing.B) {
	in := benchInput(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(context.Background(), opener(in), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRepair is all that `tracefix repair` does but for the files.
func BenchmarkRepair(b *testing.B) {
	in := benchInput(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		t, err := Read(context.Background(), opener(in), nil)
		if err != nil {
			b.Fatal(err)
		}
		pass.FixStacks(t.Profile, 0.9)
		if err := t.Rewrite(context.Background(), io.Discard, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFix is the repair between the two readings.
func BenchmarkFix(b *testing.B) {
	in := benchInput(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	cuts := 0
	for b.Loop() {
		b.StopTimer() // a repair edits the samples
		t, err := Read(context.Background(), opener(in), nil)
		require.NoError(b, err)
		cuts = 0
		for _, th := range t.Profile.Threads {
			cuts += th.Samples.Cuts()
		}
		b.StartTimer()
		pass.FixStacks(t.Profile, 0.9)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(cuts, 1)), "ns/cut")
}

// BenchmarkRewrite is the second of the two readings.
func BenchmarkRewrite(b *testing.B) {
	in := benchInput(b)
	t, err := Read(context.Background(), opener(in), nil)
	require.NoError(b, err)
	pass.FixStacks(t.Profile, 0.9)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Rewrite(context.Background(), io.Discard, false); err != nil {
			b.Fatal(err)
		}
	}
}
