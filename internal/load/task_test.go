package load

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// Marks are as many as the list of events has, stand in order, and their samples
// are the stacks of the events.
func TestTaskMarks(t *testing.T) {
	path := tracetest.Corpus(t, "dotnet10", "await-full.nettrace")
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	p, _, err := Profile(context.Background(), open, &Options{Evidence: true})
	require.NoError(t, err)
	count := map[profile.TaskKind]int{}
	for _, th := range p.Threads {
		var types []profile.SampleType
		for _, s := range th.Samples.All() {
			types = append(types, s.Type)
		}
		last := int32(-1)
		for m := range th.Tasks.All() {
			count[m.Kind]++
			require.True(t, m.Stacked)
			require.Greater(t, m.Sample, last)
			last = m.Sample
			require.Equal(t, profile.SampleEvent, types[m.Sample])
		}
	}
	assert.Equal(t, map[profile.TaskKind]int{
		profile.TaskAwaited: 4271, profile.TaskResumes: 4271, profile.TaskResumed: 4391, profile.TaskCreated: 4280,
		profile.TaskCompleted: 4280, profile.TaskBegins: 8668, profile.TaskEnds: 8668,
	}, count)

	p, _, err = Profile(context.Background(), open, &Options{})
	require.NoError(t, err)
	for _, th := range p.Threads {
		assert.Zero(t, th.Tasks.Len(), "without the stacks of events")
	}
}
