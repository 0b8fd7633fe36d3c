package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"archive/zip"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

const trace = `{"traceEvents":[{"ph":"i","name":"x"}]}`

// copies is a Work that copies, and counts what it does.
func copies(n *atomic.Int32) batch.Work {
	return func(ctx context.Context, in *input.File, job batch.Job) (*report.Trace, error) {
		n.Add(1)
		rep := &report.Trace{Status: "ok", Input: report.Input{Name: in.Name, Bytes: in.Stored}}
		r, err := in.Reader()
		if err != nil {
			return rep, err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err == nil && bytes.Contains(b, []byte("FAIL")) {
			err = errors.New("it failed")
		}
		if err != nil {
			rep.Status, rep.Error = "failed", err.Error()
			return rep, err
		}
		f, err := output.Create(job.Out, &output.Options{Force: job.Force})
		if err != nil {
			return rep, err
		}
		defer f.Close()
		f.Write(b)
		if err := f.Commit(); err != nil {
			return rep, err
		}
		rep.Output = &report.Output{Name: job.Out, Bytes: f.Bytes()}
		return rep, nil
	}
}

// fakeS3 starts a store that speaks S3 and returns how to open its buckets. Requests go
// through around, which may be nil.
func fakeS3(t *testing.T, around func(http.Handler) http.Handler) batch.OpenURL {
	h := gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true)).Server()
	if around != nil {
		h = around(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	noCredentials(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return func(ctx context.Context, url string) (batch.Store, string, error) {
		return Open(ctx, url+"?endpoint="+srv.URL+"&region=us-east-1&use_path_style=true")
	}
}

// noCredentials hides those of whoever runs the tests.
func noCredentials(t *testing.T) {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
}

func fill(t *testing.T, s batch.Store, objects map[string]string) {
	for k, v := range objects {
		require.NoError(t, s.Put(t.Context(), k, strings.NewReader(v)))
	}
}

func keys(t *testing.T, s batch.Store, prefix string) []string {
	out := []string{}
	for o, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		if !strings.Contains(o.Key, "/.tracefix/") {
			out = append(out, strings.TrimPrefix(o.Key, prefix))
		}
	}
	sort.Strings(out)
	return out
}

func zipped(t *testing.T, names ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, n := range names {
		f, err := w.Create(n)
		require.NoError(t, err)
		_, err = f.Write([]byte(trace))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func TestBatchFromAndToBuckets(t *testing.T) { batchFromAndTo(t, fakeS3(t, nil)) }

func batchFromAndTo(t *testing.T, open batch.OpenURL) {
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	defer s.Close()
	big := `[{"ph":"i"}` + strings.Repeat(" ", 5<<20) + "]"
	objects := map[string]string{
		"in/a.json": trace, "in/deep/b c.json": trace, "in/big.json": big, "in/fail.json": `{"ph":"FAIL"}`,
		"in/readme.txt": "no trace", "in/empty.txt": "", "in/z.zip": zipped(t, "one.json", "../out.json"), "other/x.json": trace,
	}
	fill(t, s, objects)
	var n atomic.Int32
	c := batch.Config{Paths: []string{"s3://data/in"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open}
	r, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	want := []string{"a.json", "batch-report.html", "batch-report.json", "batch-report.md", "batch-report.ndjson", "batch-report.xml", "big.json", "deep/b c.json", "z.zip/one.json"}
	assert.Equal(t, want, keys(t, s, "out/"))
	assert.Equal(t, 4, r.Totals.OK)
	assert.Equal(t, 2, r.Totals.Failed)
	assert.Equal(t, 2, r.Totals.Skipped)
	assert.Equal(t, "s3://data/in/a.json", r.Traces[0].Input.Name)
	b, err := s.Open(t.Context(), batch.Object{Key: "out/big.json"}, 0, -1)
	require.NoError(t, err)
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	assert.Equal(t, big, string(got))

	// A second batch does not begin by itself; a resumed one does what failed.
	_, err = batch.Run(t.Context(), c)
	assert.ErrorContains(t, err, "--resume")
	n.Store(0)
	c.Resume = true
	again, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	assert.EqualValues(t, 1, n.Load())
	assert.Equal(t, r.Totals, again.Totals)
	require.NoError(t, s.Put(t.Context(), "in/a.json", strings.NewReader(trace+" ")))
	n.Store(0)
	_, err = batch.Run(t.Context(), c)
	require.NoError(t, err)
	assert.EqualValues(t, 2, n.Load(), "and what has changed")

	// To a folder, by a pattern, in shards, packed.
	dir := t.TempDir()
	for i := 1; i <= 2; i++ {
		_, err = batch.Run(t.Context(), batch.Config{Paths: []string{"s3://data/in/*/b*.json", "s3://data/other/x.json"}, Out: dir, Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Shard: batch.Shard{Index: i, Count: 2}})
		require.NoError(t, err)
	}
	assert.FileExists(t, filepath.Join(dir, "deep", "b c.json"))
	assert.FileExists(t, filepath.Join(dir, "x.json"))
	p := filepath.Join(dir, "all.zip")
	require.NoError(t, batch.Pack(t.Context(), c, again, p, false))
	z, err := zip.OpenReader(p)
	require.NoError(t, err)
	assert.Len(t, z.File, 4)
	z.Close()

	r, err = batch.Run(t.Context(), batch.Config{Paths: []string{"s3://data/nothing"}, Out: t.TempDir(), Do: batch.DoRepair, Work: copies(&n), OpenURL: open})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Totals.Failed)
	_, err = s.Stat(t.Context(), "nothing")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// Two slashes in a key are what joining a prefix with another one gives: the trace is done.
func TestKeysWithEmptyFolders(t *testing.T) {
	open := fakeS3(t, nil)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	fill(t, s, map[string]string{"in//a.json": trace, "in/a.json": trace, "in/d//b.json": trace, "in//../c.json": trace})
	out := t.TempDir()
	var n atomic.Int32
	r, err := batch.Run(t.Context(), batch.Config{Paths: []string{"s3://data/in/"}, Out: out, Do: batch.DoRepair, Work: copies(&n), OpenURL: open})
	require.NoError(t, err)
	assert.Equal(t, 3, r.Totals.OK)
	assert.Equal(t, 1, r.Totals.Failed, "what leads out of the folder")
	for _, name := range []string{"a.json", "a~2.json", "d/b.json"} {
		assert.FileExists(t, filepath.Join(out, name))
	}
}

func TestFailedPutLeavesNothing(t *testing.T) { failedPut(t, fakeS3(t, nil)) }

func failedPut(t *testing.T, open batch.OpenURL) {
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	err = s.Put(t.Context(), "half", io.MultiReader(strings.NewReader("half"), broken{}))
	assert.ErrorContains(t, err, "broken")
	_, err = s.Stat(t.Context(), "half")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	s.Close()
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestOpenRefuses(t *testing.T) {
	for _, u := range []string{"http://x/y", "s3:///key", "s3://b/k?nonsense=1"} {
		_, _, err := Open(t.Context(), u)
		assert.Error(t, err, u)
	}
}

func TestFileURLs(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "o")
	require.NoError(t, os.WriteFile(filepath.Join(in, "a b.json"), []byte(trace), 0o666))
	var n atomic.Int32
	r, err := batch.Run(t.Context(), batch.Config{Paths: []string{"file://" + in}, Out: "file://" + out, Do: batch.DoRepair, Work: copies(&n), OpenURL: Open})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Totals.OK, fmt.Sprint(r.Traces))
	assert.FileExists(t, filepath.Join(out, "a b.json"))
}
