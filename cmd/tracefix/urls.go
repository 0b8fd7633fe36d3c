package main

import "github.com/tracefix/tracefix/internal/batch/bucket"

// openURL opens buckets.
var openURL = bucket.Open
