package info

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/internal/tracetest/recorded"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const data = "../../testdata/nettrace"

func of(t testing.TB, name string, o *Options) (*Facts, error) {
	in, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer in.Close()
	return Of(context.Background(), in, o)
}

func facts(t testing.TB, name string) *Facts {
	f, err := of(t, name, nil)
	require.NoError(t, err)
	f.File = filepath.Base(f.File)
	return f
}

func golden(t *testing.T, name, got string) {
	name = filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(name, []byte(got), 0o666))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"tracelogging.netperf", "executioncheckpoints.nettrace", "arraytypes.nettrace.gz", "counters.nettrace.zst", "v6-nosymbols.nettrace.gz"} {
		t.Run(name, func(t *testing.T) {
			f := facts(t, filepath.Join(data, name))
			// The verdicts quote the name as it was given.
			for i := range f.Verdicts {
				f.Verdicts[i].Do = strings.ReplaceAll(f.Verdicts[i].Do, filepath.FromSlash(data+"/"), "")
			}
			var text, all, js bytes.Buffer
			require.NoError(t, f.WriteText(&text, nil))
			golden(t, name+".txt", text.String())
			require.NoError(t, f.WriteText(&all, &TextOptions{All: true, Width: 80, Color: true}))
			golden(t, name+".all.txt", all.String())
			require.NoError(t, f.WriteJSON(&js))
			golden(t, name+".json", js.String())
			assert.True(t, json.Valid(js.Bytes()))
		})
	}
}

// TestFacts holds the facts of recordings against what is known of them
// (nettrace.md section 17 and the README of the recordings).
func TestFacts(t *testing.T) {
	for name, want := range map[string]struct {
		events, samples, limit int64
		lost                   uint64
		rundown                bool
		runtime                string
		requests               bool
	}{
		"chain":       {events: 17069, samples: 8505, limit: 4304, rundown: true, runtime: "10.0.12"},
		"library":     {events: 31271, samples: 5202, limit: 1803, rundown: true, runtime: "10.0.12"},
		"counters":    {events: 3279, rundown: true, runtime: "10.0.12"},
		"http-net8":   {events: 18894, rundown: true, runtime: "8.0.31", requests: true},
		"http-net9":   {events: 20155, rundown: true, runtime: "9.0.20", requests: true},
		"dropped":     {events: 51544, samples: 19117, limit: 44, lost: 110151, runtime: "", requests: true},
		"v6-machine":  {events: 20872, samples: 3023},
		"v6-shared":   {events: 11312, samples: 3883},
		"http-notpl":  {events: 17851, rundown: true, runtime: "10.0.12", requests: true},
		"http-attach": {requests: true, rundown: true, runtime: "10.0.12"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(t, tracetest.Corpus(t, "dotnet10", name+".nettrace"))
			if want.events > 0 {
				assert.Equal(t, want.events, f.Events)
			}
			assert.Equal(t, want.samples, f.Samples.Count)
			assert.Equal(t, want.lost, f.Lost.Events)
			assert.Equal(t, want.rundown, f.Rundown != nil && f.Rundown.Complete)
			assert.Zero(t, f.Damages)
			if want.limit > 0 {
				assert.Equal(t, want.limit, f.Stacks.Depths[f.Stacks.Limit])
			}
			if want.runtime != "" {
				assert.Equal(t, want.runtime, f.Processes[0].Runtime)
			}
			assert.Equal(t, want.requests, f.HTTP != nil && f.HTTP.Requests > 0)
			sum := int64(0)
			for _, p := range f.Providers {
				sum += p.Events
			}
			assert.Equal(t, f.Events, sum)
		})
	}
}

