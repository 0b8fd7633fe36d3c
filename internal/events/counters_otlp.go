package events

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/export/otlp"
	"github.com/tracefix/tracefix/internal/text"
)

// otlpMetrics writes OTLP: a gauge for what has a value, a sum for what grows, a summary
// for a histogram whose buckets a trace does not tell. The scope is the EventSource or
// the Meter. The trace tells of the process at its end, so all is written then.
type otlpMetrics struct {
	w       io.Writer
	all     table // for the limit
	pid     int   // of the first point
	metrics map[otlpMetric]*otlpPoints
	order   []*otlpPoints
	series  map[Series]*otlpSeries
	taken   map[otlpIdentity]int64 // how many series would be this one
}

// otlpMetric is what the points of a metric have in common.
type otlpMetric struct {
	provider, version, name, display, unit string
	kind                                   string // "gauge", "sum", "summary" or "exponentialHistogram"
	temporality                            int    // of a sum or an exponential histogram: 1 delta, 2 cumulative
	grows                                  bool   // a sum that should not fall
}

type otlpPoints struct {
	otlpMetric
	fell   bool
	points [][]byte
}

// otlpSeries is what is known of the points of one set of attributes.
type otlpSeries struct {
	attributes []byte
	total      float64 // the newest, NaN at first
	start      int64   // of a total that began anew, else 0
}

// otlpIdentity tells two series of one metric apart.
type otlpIdentity struct {
	provider, version, name, attributes string
	typ                                 CounterType
}

// AggregationTemporality of the protocol.
const (
	delta      = 1
	cumulative = 2
)

// Add implements CounterWriter.
func (o *otlpMetrics) Add(p *Point) error {
	k := otlpMetric{provider: p.Provider, version: p.Version, name: p.Name, display: p.Display, unit: p.Unit, kind: "sum", temporality: delta, grows: p.grows()}
	value := p.Value
	first := int64(0)
	switch p.Type {
	case Gauge:
		k.kind, k.temporality = "gauge", 0
	case Histogram:
		k.kind, k.temporality, value = "summary", 0, float64(p.Count)
		var placed bool
		if first, placed = p.firstBucket(); placed {
			k.kind, k.temporality = "exponentialHistogram", delta
			if p.Cumulative {
				k.temporality = cumulative
			}
		}
	case Counter, UpDownCounter:
		if !math.IsNaN(p.Total) {
			k.temporality, value = cumulative, p.Total
		}
	}
	if math.IsNaN(value) || o.all.of(p) == nil {
		return nil // nothing was measured, or it is beyond the limit
	}
	if o.metrics == nil {
		o.pid = p.PID
		o.metrics, o.series, o.taken = map[otlpMetric]*otlpPoints{}, map[Series]*otlpSeries{}, map[otlpIdentity]int64{}
	}
	m := o.metrics[k]
	if m == nil {
		m = &otlpPoints{otlpMetric: k}
		o.metrics[k] = m
		o.order = append(o.order, m)
	}
	at := p.Ns
	if !p.Time.IsZero() {
		at = p.Time.UnixNano()
	}
	s := o.seriesOf(p)
	start := int64(0)
	switch {
	case k.temporality == cumulative:
		// A total that is less than it was began anew if it grew all the same. Its start tells that.
		switch fell := value < s.total; {
		case fell && (p.Type == Histogram || p.grows() && p.Value >= 0):
			s.start = at - int64(p.Interval*1e9)
		case fell:
			m.fell = true
		}
		s.total, start = value, s.start
	case k.kind != "gauge" && p.Interval > 0:
		start = at - int64(p.Interval*1e9)
	}
	m.fell = m.fell || p.grows() && p.Value < 0
	b := append([]byte(`{"attributes":[`), s.attributes...)
	b = append(b, ']')
	if start != 0 {
		b = otlp.AppendInt(append(b, `,"startTimeUnixNano":`...), start)
	}
	b = otlp.AppendInt(append(b, `,"timeUnixNano":`...), at)
	switch k.kind {
	case "summary":
		b = p.appendSummary(b)
	case "exponentialHistogram":
		b = p.appendExponential(b, first)
	default:
		b = otlp.AppendFloat(append(b, `,"asDouble":`...), value)
	}
	m.points = append(m.points, append(b, '}'))
	return nil
}

// seriesOf returns the series of a value. Those that no attribute tells apart, as two instruments of one name
// are, get a number.
func (o *otlpMetrics) seriesOf(p *Point) *otlpSeries {
	key := p.Series()
	s := o.series[key]
	if s != nil {
		return s
	}
	s = &otlpSeries{total: math.NaN()}
	var first otlpIdentity
	for n := int64(1); ; n = o.taken[first] {
		s.attributes = otlpAttributes(p, o.pid, n)
		id := otlpIdentity{p.Provider, p.Version, p.Name, string(s.attributes), p.Type}
		if n == 1 {
			first = id
		}
		if o.taken[id] == 0 {
			o.taken[id] = 1
			break
		}
		o.taken[first]++
	}
	o.series[key] = s
	return s
}

// otlpAttributes are the tags of a value, each key once: one that was given twice has all its values. main is
// the process that the resource names, nth the number of the series among those that are equal.
func otlpAttributes(p *Point, main int, nth int64) []byte {
	values := map[string][]string{}
	var keys []string
	for _, tag := range SplitTags(p.Tags) {
		if values[tag.Key] == nil {
			keys = append(keys, tag.Key)
		}
		values[tag.Key] = append(values[tag.Key], tag.Value)
	}
	var a otlp.Attributes
	for _, k := range keys {
		if v := values[k]; len(v) > 1 {
			a.Texts(k, v)
		} else {
			a.String(k, v[0])
		}
	}
	add := func(k string, v int64) {
		for values[k] != nil {
			k += "_"
		}
		a.Int(k, v)
	}
	if p.PID != main {
		add("process.pid", int64(p.PID))
	}
	if nth > 1 {
		add("tracefix.series", nth)
	}
	return a.B
}

