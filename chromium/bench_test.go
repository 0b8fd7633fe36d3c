package chromium_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
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
func BenchmarkRead(b *testing.B) { benchRead(b, benchInput(b)) }

// BenchmarkReadMixed reads events in which no two of one layout follow each other.
func BenchmarkReadMixed(b *testing.B) {
	events := make([]string, 30000)
	for i := range events {
		events[i] = fmt.Sprintf([]string{
			`{"name":"a%[1]d","ph":"X","ts":%[2]d.5,"dur":3,"pid":1,"tid":2,"args":{"x":[1,2,{"y":"z"}]}}`,
			`{"ph":"i","name":"a%[1]d","cat":"c","ts":%[2]d,"s":"t","pid":1,"tid":3}`,
			`{"pid":2,"tid":2,"ts":"%[2]d","id":"%[1]d","ph":"b","name":"n","cat":"c"}`,
		}[i%3], i%50, i)
	}
	benchRead(b, []byte("["+strings.Join(events, ",\n")+"]"))
}

// BenchmarkReadOutside reads a document of which all stands outside the events.
func BenchmarkReadOutside(b *testing.B) {
	in := benchInput(b)
	value := in[bytes.IndexByte(in, '[') : bytes.LastIndexByte(in, ']')+1]
	benchRead(b, fmt.Appendf(nil, `{"other":%s,"traceEvents":[]}`, value))
}

// BenchmarkReadKeys reads a document of many keys.
func BenchmarkReadKeys(b *testing.B) {
	keys := make([]string, 10000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"key%d": %d`, i, i)
	}
	benchRead(b, []byte("{"+strings.Join(keys, ", ")+`, "traceEvents":[]}`))
}

func benchRead(b *testing.B, in []byte) {
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
