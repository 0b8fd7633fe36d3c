package bucket

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// A transfer reads an object, and asks for the rest of it where the connection breaks.
type transfer struct {
	ctx    context.Context
	s      *s3
	key    string
	at     int64 // the next byte
	last   int64 // the last one wanted; the object's if negative
	etag   string
	whole  int64 // the object's size, as far as it is known; else 0
	end    int64 // of what the store promised; negative if it did not tell
	body   io.ReadCloser
	broken int // times in a row that nothing came
}

// connect asks for the bytes from t.at on.
func (t *transfer) connect() error {
	var o minio.GetObjectOptions
	if t.at > 0 || t.last >= 0 {
		if err := o.SetRange(t.at, max(t.last, 0)); err != nil { // 0: to the end
			return err
		}
	}
	if t.etag != "" {
		if err := o.SetMatchETag(t.etag); err != nil {
			return err
		}
	}
	body, info, head, err := t.s.get(t.ctx, t.s.bucket, t.key, o)
	if err != nil {
		return err
	}
	first, size := contentRange(head.Get("Content-Range"))
	if first != t.at {
		body.Close()
		return fmt.Errorf("bytes from %d on were asked for, and the store, or a proxy before it, sends those from %d on", t.at, first)
	}
	t.whole = cmp.Or(size, t.whole)
	t.end = t.at + info.Size
	switch {
	case info.Size >= 0:
	case t.whole == 0:
		t.end = -1
	case t.last >= 0:
		t.end = min(t.last+1, t.whole)
	default:
		t.end = t.whole
	}
	t.body, t.etag = body, info.ETag
	return nil
}

// contentRange reads the header of a part: which byte is its first, and how many the object
// has, 0 if that is not told. What has no such header begins with the first byte.
func contentRange(s string) (first, size int64) {
	s, all, _ := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	from, _, _ := strings.Cut(s, "-")
	first, _ = strconv.ParseInt(strings.TrimSpace(from), 10, 64)
	size, _ = strconv.ParseInt(strings.TrimSpace(all), 10, 64)
	return first, size
}

func (t *transfer) Read(p []byte) (int, error) {
	for {
		n, err := t.body.Read(p)
		t.at += int64(n)
		if n > 0 {
			t.broken = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if t.end >= 0 && t.at >= t.end || t.end < 0 && err == io.EOF {
			return 0, io.EOF
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err := t.again(err); err != nil {
			return 0, err
		}
	}
}

// again connects anew after a failure, unless that happened too often.
func (t *transfer) again(failure error) error {
	t.body.Close()
	for {
		t.broken++
		if t.broken > tries || t.ctx.Err() != nil {
			return fmt.Errorf("offset %d: %w", t.at, t.s.explain(failure))
		}
		select {
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-time.After(time.Duration(t.broken) * 100 * time.Millisecond):
		}
		err := t.connect()
		if err == nil {
			return nil
		}
		if minio.ToErrorResponse(err).Code == minio.PreconditionFailed {
			return fmt.Errorf("offset %d: %w", t.at, t.s.explain(err))
		}
		failure = err
	}
}

func (t *transfer) Close() error { return t.body.Close() }
