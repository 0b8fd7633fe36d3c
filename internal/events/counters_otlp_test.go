package events

import (
	"bytes"
	"math"
	"strconv"
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

// otlpOf are the metrics of points of the provider P, one each second.
func otlpOf(t *testing.T, points ...Point) (list []pmetric.Metric) {
	var b bytes.Buffer
	w := NewCounterWriter("otlp", &b, 0, 0)
	for i, p := range points {
		p.Provider, p.Ns, p.PID, p.Interval = "P", int64(i+1)*1e9, 1, 1
		require.NoError(t, w.Add(&p))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(b.Bytes())
	require.NoError(t, err)
	for _, m := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		list = append(list, m)
	}
	return list
}

// TestOTLPAttributes holds that keys are unique and no tag is lost, and that equal tags of two instruments
// do not make one series of them.
func TestOTLPAttributes(t *testing.T) {
	for tags, want := range map[string]map[string]any{
		"":                              {},
		"a=1,b=2":                       {"a": "1", "b": "2"},
		"a=,b=2":                        {"a": "", "b": "2"},
		"k=1,k=2":                       {"k": []any{"1", "2"}},
		"k=1,j=3,k=,k=2":                {"k": []any{"1", "", "2"}, "j": "3"},
		"tracefix.series=9,lonely=x,=y": {"tracefix.series": "9", "lonely": "x,=y"},
	} {
		list := otlpOf(t, Point{Name: "x", Tags: tags, Value: 4})
		require.Len(t, list, 1)
		assert.Equal(t, want, list[0].Gauge().DataPoints().At(0).Attributes().AsRaw(), tags)
	}
	grown := func(instrument int, tags string, total float64) Point {
		return Point{Name: "x", Type: Counter, Tags: tags, Instrument: instrument, Value: 1, Total: total}
	}
	list := otlpOf(t, grown(2, "k=1", 5), grown(7, "k=1", 100), grown(2, "k=1", 6), grown(7, "k=1", 101), grown(8, "tracefix.series=2", 1), grown(9, "tracefix.series=2", 1))
	require.Len(t, list, 1, "of one metric")
	type attributes = map[string]any
	var got []attributes
	for _, p := range list[0].Sum().DataPoints().All() {
		got = append(got, p.Attributes().AsRaw())
	}
	one, two := attributes{"k": "1"}, attributes{"k": "1", "tracefix.series": int64(2)}
	assert.Equal(t, []attributes{one, two, one, two, {"tracefix.series": "2"}, {"tracefix.series": "2", "tracefix.series_": int64(2)}}, got)
}

// TestOTLPFalls holds that only what does not fall is called monotonic, and that a total that began
// anew says when.
func TestOTLPFalls(t *testing.T) {
	point := func(typ CounterType, tags string, growth, total float64) Point {
		return Point{Name: "x", Type: typ, Tags: tags, Value: growth, Total: total}
	}
	for name, c := range map[string]struct {
		points    []Point
		monotonic bool
		starts    []int64 // s
	}{
		"grows":              {[]Point{point(Counter, "", 5, 5), point(Counter, "", 0, 5), point(Counter, "", 1, 6)}, true, []int64{0, 0, 0}},
		"falls":              {[]Point{point(Counter, "", 5, 5), point(Counter, "", -1, 4), point(Counter, "", 1, 5)}, false, []int64{0, 0, 0}},
		"falls, rate unsaid": {[]Point{point(Counter, "", 5, 5), point(Counter, "", nan, 4)}, false, []int64{0, 0}},
		"began anew":         {[]Point{point(Counter, "", 5, 5), point(Counter, "", 1, 1), point(Counter, "", 1, 2)}, true, []int64{0, 1, 1}},
		"one of two falls":   {[]Point{point(Counter, "k=1", 5, 5), point(Counter, "k=2", 5, 5), point(Counter, "k=1", -1, 4)}, false, []int64{0, 0, 0}},
		"rate":               {[]Point{point(Rate, "", 5, nan), point(Rate, "", 0, nan)}, true, []int64{0, 1}},
		"rate falls":         {[]Point{point(Rate, "", 5, nan), point(Rate, "", -6, nan)}, false, []int64{0, 1}},
		"up-down counter":    {[]Point{point(UpDownCounter, "", 5, 5), point(UpDownCounter, "", 2, 2)}, false, []int64{0, 0}},
	} {
		list := otlpOf(t, c.points...)
		require.Len(t, list, 1, name)
		assert.Equal(t, c.monotonic, list[0].Sum().IsMonotonic(), name)
		for i, p := range list[0].Sum().DataPoints().All() {
			assert.EqualValues(t, c.starts[i]*1e9, p.StartTimestamp(), "%s %d", name, i)
		}
	}
}

// TestOTLPExponential holds that a base-2 histogram keeps its buckets, which the largest measurement places.
func TestOTLPExponential(t *testing.T) {
	event := func(scale, sum, count, zeros, least, most, buckets string) []string {
		return []string{"19", "s", "M", "h", "z=1", scale, sum, count, zeros, least, most, buckets}
	}
	message := []string{"1", "Histogram Aggregation argument received: scale=20; ReportDeltas = TRUE"}
	for name, c := range map[string]struct {
		events      [][]string
		temporality pmetric.AggregationTemporality
		scale       int32
		offset      int32
		buckets     []uint64
		zeros       uint64
		min, max    float64
	}{
		"running":     {[][]string{event("3", "12.5", "4", "0", "0.5", "6", "1, 2, 0, 1")}, cumulative, 3, 17, []uint64{1, 2, 0, 1}, 0, 0.5, 6},
		"deltas":      {[][]string{message, event("0", "12.5", "4", "0", "1.5", "8", "1, 2, 1")}, delta, 0, 0, []uint64{1, 2, 1}, 0, 1.5, 8},
		"zeros":       {[][]string{event("0", "0.25", "3", "2", "0", "0.25", "1")}, cumulative, 0, -3, []uint64{1}, 2, 0, 0.25},
		"only zeros":  {[][]string{event("20", "0", "2", "2", "0", "0", "")}, cumulative, 20, 0, nil, 2, 0, 0},
		"empty ends":  {[][]string{event("1", "3", "1", "0", "3", "3", "0, 0, 1, 0")}, cumulative, 1, 1, []uint64{0, 0, 1, 0}, 0, 3, 3},
		"no interval": {[][]string{message, event("2", "0", "0", "0", "1.7976931348623157E+308", "-1.7976931348623157E+308", "")}, delta, 2, 0, nil, 0, 0, 0},
	} {
		m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(written(t, metricsTrace(t, c.events...), "otlp")))
		require.NoError(t, err)
		h := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram()
		assert.Equal(t, c.temporality, h.AggregationTemporality(), name)
		require.Equal(t, 1, h.DataPoints().Len(), name)
		p := h.DataPoints().At(0)
		last := c.events[len(c.events)-1]
		assert.Equal(t, last[7], strconv.FormatUint(p.Count(), 10), name)
		assert.Equal(t, last[6], strconv.FormatFloat(p.Sum(), 'f', -1, 64), name)
		assert.Equal(t, c.scale, p.Scale(), name)
		assert.Equal(t, c.offset, p.Positive().Offset(), name)
		assert.Equal(t, c.buckets, p.Positive().BucketCounts().AsRaw(), name)
		assert.Equal(t, c.zeros, p.ZeroCount(), name)
		assert.Equal(t, p.Count() > 0, p.HasMin() && p.HasMax(), name)
		assert.Equal(t, []float64{c.min, c.max}, []float64{p.Min(), p.Max()}, name)
		assert.Equal(t, map[string]any{"z": "1"}, p.Attributes().AsRaw())
	}
	// Buckets that cannot be placed are left out, with the kind of histogram that needs them.
	for name, e := range map[string][]string{
		"unreadable": event("3", "12.5", "4", "0", "0.5", "6", "1; 2"), "no maximum": event("3", "12.5", "4", "0", "0.5", "NaN", "1, 3"), "scale": event("21", "12.5", "4", "0", "0.5", "6", "1, 3"),
	} {
		m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(written(t, metricsTrace(t, e), "otlp")))
		require.NoError(t, err)
		p := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Summary().DataPoints().At(0)
		assert.EqualValues(t, 4, p.Count(), name)
		assert.Equal(t, 12.5, p.Sum(), name)
		assert.Equal(t, 0.5, p.QuantileValues().At(0).Value(), name)
	}
}

