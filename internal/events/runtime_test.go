package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

var reportKinds = map[string]ReportKind{"gc": KindGC, "jit": KindJIT, "locks": KindLocks, "threads": KindThreads}

func readRuntime(t *testing.T, name string, kind ReportKind, limit int) *Report {
	t.Helper()
	return readReport(t, name, kind, RuntimeOptions{Limit: limit, Waits: true})
}

func readReport(t *testing.T, name string, kind ReportKind, o RuntimeOptions) *Report {
	t.Helper()
	o.Load = load.Options{Source: name}
	open := func() (io.ReadCloser, error) {
		f, err := os.Open("../../testdata/nettrace/runtime-" + name + ".nettrace.zst")
		if err != nil {
			return nil, err
		}
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	r, _, err := ReadRuntime(context.Background(), open, kind, o)
	require.NoError(t, err)
	return r
}

func writeRuntime(t *testing.T, r *Report, format string, width int) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, format, width))
	return b.String()
}

func TestTextIsAsItWas(t *testing.T) {
	for name, kind := range reportKinds {
		t.Run(name, func(t *testing.T) {
			got := writeRuntime(t, readRuntime(t, name, kind, 5), "text", 120)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
			for line := range strings.Lines(got) {
				assert.LessOrEqual(t, len([]rune(line)), 121)
			}
		})
	}
}

// Rows for programs keep their fields and values: of each kind the first, the last and the longest.
func TestRowsAreAsTheyWere(t *testing.T) {
	for name, kind := range reportKinds {
		t.Run(name, func(t *testing.T) {
			var kinds []string
			rows := map[string][]string{}
			for line := range strings.Lines(writeRuntime(t, readRuntime(t, name, kind, 0), "ndjson", 0)) {
				var row struct{ K string }
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				if rows[row.K] == nil {
					kinds = append(kinds, row.K)
				}
				rows[row.K] = append(rows[row.K], line)
			}
			slices.Sort(kinds)
			var got strings.Builder
			for _, k := range kinds {
				list := rows[k]
				longest := slices.MaxFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
				chosen := []string{list[0], longest, list[len(list)-1]}
				slices.Sort(chosen)
				got.WriteString(strings.Join(slices.Compact(chosen), ""))
			}
			file := filepath.Join("testdata", name+".rows.ndjson")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o666))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
		})
	}
}

// TestFormatsTellTheSame compares rows of the formats for programs, and looks for a page
// that is whole and harmless.
func TestFormatsTellTheSame(t *testing.T) {
	for name, kind := range reportKinds {
		t.Run(name, func(t *testing.T) {
			r := readRuntime(t, name, kind, 0)
			lines := strings.Split(strings.TrimSuffix(writeRuntime(t, r, "ndjson", 0), "\n"), "\n")
			require.Len(t, lines, r.Rows.Len())
			require.Greater(t, len(lines), 20)
			var last map[string]any
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
			assert.Equal(t, "stats", last["k"])

			var doc struct {
				Processes []struct{ Verdict []string }
				Rows      []json.RawMessage
			}
			require.NoError(t, json.Unmarshal([]byte(writeRuntime(t, r, "json", 0)), &doc))
			require.Len(t, doc.Rows, len(lines))
			for i, row := range doc.Rows {
				require.JSONEq(t, lines[i], string(row))
			}
			require.Len(t, doc.Processes, 1)
			assert.NotEmpty(t, doc.Processes[0].Verdict)

			cells, err := csv.NewReader(strings.NewReader(writeRuntime(t, r, "csv", 0))).ReadAll()
			require.NoError(t, err)
			assert.Len(t, cells, 1+r.CSV.Len())

			page := writeRuntime(t, r, "html", 0)
			assert.NotContains(t, page, "<script")
			assert.NotContains(t, page, "http://")
			plots := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
			require.NotEmpty(t, plots)
			for _, p := range plots {
				d := xml.NewDecoder(strings.NewReader(p))
				for err == nil {
					_, err = d.Token()
				}
				require.ErrorIs(t, err, io.EOF, "an SVG is XML")
				assert.NotContains(t, p, "NaN")
				err = nil
			}
		})
	}
}

// TestPagesAreAsWideAsTheirWindow holds the pages of reports, whose verdicts name methods without a
// blank, in a narrow window.
func TestPagesAreAsWideAsTheirWindow(t *testing.T) {
	b := tracetest.NewBrowser(t, 380, 800)
	for name, kind := range reportKinds {
		r := readRuntime(t, name, kind, 5)
		r.Title += strings.Repeat("/folder", 20)
		r.Sections[0].Verdict = append(r.Sections[0].Verdict, "most in "+strings.Repeat("Namespace.", 20)+"Method()")
		page := filepath.Join(t.TempDir(), name+".html")
		require.NoError(t, os.WriteFile(page, []byte(writeRuntime(t, r, "html", 0)), 0o600))
		b.Open("file://"+filepath.ToSlash(page), `document.querySelectorAll("td").length > 3`)
		var over int
		b.Eval(`document.documentElement.scrollWidth - innerWidth`, &over)
		assert.LessOrEqual(t, over, 0, name)
	}
}

// Waits that are not listed are counted, those of the time that is wanted.
func TestWaitsAreCounted(t *testing.T) {
	for _, in := range []interval.Interval{{}, {From: 2e8, To: 6e8}} {
		var stats [2]map[string]any
		var lists [2]int
		for i, waits := range []bool{true, false} {
			r := readReport(t, "locks", KindLocks, RuntimeOptions{Waits: waits, Between: in})
			lines := strings.Split(strings.TrimSuffix(writeRuntime(t, r, "ndjson", 0), "\n"), "\n")
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &stats[i]))
			lists[i] = len(lines)
		}
		assert.Equal(t, stats[0], stats[1])
		assert.Greater(t, stats[1]["waits"], 3.0)
		assert.Greater(t, lists[0], lists[1])
		assert.Less(t, float64(lists[0]-lists[1]), stats[1]["waits"], "those for locks are not listed")
	}
}

// No wait that is listed lies within one for a lock of the same thread, and all others are.
func TestWaitsAreForNoLock(t *testing.T) {
	type row struct {
		K     string
		TID   uint64
		Start float64 `json:"start_ms"`
		MS    float64
	}
	var locks, waits []row
	for line := range strings.Lines(writeRuntime(t, readReport(t, "locks", KindLocks, RuntimeOptions{Waits: true}), "ndjson", 0)) {
		var r row
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		switch r.K {
		case "contention":
			locks = append(locks, r)
		case "wait":
			waits = append(waits, r)
		}
	}
	assert.Len(t, waits, 223)
	for _, w := range waits {
		assert.False(t, slices.ContainsFunc(locks, func(l row) bool {
			return l.TID == w.TID && l.Start <= w.Start && w.Start+w.MS <= l.Start+l.MS
		}), w)
	}
}

