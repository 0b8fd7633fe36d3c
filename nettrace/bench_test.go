package nettrace

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchFile returns a large real file where the corpus is at hand, else the
// largest of testdata.
func benchFile(b *testing.B, name, fallback string) []byte {
	data, err := os.ReadFile(filepath.Join(corpusDir, "dotnet10", name))
	if err != nil {
		return testFile(b, fallback)
	}
	return data
}

// BenchmarkRead decodes all events with their stacks and payload bytes. Bytes
// are those of the file; per event it must not allocate.
func BenchmarkRead(b *testing.B) {
	for _, bench := range []struct{ name, file, fallback string }{
		{"v4", "web-60s.nettrace", "probe9.nettrace.gz"},
		{"v4-stacks", "csc.nettrace", "probe9.nettrace.gz"},
		{"v6", "v6-chain.nettrace", "v6-nosymbols.nettrace.gz"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			data := benchFile(b, bench.file, bench.fallback)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			events, sum := 0, uint64(0)
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(data), nil)
				require.NoError(b, err)
				var ev Event
				for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
					events++
					sum += uint64(len(ev.Payload)) + ev.StackKey
				}
				require.Equal(b, io.EOF, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}

// BenchmarkPayload decodes every field of every event, too.
func BenchmarkPayload(b *testing.B) {
	data := benchFile(b, "web-60s.nettrace", "probe9.nettrace.gz")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var values []Value
	var text []byte
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(data), nil)
		require.NoError(b, err)
		var ev Event
		for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
			values, _ = ev.AppendValues(values[:0])
			for i := range values {
				if values[i].Kind() == KindString {
					text = values[i].AppendText(text[:0])
				}
			}
		}
		require.Equal(b, io.EOF, err)
	}
}
