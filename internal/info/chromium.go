package info

import (
	"context"

	"github.com/tracefix/tracefix/internal/input"
)

// Chromium tells the facts of a Chromium trace.
func Chromium(ctx context.Context, in *input.File, o *Options) (*Facts, error) {
	return newFacts(in), nil
}
