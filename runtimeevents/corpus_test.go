package runtimeevents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// Recordings with what the reference library computes of them; see its README.
const corpus = "../../shared/corpus/runtime/"

// open opens a file of the corpus, or with .zst after its name.
func open(t *testing.T, name string) io.Reader {
	t.Helper()
	if f, err := os.Open(corpus + name); err == nil {
		t.Cleanup(func() { f.Close() })
		return f
	}
	f, err := os.Open(corpus + name + ".zst")
	if err != nil {
		t.Skip("no corpus beside the repository:", corpus+name)
	}
	t.Cleanup(func() { f.Close() })
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	t.Cleanup(z.Close)
	return z
}

// replay gives all events of a recording to take, and returns the time of the last one.
func replay(t *testing.T, name string, take func(ev *nettrace.Event, ns int64)) (end int64) {
	t.Helper()
	r, err := nettrace.NewReader(open(t, name), nil)
	require.NoError(t, err)
	var ev nettrace.Event
	for {
		err := r.Read(&ev)
		if err == io.EOF {
			return end
		}
		require.NoError(t, err)
		end = max(end, r.Nanos(ev.Time))
		take(&ev, r.Nanos(ev.Time))
	}
}

type row map[string]any

// reference returns the rows of a kind.
func reference(t *testing.T, name, kind string) (rows []row) {
	t.Helper()
	s := bufio.NewScanner(open(t, name))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var r row
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		if r["k"] == kind {
			rows = append(rows, r)
		}
	}
	require.NoError(t, s.Err())
	return rows
}

func (r row) f(key string) float64 { f, _ := r[key].(float64); return f }

func (r row) list(key string) (l []float64) {
	for _, v := range r[key].([]any) {
		l = append(l, v.(float64))
	}
	return l
}

// millis converts nanoseconds to milliseconds.
func millis(ns int64) float64 { return float64(ns) / 1e6 }

func recordings(t *testing.T, suffix string) (names []string) {
	t.Helper()
	all, _ := filepath.Glob(corpus + "*" + suffix + ".ndjson*")
	if len(all) == 0 {
		t.Skip("no corpus beside the repository:", corpus)
	}
	for _, f := range all {
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		names = append(names, name)
	}
	return names
}

// TestCollectionsAreThoseOfTheReference compares what the reference library has right:
// not the pauses of some background collections, nor the histories of those of server GC.
func TestCollectionsAreThoseOfTheReference(t *testing.T) {
	for _, name := range recordings(t, ".gcs") {
		t.Run(name, func(t *testing.T) {
			var gcs GCs
			replay(t, name+".nettrace", func(ev *nettrace.Event, ns int64) { gcs.Event(ev, ns, 0) })
			procs := gcs.Finish()
			require.Len(t, procs, 1)
			p := procs[0]
			want := reference(t, name+".gcs.ndjson", "gc")
			require.Len(t, p.Collections, len(want))
			histories := 0
			for i, w := range want {
				g := p.Collections[i]
				require.EqualValues(t, w.f("number"), g.Number)
				assert.EqualValues(t, w.f("generation"), g.Generation)
				assert.Equal(t, w["type"], g.Type.String())
				assert.EqualValues(t, w.f("reason_number"), g.Reason)
				assert.InDelta(t, w.f("start_ms"), millis(g.Start), 1e-5)
				assert.InDelta(t, w.f("suspend_ms"), millis(g.Suspend()), 0.01, "gc %d", g.Number)
				require.True(t, g.HasSizes)
				assert.EqualValues(t, w.f("heap_after_bytes"), g.After())
				assert.EqualValues(t, w.f("promoted_bytes"), g.Promoted())
				if f, _ := w["gen_fragmentation_bytes"].([]any); f == nil || f[0] == nil {
					continue // it gave the history to another collection, or to none
				}
				require.True(t, g.HasHistory, "gc %d", g.Number)
				histories++
				for n := range Generations {
					assert.EqualValues(t, w.list("gen_before_bytes")[n], g.Gen[n].Before, "gc %d, generation %d", g.Number, n)
					assert.EqualValues(t, w.list("gen_fragmentation_bytes")[n], g.Gen[n].Fragmentation, "gc %d, generation %d", g.Number, n)
					assert.EqualValues(t, w.list("gen_out_bytes")[n], g.Gen[n].Out)
				}
				if w["committed_after"] != nil {
					assert.EqualValues(t, w.f("committed_before"), g.CommittedBefore)
					assert.EqualValues(t, w.f("committed_after"), g.CommittedAfter)
				}
			}
			assert.NotZero(t, histories)

			var pause, all float64
			for _, s := range reference(t, name+".gcs.ndjson", "suspension") {
				if r := s.f("reason_number"); r == 1 || r == 6 {
					all += s.f("ms_to_restart_start")
				}
			}
			pause = millis(p.Pause())
			for _, s := range p.Unclaimed() {
				pause += millis(s.Pause())
			}
			assert.InDelta(t, all, pause, 0.001*all, "every suspension is counted once")
			assert.LessOrEqual(t, len(p.Unclaimed()), 2, "a region without collections, and a heap that makes its background thread")
		})
	}
}

