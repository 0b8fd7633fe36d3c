//go:build !nocloud

package main

import "github.com/tracefix/tracefix/internal/batch/bucket"

// openURL opens buckets. Their clients make up two thirds of the program: builds with
// the tag nocloud do without.
var openURL = bucket.Open
