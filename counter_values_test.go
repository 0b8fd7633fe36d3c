package tracefix_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/nettrace"
)

const countersTrace = "testdata/nettrace/counters.nettrace.zst"

// The values of one counter, in order of time.
func ExampleNewCounterScanner() {
	counters := tracefix.NewCounterScanner(func(v *tracefix.CounterValue) error {
		if v.Provider == "System.Runtime" && v.Name == "gc-heap-size" && v.Time < int64(3*time.Second) {
			fmt.Printf("%v %.2f %s\n", time.Duration(v.Time).Round(time.Second), v.Value, v.Unit)
		}
		return nil
	})
	if err := tracefix.Scan(context.Background(), countersTrace, counters); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1s 1.16 MB
	// 2s 1.83 MB
}

func TestCounterScanner(t *testing.T) {
	var all []*tracefix.CounterValue
	types := map[tracefix.CounterType]int{}
	scanner := tracefix.NewCounterScanner(func(v *tracefix.CounterValue) error {
		all = append(all, v)
		types[v.Type]++
		return nil
	})
	assert.Empty(t, scanner.Notes())
	require.NoError(t, tracefix.Scan(t.Context(), countersTrace, scanner))
	require.NotEmpty(t, all)
	last := int64(0)
	for _, v := range all {
		assert.GreaterOrEqual(t, v.Time, last)
		last = v.Time
		assert.NotEmpty(t, v.Name)
		assert.NotEmpty(t, v.Provider)
		assert.NotEmpty(t, v.Type.String())
		if v.Type == tracefix.RateCounter {
			assert.InDelta(t, v.Value/v.Interval.Seconds(), v.PerSecond(), 1e-9)
		}
		if v.Type == tracefix.GaugeCounter {
			assert.True(t, math.IsNaN(v.PerSecond()))
		}
	}
	t.Log(len(all), types)
	assert.Positive(t, types[tracefix.GaugeCounter])

	n := 0
	stops := tracefix.NewCounterScanner(func(*tracefix.CounterValue) error {
		n++
		return nettrace.ErrStop
	})
	require.NoError(t, tracefix.Scan(t.Context(), countersTrace, stops, tracefix.NewCounterScanner(nil)))
	assert.Equal(t, 1, n)
}