func waitEvent(id int, fields ...byte) *nettrace.Event {
	return &nettrace.Event{Metadata: &nettrace.Metadata{Provider: nettrace.ProviderRuntime, EventID: id}, ProcessID: 1, ThreadID: 2, Payload: fields}
}

// What a thread waits for after it gave a lock up is for no lock.
func TestWaitsAfterAnAbandonedLock(t *testing.T) {
	c := newLocksCollector(interval.Interval{}, true)
	start, stop := waitEvent(runtimeevents.IDWaitStart, 0, 0, 0, 0, 0, 0, 0, 0, 0), waitEvent(runtimeevents.IDWaitStop)
	contend, got := waitEvent(runtimeevents.IDContentionStart), waitEvent(runtimeevents.IDContentionStop)
	ns := int64(0)
	for _, ev := range []*nettrace.Event{start, stop, contend, start, stop, contend, start, stop, start, stop, got, start, stop, contend, start, stop} {
		ns++
		c.take(ev, ns, 0)
	}
	c.report(&Context{}, interval.Interval{})
	var at []int64
	waits := c.all.waits.list(1)
	for i := range waits.Len() {
		at = append(at, waits.At(i).Start)
	}
	assert.Equal(t, []int64{1, 4, 12, 15}, at)
}

// Threads of a deadlock wait until the trace ends: that others waited little is no good news.
func TestWaitsThatMayGoOn(t *testing.T) {
	verdict := func(in interval.Interval, evs ...*nettrace.Event) string {
		c := newLocksCollector(in, false)
		for i, ev := range evs {
			ev.ThreadID = uint64(ev.Payload[0])
			ev.Payload = nil
			c.take(ev, int64(i)*1e6, 0)
		}
		from, until := in.Resolve(1e9)
		r := c.report(&Context{In: in, End: until - from, Frames: func(uint32) []string { return nil }, Process: func(int) string { return "" }}, in)
		return strings.ReplaceAll(writeRuntime(t, r, "text", 0), "\n  ", " ")
	}
	contend := func(tid byte) *nettrace.Event { return waitEvent(runtimeevents.IDContentionStart, tid) }
	got := func(tid byte) *nettrace.Event { return waitEvent(runtimeevents.IDContentionStop, tid) }

	short := verdict(interval.Interval{}, contend(1), got(1))
	assert.Contains(t, short, "That is little.")
	hung := verdict(interval.Interval{}, contend(1), got(1), contend(1), contend(2))
	assert.Contains(t, hung, "Those with an end are little.")
	assert.Contains(t, hung, "2 of them may have gone on until the trace ended, as in a deadlock, for 2.00 s in all.")
	alone := verdict(interval.Interval{From: 5e8, To: 7e8}, contend(1), contend(2))
	assert.Contains(t, alone, "For how long is not known")
	assert.Contains(t, alone, "2 of them may have gone on until the trace ended, as in a deadlock, for 400 ms in all.")
	assert.NotContains(t, verdict(interval.Interval{}, contend(1), contend(1), got(1)), "gone on", "the first one was over when the second began")
}

// statsOf returns the totals of a report on one process.
func statsOf(t *testing.T, r *Report) (stats map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(writeRuntime(t, r, "ndjson", 0), "\n"), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &stats))
	return stats
}

// Work is of the thread that dequeues it, wherever it was enqueued.
func TestQueueOfThreads(t *testing.T) {
	of := func(wants func(tid uint64) bool) RuntimeOptions {
		return RuntimeOptions{Wants: func(ev *nettrace.Event) bool { return wants(ev.ThreadID) }}
	}
	whole := statsOf(t, readReport(t, "threads", KindThreads, RuntimeOptions{}))
	one := statsOf(t, readReport(t, "threads", KindThreads, of(func(tid uint64) bool { return tid == 22496 })))
	rest := statsOf(t, readReport(t, "threads", KindThreads, of(func(tid uint64) bool { return tid != 22496 })))
	assert.EqualValues(t, 589, one["dequeues"])
	assert.EqualValues(t, 1, one["enqueues"])
	for _, key := range []string{"enqueues", "dequeues", "queue_delay_ms_sum", "worker_starts"} {
		assert.InDelta(t, whole[key], one[key].(float64)+rest[key].(float64), 1e-3, key)
	}

	const enqueues = 22470
	none := readReport(t, "threads", KindThreads, of(func(tid uint64) bool { return tid == enqueues }))
	assert.Contains(t, writeRuntime(t, none, "text", 0), "No work was taken from the queue.")
}

// A recording that is attached to a process lacks when the work came that stood in the queue, and
// one that is stopped when it was taken.
func TestQueueAtTheEdges(t *testing.T) {
	event := func(ms int64, id int, work byte) (*nettrace.Event, int64) {
		return &nettrace.Event{ProcessID: 1, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderFramework, EventID: id}, Payload: []byte{work, 0, 0, 0, 0, 0, 0, 0}}, ms * 1e6
	}
	of := func(in interval.Interval, partial bool, lost int64, paired bool) (string, map[string]any) {
		c := newThreadsCollector(in)
		take := func(ms int64, id int, work byte) {
			ev, ns := event(ms, id, work)
			c.take(ev, ns, 0)
		}
		take(10, 31, 1)
		take(20, 31, 2)
		if paired {
			take(30, 30, 3)
			take(40, 31, 3)
		}
		take(50, 30, 4)
		r := c.report(&Context{In: in, End: 1e8, Partial: partial, Lost: lost, Process: func(int) string { return "" }}, in)
		return strings.ReplaceAll(writeRuntime(t, r, "text", 0), "\n  ", " "), statsOf(t, r)
	}
	text, stats := of(interval.Interval{}, false, 0, true)
	assert.Contains(t, text, "10.0 ms at worst, in 1 item.")
	assert.Contains(t, text, "For how long 2 more items stood in the queue is not known")
	assert.Contains(t, text, "Nothing tells when 1 more item that came into the queue left it: ")
	assert.Equal(t, []any{2.0, 3.0, 2.0}, []any{stats["enqueues"], stats["dequeues"], stats["dequeues_without_enqueue"]})

	text, _ = of(interval.Interval{}, false, 0, false)
	assert.Contains(t, text, "For how long 2 items stood in the queue is not known")
	assert.NotContains(t, text, "No work was taken")

	text, stats = of(interval.Interval{From: 15e6, To: 45e6}, false, 0, true)
	assert.Contains(t, text, "For how long 1 more item stood")
	assert.NotContains(t, text, "Nothing tells", "it came later")
	assert.EqualValues(t, 2, stats["dequeues"])
	for _, c := range []struct {
		partial bool
		lost    int64
	}{{true, 0}, {false, 1}} {
		text, _ = of(interval.Interval{}, c.partial, c.lost, true)
		assert.NotContains(t, text, "Nothing tells")
	}
}

