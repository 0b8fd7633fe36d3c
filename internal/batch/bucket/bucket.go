// Package bucket opens the buckets of object stores for batches: S3, and whatever else
// speaks its protocol, with one small client. The stores of Google and Azure also have
// clients of their own, behind the build tags gcs and azure: each is larger than the
// rest of the program.
package bucket

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/batch"
)

// A location is what a URL such as s3://bucket/key?region=eu-west-1 names.
type location struct {
	raw         string
	bucket, key string
	options     url.Values
}

// openers has a row for each scheme.
var openers = map[string]func(context.Context, *location) (batch.Store, error){
	"s3":     openS3,
	"gs":     openGoogle,
	"azblob": openAzure,
}

// Open opens the bucket of a URL such as s3://bucket/key?region=eu-west-1 and returns
// the key in it. The options behind the question mark are those of the store; see
// openS3 for its own. Credentials come from where each store's own tools take them.
func Open(ctx context.Context, raw string) (batch.Store, string, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	open := openers[scheme]
	if open == nil {
		return nil, "", fmt.Errorf("%s: URLs begin with %s:// or file://", raw, strings.Join(slices.Sorted(maps.Keys(openers)), "://, "))
	}
	rest, query := splitQuery(rest)
	options, err := url.ParseQuery(query)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", raw, err)
	}
	l := &location{raw: raw, options: options}
	l.bucket, l.key, _ = strings.Cut(rest, "/")
	if l.bucket == "" {
		return nil, "", fmt.Errorf("%s: the URL names no bucket", raw)
	}
	s, err := open(ctx, l)
	if err != nil {
		return nil, "", err
	}
	return s, l.key, nil
}

// splitQuery splits options off. A question mark in a pattern is none.
func splitQuery(s string) (rest, query string) {
	i := strings.LastIndexByte(s, '?')
	if i < 0 || !strings.Contains(s[i:], "=") {
		return s, ""
	}
	return s[:i], s[i+1:]
}
