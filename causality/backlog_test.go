package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBacklog takes stretches of one flow and of another, splits one, and hands out some.
func TestBacklog(t *testing.T) {
	var b backlog
	f, g := &flow{}, &flow{}
	b.piece(0, 10, f, Running, 1)
	b.piece(10, 10, g, Running, 1) // no time
	b.piece(10, 20, f, Running, 1) // as the one before
	b.piece(20, 30, f, Wait, 1)
	assert.Equal(t, []piece{{from: 0, to: 20, flow: f, stack: 1}, {from: 20, to: 30, flow: f, state: Wait, stack: 1}}, b.pieces)

	b.proof = len(b.pieces)
	b.piece(30, 40, f, Wait, 1)
	assert.Len(t, b.pieces, 3, "what an event has told is not made longer")
	assert.Equal(t, 2, b.open())

	b.split(0, []piece{{from: 0, to: 5, flow: f}, {from: 5, to: 20, flow: g}})
	assert.Equal(t, []int64{5, 20, 30, 40}, []int64{b.pieces[0].to, b.pieces[1].to, b.pieces[2].to, b.pieces[3].to})
	assert.Equal(t, 3, b.open())

	b.head = 2
	assert.False(t, b.waits(20))
	assert.True(t, b.waits(21))
	b.trim()
	assert.Equal(t, 2, b.head, "that is not much")
	b.head = 4
	b.trim()
	assert.Equal(t, backlog{pieces: []piece{}}, b)
}
