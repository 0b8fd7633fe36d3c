package tracefix_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// A number that no constant has, as one of a file of another version, is printed and no panic.
func TestStringOfUnknownNumbers(t *testing.T) {
	for want, s := range map[string]fmt.Stringer{
		"PhaseName(99)": httpphases.PhaseName(99), "Class(99)": httpphases.Class(99), "Outcome(99)": httpphases.Outcome(99),
		"Status(99)": activity.Status(99), "By(99)": activity.By(99), "Cause(99)": causality.Cause(99), "State(99)": causality.State(99),
		"How(99)": stackfix.How(99), "Cut(99)": profile.Cut(99), "SampleType(99)": profile.SampleType(99), "Form(99)": chromium.Form(99),
		"CounterType(99)": tracefix.CounterType(99),
	} {
		assert.NotPanics(t, func() { assert.Equal(t, want, s.String()) }, want)
	}
}

// Who asks Write for a nettrace is told what makes one.
func TestWriteNettrace(t *testing.T) {
	err := tracefix.Write(io.Discard, &profile.Profile{Table: profile.NewTable()}, "nettrace", nil)
	assert.ErrorContains(t, err, "File.Rewrite")
}