// TestBucketOf holds that a bucket ends with the bound that it holds.
func TestBucketOf(t *testing.T) {
	for _, c := range []struct {
		v     float64
		scale int
		want  int64
	}{
		{1, 0, -1}, {1, 20, -1}, {1, -11, -1}, {2, 0, 0}, {2, 3, 7}, {3, 0, 1}, {4, -1, 0}, {5, -1, 1}, {0.5, 0, -2}, {0.5, 3, -9}, {0.3, 1, -4},
		{math.MaxFloat64, 0, 1023}, {math.MaxFloat64, -11, 0}, {math.SmallestNonzeroFloat64, 0, -1075}, {math.SmallestNonzeroFloat64, 20, -1074<<20 - 1},
	} {
		assert.Equal(t, c.want, bucketOf(c.v, c.scale), "%g, scale %d", c.v, c.scale)
	}
	for scale := -3; scale <= 8; scale++ {
		base := math.Exp2(math.Ldexp(1, -scale))
		for v := 0.001; v < 1e6; v *= 1.37 {
			i := float64(bucketOf(v, scale))
			assert.True(t, math.Pow(base, i) < v*(1+1e-12) && v <= math.Pow(base, i+1)*(1+1e-12), "%g, scale %d", v, scale)
		}
	}
}
