package events

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// CounterType is what kind of figure a series is.
type CounterType uint8

// Types of series.
const (
	Gauge         CounterType = iota // a value at a time, or the mean of an interval
	Rate                             // an EventCounter that tells its growth in an interval
	Counter                          // a Meter's counter: growth, and total since its start
	UpDownCounter                    // the same, but it may go down
	Histogram                        // quantiles of an interval
)

func (t CounterType) String() string {
	if names := [...]string{"gauge", "rate", "counter", "updowncounter", "histogram"}; int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("CounterType(%d)", uint8(t))
}

// A Quantile is a value that a share of the measurements does not exceed.
type Quantile struct {
	Share, Value float64
	Text         string // of Share, as written: "0.95"
}

// A Point is one value of one series. It is valid until the next one.
type Point struct {
	Ns   int64     // time of the event, since the start of the trace
	Time time.Time // end of the interval, UTC; zero if the trace has no wall clock
	PID  int

	Provider string // the EventSource, or the Meter
	Version  string // of the Meter
	Name     string
	Display  string // name for people; empty if none is given
	Unit     string
	Tags     string // key=value, comma between, not escaped: as recorded
	// Instrument tells instruments apart that have all of these in common, as those of
	// two meters of one name: the process's number of it, else its place in the interval.
	Instrument int
	Type       CounterType
	Interval   float64 // seconds measured; 0 if unknown
	Asked      float64 // seconds of the interval that was asked for; 0 if not told

	// Value is the value of a Gauge, and the growth during the interval of a Rate,
	// Counter or UpDownCounter. It is NaN for a Histogram, and where nothing was measured.
	Value float64
	// Total is the running total of a Counter or UpDownCounter, NaN if not told.
	Total float64
	// Count is the number of measurements of a Gauge or Histogram; -1 if not told.
	Count int64
	// Min, Max, StdDev of an EventCounter, Sum and, if it tells them, Min and Max of a Histogram; else NaN.
	Min, Max, StdDev, Sum float64
	Quantiles             []Quantile
	// Cumulative is set where Count, Sum, Min, Max and Exponential are of all measurements since
	// the listener came, and not of the interval.
	Cumulative  bool
	Exponential *Exponential // of a Histogram that tells buckets, else nil
}

// Exponential are the buckets of a Histogram. Their bounds are powers of 2^(2^-Scale).
type Exponential struct {
	Scale int
	Zeros int64   // measurements of 0
	Count []int64 // of neighbouring buckets; which is the first is not told
}

// PerSecond is the growth per second of what grows, else NaN.
func (p *Point) PerSecond() float64 {
	if p.Type != Rate && p.Type != Counter && p.Type != UpDownCounter || p.Interval <= 0 {
		return math.NaN()
	}
	return p.Value / p.Interval
}

// Running is what a Histogram has counted and summed up so far.
type Running struct {
	count int64
	total float64
}

// Of returns the number and the sum of what was measured in the interval of p, the next point of
// the histogram: of one that tells what it measured so far they are what came since the last point.
func (r *Running) Of(p *Point) (count int64, sum float64) {
	count, sum = p.Count, p.Sum
	if p.Cumulative && count < r.count { // it began anew
		*r = Running{}
	}
	if p.Cumulative {
		count, sum = count-r.count, sum-r.total
	}
	r.count += max(count, 0)
	if !math.IsNaN(sum) {
		r.total += sum
	}
	return count, sum
}

// CounterOptions say which values are wanted. The zero value is all of them.
type CounterOptions struct {
	Select profile.Selection // by Providers and Names
	Warn   func(*nettrace.FormatError)
}

