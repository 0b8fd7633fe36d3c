package command

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

func runHTTP(t *testing.T, file, format string, h *HTTP) ([]byte, *report.Trace) {
	t.Helper()
	in, err := input.Open(context.Background(), tracetest.Corpus(t, "dotnet10", file+".nettrace"), nil)
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	rep := &report.Trace{}
	require.NoError(t, h.Check(format))
	require.NoError(t, h.Do(context.Background(), &Call{In: in, Out: &out, Format: format, Report: rep}))
	return out.Bytes(), rep
}

// What is wrong is found in the recordings that hold it, and in no other.
func TestSummaryFinds(t *testing.T) {
	for file, want := range map[string][]string{
		"requests-starve": {"thread_pool_starvation"},
		"requests-convoy": {"lock_convoy"},
		"requests-pool":   {"client_pool_exhausted"},
		"requests-full":   {},
		"requests-flow":   {},
		"requests-none":   {},
		"requests-short":  {},
		"http-full":       {},
		"http-more":       {},
		"net31-http":      {},
		"compare-before":  {},
		"noise":           {}, // threads meet at a lock, and wait for its owner only
		"web":             {},
	} {
		t.Run(file, func(t *testing.T) {
			b, rep := runHTTP(t, file, "json", &HTTP{Side: "client", Summary: true})
			var s httpreport.Service
			require.NoError(t, json.Unmarshal(b, &s))
			kinds := []string{}
			for _, f := range s.Findings {
				kinds = append(kinds, f.Kind)
				assert.Less(t, f.From, f.To)
			}
			assert.Equal(t, want, kinds)
			assert.Equal(t, len(want), rep.Requests.Service.Findings)
			if s.Client == nil {
				return
			}
			n := 0
			for _, g := range s.Client.Routes {
				n += g.Requests
			}
			assert.Equal(t, s.Client.Requests, n)
		})
	}
}

// What the summary counts is what the program knows of itself: for how long work of requests was
// queued for the pool, and the connections.
func TestSummaryFigures(t *testing.T) {
	_, rep := runHTTP(t, "requests-starve", "json", &HTTP{Summary: true})
	s := rep.Requests.Service
	assert.InEpsilon(t, truthPoolWait(t, "requests-starve"), *s.PoolWaitMs, 0.02)
	assert.Equal(t, []float64{24, 24}, []float64{*s.Opened, *s.Closed}, "as many clients")
	assert.Greater(t, s.Rate, 100.)
	assert.InDelta(t, 35, *s.RequestsEach, 1)
	b, _ := runHTTP(t, "http-full", "json", &HTTP{Summary: true, Host: []string{"127.0.0.1"}})
	var of httpreport.Service
	require.NoError(t, json.Unmarshal(b, &of))
	assert.Equal(t, []int{3, 2}, []int{of.Connections.Opened, of.Connections.Closed}, "those of the host")
}

// truthPoolWait is for how long the tasks of requests waited for a thread, by themselves, ms.
func truthPoolWait(t *testing.T, file string) (ms float64) {
	b, err := os.ReadFile(tracetest.Corpus(t, "dotnet10", file+".truth.ndjson.zst"))
	require.NoError(t, err)
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	b, err = d.DecodeAll(b, nil)
	require.NoError(t, err)
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var r struct {
			Pool float64 `json:"pool_ns"`
		}
		require.NoError(t, json.Unmarshal(line, &r))
		ms += r.Pool / 1e6
	}
	return ms
}

// The parts of a request's time add up, and say who did what.
func TestExplainAddsUp(t *testing.T) {
	b, _ := runHTTP(t, "requests-short", "ndjson", &HTTP{Side: "both", Explain: true})
	rows, sleeps := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var r struct {
			Kind, Path string
			Duration   float64 `json:"duration_ms"`
			Time       map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.Time == nil {
			continue
		}
		rows++
		sum := 0.
		for k, v := range r.Time {
			switch v := v.(type) {
			case float64:
				if k != "cpu_total_ms" {
					sum += v
				}
			case map[string]any:
				for _, ms := range v {
					sum += ms.(float64)
				}
			}
		}
		assert.Less(t, math.Abs(sum-r.Duration), 0.001, line)
		if strings.HasPrefix(r.Path, "/sleep/") && r.Kind == "server" {
			if slept, _ := r.Time["blocked_ms"].(map[string]any)["sleep"].(float64); slept > r.Duration/2 {
				sleeps++
			}
		}
	}
	assert.Greater(t, rows, 200)
	assert.NotZero(t, sleeps)
}

func TestSummaryRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		h      HTTP
	}{
		"a format without place":       {"har", HTTP{Side: "client", Summary: true}},
		"markdown of some requests":    {"markdown", HTTP{Side: "client", ID: []int{3}}},
		"a summary of one":             {"table", HTTP{Side: "client", Summary: true, ID: []int{1}}},
		"an explanation in an archive": {"har", HTTP{Side: "client", Explain: true}},
	} {
		assert.Error(t, c.h.Check(c.format), name)
	}
}

