package activity_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/tracetest"
)

func buildTree(t *testing.T, name string, o *activity.Options) *activity.Tree {
	t.Helper()
	b := activity.NewBuilder(o)
	id := func(s string) activity.ID {
		if s == "" {
			return activity.ID{}
		}
		g, err := activity.ParseID(s)
		require.NoError(t, err)
		return g
	}
	tracetest.ReferenceEvents(t, name, func(r *tracetest.ReferenceEvent) {
		e := activity.Event{
			Time: r.Nanos(t), Thread: r.TID, Process: r.PID, Provider: r.Provider, Name: r.Name,
			Opcode: activity.Opcode(r.Opcode), ID: id(r.Activity), Related: id(r.Related),
		}
		if r.Provider == "Microsoft-Diagnostics-DiagnosticSource" && strings.HasPrefix(r.Name, "Activity") {
			e.Span = referenceSpan(t, r)
		}
		b.Add(&e)
	})
	return b.Finish()
}

func referenceSpan(t *testing.T, r *tracetest.ReferenceEvent) *activity.Span {
	t.Helper()
	var s activity.Span
	require.NoError(t, json.Unmarshal(r.Payload["SourceName"], &s.Source))
	require.NoError(t, json.Unmarshal(r.Payload["ActivityName"], &s.Name))
	var args []struct{ Key, Value string }
	require.NoError(t, json.Unmarshal(r.Payload["Arguments"], &args))
	for _, a := range args {
		switch a.Key {
		case "TraceId":
			s.TraceID = a.Value
		case "SpanId":
			s.SpanID = a.Value
		case "ParentSpanId":
			s.ParentSpanID = a.Value
		}
	}
	return &s
}

type total struct {
	ok, auto, unfinished, orphan int
	sum                          float64 // ms of the ok rows, rounded to microseconds
}

func totals(tree *activity.Tree) map[string]total {
	m := map[string]total{}
	sum := map[string]int64{}
	for i := range tree.Rows {
		r := &tree.Rows[i]
		k := r.Provider + " / " + r.Name
		v := m[k]
		switch r.Status {
		case activity.OK:
			v.ok++
			sum[k] += r.Stop - r.Start
		case activity.AutoStopped:
			v.auto++
		case activity.Unfinished:
			v.unfinished++
		case activity.OrphanStop:
			v.orphan++
		}
		v.sum = float64((sum[k]+500)/1000) / 1000
		m[k] = v
	}
	return m
}

func shape(tree *activity.Tree) (starts, roots, depth, ids, overflow, dead int) {
	depths := make([]int, len(tree.Rows))
	seen := map[activity.ID]bool{}
	for i := range tree.Rows {
		r := &tree.Rows[i]
		if !r.HasStart {
			continue
		}
		starts++
		if r.Parent < 0 {
			roots++
			depths[i] = 1
		} else {
			depths[i] = depths[r.Parent] + 1
		}
		depth = max(depth, depths[i])
		seen[r.ID] = true
		if p, ok := tree.Path(r); ok {
			if o, _ := p.Overflow(); o != activity.Fits {
				overflow++
			}
		}
		if r.DeadCreator {
			dead++
		}
	}
	return starts, roots, depth, len(seen), overflow, dead
}

// The totals are those of activity-ids.md section 11.

func TestTreeActivities(t *testing.T) {
	tree := buildTree(t, "activities", nil)
	assert.Equal(t, 5249, len(tree.Rows))
	starts, roots, depth, ids, overflow, _ := shape(tree)
	assert.Equal(t, []int{5167, 657, 31, 4329, 920}, []int{starts, roots, depth, ids, overflow})
	assert.True(t, tree.Lossy())
	const bridge = "Microsoft-Diagnostics-DiagnosticSource / "
	assert.Equal(t, map[string]total{
		"Lab-Orders / Request":          {492, 82, 1, 0, 3827.066},
		"Lab-Orders / Security":         {328, 82, 0, 82, 1229.405},
		"Lab-Orders / Database":         {656, 0, 0, 0, 2538.326},
		"Lab-Orders / Visit":            {2542, 0, 0, 0, 317.844},
		bridge + "Lab.Activities/Order": {328, 0, 0, 0, 3807.107},
		bridge + "Lab.Activities/Db":    {656, 0, 0, 0, 2539.559},
	}, totals(tree))
}