// TestDepthsAreFrames holds that the histogram counts the frames that info counts, and no mark that
// unwinding left behind.
func TestDepthsAreFrames(t *testing.T) {
	for _, name := range []string{
		filepath.Join(data, "async.nettrace.zst"), filepath.Join(data, "v6-nosymbols.nettrace.gz"),
		tracetest.Corpus(t, "dotnet10", "v6-chain.nettrace"), tracetest.Corpus(t, "dotnet10", "v6-machine.nettrace"),
	} {
		f := facts(t, name)
		samples, frames := int64(0), int64(0)
		for d, n := range f.Stacks.Depths {
			samples += n
			frames += int64(d) * n
		}
		assert.Equal(t, f.Samples.Count, samples, name)
		if f.Samples.OffCPU == 0 { // whose frames are counted, too
			assert.Equal(t, f.Stacks.Frames, frames, name)
		}
		assert.Equal(t, len(f.Stacks.Depths)-1, f.Stacks.Max, name)
	}
}

// TestCutsAreThoseOfRepair holds that info counts the stacks that repair repairs.
func TestCutsAreThoseOfRepair(t *testing.T) {
	for _, name := range []string{"chain", "async", "v6-chain", "v6-machine"} {
		path := tracetest.Corpus(t, "dotnet10", name+".nettrace")
		f := facts(t, path)
		in, err := input.Open(t.Context(), path, nil)
		require.NoError(t, err)
		p, _, err := load.Profile(context.Background(), in.Reader, nil)
		require.NoError(t, err)
		want := map[string]int64{}
		for _, th := range p.Threads {
			for _, s := range th.Samples.All() {
				if s.Cut != profile.Whole {
					want[s.Cut.String()]++
				}
			}
		}
		require.NotEmpty(t, want)
		assert.Equal(t, want, f.Stacks.Cut)
		sum := int64(0)
		for _, th := range f.Threads {
			sum += th.Cut
		}
		assert.Equal(t, f.Stacks.CutTotal(), sum)
	}
}

// TestVerdicts holds what a person is told to do about traces that lack something.
func TestVerdicts(t *testing.T) {
	f := facts(t, tracetest.Corpus(t, "dotnet10", "dropped.nettrace"))
	assert.Equal(t, Bad, verdict(f, "complete").State)
	assert.Contains(t, verdict(f, "complete").Text, "68.1 % of 161,695 events were lost")
	assert.Contains(t, verdict(f, "complete").Do, "--buffersize")
	assert.Equal(t, Bad, verdict(f, "names").State)
	assert.Equal(t, Partly, verdict(f, "HTTP").State, "requests of a recording that lost events")
	assert.Contains(t, verdict(f, "HTTP").Text, "events were lost")

	f = facts(t, tracetest.Corpus(t, "dotnet10", "http-notpl.nettrace"))
	assert.Equal(t, Partly, verdict(f, "HTTP").State)
	assert.Contains(t, verdict(f, "HTTP").Do, "System.Threading.Tasks.TplEventSource:0x80:4")
	assert.Equal(t, None, verdict(f, "CPU stacks").State)
	assert.Contains(t, verdict(f, "CPU stacks").Do, "dotnet-trace collect ")

	f = facts(t, tracetest.Corpus(t, "dotnet10", "activities-notpl.nettrace"))
	assert.Equal(t, Partly, verdict(f, "activities").State)
	assert.Contains(t, verdict(f, "activities").Text, "without activity ids")
	assert.Contains(t, verdict(f, "activities").Do, `--providers "Lab-Orders:0xFFFFFFFFFFFFFFFF:4,System.Threading.Tasks.TplEventSource:0x80:4"`)
	f = facts(t, tracetest.Corpus(t, "dotnet10", "activities.nettrace"))
	assert.Equal(t, Good, verdict(f, "activities").State)

	f = facts(t, tracetest.Corpus(t, "dotnet10", "http-full.nettrace"))
	assert.Equal(t, Good, verdict(f, "HTTP").State)
	assert.Contains(t, verdict(f, "HTTP").Do, "tracefix http ")

	f = facts(t, tracetest.Corpus(t, "dotnet10", "v6-chain.nettrace"))
	assert.Equal(t, Partly, verdict(f, "CPU stacks").State)
	assert.Contains(t, verdict(f, "CPU stacks").Text, "copy of the stack")
	assert.Contains(t, verdict(f, "CPU stacks").Do, "tracefix repair ")
}

