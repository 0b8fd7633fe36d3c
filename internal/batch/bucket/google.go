//go:build !gcs

package bucket

import (
	"context"

	"github.com/tracefix/tracefix/internal/batch"
)

// openGoogle opens a bucket of Google Cloud Storage by its S3 interface, which takes
// HMAC keys (https://cloud.google.com/storage/docs/authentication/hmackeys) where S3
// takes its own.
func openGoogle(_ context.Context, l *location) (batch.Store, error) {
	return newS3(l, "https://storage.googleapis.com")
}
