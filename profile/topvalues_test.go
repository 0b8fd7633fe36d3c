package profile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// Of a weight that the profile was read without there is nothing, and no panic.
func TestTopValuesOfNoWeight(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	for _, weight := range []int{p.WeightNamed("alloc"), 0, 7} {
		top := p.TopValues(weight, 0, false)
		assert.Zero(t, top.Events)
		assert.Empty(t, top.Methods)
	}
}
