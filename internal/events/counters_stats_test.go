package events

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

var nan = math.NaN()

// ofInterval is what an EventCounter tells of one interval.
type ofInterval struct {
	mean     float64
	count    int32
	min, max float64
}

// meanTrace is a trace of an EventCounter "queue" of the provider "Lab", an interval each second.
func meanTrace(t *testing.T, intervals ...ofInterval) input.Opener {
	field := func(name string, typ nettrace.TypeCode) nettrace.Field { return nettrace.Field{Name: name, Type: typ} }
	payload := nettrace.Field{Name: "Payload", Type: nettrace.TypeObject, Fields: []nettrace.Field{
		field("Name", nettrace.TypeString), field("Mean", nettrace.TypeFloat64), field("StandardDeviation", nettrace.TypeFloat64), field("Count", nettrace.TypeInt32),
		field("Min", nettrace.TypeFloat64), field("Max", nettrace.TypeFloat64), field("IntervalSec", nettrace.TypeFloat32),
	}}
	m := &nettrace.Metadata{ID: 1, EventID: 2, Provider: "Lab", Name: "EventCounters", Fields: []nettrace.Field{{Type: nettrace.TypeObject, Fields: []nettrace.Field{payload}}}}
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	for i, v := range intervals {
		le := binary.LittleEndian
		var b []byte
		for _, c := range utf16.Encode([]rune("queue\x00")) {
			b = le.AppendUint16(b, c)
		}
		b = le.AppendUint64(b, math.Float64bits(v.mean))
		b = le.AppendUint64(b, 0)
		b = le.AppendUint32(b, uint32(v.count))
		b = le.AppendUint64(le.AppendUint64(b, math.Float64bits(v.min)), math.Float64bits(v.max))
		b = le.AppendUint32(b, math.Float32bits(1))
		require.NoError(t, w.Write(&nettrace.Event{Metadata: m, Time: int64(i+1) * 1e9, ThreadID: 1, Sorted: true, Payload: b}))
	}
	require.NoError(t, w.Close())
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
}

// written is what a trace is written as.
func written(t *testing.T, open input.Opener, format string) string {
	var out bytes.Buffer
	w := NewCounterWriter(format, &out, 0, 0)
	res, err := ReadCounters(t.Context(), open, nil, w.Add)
	require.NoError(t, err)
	require.NoError(t, w.Close(res))
	return out.String()
}

// seriesOf are the summaries of the json of points.
func seriesOf(t *testing.T, points ...Point) (list []valueSummary) {
	var out bytes.Buffer
	w := NewCounterWriter("json", &out, 0, 0)
	for i := range points {
		require.NoError(t, w.Add(&points[i]))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	var doc struct{ Series []valueSummary }
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc), out.String())
	return doc.Series
}

