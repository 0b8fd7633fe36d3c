//go:build azure

package bucket

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	_ "gocloud.dev/blob/azureblob" // azblob://

	"github.com/tracefix/tracefix/internal/batch"
)

// openAzure opens a container with Azure's own client.
func openAzure(ctx context.Context, l *location) (batch.Store, error) {
	return openNative(ctx, l, maker{
		name: "Azure",
		keys: "what AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or the identity of the machine give",
		status: func(err error) int {
			var answer *azcore.ResponseError
			if errors.As(err, &answer) {
				return answer.StatusCode
			}
			return 0
		},
	})
}
