package pipeline

import "github.com/tracefix/tracefix/internal/input"

// OwnFormat is the output format that an input of kind k has itself.
func OwnFormat(k input.Kind) string { return ownFormat(k) }
