package tracefix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// TestSamplesComeBack writes recordings as what holds samples only and reads them again: ndjson and
// folded stacks give the same bytes once more, and every method has the time that it had.
func TestSamplesComeBack(t *testing.T) {
	for _, name := range []string{"nettrace/async.nettrace.zst", "nettrace/v6-nosymbols.nettrace.gz", "chain.nettrace.zst"} {
		f, err := tracefix.Open(t.Context(), filepath.Join("testdata", name))
		require.NoError(t, err)
		defer f.Close()
		p, err := f.Profile(t.Context(), &tracefix.ReadOptions{Evidence: true})
		require.NoError(t, err)
		tracefix.Repair(p, nil)
		p.DropEvidence()
		for _, format := range []string{"ndjson", "pprof", "folded"} {
			t.Run(name+" "+format, func(t *testing.T) {
				first := written(t, p, format)
				in, err := tracefix.NewFile("again", bytes.NewReader(first))
				require.NoError(t, err)
				defer in.Close()
				assert.Equal(t, format, in.Kind())
				q, err := in.Profile(context.Background(), &tracefix.ReadOptions{Warn: func(d tracefix.Damage) { t.Errorf("damage: %v", d) }})
				require.NoError(t, err)
				second := written(t, q, format)
				if format != "pprof" { // whose counts of samples are lost, as are their addresses
					assert.True(t, bytes.Equal(first, second), "not the same bytes")
				}
				want, got := selfTimes(p), selfTimes(q)
				if format == "ndjson" && p.Meta.Version >= 6 {
					return // it does not tell how long waits took
				}
				for name, ms := range want {
					// folded stacks round each to a microsecond
					assert.InDelta(t, ms, got[name], 0.0005*float64(p.Counts().Samples)+1e-6, name)
				}
			})
		}
	}
}

func written(t *testing.T, p *profile.Profile, format string) []byte {
	var b bytes.Buffer
	require.NoError(t, tracefix.Write(&b, p, format, nil))
	return b.Bytes()
}

// selfTimes are the times of methods, waiting or not, in ms.
func selfTimes(p *profile.Profile) map[string]float64 {
	t := map[string]float64{}
	top := p.Top(profile.TopOptions{Raw: true})
	for row := range top.Rows() {
		t[row.Method] += row.CPUSelf + row.WaitSelf
	}
	return t
}

// A failing consumer fails at its third event.
type failing struct{ n int }

func (f *failing) Begin(*nettrace.Reader) {}
func (f *failing) End()                   {}

func (f *failing) Event(*nettrace.Event) error {
	if f.n++; f.n > 2 {
		return errors.New("enough")
	}
	return nil
}

// A waiting consumer counts how often it was stopped.
type waiting struct {
	failing
	stopped int
}

func (w *waiting) Event(*nettrace.Event) error { return nil }
func (w *waiting) Stop()                       { w.stopped++ }

// What goes on beside a reading ends with it, and is not left out without a word.
func TestAlso(t *testing.T) {
	also := &waiting{}
	_, err := tracefix.Read(t.Context(), "testdata/chain.nettrace.zst", &tracefix.ReadOptions{Also: []tracefix.Consumer{also, &failing{}}})
	require.ErrorContains(t, err, "enough")
	assert.Equal(t, 1, also.stopped)

	_, err = tracefix.Read(t.Context(), "testdata/chain.chromium.json.zst", &tracefix.ReadOptions{Also: []tracefix.Consumer{also}})
	require.ErrorContains(t, err, "has no events for ReadOptions.Also")
}

// TestOptionsThatCannotBe: what would be read or written as nothing is an error that names the option.
func TestOptionsThatCannotBe(t *testing.T) {
	const file = "testdata/chain.nettrace.zst"
	for want, o := range map[string]*tracefix.ReadOptions{
		"ReadOptions.MaxDepth is 1":               {MaxDepth: 1},
		"ReadOptions.MaxDepth is -5":              {MaxDepth: -5},
		"ReadOptions.From is 2s and To 1s":        {From: 2 * time.Second, To: time.Second},
		"ReadOptions.From is -1s and To 0s":       {From: -time.Second},
		`ReadOptions.Tracks has "activity": must`: {Tracks: []string{"gc", "activity"}},
	} {
		also := &waiting{}
		o.Also = []tracefix.Consumer{also}
		_, err := tracefix.Read(t.Context(), file, o)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, 1, also.stopped, want)
	}
	p, err := tracefix.Read(t.Context(), file, nil)
	require.NoError(t, err)
	for want, o := range map[string]*tracefix.WriteOptions{
		`WriteOptions.Tracks has "activity": must be of cpu, activities, gc,`: {Tracks: []string{"activity"}},
		`WriteOptions.Weights has "alloc": the profile was read without it`:   {Weights: []string{"alloc"}},
	} {
		assert.ErrorContains(t, tracefix.Write(io.Discard, p, "speedscope", o), want)
	}
	p.Tracks = append(p.Tracks, &profile.Track{Name: "Mine", Group: "mine", Slices: func(func(*profile.Slice) bool) {}})
	assert.NoError(t, tracefix.Write(io.Discard, p, "chromium", &tracefix.WriteOptions{Tracks: []string{"cpu", "mine"}}), "tracks of one's own")
}

// TestRepairedSamplesStayCut: ndjson made of a repaired file says of the samples what the file's
// own list says: that they were cut, how deep they were recorded and how the rest is known.
func TestRepairedSamplesStayCut(t *testing.T) {
	type line struct {
		Depth  int
		Cut    bool
		Why    *string
		Frames []string
		Repair *struct {
			How             string
			Restored        int
			AboveConfidence *float64 `json:"above_confidence"`
		}
	}
	lines := func(name string) (list []line) {
		p, err := tracefix.Read(t.Context(), name, nil)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, tracefix.Write(&out, p, "ndjson", nil))
		for _, b := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var l line
			require.NoError(t, json.Unmarshal(b, &l))
			list = append(list, l)
		}
		return list
	}
	for _, format := range []string{"chromium", "speedscope"} {
		p, err := tracefix.Read(t.Context(), "testdata/chain.chromium.json.zst", nil)
		require.NoError(t, err)
		tracefix.Repair(p, nil)
		repaired := filepath.Join(t.TempDir(), "repaired")
		var out bytes.Buffer
		require.NoError(t, tracefix.Write(&out, p, format, nil))
		require.NoError(t, os.WriteFile(repaired, out.Bytes(), 0o600))
		cut := 0
		for _, l := range lines(repaired) {
			require.Equal(t, l.Cut, l.Repair != nil, format)
			if !l.Cut {
				continue
			}
			cut++
			require.Nil(t, l.Why, "the list does not tell")
			require.Nil(t, l.Repair.AboveConfidence, "the list does not tell")
			require.NotEmpty(t, l.Repair.How)
			require.Len(t, l.Frames, l.Depth+l.Repair.Restored, format)
		}
		require.Equal(t, 1718, cut, "%s: of 1,719 one is as the sample before it, and they come back as one", format)
	}
}