// TestDamage reads every prefix of a small file.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(data, "executioncheckpoints.nettrace"))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "cut it.nettrace")
	read, saved := 0, 0
	for n := range len(whole) {
		require.NoError(t, os.WriteFile(name, whole[:n], 0o666))
		f, err := of(t, name, nil)
		if err != nil {
			continue
		}
		read++
		require.NotZero(t, f.Damages, "cut to %d bytes", n)
		v := verdict(f, "file")
		require.NotEqual(t, Good, v.State)
		if f.Events > 0 {
			saved++
			require.Contains(t, v.Do, text.ShellWord(name)+" -o clean.nettrace", "the name is quoted")
		} else {
			require.Empty(t, v.Do, "there is nothing to be copied")
		}
		var out bytes.Buffer
		require.NoError(t, f.WriteText(&out, nil))
	}
	assert.NotZero(t, saved)
	assert.Greater(t, read, saved)
}

func TestSpeedscope(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"x","shared":{"frames":[{"name":"a"},{"name":"b"}]},
		"profiles":[{"type":"evented","name":"Thread (7)","unit":"milliseconds","startValue":1,"endValue":5.5,"events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":5.5}]}]}`), 0o666))
	f := facts(t, name)
	assert.Equal(t, "speedscope", f.Format)
	assert.EqualValues(t, 2, f.Events)
	assert.InDelta(t, 4.5, f.DurationMs, 1e-9)
	require.Len(t, f.Threads, 1)
	assert.Equal(t, "Thread (7)", f.Threads[0].Name)
	assert.Zero(t, f.Damages)
}

// Samples of stacks without events are counted by what they are.
func TestSamplesByType(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.ndjson")
	var lines strings.Builder
	for i, typ := range []string{"managed", "external", "external", "cpu", "cpu", "cpu", "offcpu", "offcpu", "offcpu", "offcpu", "managed"} {
		fmt.Fprintf(&lines, `{"ts":%d,"pid":%d,"tid":2,"type":%q,"depth":1,"frames":["a"]}`+"\n", i, 1+i/10, typ)
	}
	require.NoError(t, os.WriteFile(name, []byte(lines.String()), 0o666))
	f := facts(t, name)
	require.NotNil(t, f.Samples)
	s := f.Samples
	assert.Equal(t, []int64{2, 2, 3, 4, 0, 7}, []int64{s.Managed, s.External, s.CPU, s.OffCPU, s.Unknown, s.Count})
	require.Len(t, f.Processes, 2)
	assert.Equal(t, []int64{6, 1}, []int64{f.Processes[0].Samples, f.Processes[1].Samples})
	require.Len(t, f.Threads, 2)
	assert.Equal(t, []int64{6, 4, 1, 0}, []int64{f.Threads[0].Samples, f.Threads[0].Waits, f.Threads[1].Samples, f.Threads[1].Waits})
	assert.Equal(t, []float64{0, 9}, []float64{f.Threads[0].FirstMs, f.Threads[0].LastMs})
}

// A recording whose runtime called each sample external says so, and not that all threads waited.
func TestUntypedSamples(t *testing.T) {
	packed, err := os.Open("../../testdata/chain.nettrace.zst")
	require.NoError(t, err)
	defer packed.Close()
	src, err := zstd.NewReader(packed)
	require.NoError(t, err)
	defer src.Close()
	name := filepath.Join(t.TempDir(), "a.nettrace")
	require.NoError(t, os.WriteFile(name, recorded.External(t, src), 0o666))
	f := facts(t, name)
	require.NotNil(t, f.Samples)
	assert.True(t, f.Samples.Untyped)
	assert.False(t, facts(t, "../../testdata/chain.nettrace.zst").Samples.Untyped)
	i := slices.IndexFunc(f.Verdicts, func(v Verdict) bool { return v.Topic == "CPU stacks" })
	assert.Contains(t, f.Verdicts[i].Text, "nearly all marked as native code or waiting, those of managed code too")
	assert.NotContains(t, f.Verdicts[i].Text, "% in managed code")
}

// A speedscope file that breaks off or breaks JSON tells what stands before.
func TestBrokenSpeedscope(t *testing.T) {
	const head = `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"x","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[`
	const one = `{"type":"evented","name":"Thread (7)","unit":"milliseconds","startValue":1,"endValue":5.5,"events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":3}`
	for _, c := range []struct {
		name, text       string
		threads          int
		events, duration float64
		frames           string
		offset           int64
		where            string
	}{
		{"within the frames", head[:len(head)-25], 0, 0, 0, "1", -1, "shared"},
		{"before the profiles", head, 0, 0, 0, "2", int64(len(head)), "profiles"},
		{"within the events", head + one, 1, 2, 2, "2", int64(len(head + one)), "events"},
		{"within an event", head + one + `,{"ty`, 1, 2, 2, "2", -1, "events"},
		{"behind a profile", head + one + `]},`, 1, 2, 4.5, "2", -1, "events"},
		{"a broken event", head + one + `,{"type" 5}]}]}`, 1, 2, 4.5, "2", -1, "events"},
		{"events that are not a list", head + `{"name":"x","unit":"milliseconds","events":5}]}`, 1, 0, 0, "2", -1, "events"},
		{"bytes behind the end", head + one + "]}]}\n garbage", 1, 2, 4.5, "2", int64(len(head+one) + 6), "document"},
		{"a name that is a number", head[:len(head)-12] + `"name":5}`, 0, 0, 0, "2", -1, "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "a.json")
			require.NoError(t, os.WriteFile(name, []byte(c.text), 0o666))
			f := facts(t, name)
			require.NotZero(t, f.Damages)
			assert.Equal(t, c.where, f.Damage[0].Where)
			if c.offset >= 0 {
				assert.Equal(t, c.offset, f.Damage[0].Offset)
			}
			assert.LessOrEqual(t, f.Damage[0].Offset, int64(len(c.text)))
			assert.Len(t, f.Threads, c.threads)
			assert.EqualValues(t, c.events, f.Events)
			assert.InDelta(t, c.duration, f.DurationMs, 1e-9)
			assert.Contains(t, f.Properties, Property{"frames", c.frames})
			assert.Contains(t, []string{Partly, Bad}, verdict(f, "file").State)
		})
	}
}

