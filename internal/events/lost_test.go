package events

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// TestLostEventsInventNothing leaves out events as a recorder does that runs out of room: what is
// told of a collection or a contention then is what the whole trace tells of it, or nothing.
func TestLostEventsInventNothing(t *testing.T) {
	type row = map[string]any
	rows := func(r *Report) (list []row) {
		for l := range strings.Lines(writeRuntime(t, r, "ndjson", 0)) {
			var m row
			require.NoError(t, json.Unmarshal([]byte(l), &m))
			list = append(list, m)
		}
		return list
	}
	key := func(m row) string { return fmt.Sprint(m["number"], m["start_ms"], m["tid"]) }
	for _, c := range []struct {
		file   string
		kind   ReportKind
		fields []string
		few    int // of a thousand may be wrong: a background collection has a third pause now and then, which nothing misses
	}{
		{"gc", KindGC, []string{"pause_ms", "suspend_ms", "waking_ms", "pause_start_ms"}, 3},
		{"gc", KindGC, []string{"heap_before_bytes", "heap_after_bytes", "promoted_bytes", "fragmentation_bytes", "handles", "mechanisms", "committed_before_bytes", "committed_after_bytes"}, 0},
		{"locks", KindLocks, []string{"ms", "duration_ms", "owner", "lock_id"}, 0},
	} {
		whole := map[string]row{}
		for _, m := range rows(readReport(t, c.file, c.kind, RuntimeOptions{})) {
			whole[key(m)] = m
		}
		for _, longest := range []int{1, 30} {
			told, wrong := 0, map[string]int{}
			for seed := range int64(4) {
				random, losing, lost := rand.New(rand.NewSource(seed)), map[uint64]int{}, map[uint64]uint32{}
				for _, m := range rows(readReport(t, c.file, c.kind, RuntimeOptions{Wants: func(ev *nettrace.Event) bool {
					if ev.Metadata.Provider != nettrace.ProviderRuntime {
						return true
					}
					n := ev.CaptureThreadID
					if losing[n] == 0 && random.Intn(40+2*longest) == 0 {
						losing[n] = 1 + random.Intn(longest)
					}
					if losing[n] > 0 {
						losing[n]--
						lost[n]++
						return false
					}
					ev.Lost, lost[n] = lost[n], 0
					return true
				}})) {
					w := whole[key(m)]
					if m["k"] == "stats" || !assert.NotNil(t, w, "%v", m) {
						continue
					}
					told++
					for _, f := range c.fields {
						if v, ok := m[f]; ok && v != w[f] {
							wrong[f]++
						}
					}
				}
			}
			assert.Greater(t, told, 800)
			for f, n := range wrong {
				assert.LessOrEqual(t, n*1000, c.few*told, "%s of %d rows of %s, up to %d lost at a time", f, told, c.file, longest)
			}
		}
	}
}

// Where the event with the sizes was lost, a generation of which nothing went out may as well not
// have been collected.
func TestSurvivalWithoutSizes(t *testing.T) {
	g := gcRecord{Collection: runtimeevents.Collection{Generation: 1, HasHistory: true}}
	g.Gen[0] = runtimeevents.Generation{Before: 1000, Out: 250}
	g.Gen[1] = runtimeevents.Generation{Before: 1000}
	c := &Context{Frames: func(uint32) []string { return nil }}
	row := gcRowOf(1, &g, false, c)
	require.NotNil(t, row.Survival[0])
	assert.InDelta(t, 25.0, *row.Survival[0], 0.001)
	assert.Nil(t, row.Survival[1], "told nothing")
	g.HasSizes = true
	row = gcRowOf(1, &g, false, c)
	require.NotNil(t, row.Survival[1])
	assert.Zero(t, *row.Survival[1], "all of it is gone")
}
