package load

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// waitsFor are the amounts of a trace of one wait for a lock and one for nothing known, with so many
// events lost between their starts and ends.
func waitsFor(t *testing.T, lost uint32, weights ...string) (got string) {
	ids := map[int]*nettrace.Metadata{}
	for i, id := range []int{runtimeevents.IDContentionStart, runtimeevents.IDContentionStop, runtimeevents.IDWaitStart, runtimeevents.IDWaitStop} {
		ids[id] = &nettrace.Metadata{Index: i, ID: uint32(i + 1), Provider: nettrace.ProviderRuntime, EventID: id}
	}
	other := &nettrace.Metadata{Index: 4, ID: 5, Provider: "Other", EventID: 1, Name: "Told"}
	b := written(t, 4, func(write func(nettrace.Event)) {
		event := func(m *nettrace.Metadata, lost uint32) {
			write(nettrace.Event{ThreadID: 9, CaptureThreadID: 9, Processor: -1, Metadata: m, Payload: make([]byte, 16), Lost: lost})
		}
		event(ids[runtimeevents.IDContentionStart], 0)
		event(ids[runtimeevents.IDWaitStart], 0)
		event(other, lost)
		event(ids[runtimeevents.IDWaitStop], 0)
		event(ids[runtimeevents.IDContentionStop], 0)
	})
	p, _, err := Profile(t.Context(), bytesOpener(b), &Options{Weights: weights})
	require.NoError(t, err)
	defer func() { got += strings.Join(p.Meta.Notes, ", ") }()
	for i, w := range p.Weights {
		for _, th := range p.Threads {
			for v := range p.Values(th, i) {
				got += fmt.Sprintf("%s %g, ", w.Name, v.Amount)
			}
		}
	}
	return got
}

// What else is asked for of the event that starts a wait takes nothing from it.
func TestWaitsBesideTheirEvents(t *testing.T) {
	for _, events := range [][]string{{"81", "301"}, nil} {
		assert.Contains(t, waitsFor(t, 0, append([]string{"contention", "wait"}, events...)...), "contention 4, wait 2, ")
		assert.Contains(t, waitsFor(t, 0, append(events, "contention", "wait")...), "contention 4, wait 2, ")
	}
}

// Events that were lost may have ended a wait, whatever event tells of them. It is said how many
// waits have no end: those of a deadlock are the longest of all.
func TestWaitsWithLostEvents(t *testing.T) {
	assert.Equal(t, "--weight contention lacks waits without an end (a deadlock, the end of the trace, Lock.TryEnter that gives up): 1, "+
		"--weight wait lacks waits without an end (a deadlock, the end of the trace): 1", waitsFor(t, 3, "contention", "wait"))
	assert.NotContains(t, waitsFor(t, 0, "contention", "wait"), "lacks")
}

// What is too much for sums to hold is no amount.
func TestFieldsOfAnySize(t *testing.T) {
	m := &nettrace.Metadata{ID: 1, Provider: "Other", EventID: 1, Name: "Told", Fields: []nettrace.Field{{Name: "V", Type: nettrace.TypeFloat64}}}
	b := written(t, 4, func(write func(nettrace.Event)) {
		for _, v := range []float64{1.7e308, 2, math.NaN(), -1.7e308, math.Inf(1), 3} {
			write(nettrace.Event{ThreadID: 9, CaptureThreadID: 9, Processor: -1, Metadata: m, Payload: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))})
		}
	})
	p, _, err := Profile(t.Context(), bytesOpener(b), &Options{Weights: []string{"Told=V"}})
	require.NoError(t, err)
	assert.EqualValues(t, 5, p.TopValues(0, 0, false).Total)
}

// An event that Write<T> wrote has its fields in an object without a name.
func TestFieldsOfWrite(t *testing.T) {
	fields := []nettrace.Field{{Name: "Name", Type: nettrace.TypeString}, {Name: "Size", Type: nettrace.TypeInt32}}
	m := &nettrace.Metadata{ID: 1, Provider: "Other", EventID: 1, Name: "Told", Fields: []nettrace.Field{{Type: nettrace.TypeObject, Fields: fields}}}
	b := written(t, 4, func(write func(nettrace.Event)) {
		for _, v := range []byte{2, 3} {
			write(nettrace.Event{ThreadID: 9, CaptureThreadID: 9, Processor: -1, Metadata: m, Payload: []byte{'x', 0, 0, 0, v, 0, 0, 0}})
		}
	})
	for weight, want := range map[string]float64{"Told=size": 5, "Told=Name": 0, "Told=Other": 0} {
		p, _, err := Profile(t.Context(), bytesOpener(b), &Options{Weights: []string{weight}})
		require.NoError(t, err)
		assert.Equal(t, want, p.TopValues(0, 0, false).Total, weight)
	}
}
