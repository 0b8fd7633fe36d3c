package export

import (
	"bytes"
	"io"
	"math"
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// TestAmountsBeyondIntegers: an amount that a format has no number for becomes the largest that it
// has, which is told once; it became a negative one, or nothing.
func TestAmountsBeyondIntegers(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable(), Weights: []profile.Weight{{Name: "bytes", Unit: profile.Bytes, Sums: true}}, Names: []string{""}}
	process := &profile.Process{PID: 1}
	th := &profile.Thread{Process: process, TID: 1}
	p.Processes, p.Threads = []*profile.Process{process}, []*profile.Thread{th}
	for i := range 2 {
		id := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: string(rune('a' + i))})}))
		for range 2 { // which are one in what is written
			th.Samples.Append(profile.Sample{Stack: id, Type: profile.SampleEvent})
			th.Values.Append(profile.Value{Index: int32(th.Samples.Len() - 1), Amount: 9e18})
		}
	}
	th.Values.Done()
	for name, write := range map[string]func(io.Writer, *profile.Profile, Options) error{"pprof": Pprof, "folded": Folded, "otlp": OTLPProfiles} {
		var b bytes.Buffer
		var told []string
		require.NoError(t, write(&b, p, Options{Weights: []string{"bytes"}, Warn: func(s string) { told = append(told, s) }}), name)
		assert.Equal(t, []string{"amounts beyond 9,223,372,036,854,775,807 are written as that: the format has no larger numbers"}, told, name)
		switch name {
		case "pprof":
			in, err := pprof.ParseUncompressed(b.Bytes())
			require.NoError(t, err)
			require.Len(t, in.Sample, 2)
			assert.Equal(t, []int64{math.MaxInt64}, in.Sample[0].Value)
		case "folded":
			assert.Equal(t, "a 9223372036854775807\nb 9223372036854775807\n", b.String())
		}
	}
}
