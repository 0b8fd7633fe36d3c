package bucket

import (
	"context"
	"fmt"
	"io"
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
	end    int64 // of what the store promised
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
	body, info, _, err := t.s.get(t.ctx, t.s.bucket, t.key, o)
	if err != nil {
		return err
	}
	t.body, t.etag, t.end = body, info.ETag, t.at+info.Size
	return nil
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
		if t.at >= t.end {
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