// TestSummaries holds what is told of a series as a whole: an interval weighs what it measured, the
// extremes are those that were recorded, and what the trace does not tell is not there.
func TestSummaries(t *testing.T) {
	at := func(f float64) *float64 { return &f }
	gauge := func(v float64, count int64, least, most float64) Point {
		return Point{Name: "x", Type: Gauge, Value: v, Total: nan, Count: count, Min: least, Max: most, Sum: nan}
	}
	histogram := func(count int64, sum, least, most float64, cumulative bool) Point {
		return Point{Name: "x", Type: Histogram, Value: nan, Total: nan, Count: count, Sum: sum, Min: least, Max: most, Cumulative: cumulative}
	}
	grown := func(typ CounterType, growth, total float64) Point {
		return Point{Name: "x", Type: typ, Value: growth, Total: total, Count: -1, Min: nan, Max: nan, Sum: nan}
	}
	for name, c := range map[string]struct {
		points               []Point
		least, mean, most, l *float64
		sum                  *float64
	}{
		"EventCounter":       {[]Point{gauge(10, 1000, 1, 50), gauge(nan, 0, nan, nan), gauge(110, 1, 110, 110)}, at(1), at(10110.0 / 1001), at(110), at(110), nil},
		"PollingCounter":     {[]Point{gauge(3, 1, 3, 3), gauge(5, 1, 5, 5)}, at(3), at(4), at(5), at(5), nil},
		"gauge of a Meter":   {[]Point{gauge(3, -1, nan, nan), gauge(5, -1, nan, nan)}, at(3), at(4), at(5), at(5), nil},
		"no extremes":        {[]Point{gauge(3, 1, nan, nan), gauge(5, 3, nan, nan)}, nil, at(4.5), nil, at(5), nil},
		"nothing measured":   {[]Point{gauge(nan, 0, nan, nan), gauge(nan, 0, nan, nan)}, nil, nil, nil, nil, nil},
		"histogram":          {[]Point{histogram(1000, 1000, nan, nan, false), histogram(0, 0, nan, nan, false), histogram(1, 1001, nan, nan, false)}, nil, at(2001.0 / 1001), nil, at(1001), nil},
		"histogram, told":    {[]Point{histogram(2, 6, 1, 5, false), histogram(1, 9, 9, 9, false)}, at(1), at(5), at(9), at(9), nil},
		"histogram, running": {[]Point{histogram(2, 6, 1, 5, true), histogram(2, 6, 1, 5, true), histogram(3, 15, 1, 9, true)}, at(1), at(5), at(9), at(9), nil},
		"began anew":         {[]Point{histogram(2, 6, 1, 5, true), histogram(1, 9, 9, 9, true)}, at(1), at(5), at(9), at(9), nil},
		"no count":           {[]Point{histogram(-1, nan, nan, nan, false)}, nil, nil, nil, nil, nil},
		"rate":               {[]Point{grown(Rate, 2, nan), grown(Rate, 6, nan)}, at(2), at(4), at(6), at(6), at(8)},
		"counter":            {[]Point{grown(Counter, 2, 102), grown(Counter, 6, 108)}, at(2), at(4), at(6), at(6), at(8)},
		"up-down counter":    {[]Point{grown(UpDownCounter, 4, 4), grown(UpDownCounter, 0, 4), grown(UpDownCounter, -2, 2)}, at(2), at(10.0 / 3), at(4), at(2), nil},
	} {
		list := seriesOf(t, c.points...)
		require.Len(t, list, 1, name)
		s := list[0]
		assert.Equal(t, len(c.points), s.Values, name)
		for _, f := range []struct {
			what      string
			want, got *float64
		}{{"min", c.least, s.Min}, {"mean", c.mean, s.Mean}, {"max", c.most, s.Max}, {"last", c.l, s.Last}, {"sum", c.sum, s.Sum}} {
			assert.Equal(t, f.want, f.got, "%s: %s", name, f.what)
		}
	}
}

// TestIdleEventCounter holds that an interval without a measurement has no value in any form: the event
// tells 0, from +Inf to -Inf. Only dotnet-counters writes that 0.
func TestIdleEventCounter(t *testing.T) {
	trace := meanTrace(t, ofInterval{10, 1000, 1, 50}, ofInterval{0, 0, math.Inf(1), math.Inf(-1)}, ofInterval{110, 1, 110, 110})
	for format, want := range map[string]string{
		"table":           "counter  unit  values  min   mean  max  last\nLab\n  queue             3    1  10.10  110   110\n",
		"wide":            "timestamp,ms,Lab/queue\n@1Z,1000,10\n@2Z,2000,\n@3Z,3000,110\n",
		"openmetrics":     "# TYPE lab_queue gauge\n# HELP lab_queue queue\nlab_queue 10 1\nlab_queue 110 3\n# EOF\n",
		"dotnet-counters": "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n@1Z,Lab,queue,Metric,10\n@2Z,Lab,queue,Metric,0\n@3Z,Lab,queue,Metric,110\n",
	} {
		assert.Equal(t, strings.NewReplacer("@", "1970-01-01T00:00:0", "Z", ".000Z").Replace(want), written(t, trace, format), format)
	}
	assert.Contains(t, written(t, trace, "csv"), "Z,2000,1,Lab,queue,,gauge,,1,,,,0,,,,,,,,\n")
	assert.Contains(t, written(t, trace, "ndjson"), `,"ms":2000,"pid":1,"provider":"Lab","name":"queue","type":"gauge","interval_s":1,"count":0}`)
	assert.Equal(t, 2, strings.Count(written(t, trace, "otlp"), `"asDouble"`))
}

