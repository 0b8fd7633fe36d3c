//go:build azure || gcs

package bucket

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tracefix/tracefix/internal/batch"
)

// A maker is whose store it is, for messages.
type maker struct {
	name   string          // of the store
	keys   string          // where its credentials come from
	status func(error) int // of the answer that an error is of; 0: none came
}

// openNative opens a bucket with the client that its scheme has in the Go CDK.
func openNative(ctx context.Context, l *location, m maker) (*native, error) {
	scheme, _, _ := strings.Cut(l.raw, "://")
	u := url.URL{Scheme: scheme, Host: l.bucket, RawQuery: l.options.Encode()}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil { // nobody was asked yet
		return nil, fmt.Errorf("%s cannot be opened at %s with %s: %w", l.raw, m.name, m.keys, err)
	}
	return &native{maker: m, b: b, bucket: l.bucket}, nil
}

type native struct {
	maker
	b      *blob.Bucket
	bucket string
}

func (s *native) List(ctx context.Context, prefix string) iter.Seq2[batch.Object, error] {
	return func(yield func(batch.Object, error) bool) {
		it := s.b.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := it.Next(ctx)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(batch.Object{}, s.explain(err, true))
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
func (s *native) Open(ctx context.Context, o batch.Object, at, length int64) (io.ReadCloser, error) {
	r, err := s.b.NewRangeReader(ctx, o.Key, at, length, nil)
	if err != nil {
		return nil, s.explain(err, false)
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

func (s *native) Stat(ctx context.Context, key string) (batch.Object, error) {
	a, err := s.b.Attributes(ctx, key)
	if err != nil {
		return batch.Object{}, s.explain(err, false)
	}
	return batch.Object{Key: key, Size: a.Size, Version: version(a.MD5, a.ModTime)}, nil
}

// Put does not use the CDK's writer: that of Azure panics where the store refuses.
func (s *native) Put(ctx context.Context, key string, r io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	from := &aborting{r: r, stop: stop}
	err := s.b.Upload(ctx, key, from, &blob.WriterOptions{ContentType: "application/octet-stream"})
	return cmp.Or(from.err, s.explain(err, true))
}

// An aborting reader stops an upload when it cannot be read on: nothing is to appear then.
type aborting struct {
	r    io.Reader
	stop func()
	err  error
}

func (a *aborting) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
		a.stop()
	}
	return n, err
}

func (s *native) Delete(ctx context.Context, key string) error {
	err := s.explain(s.b.Delete(ctx, key), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *native) Close() error { return s.b.Close() }

// explain says of an error whether the name, a permission or the network is to blame. ofBucket says
// that what is not there can only be the bucket. The CDK's own codes do not do: what Google
// refuses is not found for them.
func (s *native) explain(err error, ofBucket bool) error {
	if err == nil {
		return nil
	}
	var network *url.Error
	switch status := s.status(err); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return refused(s.bucket, s.name, s.keys, err)
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return inTrouble(s.name, status, err)
	case status == 0 && errors.As(err, &network):
		return unreachable(s.name, network.Err)
	case gcerrors.Code(err) != gcerrors.NotFound:
		return err
	case ofBucket:
		return noBucket(s.bucket, s.name, "", err)
	}
	return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
}