// Finalizers are those that ran in the time that is wanted.
func TestFinalizersOfATime(t *testing.T) {
	of := func(in interval.Interval) map[string]any {
		return statsOf(t, readReport(t, "gc", KindGC, RuntimeOptions{Between: in}))
	}
	const half = 1500e6
	whole, first, second := of(interval.Interval{}), of(interval.Interval{To: half}), of(interval.Interval{From: half})
	assert.EqualValues(t, 539, whole["finalized"])
	assert.Positive(t, first["finalized"])
	assert.Positive(t, second["finalized"])
	for _, key := range []string{"finalized", "finalizing_ms"} {
		assert.InDelta(t, whole[key], first[key].(float64)+second[key].(float64), 1e-6, key)
	}
}

// What lasts over the edge of the time that is wanted counts in sums as far as it lies within: the
// sums before and behind a moment add up, also where it cuts the longest of all in two.
func TestSumsAreOfTheTime(t *testing.T) {
	for name, keys := range map[string]struct{ start, length, sum string }{
		"gc": {"pause_start_ms", "pause_ms", "total_pause_ms"}, "jit": {"start_ms", "compile_ms", "total_ms"}, "locks": {"start_ms", "ms", "total_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(in interval.Interval) *Report {
				return readReport(t, name, reportKinds[name], RuntimeOptions{Between: in})
			}
			var cut, longest float64
			for line := range strings.Lines(writeRuntime(t, of(interval.Interval{}), "ndjson", 0)) {
				var row map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				if length, ok := row[keys.length].(float64); ok && length > longest {
					cut, longest = row[keys.start].(float64)+length/2, length
				}
			}
			whole, first, second := statsOf(t, of(interval.Interval{})), statsOf(t, of(interval.Interval{To: nanos(cut)})), statsOf(t, of(interval.Interval{From: nanos(cut)}))
			assert.InDelta(t, whole[keys.sum], first[keys.sum].(float64)+second[keys.sum].(float64), 1e-3)

			middle := statsOf(t, of(interval.Interval{From: nanos(cut - longest/4), To: nanos(cut + longest/4)}))
			assert.GreaterOrEqual(t, middle[keys.sum], longest/2-1e-3)
			const note = "sums of time hold the part inside; counts, sizes"
			assert.NotContains(t, writeRuntime(t, of(interval.Interval{}), "text", 0), note)
			assert.Contains(t, writeRuntime(t, of(interval.Interval{To: nanos(cut)}), "text", 0), note)
			if name == "gc" {
				assert.InDelta(t, 100, middle["gc_pause_percent"], 1e-3)
				assert.InDelta(t, longest, middle["max_pause_ms"], 1e-9, "single times are whole")
			}
		})
	}
}

// So does what work waited in the queue.
func TestQueueOfATime(t *testing.T) {
	of := func(in interval.Interval) *Report {
		return readReport(t, "threads", KindThreads, RuntimeOptions{Between: in})
	}
	const cut, key = 4.4e9, "queue_delay_ms_sum"
	first, second := of(interval.Interval{To: cut}), of(interval.Interval{From: cut})
	assert.InDelta(t, statsOf(t, of(interval.Interval{}))[key], statsOf(t, first)[key].(float64)+statsOf(t, second)[key].(float64), 1e-3)
	assert.Contains(t, writeRuntime(t, first, "text", 0), "waits at an edge of the time chosen")
}

// The pool takes back what it added for a worker that blocked, for the same reason; that is no more blocking.
func TestWorkersThatBlock(t *testing.T) {
	of := func(in interval.Interval) string {
		return writeRuntime(t, readReport(t, "threads", KindThreads, RuntimeOptions{Between: in}), "text", 0)
	}
	told := func(in interval.Interval) string { return strings.ReplaceAll(of(in), "\n  ", " ") }
	assert.Contains(t, told(interval.Interval{}), "the pool made room for another one 13 times, because Task.Wait or Task.Result blocked a worker, and took that back in 7 steps.")
	assert.Contains(t, told(interval.Interval{From: 3.726e9, To: 3.8e9}), "the pool took back, in 7 steps, the room that it had made for others because Task.Wait or Task.Result blocked a worker.")
	assert.Contains(t, of(interval.Interval{From: 4e9, To: 5e9}), "The pool starved: 1 time, at 4299.1 ms, it")
}

// With as many workers as it may have a pool adds none, however long work waits; and how many that
// is a trace tells that begins with the process, or before ThreadPool.SetMaxThreads.
func TestStarvationAtTheLimit(t *testing.T) {
	worker := func(at int64, n uint32) runtimeevents.WorkerChange {
		return runtimeevents.WorkerChange{Time: at, Kind: runtimeevents.WorkerStart, Workers: n}
	}
	workers := []runtimeevents.WorkerChange{worker(10, 1), worker(20, 2), worker(30, 3)}
	const full, maybe, not = "it had all 3 workers that it may have", "did not starve, unless", "The pool did not starve."
	for name, c := range map[string]struct {
		p    runtimeevents.PoolProcess
		want string
	}{
		"fewer":                    {runtimeevents.PoolProcess{Workers: workers, Limits: []runtimeevents.Limits{{Time: 1, MaxWorkers: 4}}}, not},
		"all":                      {runtimeevents.PoolProcess{Workers: workers, Limits: []runtimeevents.Limits{{Time: 1, MaxWorkers: 3}}}, full},
		"lowered later":            {runtimeevents.PoolProcess{Workers: workers, Limits: []runtimeevents.Limits{{Time: 1, MaxWorkers: 4}, {Time: 40, MaxWorkers: 3}}}, full},
		"raised before":            {runtimeevents.PoolProcess{Workers: workers, Limits: []runtimeevents.Limits{{Time: 1, MaxWorkers: 3}, {Time: 25, MaxWorkers: 9}}}, not},
		"not told":                 {runtimeevents.PoolProcess{Workers: workers}, maybe},
		"told late":                {runtimeevents.PoolProcess{Workers: workers, Limits: []runtimeevents.Limits{{Time: 25, MaxWorkers: 9}}}, maybe},
		"told before, all existed": {runtimeevents.PoolProcess{Before: 3, LimitBefore: 3}, full},
		"told before":              {runtimeevents.PoolProcess{Before: 3, LimitBefore: 4}, not},
	} {
		c.p.WorkersTold = true
		assert.Contains(t, threadsVerdict(&c.p, &threadsStats{}, nil, &Context{})[0], c.want, name)
	}
	of := func(in interval.Interval) string {
		return writeRuntime(t, readReport(t, "threads", KindThreads, RuntimeOptions{Between: in}), "text", 0)
	}
	assert.Contains(t, of(interval.Interval{From: 4.4e9, To: 4.7e9}), not, "what was told before holds on")
}

