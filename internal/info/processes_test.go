package info

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// The names of a process are those of the programs that it was, one after the other, however often the recorder repeats
// each; and what is in no process is explained.
func TestProcessNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.nettrace")
	var b bytes.Buffer
	w, err := nettrace.NewWriter(&b, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)})
	require.NoError(t, err)
	metas := [2]*nettrace.Metadata{{Provider: "Universal.System", Name: "ExistingProcess"}, {Provider: "Universal.System", EventID: processCreate, Name: "ProcessCreate"}}
	for i, x := range []struct {
		create int
		name   string
	}{{0, "sh"}, {0, "sh-thread"}, {1, "sh"}, {1, "bash"}, {1, "bash"}, {1, ""}, {1, "dotnet"}} {
		payload := append(binary.LittleEndian.AppendUint16([]byte{7}, uint16(len(x.name))), x.name...)
		require.NoError(t, w.Write(&nettrace.Event{Time: int64(i), Thread: &nettrace.Thread{ProcessID: 7}, Metadata: metas[x.create], Payload: append(payload, 0, 0)}))
	}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	require.NoError(t, w.Write(&nettrace.Event{Time: 9, Thread: &nettrace.Thread{}, Metadata: cpu, Payload: []byte{1}}))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))

	in, err := input.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer in.Close()
	f, err := Nettrace(t.Context(), in, &Options{})
	require.NoError(t, err)
	require.Len(t, f.Processes, 2)
	assert.Equal(t, []string{"sh", "bash", "dotnet"}, append([]string{f.Processes[1].Name}, f.Processes[1].Then...))
	var out bytes.Buffer
	require.NoError(t, f.WriteText(&out, nil))
	assert.Contains(t, out.String(), "7  sh, then bash, then dotnet")
	assert.Contains(t, out.String(), "0  idle CPUs, kernel threads, processes of other containers")
}
