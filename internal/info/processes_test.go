package info

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// The names of a process are those of the programs that it was, one after the other, however often
// the recorder repeats each; and what is in no process is explained.
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

	f := infoOf(t, path)
	require.Len(t, f.Processes, 2)
	assert.Equal(t, []string{"sh", "bash", "dotnet"}, append([]string{f.Processes[1].Name}, f.Processes[1].Then...))
	var out bytes.Buffer
	require.NoError(t, f.WriteText(&out, nil))
	assert.Contains(t, out.String(), "7  sh, then bash, then dotnet")
	assert.Contains(t, out.String(), "0  idle CPUs, kernel threads, processes of other containers")
}

// A NativeAOT program writes no rundown, however its recording is ended: the advice does not promise
// names where the trace may be of one.
func TestNoRundownOfNativeAOT(t *testing.T) {
	const aot = "NativeAOT"
	ended := Process{CommandLine: "/srv/app", OS: "Linux"}
	managed := ended
	managed.Runtime = "10.0.12"
	hosted := ended
	hosted.CommandLine = "/usr/bin/dotnet /srv/app.dll"
	for _, x := range []struct {
		name    string
		process Process
		rundown *Rundown
		aot     bool
	}{
		{"ended in order", ended, nil, true},
		{"of a runtime that tells its version", managed, nil, false},
		{"started with an assembly", hosted, nil, false},
		{"cut off", Process{}, nil, false},
		{"with a part of the rundown", ended, &Rundown{Events: 1}, false},
	} {
		g := &nettraceReader{f: &Facts{Version: "4", Samples: &Samples{Other: 1}, Processes: []*Process{&x.process}, Rundown: x.rundown}}
		v, ok := g.nameVerdict()
		require.True(t, ok)
		assert.Contains(t, v.Do, endWell, x.name)
		assert.Equal(t, x.aot, strings.Contains(v.Do, aot), x.name)
	}
}

// Of all that runs on a machine those processes stand first that run .NET, and where their
// assemblies lie tells which is which.
func TestProcessesOfDotNet(t *testing.T) {
	var b bytes.Buffer
	w, err := nettrace.NewWriter(&b, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)})
	require.NoError(t, err)
	process, mapping := &nettrace.Metadata{Provider: "Universal.System", Name: "ExistingProcess"}, &nettrace.Metadata{Provider: "Universal.System", EventID: 3, Name: "ProcessMapping"}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	for pid, x := range []struct {
		name    string
		samples int
		files   []string
	}{
		{"postgres", 9, []string{"/usr/bin/postgres", "/usr/lib/libc.so.6", "/usr/share/odd.dll"}},
		{"dotnet", 2, []string{"/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.1/libcoreclr.so", "/srv/shop/Shop.dll", "/srv/shop/Npgsql.dll", "/opt/agent/Agent.dll", "/usr/share/dotnet/shared/Microsoft.AspNetCore.App/10.0.1/Kestrel.dll"}},
		{"dotnet", 0, []string{"/srv/mail/libcoreclr.so", "/srv/mail/Mail.dll"}},
	} {
		thread := &nettrace.Thread{ProcessID: 10 + pid}
		text := func(b []byte, s string) []byte {
			return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
		}
		require.NoError(t, w.Write(&nettrace.Event{Thread: thread, Metadata: process, Payload: text(text([]byte{7}, x.name), "")}))
		for i, file := range x.files {
			require.NoError(t, w.Write(&nettrace.Event{Thread: thread, Metadata: mapping, Payload: append(text([]byte{byte(i), 1, 2, 0}, file), 0, 0, 0, 0, 0)}))
		}
		for range x.samples {
			require.NoError(t, w.Write(&nettrace.Event{Time: 9, Thread: thread, Metadata: cpu, Payload: []byte{1}}))
		}
	}
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "a.nettrace")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	f := infoOf(t, path)
	var out bytes.Buffer
	require.NoError(t, f.WriteText(&out, nil))
	assert.Regexp(t, `11  dotnet  \(2 samples\)  \.NET 10\.0\.1 in /srv/shop\n.*12  dotnet  \(\d events\)  \.NET in /srv/mail\n.*10  postgres  \(9 samples\)\n`, out.String())
	assert.NotContains(t, out.String(), "odd")
}

// infoOf returns what is told of a file.
func infoOf(t *testing.T, path string) *Facts {
	t.Helper()
	in, err := input.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer in.Close()
	f, err := Nettrace(t.Context(), in, &Options{})
	require.NoError(t, err)
	return f
}
