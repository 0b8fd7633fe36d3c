//go:build gcs

package bucket

import (
	"context"
	"errors"

	"cloud.google.com/go/storage"
	_ "gocloud.dev/blob/gcsblob" // gs://
	"google.golang.org/api/googleapi"

	"github.com/tracefix/tracefix/internal/batch"
)

// openGoogle opens a bucket with Google's own client, which knows its identities.
func openGoogle(ctx context.Context, l *location) (batch.Store, error) {
	s, err := openNative(ctx, l, maker{
		name: "Google Cloud Storage",
		keys: "the credentials of GOOGLE_APPLICATION_CREDENTIALS, of gcloud auth application-default login, or of the machine",
		status: func(err error) int {
			var answer *googleapi.Error
			if errors.As(err, &answer) {
				return answer.Code
			}
			return 0
		},
	})
	if err != nil {
		return nil, err
	}
	var c *storage.Client
	if s.b.As(&c) { // it would go on asking for ever
		c.SetRetry(storage.WithMaxAttempts(tries))
	}
	return s, nil
}
