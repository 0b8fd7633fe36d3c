package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// runOn takes a file through the pipeline.
func runOn(t *testing.T, path, format string, c Config) (*report.Trace, []byte) {
	t.Helper()
	in, err := input.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	rep := &report.Trace{}
	err = writeProfile(context.Background(), in, &out, format, &c, rep)
	require.NoError(t, err)
	return rep, out.Bytes()
}

// Where nothing is cut, a repair writes what a conversion writes, although it has read
// the stacks of all other events as well.
func TestRepairOfWholeTraceIsConvert(t *testing.T) {
	path := tracetest.Corpus(t, "nettrace", "getsentry-sentry-dotnet", "sample.nettrace.gz")
	for name, sel := range map[string]profile.Selection{
		"all":      {},
		"filtered": {From: 20e6, To: 100e6, Threads: []string{"24980", "4688"}},
	} {
		for _, format := range ProfileFormats().Names() {
			if format == "nettrace" && name == "filtered" {
				continue // keeps every event
			}
			t.Run(name+" "+format, func(t *testing.T) {
				rep, repaired := runOn(t, path, format, Config{Repair: true, Select: sel, MinConfidence: 0.9})
				require.Zero(t, rep.Cut)
				require.NotZero(t, rep.Samples)
				_, converted := runOn(t, path, format, Config{Select: sel})
				assert.True(t, bytes.Equal(repaired, converted), "%d and %d bytes", len(repaired), len(converted))
			})
		}
	}
}

// A repair of a repaired recording changes nothing, also where some stacks could not be
// known: what was put back is no evidence for more.
func TestRepairOfRepairedRecording(t *testing.T) {
	for _, name := range []string{"recursion.nettrace", "v6-chain.nettrace", "v6-machine.nettrace", "v6-shared.nettrace"} {
		t.Run(name, func(t *testing.T) {
			rep, once := runOn(t, tracetest.Corpus(t, "dotnet10", name), "nettrace", Config{Repair: true, MinConfidence: 0.9, CanList: true})
			bridged := rep.Repaired["bridge"]
			require.NotZero(t, bridged)
			assert.Contains(t, rep.Notes[0], "--report FILE")
			path := filepath.Join(t.TempDir(), "once.nettrace")
			require.NoError(t, os.WriteFile(path, once, 0o600))
			again, twice := runOn(t, path, "nettrace", Config{Repair: true, MinConfidence: 0.9})
			assert.True(t, bytes.Equal(once, twice), "%d and %d bytes", len(once), len(twice))
			assert.Equal(t, map[string]int{"bridge": bridged}, again.Repaired)
			assert.Contains(t, again.Notes[0], "repaired before")
		})
	}
}

// A copy of a recording holds the stacks of other events, repaired as well; a profile drops them.
// Samples are the same in both.
func TestRepairOfEvents(t *testing.T) {
	c := Config{Repair: true, MinConfidence: 0.9}
	path := tracetest.Corpus(t, "dotnet10", "noise.nettrace")
	rep, lines := runOn(t, path, "ndjson", c)
	require.NotZero(t, rep.Repaired["both-sides"])
	assert.NotZero(t, rep.CutEvents)
	assert.Zero(t, rep.RepairedEvents)
	copied, trace := runOn(t, path, "nettrace", c)
	assert.Equal(t, rep.Repaired, copied.Repaired)
	assert.Equal(t, rep.CutEvents, copied.CutEvents)
	assert.NotZero(t, copied.RepairedEvents)
	repaired := filepath.Join(t.TempDir(), "repaired.nettrace")
	require.NoError(t, os.WriteFile(repaired, trace, 0o600))
	_, again := runOn(t, repaired, "ndjson", Config{})
	frames := func(b []byte) (all []any) {
		for line := range bytes.Lines(b) {
			var x struct {
				TS     float64
				TID    int64
				Frames []string
			}
			require.NoError(t, json.Unmarshal(line, &x))
			all = append(all, x)
		}
		return all
	}
	assert.Equal(t, frames(lines), frames(again))
}

// A configuration that says nothing of confidence asks for that of the library: what is
// counted, as by top, is as sure as what is written.
func TestConfidenceUnlessTold(t *testing.T) {
	path := tracetest.Corpus(t, "dotnet10", "recursion.nettrace")
	bridged := func(c float64) int {
		in, err := input.Open(context.Background(), path, nil)
		require.NoError(t, err)
		defer in.Close()
		rep := &report.Trace{}
		_, err = loadProfile(context.Background(), in, Config{Repair: true, MinConfidence: c}, rep)
		require.NoError(t, err)
		return rep.Repaired["bridge"]
	}
	assert.Equal(t, bridged(stackfix.DefaultConfidence), bridged(0))
	assert.Less(t, bridged(-1), bridged(0))
}

// cutter cuts a file short when the output begins.
type cutter struct {
	path string
	done bool
}

func (c *cutter) Write(p []byte) (int, error) {
	if !c.done {
		c.done = true
		return len(p), os.Truncate(c.path, 1<<20)
	}
	return len(p), nil
}

// Events that do not fit into memory are read again while the output is written: where
// that fails there is none that lacks them.
func TestEventsCannotBeReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.nettrace")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := nettrace.NewWriter(f, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)})
	require.NoError(t, err)
	ev := nettrace.Event{ThreadID: 1, CaptureThreadID: 1, Payload: make([]byte, 2000), Metadata: &nettrace.Metadata{Provider: "P", EventID: 1, Name: "Told"}}
	for range 15_000 { // more than 24 MB
		ev.Time++
		require.NoError(t, w.Write(&ev))
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	in, err := input.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer in.Close()
	err = writeProfile(t.Context(), in, &cutter{path: path}, "chromium", &Config{Tracks: []string{"events"}}, &report.Trace{})
	assert.ErrorContains(t, err, "expected 15000 events as at first")
	assert.ErrorIs(t, err, input.ErrChanged)
}
