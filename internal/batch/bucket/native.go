//go:build azure || gcs

package bucket

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tracefix/tracefix/internal/batch"
)

// openNative opens a bucket with the client that its scheme has in the Go CDK.
func openNative(ctx context.Context, l *location) (batch.Store, error) {
	scheme, _, _ := strings.Cut(l.raw, "://")
	u := url.URL{Scheme: scheme, Host: l.bucket, RawQuery: l.options.Encode()}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, err
	}
	return native{b}, nil
}

type native struct{ b *blob.Bucket }

func (s native) List(ctx context.Context, prefix string) iter.Seq2[batch.Object, error] {
	return func(yield func(batch.Object, error) bool) {
		it := s.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := it.Next(ctx)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(batch.Object{}, err)
				return
			}
			if !o.IsDir && !yield(batch.Object{Key: o.Key, Size: o.Size, Version: version(o.MD5, o.ModTime)}, nil) {
				return
			}
		}
	}
}

// Open takes the object as it is now: these clients ask for no version. A piece of it that
// is of another version shows in the hash of its content.
func (s native) Open(ctx context.Context, o batch.Object, at, length int64) (io.ReadCloser, error) {
	r, err := s.b.NewRangeReader(ctx, o.Key, at, length, nil)
	if err != nil {
		return nil, missing(err)
	}
	return r, nil
}

// version is the hash of an object, or the time at which it was written.
func version(md5 []byte, written time.Time) string {
	if len(md5) == 0 {
		return written.UTC().Format(time.RFC3339Nano)
	}
	return hex.EncodeToString(md5)
}

func (s native) Stat(ctx context.Context, key string) (batch.Object, error) {
	a, err := s.b.Attributes(ctx, key)
	if err != nil {
		return batch.Object{}, missing(err)
	}
	return batch.Object{Key: key, Size: a.Size, Version: version(a.MD5, a.ModTime)}, nil
}

func (s native) Put(ctx context.Context, key string, r io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := s.b.NewWriter(ctx, key, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		stop() // nothing is to appear
		w.Close()
		return err
	}
	return w.Close()
}

func (s native) Delete(ctx context.Context, key string) error {
	if err := s.b.Delete(ctx, key); gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}

func (s native) Close() error { return s.b.Close() }

func missing(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
