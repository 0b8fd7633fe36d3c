package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Where more requests end than may wait for the names of methods, the trace is read again, with
// the same result.
func TestExplainedByASecondReading(t *testing.T) {
	file := "requests-short"
	once, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
	assert.NotEmpty(t, once)
	rows := bytes.Count(once, []byte{'\n'})
	defer func(n int) { waiting = n }(waiting)
	// The room is full while the trace is read, or by those that its end hands out.
	for _, waiting = range []int{0, 10, rows - 40, rows - 10, rows - 2, rows - 1, rows, rows + 1} {
		again, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
		assert.Equal(t, string(once), string(again), "room for %d of %d", waiting, rows)
	}
}

// TestAwaitsThatNothingTells: where neither samples nor task events are, a thread may have worked
// for a request unseen.
func TestAwaitsThatNothingTells(t *testing.T) {
	for file, told := range map[string]bool{"http-net9": false, "requests-short": true} {
		rows, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
		awaited := 0.0
		for d := json.NewDecoder(bytes.NewReader(rows)); d.More(); {
			var r struct {
				Time struct {
					Await float64 `json:"await_ms"`
				}
			}
			require.NoError(t, d.Decode(&r))
			awaited += r.Time.Await
		}
		assert.Equal(t, told, awaited > 0, file)
	}
}

// What of a recording's lack makes time unknown is told beside the line that records it, and the
// line records all that is missed; a recording that lacks nothing is told nothing.
func TestExplainTellsWhatIsNotRecorded(t *testing.T) {
	const samples, tasks = "Microsoft-DotNETCore-SampleProfiler: ", "System.Threading.Tasks.TplEventSource:0x1FF:4: "
	for _, c := range []struct {
		file string
		of   HTTP
		want []string
	}{
		{"http-full", HTTP{Explain: true}, []string{samples, tasks}},
		{"http-full", HTTP{Summary: true}, []string{"Microsoft-Windows-DotNETRuntime:0x1C001:4: ", tasks}},
		{"http-full", HTTP{}, nil},
		{"requests-none", HTTP{Explain: true}, []string{tasks}},
		{"requests-full", HTTP{Explain: true}, nil},
		{"csc", HTTP{Explain: true}, nil}, // there is nothing to explain
	} {
		format := "ndjson"
		if c.of.Summary {
			format = "json"
		}
		b, rep := runHTTP(t, c.file, format, &c.of)
		notes := strings.Join(rep.Notes, "\n") + string(b)
		for _, w := range c.want {
			assert.Contains(t, notes, w, "%s %+v", c.file, c.of)
		}
		if c.want == nil {
			assert.NotContains(t, notes, samples, "%s %+v", c.file, c.of)
			assert.NotContains(t, notes, tasks, "%s %+v", c.file, c.of)
			continue
		}
		assert.Regexp(t, `To record it all: .* --profile dotnet-sampled-thread-time .*TplEventSource:0x1FF:4,Microsoft-Windows-DotNETRuntime:0x1C001:4`, notes)
	}
}
