package activity_test

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
)

func pathID(t *testing.T, nums ...uint32) activity.ID {
	t.Helper()
	id, err := activity.Encode(activity.NewPath(nums...).WithProcess(7), activity.EncoderOld)
	require.NoError(t, err)
	return id
}

// .NET Core 3.1 leaves on a thread the id of what ran there before: the number that the
// tracker gave an activity says where it stands.
func TestStaleRelated(t *testing.T) {
	b := activity.NewBuilder(nil)
	at := int64(0)
	event := func(name string, op activity.Opcode, id, related activity.ID) {
		at++
		b.Add(&activity.Event{Time: at, Thread: 1, Process: 7, Provider: "P", Name: name, Opcode: op, ID: id, Related: related})
	}
	event("ConnectionStart", activity.Start, pathID(t, 1, 2), activity.ID{})
	event("RequestStart", activity.Start, pathID(t, 1, 2, 1), pathID(t, 1, 2))
	event("ConnectionStart", activity.Start, pathID(t, 1, 3), pathID(t, 1, 2, 1)) // stale: a root
	event("RequestStart", activity.Start, pathID(t, 1, 3, 1), pathID(t, 1, 2, 1)) // stale
	event("QueryStart", activity.Start, pathID(t, 1, 3, 1, 1), pathID(t, 1, 3))   // its creator had ended for the tracker
	event("QueryStart", activity.Start, pathID(t, 1, 9, 1), pathID(t, 1, 2, 1))   // stale, and nothing known above
	var parents []int
	for _, r := range b.Finish().Rows {
		parents = append(parents, r.Parent)
	}
	assert.Equal(t, []int{-1, 0, -1, 2, 2, -1}, parents)
}

func texts(l ...string) (b []byte) {
	for _, s := range l {
		for _, u := range utf16.Encode([]rune(s + "\x00")) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
	}
	return b
}

// What a source writes into start and stop pairs them without activity ids, whatever the
// thread: two scopes of the log that overlap, and end in the order in which they began.
func TestKeys(t *testing.T) {
	b := activity.NewBuilder(nil)
	scope := func(at int64, thread uint64, op activity.Opcode, id uint32) {
		e := activity.Event{Time: at, Thread: thread, Process: 7, Provider: activity.LoggingProvider, Name: "ActivityStart", Opcode: op}
		if op == activity.Stop {
			e.Name = "ActivityStop"
		}
		payload := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, id), 1)
		e.Key, e.Label = activity.DecodeKey(e.Provider, append(payload, texts("Shop.Orders")...))
		b.Add(&e)
	}
	scope(10, 1, activity.Start, 5)
	scope(20, 1, activity.Start, 6)
	scope(30, 2, activity.Stop, 5)
	scope(50, 1, activity.Stop, 6)
	scope(60, 1, activity.Stop, 7)
	b.Add(&activity.Event{Time: 70, Thread: 1, Process: 7, Provider: "P", Name: "WorkStart", Opcode: activity.Start})
	tree := b.Finish()
	require.Len(t, tree.Rows, 3)
	for i, want := range []int64{20, 30} {
		d, ok := tree.Rows[i].Duration()
		assert.True(t, ok)
		assert.Equal(t, want, d)
		assert.Equal(t, activity.ByKey, tree.Rows[i].By)
		assert.False(t, tree.Rows[i].Guess)
		assert.Equal(t, "Shop.Orders", tree.Rows[i].Name)
	}
	assert.Equal(t, activity.OrphanStop, tree.Rows[2].Status)
	assert.Equal(t, []activity.Count{{Provider: "P", Name: "Work", Starts: 1}}, tree.WithoutID)
}

func TestDecodeKey(t *testing.T) {
	for _, c := range []struct {
		provider, key, label string
		payload              []byte
	}{
		{activity.KestrelProvider, "0H:1", "", texts("0H", "0H:1", "HTTP/1.1")},
		{activity.KestrelProvider, "0H", "", texts("0H", "127.0.0.1:80", "127.0.0.1:4000")},
		{activity.KestrelProvider, "0H", "", texts("0H")},
		{activity.LoggingProvider, "", "", []byte{1, 0, 0}},
		{"P", "", "", texts("x")},
	} {
		key, label := activity.DecodeKey(c.provider, c.payload)
		assert.Equal(t, [2]string{c.key, c.label}, [2]string{key, label})
	}
}

