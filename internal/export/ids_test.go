package export

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// Threads that have a name and no number are not one thread for viewers, in whatever process.
func TestNumbersOfNamedThreads(t *testing.T) {
	for _, pid := range []int64{0, 3} {
		process := &profile.Process{PID: pid}
		p := &profile.Profile{Table: profile.NewTable(), Threads: []*profile.Thread{{Process: process, Name: "main"}, {Process: process, Name: "worker"}, {Process: process, TID: 5}}}
		n := newNumbers(p)
		assert.NotEqual(t, n.tids[p.Threads[0]], n.tids[p.Threads[1]], pid)
		assert.EqualValues(t, 5, n.tids[p.Threads[2]], pid)
	}
}
