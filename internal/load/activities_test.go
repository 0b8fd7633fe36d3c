package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Activities that do not fit into memory are drawn as those that do: of two processes, nested, side
// by side, with ends that are lost, and many that begin at one time.
func TestActivitiesOnDisk(t *testing.T) {
	draw := func(file *os.File) (slices []string) {
		l := newLoader(&Options{Tracks: []string{"activities"}})
		a := newActivities(newTracker(context.Background(), l, nil))
		a.k.aside.Create = nil
		if file != nil {
			a.k.aside.Create = func() (spool.File, error) { return file, nil }
		}
		start := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "WorkStart", Opcode: 1}
		stop := &nettrace.Metadata{Provider: "Other", EventID: 2, Name: "WorkStop", Opcode: 2}
		r := rand.New(rand.NewPCG(1, 2))
		var open [2][][]uint32
		id := func(p int, path []uint32) [16]byte {
			id, err := activity.Encode(activity.NewPath(path...).WithProcess(uint32(p+1)), activity.EncoderOld)
			require.NoError(t, err)
			return id
		}
		for i := range 130_000 {
			p := r.IntN(2)
			path := []uint32{1, uint32(i + 1)}
			ev := &nettrace.Event{Metadata: start, Opcode: 1, Version: 1, Payload: binary.LittleEndian.AppendUint32(nil, uint32(i))}
			if n := len(open[p]); n > 0 && r.IntN(3) > 0 {
				if up := open[p][r.IntN(n)]; len(up) < 6 {
					path = append(append([]uint32{}, up...), uint32(i%14+1))
					ev.RelatedActivityID = id(p, up)
				}
			}
			now, th := int64(i/3), l.threadOf(p+1, uint64(10*p+r.IntN(3)))
			ev.ActivityID = id(p, path)
			a.event(ev, now, th)
			open[p] = append(open[p], path)
			for len(open[p]) > 0 && r.IntN(100) < 49 || len(open[p]) > 100 {
				k := r.IntN(len(open[p]))
				if r.IntN(50) > 0 {
					a.event(&nettrace.Event{Metadata: stop, Opcode: 2, ActivityID: id(p, open[p][k])}, now, th)
				}
				open[p] = append(open[p][:k], open[p][k+1:]...)
			}
		}
		a.arrange(1 << 20)
		require.Len(t, a.tracks, 2)
		for _, tr := range a.tracks {
			last, most := int64(0), 0
			ties := map[uint64]int{} // slices that are still to come, by the flow to them
			for s := range tr.Slices {
				if s.FlowIn != 0 {
					ties[s.FlowIn]--
				}
				if s.FlowOut != 0 {
					ties[s.FlowOut] = s.Ties
				}
				most = max(most, s.Ties)
				require.GreaterOrEqual(t, s.Start, last)
				last = s.Start
				slices = append(slices, fmt.Sprintf("%+v", *s))
			}
			require.NoError(t, tr.Err())
			for flow, n := range ties {
				require.Zero(t, n, "flow %d", flow)
			}
			require.Greater(t, most, 1)
		}
		return slices
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	want, got := draw(nil), draw(file)
	require.Len(t, want, 130_000)
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	info, err := file.Stat()
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(5e6), "much of it was on disk")
}

