package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

const recording = "../../testdata/nettrace/counters.nettrace.zst"

func writeCounters(t testing.TB, name, format string, o *CounterOptions) (string, *CounterResult) {
	in, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer in.Close()
	var out bytes.Buffer
	w := NewCounterWriter(format, &out, 0, 0)
	require.NotNil(t, w)
	res, err := ReadCounters(context.Background(), in.Reader, o, w.Add)
	require.NoError(t, err)
	require.NoError(t, w.Close(res))
	return out.String(), res
}

func points(t testing.TB, name string) (all []Point, res *CounterResult) {
	in, err := input.Open(t.Context(), name, nil)
	require.NoError(t, err)
	defer in.Close()
	res, err = ReadCounters(context.Background(), in.Reader, nil, func(p *Point) error {
		q := *p
		q.Quantiles = append([]Quantile(nil), p.Quantiles...)
		all = append(all, q)
		return nil
	})
	require.NoError(t, err)
	return all, res
}

// TestKnownValues holds the figures of counters.md section 7.
func TestKnownValues(t *testing.T) {
	all, res := points(t, recording)
	assert.EqualValues(t, 170, res.Points)
	assert.Empty(t, res.Notes, "the message of two sessions is about our own")
	bySeries := map[string][]Point{}
	for _, p := range all {
		key := p.Name + "[" + p.Tags + "]"
		bySeries[key] = append(bySeries[key], p)
	}
	assert.Len(t, bySeries, 27+7)
	for name, want := range map[string]struct {
		typ         CounterType
		unit        string
		first, last float64
		sum         float64
	}{
		"cpu-usage":                        {Gauge, "%", 0.005922900770593871, 3.529364963028006, -1},
		"working-set":                      {Gauge, "MB", 38.944768, 42.958848, -1},
		"gc-heap-size":                     {Gauge, "MB", 1.163024, 3.7508, -1},
		"gen-0-gc-count":                   {Rate, "", 0, 0, 0},
		"gen-0-gc-budget":                  {Gauge, "MB", 83, 83, -1},
		"monitor-lock-contention-count":    {Rate, "", 4, 0, 4},
		"threadpool-completed-items-count": {Rate, "", 1856, 1924, 9530},
		"alloc-rate":                       {Rate, "B", 1017752, 648160, 3579936},
		"assembly-count":                   {Gauge, "", 12, 12, -1},
		"il-bytes-jitted":                  {Gauge, "B", 42924, 65431, -1},
		"methods-jitted-count":             {Gauge, "", 484, 678, -1},
		"time-in-jit":                      {Rate, "ms", 104.1015, 3.509299999999996, 181.8806},
		"total-pause-time-by-gc":           {Rate, "ms", 0, 0, 0},
	} {
		s := bySeries[name+"[]"]
		require.Len(t, s, 5, name)
		assert.Equal(t, want.typ, s[0].Type, name)
		assert.Equal(t, want.unit, s[0].Unit, name)
		assert.Equal(t, want.first, s[0].Value, name)
		assert.Equal(t, want.last, s[4].Value, name)
		assert.Equal(t, 0.9992822, s[0].Interval)
		sum := 0.0
		for _, p := range s {
			sum += p.Value
		}
		if want.sum >= 0 {
			assert.InDelta(t, want.sum, sum, 1e-9, name)
			assert.InDelta(t, s[0].Value/s[0].Interval, s[0].PerSecond(), 1e-12)
		} else {
			assert.True(t, math.IsNaN(s[0].PerSecond()))
		}
	}
	for _, kind := range []string{"k0", "k1", "k2", "k3"} {
		s := bySeries["orders[kind="+kind+"]"]
		require.Len(t, s, 5)
		assert.Equal(t, Counter, s[0].Type)
		assert.Equal(t, []float64{81, 81, 83, 414}, []float64{s[0].Value, s[0].Total, s[4].Value, s[4].Total})
		assert.Equal(t, "1.2", s[0].Version)
	}
	h := bySeries["latency[]"]
	require.Len(t, h, 5)
	assert.Equal(t, []Quantile{{0.5, 5, "0.5"}, {0.95, 6, "0.95"}, {0.99, 6, "0.99"}}, h[0].Quantiles)
	assert.EqualValues(t, 324, h[0].Count)
	assert.Equal(t, 1458.0, h[0].Sum)
	assert.EqualValues(t, 332, h[4].Count)
	assert.Equal(t, 1494.0, h[4].Sum)
	assert.Equal(t, "2026-11-21T05:52:49.503Z", string(appendWallClock(nil, h[0].Time)))
	assert.Equal(t, "2026-11-21T05:52:53.503Z", string(appendWallClock(nil, h[4].Time)))
	assert.Equal(t, 21.5, bySeries["temp[]"][0].Value)
	assert.Equal(t, 4.0, bySeries["inflight[]"][4].Total)
}

