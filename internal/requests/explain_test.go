package requests

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
)

// Without an activity the phases of a request still tell when it waited for the other side.
func TestUntold(t *testing.T) {
	step := func(from, to int64, cause string) httpphases.Step {
		return httpphases.Step{From: from, To: to, Cause: cause}
	}
	for name, c := range map[string]struct {
		wire  []causality.Span
		want  httpphases.TimeByCause
		steps []httpphases.Step
	}{
		"no phases":    {nil, httpphases.TimeByCause{Unknown: 90}, []httpphases.Step{step(10, 100, "unknown")}},
		"one":          {[]causality.Span{{From: 20, To: 60}}, httpphases.TimeByCause{OtherSide: 40, Unknown: 50}, []httpphases.Step{step(10, 20, "unknown"), step(20, 60, "other_side"), step(60, 100, "unknown")}},
		"that follow":  {[]causality.Span{{From: 20, To: 60}, {From: 60, To: 100}}, httpphases.TimeByCause{OtherSide: 80, Unknown: 10}, []httpphases.Step{step(10, 20, "unknown"), step(20, 100, "other_side")}},
		"that overlap": {[]causality.Span{{From: 5, To: 60}, {From: 50, To: 120}}, httpphases.TimeByCause{OtherSide: 90}, []httpphases.Step{step(10, 100, "other_side")}},
	} {
		got := (&Explainer{Steps: true}).untold(10, 100, c.wire)
		assert.Equal(t, c.want, got.Time, name)
		assert.Equal(t, c.steps, got.Steps, name)
		assert.Empty(t, (&Explainer{}).untold(10, 100, c.wire).Steps, name)
	}
}
