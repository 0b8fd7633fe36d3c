//go:build nocloud

package main

import (
	"context"
	"fmt"

	"github.com/tracefix/tracefix/internal/batch"
)

// openURL refuses: this build has no clients of object stores.
func openURL(_ context.Context, url string) (batch.Store, string, error) {
	return nil, "", fmt.Errorf("%s: this tracefix was built without buckets (-tags nocloud)", url)
}
