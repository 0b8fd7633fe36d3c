package samples

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// isSamples recognises tracefix's own ndjson: the first or the second line is one of a sample.
func isSamples(b []byte) bool {
	for _, l := range input.TextLines(b, 2) {
		if isSample(l) {
			return true
		}
	}
	// A stack may be longer than what is looked at.
	return len(b) >= input.SniffSize && !bytes.Contains(b, []byte("\n")) && isSample(b)
}

// isSample reports whether a line begins as one of a sample does: as we write it, or as a program has
// that read it and wrote it again, with spaces and with its keys in another order. The keys are those of
// the line itself: trace events may begin with the time, too, and have frames in their args.
func isSample(l []byte) bool {
	if !bytes.Contains(l, []byte(`"frames"`)) {
		return false
	}
	in := json.NewDecoder(bytes.NewReader(l))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return false
	}
	for missing := map[string]bool{"ts": true, "tid": true, "frames": true}; ; {
		key, err := in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return false
		}
		if delete(missing, name); len(missing) == 0 {
			return true
		}
		var value json.RawMessage
		if in.Decode(&value) != nil {
			return false
		}
	}
}

// A line is a sample as tracefix writes it.
type line struct {
	TS  *float64 `json:"ts"` // ms
	PID int64    `json:"pid"`
	TID *int64   `json:"tid"`
	// Process is told where a recording has several.
	Process string   `json:"process"`
	Type    string   `json:"type"`
	Cut     bool     `json:"cut"`
	Why     string   `json:"why"`
	Frames  []string `json:"frames"`
	Repair  *struct {
		How             string  `json:"how"`
		Restored        int     `json:"restored"`
		Confidence      float32 `json:"confidence"`
		BaseConfidence  float32 `json:"base_confidence"`
		Above           int     `json:"above"`
		AboveConfidence float32 `json:"above_confidence"`
	} `json:"repair"`
	Depth    int    `json:"depth"`
	Activity string `json:"activity"`
	Request  int    `json:"request"`
	// Of what an event weighs; see weighed.
	Weight string   `json:"weight"`
	Value  *float64 `json:"value"`
	Unit   string   `json:"unit"`
	Name   string   `json:"name"`

	Duration *float64 `json:"duration_ms"` // of offcpu, and of what else knows it; not in what earlier versions wrote
	Period   *float64 `json:"period_ms"`   // of cpu without a duration, neither
}

var typesNamed = map[string]profile.SampleType{
	"managed": profile.SampleManaged, "external": profile.SampleExternal, "cpu": profile.SampleCPU, "offcpu": profile.SampleOffCPU,
}

var cutsNamed = map[string]profile.Cut{"depth": profile.CutDepth, "bytes": profile.CutBytes, "broken": profile.CutBroken}

// readNDJSON reads one sample for each line, as `convert --format ndjson` writes them.
func readNDJSON(ctx context.Context, r io.Reader, b *builder) error {
	w := &weighedLines{b: b, names: map[string]uint32{}}
	waits := 0
	_, err := lines(ctx, r, b, func(offset int64, text []byte) {
		if len(bytes.TrimSpace(text)) == 0 {
			return
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			b.warn(offset, "expected a sample as one line of JSON: %v, found %s", err, found(text))
			return
		}
		if l.Value != nil {
			l.Type = "managed" // of which nothing is made
		}
		if what := l.wrong(); what != "" {
			b.warn(offset, "%s: %s", what, found(text))
			return
		}
		if l.Type == "offcpu" && l.Duration == nil {
			waits++
		}
		r, t := b.line(&l)
		if l.Value != nil {
			w.add(offset, &l, r, t)
		}
	})
	if err != nil {
		return err
	}
	if err := w.choose(b.opts.Weights, b.opts.AllWeights); err != nil {
		return err
	}
	if b.p.Meta.Untyped = b.untyped(); b.p.Meta.Untyped {
		b.p.Meta.Notes = append(b.p.Meta.Notes, profile.UntypedNote)
	}
	if waits > 0 {
		b.note("%s samples off the CPU: their lines do not tell how long they took, as those of this version do; the recording does", report.Count(waits))
	}
	return nil
}