func TestShorten(t *testing.T) {
	for _, s := range []string{"", "abc", "äöüßxyz", "0123456789"} {
		for w := 1; w < 12; w++ {
			got := shorten(s, w)
			assert.LessOrEqual(t, utf8.RuneCountInString(got), w)
			assert.True(t, utf8.ValidString(got))
		}
	}
}

func BenchmarkNettrace(b *testing.B) {
	name := filepath.Join(data, "counters.nettrace.zst")
	if p := os.Getenv("TRACEFIX_BENCH_TRACE"); p != "" {
		name = p
	}
	f := facts(b, name)
	b.SetBytes(f.Content)
	b.ReportAllocs()
	for b.Loop() {
		facts(b, name)
	}
}

// TestFlippedBytes flips each byte of a small file: no panic, and facts that can be
// written.
func TestFlippedBytes(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(data, "executioncheckpoints.nettrace"))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "flipped.nettrace")
	read := 0
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0xff
		require.NoError(t, os.WriteFile(name, b, 0o666))
		in, err := input.Open(t.Context(), name, nil)
		require.NoError(t, err)
		f, err := Of(context.Background(), in, nil)
		if err != nil {
			continue
		}
		read++
		var out bytes.Buffer
		require.NoError(t, f.WriteText(&out, nil))
		require.NoError(t, f.WriteJSON(&out), "byte %d", i)
	}
	assert.Greater(t, read, len(whole)/2, "mostly what is left is read")
}

