// Package tracefix holds the module's architecture test. The command is in
// cmd/tracefix; the libraries are chromium, nettrace, stackfix and httpphases.
package tracefix