// untyped reports whether the recorder told no managed code from the rest: lines have the types that were
// recorded, and no addresses, so that a stack is another one where its methods are.
func (b *builder) untyped() bool {
	var types profile.TypeTally
	for _, t := range b.order {
		last := profile.StackID(0)
		for i := range t.rows {
			if r := &t.rows[i]; r.Type != profile.SampleEvent {
				types.Add(r.Type, r.Stack != last)
				last = r.Stack
			}
		}
	}
	return types.Untyped()
}

// maxAmount bounds values, far from where sums overflow.
const maxAmount = 1e280

// wrong says what keeps l from being a sample; "" if nothing does.
func (l *line) wrong() string {
	_, typed := typesNamed[l.Type]
	_, why := cutsNamed[l.Why]
	switch {
	case l.TS == nil:
		return "a sample without a time (ts)"
	case math.Abs(*l.TS) > maxTime/1e6:
		return "a time (ts) that no trace has"
	case l.Duration != nil && (*l.Duration < 0 || *l.Duration > maxTime/1e6):
		return "a duration that no trace has"
	case l.Period != nil && (*l.Period <= 0 || *l.Period > maxTime/1e6):
		return "a period that no sampler has"
	case l.Value != nil && math.Abs(*l.Value) > maxAmount:
		return "a value that nothing weighs"
	case l.TID == nil:
		return "a sample without a thread (tid)"
	case l.Frames == nil:
		return "a sample without frames"
	case !typed:
		return "a sample of an unknown type"
	case l.Cut && !why:
		return "a cut stack that does not tell why"
	}
	return ""
}

// maxDropped is how many frames of a stack a repair may find to be garbage.
const maxDropped = 3

// line takes in a sample, and returns its row, which is valid until the next one, and its thread.
func (b *builder) line(l *line) (*row, *thread) {
	b.stack = b.stack[:0]
	bridges := 0
	for _, f := range l.Frames {
		if f == profile.Bridge {
			bridges++
		}
		b.stack = append(b.stack, b.frame(methodOf(f), 0))
	}
	r := row{Sample: profile.Sample{Time: int64(math.Round(*l.TS * 1e6)), Type: typesNamed[l.Type], Stack: b.push(b.stack)}}
	if l.Duration != nil {
		r.Dur = int64(math.Round(*l.Duration * 1e6))
	}
	if l.Period != nil {
		// Where files of several recordings were put together no wait counts as CPU time.
		if at := time.Duration(math.Round(*l.Period * 1e6)); b.p.Meta.Interval == 0 || at < b.p.Meta.Interval {
			b.p.Meta.Interval = at
		}
	}
	if l.Cut {
		r.Cut = cutsNamed[l.Why]
		if r.Cut == profile.CutDepth {
			b.p.Meta.DepthLimit = max(b.p.Meta.DepthLimit, l.Depth)
		}
	}
	if m := l.Repair; m != nil && l.Cut {
		b.p.Meta.Repaired = true
		m.Restored, m.Above = min(max(m.Restored, 0), math.MaxInt32), min(max(m.Above, 0), math.MaxInt32)
		put := min(m.Restored+bridges, len(b.stack))
		kept := b.stack[put:]
		dropped := min(max(0, l.Depth-len(kept)), maxDropped)
		var recorded profile.StackID
		for range dropped { // nobody knows what they were
			recorded = b.p.Table.Push(recorded, b.frame(profile.Method{Name: "?", Kind: profile.Unresolved}, 0))
		}
		for _, f := range kept {
			recorded = b.p.Table.Push(recorded, f)
		}
		r.repair = &profile.Repair{
			Recorded: recorded, How: m.How, Restored: m.Restored, Above: m.Above, Dropped: dropped,
			Confidence: m.Confidence, BaseConfidence: m.BaseConfidence, AboveConfidence: m.AboveConfidence,
		}
	}
	if l.Activity != "" {
		r.work = b.work(work{l.Activity, max(0, l.Request)})
	}
	t := b.threadOf(program{l.PID, l.Process}, *l.TID)
	t.rows = append(t.rows, r)
	return &t.rows[len(t.rows)-1], t
}

// weighedLines are lines of what events weigh, beside those of samples.
type weighedLines struct {
	b     *builder
	names map[string]uint32 // indexes in Profile.Names
}

// maxWeights is how many weights a Value can tell apart.
const maxWeights = math.MaxUint8 + 1

