package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// Who asks for logical stacks learns which events would tell more.
func TestLogicalTellsWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		kinds []profile.TaskKind
		want  []string
	}{
		{nil, []string{noTasks}},
		{[]profile.TaskKind{profile.TaskCreated, profile.TaskAwaited}, []string{noWork}},
		{[]profile.TaskKind{profile.TaskAwaited, profile.TaskBegins}, nil},
	} {
		th := &profile.Thread{Process: &profile.Process{PID: 1}}
		for i, kind := range tt.kinds {
			th.Tasks.Append(profile.TaskMark{Kind: kind, Task: uint32(i) + 1})
		}
		var got []string
		(&logicalFlags{}).Apply(&profile.Profile{Table: profile.NewTable(), Threads: []*profile.Thread{th}}, func(s string) { got = append(got, s) })
		assert.Equal(t, tt.want, got)
	}
}