// From what the first change of a trace comes nothing tells.
func TestRoomMade(t *testing.T) {
	for want, goals := range map[string][]uint32{
		"made room for another one at least 2 times, because Task.Wait or Task.Result blocked a worker, and took that back in at least 1 step": {5, 4, 5, 6},
		"made room for another one at least 1 time, because Task.Wait or Task.Result blocked a worker":                                         {5, 6},
		"took back, in at least 2 steps, the room that it had made for others because Task.Wait or Task.Result blocked a worker":               {5, 4, 3},
		"made room for another one, because Task.Wait or Task.Result blocked a worker, or took that back, once":                                {5},
	} {
		p := &runtimeevents.PoolProcess{}
		for _, n := range goals {
			p.Adjustments = append(p.Adjustments, runtimeevents.Adjustment{Workers: n, Reason: runtimeevents.CooperativeBlocking})
		}
		assert.Equal(t, want, roomMade(p))
	}
}

// One thread does not tell whether the pool starved: another one may have changed its size.
func TestStarvationOfOtherThreads(t *testing.T) {
	o := RuntimeOptions{Wants: func(ev *nettrace.Event) bool { return ev.ThreadID == 22496 }}
	assert.Contains(t, writeRuntime(t, readReport(t, "threads", KindThreads, o), "text", 0), "did not starve")
	o.Partial = true
	assert.NotContains(t, writeRuntime(t, readReport(t, "threads", KindThreads, o), "text", 0), "starve")
}

// The queue alone does not tell that the pool did not starve, nor do events of which some were lost.
func TestStarvationThatIsNotTold(t *testing.T) {
	of := func(wants func(*nettrace.Event) bool) string {
		return writeRuntime(t, readReport(t, "threads", KindThreads, RuntimeOptions{Wants: wants}), "text", 0)
	}
	queue := of(func(ev *nettrace.Event) bool { return ev.Metadata.Provider == nettrace.ProviderFramework })
	assert.Contains(t, queue, "did not starve", "events that are not wanted tell, too")

	quiet := &runtimeevents.PoolProcess{WorkersTold: true, LimitBefore: 4}
	for want, c := range map[string]*Context{"The pool did not starve.": {}, "The trace does not tell that the pool starved.": {Lost: 1}} {
		assert.Equal(t, want, threadsVerdict(quiet, &threadsStats{}, nil, c)[0])
	}
	assert.Contains(t, threadsVerdict(&runtimeevents.PoolProcess{QueueTold: true}, &threadsStats{}, nil, &Context{})[0], "was not recorded: --providers")
	var pool runtimeevents.Pool
	pool.Event(&nettrace.Event{ProcessID: 1, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderFramework, EventID: 30}, Payload: make([]byte, 8)}, 0, 0)
	assert.False(t, pool.Processes()[0].WorkersTold)
	pool.Event(&nettrace.Event{ProcessID: 1, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderRuntime, EventID: runtimeevents.IDWorkerWait}, Payload: make([]byte, 10)}, 0, 0)
	assert.True(t, pool.Processes()[0].WorkersTold)
	assert.Equal(t, []string{"1,000 events of the trace could not be kept by who recorded it: counts and sums are of the others."}, lostNote(1000))
	assert.Equal(t, []string{"No collection took place."}, gcVerdict(&gcProcess{}, &gcSums{}, &gcStats{}, &Context{}))
	assert.Equal(t, []string{"The trace holds no collection."}, gcVerdict(&gcProcess{}, &gcSums{}, &gcStats{}, &Context{Lost: 1}))
}

// Of a trace that lost events sums are of a part, and little of something is no good news where
// many were lost.
func TestVerdictsOfLossyTraces(t *testing.T) {
	const little, noRate = "That is little.", "Allocated: at least 5.00 MB; "
	for name, tt := range map[string]struct {
		lost   int64
		untold bool
		want   []string
		not    string
	}{
		"whole":                   {0, false, []string{"2 collections stopped all threads for 3.00 ms", little, "Allocated: 5.00 MB, 50.0 MB a second;"}, "at least"},
		"a pause without its end": {0, true, []string{"2 collections stopped all threads for at least 1.50 ms", little, "Not known: for how long 1 collection "}, "Allocated: at least"},
		"few were lost":           {4, false, []string{"2 collections stopped all threads for at least 3.00 ms", little, "Allocated: at least 5.00 MB, 50.0 MB a second;"}, noRate},
		"many were lost":          {5, false, []string{"2 collections stopped all threads for at least 3.00 ms", noRate}, little},
	} {
		l := listsIn[gcRecord](nil)
		for number := range uint32(2) {
			g := &gcRecord{gcTimes: gcTimes{pause: 15e5, inside: 15e5, untold: tt.untold && number == 0}}
			if g.untold {
				g.pause, g.inside = 0, 0
			}
			g.Number, g.End, g.Reason = number+1, 1, 1
			l.add(1, g)
		}
		p := &gcProcess{&runtimeevents.GCProcess{PID: 1, Ticks: 1}, l.list(1), nil, 5e6}
		c := &Context{End: 1e8, Events: 100, Lost: tt.lost, Frames: func(uint32) []string { return nil }}
		sums := sumGCs(p, nil, c)
		stats := gcStatsOf(p, sums, c)
		stats.PausePercent = 1 // what little is
		got := strings.Join(gcVerdict(p, sums, &stats, c), "\n")
		for _, w := range tt.want {
			assert.Contains(t, got, w, name)
		}
		assert.NotContains(t, got, tt.not, name)
	}
	compiled := []*runtimeevents.Compilation{{}}
	for lost, want := range map[int64]string{0: "held nobody up", 4: "held nobody up", 5: ""} {
		v := strings.Join(jitVerdict(compiled, &jitStats{Methods: 1, Foreground: 1}, 0, &Context{End: 1e9, Events: 100, Lost: lost}), "\n")
		assert.Equal(t, want != "", strings.Contains(v, "held nobody up"), lost)
		assert.NotContains(t, v, "background")
	}
}

