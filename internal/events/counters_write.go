package events

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// CounterFormats are the names of the forms in which values are written.
var CounterFormats = []string{"table", "csv", "wide", "json", "ndjson", "openmetrics", "otlp", "dotnet-counters"}

// A CounterWriter takes values and writes them in one form.
type CounterWriter interface {
	// Add takes a value.
	Add(*Point) error
	// Close writes what is left. It does not close the io.Writer.
	Close(*CounterResult) error
}

// NewCounterWriter returns a CounterWriter of the form of that name, nil if there is none. width is
// that of the screen for a table, 0 for a file. limit is how many of what the form lists are written, 0
// for all: values, rows, or counters as a whole. What is told of all values stays that of all.
func NewCounterWriter(format string, w io.Writer, width, limit int) CounterWriter {
	all := table{limit: limit}
	switch format {
	case "table":
		return &tableWriter{w: w, width: width, all: all}
	case "csv":
		return &limited{CounterWriter: &csvWriter{w: w}, limit: limit}
	case "wide":
		return &wideWriter{w: w, limit: limit}
	case "json":
		return &jsonWriter{w: w, limit: limit}
	case "ndjson":
		return &limited{CounterWriter: &ndjsonWriter{w}, limit: limit}
	case "openmetrics":
		return &openMetrics{w: w, all: all}
	case "otlp":
		return &otlpMetrics{w: w, all: all}
	case "dotnet-counters":
		return &limited{CounterWriter: &compatWriter{w: w}, limit: limit}
	}
	return nil
}

// limited writes the first values.
type limited struct {
	CounterWriter
	limit, n int
}

func (l *limited) Add(p *Point) error {
	if l.n++; l.limit > 0 && l.n > l.limit {
		return nil
	}
	return l.CounterWriter.Add(p)
}

func (l *limited) Close(r *CounterResult) error {
	r.show(l.limit, l.n, "")
	return l.CounterWriter.Close(r)
}

// show tells what a limit left of n.
func (r *CounterResult) show(limit, n int, what string) {
	switch {
	case limit == 0 || limit >= n:
	case what == "":
		r.Shown = report.Count(limit)
	default:
		r.Shown = fmt.Sprintf("%s of %s %s%s", report.Count(limit), report.Count(n), what, report.Plural(n))
	}
}

const timeForm = "2006-01-02T15:04:05.000Z"

