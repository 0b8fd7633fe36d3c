//go:build azure || gcs

package bucket

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/tracefix/tracefix/internal/batch"
)

// TestNative holds the adapter of the native clients to what the S3 one promises.
func TestNative(t *testing.T) {
	dir := t.TempDir()
	mem := memblob.OpenBucket(nil)
	t.Cleanup(func() { mem.Close() })
	kinds := map[string]func() (*blob.Bucket, error){
		"memory": func() (*blob.Bucket, error) { return mem, nil },
		"files": func() (*blob.Bucket, error) {
			return fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
		},
	}
	for kind, bucket := range kinds {
		open := func(_ context.Context, url string) (batch.Store, string, error) {
			b, err := bucket()
			require.NoError(t, err)
			_, rest, _ := strings.Cut(url, "://")
			_, key, _ := strings.Cut(rest, "/")
			return unclosed{&native{b: b, bucket: "data", maker: maker{status: func(error) int { return 0 }}}}, key, nil
		}
		t.Run(kind+"/batch", func(t *testing.T) { batchFromAndTo(t, open) })
		t.Run(kind+"/put", func(t *testing.T) { failedPut(t, open) })
	}
}

// unclosed keeps a bucket for the next user.
type unclosed struct{ batch.Store }

func (unclosed) Close() error { return nil }

// nativeErrors holds what is said of a store of Google or Azure to what is said of S3. url leads to
// the store at an address.
func nativeErrors(t *testing.T, store string, url func(address string) string) {
	status := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-ms-error-code", map[int]string{404: "ContainerNotFound", 403: "AuthorizationFailure"}[status])
		w.WriteHeader(status)
	}))
	defer srv.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	for _, c := range []struct {
		name, at, want string
		status         int
	}{
		{name: "no bucket", at: srv.URL, status: 404, want: "there is no bucket data at " + store + "; check the name"},
		{name: "no permission", at: srv.URL, status: 403, want: "refuses access to bucket data with "},
		{name: "trouble", at: srv.URL, status: 503, want: "is in trouble (status 503)"},
		{name: "nobody there", at: dead.URL, want: "cannot be reached; check the network"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status = c.status
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			s, _, err := Open(ctx, url(c.at))
			require.NoError(t, err)
			defer s.Close()
			for _, err := range s.List(ctx, "") {
				assert.ErrorContains(t, err, c.want)
			}
			assert.ErrorContains(t, s.Put(ctx, "key", strings.NewReader("x")), c.want)
			_, err = s.Open(ctx, batch.Object{Key: "key"}, 0, -1)
			if c.status == 404 {
				assert.ErrorIs(t, err, fs.ErrNotExist)
				return
			}
			assert.ErrorContains(t, err, c.want)
			assert.NotErrorIs(t, err, fs.ErrNotExist, "what is refused is not missing")
		})
	}
}
