//go:build !azure

package bucket

import (
	"context"
	"fmt"

	"github.com/tracefix/tracefix/internal/batch"
)

// openAzure refuses: Azure has no S3 interface.
func openAzure(_ context.Context, l *location) (batch.Store, error) {
	return nil, fmt.Errorf("%s: this build leaves out Azure's client; build it with `go build -tags azure ./cmd/tracefix`, or mount the container (blobfuse2) and give the folder", l.raw)
}