// Who lists what is in the heap has the runtime collect first; that has no stack, as no code of the
// program asked for it.
func TestInduced(t *testing.T) {
	by := map[string]int{"Shop.Cart.Add": 4, "A.A": 2, "A.B": 1, "A.C": 1}
	for want, sums := range map[string]*gcSums{
		"Induced: 10 collections asked for by code: Shop.Cart.Add (4), A.A (2), A.B (1), others (3).": {stats: gcStats{Induced: 10}, inducers: by},
		"Induced: 10 collections asked for by code.":                                                  {stats: gcStats{Induced: 10}},
		"Induced: 10 collections asked for by code: Shop.Cart.Add (4), A.A (2), A.B (1), others (1); and 2 by code, or by the recording itself to list what is in the heap, as dotnet-gcdump does: no stack tells.": {stats: gcStats{Induced: 10}, inducers: by, unknown: 2},
		"Induced: 1 collection asked for by code, or by the recording itself to list what is in the heap, as dotnet-gcdump does: no stack tells.":                                                                   {stats: gcStats{Induced: 1}, unknown: 1},
	} {
		assert.Equal(t, want, induced(sums))
	}
	l := listsIn[gcRecord](nil)
	for _, stack := range []uint32{0, 7} {
		g := &gcRecord{}
		g.Reason, g.Stack = runtimeevents.GCInduced, stack
		l.add(1, g)
	}
	sums := sumGCs(&gcProcess{&runtimeevents.GCProcess{PID: 1}, l.list(1), nil, 0}, nil, &Context{Frames: func(stack uint32) []string {
		return map[uint32][]string{7: {"Shop!Cart.Add()"}}[stack]
	}})
	assert.Equal(t, 1, sums.unknown)
	assert.Equal(t, map[string]int{"Shop!Cart.Add()": 1}, sums.inducers)
}

// What the sizes of the heap tell ends with the last collection: the total is no total of the trace.
func TestAllocatedUntilTheLastCollection(t *testing.T) {
	s := &gcStats{Allocated: ptr(uint64(1e8)), AllocationRate: ptr(50.0), AllocatedBy: "heap_sizes"}
	p := &gcProcess{GCProcess: &runtimeevents.GCProcess{}}
	for want, allocating := range map[string]int64{
		"Allocated: about 100 MB, 50.0 MB a second (by":                                     19.5e8,
		"Allocated: about 100 MB in the 1.50 s up to the last collection, 50.0 MB a second": 15e8,
	} {
		assert.Contains(t, gcAllocated(p, &gcSums{allocating: allocating}, s, &Context{End: 2e9}), want)
	}
	s.AllocatedBy = "ticks"
	assert.NotContains(t, gcAllocated(p, &gcSums{}, s, &Context{End: 2e9}), "up to the last")
}

// No ReadyToRun code spares the compilation of dynamic methods.
func TestCompilingDynamicMethods(t *testing.T) {
	list := []*runtimeevents.Compilation{{Start: 0, Stop: 4e7, Dynamic: true}, {Start: 5e7, Stop: 8e7}}
	told := func(list []*runtimeevents.Compilation) string {
		return writeRuntime(t, JIT(&runtimeevents.JIT{Compilations: list}, &Context{End: 1e8, Process: func(int) string { return "" }, Frames: func(uint32) []string { return nil }}), "text", 0)
	}
	assert.Contains(t, told(list), "most of it dynamic methods")
	assert.NotContains(t, told(list), "ReadyToRun code would")
	list[0].Dynamic = false
	assert.NotContains(t, told(list), "most of it dynamic methods")
	assert.Contains(t, told(list), "ReadyToRun code would")
}

// By the sizes of the heap what was allocated is what it grew by between two collections, not what
// was there before.
func TestAllocatedBySizes(t *testing.T) {
	of := func(in interval.Interval) float64 {
		stats := statsOf(t, readReport(t, "alloc", KindGC, RuntimeOptions{Between: in}))
		require.Equal(t, "heap_sizes", stats["allocated_by"])
		return stats["total_allocated_bytes"].(float64)
	}
	const half = 2e9
	assert.InDelta(t, of(interval.Interval{}), of(interval.Interval{To: half})+of(interval.Interval{From: half}), 0.5)

	collection := func(number uint32, before, after uint64) *gcRecord {
		g := &gcRecord{}
		g.Number, g.HasSizes, g.HasHistory, g.Start = number, true, true, int64(number)*1e9
		g.Gen[0].Before, g.Gen[0].After = before, after
		return g
	}
	large := func(number uint32, concurrent bool, before, freeBefore, after, free uint64) *gcRecord {
		g := collection(number, 0, 0)
		g.Concurrent = concurrent
		g.Gen[3] = runtimeevents.Generation{Before: before, FragmentationBefore: freeBefore, After: after, Fragmentation: free}
		return g
	}
	background := func(number uint32, ends int64, before, freeBefore, after, free uint64) *gcRecord {
		g := collection(number, before, after)
		g.Concurrent, g.End = true, ends
		g.Gen[0].FragmentationBefore, g.Gen[0].Fragmentation = freeBefore, free
		return g
	}
	free := func(g *gcRecord, before, after uint64) *gcRecord {
		g.Gen[0].FragmentationBefore, g.Gen[0].Fragmentation = before, after
		return g
	}
	for name, tt := range map[string]struct {
		list   []*gcRecord
		before *heapSizes
		want   uint64
		time   int64 // ns, in how long
	}{
		"from the start of the process":            {[]*gcRecord{collection(1, 100, 40), collection(2, 120, 50)}, nil, 100 + 80, 2e9},
		"attached: the first one is a start":       {[]*gcRecord{collection(7, 100, 40), collection(8, 120, 50)}, nil, 80, 1e9},
		"attached: one collection tells nothing":   {[]*gcRecord{collection(7, 100, 40)}, nil, 0, 0},
		"behind a collection before what is asked": {[]*gcRecord{collection(7, 100, 40)}, &heapSizes{time: 5e9, gen: generationArray{70}}, 30, 2e9},
		"small objects between pinned ones":        {[]*gcRecord{free(collection(1, 100, 100), 0, 90), free(collection(2, 100, 100), 10, 95)}, nil, 100 + 80, 2e9},
		"a background collection sweeps":           {[]*gcRecord{collection(1, 100, 10), background(2, 2.5e9, 50, 0, 60, 40), free(collection(3, 70, 5), 10, 0)}, nil, 100 + 40 + (60 - 20), 3e9},
		"one that has not ended yet":               {[]*gcRecord{collection(1, 100, 10), background(2, 3.5e9, 50, 0, 60, 40), free(collection(3, 70, 30), 10, 0), collection(4, 50, 5)}, nil, 100 + 40 + 10 + (50 - 20), 4e9},
		"large objects in free space":              {[]*gcRecord{large(1, false, 50, 0, 50, 30), large(2, false, 50, 5, 50, 40), large(3, false, 60, 0, 60, 0)}, nil, 50 + 25 + 50, 3e9},
		"what a background collection frees":       {[]*gcRecord{large(1, false, 50, 0, 50, 0), large(2, true, 80, 0, 80, 10), large(3, false, 80, 60, 80, 60), large(4, false, 80, 50, 80, 50)}, nil, 50 + 30 + 0 + 10, 4e9},
	} {
		l := listsIn[gcRecord](nil)
		for _, g := range tt.list {
			l.add(1, g)
		}
		sums := sumGCs(&gcProcess{&runtimeevents.GCProcess{PID: 1}, l.list(1), tt.before, 0}, nil, &Context{})
		assert.Equal(t, tt.want, sums.allocated, name)
		assert.Equal(t, tt.time, sums.allocating, name)
	}

	// What is asked for ends within the pause of the second collection, before that starts.
	l := listsIn[gcRecord](nil)
	l.add(1, collection(1, 100, 40))
	l.add(1, collection(2, 120, 50))
	sums := sumGCs(&gcProcess{&runtimeevents.GCProcess{PID: 1}, l.list(1), nil, 0}, nil, &Context{In: interval.Interval{To: 1.9e9}})
	assert.EqualValues(t, 100, sums.allocated)
}

