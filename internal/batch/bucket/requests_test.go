package bucket

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/output"
)

// A desk counts the requests for a store and may refuse some.
type desk struct {
	mu     sync.Mutex
	next   http.Handler
	asked  map[string]int // by method and key
	refuse func(*http.Request) string
	sent   map[string]int64 // bytes of answers, by key
}

func (d *desk) around(next http.Handler) http.Handler {
	d.next, d.asked, d.sent = next, map[string]int{}, map[string]int64{}
	return d
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	key := r.URL.Path
	d.asked[r.Method+" "+key]++
	refuse := d.refuse
	d.mu.Unlock()
	if refuse != nil {
		if code := refuse(r); code != "" {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(map[string]int{"AccessDenied": 403, "NoSuchBucket": 404}[code])
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
			return
		}
	}
	d.next.ServeHTTP(&weighed{w, d, key}, r)
}

// take returns how many requests there were of a method for keys that begin so, and forgets all.
func (d *desk) take(method, begin string) (n int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, times := range d.asked {
		if strings.HasPrefix(k, method+" "+begin) {
			n += times
		}
	}
	for k, sent := range d.sent {
		if strings.HasPrefix(k, begin) {
			bytes += sent
		}
	}
	clear(d.asked)
	clear(d.sent)
	return n, bytes
}

type weighed struct {
	http.ResponseWriter
	d   *desk
	key string
}

func (w *weighed) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	w.d.sent[w.key] += int64(len(p))
	w.d.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

// noisy is a trace that does not get smaller when it is compressed.
func noisy(size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rand.IntN(36)]
	}
	return `[{"ph":"i","name":"` + string(b) + `"}]`
}

// TestRefusedPageFailsEachShard: a listing that breaks off at its second page is no shorter
// listing.
func TestRefusedPageFailsEachShard(t *testing.T) {
	d := &desk{}
	open := fakeS3(t, d.around)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	objects := map[string]string{}
	for i := range 1100 {
		objects["in/"+strconv.Itoa(10000+i)+".json"] = trace
	}
	fill(t, s, objects)
	d.refuse = func(r *http.Request) string {
		if r.URL.Query().Get("list-type") != "" && r.URL.Query().Get("continuation-token") != "" {
			return "AccessDenied"
		}
		return ""
	}
	var n atomic.Int32
	out := t.TempDir()
	c := batch.Config{Paths: []string{"s3://data/in/"}, Out: out, Do: batch.DoRepair, Work: copies(&n), OpenURL: open}
	for i := range 2 {
		c.Shard = batch.Shard{Index: i + 1, Count: 2}
		_, err := batch.Run(t.Context(), c)
		require.ErrorContains(t, err, "refuses access to bucket data with the keys in the environment")
	}
	_, err = batch.MakePlan(t.Context(), c, 2)
	assert.ErrorContains(t, err, "refuses access")
	assert.Zero(t, n.Load(), "nothing was begun")
	assert.NoFileExists(t, filepath.Join(out, "batch-plan.ndjson"))
	m, err := batch.NewMerger()
	require.NoError(t, err)
	defer m.Close()
	assert.Error(t, m.AddFrom(t.Context(), c, out), "and there is nothing to merge")
}

// TestEachShardSaysWhyItCannot: one sentence, from each of ten shards.
func TestEachShardSaysWhyItCannot(t *testing.T) {
	d := &desk{}
	open := fakeS3(t, d.around)
	for code, want := range map[string]string{
		"NoSuchBucket": "there is no bucket data at http",
		"AccessDenied": "refuses access to bucket data with the keys in the environment",
	} {
		d.refuse = func(*http.Request) string { return code }
		for i := range 10 {
			var n atomic.Int32
			_, err := batch.Run(t.Context(), batch.Config{
				Paths: []string{"s3://data/in/"}, Out: t.TempDir(), Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Shard: batch.Shard{Index: i + 1, Count: 10},
			})
			require.ErrorContains(t, err, want, "shard %d", i+1)
			assert.NotContains(t, err.Error(), "\n")
			assert.Equal(t, 1, strings.Count(err.Error(), want))
		}
	}
}

// TestZipIsReadByRange: a shard asks for the directory of a zip and its own members.
func TestZipIsReadByRange(t *testing.T) {
	const members, shards = 16, 4
	d := &desk{}
	open := fakeS3(t, d.around)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%02d.json", i), Method: zip.Store})
		require.NoError(t, err)
		w.Write([]byte(noisy(512 << 10)))
	}
	require.NoError(t, z.Close())
	fill(t, s, map[string]string{"in/all.zip": b.String()})
	var n atomic.Int32
	done := 0
	c := batch.Config{Paths: []string{"s3://data/in/"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open}
	for i := range shards {
		d.take("", "")
		c.Shard = batch.Shard{Index: i + 1, Count: shards}
		r, err := batch.Run(t.Context(), c)
		require.NoError(t, err)
		gets, sent := d.take("GET", "/data/in/all.zip")
		own := r.Totals.OK
		require.Zero(t, r.Totals.Failed, r.Traces[0].Error)
		done += own
		assert.LessOrEqual(t, gets, own+3, "the directory, and a request for each member")
		assert.Less(t, sent, int64(own)*(512+100)<<10+300<<10)
	}
	assert.Equal(t, members, done)
}

