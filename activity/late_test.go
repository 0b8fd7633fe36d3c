package activity

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestStopTooLate: an activity whose stop comes too late lasts no negative time.
func TestStopTooLate(t *testing.T) {
	b := NewBuilder(&Options{PairByThread: true})
	b.Add(&Event{Time: 100, Thread: 1, Process: 1, Provider: "P", Name: "WorkStart", Opcode: Start})
	b.Add(&Event{Time: 50, Thread: 1, Process: 1, Provider: "P", Name: "WorkStop", Opcode: Stop})
	d, ok := b.Finish().Rows[0].Duration()
	assert.True(t, ok)
	assert.Zero(t, d)
}