// Ticks are of the collection after them, wherever the time that is wanted begins, and of that
// time where they lie in it. Where none does the heap, which grew before, does not tell either.
func TestAllocatedByTicksOfATime(t *testing.T) {
	tick := waitEvent(runtimeevents.IDAllocationTick, 100, 0, 0, 0, 0, 0, 0, 0)
	of := func(in interval.Interval) (rows []uint64, total any) {
		c := newGCCollector(in)
		ns := int64(0)
		for number := byte(1); number <= 2; number++ {
			start := waitEvent(runtimeevents.IDGCStart, number, 0, 0, 0, 0, 0, 0, 0)
			stop := waitEvent(runtimeevents.IDGCEnd, number, 0, 0, 0, 0, 0, 0, 0)
			for _, ev := range []*nettrace.Event{tick, tick, start, stop} {
				ns++
				c.take(ev, ns, 0)
			}
		}
		r := c.report(&Context{In: in, End: ns, Frames: func(uint32) []string { return nil }}, in)
		for line := range strings.Lines(writeRuntime(t, r, "ndjson", 0)) {
			var row map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			if row["k"] == "stats" {
				return rows, row["total_allocated_bytes"]
			}
			rows = append(rows, uint64(row["allocated_bytes"].(float64)))
		}
		return rows, nil
	}
	for name, tt := range map[string]struct {
		in    interval.Interval
		rows  []uint64
		total any
	}{
		"all":                           {interval.Interval{}, []uint64{200, 200}, 400.0},
		"from between two ticks":        {interval.Interval{From: 6, To: 100}, []uint64{200}, 100.0},
		"from behind them":              {interval.Interval{From: 7, To: 100}, []uint64{200}, nil},
		"before the other ones":         {interval.Interval{To: 1}, nil, 100.0},
		"a collection between ticks":    {interval.Interval{From: 3, To: 4}, []uint64{200}, nil},
		"until the next one's are told": {interval.Interval{From: 3, To: 5}, []uint64{200}, 100.0},
	} {
		rows, total := of(tt.in)
		assert.Equal(t, tt.rows, rows, name)
		assert.Equal(t, tt.total, total, name)
	}

	var stats gcStats
	stats.allocates(&gcProcess{GCProcess: &runtimeevents.GCProcess{Ticks: 1}}, &gcSums{allocated: 5e6, allocating: 1e9}, &Context{})
	assert.Nil(t, stats.Allocated)
}

// Workers exist also where their number does not grow.
func TestMostWorkersOfATime(t *testing.T) {
	for name, tt := range map[string]struct {
		in   interval.Interval
		want uint32
	}{
		"all":                              {interval.Interval{}, 15},
		"most were there before":           {interval.Interval{From: 4e9, To: 4.2e9}, 15},
		"only waits":                       {interval.Interval{From: 1.8e9, To: 2e9}, 3},
		"no worker starts, stops or waits": {interval.Interval{From: 3.9e9, To: 4.02e9}, 15},
		"from nothing":                     {interval.Interval{To: 1e9}, 2},
	} {
		assert.EqualValues(t, tt.want, statsOf(t, readReport(t, "threads", KindThreads, RuntimeOptions{Between: tt.in}))["max_active"], name)
	}
	// The thread started as the tenth worker and dequeues still; how many there are then is of other threads.
	one := RuntimeOptions{Between: interval.Interval{From: 4.3e9, To: 4.6e9}, Wants: func(ev *nettrace.Event) bool { return ev.ThreadID == 22496 }}
	assert.Less(t, statsOf(t, readReport(t, "threads", KindThreads, one))["max_active"], 10.0)
}

// Compilations without an end are those that began in the time that is wanted, or before.
func TestUnfinishedOfATime(t *testing.T) {
	wants := func(ev *nettrace.Event) bool {
		return ev.Metadata.EventID != runtimeevents.IDMethodLoadVerbose || ev.ThreadID%2 == 0
	}
	whole := statsOf(t, readReport(t, "jit", KindJIT, RuntimeOptions{Wants: wants}))
	first := statsOf(t, readReport(t, "jit", KindJIT, RuntimeOptions{Wants: wants, Between: interval.Interval{To: 6e8}}))
	assert.Positive(t, first["unfinished"])
	assert.Greater(t, whole["unfinished"], first["unfinished"])
}

// A wait that has no end is over when its thread waits anew: what comes later is not the time of
// it. The last one's end is not known.
func TestWaitsWithoutEndOfATime(t *testing.T) {
	for name, tt := range map[string]struct {
		in   interval.Interval
		want int
	}{
		"all":                {interval.Interval{}, 8},
		"all have begun":     {interval.Interval{To: 4.85e9}, 8},
		"some have begun":    {interval.Interval{To: 4.7e9}, 4},
		"some are over":      {interval.Interval{From: 4.76e9}, 3},
		"all but one":        {interval.Interval{From: 4.83e9}, 1},
		"what follows":       {interval.Interval{From: 5e9}, 0},
		"in the middle":      {interval.Interval{From: 4.63e9, To: 4.64e9}, 1},
		"before all of them": {interval.Interval{To: 4.5e9}, 0},
	} {
		assert.EqualValues(t, tt.want, statsOf(t, readReport(t, "locks", KindLocks, RuntimeOptions{Between: tt.in}))["starts_without_stop"], name)
	}
}

// Waits that had begun before the recording are told.
func TestWaitsWithoutStart(t *testing.T) {
	from := func(start, to int64) RuntimeOptions { // the trace holds no start before the event of that number
		n := int64(0)
		return RuntimeOptions{Between: interval.Interval{To: to}, Wants: func(ev *nettrace.Event) bool {
			n++
			return n > start || !runtimeevents.IsContention(ev)
		}}
	}
	early := func(o RuntimeOptions) any {
		return statsOf(t, readReport(t, "locks", KindLocks, o))["stops_without_start"]
	}
	assert.EqualValues(t, 0, early(from(0, 0)))
	some, before := early(from(1500, 0)), early(from(1500, 2e9))
	assert.Greater(t, some, before)
	assert.Positive(t, before)
	assert.Contains(t, writeRuntime(t, readReport(t, "locks", KindLocks, from(1500, 0)), "text", 0), "of which the trace lacks the beginning")
	all := readReport(t, "locks", KindLocks, from(1e9, 0))
	assert.Contains(t, writeRuntime(t, all, "text", 0), "282 waits of which the trace lacks the beginning")
	assert.EqualValues(t, 282, statsOf(t, all)["stops_without_start"])
}

