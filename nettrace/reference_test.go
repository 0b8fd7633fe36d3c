package nettrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refEvent is a line of the reference library's event list.
type refEvent struct {
	MS       float64
	PID, TID int64
	Provider string
	ID       int
	Version  int
	Name     string
	Level    *int
	Keywords string
	Opcode   *int
	Activity string
	Related  string
	Payload  map[string]any
}

// TestReference holds every event against the reference library's list: time,
// thread, provider, id, version, activity ids, name, and the payloads of all
// EventSources. The runtime's own payloads are left out: the reference names
// their fields its own way.
func TestReference(t *testing.T) {
	files := []string{"activities", "counters", "http-full", "v6-web-faults", "dropped"}
	if testing.Short() {
		files = files[1:2]
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			z, err := zstd.NewReader(bytes.NewReader(corpusFile(t, "dotnet10/reference/"+name+".events.ndjson.zst")))
			require.NoError(t, err)
			defer z.Close()
			want := map[string][]refEvent{}
			n := 0
			for dec := json.NewDecoder(z); dec.More(); n++ {
				var e refEvent
				require.NoError(t, dec.Decode(&e))
				if e.Provider == ProviderRuntime && e.ID > 0xff00 {
					// The reference makes events of its own of GC/DynamicTraceEvent.
					e.ID, e.Name, e.Keywords = 39, "GC/DynamicTraceEvent", ""
				}
				want[refKey(e.MS, e.TID, e.Provider, e.ID, e.Version)] = append(want[refKey(e.MS, e.TID, e.Provider, e.ID, e.Version)], e)
			}
			r, err := NewReader(bytes.NewReader(corpusFile(t, "dotnet10/"+name+".nettrace")), nil)
			require.NoError(t, err)
			got, failed := 0, 0
			for ev, err := range r.All() {
				require.NoError(t, err)
				got++
				ms := float64(r.Nanos(ev.Time)) / 1e6
				key := refKey(ms, int64(ev.ThreadID), ev.Metadata.Provider, ev.Metadata.EventID, ev.Version)
				list := want[key]
				if !assert.NotEmpty(t, list, "no such event in the reference: %s", key) {
					failed++
				} else {
					payload := payloadMap(t, ev)
					why := ""
					found := -1
					for i := range list {
						if why = refDiff(&list[i], ev, payload); why == "" {
							found = i
							break
						}
					}
					if assert.GreaterOrEqual(t, found, 0, "%s: %s", key, why) {
						want[key] = append(list[:found:found], list[found+1:]...)
					} else {
						failed++
					}
				}
				if failed > 3 {
					t.FailNow()
				}
			}
			assert.Equal(t, n, got)
		})
	}
}

func refKey(ms float64, tid int64, provider string, id, version int) string {
	return fmt.Sprintf("%d %d %s %d %d", int64(math.Round(ms*1e4)), tid, provider, id, version)
}

// refDiff tells how an event differs from that of the reference.
func refDiff(want *refEvent, ev *Event, payload map[string]any) string {
	guid := func(g GUID) string {
		if g.IsZero() {
			return ""
		}
		return g.String()
	}
	if got := guid(ev.ActivityID); got != strings.ToLower(want.Activity) {
		return fmt.Sprintf("activity %q, reference %q", got, want.Activity)
	}
	if got := guid(ev.RelatedActivityID); got != strings.ToLower(want.Related) {
		return fmt.Sprintf("related %q, reference %q", got, want.Related)
	}
	if int64(ev.ProcessID) != want.PID {
		return fmt.Sprintf("process %d, reference %d", ev.ProcessID, want.PID)
	}
	if want.Name != ev.EventName() && !strings.HasPrefix(want.Name, "EventID(") {
		return fmt.Sprintf("name %q, reference %q", ev.EventName(), want.Name)
	}
	if want.Opcode != nil && *want.Opcode != ev.Opcode {
		return fmt.Sprintf("opcode %d, reference %d", ev.Opcode, *want.Opcode)
	}
	if want.Level != nil && *want.Level != ev.Level {
		return fmt.Sprintf("level %d, reference %d", ev.Level, *want.Level)
	}
	if want.Keywords != "" && want.Keywords != fmt.Sprintf("%#x", ev.Keywords) && want.Keywords != "0x0" {
		return fmt.Sprintf("keywords %#x, reference %s", ev.Keywords, want.Keywords)
	}
	if strings.HasPrefix(want.Provider, "Microsoft-Windows-DotNETRuntime") {
		return ""
	}
	if want.Provider == ProviderTasks {
		// The reference has layouts of its own for task events, by hand: they
		// leave out TaskScheduled's last field and give a field another name.
		switch want.ID {
		case 7:
			delete(payload, "appDomain")
		case 12:
			payload["ContinuationId"] = payload["ContinueWithTaskId"]
			delete(payload, "ContinueWithTaskId")
		case 21:
			// Two ints and a long, written as three longs: the reference reads the halves of the first two.
			return ""
		}
	}
	if a, b := fmt.Sprint(payload), fmt.Sprint(normal(want.Payload)); a != b {
		return fmt.Sprintf("payload %s, reference %s", a, b)
	}
	return ""
}

// normal brings values as JSON has them to the form of payloadMap.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = normal(x)
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, normal(x))
		}
		return out
	case string:
		if len(v) == 36 && strings.Count(v, "-") == 4 {
			return strings.ToLower(v)
		}
		return v
	}
	return v
}

func payloadMap(t *testing.T, ev *Event) map[string]any {
	l := ev.Layout()
	out := map[string]any{}
	if l == nil {
		return out
	}
	values, err := ev.AppendValues(nil)
	require.NoError(t, err)
	for i := range values {
		out[l.Fields[i].Name] = plain(&values[i], &l.Fields[i])
	}
	return out
}

// plain turns a value into what JSON would hold.
func plain(v *Value, f *Field) any {
	switch v.Kind() {
	case KindBool:
		return v.Bool()
	case KindInt, KindUint, KindFloat:
		if f.Type == TypeEnum32 {
			return v.String()
		}
		x, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return err
		}
		return x
	case KindArray:
		out := []any{}
		for e := range v.Elems() {
			out = append(out, plain(&e, &Field{}))
		}
		return out
	case KindObject:
		out := map[string]any{}
		for f, m := range v.Members() {
			out[f.Name] = plain(&m, f)
		}
		return out
	}
	return v.String()
}
