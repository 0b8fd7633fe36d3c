package nettrace

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden dumps real files: headers, definitions and events, the first of each
// type where there are many.
func TestGolden(t *testing.T) {
	for _, name := range []string{"executioncheckpoints.nettrace", "tracelogging.netperf", "arraytypes.nettrace.gz", "probe9.nettrace.gz", "v6-nosymbols.nettrace.gz"} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(bytes.NewReader(testFile(t, name)), warnings(t))
			require.NoError(t, err)
			var out bytes.Buffer
			fmt.Fprintf(&out, "%+v\n", *r.Header())
			seen := map[int]int{}
			for ev, err := range r.All() {
				require.NoError(t, err)
				if seen[ev.Metadata.Index]++; seen[ev.Metadata.Index] > 2 {
					continue
				}
				m := ev.Metadata
				fmt.Fprintf(&out, "%d %d/%d %s %d v%d %s level %d opcode %d keywords %#x seq %d stack %d", r.Nanos(ev.Time), ev.ProcessID, ev.ThreadID,
					m.Provider, m.EventID, ev.Version, ev.EventName(), ev.Level, ev.Opcode, ev.Keywords, ev.SequenceNumber, ev.Stack.Len())
				if !ev.ActivityID.IsZero() {
					fmt.Fprintf(&out, " activity %s related %s", ev.ActivityID, ev.RelatedActivityID)
				}
				values, err := ev.AppendValues(nil)
				require.NoError(t, err)
				for i := range values {
					fmt.Fprintf(&out, " %s=%s", ev.Layout().Fields[i].Name, &values[i])
				}
				fmt.Fprintln(&out)
			}
			s := r.Stats()
			fmt.Fprintf(&out, "%+v\n", s)
			golden := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String())
		})
	}
}