// add makes r, the last row of t, one of a line that weighs something. Of lines that earlier
// versions wrote neither the weight nor the unit is told.
func (w *weighedLines) add(offset int64, l *line, r *row, t *thread) {
	p, name := w.b.p, cmp.Or(l.Weight, "value")
	unit, amount := profile.Unit(l.Unit), *l.Value
	if l.Unit == "ms" {
		unit, amount = profile.Nanoseconds, amount*1e6
	}
	r.Type = profile.SampleEvent
	i := p.WeightNamed(name)
	switch {
	case i < 0 && len(p.Weights) == maxWeights:
		w.b.warn(offset, "more than %d weights; %s is left out", maxWeights, name)
		return
	case i < 0:
		i = len(p.Weights)
		p.Weights = append(p.Weights, profile.Weight{Name: name, Unit: unit, Sums: true})
	case p.Weights[i].Unit != unit:
		w.b.warn(offset, "an amount of %s in another unit (%q) than those before (%q); it is left out", name, unit, p.Weights[i].Unit)
		return
	}
	id, ok := w.names[l.Name]
	if !ok {
		id = uint32(len(p.Names))
		p.Names = append(p.Names, l.Name)
		w.names[l.Name] = id
	}
	t.values = append(t.values, profile.Value{Index: int32(len(t.rows) - 1), Weight: uint8(i), Name: id, Amount: amount})
}

// choose keeps what is asked for: time, which is that of samples, and weights. nil is time where
// there is any, else the first weight, or all there is.
func (w *weighedLines) choose(asked []string, every bool) error {
	all := w.b.p.Weights
	if len(all) == 0 {
		return nil // who asks for a weight is told elsewhere that there is none
	}
	sampled := slices.ContainsFunc(w.b.order, func(t *thread) bool {
		return slices.ContainsFunc(t.rows, func(r row) bool { return r.Type != profile.SampleEvent })
	})
	timed := asked == nil && sampled || slices.Contains(asked, profile.TimeWeight)
	if timed && !sampled {
		return weightError("this ndjson holds no samples, whose time is asked for; it weighs %s", weightNames(all))
	}
	var kept, left []profile.Weight
	number := make([]int, len(all))
	for i, x := range all {
		if number[i] = -1; asked == nil && (every || !sampled && i == 0) || slices.Contains(asked, x.Name) {
			number[i] = len(kept)
			kept = append(kept, x)
		} else {
			left = append(left, x)
		}
	}
	for _, name := range asked {
		if name != profile.TimeWeight && w.b.p.WeightNamed(name) < 0 {
			return weightError("this ndjson holds no weight %s; it holds %s", name, weightNames(all))
		}
	}
	if len(left) > 0 {
		w.b.note("the file also holds %s: --weight chooses", weightNames(left))
	}
	w.b.p.Weights = kept
	for _, t := range w.b.order {
		t.keep(timed, number)
	}
	return nil
}

// keep leaves out what is not asked for: samples unless timed, and amounts whose weight has no new number.
func (t *thread) keep(timed bool, number []int) {
	rows, values := t.rows[:0], t.values[:0]
	for i, r := range t.rows {
		n := len(values)
		for len(t.values) > 0 && int(t.values[0].Index) == i {
			v := t.values[0]
			t.values = t.values[1:]
			if k := number[v.Weight]; k >= 0 {
				v.Weight, v.Index = uint8(k), int32(len(rows))
				values = append(values, v)
			}
		}
		if len(values) > n || timed && r.Type != profile.SampleEvent {
			rows = append(rows, r)
		}
	}
	t.rows, t.values = rows, values
}

func weightNames(list []profile.Weight) string {
	var names []string
	for _, w := range list[:min(len(list), maxTypes)] {
		names = append(names, strings.TrimSuffix(w.Name+" ("+string(w.Unit)+")", " ()"))
	}
	if len(list) > maxTypes {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// A work is what a line tells of whom its thread worked for.
type work struct {
	path    string
	request int
}

// work returns the activity of a line, -1 of one that tells that there was none.
func (b *builder) work(w work) *int32 {
	i := b.works[w]
	if i == nil {
		i = new(int32)
		if *i = -1; w.path != "-" {
			*i = b.p.Activities.Add(&profile.Activity{Parent: -1, Request: w.request})
			b.p.Activities.SetPath(*i, w.path)
		}
		b.works[w] = i
	}
	return i
}