// A DiagnosticListener's activities pair by the id that the session asked for.
func TestHierarchicalIDs(t *testing.T) {
	payload := append(texts("HttpHandlerDiagnosticListener", "System.Net.Http.HttpRequestOut.Stop"), 2, 0)
	s, ok := activity.DecodeSpan(append(payload, texts("ActivityId", "|1.2_", "ActivityDuration", "516980")...))
	require.True(t, ok)
	assert.Equal(t, &activity.Span{Source: "HttpHandlerDiagnosticListener", Name: "System.Net.Http.HttpRequestOut", ID: "|1.2_", Duration: 51698000}, s)
	b := activity.NewBuilder(nil)
	for i, op := range []activity.Opcode{activity.Start, activity.Start, activity.Stop} {
		e := activity.Event{Time: int64(i), Thread: uint64(i), Process: 7, Provider: activity.BridgeProvider, Name: "Activity1Start", Opcode: op,
			Span: &activity.Span{Source: s.Source, Name: s.Name, ID: []string{"|1.2_", "|1.3_", "|1.2_"}[i]}}
		if op == activity.Stop {
			e.Name = "Activity1Stop"
		}
		b.Add(&e)
	}
	rows := b.Finish().Rows
	assert.Equal(t, []activity.Status{activity.OK, activity.Unfinished}, []activity.Status{rows[0].Status, rows[1].Status})
}

