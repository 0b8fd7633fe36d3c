package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// Requests that two processes serve with one id from the same instant on are told apart: each has
// the samples and the time of its own threads.
func TestRequestsOfContainers(t *testing.T) {
	id, err := activity.Encode(activity.NewPath(1, 1).WithProcess(1), activity.EncoderOld)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	const sampler, hosting = "Microsoft-DotNETCore-SampleProfiler", "Microsoft.AspNetCore.Hosting"
	kinds := []*nettrace.Metadata{
		{ID: 1, EventID: 3, Provider: hosting, Name: "RequestStart", Opcode: 1},
		{ID: 2, EventID: 4, Provider: hosting, Name: "RequestStop", Opcode: 2},
		{ID: 3, Provider: sampler},
	}
	add := func(at int64, process, kind int, payload []byte, stack ...uint64) {
		e := &nettrace.Event{
			Metadata: kinds[kind], Time: at * 1e6, ProcessID: process, ThreadID: uint64(process + 7), CaptureThreadID: uint64(process + 7),
			Opcode: kinds[kind].Opcode, Payload: payload, Stack: nettrace.NewStack(stack), Sorted: true,
		}
		e.Thread = &nettrace.Thread{ProcessID: process, ID: e.ThreadID}
		if kind != 2 {
			e.ActivityID = nettrace.GUID(id)
		}
		require.NoError(t, w.Write(e))
	}
	text := func(s string) (b []byte) {
		for _, c := range []byte(s + "\x00") {
			b = append(b, c, 0)
		}
		return b
	}
	processes := [...]int{100, 200}
	for _, p := range processes {
		add(1, p, 0, append(text("GET"), text("/of/"+strconv.Itoa(p))...))
	}
	for ms := range int64(20) {
		for i, p := range processes {
			add(2+ms, p, 2, []byte{2, 0, 0, 0}, uint64(0x1000*(i+1)))
		}
	}
	for i, p := range processes {
		add(30+int64(i), p, 1, nil)
	}
	require.NoError(t, w.Close())
	trace := filepath.Join(t.TempDir(), "two.nettrace")
	require.NoError(t, os.WriteFile(trace, out.Bytes(), 0o600))
	lines := func(args ...string) []string {
		code, text, words := tracefix(t, append(args, trace, "--format", "ndjson", "-o", "-")...)
		require.Equal(t, exitOK, code, words)
		return strings.Split(strings.TrimSpace(text), "\n")
	}

	number := regexp.MustCompile(`"id":(\d+),.*"pid":(\d+)`)
	byProcess := map[string]string{}
	for _, l := range lines("http", "--side", "server", "--explain") {
		m := number.FindStringSubmatch(l)
		require.NotNil(t, m, l)
		byProcess[m[2]] = m[1]
		assert.Contains(t, l, map[string]string{"100": `"?!0x1000"`, "200": `"?!0x2000"`}[m[2]])
	}
	require.Len(t, byProcess, 2)
	for _, l := range lines("convert") {
		m := regexp.MustCompile(`"pid":(\d+)`).FindStringSubmatch(l)
		require.NotNil(t, m)
		assert.Contains(t, l, `"request":`+byProcess[m[1]]+`,`)
	}
	for pid, id := range byProcess {
		for _, l := range lines("convert", "--request", id) {
			assert.Contains(t, l, `"pid":`+pid+`,`)
		}
	}
}