// A CounterResult tells what a trace held beside the values.
type CounterResult struct {
	Header nettrace.Header
	// What the trace tells of the process; empty if it does not.
	Process, Command, Runtime string
	Stats                     nettrace.Stats
	Points                    int64
	// Dropped counts the values that CounterOptions did not want.
	Dropped int64
	// Notes are what a person should know: limits that were reached, errors of the
	// process, other listeners.
	Notes []string
	// Shown is what the limit of a CounterWriter left, set by its Close: "3 of 34 counters". Empty is all.
	Shown string
}

const metricsProvider = "System.Diagnostics.Metrics"

type counterReader struct {
	o      *CounterOptions
	r      *nettrace.Reader
	h      *nettrace.Header
	yield  func(*Point) error
	values []nettrace.Value
	point  Point
	res    CounterResult

	session    string         // whose values the file is about
	others     int64          // values of other sessions
	tags       map[int]string // of the meter and the instrument, by instrument id
	seen       map[Series]int // values of this interval, where instruments have no id
	deltas     bool           // buckets are of an interval
	buckets    Exponential
	start, end time.Time
	names      map[string]string // interned texts
	noted      map[string]bool
}

// ReadCounters calls yield with every value, in the order of their times.
func ReadCounters(ctx context.Context, open input.Opener, o *CounterOptions, yield func(*Point) error) (*CounterResult, error) {
	if o == nil {
		o = &CounterOptions{}
	}
	c := newCounterReader(o, yield)
	var origin input.Origin
	r, err := input.Read(ctx, open, o.Warn, c, &origin)
	if r == nil {
		return nil, err
	}
	c.res.Stats = r.Stats()
	c.res.Command, c.res.Runtime = origin.Told()
	c.res.Process = input.ProcessName(c.res.Command)
	if c.others > 0 {
		c.note("values of other listeners that were left out: %d", c.others)
	}
	return &c.res, err
}

func newCounterReader(o *CounterOptions, yield func(*Point) error) *counterReader {
	return &counterReader{o: o, yield: yield, names: map[string]string{}, noted: map[string]bool{}, tags: map[int]string{}, seen: map[Series]int{}}
}

// A CounterConsumer is a Consumer that knows the notes of a CounterResult, as far as it has read.
type CounterConsumer interface {
	input.Consumer
	Notes() []string
}

// NewCounterConsumer returns a Consumer that calls yield with every value, for those who read more
// of the same trace.
func NewCounterConsumer(yield func(*Point) error) CounterConsumer {
	return newCounterReader(&CounterOptions{}, yield)
}

// Notes implements CounterConsumer.
func (c *counterReader) Notes() []string { return c.res.Notes }

func (c *counterReader) note(format string, args ...any) {
	s := text.Line(fmt.Sprintf(format, args...))
	if !c.noted[s] && len(c.noted) < 100 {
		c.noted[s] = true
		c.res.Notes = append(c.res.Notes, s)
	}
}

// Begin implements input.Consumer.
func (c *counterReader) Begin(r *nettrace.Reader) {
	c.r, c.h = r, r.Header()
	c.res.Header = *c.h
}

// Event implements input.Consumer.
func (c *counterReader) Event(ev *nettrace.Event) error {
	switch {
	case ev.Metadata.Name == "EventCounters":
		return c.eventCounter(ev)
	case ev.Metadata.Provider == metricsProvider:
		return c.metric(ev)
	}
	return nil
}

// End implements input.Consumer.
func (c *counterReader) End() {}

// intern returns v's text without a copy if it was seen before.
func (c *counterReader) intern(v *nettrace.Value) string {
	if v.Kind() != nettrace.KindString {
		return ""
	}
	var room [96]byte
	b := v.AppendText(room[:0])
	if s, ok := c.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(c.names) < 1<<16 {
		c.names[s] = s
	}
	return s
}

func (c *counterReader) begin(ev *nettrace.Event) *Point {
	nan := math.NaN()
	p := &c.point
	*p = Point{Ns: c.r.Nanos(ev.Time), PID: ev.ProcessID, Value: nan, Total: nan, Count: -1, Min: nan, Max: nan, StdDev: nan, Sum: nan, Quantiles: p.Quantiles[:0]}
	if !c.h.SyncTime.IsZero() {
		p.Time = c.h.SyncTime.Add(time.Duration(p.Ns))
	}
	return p
}

