package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tracefix/tracefix/internal/batch"
)

// defaultEndpoint is Amazon's. The client finds the region of a bucket by itself.
const defaultEndpoint = "https://s3.amazonaws.com"

// partSize is that of multipart uploads. It is also what an upload holds in memory; at
// most 10,000 parts make an object, so that one may have 156 GiB.
const partSize = 16 << 20

// tries is how often a request is made that a store or the network fails, with growing
// pauses: the client's own default of ten keeps a mistyped endpoint waiting for long.
const tries = 5

// openS3 opens a bucket by the S3 protocol. Options: region; endpoint, for stores that are not
// Amazon's; use_path_style=true|false, else as the store is known to want it;
// profile, of the shared credentials file; anonymous=true, for public buckets.
func openS3(_ context.Context, l *location) (batch.Store, error) {
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), defaultEndpoint)
	return newS3(l, endpoint)
}

func newS3(l *location, endpoint string) (batch.Store, error) {
	o := minio.Options{Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")), MaxRetries: tries}
	keys := &chain{profile: os.Getenv("AWS_PROFILE")}
	for name := range l.options {
		value := l.options.Get(name)
		var yes bool
		var err error
		switch name {
		case "region":
			o.Region = value
		case "endpoint":
			endpoint = value
		case "profile":
			keys.profile = value
		case "use_path_style", "s3ForcePathStyle":
			yes, err = strconv.ParseBool(value)
			o.BucketLookup = minio.BucketLookupDNS
			if yes {
				o.BucketLookup = minio.BucketLookupPath
			}
		case "anonymous":
			keys.anonymous, err = strconv.ParseBool(value)
		default:
			err = errors.New("is none of region, endpoint, use_path_style, profile, anonymous")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: option %s: %w", l.raw, name, err)
		}
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: endpoint: %w", l.raw, err)
	}
	o.Secure = u.Scheme != "http"
	o.Creds = credentials.New(keys)
	c, err := minio.NewCore(u.Host, &o)
	if err != nil {
		return nil, fmt.Errorf("%s: endpoint %s: %w", l.raw, endpoint, err)
	}
	return &s3{
		list: c.ListObjectsIter, get: c.GetObject, stat: c.StatObject, put: c.Client.PutObject, remove: c.RemoveObject,
		bucket: l.bucket, endpoint: endpoint, keys: keys,
	}, nil
}

// An s3 is a bucket behind the S3 protocol. It holds the five calls that it makes and not the
// client: what an interface can reach keeps all its exported methods in the program, and
// those of the client are 3 MB.
type s3 struct {
	list   func(ctx context.Context, bucket string, o minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
	get    func(ctx context.Context, bucket, key string, o minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	stat   func(ctx context.Context, bucket, key string, o minio.StatObjectOptions) (minio.ObjectInfo, error)
	put    func(ctx context.Context, bucket, key string, r io.Reader, size int64, o minio.PutObjectOptions) (minio.UploadInfo, error)
	remove func(ctx context.Context, bucket, key string, o minio.RemoveObjectOptions) error

	bucket   string
	endpoint string
	keys     *chain
}

func (s *s3) List(ctx context.Context, prefix string) iter.Seq2[batch.Object, error] {
	return func(yield func(batch.Object, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for o := range s.list(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if o.Err != nil {
				yield(batch.Object{}, s.explain(o.Err))
				return
			}
			if !yield(object(&o), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // the listing just ends then
			yield(batch.Object{}, err)
		}
	}
}

func object(o *minio.ObjectInfo) batch.Object {
	return batch.Object{Key: o.Key, Size: o.Size, Version: o.ETag}
}

// Open reads an object. A transfer that breaks goes on where it was, as long as the
// object is still the same.
func (s *s3) Open(ctx context.Context, o batch.Object, at, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return http.NoBody, nil
	}
	r := &transfer{ctx: ctx, s: s, key: o.Key, at: at, last: -1, etag: o.Version, whole: o.Size}
	if length > 0 {
		r.last = at + length - 1
	}
	if err := r.connect(); err != nil {
		if minio.ToErrorResponse(err).Code == minio.InvalidRange { // the object ends before it
			return http.NoBody, nil
		}
		return nil, s.explain(err)
	}
	return r, nil
}

func (s *s3) Stat(ctx context.Context, key string) (batch.Object, error) {
	o, err := s.stat(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return batch.Object{}, s.explain(err)
	}
	return object(&o), nil
}

func (s *s3) Put(ctx context.Context, key string, r io.Reader) error {
	n := size(r)
	_, err := s.put(ctx, s.bucket, key, r, n, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize,
		DisableContentSha256: n == 0, // else the client sends nothing in chunks, which stores refuse
	})
	return s.explain(err)
}

func (s *s3) Delete(ctx context.Context, key string) error {
	return s.explain(s.remove(ctx, s.bucket, key, minio.RemoveObjectOptions{}))
}

// size is how much r will give; -1 if it does not tell.
func size(r io.Reader) int64 {
	switch r := r.(type) {
	case *os.File:
		at, err := r.Seek(0, io.SeekCurrent)
		info, serr := r.Stat()
		if err == nil && serr == nil && info.Mode().IsRegular() {
			return info.Size() - at
		}
	case interface{ Len() int }:
		return int64(r.Len())
	}
	return -1
}

func (s *s3) Close() error { return nil }

// explain says of an error of the store whether the name, a permission or the network is
// to blame, and what to do.
func (s *s3) explain(err error) error {
	if err == nil {
		return nil
	}
	var op *url.Error
	switch r := minio.ToErrorResponse(err); {
	case r.Code == minio.PreconditionFailed:
		return fmt.Errorf("%w: %w", batch.ErrReplaced, err)
	case r.Code == minio.NoSuchKey:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case r.Code == minio.NoSuchBucket:
		return noBucket(s.bucket, s.endpoint, ", or give the store's address as ?endpoint=URL", err)
	case r.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case r.Code == "ExpiredToken", r.Code == "ExpiredTokenException", r.Code == "TokenRefreshRequired": // status 400, some
		return expired(s.bucket, s.endpoint, s.keys.found(), err)
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden:
		return refused(s.bucket, s.endpoint, s.keys.found(), err)
	case r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusTooManyRequests:
		return inTrouble(s.endpoint, r.StatusCode, err)
	case errors.As(err, &op):
		return unreachable(s.endpoint, op.Err)
	}
	return err
}