func TestCountersGolden(t *testing.T) {
	for _, format := range CounterFormats {
		got, _ := writeCounters(t, recording, format, nil)
		name := filepath.Join("testdata", "counters."+format)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o777))
			require.NoError(t, os.WriteFile(name, []byte(got), 0o666))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, format)
		switch format {
		case "csv", "wide", "dotnet-counters":
			rows, err := csv.NewReader(strings.NewReader(got)).ReadAll() // all rows are equally long
			require.NoError(t, err, format)
			assert.Len(t, rows, map[string]int{"csv": 171, "wide": 6, "dotnet-counters": 1 + 170 + 2*5}[format])
		case "json":
			assert.True(t, json.Valid([]byte(got)))
		case "openmetrics":
			checkOpenMetrics(t, got)
		}
	}
	assert.Nil(t, NewCounterWriter("xml", nil, 0, 0))
}

// checkOpenMetrics holds the rules of the text form: families stand together, one
// label set goes up in time, counters do not fall, the end is marked.
func checkOpenMetrics(t *testing.T, text string) {
	require.True(t, strings.HasSuffix(text, "\n# EOF\n"))
	families := map[string]string{}
	family := ""
	last := map[string]float64{}
	total := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if f := strings.Fields(line); strings.HasPrefix(line, "# TYPE ") {
			require.NotContains(t, families, f[2], "a family stands twice")
			family = f[2]
			families[family] = f[3]
			continue
		} else if strings.HasPrefix(line, "# UNIT ") {
			require.True(t, strings.HasSuffix(family, "_"+f[3]), line)
			continue
		} else if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, '}') + 1
		if cut == 0 {
			cut = strings.IndexByte(line, ' ')
		}
		key, rest := line[:cut], strings.Fields(line[cut:])
		name, labels, _ := strings.Cut(key, "{")
		names := map[string]bool{}
		for _, l := range regexp.MustCompile(`([^{,="]*)="(?:[^"\\]|\\.)*"`).FindAllStringSubmatch(labels, -1) {
			require.Regexp(t, "^[a-zA-Z][a-zA-Z0-9_]*$", l[1], line)
			require.NotContains(t, names, l[1], line)
			names[l[1]] = true
		}
		require.True(t, strings.HasPrefix(name, family), line)
		require.Len(t, rest, 2, line)
		v, err := strconv.ParseFloat(rest[0], 64)
		require.NoError(t, err)
		at, err := strconv.ParseFloat(rest[1], 64)
		require.NoError(t, err)
		before, found := last[key]
		require.True(t, !found || at > before, line)
		last[key] = at
		switch families[family] {
		case "counter":
			require.Equal(t, family+"_total", name)
			require.GreaterOrEqual(t, v, total[key])
			total[key] = v
		case "summary":
			require.Contains(t, []string{family, family + "_sum", family + "_count"}, name)
		default:
			require.Equal(t, family, name)
		}
	}
	require.NotEmpty(t, families)
}

func TestFilters(t *testing.T) {
	_, res := writeCounters(t, recording, "csv", &CounterOptions{Select: profile.Selection{Providers: []string{"lab.*"}}})
	assert.EqualValues(t, 35, res.Points)
	_, res = writeCounters(t, recording, "csv", &CounterOptions{Select: profile.Selection{Names: []string{"gen-?-gc-count", "orders"}}})
	assert.EqualValues(t, 35, res.Points)
}

// TestOldFile reads counters of .NET Core 3.1, which have no unit.
func TestOldFile(t *testing.T) {
	all, res := points(t, tracetest.Corpus(t, "nettrace", "dotnet-diagnostics", "trace.nettrace.gz"))
	assert.EqualValues(t, 3, res.Points)
	for _, p := range all {
		assert.Equal(t, Gauge, p.Type)
		assert.Equal(t, "System.Runtime", p.Provider)
		assert.NotEmpty(t, p.Name)
	}
}

// TestVector reads the payload of counters.md section 1.6.
func TestVector(t *testing.T) {
	b, err := hex.DecodeString("6300700075002d0075007300610067006500" + "0000" + "43005000550020005500730061006700" + "6500" + "0000" +
		"0000000000002940" + "0000000000000000" + "01000000" + "0000000000002940" + "0000000000002940" + "0000803f" +
		"49006e00740065007200760061006c003d003100300030003000" + "0000" + "4d00650061006e00" + "0000" + "0000" + "2500" + "0000")
	require.NoError(t, err)
	require.Len(t, b, 124)
	f := func(name string, typ nettrace.TypeCode) nettrace.Field {
		return nettrace.Field{Name: name, Type: typ}
	}
	fields := []nettrace.Field{
		f("Name", nettrace.TypeString), f("DisplayName", nettrace.TypeString), f("Mean", nettrace.TypeFloat64), f("StandardDeviation", nettrace.TypeFloat64),
		f("Count", nettrace.TypeInt32), f("Min", nettrace.TypeFloat64), f("Max", nettrace.TypeFloat64), f("IntervalSec", nettrace.TypeFloat32),
		f("Series", nettrace.TypeString), f("CounterType", nettrace.TypeString), f("Metadata", nettrace.TypeString), f("DisplayUnits", nettrace.TypeString),
	}
	l := nettrace.Layout{Fields: fields}
	values, err := l.AppendValues(nil, b, 8)
	require.NoError(t, err)
	assert.Equal(t, "cpu-usage", values[0].String())
	assert.Equal(t, 12.5, number(&values[2]))
	assert.Equal(t, 1.0, number(&values[7]))
	assert.Equal(t, "%", values[11].String())
}

