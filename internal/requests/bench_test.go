package requests

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// The files of the benchmarks: one of the project, a busy client, and a web server
// under load for a minute with its CPU samples.
var benchFiles = map[string]func(testing.TB) string{
	"http-more":   func(testing.TB) string { return filepath.Join("testdata", "http-more.nettrace.zst") },
	"http-attach": func(t testing.TB) string { return tracetest.Corpus(t, "dotnet10", "http-attach.nettrace") },
	"web-60s":     func(t testing.TB) string { return tracetest.Corpus(t, "dotnet10", "web-60s.nettrace") },
}

func content(b *testing.B, path string) []byte {
	in, err := open(b, path).Reader()
	require.NoError(b, err)
	defer in.Close()
	data, err := io.ReadAll(in)
	require.NoError(b, err)
	return data
}

// Reading with every payload decoded, without requests: what the others are held against.
func BenchmarkDecode(b *testing.B) {
	for name, path := range benchFiles {
		b.Run(name, func(b *testing.B) {
			data := content(b, path(b))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var values []nettrace.Value
			for b.Loop() {
				r, err := nettrace.NewReader(bytes.NewReader(data), nil)
				require.NoError(b, err)
				var ev nettrace.Event
				for r.Read(&ev) == nil {
					values, _ = ev.AppendValues(values[:0])
				}
			}
		})
	}
}

// Reading alone: no payload is looked at.
func BenchmarkRead(b *testing.B) {
	for name, path := range benchFiles {
		b.Run(name, func(b *testing.B) {
			data := content(b, path(b))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := nettrace.NewReader(bytes.NewReader(data), nil)
				require.NoError(b, err)
				var ev nettrace.Event
				for r.Read(&ev) == nil {
				}
			}
		})
	}
}

// Reading with requests.
func BenchmarkRequests(b *testing.B) {
	for name, path := range benchFiles {
		b.Run(name, func(b *testing.B) {
			data := content(b, path(b))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r, err := nettrace.NewReader(bytes.NewReader(data), nil)
				require.NoError(b, err)
				s := NewScanner(r, func(*httpphases.Request) { n++ }, nil)
				var ev nettrace.Event
				for r.Read(&ev) == nil {
					s.Event(&ev)
				}
				s.Finish()
			}
			require.NotZero(b, n)
		})
	}
}
