package stackfix

import (
	"context"
	"sync/atomic"
)

// A stop tells whether the context of a Fix has ended. The long loops ask it and leave off; whoever
// goes on with what they made asks before: once it was told to one it is told to all, so that what
// was left undone is never taken for what there is. nil is one that never ends.
type stop struct {
	ctx  context.Context
	told atomic.Bool
}

// stopped reports whether to leave off.
func (x *stop) stopped() bool {
	if x == nil {
		return false
	}
	if !x.told.Load() && x.ctx.Err() != nil {
		x.told.Store(true)
	}
	return x.told.Load()
}

// After how many samples, or blocks, a loop asks.
const (
	samplesPerAsk = 1 << 12
	blocksPerAsk  = 1 << 6
)

// stoppedAt is stopped, asked by a loop of samples in its turn n.
func (x *stop) stoppedAt(n int) bool { return n%samplesPerAsk == 0 && x.stopped() }
