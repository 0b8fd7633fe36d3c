package tracefix

import (
	"math"
	"slices"
	"time"

	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/nettrace"
)

// A CounterType is the kind of a counter, in the words of System.Diagnostics.Metrics.
type CounterType uint8

// Types of counters.
const (
	GaugeCounter     CounterType = iota // a value at a time, or the mean of an interval
	RateCounter                         // an EventCounter that tells its growth in an interval
	SumCounter                          // a Meter's Counter: its growth, and the total since its start
	UpDownCounter                       // the same, but it may go down
	HistogramCounter                    // quantiles of an interval
)

// String returns "gauge", "rate", "counter", "updowncounter" or "histogram".
func (t CounterType) String() string { return events.CounterType(t).String() }

// A CounterValue is one value of one EventCounter, or of one instrument of a Meter with its tags.
// Numbers that the trace does not hold are NaN, texts empty.
type CounterValue struct {
	Time int64     // ns since the start of the trace: the end of its interval
	Wall time.Time // likewise, UTC; zero if the trace has no wall clock
	PID  int

	Provider string // the EventSource, or the Meter
	Version  string // of the Meter
	Name     string
	Display  string // name for people
	Unit     string // as recorded: "MB", "By", "{request}"
	Tags     string // key=value, comma between, not escaped: as recorded
	// Instrument tells instruments apart that have all of these in common, as those of two
	// meters of one name.
	Instrument int
	Type       CounterType
	Interval   time.Duration // the measured interval; 0 if unknown

	// Value is that of a gauge, and the growth during the interval of a rate, counter or updowncounter. It is
	// NaN for a histogram, and where nothing was measured.
	Value float64
	Total float64 // since the start, of a counter or updowncounter
	Count int64   // number of measurements, of a gauge or histogram; -1 if unknown
	// Min, Max and StdDev of an EventCounter; Sum, Min and Max of a histogram.
	Min, Max, StdDev, Sum float64
	Quantiles             []CounterQuantile // of a histogram
	// Cumulative is set where Count, Sum, Min, Max and Buckets are of all measurements since
	// the recording began, and not of the interval.
	Cumulative bool
	Buckets    *CounterBuckets // of a histogram that has them, else nil
}

// A CounterQuantile is a Value that a Share of the measurements (0 to 1) does not exceed.
type CounterQuantile struct{ Share, Value float64 }

// CounterBuckets are the buckets of a base-2 exponential histogram: their bounds are powers of 2^(2^-Scale).
type CounterBuckets struct {
	Scale int
	Zeros int64   // measurements of 0
	Count []int64 // of consecutive buckets; the index of the first is not recorded
}

// PerSecond returns the growth per second of a rate, counter or updowncounter; NaN for other types and for an
// unknown interval.
func (v *CounterValue) PerSecond() float64 {
	if v.Type == GaugeCounter || v.Type == HistogramCounter || v.Interval <= 0 {
		return math.NaN()
	}
	return v.Value / v.Interval.Seconds()
}

// A CounterScanner is a Consumer; see NewCounterScanner.
type CounterScanner struct {
	each func(*CounterValue) error
	in   events.CounterConsumer
}

// NewCounterScanner returns a Consumer that calls each for every value of EventCounters and Meters,
// in order of time. The CounterValue belongs to the callee. If each returns nettrace.ErrStop it is
// not called again; any other error ends the pass.
func NewCounterScanner(each func(*CounterValue) error) *CounterScanner {
	return &CounterScanner{each: each}
}

// Begin implements Consumer.
func (s *CounterScanner) Begin(r *nettrace.Reader) {
	s.in = events.NewCounterConsumer(s.value)
	s.in.Begin(r)
}

// Event implements Consumer.
func (s *CounterScanner) Event(ev *nettrace.Event) error { return s.in.Event(ev) }

// End implements Consumer.
func (s *CounterScanner) End() { s.in.End() }

// Notes returns, after End, remarks on the values for people: limits of the recorder that were
// reached, errors of the process, other listeners.
func (s *CounterScanner) Notes() []string {
	if s.in == nil {
		return nil
	}
	return slices.Clone(s.in.Notes())
}

func (s *CounterScanner) value(p *events.Point) error {
	v := &CounterValue{
		Time: p.Ns, Wall: p.Time, PID: p.PID,
		Provider: p.Provider, Version: p.Version, Name: p.Name, Display: p.Display, Unit: p.Unit, Tags: p.Tags,
		Instrument: p.Instrument, Type: CounterType(p.Type),
		Value: p.Value, Total: p.Total, Count: p.Count, Min: p.Min, Max: p.Max, StdDev: p.StdDev, Sum: p.Sum,
		Cumulative: p.Cumulative,
	}
	if ns := math.Round(p.Interval * 1e9); ns > 0 && ns < nettrace.MaxNanos { // a file may say anything
		v.Interval = time.Duration(ns)
	}
	for _, q := range p.Quantiles {
		v.Quantiles = append(v.Quantiles, CounterQuantile{q.Share, q.Value})
	}
	if e := p.Exponential; e != nil {
		v.Buckets = &CounterBuckets{e.Scale, e.Zeros, slices.Clone(e.Count)}
	}
	if s.each == nil {
		return nil
	}
	return s.each(v)
}