// No recording holds a name resolution or a TLS handshake that took far longer than others. So the
// clock is put forward by 400 ms in the middle of one of a real recording.
func TestSummaryFindsOutliers(t *testing.T) {
	for _, file := range []string{"http-full", "http-net8"} {
		for provider, want := range map[string]string{httpphases.ProviderDNS: "dns_outlier", httpphases.ProviderSecurity: "tls_outlier"} {
			t.Run(file+" "+want, func(t *testing.T) {
				in, err := input.Open(context.Background(), stretched(t, tracetest.Corpus(t, "dotnet10", file+".nettrace"), provider, 400e6), nil)
				require.NoError(t, err)
				defer in.Close()
				var out bytes.Buffer
				h := &HTTP{Summary: true}
				require.NoError(t, h.Do(context.Background(), &Call{In: in, Out: &out, Format: "json", Report: &report.Trace{}}))
				var s httpreport.Service
				require.NoError(t, json.Unmarshal(out.Bytes(), &s))
				require.Len(t, s.Findings, 1)
				f := s.Findings[0]
				assert.Equal(t, want, f.Kind)
				assert.GreaterOrEqual(t, f.To-f.From, 400.)
				assert.Contains(t, f.Text, "the longest 4", "400 ms, and what it took before")
			})
		}
	}
}

// stretched returns a copy of a trace whose clock jumps ahead by so many ns where an operation of a
// provider is under way, and none of another one.
func stretched(t *testing.T, file, provider string, ns int64) string {
	t.Helper()
	each := func(f func(r *nettrace.Reader, ev *nettrace.Event)) {
		in, err := os.Open(file)
		require.NoError(t, err)
		defer in.Close()
		r, err := nettrace.NewReader(in, nil)
		require.NoError(t, err)
		for ev, err := range r.All() {
			require.NoError(t, err)
			f(r, ev)
		}
	}
	open := map[string]int{}
	others := func(but string) (n int) {
		for _, p := range []string{httpphases.ProviderDNS, httpphases.ProviderSecurity, httpphases.ProviderSockets} {
			if p != but {
				n += open[p]
			}
		}
		return n
	}
	var inside []int64 // times at which only an operation of the provider is under way
	each(func(_ *nettrace.Reader, ev *nettrace.Event) {
		if open[provider] > 0 && others(provider) == 0 {
			inside = append(inside, ev.Time)
		}
		switch p := ev.Metadata.Provider; {
		case p == httpphases.ProviderSockets && ev.Metadata.EventID > 3: // of the side that accepts
		case ev.Opcode == 1:
			open[p]++
		case ev.Opcode == 2:
			open[p]--
		}
	})
	require.NotEmpty(t, inside)
	at := inside[0] // later ones are canceled
	name := filepath.Join(t.TempDir(), "stretched.nettrace")
	out, err := os.Create(name)
	require.NoError(t, err)
	var w *nettrace.Writer
	each(func(r *nettrace.Reader, ev *nettrace.Event) {
		if w == nil {
			w, err = nettrace.NewWriter(out, r.Header())
			require.NoError(t, err)
		}
		e := *ev
		if e.Time >= at {
			e.Time += ns * r.Header().Frequency / 1e9
		}
		require.NoError(t, w.Write(&e))
	})
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	return name
}

// What the runtime did for other processes is not told of those that are asked for.
func TestSummaryOfAnotherProcess(t *testing.T) {
	b, rep := runHTTP(t, "requests-convoy", "json", &HTTP{Summary: true, WhoFlags: WhoFlags{ProcessFlag: ProcessFlag{[]string{"1"}}}})
	var s httpreport.Service
	require.NoError(t, json.Unmarshal(b, &s))
	assert.Empty(t, s.Findings)
	assert.Nil(t, rep.Requests.Service.LockWaitMs)
	assert.Nil(t, rep.Requests.Service.GCPauseMs)
}

// TestSummaryOfStretches: what the stretches of a trace add up to is what the whole has.
func TestSummaryOfStretches(t *testing.T) {
	of := func(from, to time.Duration) (*httpreport.Service, *report.Service) {
		b, rep := runHTTP(t, "requests-convoy", "json", &HTTP{Summary: true, TimeFlags: TimeFlags{From: from, To: EndTime(to)}})
		var s httpreport.Service
		require.NoError(t, json.Unmarshal(b, &s))
		return &s, rep.Requests.Service
	}
	whole, all := of(0, 0)
	assert.Zero(t, whole.From)
	span, locks, busy := 0.0, 0.0, 0.0
	for _, at := range [][2]time.Duration{{0, 1500 * time.Millisecond}, {1500 * time.Millisecond, 3 * time.Second}, {3 * time.Second, 0}} {
		s, figures := of(at[0], at[1])
		assert.Equal(t, float64(at[0].Milliseconds()), s.From)
		assert.InDelta(t, float64(s.Client.Requests+s.Server.Requests)/s.Span*1000, figures.Rate, 0.01)
		span += s.Span
		locks += *figures.LockWaitMs
		busy += s.Server.All.Concurrency * s.Span
		for _, f := range s.Findings {
			assert.Equal(t, "lock_convoy", f.Kind)
			assert.GreaterOrEqual(t, f.From, s.From)
			assert.LessOrEqual(t, f.To, s.From+s.Span)
		}
		sum := 0
		for _, g := range s.Server.Slices {
			sum += g.Requests
		}
		assert.Equal(t, s.Server.Requests, sum)
	}
	assert.InDelta(t, whole.Span, span, 0.01)
	require.NotZero(t, *all.LockWaitMs)
	assert.InDelta(t, *all.LockWaitMs, locks, 0.5)
	assert.InDelta(t, whole.Server.All.Concurrency*whole.Span, busy, 5)
}