// What a bridged activity tells beside its ids is kept for its slice: that of its stop, which knows more.
func TestBridgedDetails(t *testing.T) {
	event := func(fields ...string) *nettrace.Event {
		text := func(b []byte, s string) []byte {
			for _, u := range utf16.Encode([]rune(s + "\x00")) {
				b = binary.LittleEndian.AppendUint16(b, u)
			}
			return b
		}
		b := binary.LittleEndian.AppendUint16(text(text(nil, "Source"), "Name"), uint16(len(fields)/2))
		for _, f := range fields {
			b = text(b, f)
		}
		return &nettrace.Event{Metadata: &nettrace.Metadata{}, Payload: b}
	}
	span := activity.Span{Source: "Source", Name: "Name", TraceID: "t", SpanID: "s"}
	ids := []string{"TraceId", "t", "SpanId", "s", "ParentSpanId", "p"}
	for name, c := range map[string]struct {
		fields []string
		want   []profile.Arg
	}{
		"all": {[]string{"Kind", "Client", "Status", "Error", "StatusDescription", "why", "DisplayName", "GET", "Events", "[x]", "TagObjects", "a: b"}, []profile.Arg{
			{Key: "Kind", Value: "Client"}, {Key: "Status", Value: "Error"}, {Key: "StatusDescription", Value: "why"}, {Key: "DisplayName", Value: "GET"}, {Key: "Events", Value: "[x]"}, {Key: "Tags", Value: "a: b"}}},
		"what says nothing":    {[]string{"Status", "Unset", "StatusDescription", "", "DisplayName", "Name", "Events", "[]", "TagObjects", "System.Collections.Generic.List`1[x]"}, nil},
		"what nobody asked":    {[]string{"Other", "x"}, nil},
		"nothing, then a kind": {[]string{"Status", "Unset", "Kind", "Client"}, []profile.Arg{{Key: "Kind", Value: "Client"}}},
	} {
		a := &activities{spans: map[string][]profile.Arg{}}
		a.details(event(append(ids, c.fields...)...), &span, false)
		assert.Equal(t, c.want, a.spans["ts"], name)
	}
	a := &activities{spans: map[string][]profile.Arg{}}
	tell := func(kind string, stop bool) []profile.Arg {
		a.details(event(append(ids, "Kind", kind)...), &span, stop)
		return a.spans["ts"]
	}
	assert.Equal(t, "1", tell("1", false)[0].Value)
	assert.Equal(t, "1", tell("2", false)[0].Value)
	assert.Equal(t, "3", tell("3", true)[0].Value)
	a.details(event("Kind", "Client"), &activity.Span{ID: "|a.1."}, true)
	assert.Len(t, a.spans["|a.1."], 1, "an id that is not of W3C")
	n := len(a.spans)
	a.details(event("Kind", "Client"), &activity.Span{}, true)
	assert.Len(t, a.spans, n, "whose it is, is not told")
}

// Activities are drawn as `activities` lists them: paired by what their source writes where they
// have no activity ids, and under the names of what they are.
func TestActivitiesWithoutIDsAreDrawn(t *testing.T) {
	l := newLoader(&Options{Tracks: []string{"activities"}})
	a := newActivities(newTracker(context.Background(), l, nil))
	a.k.aside.Create = nil
	th := l.threadOf(1, 1)
	event := func(now int64, provider, name string, op int, payload []byte) {
		assert.True(t, a.event(&nettrace.Event{Metadata: &nettrace.Metadata{Provider: provider, EventID: 1, Name: name}, Opcode: op, Payload: payload}, now, th))
	}
	texts := func(b []byte, list ...string) []byte {
		for _, s := range list {
			for _, u := range utf16.Encode([]rune(s + "\x00")) {
				b = binary.LittleEndian.AppendUint16(b, u)
			}
		}
		return b
	}
	scope := func(id uint32) []byte {
		return texts(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, id), 1), "Shop")
	}
	span := func(suffix, id string) []byte {
		return texts(binary.LittleEndian.AppendUint16(texts(nil, "Listener", "Op"+suffix), 1), "ActivityId", id)
	}
	const none = "0000000000000000"
	zeros := func(id string) []byte { // all keys, of a hierarchical id
		return texts(binary.LittleEndian.AppendUint16(texts(nil, "Source", "Op"), 3), "Id", id, "TraceId", none+none, "SpanId", none)
	}
	event(1, activity.LoggingProvider, "ActivityStart", 1, scope(5))
	event(2, activity.LoggingProvider, "ActivityStart", 1, scope(6))
	event(3, activity.BridgeProvider, "Activity2Start", 1, span(".Start", "|a.1_"))
	event(4, activity.BridgeProvider, "Activity2Start", 1, span(".Start", "|a.2_"))
	event(5, activity.BridgeProvider, "ActivityStart", 1, zeros("|a.3_"))
	event(6, activity.BridgeProvider, "ActivityStart", 1, zeros("|a.4_"))
	event(11, activity.LoggingProvider, "ActivityStop", 2, scope(5))
	event(12, activity.LoggingProvider, "ActivityStop", 2, scope(6))
	event(13, activity.BridgeProvider, "Activity2Stop", 2, span(".Stop", "|a.1_"))
	event(14, activity.BridgeProvider, "Activity2Stop", 2, span(".Stop", "|a.2_"))
	event(15, activity.BridgeProvider, "ActivityStop", 2, zeros("|a.3_"))
	event(16, activity.BridgeProvider, "ActivityStop", 2, zeros("|a.4_"))
	a.arrange(20)
	require.Len(t, a.tracks, 1)
	var got []string
	for s := range a.tracks[0].Slices {
		got = append(got, fmt.Sprintf("%s %d+%d %v", s.Name, s.Start, s.Dur, s.Open))
	}
	assert.Equal(t, []string{"Shop 1+10 false", "Shop 2+10 false", "Listener/Op 3+10 false", "Listener/Op 4+10 false", "Source/Op 5+10 false", "Source/Op 6+10 false"}, got)
}
