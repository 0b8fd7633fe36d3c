package main

import "github.com/tracefix/tracefix/internal/batch"

// openURL opens buckets.
var openURL batch.OpenURL