func TestTreeHTTPFull(t *testing.T) {
	tree := buildTree(t, "http-full", nil)
	assert.Equal(t, 8397, len(tree.Rows))
	starts, roots, depth, _, _, dead := shape(tree)
	assert.Equal(t, []int{8395, 2137, 2, 5}, []int{starts, roots, depth, dead})
	assert.False(t, tree.Lossy())
	assert.Equal(t, map[string]total{
		"System.Net.Http / Request":              {2044, 1, 1, 1, 3627.429},
		"System.Net.Http / RequestHeaders":       {2045, 0, 0, 0, 34.705},
		"System.Net.Http / RequestContent":       {2, 0, 0, 0, 0.873},
		"System.Net.Http / ResponseHeaders":      {2042, 0, 0, 0, 464.535},
		"System.Net.Http / ResponseContent":      {2037, 0, 0, 0, 90.867},
		"System.Net.NameResolution / Resolution": {46, 0, 0, 0, 21.087},
		"System.Net.Sockets / Connect":           {51, 0, 0, 0, 255.716},
		"System.Net.Sockets / Accept":            {55, 0, 3, 1, 11138.551},
		"System.Net.Security / Handshake":        {67, 1, 0, 0, 1164.478},
	}, totals(tree))
}

func TestTreeHTTPBridge(t *testing.T) {
	tree := buildTree(t, "http-bridge", nil)
	assert.Equal(t, 1684, len(tree.Rows))
	starts, roots, depth, _, _, dead := shape(tree)
	assert.Equal(t, []int{1682, 431, 5, 2}, []int{starts, roots, depth, dead})
	got := totals(tree)
	for k, v := range got {
		v.sum = 0
		got[k] = v
	}
	const bridge = "Microsoft-Diagnostics-DiagnosticSource / "
	const experimental = bridge + "Experimental.System.Net."
	assert.Equal(t, map[string]total{
		bridge + "System.Net.Http/System.Net.Http.HttpRequestOut":                                    {174, 0, 1, 0, 0},
		bridge + "Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn":                   {168, 0, 0, 0, 0},
		experimental + "Http.Connections/Experimental.System.Net.Http.Connections.WaitForConnection": {58, 0, 0, 0, 0},
		experimental + "Http.Connections/Experimental.System.Net.Http.Connections.ConnectionSetup":   {51, 1, 0, 0, 0},
		experimental + "NameResolution/Experimental.System.Net.NameResolution.DnsLookup":             {46, 0, 0, 0, 0},
		experimental + "Sockets/Experimental.System.Net.Sockets.Connect":                             {51, 0, 0, 0, 0},
		experimental + "Security/Experimental.System.Net.Security.TlsHandshake":                      {68, 0, 0, 0, 0},
		"System.Net.Http / Request":              {169, 1, 1, 1, 0},
		"System.Net.Http / RequestHeaders":       {170, 0, 0, 0, 0},
		"System.Net.Http / RequestContent":       {2, 0, 0, 0, 0},
		"System.Net.Http / ResponseHeaders":      {167, 0, 0, 0, 0},
		"System.Net.Http / ResponseContent":      {162, 0, 0, 0, 0},
		"System.Net.NameResolution / Resolution": {46, 0, 0, 0, 0},
		"System.Net.Sockets / Connect":           {51, 0, 0, 0, 0},
		"System.Net.Sockets / Accept":            {56, 0, 2, 0, 0},
		"System.Net.Security / Handshake":        {67, 1, 0, 0, 0},
		"Microsoft.AspNetCore.Hosting / Request": {168, 0, 0, 0, 0},
		"Microsoft.AspNetCore.Hosting / Host":    {0, 0, 1, 1, 0},
	}, got)
}

// TestBareNames holds that events named Start and Stop, which have nothing but the
// suffix, are a pair, and that their row has a name.
func TestBareNames(t *testing.T) {
	id, err := activity.Encode(activity.NewPath(1, 1), activity.EncoderOld)
	require.NoError(t, err)
	b := activity.NewBuilder(nil)
	b.Add(&activity.Event{Time: 1, Provider: "P", Name: "Start", Opcode: activity.Start, ID: id})
	b.Add(&activity.Event{Time: 5, Provider: "P", Name: "Stop", Opcode: activity.Stop, ID: id})
	b.Add(&activity.Event{Time: 6, Provider: "P", Name: "Stop", Opcode: activity.Stop, ID: id})
	rows := b.Finish().Rows
	require.Len(t, rows, 2)
	assert.Equal(t, activity.OK, rows[0].Status)
	assert.Equal(t, "Start", rows[0].Name)
	assert.Equal(t, "Stop", rows[1].Name)
}

