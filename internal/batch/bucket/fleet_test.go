//go:build unix

package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// How large the fleet of TestFleet is; docs/batch.md has what
// go test ./internal/batch/bucket -run TestFleet -v -fleet 5000 -fleet-workers 32 -fleet-pieces 160
// told.
var (
	fleetSize    = flag.Int("fleet", 200, "objects of TestFleet")
	fleetWorkers = flag.Int("fleet-workers", 4, "workers of TestFleet")
	fleetPieces  = flag.Int("fleet-pieces", 8, "pieces of TestFleet")
)

// TestMain is a worker of a fleet where TestFleet wants one.
func TestMain(m *testing.M) {
	if url := os.Getenv("TRACEFIX_TEST_FLEET"); url != "" {
		os.Exit(fleetWorker(url))
	}
	os.Exit(m.Run())
}

// killer is what stands in a trace that no memory is enough for.
const killer = "TRACEFIX-TEST-KILLER"

// fleetWorker does the piece that the environment of the engine names, as `tracefix batch --manifest
// PLAN --for-merge` does.
func fleetWorker(url string) int {
	m, err := batch.ParseManifest(url+"out/batch-plan.ndjson"+os.Getenv("TRACEFIX_TEST_OPTIONS"), "", "", os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	row := command.Lookup(batch.DoRepair)
	repair := batch.WorkOf(row, row.New(), command.Options{})
	work := func(ctx context.Context, in *input.File, job batch.Job) (*report.Trace, error) {
		if bytes.Contains(in.Head(), []byte(killer)) {
			eatMemory()
		}
		return repair(ctx, in, job)
	}
	rep, err := batch.Run(context.Background(), batch.Config{
		Manifest: m, Out: url + "out/" + os.Getenv("TRACEFIX_TEST_OPTIONS"), Do: batch.DoRepair, Work: work,
		OpenURL: Open, Jobs: 2, MaxMemory: 256 << 20,
	})
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case rep.Totals.Unreached > 0:
		return 1
	}
	return 0
}

// eatMemory takes memory until the system says no. Go cannot recover from that.
func eatMemory() {
	var all [][]byte
	for {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 { // what is not touched takes none
			b[i] = 1
		}
		all = append(all, b)
		_ = all
	}
}

// A loopback is a store that speaks as much of S3 as batches need, counts what it is asked
// for, and fails at times. Inputs are made up from their keys: a hundred thousand take no
// memory.
type loopback struct {
	keys    []string // of the inputs, sorted
	content func(i int) []byte
	fails   bool

	mu    sync.Mutex
	puts  map[string]int      // how often each key was written
	small map[string][]byte   // what was written, but outputs
	sizes map[string]int64    // of all that was written
	parts map[string][][]byte // of objects that are written in parts
	asked map[string]int      // requests, by kind
	rng   *rand.Rand
}

func (s *loopback) count(kind string) {
	s.mu.Lock()
	s.asked[kind]++
	s.mu.Unlock()
}

// chance draws a fault: "" for none.
func (s *loopback) chance() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fails {
		return ""
	}
	switch n := s.rng.IntN(10_000); {
	case n < 100:
		return "500"
	case n < 150:
		return "reset"
	case n < 155:
		return "403"
	case n < 255:
		return "slow"
	}
	return ""
}

func (s *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.chance()
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/fleet"), "/")
	kind := r.Method
	switch {
	case r.URL.Query().Get("list-type") != "":
		kind = "LIST"
	case strings.Contains(key, ".tracefix/journal"):
		kind += " journal"
	case strings.Contains(key, "batch-"):
		kind += " plan and reports"
	default:
		kind += " object"
	}
	s.count(kind)
	if fault != "" {
		s.count("fault " + fault)
	}
	switch fault {
	case "500", "403":
		code, _ := strconv.Atoi(fault)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(code)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>injected</Message></Error>", map[string]string{"500": "InternalError", "403": "AccessDenied"}[fault])
		return
	case "reset":
		if r.Method == http.MethodGet { // in the middle of an answer, if it is one
			w = &cutting{ResponseWriter: w, left: 2000}
		} else {
			panic(http.ErrAbortHandler)
		}
	case "slow":
		time.Sleep(200 * time.Millisecond)
	}
	switch {
	case kind == "LIST":
		s.list(w, r)
	case r.URL.Query().Has("uploads"): // an object in parts begins
		fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPost: // and ends
		s.join(w, key)
	case r.Method == http.MethodPut:
		s.write(w, r, key)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.small, key)
		delete(s.sizes, key)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		s.read(w, r, key)
	}
}