// appendCounts appends what every kind of histogram has.
func (p *Point) appendCounts(b []byte) []byte {
	if p.Count >= 0 {
		b = otlp.AppendInt(append(b, `,"count":`...), p.Count)
	}
	if !math.IsNaN(p.Sum) {
		b = otlp.AppendFloat(append(b, `,"sum":`...), p.Sum)
	}
	return b
}

// appendSummary appends the quantiles. The protocol has the extremes as those of 0 and 1.
func (p *Point) appendSummary(b []byte) []byte {
	b = append(p.appendCounts(b), `,"quantileValues":[`...)
	n := 0
	add := func(share, v float64) {
		if math.IsNaN(v) {
			return
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = otlp.AppendFloat(append(b, `{"quantile":`...), share)
		b = append(otlp.AppendFloat(append(b, `,"value":`...), v), '}')
	}
	add(0, p.Min)
	for _, q := range p.Quantiles {
		add(q.Share, q.Value)
	}
	add(1, p.Max)
	return append(b, ']')
}

// appendExponential appends buckets, of which the first has that index.
func (p *Point) appendExponential(b []byte, first int64) []byte {
	b = strconv.AppendInt(append(p.appendCounts(b), `,"scale":`...), int64(p.Exponential.Scale), 10)
	b = otlp.AppendInt(append(b, `,"zeroCount":`...), p.Exponential.Zeros)
	if len(p.Exponential.Count) > 0 {
		b = strconv.AppendInt(append(b, `,"positive":{"offset":`...), first, 10)
		b = append(b, `,"bucketCounts":[`...)
		for i, n := range p.Exponential.Count {
			if i > 0 {
				b = append(b, ',')
			}
			b = otlp.AppendInt(b, n)
		}
		b = append(b, "]}"...)
	}
	if !math.IsNaN(p.Min) {
		b = otlp.AppendFloat(append(b, `,"min":`...), p.Min)
	}
	if !math.IsNaN(p.Max) {
		b = otlp.AppendFloat(append(b, `,"max":`...), p.Max)
	}
	return b
}

// firstBucket is the index of the first bucket of p, if it has buckets whose place is known. The
// event does not tell it, but the largest measurement is in the last bucket that is not empty.
func (p *Point) firstBucket() (int64, bool) {
	e := p.Exponential
	if e == nil || e.Scale < -11 || e.Scale > 20 { // those of the runtime
		return 0, false
	}
	last := len(e.Count) - 1
	for last >= 0 && e.Count[last] == 0 {
		last--
	}
	switch {
	case last < 0:
		return 0, e.Zeros == p.Count // with counts that cannot be read, others were measured
	case math.IsNaN(p.Max) || p.Max <= 0:
		return 0, false
	}
	first := bucketOf(p.Max, e.Scale) - int64(last)
	return first, first >= math.MinInt32 && first <= math.MaxInt32
}

// bucketOf is the index of the bucket that a positive value is in: bucket i ends with base^(i+1),
// and holds it.
func bucketOf(v float64, scale int) int64 {
	frac, exp := math.Frexp(v) // v = frac * 2^exp, frac from 0.5 to below 1
	switch {
	case scale <= 0 && frac == 0.5:
		return int64(exp-2) >> -scale
	case scale <= 0:
		return int64(exp-1) >> -scale
	case frac == 0.5: // exact where the logarithm may not be
		return int64(exp-1)<<scale - 1
	}
	return int64(math.Ceil(math.Ldexp(math.Log(v)*math.Log2E, scale))) - 1
}

// pointsPerMetric is how many points stand in one metric of a line.
const pointsPerMetric = 4096

// Close implements CounterWriter.
func (o *otlpMetrics) Close(r *CounterResult) error {
	o.all.shown(r)
	slices.SortStableFunc(o.order, func(a, b *otlpPoints) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.version, b.version), cmp.Compare(a.name, b.name))
	})
	res := &otlp.Resource{Service: r.Process, PID: o.pid, Command: r.Command, RuntimeVersion: r.Runtime}
	w := otlp.Writer{W: o.w, Signal: otlp.Metrics, Resource: func() *otlp.Resource { return res }}
	for i, s := range o.order {
		if i == 0 || s.provider != o.order[i-1].provider || s.version != o.order[i-1].version {
			if err := w.Scope(s.provider, s.version); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(s.points, pointsPerMetric) {
			if err := w.Done(s.metric(w.Item(), part)); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

func (s *otlpPoints) metric(b []byte, points [][]byte) []byte {
	b = text.AppendJSON(append(b, `{"name":`...), s.name)
	if s.display != "" {
		b = text.AppendJSON(append(b, `,"description":`...), s.display)
	}
	if s.unit != "" {
		b = text.AppendJSON(append(b, `,"unit":`...), s.unit)
	}
	b = append(append(append(b, `,"`...), s.kind...), `":{`...)
	if s.temporality != 0 {
		b = strconv.AppendInt(append(b, `"aggregationTemporality":`...), int64(s.temporality), 10)
		if s.kind == "sum" {
			b = strconv.AppendBool(append(b, `,"isMonotonic":`...), s.grows && !s.fell)
		}
		b = append(b, ',')
	}
	b = append(b, `"dataPoints":[`...)
	for i, p := range points {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p...)
	}
	return append(b, "]}}"...)
}