// The opcode makes an event one that starts or stops an activity. Where names have no suffix the id
// tells which belong together, and without ids the thread.
func TestUnsuffixedNames(t *testing.T) {
	b := activity.NewBuilder(nil)
	event := eventsOf(b)
	event("JobStart", activity.Start, pathID(t, 1, 1), activity.ID{})
	event("BeginExecute", activity.Start, pathID(t, 1, 1, 1), pathID(t, 1, 1))
	event("PageBegun", activity.Start, pathID(t, 1, 1, 1, 1), pathID(t, 1, 1, 1))
	event("PageDone", activity.Stop, pathID(t, 1, 1, 1, 1), activity.ID{})
	event("EndExecute", activity.Stop, pathID(t, 1, 1, 1), activity.ID{})
	event("EndExecute", activity.Stop, pathID(t, 1, 1), activity.ID{}) // it found none of its own
	event("JobStop", activity.Stop, pathID(t, 1, 1), activity.ID{})
	type row struct {
		name   string
		parent int
		stop   int64
		status activity.Status
		by     activity.By
	}
	rows := func(tree *activity.Tree) (list []row) {
		for _, r := range tree.Rows {
			list = append(list, row{r.Name, r.Parent, r.Stop, r.Status, r.By})
		}
		return list
	}
	assert.Equal(t, []row{
		{"Job", -1, 7, activity.OK, activity.ByID},
		{"BeginExecute", 0, 5, activity.OK, activity.ByID},
		{"PageBegun", 1, 4, activity.OK, activity.ByID},
		{"EndExecute", -1, 6, activity.OrphanStop, activity.ByNone},
	}, rows(b.Finish()))

	b = activity.NewBuilder(&activity.Options{PairByThread: true})
	event = eventsOf(b)
	for _, e := range []struct {
		name string
		op   activity.Opcode
	}{{"BeginExecute", activity.Start}, {"JobStart", activity.Start}, {"PageBegun", activity.Start}, {"PageDone", activity.Stop}, {"EndExecute", activity.Stop}, {"EndExecute", activity.Stop}} {
		event(e.name, e.op, activity.ID{}, activity.ID{})
	}
	assert.Equal(t, []row{
		{"BeginExecute", -1, 5, activity.OK, activity.ByThread},
		{"Job", -1, 0, activity.Unfinished, activity.ByNone},
		{"PageBegun", -1, 4, activity.OK, activity.ByThread},
		{"EndExecute", -1, 6, activity.OrphanStop, activity.ByNone},
	}, rows(b.Finish()))
}

// A Start that is not tracked shows the id of the activity that it is in: its source has
// ActivityOptions.Disable, or the program chose its related id. The tracker ends none of these.
func TestStartsWithoutAnIDOfTheirOwn(t *testing.T) {
	b := activity.NewBuilder(nil)
	event := eventsOf(b)
	job := pathID(t, 1, 1)
	event("JobStart", activity.Start, job, activity.ID{})
	event("OffStart", activity.Start, job, activity.ID{})
	event("StepStart", activity.Start, pathID(t, 1, 1, 1), job)
	event("StepStop", activity.Stop, pathID(t, 1, 1, 1), activity.ID{})
	event("OffStop", activity.Stop, job, activity.ID{})
	event("OffStart", activity.Start, job, activity.ID{}) // and no stop
	event("LinkStart", activity.Start, job, activity.ID{1, 2, 3})
	event("StepStart", activity.Start, pathID(t, 1, 1, 2), job)
	event("StepStop", activity.Stop, pathID(t, 1, 1, 2), activity.ID{})
	event("LinkStop", activity.Stop, job, activity.ID{})
	event("LinkStart", activity.Start, job, job)
	event("LinkStop", activity.Stop, job, activity.ID{})
	event("JobStop", activity.Stop, job, activity.ID{})
	event("OffStart", activity.Start, job, activity.ID{}) // the thread shows an id that is over
	assert.Equal(t, []placed{
		{"Job", -1, activity.OK}, {"Off", 0, activity.OK}, {"Step", 0, activity.OK}, {"Off", 0, activity.Unfinished},
		{"Link", 0, activity.OK}, {"Step", 0, activity.OK}, {"Link", 0, activity.OK}, {"Off", -1, activity.Unfinished},
	}, placesOf(b.Finish()))
}

// eventsOf returns what gives b the events of one source and thread, one after the other.
func eventsOf(b *activity.Builder) func(name string, op activity.Opcode, id, related activity.ID) {
	at := int64(0)
	return func(name string, op activity.Opcode, id, related activity.ID) {
		at++
		b.Add(&activity.Event{Time: at, Thread: 1, Process: 7, Provider: "P", Name: name, Opcode: op, ID: id, Related: related})
	}
}

// A placed is a row of a tree with its place.
type placed struct {
	name   string
	parent int
	status activity.Status
}

func placesOf(t *activity.Tree) (list []placed) {
	for _, r := range t.Rows {
		list = append(list, placed{r.Name, r.Parent, r.Status})
	}
	return list
}