// Where no wait has an end, nothing is said of how long they took, and no row is left out.
func TestWaitsOfWhichNoneHasAnEnd(t *testing.T) {
	r := readReport(t, "locks", KindLocks, RuntimeOptions{Wants: func(ev *nettrace.Event) bool { return !runtimeevents.IsContentionStop(ev) }})
	stats := statsOf(t, r)
	assert.EqualValues(t, 290, stats["starts_without_stop"])
	assert.EqualValues(t, 56, stats["threads"])
	got := writeRuntime(t, r, "text", 0)
	assert.Contains(t, got, "56 threads waited for 23 locks, 290 times. For how long is not known")
	assert.NotContains(t, got, "Little of the time")
	assert.NotContains(t, got, "Longest waits")
	assert.Equal(t, 291, strings.Count(writeRuntime(t, r, "csv", 0), "\n"))
	assert.Equal(t, "290 waits for locks", r.Summary())
}

// Sums have the digits of what they are sums of.
func TestDigitsOfSums(t *testing.T) {
	for name, kind := range reportKinds {
		lines := strings.Split(strings.TrimSpace(writeRuntime(t, readRuntime(t, name, kind, 0), "ndjson", 0)), "\n")
		assert.NotRegexp(t, `_ms":[0-9]+\.[0-9]{7}`, lines[len(lines)-1], name)
	}
}

// Compilations of which the trace does not hold the start took no time that is known, not 0.
func TestCompilationsWithoutTime(t *testing.T) {
	of := func(most int, format ...string) string { // leaves out the starts behind the first
		n := 0
		return writeRuntime(t, readReport(t, "jit", KindJIT, RuntimeOptions{Wants: func(ev *nettrace.Event) bool {
			if ev.Metadata.Provider == nettrace.ProviderRuntime && ev.Metadata.EventID == runtimeevents.IDMethodJittingStarted {
				n++
				return n <= most
			}
			return true
		}}), append(format, "text")[0], 0)
	}
	none := of(0)
	assert.Contains(t, none, "574 methods compiled.\nCompiled in the background: 247 methods, in 265 ms (5.8 % of 4.58 s).\nFor which methods threads stood waiting")
	assert.Regexp(t, ` 111 +44.6 KB  OptimizedTier1\n`, none)
	assert.NotContains(t, none, "Slowest\n")
	assert.Contains(t, of(500), "Not known: how long 74 of them took; the trace lacks their start.")
	assert.NotContains(t, of(574), "Not known")
	assert.Equal(t, 500+1, strings.Count(of(500, "ndjson"), `"il_bytes":`), "the start tells it, and the sum")
}

// What dotnet-trace records by default tells no method that is compiled, and still how many were in the
// background, and for how long.
func TestCompilationsInTheBackground(t *testing.T) {
	of := func(in interval.Interval) *Report {
		return readReport(t, "jit", KindJIT, RuntimeOptions{Between: in, Wants: func(ev *nettrace.Event) bool {
			switch ev.Metadata.EventID {
			case runtimeevents.IDMethodJittingStarted, runtimeevents.IDMemoryForJitCode, runtimeevents.IDMethodLoadVerbose:
				return false
			}
			return true
		}})
	}
	whole, named := of(interval.Interval{}), statsOf(t, readReport(t, "jit", KindJIT, RuntimeOptions{}))
	assert.Equal(t, "247 methods compiled in the background", whole.Done)
	assert.Contains(t, writeRuntime(t, whole, "text", 0), "Compiled in the background: 247 methods, in 265 ms (5.8 % of 4.58 s).")
	assert.Contains(t, writeRuntime(t, whole, "html", 0), "Each run of the compiler")
	stats := statsOf(t, whole)
	assert.Equal(t, named["background_tiered"], stats["background_batch_methods"])
	assert.InEpsilon(t, named["background_tiered_ms"], stats["background_batch_ms"], 0.03)
	early, late := statsOf(t, of(interval.Interval{To: 2e9})), statsOf(t, of(interval.Interval{From: 2e9}))
	for _, k := range []string{"background_batches", "background_batch_methods", "background_batch_ms"} {
		assert.Positive(t, early[k])
		assert.InEpsilon(t, stats[k], early[k].(float64)+late[k].(float64), 1e-9, k)
	}
}

// A pause whose end the trace lacks is not one of 0 ms.
func TestPauseThatIsNotTold(t *testing.T) {
	of := func(id int, after uint32) *Report { // leaves out the events of an id on the way
		var number uint32
		return readReport(t, "gc", KindGC, RuntimeOptions{Wants: func(ev *nettrace.Event) bool {
			if ev.Metadata.Provider == nettrace.ProviderRuntime && ev.Metadata.EventID == runtimeevents.IDGCStart {
				c := ev.Cursor()
				number = c.U32()
			}
			return ev.Metadata.Provider != nettrace.ProviderRuntime || ev.Metadata.EventID != id || number <= after
		}})
	}
	const known = 300
	whole, cut := statsOf(t, of(-1, 0)), of(runtimeevents.IDRestartEEBegin, known)
	stats := statsOf(t, cut)
	assert.Equal(t, whole["count"], stats["count"])
	assert.InDelta(t, stats["count"].(float64)-known, stats["count_incomplete"], 1)
	assert.Positive(t, stats["p50_pause_ms"])
	rows := writeRuntime(t, cut, "ndjson", 0)
	assert.EqualValues(t, stats["count_incomplete"], strings.Count(rows, `"k":"gc"`)-strings.Count(rows, `"pause_ms":`))
	assert.Contains(t, writeRuntime(t, cut, "text", 0), "Not known: for how long 1")

	none := writeRuntime(t, of(runtimeevents.IDRestartEEBegin, 0), "text", 0)
	assert.NotContains(t, none, "stopped all threads for 0")

	// Nor is it known how long it took to stop all threads, or to wake them, where events of that
	// are missing.
	rows = writeRuntime(t, of(runtimeevents.IDSuspendEEEnd, known), "ndjson", 0)
	assert.InDelta(t, known, strings.Count(rows, `"suspend_ms":`), 3)
	assert.NotContains(t, rows, `"suspend_ms":0,`)
	rows = writeRuntime(t, of(runtimeevents.IDRestartEEEnd, known), "ndjson", 0)
	assert.InDelta(t, known, strings.Count(rows, `"waking_ms":`), 3)
	assert.NotContains(t, rows, `"waking_ms":0,`)
	// Of what has no length none is among the longest, nor more of them.
	assert.NotContains(t, writeRuntime(t, cut, "text", 0), "more; --limit 0")
}