func TestSplitTags(t *testing.T) {
	for in, want := range map[string][]Tag{
		"":                  nil,
		"a=1":               {{"a", "1"}},
		"a=1,b=2":           {{"a", "1"}, {"b", "2"}},
		"a=x,y,b=2":         {{"a", "x,y"}, {"b", "2"}},
		"q=select a=b,c=d":  {{"q", "select a=b"}, {"c", "d"}},
		"lonely":            {{"lonely", ""}},
		"a=,b=":             {{"a", ""}, {"b", ""}},
		"path=/a,=x,host=y": {{"path", "/a,=x"}, {"host", "y"}},
	} {
		assert.Equal(t, want, SplitTags(in), in)
	}
}

func TestQuantiles(t *testing.T) {
	assert.Empty(t, appendQuantiles(nil, ""))
	assert.Equal(t, []Quantile{{0.5, 19, "0.5"}, {0.99, 239, "0.99"}}, appendQuantiles(nil, "0.5=19;x;0.7=;0.99=239"))
}

func TestMetricNames(t *testing.T) {
	scales := map[string]float64{"MB": 1e6, "%": 0.01}
	for want, s := range map[string]series{
		"systemruntime_working_set_bytes":                {Point: Point{Provider: "System.Runtime", Name: "working-set", Unit: "MB"}},
		"systemruntime_cpu_usage_ratio":                  {Point: Point{Provider: "System.Runtime", Name: "cpu-usage", Unit: "%"}},
		"microsoftaspnetcorehosting_requests_per_second": {Point: Point{Provider: "Microsoft.AspNetCore.Hosting", Name: "requests-per-second", Unit: "count", Type: Rate}},
		"labmeter_orders":                                {Point: Point{Provider: "Lab.Meter", Name: "orders_total", Unit: "{order}", Type: Counter}},
		"labmeter_http_server_request_duration_s":        {Point: Point{Provider: "Lab.Meter", Name: "http.server.request.duration", Unit: "s", Type: Histogram}},
		"metric_9": {Point: Point{Provider: "é", Name: "9"}},
		"meter___": {Point: Point{Provider: "9Meter", Name: "äö"}},
	} {
		name, _, scale := metricName(&s)
		assert.Equal(t, want, name)
		assert.Equal(t, cmp.Or(scales[s.Unit], 1), scale)
	}
}

