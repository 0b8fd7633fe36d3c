package chromium_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

var bigFile = flag.String("bigfile", "", "unpacked trace for BenchmarkRead instead of testdata")

func benchInput(b *testing.B) []byte {
	if *bigFile != "" {
		in, err := os.ReadFile(*bigFile)
		require.NoError(b, err)
		return in
	}
	packed, err := os.ReadFile("../testdata/chain.chromium.json.zst")
	require.NoError(b, err)
	return unpack(b, packed)
}

// BenchmarkRead scans a dotnet-trace file on one core.
func BenchmarkRead(b *testing.B) {
	in := benchInput(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	var r *chromium.Reader
	var ev chromium.Event
	for b.Loop() {
		var err error
		if r == nil {
			r, err = chromium.NewReader(bytes.NewReader(in), nil)
		} else {
			err = r.Reset(bytes.NewReader(in), nil)
		}
		if err != nil {
			b.Fatal(err)
		}
		for {
			if err := r.Read(&ev); err != nil {
				break
			}
		}
	}
}
