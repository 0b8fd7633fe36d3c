package events

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
)

// openMetrics writes OpenMetrics text: a gauge for what has a value, a counter for what
// grows, a summary for a histogram. Names are those of dotnet-monitor (counters.md
// section 4.3).
type openMetrics struct {
	w   io.Writer
	all table
}

func (o *openMetrics) Add(p *Point) error {
	o.all.add(p, true)
	return nil
}

// A family is the series of one metric name; they must stand together.
type family struct {
	name, typ, unit, help string
	series                []*series
}

// sampleSuffixes are what the names of a family's samples may end in, also where we write none such: no
// other family may have a name that could be one.
var sampleSuffixes = map[string][]string{"gauge": {""}, "counter": {"", "_total", "_created"}, "summary": {"", "_sum", "_count", "_created"}}

func (o *openMetrics) Close(r *CounterResult) error {
	o.all.shown(r)
	var families []*family
	byName := map[string]*family{} // by the names of their samples
	pids := map[int]bool{}
	fell := map[string]bool{} // the names of counters and summaries
	for _, s := range o.all.series {
		pids[s.PID] = true
		if s.fell {
			name, _, _ := metricName(s)
			if s.Type == Histogram && !fell[name] {
				r.Notes = append(r.Notes, text.Line(s.Provider+"/"+s.Name+" has negative measurements: OpenMetrics has no number and sum of these, and its quantiles are gauges"))
			}
			fell[name] = true
		}
	}
	for _, s := range o.all.series {
		typ := map[CounterType]string{Gauge: "gauge", UpDownCounter: "gauge", Rate: "counter", Counter: "counter", Histogram: "summary"}[s.Type]
		name, unit, _ := metricName(s)
		if fell[name] {
			typ = "gauge" // a counter may begin anew, but not fall, and nothing of a summary be negative; all tags are one family
		}
		taken := func(suffix string) bool {
			f := byName[name+suffix]
			return f != nil && (f.name != name || f.typ != typ)
		}
		for slices.ContainsFunc(sampleSuffixes[typ], taken) { // one name cannot be of two types
			name += "_" + typ
			unit = ""
		}
		f := byName[name]
		if f == nil {
			help := s.Display
			if help == "" {
				help = s.Name
			}
			f = &family{name: name, typ: typ, unit: unit, help: help}
			for _, suffix := range sampleSuffixes[typ] {
				byName[name+suffix] = f
			}
			families = append(families, f)
		}
		f.series = append(f.series, s)
	}
	var b []byte
	for _, f := range families {
		b = append(b, "# TYPE "+f.name+" "+f.typ+"\n"...)
		if f.unit != "" {
			b = append(b, "# UNIT "+f.name+" "+f.unit+"\n"...)
		}
		b = append(b, "# HELP "+f.name+" "+escapeHelp(f.help)+"\n"...)
		seen := map[string]int{} // how many series would have these labels
		for _, s := range f.series {
			labels := labelsOf(s, len(pids) > 1, 1)
			// Tags that become equal must not write one label set twice.
			for first := labels; seen[labels] > 0; {
				seen[first]++
				labels = labelsOf(s, len(pids) > 1, seen[first])
			}
			seen[labels] = 1
			b = f.appendSeries(b, s, labels)
		}
		if len(b) > 1<<18 {
			if _, err := o.w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := o.w.Write(append(b, "# EOF\n"...))
	return err
}

func (f *family) appendSeries(b []byte, s *series, labels string) []byte {
	_, _, scale := metricName(s)
	points := slices.Clone(s.points)
	text.SortRows(points, func(a, b *sample) int { return a.at.Compare(b.at) })
	line := func(suffix, extra string, v float64, at *sample) {
		if math.IsNaN(v) {
			return
		}
		b = append(append(b, f.name...), suffix...)
		all := labels
		if extra != "" {
			all = strings.TrimPrefix(all+","+extra, ",")
		}
		if all != "" {
			b = append(append(append(b, '{'), all...), '}')
		}
		b = appendNumber(append(b, ' '), v)
		if !at.at.IsZero() {
			b = append(b, ' ')
			ms := at.at.UnixMilli()
			b = strconv.AppendInt(b, ms/1000, 10)
			if ms%1000 != 0 {
				b = append(b, '.')
				frac := strconv.FormatInt(1000+ms%1000, 10)[1:]
				b = append(b, strings.TrimRight(frac, "0")...)
			}
		}
		b = append(b, '\n')
	}
	quantile := func(q *Quantile, x *sample) { line("", `quantile="`+q.Text+`"`, q.Value*scale, x) }
	if s.Type == Histogram && f.typ == "gauge" { // its samples must stand together, quantile by quantile
		for _, share := range s.shares() {
			for i := range points {
				for j := range points[i].quantil {
					if q := &points[i].quantil[j]; q.Text == share {
						quantile(q, &points[i])
					}
				}
			}
		}
		return b
	}
	for i := range points {
		x := &points[i]
		switch {
		case f.typ == "counter":
			line("_total", "", x.total*scale, x)
		case s.Type == Histogram:
			for j := range x.quantil {
				quantile(&x.quantil[j], x)
			}
			if s.Count >= 0 {
				line("_sum", "", x.sum*scale, x)
				line("_count", "", float64(x.count), x)
			}
		default:
			v := x.value
			if s.grows() { // one that fell
				v = x.total
			}
			line("", "", v*scale, x)
		}
	}
	return b
}

// shares are the quantiles that a histogram has, as written.
func (s *series) shares() (shares []string) {
	for i := range s.points {
		for _, q := range s.points[i].quantil {
			if !slices.Contains(shares, q.Text) {
				shares = append(shares, q.Text)
			}
		}
	}
	return shares
}

// metricName builds a name: the provider in lower case without other characters, the
// counter with _ for them, the unit. Values in MB are turned into bytes, and percentages
// into ratios, of which 1 is the whole.
func metricName(s *series) (name, unit string, scale float64) {
	scale = 1
	var b strings.Builder
	for _, r := range strings.ToLower(s.Provider) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' && b.Len() > 0 || r == '_' {
			b.WriteRune(r)
		}
	}
	b.WriteByte('_')
	b.WriteString(sanitize(s.Name))
	switch s.Unit {
	case "MB":
		unit, scale = "bytes", 1e6
	case "B", "By":
		unit = "bytes"
	case "%":
		unit, scale = "ratio", 0.01
	case "", "count", "Count":
	default:
		unit = unitName(s.Unit)
	}
	name = unreserved(b.String(), "metric_")
	// These ends belong to the samples of a counter or summary.
	for _, end := range []string{"_total", "_sum", "_count", "_bucket"} {
		if s.Type != Gauge && s.Type != UpDownCounter {
			name = strings.TrimSuffix(name, end)
		}
	}
	if unit != "" && !strings.HasSuffix(name, "_"+unit) {
		name += "_" + unit
	}
	return name, unit, scale
}

