package tracefix_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
)

// What a caller does to the list of formats changes nothing for others.
func TestFormatsAreTheCallers(t *testing.T) {
	list := tracefix.Formats()
	first := list[0].Name
	list[0].Name, list[0].Extensions[0] = "mine", ".mine"
	tracefix.FormatNamed(first).Extensions[0] = ".mine"
	tracefix.FormatNamed(first).Weights = 99

	f := tracefix.FormatNamed(first)
	require.NotNil(t, f)
	assert.Equal(t, first, tracefix.Formats()[0].Name)
	assert.NotEqual(t, ".mine", tracefix.Formats()[0].Extensions[0])
	assert.NotEqual(t, ".mine", f.Extensions[0])
	assert.NotEqual(t, 99, f.Weights)
	assert.Nil(t, tracefix.FormatNamed("mine"))
}
