package bucket

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
)

func TestBrokenTransferGoesOn(t *testing.T) {
	want := make([]byte, 3<<20)
	for i := range want {
		want[i] = byte(rand.Uint32())
	}
	var gets, cut atomic.Int32
	open := fakeS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/big") {
				if gets.Add(1); gets.Load() <= cut.Load() {
					w = &cutting{ResponseWriter: w, left: 500_000}
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "big", bytes.NewReader(want)))
	for _, c := range []struct {
		name   string
		cut    int32
		length int64
	}{
		{"whole", 0, -1},
		{"broken three times", 3, -1},
		{"a part", 0, 1000},
		{"a part, broken once", 1, 700_000},
		{"more than there is", 1, 10 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			gets.Store(0)
			cut.Store(c.cut)
			r, err := s.Open(t.Context(), batch.Object{Key: "big"}, 0, c.length)
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			expect := want
			if c.length >= 0 && c.length < int64(len(want)) {
				expect = want[:c.length]
			}
			assert.True(t, bytes.Equal(expect, got), "%d of %d bytes", len(got), len(expect))
			assert.EqualValues(t, c.cut+1, gets.Load(), "a break costs one request more, not the whole object")
		})
	}
	gets.Store(0)
	cut.Store(1)
	r, err := s.Open(t.Context(), batch.Object{Key: "big"}, 0, -1)
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, r, 1000)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "big", strings.NewReader("another")))
	_, err = io.ReadAll(r)
	assert.Error(t, err, "what was replaced meanwhile is not glued to what came before")
}

// A body in chunks has no length: that it broke is told by the break itself.
func TestBrokenTransferWithoutLengthGoesOn(t *testing.T) {
	want := noisy(3 << 20)
	var gets atomic.Int32
	open := fakeS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/big") {
				w = &chunking{w}
				if gets.Add(1) == 1 {
					w = &cutting{ResponseWriter: w, left: 500_000}
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "big", strings.NewReader(want)))
	for _, o := range []batch.Object{{Key: "big"}, {Key: "big", Size: int64(len(want))}} {
		for _, part := range [][2]int64{{0, -1}, {1000, -1}, {1000, 2 << 20}, {1000, 10 << 20}} {
			gets.Store(0)
			r, err := s.Open(t.Context(), o, part[0], part[1])
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			expect := want[part[0]:]
			if part[1] >= 0 {
				expect = expect[:min(part[1], int64(len(expect)))]
			}
			assert.True(t, expect == string(got), "%v: %d of %d bytes", part, len(got), len(expect))
			assert.EqualValues(t, 2, gets.Load())
		}
	}
}

// chunking is an answer whose length is not told.
type chunking struct{ http.ResponseWriter }

func (c *chunking) WriteHeader(status int) {
	c.Header().Del("Content-Length")
	c.ResponseWriter.WriteHeader(status)
}

func (c *chunking) Write(p []byte) (int, error) {
	c.Header().Del("Content-Length")
	return c.ResponseWriter.Write(p)
}

// What a store sends that knows no ranges is not glued to what came before a break.
func TestStoreWithoutRanges(t *testing.T) {
	want := noisy(3 << 20)
	var gets atomic.Int32
	open := fakeS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/big") {
				r.Header.Del("Range")
				if gets.Add(1) == 1 {
					w = &cutting{ResponseWriter: w, left: 500_000}
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	s, _, err := open(t.Context(), "s3://data/")
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "big", strings.NewReader(want)))
	r, err := s.Open(t.Context(), batch.Object{Key: "big"}, 0, -1)
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.ErrorContains(t, err, "bytes from "+strconv.Itoa(len(got))+" on were asked for")
	assert.True(t, strings.HasPrefix(want, string(got)))
	_, err = s.Open(t.Context(), batch.Object{Key: "big"}, 1000, 10)
	require.ErrorContains(t, err, "sends those from 0 on")
}

// cutting is a connection that breaks after some bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

func TestErrorsSayWhatToDo(t *testing.T) {
	code, status := "", 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		io.WriteString(w, `<?xml version="1.0"?><Error><Code>`+code+`</Code><Message>words of the store</Message></Error>`)
	}))
	noCredentials(t)
	dead := httptest.NewServer(nil)
	dead.Close()
	keys := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(keys, []byte("[ci]\naws_access_key_id = a\naws_secret_access_key = b\n"), 0o600))
	for _, c := range []struct {
		name, endpoint, code, options, want string
		status                              int
		env                                 map[string]string
	}{
		{name: "no bucket", endpoint: srv.URL, code: "NoSuchBucket", status: 404, want: "there is no bucket data at " + srv.URL + "; check the name"},
		{name: "no credentials", endpoint: srv.URL, code: "AccessDenied", status: 403, want: "with no credentials; set AWS_ACCESS_KEY_ID"},
		{name: "keys of the environment", endpoint: srv.URL, code: "SignatureDoesNotMatch", status: 403, want: "with the keys in the environment: ", env: map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}},
		{name: "keys that have expired", endpoint: srv.URL, code: "ExpiredToken", status: 400, want: "bucket data: the keys in the environment have expired; get new ones", env: map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"}},
		{name: "shared file", endpoint: srv.URL, code: "AccessDenied", status: 403, options: "&profile=ci", want: "with the shared credentials file: ", env: map[string]string{"AWS_SHARED_CREDENTIALS_FILE": keys}},
		{name: "a profile that is not there", endpoint: srv.URL, code: "AccessDenied", status: 403, options: "&profile=cd", want: "with no credentials (the shared credentials file: ", env: map[string]string{"AWS_SHARED_CREDENTIALS_FILE": keys}},
		{name: "web identity without its file", endpoint: srv.URL, code: "AccessDenied", status: 403, want: "the identity of the machine or pod: ", env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": keys + ".none", "AWS_EC2_METADATA_DISABLED": "false", "AWS_CONTAINER_CREDENTIALS_FULL_URI": ""}},
		{name: "anonymous", endpoint: srv.URL, code: "AccessDenied", status: 403, options: "&anonymous=true", want: "with anonymous=true: "},
		{name: "nobody there", endpoint: dead.URL, want: "the store at " + dead.URL + " cannot be reached; check the network and the endpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, status = c.code, c.status
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			s, _, err := Open(t.Context(), "s3://data/key?region=us-east-1&endpoint="+c.endpoint+c.options)
			require.NoError(t, err)
			for _, err := range s.List(t.Context(), "") {
				assert.ErrorContains(t, err, c.want)
			}
			_, err = s.Open(t.Context(), batch.Object{Key: "key"}, 0, -1)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, s.Put(t.Context(), "key", strings.NewReader("x")), c.want)
		})
	}
}

// TestListingOfManyPages goes through more objects than a page holds.
func TestListingOfManyPages(t *testing.T) {
	s, _, err := fakeS3(t, nil)(t.Context(), "s3://data/")
	require.NoError(t, err)
	objects := map[string]string{}
	for i := range 1203 {
		objects["in/"+strconv.Itoa(10000+i)] = "x"
	}
	fill(t, s, objects)
	got := keys(t, s, "in/")
	assert.Len(t, got, len(objects))
	assert.IsIncreasing(t, got)
}
