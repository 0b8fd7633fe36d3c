package httpreport

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// TestServedRequestsAreSetAside: what was served stands behind what was made, and waits for that on disk, so that
// a service with millions of requests needs no memory for each.
func TestServedRequestsAreSetAside(t *testing.T) {
	const n = 20000
	write := func(f string, s *profile.Spool) (string, error) {
		var out bytes.Buffer
		w := Lookup(f).New(&out, &Options{Spool: s})
		for i := range n {
			require.NoError(t, w.Server(&httpphases.ServerRequest{ID: 2*i + 1, Method: "GET", Target: "/orders/" + strings.Repeat("x", 50), Status: 200, HasDuration: true}))
			if i%1000 == 0 {
				require.NoError(t, w.Request(&httpphases.Request{ID: 2*i + 2, Method: "GET", Host: "shop", HasDuration: true}))
			}
		}
		err := w.Close(&Summary{Requests: n / 1000, Servers: n})
		return out.String(), err
	}
	for _, f := range []string{"table", "json"} {
		want, err := write(f, nil)
		require.NoError(t, err)
		file, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		s := &profile.Spool{Memory: 1, Create: func() (profile.SpoolFile, error) { return file, nil }}
		got, err := write(f, s)
		require.NoError(t, err)
		assert.True(t, s.InUse(), f)
		assert.Equal(t, n, strings.Count(got, "/orders/"), f)
		assert.True(t, want == got, f)
		require.NoError(t, file.Close())
		_, err = write(f, &profile.Spool{Memory: 1, Create: func() (profile.SpoolFile, error) { return tracetest.Unreadable{}, nil }})
		require.Error(t, err, f)
	}
}

// Counts of activities without ids have keys like all others, and are absent where there are none.
func TestActivitiesJSONWithoutIDs(t *testing.T) {
	write := func(f activity.Facts) string {
		var b bytes.Buffer
		require.NoError(t, ActivitiesJSON(&b, &activity.Rows{Facts: f}, nil, nil, nil))
		return b.String()
	}
	assert.JSONEq(t, `{"activities":[],"totals":[]}`, write(activity.Facts{}))
	assert.JSONEq(t, `{"activities":[],"totals":[],"without_activity_id":[{"provider":"P","name":"Work","starts":2,"stops":1}]}`,
		write(activity.Facts{WithoutID: []activity.Count{{Provider: "P", Name: "Work", Starts: 2, Stops: 1}}}))
}

// TestLinkedBy: what a span tells alone is linked by its ids, where it has any.
func TestLinkedBy(t *testing.T) {
	for want, r := range map[bool]*httpphases.Request{
		false: {ID: 1, SpanOnly: true, SpanID: "a"},
		true:  {ID: 1, SpanOnly: true, Guessed: 1},
	} {
		var out bytes.Buffer
		w := Lookup("ndjson").New(&out, &Options{})
		require.NoError(t, w.Request(r))
		require.NoError(t, w.Close(&Summary{Requests: 1}))
		assert.Equal(t, want, strings.Contains(out.String(), `"linked_by":"thread and connection"`), out.String())
		assert.Contains(t, out.String(), `"told_by":"bridge"`)
	}
}

// A parent without an activity id has a row, and no id that is all zeros.
func TestActivityInASpanWithoutAnID(t *testing.T) {
	b := activity.NewBuilder(nil)
	for i, id := range []string{"a", "b"} {
		b.Add(&activity.Event{Time: int64(1 + i), Thread: 1, Process: 7, Provider: activity.BridgeProvider, Name: "ActivityStart", Opcode: activity.Start,
			Span: &activity.Span{Source: "S", Name: id, TraceID: "5f", SpanID: id, ParentSpanID: []string{"", "a"}[i]}})
	}
	var out bytes.Buffer
	require.NoError(t, ActivitiesNDJSON(&out, b.FinishRows(), nil, nil))
	assert.Equal(t, `{"row":0,"provider":"Microsoft-Diagnostics-DiagnosticSource","name":"S/a","start_ms":0.000001,"status":"unfinished","start_tid":1,"trace_id":"5f","span_id":"a","pid":7}
{"row":1,"provider":"Microsoft-Diagnostics-DiagnosticSource","name":"S/b","parent_row":0,"start_ms":0.000002,"status":"unfinished","start_tid":1,"trace_id":"5f","span_id":"b","parent_span_id":"a","pid":7}
`, out.String())
}

