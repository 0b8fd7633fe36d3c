//go:build azure

package bucket

import (
	"context"

	_ "gocloud.dev/blob/azureblob" // azblob://

	"github.com/tracefix/tracefix/internal/batch"
)

// openAzure opens a container with Azure's own client.
func openAzure(ctx context.Context, l *location) (batch.Store, error) { return openNative(ctx, l) }