func TestDecodeSpanKeys(t *testing.T) {
	const w3c = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		key, value string
		want       activity.Span
	}{
		{"Id", w3c, activity.Span{ID: w3c, TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331"}},
		{"Id", "|1.2_", activity.Span{ID: "|1.2_"}},
		{"Id", "|web-01-prod-42.1_", activity.Span{ID: "|web-01-prod-42.1_"}}, // below an id that the caller chose
		{"ParentId", "web-01-prod-42", activity.Span{}},
		// A hierarchical id has zeros for these.
		{"SpanId", "0000000000000000", activity.Span{}},
		{"TraceId", "00000000000000000000000000000000", activity.Span{}},
		{"SpanId", "b7ad6b7169203331", activity.Span{SpanID: "b7ad6b7169203331"}},
		{"ParentId", w3c, activity.Span{ParentSpanID: "b7ad6b7169203331"}},
		{"ActivityParentId", "|1.", activity.Span{}},
		{"ParentSpanId", "b7ad6b7169203331", activity.Span{ParentSpanID: "b7ad6b7169203331"}},
		{"ParentSpanId", "0000000000000000", activity.Span{}},
		{"Kind", "Client", activity.Span{Kind: "Client"}},
		{"DisplayName", "GET", activity.Span{DisplayName: "GET"}},
		{"Status", "Error", activity.Span{Status: "Error"}},
		// A TimeSpan leaves out days and parts of a second that are zero.
		{"Duration", "00:00:00.0516980", activity.Span{Duration: 51698000}},
		{"Duration", "01:02:03", activity.Span{Duration: 3723e9}},
		{"Duration", "1.02:03:04", activity.Span{Duration: 93784e9}},
		{"Duration", "1.02:03:04.5000000", activity.Span{Duration: 93784.5e9}},
		{"Duration", "00:01", activity.Span{}},
		{"Duration", "00:00:00.05x", activity.Span{}},
		{"Duration", "-00:00:01", activity.Span{}},
	} {
		c.want.Source, c.want.Name = "S", "N"
		s, ok := activity.DecodeSpan(append(append(texts("S", "N.Start"), 1, 0), texts(c.key, c.value)...))
		assert.True(t, ok, "%s=%s", c.key, c.value)
		assert.Equal(t, &c.want, s, "%s=%s", c.key, c.value)
	}
}

// What was read before a cut stays; a text without its end is none.
func TestDecodeSpanCut(t *testing.T) {
	head := append(texts("S", "N"), 2, 0)
	whole := append(append(head, texts("Kind", "Client")...), texts("Status", "Ok")...)
	kind := len(head) + len(texts("Kind", "Client"))
	for n := range whole {
		s, ok := activity.DecodeSpan(whole[:n])
		switch {
		case n < len(texts("S", "N")):
			assert.False(t, ok, n)
			assert.Nil(t, s, n)
		case n < len(head):
			assert.True(t, ok, "%d: a span without keys", n)
			assert.Equal(t, &activity.Span{Source: "S", Name: "N"}, s, n)
		case n < kind:
			assert.False(t, ok, n)
			assert.Equal(t, &activity.Span{Source: "S", Name: "N"}, s, n)
		default:
			assert.False(t, ok, n)
			assert.Equal(t, &activity.Span{Source: "S", Name: "N", Kind: "Client"}, s, n)
		}
	}
	_, ok := activity.DecodeSpan(whole)
	assert.True(t, ok)
}

// Without activity ids a span lies in the one that it names as its parent, whatever other events
// there are, and does not end with that.
func TestSpansWithoutIDsHaveParents(t *testing.T) {
	b := activity.NewBuilder(nil)
	at := int64(0)
	span := func(op activity.Opcode, id, parent string) {
		at++
		e := activity.Event{Time: at, Thread: 1, Process: 7, Provider: activity.BridgeProvider, Name: "ActivityStart", Opcode: op,
			Span: &activity.Span{Source: "S", Name: id, TraceID: "5f", SpanID: id, ParentSpanID: parent}}
		if op == activity.Stop {
			e.Name = "ActivityStop"
		}
		b.Add(&e)
	}
	dropped := func() {
		b.Add(&activity.Event{Time: at, Thread: 1, Process: 7, Provider: "P", Name: "WorkStart", Opcode: activity.Start})
	}
	dropped()
	span(activity.Start, "a", "")
	dropped()
	span(activity.Start, "b", "a")
	dropped()
	span(activity.Start, "c", "b")
	span(activity.Start, "d", "b")
	span(activity.Start, "remote", "elsewhere")
	span(activity.Stop, "d", "b")
	span(activity.Stop, "b", "a")
	span(activity.Start, "late", "b")
	span(activity.Start, "e", "a")
	span(activity.Stop, "a", "")
	assert.Equal(t, []placed{
		{"S/a", -1, activity.OK}, {"S/b", 0, activity.OK}, {"S/c", 1, activity.Unfinished}, {"S/d", 1, activity.OK},
		{"S/remote", -1, activity.Unfinished}, {"S/late", -1, activity.Unfinished}, {"S/e", 0, activity.Unfinished},
	}, placesOf(b.Finish()))
}

// Spans whose ids nobody asked for are like other events without ids: counted under their own names,
// and rows where pairing by thread is asked for.
func TestSpansOfWhichNothingTells(t *testing.T) {
	build := func(o *activity.Options) *activity.Tree {
		b := activity.NewBuilder(o)
		for i, e := range []struct {
			event string
			op    activity.Opcode
			name  string
		}{{"ActivityStart", activity.Start, "Outer"}, {"ActivityStart", activity.Start, "Inner"}, {"ActivityStop", activity.Stop, "Outer"}, {"ActivityStop", activity.Stop, "Inner"}} {
			b.Add(&activity.Event{Time: int64(i), Thread: 1, Process: 7, Provider: activity.BridgeProvider, Name: e.event, Opcode: e.op,
				Span: &activity.Span{Source: "S", Name: e.name}})
		}
		return b.Finish()
	}
	tree := build(nil)
	assert.Empty(t, tree.Rows)
	assert.Equal(t, []activity.Count{
		{Provider: activity.BridgeProvider, Name: "S/Outer", Starts: 1, Stops: 1}, {Provider: activity.BridgeProvider, Name: "S/Inner", Starts: 1, Stops: 1},
	}, tree.WithoutID)
	tree = build(&activity.Options{PairByThread: true})
	require.Len(t, tree.Rows, 2)
	for i, name := range []string{"S/Outer", "S/Inner"} {
		r := &tree.Rows[i]
		assert.Equal(t, []any{name, activity.OK, int64(i), int64(i + 2), true}, []any{r.Name, r.Status, r.Start, r.Stop, r.Guess})
	}
}
