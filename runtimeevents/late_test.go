package runtimeevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// No time is negative, whatever the order of events.
func TestNoNegativeTimes(t *testing.T) {
	assert.Zero(t, (&Contention{Start: 5, Stop: 3}).Wait())
	assert.EqualValues(t, 2, (&Contention{Start: 3, Stop: 5}).Wait())
	assert.Zero(t, (&Contention{Start: 3, Stop: Unknown}).Wait())
	assert.Zero(t, (&Compilation{Start: 5, Stop: 3}).Time())
	assert.EqualValues(t, 2, (&Compilation{Start: 3, Stop: 5}).Time())
	assert.Zero(t, (&Compilation{Start: Unknown, Stop: 5}).Time())
	assert.Zero(t, (&Suspension{Start: 5, Restart: 3}).Pause())
}
