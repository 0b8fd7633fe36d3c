package load

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
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
		profile.TaskJoins: 6,
	}, count)

	p, _, err = Profile(context.Background(), open, &Options{})
	require.NoError(t, err)
	for _, th := range p.Threads {
		assert.Zero(t, th.Tasks.Len(), "without the stacks of events")
	}
}

// Delays and unwrapped tasks are told from async methods, and from what only begins with the same name.
func TestTaskDelays(t *testing.T) {
	payload := func(name string) []byte {
		b := []byte{7, 0, 0, 0}
		for _, c := range name + "\x00" {
			b = append(b, byte(c), 0)
		}
		return append(b, make([]byte, 8)...)
	}
	for _, tt := range []struct {
		name string
		want uint32
	}{{"Task.Delay", profile.TaskDelay}, {"Task.DelayAll", 0}, {"Task.Unwrap", profile.TaskUnwrap}, {"Async: <Run>d__1", 0}, {"", 0}} {
		th := thread{trace: &profile.Thread{}}
		th.mark(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: 14}, Payload: payload(tt.name)}, false)
		for m := range th.trace.Tasks.All() {
			assert.Equal(t, profile.TaskMark{Kind: profile.TaskCreated, Task: 7, Other: tt.want}, m, tt.name)
		}
		assert.Equal(t, 1, th.trace.Tasks.Len())
	}
	th := thread{trace: &profile.Thread{}}
	th.mark(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: 14}, Payload: []byte{7, 0, 0, 0}}, false)
	assert.Equal(t, 1, th.trace.Tasks.Len(), "without a name")
}