// TestWideTicks holds that the values of an interval of Meters are one row, also where the process took
// long to tell them and told others meanwhile.
func TestWideTicks(t *testing.T) {
	var out bytes.Buffer
	w := NewCounterWriter("wide", &out, 0, 0)
	begin := time.Unix(0, 0).UTC()
	add := func(name string, typ CounterType, ms, end int, value float64) {
		require.NoError(t, w.Add(&Point{Ns: int64(ms) * 1e6, Time: begin.Add(time.Duration(end) * time.Millisecond), Provider: "M", Name: name, Type: typ, Value: value, Total: nan, Count: -1}))
	}
	add("a", Counter, 1003, 1000, 1)
	add("queue", Gauge, 1060, 1060, 7) // an EventCounter, at its own time
	add("b", Counter, 1094, 1000, 2)
	add("a", Counter, 2001, 2000, 3)
	add("b", Counter, 2002, 2000, 4)
	add("queue", Gauge, 2030, 2030, 8)
	add("queue", Gauge, 3030, 3030, math.Inf(1))
	require.NoError(t, w.Close(&CounterResult{}))
	assert.Equal(t, "timestamp,ms,M/a,M/queue,M/b\n"+
		"1970-01-01T00:00:01.000Z,1003,1,,2\n"+
		"1970-01-01T00:00:01.060Z,1060,,7,\n"+
		"1970-01-01T00:00:02.000Z,2001,3,8,4\n"+
		"1970-01-01T00:00:03.030Z,3030,,+Inf,\n", out.String())
}

// TestLimit holds that a limit is on what a form lists, and changes no figure in it.
func TestLimit(t *testing.T) {
	all := func(format string, limit int) (lines []string, shown string) {
		in, err := input.Open(t.Context(), recording, nil)
		require.NoError(t, err)
		defer in.Close()
		var out bytes.Buffer
		w := NewCounterWriter(format, &out, 0, limit)
		res, err := ReadCounters(t.Context(), in.Reader, nil, w.Add)
		require.NoError(t, err)
		require.NoError(t, w.Close(res))
		return strings.SplitAfter(out.String(), "\n"), res.Shown
	}
	for format, c := range map[string]struct {
		limit, head int // lines before what is limited
		shown       string
	}{
		"table": {3, 2, "3 of 34 counters"}, "openmetrics": {3, 0, "3 of 34 counters"}, "wide": {2, 1, "2 of 5 rows"},
		"csv": {7, 1, "7"}, "ndjson": {7, 0, "7"}, "dotnet-counters": {7, 1, "7"}, "json": {7, 1, "7 of 170 values"},
	} {
		whole, shown := all(format, 0)
		assert.Empty(t, shown, format)
		some, shown := all(format, c.limit)
		assert.Equal(t, c.shown, shown, format)
		switch format {
		case "openmetrics":
			some = some[:len(some)-2] // but # EOF
			assert.Equal(t, 3*5, len(some)-strings.Count(strings.Join(some, ""), "#"), format)
		case "json":
			assert.Equal(t, whole[len(whole)-2], some[len(some)-2], "the summaries are of all")
			some[c.limit] = strings.TrimSuffix(some[c.limit], "\n") + ",\n"
			some = some[:c.head+c.limit]
		case "table":
			some = some[:len(some)-1]
			assert.Len(t, some, c.head+c.limit, format)
			for i := range some {
				some[i], whole[i] = strings.Join(strings.Fields(some[i]), " "), strings.Join(strings.Fields(whole[i]), " ") // columns are narrower
			}
		default:
			some = some[:len(some)-1]
			assert.Len(t, some, c.head+c.limit, format)
		}
		assert.Equal(t, whole[:len(some)], some, format)
		many, shown := all(format, 1000)
		whole, _ = all(format, 0)
		assert.Equal(t, whole, many, format)
		assert.Empty(t, shown, format)
	}
	lines, shown := all("otlp", 3)
	assert.Equal(t, "3 of 34 counters", shown)
	assert.Equal(t, 3*5, strings.Count(strings.Join(lines, ""), `"asDouble"`))
}
