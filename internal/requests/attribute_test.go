package requests

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

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
