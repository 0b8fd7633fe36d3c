package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
)

// Two processes that are process 1 of their containers have the same activity ids in the recording of
// their machine. An activity that is asked for by name is that of its process; a path and a GUID are of
// each process that --process keeps.
func TestFiltersOfContainers(t *testing.T) {
	id, err := activity.Encode(activity.NewPath(1, 1).WithProcess(1), activity.EncoderOld)
	require.NoError(t, err)
	inner, err := activity.Encode(activity.NewPath(1, 1, 1).WithProcess(1), activity.EncoderOld)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	at, none := int64(0), activity.ID{}
	kinds := map[string]*nettrace.Metadata{}
	add := func(process int, name string, opcode int, id, related activity.ID) {
		m := kinds[name]
		if m == nil {
			m = &nettrace.Metadata{ID: uint32(len(kinds) + 1), EventID: len(kinds) + 1, Provider: "Lab", Name: name, Opcode: opcode}
			kinds[name] = m
		}
		at += 1000
		require.NoError(t, w.Write(&nettrace.Event{
			Metadata: m, Time: at, ProcessID: process, ThreadID: uint64(process + 7), CaptureThreadID: uint64(process + 7), Opcode: opcode,
			ActivityID: nettrace.GUID(id), RelatedActivityID: nettrace.GUID(related), Sorted: true,
		}))
	}
	for _, p := range []struct {
		process int
		name    string
	}{{100, "Cook"}, {200, "Bake"}} {
		add(p.process, p.name+"Start", 1, id, none)
		add(p.process, "StepStart", 1, inner, id)
		add(p.process, "StepStop", 2, inner, none)
	}
	add(100, "CookStop", 2, id, none)
	add(200, "BakeStop", 2, id, none)
	require.NoError(t, w.Close())
	trace := filepath.Join(t.TempDir(), "two.nettrace")
	require.NoError(t, os.WriteFile(trace, out.Bytes(), 0o600))

	pids := regexp.MustCompile(`"pid":(\d+)`)
	for _, c := range []struct {
		flags  string
		events string // the processes of the events
		rows   string // and of the activities
	}{
		{"--activity Cook", "100 100 100 100", "100 100"},
		{"--activity Bake", "200 200 200 200", "200 200"},
		{"--activity Step", "100 100 200 200", "100 200"},
		{"--activity Step --process 200", "200 200", "200"},
		{"--activity Cook --process 200", "", ""},
		{"--activity //1/1/1", "100 100 200 200", "100 200"},
		{"--activity //1/1/1 --process 100", "100 100", "100"},
		{"--activity " + id.String() + " --process 200", "200 200 200", "200 200"}, // and what relates to it
		{"--thread 107", "100 100 100 100", "100 100"},
		{"--thread 107 --process 200", "", ""},
	} {
		for command, want := range map[string]string{"events": c.events, "activities": c.rows} {
			code, text, words := tracefix(t, append([]string{command, trace, "--format", "ndjson", "-o", "-"}, strings.Fields(c.flags)...)...)
			require.Equal(t, 0, code, words)
			var got []string
			for _, m := range pids.FindAllStringSubmatch(text, -1) {
				got = append(got, m[1])
			}
			assert.ElementsMatch(t, strings.Fields(want), got, "%s %s", command, c.flags)
		}
	}
}