func (s *loopback) etag(key string, b []byte) string {
	sum := md5.Sum(append([]byte(key), b...))
	return hex.EncodeToString(sum[:])
}

func (s *loopback) get(key string) ([]byte, bool) {
	if i, ok := slices.BinarySearch(s.keys, key); ok {
		return s.content(i), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.small[key]
	return b, ok
}

func (s *loopback) read(w http.ResponseWriter, r *http.Request, key string) {
	b, ok := s.get(key)
	if !ok {
		s.mu.Lock()
		n, there := s.sizes[key]
		s.mu.Unlock()
		if there && r.Method == http.MethodHead {
			w.Header().Set("ETag", `"`+s.etag(key, nil)+`"`)
			w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		return
	}
	w.Header().Set("ETag", `"`+s.etag(key, b)+`"`)
	http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(b))
}

func (s *loopback) write(w http.ResponseWriter, r *http.Request, key string) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		b = unchunked(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("ETag", `"`+s.etag(key, nil)+`"`)
	if part := r.URL.Query().Get("partNumber"); part != "" {
		n, _ := strconv.Atoi(part)
		s.parts[key] = append(s.parts[key], make([][]byte, max(0, n-len(s.parts[key])))...)
		s.parts[key][n-1] = b
		return
	}
	s.keep(key, b)
}

// join makes an object of its parts.
func (s *loopback) join(w http.ResponseWriter, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(key, bytes.Join(s.parts[key], nil))
	delete(s.parts, key)
	fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>fleet</Bucket><ETag>%s</ETag></CompleteMultipartUploadResult>", s.etag(key, nil))
}

func (s *loopback) keep(key string, b []byte) {
	s.puts[key]++
	s.sizes[key] = int64(len(b))
	if strings.Contains(key, "batch-") || strings.Contains(key, ".tracefix/") {
		s.small[key] = b
	}
}

// unchunked takes the chunks of a body apart that is signed as it is sent.
func unchunked(b []byte) (out []byte) {
	for {
		head, rest, _ := bytes.Cut(b, []byte("\r\n"))
		size, _, _ := bytes.Cut(head, []byte(";"))
		n, err := strconv.ParseInt(string(size), 16, 64)
		if err != nil || n == 0 || n > int64(len(rest)) {
			return out
		}
		out = append(out, rest[:n]...)
		b = bytes.TrimPrefix(rest[n:], []byte("\r\n"))
	}
}

func (s *loopback) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key          string
		LastModified string
		ETag         string
		Size         int64
	}
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []object
	}
	q := r.URL.Query()
	prefix := q.Get("prefix")
	after := q.Get("continuation-token")
	s.mu.Lock()
	var written []string
	for k := range s.sizes {
		if strings.HasPrefix(k, prefix) && k > after {
			written = append(written, k)
		}
	}
	s.mu.Unlock()
	slices.Sort(written)
	from, _ := slices.BinarySearch(s.keys, max(prefix, after))
	add := func(k string, size int64, etag string) bool {
		if k <= after || !strings.HasPrefix(k, prefix) {
			return true
		}
		if len(out.Contents) == 1000 {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[999].Key
			return false
		}
		out.Contents = append(out.Contents, object{k, "2026-01-01T00:00:00Z", `"` + etag + `"`, size})
		return true
	}
	for i := from; i < len(s.keys) && strings.HasPrefix(s.keys[i], prefix); i++ { // inputs and outputs share no prefix
		b := s.content(i)
		if !add(s.keys[i], int64(len(b)), s.etag(s.keys[i], b)) {
			break
		}
	}
	for _, k := range written {
		s.mu.Lock()
		n := s.sizes[k]
		s.mu.Unlock()
		if !add(k, n, s.etag(k, nil)) {
			break
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(out)
}

// fleetTraces are small real traces of testdata.
func fleetTraces(t *testing.T) (all [][]byte, ends []string) {
	for _, name := range []string{
		"chromium/perfetto-connected_flow_data.json", "chromium/catapult-simple_trace.json", "chromium/speedscope-simple.json",
		"nettrace/tracelogging.netperf", "chromium/catapult-async_begin_end.json", "chromium/viztracer-vdb_basic.json", "nettrace/executioncheckpoints.nettrace",
	} {
		b, err := os.ReadFile(filepath.Join("../../../testdata", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		all, ends = append(all, b), append(ends, filepath.Ext(name))
	}
	require.Greater(t, len(all), 3)
	return all, ends
}

// TestFleet takes a fleet of traces through a plan, workers that are processes of their own
// and a store that fails, as a scheduler would: pieces whose worker died or failed are given
// out again. Every trace must be in the outputs and in the merged report, once.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	traces, ends := fleetTraces(t)
	n := *fleetSize
	s := &loopback{
		puts: map[string]int{}, small: map[string][]byte{}, sizes: map[string]int64{}, asked: map[string]int{}, parts: map[string][][]byte{},
		rng: rand.New(rand.NewPCG(25, 25)),
	}
	killers := map[int]bool{n / 3: true, n / 2: true}
	for i := range n {
		s.keys = append(s.keys, fmt.Sprintf("in/2026-11/pod-%03d/%07d%s", i*1000/n, i, ends[i%len(ends)]))
	}
	s.content = func(i int) []byte {
		if killers[i] {
			return []byte(`[{"ph":"i","name":"` + killer + `","ts":1,"pid":1,"tid":1}]`)
		}
		return traces[i%len(traces)]
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	noCredentials(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	options := "?endpoint=" + srv.URL + "&region=us-east-1&use_path_style=true"
	began := time.Now()
	plan, err := batch.MakePlan(t.Context(), batch.Config{
		Paths: []string{"s3://fleet/in/" + options}, Out: "s3://fleet/out/" + options, Do: batch.DoRepair, OpenURL: Open,
	}, *fleetPieces)
	require.NoError(t, err)
	planned := time.Since(began)
	listed := s.asked["LIST"]
	s.fails = true

	limit := limiter(t)
	pool := runFleet(t, plan.Pieces, *fleetWorkers, "s3://fleet/", options, limit)
	worked := time.Since(began) - planned
	s.fails = false

	began = time.Now()
	m, err := batch.NewMerger()
	require.NoError(t, err)
	defer m.Close()
	c := batch.Config{Out: "s3://fleet/out/" + options, OpenURL: Open}
	require.NoError(t, m.AddFrom(t.Context(), c, c.Out))
	rep, err := m.Report(nil)
	require.NoError(t, err)
	require.NoError(t, rep.WriteAll(t.Context(), c))
	merged := time.Since(began)

	assert.Equal(t, n, rep.List.Inputs)
	assert.Equal(t, len(killers), rep.Totals.Failed, rep.Summary())
	assert.Equal(t, len(killers), rep.Totals.Quarantined)
	assert.Equal(t, n-len(killers), rep.Totals.OK+rep.Totals.Damaged+rep.Totals.Skipped)
	next := 0
	outputs := map[string]bool{}
	for x, err := range rep.All() {
		require.NoError(t, err)
		require.Equal(t, next, x.Index, "every trace once, in the order of the list")
		require.Equal(t, "s3://fleet/"+s.keys[next], x.Input.Name)
		next++
		if x.Output != nil {
			outputs["out/"+x.Output.Name] = true
		}
		if x.Quarantined {
			assert.True(t, killers[x.Index])
		}
	}
	assert.Equal(t, n, next)
	again := 0
	for key := range outputs {
		require.NotZero(t, s.puts[key], key)
		again += s.puts[key] - 1
	}
	for key := range s.sizes {
		if strings.HasPrefix(key, "out/") && !strings.Contains(key, "batch-") && !strings.Contains(key, ".tracefix/") {
			require.True(t, outputs[key], "%s is an output that no report knows", key)
		}
	}
	per := func(kinds ...string) (sum float64) {
		for _, k := range kinds {
			sum += float64(s.asked[k])
		}
		return sum / float64(n)
	}
	assert.NotZero(t, pool.deaths, "the limit killed nobody")
	mean, slowest := pool.spread()
	t.Logf("%d objects in %d pieces, %d workers, memory limited by %s", n, plan.Pieces, *fleetWorkers, limit.name)
	t.Logf("plan %v, work %v, merge %v", planned.Round(time.Millisecond), worked.Round(time.Millisecond), merged.Round(time.Millisecond))
	t.Logf("faults: %d x 500, %d x 403, %d resets, %d slow; %d kills; %d deaths by memory; %d pieces run again", s.asked["fault 500"], s.asked["fault 403"], s.asked["fault reset"], s.asked["fault slow"], pool.kills, pool.deaths, pool.again)
	t.Logf("requests for each object: %.4f GET, %.4f PUT, %.4f HEAD; journal %.4f, plan and reports %.4f, LIST %.4f (%d pages for the plan); %d outputs were written again",
		per("GET object"), per("PUT object"), per("HEAD object"), per("PUT journal", "GET journal", "DELETE journal"), per("GET plan and reports", "PUT plan and reports", "HEAD plan and reports"), per("LIST"), listed, again)
	t.Logf("slowest worker %v, mean %v: %.2f", slowest.Round(time.Millisecond), mean.Round(time.Millisecond), float64(slowest)/float64(mean))
	t.Logf("were each worker a machine, by the processor time of the pieces: %.2f; with one at half the speed of the others: %.2f", pool.machines(*fleetWorkers, 1), pool.machines(*fleetWorkers, 2))
}

// A fleetPool is what happened to the workers.
type fleetPool struct {
	mu                   sync.Mutex
	kills, deaths, again int
	busy                 []time.Duration
	cpu                  []time.Duration // of each piece, all tries
}

// machines tells by how much the slowest of machines would be later than their mean, where each
// takes the next piece when it has done one. The first takes slower times as long.
func (p *fleetPool) machines(n int, slower time.Duration) float64 {
	ends := make([]time.Duration, n)
	for _, d := range p.cpu {
		first := slices.Index(ends, slices.Min(ends))
		if first == 0 {
			d *= slower
		}
		ends[first] += d
	}
	var sum time.Duration
	for _, d := range ends {
		sum += d
	}
	return float64(slices.Max(ends)) * float64(n) / float64(sum)
}

func (p *fleetPool) spread() (mean, slowest time.Duration) {
	for _, d := range p.busy {
		mean += d / time.Duration(len(p.busy))
		slowest = max(slowest, d)
	}
	return mean, slowest
}

// runFleet gives out pieces to workers as engines do: by number, again where one fails.
func runFleet(t *testing.T, pieces, workers int, url, options string, limit memoryLimit) *fleetPool {
	self, err := os.Executable()
	require.NoError(t, err)
	const most = 25
	type task struct{ piece, try int }
	queue := make(chan task, pieces*(most+1))
	var left sync.WaitGroup
	left.Add(pieces)
	for i := range pieces {
		queue <- task{piece: i}
	}
	go func() { left.Wait(); close(queue) }()
	pool := &fleetPool{busy: make([]time.Duration, workers), cpu: make([]time.Duration, pieces)}
	rng := rand.New(rand.NewPCG(1, 1))
	variables := []string{"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for x := range queue {
				began := time.Now()
				cmd := limit.command(self, "-test.run=^$")
				cmd.Env = append(os.Environ(), "TRACEFIX_TEST_FLEET="+url, "TRACEFIX_TEST_OPTIONS="+options, variables[w%len(variables)]+"="+strconv.Itoa(x.piece))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				pool.mu.Lock()
				kill := rng.IntN(100) < 4
				after := time.Duration(30+rng.IntN(300)) * time.Millisecond
				pool.mu.Unlock()
				err := cmd.Start()
				if err == nil && kill {
					timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
					err = cmd.Wait()
					timer.Stop()
				} else if err == nil {
					err = cmd.Wait()
				}
				pool.mu.Lock()
				pool.busy[w] += time.Since(began)
				if s := cmd.ProcessState; s != nil {
					pool.cpu[x.piece] += s.UserTime() + s.SystemTime()
				}
				if err != nil {
					var exit *exec.ExitError
					killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled()
					switch {
					case killed && kill:
						pool.kills++
					case killed || strings.Contains(stderr.String(), "out of memory"):
						pool.deaths++
					}
					pool.again++
				}
				pool.mu.Unlock()
				switch {
				case err == nil:
					left.Done()
				case x.try == most:
					t.Errorf("piece %d: %v: %.2000s", x.piece, err, stderr.String())
					left.Done()
				default:
					queue <- task{x.piece, x.try + 1}
				}
			}
		})
	}
	wg.Wait()
	return pool
}

// A memoryLimit starts processes that the system gives no more memory than some.
type memoryLimit struct {
	name    string
	command func(name string, args ...string) *exec.Cmd
}

// limiter gives each worker a control group of its own, as a pod has, where this test may make
// some. Else it limits their address space, which is what a system lets anybody do.
func limiter(t *testing.T) memoryLimit {
	if dir, limits := memoryGroups(); dir != "" {
		var made atomic.Int64
		return memoryLimit{"a control group of 256 MiB for each process", func(name string, args ...string) *exec.Cmd {
			group := filepath.Join(dir, fmt.Sprintf("tracefix-test-%d-%d", os.Getpid(), made.Add(1)))
			if err := errors.Join(os.Mkdir(group, 0o755), limitGroup(group, limits)); err != nil {
				t.Errorf("a control group: %v", err)
			}
			t.Cleanup(func() { os.Remove(group) })
			script := `echo $$ > "$0/cgroup.procs" && exec "$@"`
			return exec.Command("sh", append([]string{"-c", script, group, name}, args...)...)
		}}
	}
	return memoryLimit{"ulimit -v (RLIMIT_AS)", func(name string, args ...string) *exec.Cmd {
		script := `ulimit -v "$0" && exec "$@"`
		return exec.Command("sh", append([]string{"-c", script, strconv.Itoa(3 << 20), name}, args...)...)
	}}
}

// groupMemory is what a worker may take; its batch is told to keep to less.
const groupMemory = 256 << 20

// memoryGroups returns the folder below which control groups of memory can be made, and the
// files of a group that limit it. It is empty where none can.
func memoryGroups() (dir string, limits map[string]string) {
	size := strconv.Itoa(groupMemory)
	for _, v := range []struct {
		dir    string
		limits map[string]string
	}{
		{"/sys/fs/cgroup/memory", map[string]string{"memory.limit_in_bytes": size}},
		{"/sys/fs/cgroup", map[string]string{"memory.max": size, "memory.swap.max": "0"}},
	} {
		probe := filepath.Join(v.dir, fmt.Sprintf("tracefix-test-%d-0", os.Getpid()))
		if os.Mkdir(probe, 0o755) != nil {
			continue
		}
		err := limitGroup(probe, v.limits)
		os.Remove(probe)
		if err == nil {
			return v.dir, v.limits
		}
	}
	return "", nil
}

func limitGroup(group string, limits map[string]string) error {
	for name, value := range limits {
		f, err := os.OpenFile(filepath.Join(group, name), os.O_WRONLY, 0) // what the system did not make is no limit
		if errors.Is(err, os.ErrNotExist) && name == "memory.swap.max" {
			continue // a system without swap
		}
		if err != nil {
			return err
		}
		if _, err := f.WriteString(value); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