// Pauses of collections that the trace does not hold are told, where they are more than that of a
// no-GC region.
func TestPausesOfNoCollection(t *testing.T) {
	lost := 0
	of := func(most int) string {
		lost = 0
		return strings.ReplaceAll(writeRuntime(t, readReport(t, "gc", KindGC, RuntimeOptions{Wants: func(ev *nettrace.Event) bool {
			if ev.Metadata.Provider != nettrace.ProviderRuntime || ev.Metadata.EventID != runtimeevents.IDGCStart {
				return true
			}
			lost++
			return lost > most
		}}), "text", 0), "\n  ", " ")
	}
	assert.NotContains(t, of(0), "does not hold")
	assert.Contains(t, of(40), "collections that the trace does not hold")
	assert.Contains(t, of(1000), "The trace holds no collection.\nAll threads were stopped for another 2")
}

// Where objects that were allocated are recorded, the report says who tells of them.
func TestAllocatedNext(t *testing.T) {
	assert.Contains(t, strings.ReplaceAll(writeRuntime(t, readRuntime(t, "alloc", KindGC, 5), "text", 0), "\n  ", " "), "(by the sizes of the heap; `tracefix top --weight alloc` tells what and where)")
	assert.Contains(t, writeRuntime(t, readRuntime(t, "gc", KindGC, 5), "text", 0), "--profile gc-verbose records")
}

func TestNothingToReportSaysWhatWouldRecordIt(t *testing.T) {
	for name, kind := range reportKinds {
		r := readRuntime(t, "exceptions", kind, 0)
		if r.Rows.Len() == 0 {
			assert.Contains(t, r.Missing, "dotnet-trace collect", name)
			assert.Contains(t, writeRuntime(t, r, "html", 0), "dotnet-trace collect", "a page that is opened later has no line on the terminal beside it")
		}
	}
	for name, columns := range map[string]string{"locks": "pid,start_ms,tid,object", "jit": "pid,name,module,tier"} {
		r := readRuntime(t, "exceptions", reportKinds[name], 0)
		require.Zero(t, r.Rows.Len())
		assert.Empty(t, writeRuntime(t, r, "text", 80))
		assert.Regexp(t, "^"+columns+"[^\n]*\n$", writeRuntime(t, r, "csv", 80), "the head of a table")
		assert.Regexp(t, `^\{"k":"stats",[^\n]*\}\n$`, writeRuntime(t, r, "ndjson", 80), "the totals of nothing")
		assert.Contains(t, writeRuntime(t, r, "json", 80), `"k": "stats"`)
	}
}

// TestPlotsDoNotGrow draws more points than a plot has pixels.
func TestPlotsDoNotGrow(t *testing.T) {
	var s PlotSeries
	s.Style = Bars
	for i := range int64(1_000_000) {
		v := 1.0
		if i == 777_777 {
			v = 5
		}
		s.add(i, v, "tip <b>")
	}
	p := Plot{Title: "t", Unit: "ms", Series: []PlotSeries{s}}
	svg := string(p.SVG())
	assert.Less(t, len(svg), 200_000)
	assert.Contains(t, svg, "tip &lt;b&gt;")
	assert.Empty(t, (&Plot{}).SVG())
}

func TestUnits(t *testing.T) {
	for ns, want := range map[int64]string{0: "0", 999: "1.00 µs", 12_345: "12.3 µs", 999_600: "1.00 ms", 45_678_901: "45.7 ms", 1_999_000_000: "2.00 s", 125e9: "125 s"} {
		assert.Equal(t, want, duration(ns))
	}
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1234: "1.23 KB", 999_600: "1.00 MB", 58_269_016: "58.3 MB", 1.5e12: "1.50 TB"} {
		assert.Equal(t, want, size(n))
	}
	assert.Equal(t, "1 method", count(1, "method"))
	assert.Equal(t, "12,345 methods", count(12345, "method"))
	assert.EqualValues(t, 5, percentile([]int{1, 2, 3, 4, 5}, 99))
	assert.EqualValues(t, 3, percentile([]int{1, 2, 3, 4, 5}, 50))
}

func TestCallerIsWhoCalledTheMachinery(t *testing.T) {
	assert.Equal(t, "App!App.Store.Add(int32)", caller([]string{"App!App.Main()", "App!App.Store.Add(int32)", "System.Private.CoreLib!System.Threading.Monitor.Enter_Slowpath(class System.Object)"}))
	const lib = "System.Private.CoreLib!System.Runtime."
	assert.Equal(t, "App!App.Store.Get()", caller([]string{"App!App.Store.Get()", lib + "EH.RhThrowEx(class System.Object,value class ExInfo&)",
		lib + "EH.DispatchEx(value class System.Runtime.StackFrameIterator&,value class ExInfo&)", lib + "StackFrameIterator.Init(value class PAL_LIMITED_CONTEXT*,bool,bool*)",
		lib + "ExceptionServices.InternalCalls.RhpSfiInit(value class System.Runtime.StackFrameIterator&,void*,bool,bool*)"}), "CoreLib was compiled when it ran")
	assert.Equal(t, "System.Private.CoreLib!System.GC.Collect()", caller([]string{"System.Private.CoreLib!System.GC.Collect()"}), "nothing else is there")
	assert.Empty(t, caller(nil))
}

// That a process has one heap does not tell that it has workstation GC; who makes the collections does.
func TestCollectorIsTold(t *testing.T) {
	of := func(id int) string {
		return writeRuntime(t, readReport(t, "gc", KindGC, RuntimeOptions{Wants: func(ev *nettrace.Event) bool {
			return ev.Metadata.Provider != nettrace.ProviderRuntime || ev.Metadata.EventID != id
		}}), "text", 0)
	}
	assert.Contains(t, of(-1), "collections (workstation) stopped")
	assert.Contains(t, of(runtimeevents.IDGCTriggered), "collections stopped")
}

// A throughput that is no number takes nothing from the report.
func TestThroughputThatIsNoNumber(t *testing.T) {
	p := &runtimeevents.PoolProcess{PID: 1, WorkersTold: true}
	for _, v := range []float64{math.NaN(), math.Inf(1), 0, 2.5} {
		p.Adjustments = append(p.Adjustments, runtimeevents.Adjustment{Throughput: v, Workers: 3})
	}
	r := threadsReport([]*runtimeevents.PoolProcess{p}, func(int) *waited { return nil }, &Context{})
	for _, format := range []string{"ndjson", "json"} {
		var b bytes.Buffer
		require.NoError(t, r.Write(&b, format, 0))
		assert.Equal(t, 2, strings.Count(b.String(), `"throughput"`))
	}
	assert.Contains(t, writeRuntime(t, r, "csv", 0), "1,0,0,,3,Warmup\n")
}