func verdict(f *Facts, topic string) Verdict {
	for _, v := range f.Verdicts {
		if v.Topic == topic {
			return v
		}
	}
	return Verdict{}
}

// Advice fits the runtime: before .NET 5 there is nothing to enable of System.Net.Http.
func TestHTTPOfOldRuntimes(t *testing.T) {
	for name, state := range map[string]string{"net31-http": Partly, "net31-server": Good, "net31-log4": Good} {
		v := verdict(facts(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")), "HTTP")
		assert.Equal(t, state, v.State, name)
		assert.NotContains(t, v.Do, "System.Net.Http:", name)
		assert.Contains(t, v.Do, "tracefix http", name)
		assert.Equal(t, state == Good, strings.Contains(v.Do, "--side server"), "%s: requests that were served are all that there is", name)
	}
}

// Hosting alone, without the keyword of the task library that makes activity ids: what it tells of which
// request ended is a guess.
func TestServedWithoutIDs(t *testing.T) {
	in, err := os.Open(tracetest.Corpus(t, "dotnet10", "requests-short.nettrace"))
	require.NoError(t, err)
	defer in.Close()
	r, err := nettrace.NewReader(in, nil)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "hosting.nettrace")
	out, err := os.Create(name)
	require.NoError(t, err)
	w, err := nettrace.NewWriter(out, r.Header())
	require.NoError(t, err)
	require.NoError(t, nettrace.Copy(w, r, func(e *nettrace.Event) bool {
		e.ActivityID, e.RelatedActivityID = [16]byte{}, [16]byte{}
		return e.Metadata.Provider == "Microsoft.AspNetCore.Hosting"
	}))
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())

	f := facts(t, name)
	assert.EqualValues(t, 247, f.HTTP.Served)
	assert.Greater(t, f.HTTP.Unnamed, f.HTTP.Served*9/10)
	v := verdict(f, "HTTP")
	assert.Equal(t, Partly, v.State)
	assert.Contains(t, v.Text, "247 requests served, without activity ids")
	assert.Contains(t, v.Do, "System.Threading.Tasks.TplEventSource:0x80:4")
}

// A container or a browser has one processor most often.
func TestProcessors(t *testing.T) {
	for n, want := range map[int]string{0: "32-bit", 1: "32-bit, 1 processor", 2: "32-bit, 2 processors"} {
		f := &Facts{Format: "nettrace", PointerSize: 4, Processors: n}
		assert.Equal(t, want, strings.Join(f.runtimeTexts(), ", "))
	}
}

// What a trace or a file is called does not reach the terminal as it is.
func TestTextObeysNoTrace(t *testing.T) {
	const bad = "a\x1b]0;x\x07\u202eb\nc\u200b"
	const ok = "a�]0;x��b c�"
	f := &Facts{File: bad, Format: "nettrace", Damages: 1, Damage: []report.Damage{{Where: bad, What: bad}},
		Verdicts:  []Verdict{{Topic: "cpu", State: Good, Text: bad, Do: bad}},
		Processes: []*Process{{PID: 1, Name: bad, CommandLine: bad, Runtime: bad, OS: bad}},
		Providers: []*Provider{{Name: bad + ", with room for its types", Events: 1, Types: []*EventType{{Name: bad, Events: 1}}}},
		Threads:   []*Thread{{ID: bad, Name: bad}}, Properties: []Property{{Key: bad, Value: bad}}}
	for _, all := range []bool{false, true} {
		var b strings.Builder
		require.NoError(t, f.WriteText(&b, &TextOptions{Width: 400, All: all}))
		assert.NotContains(t, b.String(), "\x1b")
		assert.NotContains(t, b.String(), "\x07")
		assert.NotContains(t, b.String(), "\u202e")
		assert.NotContains(t, b.String(), "\u200b")
		assert.Equal(t, 15, strings.Count(b.String(), ok), "each of them is told:\n%s", b.String())
	}
}