func TestCompilationsAreThoseOfTheReference(t *testing.T) {
	for _, name := range recordings(t, ".jits") {
		t.Run(name, func(t *testing.T) {
			var jit JIT
			replay(t, name+".nettrace", func(ev *nettrace.Event, ns int64) { jit.Event(ev, ns, 0) })
			jit.Finish()
			want := reference(t, name+".jits.ndjson", "method")
			require.Len(t, jit.Compilations, len(want))
			byStart := map[int64]*Compilation{}
			var background int
			for _, c := range jit.Compilations {
				byStart[c.Start/100] = c
				if c.Background() {
					background++
				}
			}
			for _, w := range want {
				c := byStart[int64(w.f("start_ms")*1e4+1e-6)]
				if c == nil {
					c = byStart[int64(w.f("start_ms")*1e4+0.5)]
				}
				require.NotNil(t, c, "at %v", w["start_ms"])
				assert.Equal(t, w["name"], c.Name)
				assert.Equal(t, w["tier"], c.Tier.String())
				assert.EqualValues(t, w.f("il_bytes"), c.IL)
				assert.EqualValues(t, w.f("native_bytes"), c.Native)
				assert.EqualValues(t, w.f("version"), c.Version)
				assert.InDelta(t, w.f("compile_ms"), millis(c.Time()), 1e-4)
				assert.EqualValues(t, w.f("code_alloc_bytes"), c.CodeBytes)
			}
			stats := reference(t, name+".jits.ndjson", "stats")[0]
			assert.EqualValues(t, stats.f("background_tiered"), background)
			assert.Len(t, jit.Batches, int(stats.f("background_stops")))
			assert.Zero(t, jit.Unfinished)
		})
	}
}

func TestContentionIsThatOfTheReference(t *testing.T) {
	var locks Contentions
	var waits Waits
	var got, abandoned []*Contention
	var waited int
	replay(t, "locks.nettrace", func(ev *nettrace.Event, ns int64) {
		if c := locks.Event(ev, ns, 0); c != nil && c.Stop != Unknown {
			got = append(got, c)
		} else if c != nil {
			abandoned = append(abandoned, c)
		}
		if waits.Event(ev, ns, 0) != nil {
			waited++
		}
	})
	want := reference(t, "locks.contention.ndjson", "contention")
	require.Len(t, got, len(want))
	assert.Len(t, append(abandoned, locks.Open()...), len(reference(t, "locks.contention.ndjson", "start_without_stop")))
	assert.Len(t, reference(t, "locks.contention.ndjson", "wait"), waited)
	assert.Zero(t, locks.StopsWithoutStart)
	type key struct {
		start, tid int64
	}
	by := map[key]*Contention{}
	for _, c := range got {
		by[key{c.Start, int64(c.Thread)}] = c
	}
	for _, w := range want {
		c := by[key{int64(w.f("start_ms")*1e6 + 0.5), int64(w.f("tid"))}]
		require.NotNil(t, c)
		assert.InDelta(t, w.f("ms"), millis(c.Wait()), 1e-5)
		assert.InDelta(t, w.f("duration_ns"), c.Duration, 1)
		assert.EqualValues(t, w.f("owner"), c.Owner)
		assert.Equal(t, w["object"], fmt.Sprintf("0x%x", c.Object))
		assert.Equal(t, w["lock_id"], fmt.Sprintf("0x%x", c.Lock))
	}
}

