package samples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// isSamples recognises tracefix's own ndjson: the first or the second line is one of a sample.
func isSamples(b []byte) bool {
	for _, l := range input.TextLines(b, 2) {
		if bytes.HasPrefix(l, []byte(`{"ts":`)) && bytes.Contains(l, []byte(`,"tid":`)) && bytes.Contains(l, []byte(`,"frames":[`)) {
			return true
		}
	}
	// A stack may be longer than what is looked at.
	return len(b) >= input.SniffSize && bytes.HasPrefix(b, []byte(`{"ts":`)) && bytes.Contains(b[:1<<10], []byte(`,"frames":[`))
}

// A line is a sample as tracefix writes it.
type line struct {
	TS     *float64 `json:"ts"` // ms
	PID    int64    `json:"pid"`
	TID    *int64   `json:"tid"`
	Type   string   `json:"type"`
	Cut    bool     `json:"cut"`
	Why    string   `json:"why"`
	Frames []string `json:"frames"`
	Repair *struct {
		How             string  `json:"how"`
		Restored        int     `json:"restored"`
		Confidence      float32 `json:"confidence"`
		BaseConfidence  float32 `json:"base_confidence"`
		Above           int     `json:"above"`
		AboveConfidence float32 `json:"above_confidence"`
	} `json:"repair"`
	Depth    int      `json:"depth"`
	Activity string   `json:"activity"`
	Request  int      `json:"request"`
	Value    *float64 `json:"value"`
}

var typesNamed = map[string]profile.SampleType{
	"managed": profile.SampleManaged, "external": profile.SampleExternal, "cpu": profile.SampleCPU, "offcpu": profile.SampleOffCPU,
}

var cutsNamed = map[string]profile.Cut{"depth": profile.CutDepth, "bytes": profile.CutBytes, "broken": profile.CutBroken}

var errWeighed = errors.New("this is ndjson of what other events weigh (it has \"value\"), and of samples only is read; take the recording that it was made from")

// readNDJSON reads one sample for each line, as `convert --format ndjson` writes them.
func readNDJSON(ctx context.Context, r io.Reader, b *builder) error {
	var weighed, waits int
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
			weighed++
			return
		}
		if what := l.wrong(); what != "" {
			b.warn(offset, "%s: %s", what, found(text))
			return
		}
		if l.Type == "offcpu" {
			waits++
		}
		b.line(&l)
	})
	if err != nil {
		return err
	}
	if weighed > 0 {
		if len(b.order) == 0 {
			return &FormatError{Where: "ndjson", Err: errWeighed}
		}
		b.note("%s lines of what other events weigh were left out", report.Count(weighed))
	}
	if waits > 0 {
		b.note("%s samples off the CPU: ndjson does not tell how long they took; the recording does", report.Count(waits))
	}
	return nil
}

// wrong says what keeps l from being a sample; "" if nothing does.
func (l *line) wrong() string {
	_, typed := typesNamed[l.Type]
	_, why := cutsNamed[l.Why]
	switch {
	case l.TS == nil:
		return "a sample without a time (ts)"
	case math.Abs(*l.TS) > maxTime/1e6:
		return "a time (ts) that no trace has"
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

// line takes in a sample.
func (b *builder) line(l *line) {
	b.stack = b.stack[:0]
	bridges := 0
	for _, f := range l.Frames {
		if f == profile.Bridge {
			bridges++
		}
		b.stack = append(b.stack, b.frame(methodOf(f), 0))
	}
	r := row{Sample: profile.Sample{Time: int64(math.Round(*l.TS * 1e6)), Type: typesNamed[l.Type], Stack: b.push(b.stack)}}
	if l.Cut {
		r.Cut = cutsNamed[l.Why]
		if r.Cut == profile.CutDepth {
			b.p.Meta.DepthLimit = max(b.p.Meta.DepthLimit, l.Depth)
		}
	}
	if m := l.Repair; m != nil && l.Cut {
		b.p.Meta.Repaired = true
		put := min(max(m.Restored, 0)+bridges, len(b.stack))
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
	t := b.thread(l.PID, *l.TID)
	t.rows = append(t.rows, r)
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
