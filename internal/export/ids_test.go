package export

import (
	"slices"
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

// Lines have no names of threads: of those that have no numbers each has another one.
func TestLinesOfNamedThreads(t *testing.T) {
	m := newMaker()
	for _, pid := range []int64{0, 3} {
		process := m.process(pid, "p", "")
		for _, name := range []string{"main", "worker", "other"} {
			m.thread(process, 0, name).Samples.Append(profile.Sample{Time: ms})
		}
	}
	var ids []string
	for _, h := range newMerge(m.p.Threads).heads {
		ids = append(ids, string(h.ids))
	}
	slices.Sort(ids)
	assert.Len(t, slices.Compact(ids), 6)
	assert.Contains(t, ids, `,"pid":3,"tid":0,"process":"p"`)
}
