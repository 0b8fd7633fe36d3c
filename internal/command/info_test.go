package command

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// A stack at the limit may be complete: the repair decides, and there is one number of
// cut samples for both.
func TestChromiumCutsAreThoseOfRepair(t *testing.T) {
	for name, find := range map[string]func(*testing.T) string{
		"chain": func(*testing.T) string { return filepath.Join("..", "..", "testdata", "chain.chromium.json.zst") },
		"csc": func(t *testing.T) string {
			return tracetest.Corpus(t, "dotnet10", "reference", "csc.chromium.json.zst")
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := input.Open(t.Context(), find(t), nil)
			require.NoError(t, err)
			defer in.Close()
			f, err := info.Of(t.Context(), in, nil)
			require.NoError(t, err)
			rep := &report.Trace{}
			err = writeProfile(t.Context(), in, io.Discard, "", Config{Repair: true, MinConfidence: 0.9}, rep)
			require.NoError(t, err)
			assert.Equal(t, int64(rep.Cut), f.Stacks.CutTotal())
			assert.Less(t, int64(rep.Cut), f.Stacks.Depths[f.Stacks.Limit], "no stack at the limit is complete: the test shows nothing")
			sum, spikes := int64(0), int64(0)
			for _, th := range f.Threads {
				sum += th.Cut
				spikes += th.Spikes
			}
			assert.Equal(t, int64(rep.Cut), sum)
			assert.Equal(t, int64(f.Spans.Spikes), spikes)
		})
	}
}