func TestPoolIsThatOfTheReference(t *testing.T) {
	for _, name := range recordings(t, ".threadpool") {
		t.Run(name, func(t *testing.T) {
			var pool Pool
			replay(t, name+".nettrace", func(ev *nettrace.Event, ns int64) { pool.Event(ev, ns, 0) })
			require.Len(t, pool.Processes(), 1)
			p := pool.Processes()[0]
			want := reference(t, name+".threadpool.ndjson", "adjustment")
			require.Len(t, p.Adjustments, len(want))
			for i, w := range want {
				a := p.Adjustments[i]
				assert.InDelta(t, w.f("ms"), millis(a.Time), 1e-5)
				assert.EqualValues(t, w.f("new_count"), a.Workers)
				assert.Equal(t, w["reason"], a.Reason.String())
			}
			stats := reference(t, name+".threadpool.ndjson", "stats")[0]
			assert.EqualValues(t, stats.f("worker_starts"), p.Count(WorkerStart))
			assert.EqualValues(t, stats.f("worker_stops"), p.Count(WorkerStop))
			assert.EqualValues(t, stats.f("worker_waits"), p.Count(WorkerWait))
			assert.EqualValues(t, stats.f("max_active"), p.MaxWorkers())
			assert.Len(t, p.Delays, int(stats.f("queue_pairs")))
			var sum int64
			for _, d := range p.Delays {
				sum += d.Wait
			}
			assert.InDelta(t, stats.f("queue_delay_ms_sum"), millis(sum), 0.01)
		})
	}
}

func TestAllocationsSumToTheReference(t *testing.T) {
	for _, name := range recordings(t, ".allocs") {
		t.Run(name, func(t *testing.T) {
			var ticks, samples int
			var bytes uint64
			var estimated float64
			replay(t, name+".nettrace", func(ev *nettrace.Event, _ int64) {
				switch {
				case IsAllocationTick(ev):
					a, err := ReadAllocationTick(ev)
					require.NoError(t, err)
					ticks++
					bytes += a.Amount
				case IsAllocationSampled(ev):
					a, err := ReadAllocationSampled(ev)
					require.NoError(t, err)
					samples++
					estimated += SampledBytes(a.ObjectSize)
				}
			})
			stats := reference(t, name+".allocs.ndjson", "stats")[0]
			assert.EqualValues(t, stats.f("ticks"), ticks)
			assert.EqualValues(t, stats.f("tick_bytes"), bytes)
			assert.EqualValues(t, stats.f("samples"), samples)
			assert.InEpsilon(t, 1+stats.f("estimated_bytes"), 1+estimated, 1e-9)
		})
	}
}

// BenchmarkCollectors reads a recording for all collectors at once.
func BenchmarkCollectors(b *testing.B) {
	data, err := os.ReadFile(corpus + "gc.nettrace")
	if err != nil {
		b.Skip("no corpus beside the repository:", corpus)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := nettrace.NewReader(bytes.NewReader(data), nil)
		require.NoError(b, err)
		var gcs GCs
		var jit JIT
		var pool Pool
		var locks Contentions
		var ev nettrace.Event
		for r.Read(&ev) == nil {
			ns := r.Nanos(ev.Time)
			gcs.Event(&ev, ns, 0)
			jit.Event(&ev, ns, 0)
			pool.Event(&ev, ns, 0)
			locks.Event(&ev, ns, 0)
		}
	}
}
