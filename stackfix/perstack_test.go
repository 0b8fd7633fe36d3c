package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What was forgotten does not come back, however often all is forgotten.
func TestForgotten(t *testing.T) {
	var set stackSet
	var bits marks
	for i := range StackID(600) {
		set.reset()
		bits.reset()
		bits.reach(int(i) + 2)
		assert.True(t, set.add(i+1))
		assert.False(t, set.add(i+1))
		bits.set(i+1, under)
		for s := range i + 1 {
			assert.False(t, set.has(s), "%d in set %d", s, i)
			assert.False(t, bits.has(s, under), "%d after reset %d", s, i)
		}
		assert.True(t, set.has(i+1))
		assert.True(t, bits.has(i+1, under))
		assert.False(t, bits.has(i+1, through))
	}
}
