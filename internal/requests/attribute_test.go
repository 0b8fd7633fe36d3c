package requests

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/profile"
)

// TestActivitiesInEachOther: there may be as many as a file has, and what numbers them all is no
// recursion, whose end nobody could recover from.
func TestActivitiesInEachOther(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	const n = 50_000
	p := &profile.Profile{}
	a := attribution{p: p}
	var x *causality.Activity
	for range n {
		x = &causality.Activity{Parent: x}
	}
	assert.EqualValues(t, n-1, a.number(x))
	assert.EqualValues(t, n-2, a.number(x.Parent))
	assert.EqualValues(t, n, a.number(&causality.Activity{Parent: x.Parent}))
	assert.EqualValues(t, n-2, p.Activities.Parent(n))
	for i := range int32(n) {
		assert.Equal(t, i-1, p.Activities.Parent(i))
	}
	assert.EqualValues(t, -1, a.number(nil))
}

// Spans are called what activities calls them, and not all alike after the event that starts each.
func TestNamesOfSpans(t *testing.T) {
	p := &profile.Profile{}
	a, x := attribution{p: p}, Explainer{names: map[[2]string]string{}}
	for _, c := range []struct {
		in           causality.Activity
		name, inside string
	}{
		{causality.Activity{Provider: activity.BridgeProvider, Name: "Activity", Label: "Shop.Orders/Place"}, "Shop.Orders/Place", "Shop.Orders/Place"},
		{causality.Activity{Provider: activity.BridgeProvider, Name: "Activity", Label: "Shop.Orders/Pay"}, "Shop.Orders/Pay", "Shop.Orders/Pay"},
		{causality.Activity{Provider: activity.LoggingProvider, Name: "Activity", Label: "Shop.Log"}, "Shop.Log", activity.LoggingProvider + "/Shop.Log"},
		{causality.Activity{Provider: "Shop", Name: "Job"}, "Job", "Shop/Job"},
	} {
		assert.Equal(t, c.name, p.Activities.At(a.number(&c.in)).Name)
		assert.Equal(t, c.inside, x.name(&c.in))
	}
}
