package command

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
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
			err = writeProfile(t.Context(), in, io.Discard, "", &Config{Repair: true, MinConfidence: 0.9}, rep)
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

// What info counts, the commands count, on the traces of testdata, those with requests, and a
// sample of the corpus or all of it.
func TestInfoCountsAsTheCommands(t *testing.T) {
	requests, served := int64(0), int64(0)
	http, err := files("../requests/testdata")
	require.NoError(t, err)
	for _, name := range append(traces(t), http...) {
		in, err := input.Open(t.Context(), name, nil)
		if err != nil || in.Kind == input.Unknown {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			defer in.Close()
			f, err := info.Of(t.Context(), in, nil)
			if err != nil {
				assert.Error(t, writeProfile(t.Context(), in, io.Discard, "ndjson", &Config{}, &report.Trace{}), "info: %v", err)
				return
			}
			rep := &report.Trace{}
			if err := writeProfile(t.Context(), in, io.Discard, "ndjson", &Config{Repair: true, MinConfidence: 0.9}, rep); err == nil && f.Stacks != nil {
				assert.Equal(t, int64(rep.Cut), f.Stacks.CutTotal(), "cut samples")
				if f.Samples != nil {
					assert.Equal(t, int64(rep.Samples), f.Samples.Looks(), "samples")
				}
			}
			assert.Equal(t, rep.Damages, f.Damages, "damages")
			if in.Kind != input.Nettrace && in.Kind != input.Netperf {
				return
			}
			var told info.HTTP
			if f.HTTP != nil {
				told = *f.HTTP
			}
			var made, got int64
			err = tracefix.FromInput(in).Requests(t.Context(), func(*httpphases.Request) { made++ }, func(*httpphases.ServerRequest) { got++ })
			require.NoError(t, err)
			assert.Equal(t, [2]int64{made, got}, [2]int64{told.Requests, told.Served}, "requests made and served")
			requests, served = requests+made, served+got
		})
	}
	assert.NotZero(t, requests)
	assert.NotZero(t, served)
}