// TestResumeDownloadsNothing: the versions that the listing tells are enough, for objects, zips
// and tars.
func TestResumeDownloadsNothing(t *testing.T) {
	d := &desk{}
	open := fakeS3(t, d.around)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"one.json", "notes.txt", "deep/two.json"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(trace))}))
		w.Write([]byte(trace))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "one.json"}))
	require.NoError(t, w.Close())
	objects := map[string]string{"in/a.json": trace, "in/readme.txt": "no trace", "in/t.tar": b.String(), "in/z.zip": zipped(t, "one.json", "two.json"), "in/empty.tar": string(make([]byte, 1024))}
	fill(t, s, objects)
	var n atomic.Int32
	c := batch.Config{Paths: []string{"s3://data/in/"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Resume: true}
	first, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	require.Zero(t, first.Totals.Failed, first.Traces)
	d.take("", "")
	n.Store(0)
	again, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	gets, _ := d.take("GET", "/data/in/")
	assert.Zero(t, gets)
	assert.Zero(t, n.Load())
	var x, y bytes.Buffer
	require.NoError(t, first.WriteJSON(&x))
	require.NoError(t, again.WriteJSON(&y))
	assert.Equal(t, x.String(), y.String())

	// An output that is gone is made again, and the rest of its archive is not asked for.
	require.NoError(t, s.Delete(t.Context(), "out/z.zip/two.json"))
	require.NoError(t, s.Delete(t.Context(), "out/t.tar/one.json"))
	_, err = batch.Run(t.Context(), c)
	require.NoError(t, err)
	assert.EqualValues(t, 2, n.Load())
	_, err = s.Stat(t.Context(), "out/t.tar/one.json")
	require.NoError(t, err)
	n.Store(0)
	d.take("", "")
	require.NoError(t, s.Put(t.Context(), "in/a.json", strings.NewReader(trace+" ")))
	_, err = batch.Run(t.Context(), c)
	require.NoError(t, err)
	gets, _ = d.take("GET", "/data/in/")
	assert.Equal(t, 1, gets, "what has changed is asked for once")
	assert.EqualValues(t, 1, n.Load())
}

// TestRestOfATar: of a tar that was done in part the members that are done are not asked for again.
func TestRestOfATar(t *testing.T) {
	const members, size = 10, 3 << 19
	d := &desk{}
	open := fakeS3(t, d.around)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range members {
		content := noisy(size)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.json", i), Mode: 0o644, Size: int64(len(content))}))
		w.Write([]byte(content))
	}
	require.NoError(t, w.Close())
	fill(t, s, map[string]string{"in/all.tar": b.String()})
	var n atomic.Int32
	c := batch.Config{Paths: []string{"s3://data/in/"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Resume: true}
	first, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, members, first.Totals.OK, first.Skipped)
	gets, _ := d.take("GET", "/data/in/")
	assert.Equal(t, 1, gets, "one reading, from its start to its end")
	for _, gone := range []string{"3", "5"} {
		require.NoError(t, s.Delete(t.Context(), "out/all.tar/"+gone+".json"))
	}
	n.Store(0)
	d.take("", "")
	again, err := batch.Run(t.Context(), c)
	require.NoError(t, err)
	assert.EqualValues(t, 2, n.Load())
	gets, sent := d.take("GET", "/data/in/")
	assert.LessOrEqual(t, gets, 1+members-2+2, "one behind each member that is done, and for the others")
	assert.Less(t, sent, int64(b.Len())*2/3, "bytes, some of which are on their way when a request ends")
	assert.Equal(t, first.Totals, again.Totals)
	want, err := s.Open(t.Context(), batch.Object{Key: "out/all.tar/5.json"}, 0, -1)
	require.NoError(t, err)
	defer want.Close()
	got, err := io.ReadAll(want)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(b.Bytes(), got) && len(got) > size)
}