func (c *counterReader) emit(p *Point) error {
	if sel := &c.o.Select; !text.List(sel.Providers).Match(p.Provider) || !text.List(sel.Names).Match(p.Name) {
		c.res.Dropped++
		return nil
	}
	c.res.Points++
	return c.yield(p)
}

// finite is f, or NaN for what an idle counter reports as its extremes.
func finite(f float64) float64 {
	if math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// eventCounter takes an event of the name EventCounters. Its fields stand in an object
// Payload in an object without a name; they are found by their names, as versions of
// the library lack some (counters.md section 1).
func (c *counterReader) eventCounter(ev *nettrace.Event) error {
	var err error
	if c.values, err = ev.AppendValues(c.values[:0]); err != nil || len(c.values) == 0 {
		return nil
	}
	p := c.begin(ev)
	p.Provider = ev.Metadata.Provider
	v := c.values[0]
	for v.Kind() == nettrace.KindObject && v.Len() == 1 {
		var inner nettrace.Value
		if w := v.Walk(); !w.Next(&inner) {
			return nil
		}
		v = inner
	}
	if v.Kind() != nettrace.KindObject {
		return nil
	}
	known := false
	var f nettrace.Value
	for w := v.Walk(); w.Next(&f); {
		switch w.Field().Name {
		case "Name":
			p.Name = c.intern(&f)
		case "DisplayName":
			p.Display = c.intern(&f)
		case "DisplayUnits":
			p.Unit = c.intern(&f)
		case "Metadata":
			p.Tags = metadataTags(c.intern(&f))
		case "IntervalSec":
			p.Interval = number(&f)
		case "Series":
			ms, _ := strings.CutPrefix(c.intern(&f), "Interval=")
			if asked := finite(textNumber(ms)); asked > 0 {
				p.Asked = asked / 1000
			}
		case "Mean":
			p.Value, known = finite(number(&f)), true
		case "Increment":
			p.Value, p.Type, known = finite(number(&f)), Rate, true
		case "StandardDeviation":
			p.StdDev = finite(number(&f))
		case "Min":
			p.Min = finite(number(&f))
		case "Max":
			p.Max = finite(number(&f))
		case "Count":
			p.Count = f.Int()
		}
	}
	if !known || p.Name == "" {
		return nil
	}
	if p.Count == 0 && p.Type == Gauge { // it tells 0 where nothing was measured
		nan := math.NaN()
		p.Value, p.StdDev, p.Min, p.Max = nan, nan, nan, nan
	}
	return c.emit(p)
}

// metadataTags writes the metadata of an EventCounter, key:value, like tags.
func metadataTags(s string) string {
	if s == "" {
		return ""
	}
	parts := strings.Split(s, ",")
	for i, p := range parts {
		parts[i] = strings.Replace(p, ":", "=", 1)
	}
	return strings.Join(parts, ",")
}

func number(v *nettrace.Value) float64 {
	switch v.Kind() {
	case nettrace.KindFloat:
		if v.IsFloat32() {
			// The decimal that was meant, not its binary neighbour.
			f, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
			return f
		}
		return v.Float()
	case nettrace.KindInt:
		return float64(v.Int())
	case nettrace.KindUint:
		return float64(v.Uint())
	case nettrace.KindString:
		return textNumber(v.String())
	}
	return math.NaN()
}

// textNumber reads a figure of the Metrics provider; empty means nothing was measured.
func textNumber(s string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

// metric takes an event of System.Diagnostics.Metrics (counters.md section 2). Fields
// are found by name: the package of the library decides which there are.
func (c *counterReader) metric(ev *nettrace.Event) error {
	id := ev.Metadata.EventID
	typ, ok := metricType(id)
	if !ok && !isControl(id) {
		return nil
	}
	l := ev.Layout()
	var err error
	if c.values, err = ev.AppendValues(c.values[:0]); l == nil || err != nil && len(c.values) == 0 {
		return nil
	}
	field := func(name string) *nettrace.Value {
		for i := range c.values {
			if l.Fields[i].Name == name {
				return &c.values[i]
			}
		}
		return &none
	}
	if !ok {
		c.control(id, field)
		return nil
	}
	session := c.intern(field("sessionId"))
	if c.session == "" {
		c.session = session
	}
	if session != c.session {
		c.others++
		return nil
	}
	p := c.begin(ev)
	p.Type = typ
	c.describe(p, field)
	if !c.measure(p, id, field) || p.Name == "" {
		return nil
	}
	return c.emit(p)
}

// metricType returns the type of counter of which an event tells the value.
func metricType(id int) (typ CounterType, ok bool) {
	switch id {
	case 4:
		return Counter, true
	case 5:
		return Gauge, true
	case 6, 19:
		return Histogram, true
	case 16:
		return UpDownCounter, true
	}
	return 0, false
}

// isControl reports whether an event is one around the values.
func isControl(id int) bool {
	switch id {
	case 1, 2, 3, 7, 9, 12, 13, 14, 15, 17:
		return true
	}
	return false
}

// describe tells of what series p is, and of which interval.
func (c *counterReader) describe(p *Point, field func(string) *nettrace.Value) {
	p.Provider, p.Version = c.intern(field("meterName")), c.intern(field("meterVersion"))
	p.Name, p.Unit = c.intern(field("instrumentName")), c.intern(field("unit"))
	p.Instrument = int(field("instrumentId").Int())
	p.Tags = joinTags(c.tags[p.Instrument], c.intern(field("tags")))
	if c.end.IsZero() {
		return
	}
	if p.Instrument == 0 && len(c.seen) < maxSeen {
		key := p.Series()
		p.Instrument = c.seen[key]
		c.seen[key]++
	}
	p.Time = c.end
	p.Interval = c.end.Sub(c.start).Seconds()
	p.Asked = math.Round(10*p.Interval) / 10 // meters keep to the interval; the least is 0.1 s
}

// measure reads the values of an event, and reports whether there is one.
func (c *counterReader) measure(p *Point, id int, field func(string) *nettrace.Value) bool {
	switch id {
	case 4, 16:
		p.Value, p.Total = number(field("rate")), number(field("value"))
		if id == 16 && math.IsNaN(p.Value) {
			p.Value = p.Total
		}
		return !math.IsNaN(p.Value) || !math.IsNaN(p.Total)
	case 5:
		p.Value = number(field("lastValue"))
		return !math.IsNaN(p.Value)
	case 6:
		p.Quantiles = appendQuantiles(p.Quantiles, field("quantiles").String())
		if f := field("count"); f.Kind() != nettrace.KindNone {
			p.Count, p.Sum = f.Int(), number(field("sum"))
		}
	case 19:
		p.Count, p.Sum = field("count").Int(), number(field("sum"))
		if p.Count > 0 { // else the extremes are where the search for them began
			p.Min, p.Max = finite(number(field("minimum"))), finite(number(field("maximum")))
		}
		p.Cumulative = !c.deltas
		if f := field("buckets"); f.Kind() != nettrace.KindNone {
			c.buckets = Exponential{int(field("scale").Int()), field("zeroCount").Int(), appendCounts(c.buckets.Count[:0], f.String())}
			p.Exponential = &c.buckets
		}
	}
	return true
}

// maxSeen limits the values of one interval among which equal ones are told apart.
const maxSeen = 1 << 16

var none nettrace.Value

// joinTags joins two lists of tags.
func joinTags(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}

// control takes the events around the values.
func (c *counterReader) control(id int, field func(string) *nettrace.Value) {
	if s := field("sessionId").String(); id >= 7 && id <= 14 && c.session != "" && s != "" && s != c.session {
		return // of another listener
	}
	switch id {
	case 1:
		m := field("Message").String()
		if s, ok := strings.CutPrefix(m, "SessionId argument received: "); ok && c.session == "" {
			c.session = s
		}
		if s, ok := strings.CutPrefix(m, "Histogram Aggregation argument received: "); ok {
			c.deltas = reportsDeltas(s)
		}
	case 2:
		if s := c.intern(field("sessionId")); c.session == "" || s == c.session {
			c.start, c.end = time.Time{}, time.Time{}
			clear(c.seen)
			if a, b := field("intervalStartTime"), field("intervalEndTime"); a.Kind() == nettrace.KindTime && b.Kind() == nettrace.KindTime && b.Time().After(a.Time()) {
				c.start, c.end = a.Time(), b.Time()
			}
		}
	case 3:
		c.start, c.end = time.Time{}, time.Time{}
	case 7:
		instrument := int(field("instrumentId").Int())
		if tags := joinTags(c.intern(field("meterTags")), c.intern(field("instrumentTags"))); instrument != 0 && tags != "" && len(c.tags) < maxSeen {
			c.tags[instrument] = tags
		}
	case 9:
		c.note("the process reports an error: %s", field("errorMessage").String())
	case 12:
		c.note("the limit of time series was reached: some tags are missing (MaxTimeSeries)")
	case 13:
		c.note("the limit of histograms was reached: some are missing (MaxHistograms)")
	case 14:
		c.note("a callback of an observable instrument failed: %s", field("errorMessage").String())
	case 15:
		// With our own session it only tells that the request came twice (section 2.3).
		if s := field("runningSessionId").String(); c.session != "" && s != c.session {
			c.note("another listener (session %s) had asked for the values first", s)
		}
	case 17:
		c.note("another listener asked for other limits or another interval")
	}
}

// appendQuantiles reads 0.5=19;0.95=239.
func appendQuantiles(dst []Quantile, s string) []Quantile {
	for part := range strings.SplitSeq(s, ";") {
		share, value, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		q := Quantile{textNumber(share), textNumber(value), strings.TrimSpace(share)}
		if !math.IsNaN(q.Share) && !math.IsNaN(q.Value) {
			dst = append(dst, q)
		}
	}
	return dst
}

// reportsDeltas reads scale=20;maxBuckets=160;reportDeltas=true as the runtime does, for which a
// histogram is of all its time unless it was asked for that of each interval.
func reportsDeltas(s string) (deltas bool) {
	for part := range strings.SplitSeq(s, ";") {
		key, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(key), "reportDeltas") {
			deltas = strings.EqualFold(strings.TrimSpace(value), "true")
		}
	}
	return deltas
}

// appendCounts reads 1, 2, 0, 1. What is no such list has none.
func appendCounts(dst []int64, s string) []int64 {
	if strings.TrimSpace(s) == "" {
		return dst
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || n < 0 {
			return dst[:0]
		}
		dst = append(dst, n)
	}
	return dst
}

// A Tag is a key with its value.
type Tag struct{ Key, Value string }

// SplitTags takes tags apart. They are not escaped: a comma belongs to the value unless
// key= follows.
func SplitTags(s string) []Tag {
	var tags []Tag
	at, value := 0, 0 // where the part begins, and the value of the last tag
	for part := range strings.SplitSeq(s, ",") {
		end := at + len(part)
		switch k, v, ok := strings.Cut(part, "="); {
		case ok && k != "":
			tags = append(tags, Tag{k, v})
			value = end - len(v)
		case len(tags) > 0:
			tags[len(tags)-1].Value = s[value:end]
		case part != "":
			tags = append(tags, Tag{part, ""})
			value = end
		}
		at = end + len(",")
	}
	return tags
}