// Database commands are told by their texts, of which the start of a command has the text and its stop the time.
func TestDatabaseCommands(t *testing.T) {
	utf16 := func(list ...string) (b []byte) {
		for _, s := range list {
			for _, c := range s + "\x00" {
				b = append(b, byte(c), byte(c>>8))
			}
		}
		return b
	}
	b := activity.NewBuilder(nil)
	event := func(i int, op activity.Opcode, name string, args ...string) {
		e := activity.Event{Time: int64(i) * 1e6, Thread: 1, Process: 7, Provider: activity.BridgeProvider, Name: "Activity2Start", Opcode: op, ID: activity.ID{0: 0x11 + byte(i)/2, 14: 0x9d, 15: 0x59}}
		if op == activity.Stop {
			e.Name = "Activity2Stop"
		}
		e.ReadPayload(append(append(utf16("Microsoft.EntityFrameworkCore", name), byte(len(args)/2), 0), utf16(args...)...))
		b.Add(&e)
	}
	const before, after = "Database.Command.CommandExecuting", "Database.Command.CommandExecuted"
	for i := 0; i < 6; i += 2 {
		event(i, activity.Start, before, "Command", "Cmd", "CommandText", []string{"SELECT 1\r\n  FROM a", "SELECT 1 FROM a", "DELETE b"}[i/2])
		event(i+1, activity.Stop, after, "Command", "Cmd", "Duration", "00:00:00.0010000")
	}
	var tree, lines bytes.Buffer
	rows := b.FinishRows()
	require.NoError(t, ActivitiesTree(&tree, rows, nil, nil, 0, nil, 0))
	assert.Contains(t, tree.String(), `CommandExecuting "SELECT 1 FROM a"`)
	assert.Regexp(t, `\n +2 +0 +0 +0 +2.000 +1.000  "SELECT 1 FROM a" Microsoft-Diagnostics-DiagnosticSource `, tree.String())
	assert.Regexp(t, `\n +1 +0 +0 +0 +1.000 +1.000  "DELETE b" Microsoft-Diagnostics-DiagnosticSource `, tree.String())
	require.NoError(t, ActivitiesNDJSON(&lines, rows, nil, nil))
	assert.Equal(t, 2, strings.Count(lines.String(), `"display_name":"SELECT 1 FROM a","span_duration_ms":1`), lines.String())
}

// TestSpanFromBefore: how long a span took that began before the recording its stop tells.
func TestSpanFromBefore(t *testing.T) {
	b := activity.NewBuilder(nil)
	b.Add(&activity.Event{Time: 5e6, Thread: 1, Process: 7, Provider: activity.BridgeProvider, Name: "ActivityStop", Opcode: activity.Stop,
		Span: &activity.Span{Source: "S", Name: "a", TraceID: "5f", SpanID: "a", Duration: 9e6}})
	var out bytes.Buffer
	require.NoError(t, ActivitiesTree(&out, b.FinishRows(), nil, nil, 0, nil, 0))
	assert.Contains(t, out.String(), "       5.000              S/a  [orphan-stop: took 9.000 in all]\n")
}

// Display names may all be different: those of the first 1000 are told apart.
func TestManyDisplayNames(t *testing.T) {
	b := activity.NewBuilder(nil)
	for i := range 3 * mostDisplayed {
		s := &activity.Span{Source: "S", Name: "N", DisplayName: strconv.Itoa(i), SpanID: strconv.Itoa(i), TraceID: "t"}
		b.Add(&activity.Event{Time: int64(i), Provider: activity.BridgeProvider, Name: "ActivityStart", Opcode: activity.Start, Span: s})
		b.Add(&activity.Event{Time: int64(i), Provider: activity.BridgeProvider, Name: "ActivityStop", Opcode: activity.Stop, Span: s})
	}
	totals := ActivityTotals(b.FinishRows(), nil)
	require.Len(t, totals, mostDisplayed+1)
	assert.Equal(t, "0", totals[0].Display)
	assert.Empty(t, totals[mostDisplayed].Display)
	assert.Equal(t, 2*mostDisplayed, totals[mostDisplayed].OK)
}
