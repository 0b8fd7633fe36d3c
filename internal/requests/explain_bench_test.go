package requests_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// BenchmarkRecord reads a minute of a service for what tells where time went;
// BenchmarkExplain goes through that.
func BenchmarkRecord(b *testing.B) {
	file := tracetest.Corpus(b, "dotnet10", "web-60s.nettrace")
	st, err := os.Stat(file)
	require.NoError(b, err)
	b.SetBytes(st.Size())
	b.ReportAllocs()
	for b.Loop() {
		rec := requests.NewRecorder(0)
		record(b, file, rec)
		b.ReportMetric(float64(rec.Log.Len()), "events")
	}
}

func BenchmarkExplain(b *testing.B) {
	file := tracetest.Corpus(b, "dotnet10", "web-60s.nettrace")
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		rec := requests.NewRecorder(0)
		p, _ := record(b, file, rec)
		b.StartTimer()
		requests.NewExplainer(p.Table, rec).Finish()
	}
}

func record(b testing.TB, file string, rec *requests.Recorder) (*profile.Profile, *load.Info) {
	b.Helper()
	p, info, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(file) }, &load.Options{NoSamples: true, Take: rec.Take}, rec)
	require.NoError(b, err)
	return p, info
}
