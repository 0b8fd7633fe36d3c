//go:build gcs

package bucket

import (
	"context"

	_ "gocloud.dev/blob/gcsblob" // gs://

	"github.com/tracefix/tracefix/internal/batch"
)

// openGoogle opens a bucket with Google's own client, which knows its identities.
func openGoogle(ctx context.Context, l *location) (batch.Store, error) { return openNative(ctx, l) }