// TestBrokenStoreDamagesNothing: where a store breaks off for good, nothing is saved of what came of a
// member, and the run is to be done again.
func TestBrokenStoreDamagesNothing(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var c bytes.Buffer
	w := tar.NewWriter(&c)
	content := []byte(noisy(1 << 20))
	for i := range 3 {
		f, err := z.Create(fmt.Sprintf("%d.json", i))
		require.NoError(t, err)
		f.Write(content)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.json", i), Mode: 0o644, Size: int64(len(content))}))
		w.Write(content)
	}
	require.NoError(t, z.Close())
	require.NoError(t, w.Close())
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	g.Write(c.Bytes())
	require.NoError(t, g.Close())
	for name, object := range map[string]string{"z.zip": b.String(), "t.tar": c.String(), "t.tar.gz": packed.String(), "one.json": string(content)} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			var sent atomic.Int64
			open := fakeS3(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/in/") && broken.Load() {
						if sent.Load() > 300_000 {
							w.Header().Set("Content-Type", "application/xml")
							w.WriteHeader(http.StatusForbidden)
							io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>expired</Message></Error>")
							return
						}
						w = &cuttingAll{w, &sent}
					}
					next.ServeHTTP(w, r)
				})
			})
			s, _, err := open(t.Context(), "s3://data/")
			require.NoError(t, err)
			fill(t, s, map[string]string{"in/" + name: object})
			var n atomic.Int32
			c := batch.Config{Paths: []string{"s3://data/in/"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Resume: true, Jobs: 1}
			broken.Store(true)
			r, err := batch.Run(t.Context(), c)
			require.NoError(t, err)
			require.NotEmpty(t, r.Traces)
			assert.Zero(t, r.Totals.Damaged)
			assert.NotZero(t, r.Totals.Failed)
			assert.Equal(t, r.Totals.Failed, r.Totals.Unreached, r.Traces[0].Error)
			assert.Contains(t, r.Traces[0].Error, "refuses access")
			broken.Store(false)
			r, err = batch.Run(t.Context(), c)
			require.NoError(t, err)
			assert.Zero(t, r.Totals.Failed)
			assert.Equal(t, len(keys(t, s, "out/"))-len([]string{".json", ".md", ".xml", ".html", ".ndjson"}), r.Totals.OK)
		})
	}
}

// cuttingAll breaks connections once so much was sent by all of them.
type cuttingAll struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *cuttingAll) Write(p []byte) (int, error) {
	if c.sent.Add(int64(len(p))) > 300_000 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

// TestReportsAtURLs: reports are merged and compared where they lie, and written there.
func TestReportsAtURLs(t *testing.T) {
	open := fakeS3(t, nil)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	fill(t, s, map[string]string{"in/a.json": trace, "in/b.json": trace, "in/c.json": trace})
	var n atomic.Int32
	for _, day := range []string{"monday", "tuesday"} {
		out := "s3://data/" + day
		for i := range 2 {
			_, err := batch.Run(t.Context(), batch.Config{Paths: []string{"s3://data/in/"}, Out: out, Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Shard: batch.Shard{Index: i + 1, Count: 2}})
			require.NoError(t, err)
		}
		fill(t, s, map[string]string{"in/b.json": `[{"ph":"FAIL"}]`})
		m, err := batch.NewMerger()
		require.NoError(t, err)
		defer m.Close()
		c := batch.Config{Out: out, OpenURL: open}
		require.NoError(t, m.AddFrom(t.Context(), c, out))
		r, err := m.Report(nil)
		require.NoError(t, err)
		require.NoError(t, r.WriteAll(t.Context(), c))
		assert.ErrorIs(t, r.WriteAll(t.Context(), c), output.ErrExists)
	}
	for _, after := range []string{"s3://data/tuesday", "s3://data/tuesday/batch-report.json"} {
		x, err := batch.Compare(t.Context(), batch.Config{OpenURL: open}, "s3://data/monday", after)
		require.NoError(t, err)
		assert.Equal(t, 1, x.NewFailures)
		require.NoError(t, batch.WriteURL(t.Context(), open, "s3://data/moved.json", true, x.JSON))
		assert.ErrorIs(t, batch.WriteURL(t.Context(), open, "s3://data/moved.json", false, x.JSON), output.ErrExists)
	}
	assert.Contains(t, keys(t, s, ""), "moved.json")
	_, err = batch.Compare(t.Context(), batch.Config{OpenURL: open}, "s3://data/sunday", "s3://data/monday")
	assert.ErrorContains(t, err, "s3://data/sunday: holds no batch-report")
}

// TestJournalIsCompacted: of many resumed runs few objects stay, and what they say.
func TestJournalIsCompacted(t *testing.T) {
	open := fakeS3(t, nil)
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	fill(t, s, map[string]string{"in/a.json": trace, "in/b.json": trace, "in/fail.json": `[{"ph":"FAIL"}]`})
	var n atomic.Int32
	c := batch.Config{Paths: []string{"s3://data/in/"}, Out: "s3://data/out", Do: batch.DoRepair, Work: copies(&n), OpenURL: open, Resume: true}
	segments := func() (count int) {
		for _, err := range s.List(context.Background(), "out/.tracefix/journal") {
			require.NoError(t, err)
			count++
		}
		return count
	}
	most := 0
	for range 30 {
		_, err := batch.Run(t.Context(), c)
		require.NoError(t, err)
		most = max(most, segments())
	}
	assert.Less(t, most, 24)
	assert.EqualValues(t, 2+30, n.Load(), "what is done stays done, what failed is tried again")
}