// appendNumber appends the shortest decimal form; NaN is nothing.
func appendNumber(b []byte, f float64) []byte {
	if math.IsNaN(f) {
		return b
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(b, f, form, -1, 64)
}

// appendField appends a field of CSV (RFC 4180). Text that a spreadsheet would take for
// a formula is left as it is: these are names from the user's own process.
func appendField(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}

func appendWallClock(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return t.UTC().AppendFormat(b, timeForm)
}

func appendQuantileText(b []byte, qs []Quantile) []byte {
	for i, q := range qs {
		if i > 0 {
			b = append(b, ';')
		}
		b = appendNumber(append(append(b, q.Text...), '='), q.Value)
	}
	return b
}

// csvWriter writes one row for each value.
type csvWriter struct {
	w   io.Writer
	buf []byte
}

func (c *csvWriter) Add(p *Point) error {
	b := c.buf[:0]
	if c.buf == nil {
		b = append(b, "timestamp,ms,pid,provider,name,tags,type,unit,interval_s,value,per_second,total,count,min,max,stddev,sum,quantiles,version,instrument,cumulative\n"...)
	}
	b = append(appendWallClock(b, p.Time), ',')
	b = append(appendNumber(b, text.Millis(p.Ns)), ',')
	b = append(strconv.AppendInt(b, int64(p.PID), 10), ',')
	b = append(appendField(b, p.Provider), ',')
	b = append(appendField(b, p.Name), ',')
	b = append(appendField(b, p.Tags), ',')
	b = append(append(b, p.Type.String()...), ',')
	b = append(appendField(b, p.Unit), ',')
	if p.Interval > 0 {
		b = appendNumber(b, p.Interval)
	}
	for _, f := range []float64{p.Value, p.PerSecond(), p.Total} {
		b = appendNumber(append(b, ','), f)
	}
	b = append(b, ',')
	if p.Count >= 0 {
		b = strconv.AppendInt(b, p.Count, 10)
	}
	for _, f := range []float64{p.Min, p.Max, p.StdDev, p.Sum} {
		b = appendNumber(append(b, ','), f)
	}
	b = append(appendQuantileText(append(b, ','), p.Quantiles), ',')
	b = append(appendField(b, p.Version), ',')
	if p.Instrument != 0 {
		b = strconv.AppendInt(b, int64(p.Instrument), 10)
	}
	if b = append(b, ','); p.Cumulative {
		b = append(b, "true"...)
	}
	c.buf = append(b, '\n')
	_, err := c.w.Write(c.buf)
	return err
}

func (c *csvWriter) Close(*CounterResult) error { return nil }

// compatWriter writes the columns of `dotnet-counters collect --format csv`, with the
// times in UTC and with quotes where a field needs them.
type compatWriter struct {
	w   io.Writer
	buf []byte
}

func (c *compatWriter) Add(p *Point) error {
	b := c.buf[:0]
	if c.buf == nil {
		b = append(b, "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n"...)
	}
	row := func(name string, typ string, v float64) {
		if math.IsNaN(v) {
			return
		}
		b = append(appendWallClock(b, p.Time), ',')
		b = append(appendField(b, p.Provider), ',')
		b = append(appendField(b, name), ',')
		b = append(append(b, typ...), ',')
		b = append(appendNumber(b, v), '\n')
	}
	name := cmp.Or(p.Display, p.Name)
	tags := strings.ReplaceAll(p.Tags, ",", ";")
	label := func(unit, tags string) string {
		s := name
		if unit != "" {
			s += " (" + unit + ")"
		}
		if tags != "" {
			s += "[" + tags + "]"
		}
		return s
	}
	switch p.Type {
	case Rate, Counter:
		unit := p.Unit
		if unit == "" || strings.EqualFold(unit, "count") {
			unit = "Count"
		}
		if p.Interval > 0 {
			sec := cmp.Or(p.Asked, math.Max(1, math.Round(p.Interval)))
			unit += " / " + strconv.FormatFloat(sec, 'f', -1, 64) + " sec"
		}
		row(label(unit, tags), "Rate", p.Value)
	case UpDownCounter:
		v := p.Total
		if math.IsNaN(v) {
			v = p.Value
		}
		row(label(p.Unit, tags), "Metric", v)
	case Histogram: // the tool asks for no base-2 histogram, which has no quantiles, and knows none
		for _, q := range p.Quantiles {
			t := tags
			if t != "" {
				t += ";"
			}
			row(label(p.Unit, t+"Percentile="+strconv.FormatFloat(100*q.Share, 'f', -1, 64)), "Metric", q.Value)
		}
	default:
		v := p.Value
		if p.Count == 0 {
			v = 0 // the tool takes the mean of no measurement as the event has it
		}
		row(label(p.Unit, tags), "Metric", v)
	}
	c.buf = b
	_, err := c.w.Write(b)
	return err
}

func (c *compatWriter) Close(*CounterResult) error { return nil }

// A value is a Point as JSON.
type value struct {
	Time      string             `json:"time,omitempty"`
	Ms        float64            `json:"ms"`
	PID       int                `json:"pid,omitempty"`
	Provider  string             `json:"provider"`
	Version   string             `json:"version,omitempty"`
	Name      string             `json:"name"`
	Display   string             `json:"display,omitempty"`
	Tags      map[string]string  `json:"tags,omitempty"`
	RawTags   string             `json:"raw_tags,omitempty"` // where tags cannot be told apart
	Number    int                `json:"instrument,omitempty"`
	Type      string             `json:"type"`
	Unit      string             `json:"unit,omitempty"`
	Interval  float64            `json:"interval_s,omitempty"`
	Value     *float64           `json:"value,omitempty"`
	PerSecond *float64           `json:"per_second,omitempty"`
	Total     *float64           `json:"total,omitempty"`
	Count     *int64             `json:"count,omitempty"`
	Min       *float64           `json:"min,omitempty"`
	Max       *float64           `json:"max,omitempty"`
	StdDev    *float64           `json:"stddev,omitempty"`
	Sum       *float64           `json:"sum,omitempty"`
	Quantiles map[string]float64 `json:"quantiles,omitempty"`

	Cumulative bool `json:"cumulative,omitempty"` // count, sum, min and max are of all measurements so far
}

// optional is a number of JSON, nil for what was not told.
func optional(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func valueOf(p *Point) *value {
	v := &value{
		Time: string(appendWallClock(nil, p.Time)), Ms: text.Millis(p.Ns), PID: p.PID,
		Provider: p.Provider, Version: p.Version, Name: p.Name, Display: p.Display, Number: p.Instrument, Type: p.Type.String(), Unit: p.Unit,
		Interval: p.Interval, Value: optional(p.Value), PerSecond: optional(p.PerSecond()), Total: optional(p.Total),
		Min: optional(p.Min), Max: optional(p.Max), StdDev: optional(p.StdDev), Sum: optional(p.Sum), Cumulative: p.Cumulative,
	}
	if math.IsNaN(v.Interval) || math.IsInf(v.Interval, 0) {
		v.Interval = 0
	}
	if p.Count >= 0 {
		n := p.Count
		v.Count = &n
	}
	if p.Tags != "" {
		tags := SplitTags(p.Tags)
		v.Tags = map[string]string{}
		for _, t := range tags {
			v.Tags[t.Key] = t.Value
		}
		if len(v.Tags) != strings.Count(p.Tags, ",")+1 || strings.Count(p.Tags, "=") != len(v.Tags) {
			v.RawTags = p.Tags
		}
	}
	for _, q := range p.Quantiles {
		if v.Quantiles == nil {
			v.Quantiles = map[string]float64{}
		}
		if optional(q.Value) != nil {
			v.Quantiles[q.Text] = q.Value
		}
	}
	return v
}

// ndjsonWriter writes one line for each value.
type ndjsonWriter struct{ w io.Writer }

func (n *ndjsonWriter) Add(p *Point) error {
	return text.WriteDocument(n.w, valueOf(p), "")
}

func (n *ndjsonWriter) Close(*CounterResult) error { return nil }

// jsonWriter writes one object with all values, and a summary of each series.
type jsonWriter struct {
	w        io.Writer
	limit, n int // of values
	all      table
}

func (j *jsonWriter) Add(p *Point) error {
	j.all.add(p, false)
	if j.n++; j.limit > 0 && j.n > j.limit {
		return nil
	}
	b, err := text.AppendDocument(nil, valueOf(p))
	if err != nil {
		return err
	}
	sep := ",\n  "
	if j.n == 1 {
		sep = "{\"values\": [\n  "
	}
	_, err = fmt.Fprintf(j.w, "%s%s", sep, b)
	return err
}

// A summary is what is told of a series as a whole.
type valueSummary struct {
	PID      int      `json:"pid,omitempty"`
	Provider string   `json:"provider"`
	Version  string   `json:"version,omitempty"`
	Name     string   `json:"name"`
	Tags     string   `json:"tags,omitempty"`
	Number   int      `json:"instrument,omitempty"`
	Type     string   `json:"type"`
	Unit     string   `json:"unit,omitempty"`
	Values   int      `json:"values"`
	Min      *float64 `json:"min,omitempty"`
	Mean     *float64 `json:"mean,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Last     *float64 `json:"last,omitempty"`
	Sum      *float64 `json:"sum,omitempty"` // of what grows
}

func (j *jsonWriter) Close(r *CounterResult) error {
	r.show(j.limit, j.n, "value")
	head := "\n],\n"
	if j.n == 0 {
		head = "{\"values\": [],\n"
	}
	series := []valueSummary{}
	for _, s := range j.all.series {
		x := valueSummary{PID: s.PID, Provider: s.Provider, Version: s.Version, Name: s.Name, Tags: s.Tags, Number: s.Instrument, Type: s.Type.String(), Unit: s.Unit, Values: s.n}
		if s.measured > 0 {
			x.Min, x.Mean, x.Max, x.Last = optional(s.min), optional(s.mean()), optional(s.max), optional(s.last)
			if s.grows() {
				x.Sum = optional(s.sum)
			}
		}
		series = append(series, x)
	}
	b, err := text.AppendDocument(nil, map[string]any{"series": series, "notes": append([]string{}, r.Notes...)})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(j.w, "%s%s\n", head, b[1:])
	return err
}

// A series is the values of one counter with one set of tags.
type series struct {
	Point            // the first one; its Quantiles are the newest
	Running          // of a histogram; total is that of others too
	points  []sample // if kept
	n       int
	min     float64 // NaN where the trace does not tell
	max     float64
	sum     float64 // of what was measured, or of the values of each interval
	last    float64

	measured int64 // measurements; intervals where their number is not told
	fell     bool  // a counter that went down, a histogram of negative measurements
}

// mean is that of all measurements: an interval with more of them weighs more.
func (s *series) mean() float64 { return s.sum / float64(s.measured) }

// grows reports whether values are growth, which adds up.
func (p *Point) grows() bool { return p.Type == Rate || p.Type == Counter }

// negative reports whether measurements of a histogram were below zero.
func (p *Point) negative() bool {
	return p.Type == Histogram && (p.Sum < 0 || p.Min < 0 || slices.ContainsFunc(p.Quantiles, func(q Quantile) bool { return q.Value < 0 }))
}

type sample struct {
	at      time.Time
	ns      int64
	value   float64
	total   float64 // running
	count   int64
	sum     float64
	quantil []Quantile
}

// A table gathers series, all or the first of them.
type table struct {
	limit  int
	series []*series
	byKey  map[Series]*series // nil for those beyond the limit
}

// shown notes what the limit left.
func (t *table) shown(r *CounterResult) { r.show(t.limit, len(t.byKey), "counter") }

// of returns the series of a value, nil if it is beyond the limit.
func (t *table) of(p *Point) *series {
	key := p.Series()
	s, known := t.byKey[key]
	if known {
		return s
	}
	if t.byKey == nil {
		t.byKey = map[Series]*series{}
	}
	if t.limit == 0 || len(t.byKey) < t.limit {
		s = &series{Point: *p, min: math.Inf(1), max: math.Inf(-1)}
		t.series = append(t.series, s)
	}
	t.byKey[key] = s
	return s
}

func (t *table) add(p *Point, keep bool) {
	s := t.of(p)
	if s == nil {
		return
	}
	s.n++
	v := s.measure(p)
	s.fell = s.fell || p.grows() && p.Value < 0 || p.negative()
	s.Quantiles = append([]Quantile(nil), p.Quantiles...)
	switch {
	case p.Type == Histogram:
	case p.Type == Counter && !math.IsNaN(p.Total):
		s.total = p.Total
	case !math.IsNaN(p.Value):
		s.total += p.Value
	}
	if p.Type == Gauge && math.IsInf(p.Value, 0) {
		v = p.Value // such as a ratio to nothing: no sum or extreme takes it, but it was measured
	}
	if keep {
		s.points = append(s.points, sample{p.Time, p.Ns, v, s.total, s.count, s.total, s.Quantiles})
	}
}

// measure takes a value into what is told of the series as a whole, and returns it: NaN for an
// interval without a measurement, and for a histogram the mean of the interval.
func (s *series) measure(p *Point) float64 {
	v, n := p.Value, int64(1)
	sum, least, most := v, v, v
	switch p.Type {
	case UpDownCounter:
		if !math.IsNaN(p.Total) {
			v = p.Total
		}
		sum, least, most = v, v, v
	case Gauge:
		if p.Count >= 0 {
			n, sum = p.Count, v*float64(p.Count)
		}
		// A mean of several lies between extremes that only the trace can tell.
		if n > 1 || !math.IsNaN(p.Min) {
			least = p.Min
		}
		if n > 1 || !math.IsNaN(p.Max) {
			most = p.Max
		}
	case Histogram:
		n, sum = s.Of(p)
		v, least, most = sum/float64(n), p.Min, p.Max
	}
	if n <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return math.NaN()
	}
	s.measured, s.sum, s.last = s.measured+n, s.sum+sum, v
	s.min, s.max = math.Min(s.min, least), math.Max(s.max, most)
	return v
}

// labels are how people call the series of a list.
func labels(list []*series) []string {
	ids, names := make([]Series, len(list)), make([]string, len(list))
	for i, s := range list {
		ids[i], names[i] = s.Series(), s.Name
		if s.Tags != "" {
			names[i] += "[" + s.Tags + "]"
		}
		names[i] = s.Provider + "\x00" + names[i]
	}
	tellApart(ids, names, []seriesPart{ofVersion, ofType, ofProcess}) // units stand beside them
	for i, s := range list {
		names[i] = names[i][len(s.Provider)+1:]
	}
	return names
}

// tableWriter writes a line for each series.
type tableWriter struct {
	w     io.Writer
	width int
	all   table
}

func (t *tableWriter) Add(p *Point) error {
	t.all.add(p, false)
	return nil
}

func (t *tableWriter) Close(r *CounterResult) error {
	t.all.shown(r)
	var b strings.Builder
	type meter struct{ provider, version string }
	var headed meter
	list := slices.Clone(t.all.series)
	order := map[meter]int{} // of the providers, and of the versions of each
	for _, s := range list {
		for _, m := range []meter{{s.Provider, ""}, {s.Provider, s.Version}} {
			if _, ok := order[m]; !ok {
				order[m] = len(order)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *series) int {
		return cmp.Or(cmp.Compare(order[meter{a.Provider, ""}], order[meter{b.Provider, ""}]), cmp.Compare(order[meter{a.Provider, a.Version}], order[meter{b.Provider, b.Version}]))
	})
	rows := make([][7]string, len(list))
	head := [7]string{"counter", "unit", "values", "min", "mean", "max", "last"}
	w := [7]int{}
	for i, c := range head {
		w[i] = len(c)
	}
	names := labels(list)
	for i, s := range list {
		unit := s.Unit
		if s.grows() {
			unit = strings.TrimPrefix(unit+"/interval", " ")
		}
		r := [7]string{"  " + text.Line(names[i]), text.Line(unit), strconv.Itoa(s.n)}
		if s.measured > 0 {
			r[3], r[4], r[5], r[6] = figure(s.min), figure(s.mean()), figure(s.max), figure(s.last)
		}
		if s.Type == Histogram {
			q := string(appendQuantileText(nil, s.Quantiles))
			r[6] = q
		}
		rows[i] = r
		for j, c := range r {
			w[j] = max(w[j], utf8.RuneCountInString(c))
		}
	}
	text.FitColumns(w[:], t.width, 2, []int{0, 1, 6}, []int{2, 3, 5})
	line := func(r [7]string) {
		s := ""
		for j, c := range r {
			if w[j] < 0 {
				continue
			}
			if cell := []rune(c); len(cell) > w[j] {
				c = string(cell[:w[j]-1]) + "…"
			}
			if j < 2 {
				s += fmt.Sprintf("%-*s  ", w[j], c)
			} else {
				s += fmt.Sprintf("%*s  ", w[j], c)
			}
		}
		b.WriteString(strings.TrimRight(s, " "))
		b.WriteByte('\n')
	}
	if len(list) > 0 {
		line(head)
	}
	for i, s := range list {
		if m := (meter{s.Provider, s.Version}); m != headed {
			headed = m
			b.WriteString(text.Line(s.Provider))
			if s.Version != "" {
				b.WriteString(" " + text.Line(s.Version))
			}
			b.WriteByte('\n')
		}
		line(rows[i])
	}
	if left := text.LeftOut(head[:], w[:]); left != "" {
		b.WriteString(left + "\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// figure prints a number with as many digits as a person reads; NaN is nothing.
func figure(f float64) string {
	a := math.Abs(f)
	switch {
	case math.IsNaN(f):
		return ""
	case a >= 1e15:
		return strconv.FormatFloat(f, 'g', 4, 64)
	case f == math.Trunc(f):
		return report.Count(int(f))
	case a >= 1000:
		return report.Count(int(math.Round(f)))
	case a >= 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// wideWriter writes CSV with a column for each series and a row for each tick.
type wideWriter struct {
	w     io.Writer
	limit int // of rows
	all   table
}

func (t *wideWriter) Add(p *Point) error {
	t.all.add(p, true)
	return nil
}

// Close groups the values to ticks: all of one interval come within a fraction of it,
// and a series has one value in each. Those of Meters have the end of their interval in common, however
// long it takes the process to tell all of them.
func (t *wideWriter) Close(r *CounterResult) error {
	type cell struct {
		s  int
		at sample
	}
	var cells []cell
	for i, s := range t.all.series {
		for _, x := range s.points {
			cells = append(cells, cell{i, x})
		}
	}
	text.SortRows(cells, func(a, b *cell) int { return cmp.Or(a.at.at.Compare(b.at.at), cmp.Compare(a.at.ns, b.at.ns)) })
	for i := 1; i < len(cells); i++ {
		if was, c := &cells[i-1].at, &cells[i].at; !c.at.IsZero() && c.at.Equal(was.at) {
			c.ns = was.ns
		}
	}
	text.SortRows(cells, func(a, b *cell) int { return cmp.Compare(a.at.ns, b.at.ns) })
	b := []byte("timestamp,ms")
	names := labels(t.all.series)
	for i, s := range t.all.series {
		b = append(b, ',')
		name := s.Provider + "/" + names[i]
		if s.Unit != "" {
			name += " (" + s.Unit + ")"
		}
		b = appendField(b, name)
	}
	b = append(b, '\n')
	row := make([]float64, len(t.all.series))
	var first *sample
	var err error
	rows := 0
	flush := func() {
		if len(b) > jsonAtOnce && err == nil { // thousands of columns make many more cells than there are values
			_, err = t.w.Write(b)
			b = b[:0]
		}
		if rows++; t.limit == 0 || rows <= t.limit {
			b = append(appendWallClock(b, first.at), ',')
			b = appendNumber(b, text.Millis(first.ns))
			for _, v := range row {
				b = appendNumber(append(b, ','), v)
			}
			b = append(b, '\n')
		}
		first = nil
	}
	const tick = int64(50 * time.Millisecond)
	for i := range cells {
		c := &cells[i]
		if first != nil && (c.at.ns-first.ns > tick || !math.IsNaN(row[c.s])) {
			flush()
		}
		if first == nil {
			first = &c.at
			for i := range row {
				row[i] = math.NaN()
			}
		}
		row[c.s] = c.at.value
	}
	if first != nil {
		flush()
	}
	r.show(t.limit, rows, "row")
	if err == nil {
		_, err = t.w.Write(b)
	}
	return err
}
