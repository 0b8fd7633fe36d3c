package pass

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// What task events cost a repair, and logical stacks a conversion, by the bytes of the
// recording.
func BenchmarkTaskEvents(b *testing.B) {
	path := tracetest.Corpus(b, "dotnet10", "await-full.nettrace")
	info, err := os.Stat(path)
	require.NoError(b, err)
	for name, run := range map[string]func(p *profile.Profile){
		"resolve": func(p *profile.Profile) { _, _ = resolveTasks(b.Context(), p, 0.9) },
		"logical": LogicalStacks,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, &load.Options{Evidence: true})
				require.NoError(b, err)
				b.StartTimer()
				run(p)
			}
		})
	}
}
