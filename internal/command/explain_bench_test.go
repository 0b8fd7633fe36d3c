package command

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// The cost of explaining a minute of a service, beside that of reading its requests.
func BenchmarkHTTP(b *testing.B) {
	file := tracetest.Corpus(b, "dotnet10", "web-60s.nettrace")
	for name, explain := range map[string]bool{"plain": false, "explain": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in, err := input.Open(context.Background(), file, nil)
				require.NoError(b, err)
				b.SetBytes(in.Stored)
				h := &HTTP{Side: "client", Explain: explain}
				require.NoError(b, h.Do(context.Background(), &Call{In: in, Out: io.Discard, Format: "ndjson", Report: &report.Trace{}}))
				in.Close()
			}
		})
	}
}