// unitName is a unit as a name may end in it; "" where that would be another one, as C is of °C.
func unitName(unit string) string {
	if strings.HasPrefix(unit, "{") { // an annotation of UCUM, no unit
		return ""
	}
	if per, ok := strings.CutPrefix(unit, "/"); ok {
		unit = "per_" + per
	}
	unit = strings.Map(ascii, unit)
	if strings.ContainsFunc(unit, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return ""
	}
	return strings.Trim(sanitize(unit), "_")
}

// ascii is the letter that UCUM has for micro.
func ascii(r rune) rune {
	if r == 'µ' || r == 'μ' {
		return 'u'
	}
	return r
}

func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r = ascii(r); r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

// unreserved is a name of letters, digits and _ as one may be: those that begin with _ are reserved.
func unreserved(name, prefix string) string {
	name = strings.TrimLeft(name, "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return prefix + name
	}
	return name
}

// labelsOf are the labels of a series, which is the nth of those that have no others.
func labelsOf(s *series, pid bool, nth int) string {
	var b strings.Builder
	used := map[string]int{"quantile": 1, "le": 1} // how many tags would have this name
	add := func(k, v string) {
		if v == "" {
			return // the same as no label
		}
		k = unreserved(sanitize(k), "tag_")
		for own := k; used[k] > 0; {
			if k = own + "_"; used[own] > 1 {
				k += strconv.Itoa(used[own])
			}
			used[own]++
		}
		used[k] = 1
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + `="` + escapeLabel(v) + `"`)
	}
	if pid {
		add("pid", strconv.Itoa(s.PID))
	}
	add("meter_version", s.Version)
	for _, t := range SplitTags(s.Tags) {
		add(t.Key, t.Value)
	}
	if nth > 1 {
		add("series", strconv.Itoa(nth))
	}
	return b.String()
}

func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

func escapeHelp(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
