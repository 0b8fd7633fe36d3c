package events

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The collector's own decoder reads each line, and finds every point with its value.
func TestOTLP(t *testing.T) {
	all, _ := points(t, recording)
	out, _ := writeCounters(t, recording, "otlp", nil)
	type key struct {
		scope, name string
		at          int64
		value       float64
	}
	got := map[key]int{}
	n := 0
	for line := range bytes.Lines([]byte(out)) {
		m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		n += m.DataPointCount()
		for _, r := range m.ResourceMetrics().All() {
			a := r.Resource().Attributes().AsRaw()
			assert.Equal(t, "Lab", a["service.name"])
			assert.Equal(t, "dotnet", a["process.runtime.name"])
			assert.NotZero(t, a["process.pid"])
			for _, s := range r.ScopeMetrics().All() {
				for _, m := range s.Metrics().All() {
					add := func(at int64, v float64) { got[key{s.Scope().Name(), m.Name(), at, v}]++ }
					switch m.Type() {
					case pmetric.MetricTypeGauge:
						for _, p := range m.Gauge().DataPoints().All() {
							add(int64(p.Timestamp()), p.DoubleValue())
						}
					case pmetric.MetricTypeSum:
						for _, p := range m.Sum().DataPoints().All() {
							add(int64(p.Timestamp()), p.DoubleValue())
						}
						assert.NotEqual(t, pmetric.AggregationTemporalityUnspecified, m.Sum().AggregationTemporality())
					case pmetric.MetricTypeSummary:
						for _, p := range m.Summary().DataPoints().All() {
							add(int64(p.Timestamp()), p.Sum())
							assert.NotZero(t, p.QuantileValues().Len())
						}
					default:
						t.Errorf("%s is a %s", m.Name(), m.Type())
					}
				}
			}
		}
	}
	want := 0
	for _, p := range all {
		v := p.Value
		switch {
		case p.Type == Histogram:
			v = p.Sum
		case !math.IsNaN(p.Total) && (p.Type == Counter || p.Type == UpDownCounter):
			v = p.Total
		}
		if math.IsNaN(v) {
			continue
		}
		want++
		assert.NotZero(t, got[key{p.Provider, p.Name, p.Time.UnixNano(), v}], "%s %s", p.Provider, p.Name)
	}
	assert.Equal(t, want, n)
	assert.Greater(t, want, 100)
}

// Tags are attributes, growth without a total is a delta over its interval.
func TestOTLPDelta(t *testing.T) {
	var b bytes.Buffer
	w := NewCounterWriter("otlp", &b, 0, 0)
	require.NoError(t, w.Add(&Point{Ns: 5e9, PID: 1, Provider: "P", Name: "n", Unit: "s", Tags: "a=1,b=2", Type: Rate, Interval: 2, Value: 7, Total: math.NaN()}))
	require.NoError(t, w.Add(&Point{Ns: 6e9, PID: 2, Provider: "P", Name: "g", Type: Gauge, Value: math.NaN()})) // nothing was measured
	require.NoError(t, w.Close(&CounterResult{}))
	m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, 1, m.DataPointCount())
	s := m.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "P", s.Scope().Name())
	sum := s.Metrics().At(0).Sum()
	assert.Equal(t, pmetric.AggregationTemporalityDelta, sum.AggregationTemporality())
	assert.True(t, sum.IsMonotonic())
	p := sum.DataPoints().At(0)
	assert.Equal(t, map[string]any{"a": "1", "b": "2"}, p.Attributes().AsRaw())
	assert.EqualValues(t, 3e9, p.StartTimestamp())
	assert.EqualValues(t, 7, p.DoubleValue())
	assert.Equal(t, "unknown_service", m.ResourceMetrics().At(0).Resource().Attributes().AsRaw()["service.name"])
}
