package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What calls a stretch is counted by caller, of the first one and of all others.
func TestAlsoCalled(t *testing.T) {
	c := &consensus{engine: &engine{mth: []MethodID{0, 1, 2, 3, 4, 5}}}
	x := stretches{length: 2}
	x.learned.Do(func() {})
	fs := []FrameID{1, 2}
	h := hashOn(hashOn(0, 2), 1)
	for caller, n := range map[MethodID]int{3: 97, 4: 2, 5: 1} {
		for range n {
			x.count(h, caller)
		}
	}
	assert.False(t, x.alsoCalled(c, fs, 3), "others are too few")
	assert.True(t, x.alsoCalled(c, fs, 4))
	assert.True(t, x.alsoCalled(c, fs, 5))
	assert.True(t, x.alsoCalled(c, fs, 1), "it was never seen to call it")
	assert.False(t, x.alsoCalled(c, []FrameID{2, 1}, 3), "the stretch was never seen")
}