// TestOpenMetricsCollisions holds that series whose names or tags become equal stay apart.
func TestOpenMetricsCollisions(t *testing.T) {
	var out bytes.Buffer
	w := NewCounterWriter("openmetrics", &out, 0, 0)
	nan := math.NaN()
	for i, p := range []Point{
		{Provider: "A", Name: "x-y", Value: 1}, {Provider: "A", Name: "x.y", Value: 2}, {Provider: "A", Name: "x/y", Type: Rate, Value: 3},
		{Provider: "A", Name: "z", Tags: `a.b=1,a-b="2\`, Value: 4},
	} {
		p.Ns, p.Total, p.Count, p.Min, p.Max = int64(i), nan, -1, nan, nan
		require.NoError(t, w.Add(&p))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	assert.Equal(t, `# TYPE a_x_y gauge
# HELP a_x_y x-y
a_x_y 1
a_x_y{series="2"} 2
# TYPE a_x_y_counter counter
# HELP a_x_y_counter x/y
a_x_y_counter_total 3
# TYPE a_z gauge
# HELP a_z z
a_z{a_b="1",a_b_="\"2\\"} 4
# EOF
`, out.String())
}

// openMetricsOf writes points of provider A, one each 10 s.
func openMetricsOf(t *testing.T, points ...Point) string {
	var out bytes.Buffer
	w := NewCounterWriter("openmetrics", &out, 0, 0)
	for i, p := range points {
		p.Provider, p.Ns, p.Time = "A", int64(i), time.Unix(int64(10*i), 0)
		p.Min, p.Max, p.StdDev = math.NaN(), math.NaN(), math.NaN()
		require.NoError(t, w.Add(&p))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	return out.String()
}

// TestOpenMetricsValid holds what a strict reader demands of unusual values: no sample
// name is of two families, a counter does not fall, what was not told is not there.
func TestOpenMetricsValid(t *testing.T) {
	nan := math.NaN()
	grown := func(name string, growth float64) Point {
		return Point{Name: name, Type: Rate, Value: growth, Total: nan, Count: -1, Sum: nan}
	}
	value := func(name, unit string, v float64) Point {
		return Point{Name: name, Unit: unit, Value: v, Total: nan, Count: -1, Sum: nan}
	}
	assert.Equal(t, `# TYPE a_x_total gauge
# HELP a_x_total x-total
a_x_total 1 0
# TYPE a_x_counter counter
# HELP a_x_counter x
a_x_counter_total 3 10
# EOF
`, openMetricsOf(t, value("x-total", "", 1), grown("x", 3)), "names")
	assert.Equal(t, `# TYPE a_x counter
# HELP a_x x
a_x_total 3 0
# TYPE a_x_total_gauge gauge
# HELP a_x_total_gauge x-total
a_x_total_gauge 1 10
# EOF
`, openMetricsOf(t, grown("x", 3), value("x-total", "", 1)), "names")
	assert.Equal(t, `# TYPE a_x gauge
# HELP a_x x
a_x 5 0
a_x 3 10
a_x 4 20
# EOF
`, openMetricsOf(t, grown("x", 5), grown("x", -2), grown("x", 1)), "falls")
	assert.Equal(t, `# TYPE a_x counter
# HELP a_x x
a_x_total 5 0
a_x_total 1 10
# EOF
`, openMetricsOf(t, Point{Name: "x", Type: Counter, Value: 5, Total: 5}, Point{Name: "x", Type: Counter, Value: 1, Total: 1}), "begins anew")
	assert.Equal(t, `# TYPE a_h summary
# HELP a_h h
a_h{quantile="0.5"} 7 0
# EOF
`, openMetricsOf(t, Point{Name: "h", Type: Histogram, Value: nan, Total: nan, Count: -1, Sum: nan, Quantiles: []Quantile{{0.5, 7, "0.5"}}}), "no count")
	assert.Equal(t, `# TYPE a_x_y_bytes gauge
# UNIT a_x_y_bytes bytes
# HELP a_x_y_bytes x-y
a_x_y_bytes 2000000 0
a_x_y_bytes{series="2"} 7 10
# EOF
`, openMetricsOf(t, value("x-y", "MB", 2), value("x.y", "B", 7)), "units")
	low := func(quantile, sum float64) Point {
		return Point{Name: "h", Type: Histogram, Value: nan, Total: nan, Count: 2, Sum: sum, Quantiles: []Quantile{{0.5, quantile, "0.5"}, {0.99, 3, "0.99"}}}
	}
	gauges := `# TYPE a_h gauge
# HELP a_h h
a_h{quantile="0.5"} 1 0
a_h{quantile="0.5"} %d 10
a_h{quantile="0.99"} 3 0
a_h{quantile="0.99"} 3 10
# EOF
`
	assert.Equal(t, fmt.Sprintf(gauges, -1), openMetricsOf(t, low(1, 4), low(-1, 2)), "a negative quantile")
	assert.Equal(t, fmt.Sprintf(gauges, 1), openMetricsOf(t, low(1, 4), low(1, -2)), "a negative sum")
	assert.Equal(t, `# TYPE a_ratio gauge
# HELP a_ratio ratio
a_ratio 0.5 0
a_ratio +Inf 10
a_ratio -Inf 20
# EOF
`, openMetricsOf(t, value("ratio", "", 0.5), value("ratio", "", math.Inf(1)), value("ratio", "", math.Inf(-1))), "a ratio to nothing")
	for unit, want := range map[string]string{"µs": "us", "μs": "us", "°C": "", "/s": "per_s", "By/s": "By_s", "{req}/s": "", "[lb_av]": "lb_av"} {
		name, got, _ := metricName(&series{Point: Point{Provider: "A", Name: "x", Unit: unit}})
		assert.Equal(t, want, got, unit)
		assert.Equal(t, strings.TrimSuffix("a_x_"+want, "_"), name, unit)
	}
}

// TestOpenMetricsNames holds that no name is reserved, of a family or a label, and that no label
// stands twice.
func TestOpenMetricsNames(t *testing.T) {
	nan := math.NaN()
	value := func(name, tags string, v float64) Point {
		return Point{Name: name, Tags: tags, Value: v, Total: nan, Count: -1, Sum: nan}
	}
	grown := func(name, tags string, growth, total float64) Point {
		return Point{Name: name, Tags: tags, Type: Counter, Value: growth, Total: total, Count: -1, Sum: nan}
	}
	twin := func(instrument int, p Point) Point {
		p.Instrument = instrument
		return p
	}
	summary := Point{Name: "x", Type: Histogram, Value: nan, Total: nan, Count: 2, Sum: 6}
	for name, c := range map[string]struct {
		points []Point
		want   []string // lines without HELP and the times
	}{
		"a tag called series": {[]Point{twin(1, value("x", "series=2", 1)), twin(2, value("x", "series=2", 2)), twin(3, value("x", "series=2", 3))},
			[]string{"# TYPE a_x gauge", `a_x{series="2"} 1`, `a_x{series="2",series_="2"} 2`, `a_x{series="2",series_="3"} 3`}},
		"created, before a counter":  {[]Point{value("x_created", "", 1), grown("x", "", 1, 2)}, []string{"# TYPE a_x_created gauge", "a_x_created 1", "# TYPE a_x_counter counter", "a_x_counter_total 2"}},
		"created, behind a counter":  {[]Point{grown("x", "", 1, 2), value("x_created", "", 1)}, []string{"# TYPE a_x counter", "a_x_total 2", "# TYPE a_x_created_gauge gauge", "a_x_created_gauge 1"}},
		"created, behind a summary":  {[]Point{summary, value("x_created", "", 1)}, []string{"# TYPE a_x summary", "a_x_sum 6", "a_x_count 2", "# TYPE a_x_created_gauge gauge", "a_x_created_gauge 1"}},
		"an empty value is no label": {[]Point{value("x", "k=,j=1", 1), value("x", "j=1", 2), value("y", "k=", 3)}, []string{"# TYPE a_x gauge", `a_x{j="1"} 1`, `a_x{j="1",series="2"} 2`, "# TYPE a_y gauge", "a_y 3"}},
		"reserved labels":            {[]Point{value("x", "__name__=y,_a=1,a=2,9=3,quantile=4,le=5,=6", 1)}, []string{"# TYPE a_x gauge", `a_x{name__="y",a="1",a_="2",tag_9="3",quantile_="4",le_="5,=6"} 1`}},
		"one of two fell": {[]Point{grown("x", "k=1", 5, 5), grown("x", "k=2", 7, 7), grown("x", "k=1", -1, 4), grown("x", "k=2", 1, 8)},
			[]string{"# TYPE a_x gauge", `a_x{k="1"} 5`, `a_x{k="1"} 4`, `a_x{k="2"} 7`, `a_x{k="2"} 8`}},
	} {
		text := openMetricsOf(t, c.points...)
		checkOpenMetrics(t, text)
		var got []string
		for line := range strings.Lines(strings.TrimSuffix(text, "# EOF\n")) {
			if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "#") {
				line = line[:strings.LastIndexByte(line, ' ')]
			}
			if !strings.HasPrefix(line, "# HELP") {
				got = append(got, line)
			}
		}
		assert.Equal(t, c.want, got, name)
	}
}

// TestCompatInterval holds that the name of a rate tells the interval that was asked
// for: that of half a second is not of a second, a first one that is short no other.
func TestCompatInterval(t *testing.T) {
	var out bytes.Buffer
	w := NewCounterWriter("dotnet-counters", &out, 0, 0)
	for _, p := range []Point{{Interval: 0.4991607, Asked: 0.5}, {Interval: 0.42, Asked: 1}, {Interval: 60.02}, {Interval: 0.42}} {
		p.Provider, p.Name, p.Type, p.Value = "A", "x", Rate, 4
		require.NoError(t, w.Add(&p))
	}
	assert.Equal(t, "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n"+
		",A,x (Count / 0.5 sec),Rate,4\n,A,x (Count / 1 sec),Rate,4\n,A,x (Count / 60 sec),Rate,4\n,A,x (Count / 1 sec),Rate,4\n", out.String())
}

// TestTableLines holds that tags of a trace break no line of the table.
func TestTableLines(t *testing.T) {
	var out bytes.Buffer
	w := NewCounterWriter("table", &out, 0, 0)
	require.NoError(t, w.Add(&Point{Provider: "A\x1b[2J", Name: "x", Tags: "q=two\nlines\x1b[31m", Value: 4, Count: -1, Min: math.NaN(), Max: math.NaN()}))
	require.NoError(t, w.Close(&CounterResult{}))
	assert.Equal(t, "counter                unit  values  min  mean  max  last\nA\ufffd[2J\n  x[q=two lines\ufffd[31m]             1    4     4    4     4\n", out.String())
}

// TestTableVersions holds that a counter stands under the version of its own meter.
func TestTableVersions(t *testing.T) {
	var out bytes.Buffer
	w := NewCounterWriter("table", &out, 0, 0)
	for i, p := range []Point{{Provider: "M", Version: "1.0", Name: "a"}, {Provider: "E", Name: "b"}, {Provider: "M", Version: "2.0", Name: "c"}, {Provider: "M", Version: "1.0", Name: "d"}, {Provider: "M", Name: "e"}} {
		p.Value, p.Count, p.Ns = 4, -1, int64(i)
		require.NoError(t, w.Add(&p))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimRight(line[:min(len(line), len("  a  "))], " \n"))
	}
	assert.Equal(t, []string{"count", "M", "  e", "M 1.0", "  a", "  d", "M 2.0", "  c", "E", "  b"}, got)
}

// metricsTrace is a trace of the events of the Metrics provider: the id, then the values
// of the fields.
func metricsTrace(t *testing.T, events ...[]string) input.Opener {
	fields := map[string][]string{
		"1": {"Message"}, "2": {"sessionId", "intervalStartTime", "intervalEndTime"},
		"7": {"sessionId", "instrumentTags", "meterTags", "instrumentId"}, "5": {"sessionId", "meterName", "instrumentName", "tags", "lastValue", "instrumentId"},
		"4":  {"sessionId", "meterName", "meterVersion", "instrumentName", "unit", "tags", "rate", "value"},
		"6":  {"sessionId", "meterName", "instrumentName", "tags", "quantiles", "count", "sum"},
		"16": {"sessionId", "meterName", "instrumentName", "tags", "rate", "value"},
		"19": {"sessionId", "meterName", "instrumentName", "tags", "scale", "sum", "count", "zeroCount", "minimum", "maximum", "buckets"},
		"9":  {"sessionId", "errorMessage"}, "12": {"sessionId"}, "13": {"sessionId"}, "14": {"sessionId", "errorMessage"},
	}
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	metadata := map[string]*nettrace.Metadata{}
	for i, e := range events {
		m := metadata[e[0]]
		if m == nil {
			n, err := strconv.Atoi(e[0])
			require.NoError(t, err)
			m = &nettrace.Metadata{ID: uint32(n), EventID: n, Provider: metricsProvider, Name: "E" + e[0]}
			for _, f := range fields[e[0]] {
				typ := nettrace.TypeString
				switch {
				case strings.HasSuffix(f, "Time"):
					typ = nettrace.TypeDateTime
				case f == "instrumentId", f == "count", f == "scale", f == "zeroCount":
					typ = nettrace.TypeInt32
				case f == "sum", f == "minimum", f == "maximum":
					typ = nettrace.TypeFloat64
				}
				m.Fields = append(m.Fields, nettrace.Field{Name: f, Type: typ})
			}
			metadata[e[0]] = m
		}
		ev := nettrace.Event{Metadata: m, Time: int64(i), ThreadID: 1, Sorted: true}
		for i, s := range e[1:] {
			switch n, _ := strconv.ParseUint(s, 10, 64); m.Fields[i].Type {
			case nettrace.TypeDateTime: // in s since 2000
				ev.Payload = binary.LittleEndian.AppendUint64(ev.Payload, (n+12591158400)*1e7)
				continue
			case nettrace.TypeInt32:
				ev.Payload = binary.LittleEndian.AppendUint32(ev.Payload, uint32(n))
				continue
			case nettrace.TypeFloat64:
				f, err := strconv.ParseFloat(s, 64)
				require.NoError(t, err)
				ev.Payload = binary.LittleEndian.AppendUint64(ev.Payload, math.Float64bits(f))
				continue
			}
			for _, c := range utf16.Encode([]rune(s + "\x00")) {
				ev.Payload = binary.LittleEndian.AppendUint16(ev.Payload, c)
			}
		}
		require.NoError(t, w.Write(&ev))
	}
	require.NoError(t, w.Close())
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
}

// TestOtherListeners holds that the troubles of another session are not told as ours.
func TestOtherListeners(t *testing.T) {
	value := func(session string) []string { return []string{"4", session, "M", "", "x", "", "", "1", "2"} }
	n := 0
	res, err := ReadCounters(t.Context(), metricsTrace(t,
		[]string{"1", "SessionId argument received: a"},
		value("a"), value("b"), []string{"12", "b"}, []string{"9", "b", "theirs"}, []string{"14", "b", "theirs"}, []string{"13", "a"}, []string{"14", "a", "ours"},
	), nil, func(p *Point) error { n++; return nil })
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, []string{"the limit of histograms was reached: some are missing (MaxHistograms)",
		"a callback of an observable instrument failed: ours", "values of other listeners that were left out: 1"}, res.Notes)
}

// TestTwins holds that instruments of two meters of one name are two series, be they
// told apart by tags, by their numbers or, where there are none, by their places.
func TestTwins(t *testing.T) {
	tick := func(at string, values ...[]string) [][]string {
		end, err := strconv.Atoi(at)
		require.NoError(t, err)
		return append([][]string{{"2", "s", at, strconv.Itoa(end + 1)}}, values...)
	}
	value := func(tags, v, id string) []string { return []string{"5", "s", "M", "x", tags, v, id} }
	begin := func(meter, instrument, id string) []string { return []string{"7", "s", instrument, meter, id} }
	text := func(events ...[]string) string {
		var out bytes.Buffer
		w := NewCounterWriter("openmetrics", &out, 0, 0)
		_, err := ReadCounters(t.Context(), metricsTrace(t, events...), nil, w.Add)
		require.NoError(t, err)
		require.NoError(t, w.Close(&CounterResult{}))
		checkOpenMetrics(t, out.String())
		return out.String()
	}
	assert.Equal(t, `# TYPE m_x gauge
# HELP m_x x
m_x{host="a",of="i",k="1"} 1 946684801
m_x{host="b"} 2 946684801
`+"# EOF\n", text(slices.Concat([][]string{begin("host=a", "of=i", "1"), begin("host=b", "", "2")}, tick("0", value("k=1", "1", "1"), value("", "2", "2")))...), "tags")
	for _, ids := range [][]string{{"3", "4"}, {"0", "0"}} {
		assert.Equal(t, `# TYPE m_x gauge
# HELP m_x x
m_x 1 946684801
m_x 3 946684802
m_x{series="2"} 2 946684801
m_x{series="2"} 4 946684802
`+"# EOF\n", text(slices.Concat(tick("0", value("", "1", ids[0]), value("", "2", ids[1])), tick("1", value("", "3", ids[0]), value("", "4", ids[1])))...), ids)
	}
}

// TestNamesOfTwins holds that counters that have a name in common are told apart in every form.
func TestNamesOfTwins(t *testing.T) {
	values := []Point{
		{PID: 1, Provider: "M", Name: "x", Value: 1, Instrument: 3, Count: -1},
		{PID: 1, Provider: "M", Name: "x", Value: 5, Instrument: 7, Count: -1},
		{PID: 1, Provider: "M", Name: "x", Value: 2, Instrument: 4, Version: "2.0", Count: -1},
		{PID: 1, Provider: "M", Name: "y", Value: 3, Instrument: 5, Unit: "s", Count: -1},
		{PID: 1, Provider: "M", Name: "y", Value: 3, Instrument: 6, Type: Counter, Count: -1},
		{PID: 1, Provider: "M", Name: "z", Value: 4, Count: -1},
		{PID: 2, Provider: "M", Name: "z", Value: 4, Count: -1},
	}
	form := func(format string) string {
		var out bytes.Buffer
		w := NewCounterWriter(format, &out, 0, 0)
		for _, p := range values {
			p.Total, p.Min, p.Max, p.StdDev, p.Sum = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
			require.NoError(t, w.Add(&p))
		}
		require.NoError(t, w.Close(&CounterResult{}))
		return out.String()
	}
	wide, _, _ := strings.Cut(form("wide"), "\n")
	assert.Equal(t, "timestamp,ms,M/x,M/x (series 2),M/x (version 2.0),M/y (gauge) (s),M/y (counter),M/z (process 1),M/z (process 2)", wide)
	for _, name := range []string{"x", "x (series 2)", "x (version 2.0)", "y (gauge)", "y (counter)", "z (process 1)", "z (process 2)"} {
		assert.Contains(t, form("table"), "\n  "+name+" ", name)
	}
	assert.Contains(t, form("json"), `{"pid":1,"provider":"M","version":"2.0","name":"x","instrument":4,"type":"gauge"`)
	assert.Contains(t, form("csv"), "M,x,,gauge,,,2,,,,,,,,,2.0,4,\n")
	var ids []Series
	for i := range values[:5] {
		ids = append(ids, values[4-i].Series())
	}
	assert.Equal(t, []string{"M/y (counter)", "M/y (s) (gauge)", "M/x (version 2.0)", "M/x (series 2)", "M/x"}, SeriesNames(ids))
}

// TestCumulativeCSV holds that a table says of which rows the figures are of all the time so far.
func TestCumulativeCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(written(t, metricsTrace(t, [][]string{
		{"1", "Histogram Aggregation argument received: scale=20;maxBuckets=160"}, {"2", "s", "0", "1"}, {"19", "s", "M", "h", "", "0", "6", "2", "0", "1", "5", ""},
		{"1", "Histogram Aggregation argument received: scale=20;maxBuckets=160;reportDeltas=true"}, {"19", "s", "M", "h", "", "0", "6", "2", "0", "1", "5", ""},
	}...), "csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	for i, want := range []string{"cumulative", "true", ""} {
		assert.Equal(t, want, rows[i][len(rows[i])-1])
	}
}

// dump builds a block by the recipe of counters.md section 3.7: every scalar differs.
func dump(bits int) []byte {
	le := binary.LittleEndian
	b := bytes.Repeat([]byte{0xcd}, controlSize)
	flags, size := uint16(3), uint32(size64)
	if bits == 32 {
		flags, size = 7, size32
	}
	for i, v := range []uint32{2, 1, 0, 0} {
		le.PutUint32(b[4*i:], v)
	}
	le.PutUint16(b[16:], 4)
	le.PutUint16(b[18:], flags)
	le.PutUint32(b[20:], controlSize)
	le.PutUint32(b[28:], 1)
	le.PutUint32(b[32:], headerSize)
	le.PutUint32(b[36:], size)
	le.PutUint16(b[40:], uint16(size))
	fields, _ := layout(bits/8, bits/8)
	for k, f := range fields {
		v := uint64(0x1000*k + 7)
		if f.size == 8 {
			le.PutUint64(b[40+f.offset:], v|uint64(k)<<33)
		} else {
			le.PutUint32(b[40+f.offset:], uint32(v))
		}
	}
	return append(b, make([]byte, 31*controlSize)...)
}

func TestBlockLayout(t *testing.T) {
	for _, c := range []struct {
		word, pack, total int
		at                map[string]int
	}{
		{8, 8, size64, map[string]int{"GenCollections0": 8, "TimeInGC": 152, "SinkBlocks": 168, "RemoteCalls": 176, "CCW": 200, "ClassesLoaded.Current": 224, "TimeLoading": 248, "LoaderHeapSize": 264, "Thrown": 280, "QueueLength.Total": 304, "MethodsJitted": 324, "TimeInJitBase": 344, "TotalRuntimeChecks": 352, "TimeAuthorize": 360, "StackWalkDepth": 380}},
		{4, 4, size32, map[string]int{"GenCollections0": 4, "TimeInGC": 76, "SinkBlocks": 88, "RemoteCalls": 92, "CCW": 116, "ClassesLoaded.Current": 136, "TimeLoading": 160, "LoaderHeapSize": 176, "Thrown": 184, "MethodsJitted": 228, "TotalRuntimeChecks": 252, "TimeAuthorize": 256, "StackWalkDepth": 276}},
		{4, 8, 288, map[string]int{"TotalRuntimeChecks": 256, "StackWalkDepth": 284}}, // what natural alignment would give
	} {
		fields, total := layout(c.word, c.pack)
		assert.Equal(t, c.total, total)
		got := map[string]int{}
		for _, f := range fields {
			got[f.name] = f.offset
		}
		for name, at := range c.at {
			assert.Equal(t, at, got[name], "%s, word %d, pack %d", name, c.word, c.pack)
		}
	}
}

func TestBlocks(t *testing.T) {
	for _, bits := range []int{32, 64} {
		blocks, err := ParseBlocks(dump(bits))
		require.NoError(t, err)
		require.Len(t, blocks, 1)
		b := blocks[0]
		require.Empty(t, b.Skipped)
		assert.Equal(t, bits, b.Bits)
		assert.False(t, b.Torn)
		fields, _ := layout(bits/8, bits/8)
		for k, f := range fields {
			want := int64(0x1000*k + 7)
			if f.size == 8 {
				want |= int64(k) << 33
			}
			assert.Equal(t, Figure{Section: f.section, Name: f.name, Value: want}, b.Figures[k])
		}
		values := map[string]float64{}
		for _, f := range b.Figures[:len(fields)] {
			values[f.Name] = float64(f.Value)
		}
		percent := func(section, name, part, base string) Figure {
			return Figure{Section: section, Name: name, Percent: 100 * values[part] / values[base], Derived: true}
		}
		assert.Equal(t, []Figure{
			{Section: "GC", Name: "BytesInAllHeaps", Value: int64(values["GenHeapSize1"] + values["GenHeapSize2"] + values["LargeObjSize"]), Derived: true},
			percent("GC", "PercentTimeInGC", "TimeInGC", "TimeInGCBase"), percent("Jit", "PercentTimeInJit", "TimeInJit", "TimeInJitBase"),
			percent("Security", "PercentTimeInRTChecks", "TimeRTchecks", "TimeRTchecksBase"),
		}, b.Figures[len(fields):])
		for _, format := range []string{"csv", "table", "json", "ndjson"} {
			var out bytes.Buffer
			require.NoError(t, WriteBlocks(&out, blocks, format))
			assert.Contains(t, out.String(), "BytesInAllHeaps")
		}
	}
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change func([]byte)
		want   string
	}{
		"odd counter":   {func(b []byte) { le.PutUint32(b, 3) }, ""},
		"relative":      {func(b []byte) { le.PutUint32(b[32:], 0) }, ""},
		"not ready":     {func(b []byte) { le.PutUint16(b[18:], 1) }, "initialized"},
		"no flags":      {func(b []byte) { le.PutUint16(b[18:], 0) }, "had not begun"},
		"outside":       {func(b []byte) { le.PutUint32(b[32:], 2000); le.PutUint16(b[2000:], size64) }, "cut off"},
		"far outside":   {func(b []byte) { le.PutUint32(b[32:], 1<<31) }, "outside"},
		"empty":         {func(b []byte) { le.PutUint32(b[32:], 0xffffffff) }, "empty"},
		"two entries":   {func(b []byte) { le.PutUint32(b[28:], 2) }, "2 entries"},
		"version":       {func(b []byte) { le.PutUint16(b[16:], 5) }, "version 5"},
		"contradiction": {func(b []byte) { le.PutUint16(b[18:], 7) }, "32-bit"},
		"block size":    {func(b []byte) { le.PutUint32(b[20:], 4096) }, "block size 4096"},
	} {
		b := dump(64)
		c.change(b)
		blocks, err := ParseBlocks(b)
		require.NoError(t, err, name)
		require.Len(t, blocks, 1, name)
		assert.Equal(t, name == "odd counter", blocks[0].Torn, name)
		if c.want == "" {
			assert.Empty(t, blocks[0].Skipped, name)
			continue
		}
		assert.Contains(t, blocks[0].Skipped, c.want, name)
		assert.Empty(t, blocks[0].Figures)
	}
	free := dump(64)
	copy(free[5*controlSize:], free[:controlSize])
	clear(free[:controlSize])
	blocks, err := ParseBlocks(free)
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	assert.Equal(t, 5, blocks[0].Index)
	whole := dump(64)
	for n := range 2 * controlSize {
		ok := IsBlock(whole[:n])
		assert.Equal(t, n >= headerSize+size64, ok, "cut to %d bytes", n)
	}
	assert.False(t, IsBlock(bytes.Repeat([]byte{0xff}, 4096)))
	_, err = ParseBlocks(make([]byte, 65536))
	assert.ErrorIs(t, err, ErrNoBlock)
}

// FuzzParseBlocks holds that no bytes make it panic.
// TestBareBlock reads counters without the control block around them.
func TestBareBlock(t *testing.T) {
	for bits, size := range map[int]int{64: size64, 32: size32} {
		whole, err := ParseBlocks(dump(bits))
		require.NoError(t, err)
		bare := dump(bits)[headerSize : headerSize+size]
		require.True(t, IsBlock(bare))
		blocks, err := ParseBlocks(bare)
		require.NoError(t, err)
		assert.Equal(t, whole[0].Figures, blocks[0].Figures)
		assert.Equal(t, bits, blocks[0].Bits)
		assert.False(t, IsBlock(bare[:size-1]))
	}
}

func FuzzParseBlocks(f *testing.F) {
	f.Add(dump(64)[:controlSize])
	f.Add(dump(32)[:headerSize+size32])
	f.Fuzz(func(t *testing.T, b []byte) {
		blocks, err := ParseBlocks(b)
		if err != nil {
			require.ErrorIs(t, err, ErrNoBlock)
			return
		}
		for _, k := range blocks {
			require.True(t, (k.Skipped == "") == (len(k.Figures) > 0))
		}
	})
}
