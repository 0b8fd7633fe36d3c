//go:build !nocloud

package main

import "github.com/tracefix/tracefix/internal/batch/bucket"

// openURL opens buckets. Builds with the tag nocloud do without.
var openURL = bucket.Open
