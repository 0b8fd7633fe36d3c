package command

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// Who answered a request does not depend on what else is shown.
func TestOthersOfFewRows(t *testing.T) {
	file := "../../../shared/corpus/dotnet10/requests-full.nettrace"
	if _, err := os.Stat(file); err != nil {
		t.Skip("no ../shared/corpus: it holds the recording of a service with its requests")
	}
	answered := func(h HTTP) map[int]int {
		in, err := input.Open(t.Context(), file, nil)
		require.NoError(t, err)
		defer in.Close()
		h.Explain = true
		var out bytes.Buffer
		require.NoError(t, h.Do(t.Context(), &Call{In: in, Out: &out, Format: "ndjson", Report: &report.Trace{}}))
		by := map[int]int{}
		for d := json.NewDecoder(&out); d.More(); {
			var row struct {
				ID     int
				Server struct{ ID int }
			}
			require.NoError(t, d.Decode(&row))
			by[row.ID] = row.Server.ID
		}
		return by
	}
	all := answered(HTTP{})
	require.Equal(t, 59, all[56])
	for name, h := range map[string]HTTP{
		"one": {ID: []int{56}}, "slow": {Slow: 20 * time.Millisecond}, "late": {TimeFlags: TimeFlags{From: time.Second}},
	} {
		few := answered(h)
		assert.NotEmpty(t, few, name)
		for id, by := range few {
			assert.Equal(t, all[id], by, "%s: %d", name, id)
		}
	}
}
