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
// for a histogram, whose buckets a trace does not tell. The scope is the EventSource or
// the Meter. The trace tells of the process at its end, so all is written then.
type otlpMetrics struct {
	w      io.Writer
	all    table // for the limit
	pid    int   // of the first point
	series map[otlpSeries]*otlpPoints
	order  []*otlpPoints
}

// otlpSeries is what the points of a metric have in common.
type otlpSeries struct {
	provider, version, name, display, unit string
	kind                                   string // "gauge", "sum" or "summary"
	temporality                            int    // of a sum: 1 delta, 2 cumulative
	monotonic                              bool
}

type otlpPoints struct {
	otlpSeries
	points [][]byte
}

// AggregationTemporality of the protocol.
const (
	delta      = 1
	cumulative = 2
)

// Add implements CounterWriter.
func (o *otlpMetrics) Add(p *Point) error {
	k := otlpSeries{provider: p.Provider, version: p.Version, name: p.Name, display: p.Display, unit: p.Unit, kind: "sum"}
	value := p.Value
	switch p.Type {
	case Gauge:
		k.kind = "gauge"
	case Histogram:
		k.kind = "summary"
	case Rate:
		k.temporality, k.monotonic = delta, true
	default:
		k.temporality, k.monotonic = delta, p.Type == Counter
		if !math.IsNaN(p.Total) {
			k.temporality, value = cumulative, p.Total
		}
	}
	if k.kind != "summary" && math.IsNaN(value) {
		return nil // nothing was measured
	}
	if o.all.of(p) == nil {
		return nil
	}
	if o.series == nil {
		o.series, o.pid = map[otlpSeries]*otlpPoints{}, p.PID
	}
	s := o.series[k]
	if s == nil {
		s = &otlpPoints{otlpSeries: k}
		o.series[k] = s
		o.order = append(o.order, s)
	}
	s.points = append(s.points, k.point(p, value, o.pid))
	return nil
}

// point makes a data point; main is the process that the resource names.
func (k *otlpSeries) point(p *Point, value float64, main int) []byte {
	at := p.Ns
	if !p.Time.IsZero() {
		at = p.Time.UnixNano()
	}
	a := otlp.Attributes{B: []byte(`{"attributes":[`)}
	for _, tag := range SplitTags(p.Tags) {
		a.Text(tag.Key, tag.Value)
	}
	if p.PID != main {
		a.Int("process.pid", int64(p.PID))
	}
	b := append(a.B, ']')
	if k.temporality == delta && p.Interval > 0 || k.kind == "summary" && p.Interval > 0 {
		b = otlp.AppendInt(append(b, `,"startTimeUnixNano":`...), at-int64(p.Interval*1e9))
	}
	b = otlp.AppendInt(append(b, `,"timeUnixNano":`...), at)
	if k.kind != "summary" {
		return append(otlp.AppendFloat(append(b, `,"asDouble":`...), value), '}')
	}
	if p.Count >= 0 {
		b = otlp.AppendInt(append(b, `,"count":`...), p.Count)
	}
	if !math.IsNaN(p.Sum) {
		b = otlp.AppendFloat(append(b, `,"sum":`...), p.Sum)
	}
	b = append(b, `,"quantileValues":[`...)
	for i, q := range p.Quantiles {
		if i > 0 {
			b = append(b, ',')
		}
		b = otlp.AppendFloat(append(b, `{"quantile":`...), q.Share)
		b = append(otlp.AppendFloat(append(b, `,"value":`...), q.Value), '}')
	}
	return append(b, "]}"...)
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
	if s.kind == "sum" {
		b = strconv.AppendInt(append(b, `"aggregationTemporality":`...), int64(s.temporality), 10)
		b = strconv.AppendBool(append(b, `,"isMonotonic":`...), s.monotonic)
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
