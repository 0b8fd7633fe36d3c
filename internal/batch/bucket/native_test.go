//go:build azure || gcs

package bucket

import (
	"context"
	"strings"
	"testing"

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
			return unclosed{native{b}}, key, nil
		}
		t.Run(kind+"/batch", func(t *testing.T) { batchFromAndTo(t, open) })
		t.Run(kind+"/put", func(t *testing.T) { failedPut(t, open) })
	}
}

// unclosed keeps a bucket for the next user.
type unclosed struct{ batch.Store }

func (unclosed) Close() error { return nil }
