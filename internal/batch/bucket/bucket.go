// Package bucket opens the buckets of object stores for batches: S3 and what speaks
// its protocol, Google Cloud Storage and Azure Blob Storage. It is the one place that
// knows their client libraries, which are larger than the rest of the program.
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

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob:// ; drivers register themselves, there is no other way to their openers
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/tracefix/tracefix/internal/batch"
)

// Schemes are the schemes of URLs that Open knows.
var Schemes = []string{"s3", "gs", "azblob"}

// Open opens the bucket of a URL such as s3://bucket/key?region=eu-west-1 and returns
// the key in it. The part behind the question mark is for the driver: for s3 among
// others region, endpoint and use_path_style, for stores that are not Amazon's.
// Credentials come from where each store's own tools take them.
func Open(ctx context.Context, raw string) (batch.Store, string, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	known := false
	for _, s := range Schemes {
		known = known || s == scheme
	}
	if !known {
		return nil, "", fmt.Errorf("%s: URLs begin with %s:// or file://", raw, strings.Join(Schemes, "://, "))
	}
	if scheme == "gs" && !hasGCS {
		return nil, "", fmt.Errorf("%s: this build leaves out Google's client, which would make it twice as large; build it with `go build -tags gcs ./cmd/tracefix`, or use the bucket's S3 interface: s3://BUCKET/KEY?endpoint=https://storage.googleapis.com", raw)
	}
	rest, query := splitQuery(rest)
	name, key, _ := strings.Cut(rest, "/")
	if name == "" {
		return nil, "", fmt.Errorf("%s: the URL names no bucket", raw)
	}
	u := url.URL{Scheme: scheme, Host: name, RawQuery: query}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, "", err
	}
	return New(b), key, nil
}

// splitQuery splits driver options off. A question mark in a pattern is none.
func splitQuery(s string) (rest, query string) {
	i := strings.LastIndexByte(s, '?')
	if i < 0 || !strings.Contains(s[i:], "=") {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// New makes a Store of a bucket, and closes it with the Store.
func New(b *blob.Bucket) batch.Store { return store{b} }

type store struct{ b *blob.Bucket }

func (s store) List(ctx context.Context, prefix string) iter.Seq2[batch.Object, error] {
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
			if !o.IsDir && !yield(batch.Object{Key: o.Key, Size: o.Size, Version: hex.EncodeToString(o.MD5)}, nil) {
				return
			}
		}
	}
}

func (s store) Open(ctx context.Context, key string, length int64) (io.ReadCloser, error) {
	r, err := s.b.NewRangeReader(ctx, key, 0, length, nil)
	if err != nil {
		return nil, missing(err)
	}
	return r, nil
}

func (s store) Stat(ctx context.Context, key string) (batch.Object, error) {
	a, err := s.b.Attributes(ctx, key)
	if err != nil {
		return batch.Object{}, missing(err)
	}
	return batch.Object{Key: key, Size: a.Size, Version: hex.EncodeToString(a.MD5)}, nil
}

func (s store) Put(ctx context.Context, key string, r io.Reader) error {
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

func (s store) Close() error { return s.b.Close() }

func missing(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
