package profile

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
)

// A RepairMark tells of samples of a thread, in a row, that were repaired alike. Outputs carry
// a list of them, so that who reads one again knows what of it was not recorded:
//
//	{"version":1,"repairs":[{"pid":1,"tid":2,"ts":1002.5,"samples":3,"how":"before","confidence":0.98,"restored":40,"above":0}]}
type RepairMark struct {
	PID, TID   int64
	Time       int64 // ns: where the first of them begins; microseconds in the text
	Samples    int
	How        string // stackfix's word
	Confidence float64
	Restored   int // frames put back, those behind a bridge included
	Above      int // of these, those behind the bridge
}

// RepairMarks yields what was done to the samples of p, thread after thread. ids gives the
// numbers that an output has for a thread; nil: its own.
func (p *Profile) RepairMarks(ids func(*Thread) (pid, tid int64)) iter.Seq[RepairMark] {
	if ids == nil {
		ids = func(t *Thread) (int64, int64) { return t.Owner().PID, t.TID }
	}
	return func(yield func(RepairMark) bool) {
		for _, t := range p.Threads {
			if t.Repairs.Len() == 0 {
				continue
			}
			pid, tid := ids(t)
			for m := range t.repairMarks() {
				m.PID, m.TID = pid, tid
				if !yield(m) {
					return
				}
			}
		}
	}
}

// repairMarks yields the marks of t without its ids.
func (t *Thread) repairMarks() iter.Seq[RepairMark] {
	return func(yield func(RepairMark) bool) {
		var open RepairMark
		var stack, recorded StackID
		samples, repairs := t.Samples.Cursor(), t.Repairs.Cursor()
		var s Sample
		for i := 0; samples.Read(&s); i++ {
			if !s.Written() {
				continue
			}
			r := repairs.Of(i)
			if r == nil {
				if open.Samples > 0 {
					if !yield(open) {
						return
					}
					open = RepairMark{}
				}
				continue
			}
			m := RepairMark{Time: s.Time, Samples: 1, How: r.How, Confidence: rounded(r.Confidence), Restored: r.Restored, Above: r.Above}
			if open.Samples > 0 {
				same := open
				same.Time, same.Samples = m.Time, 1
				if same == m && s.Stack == stack && r.Recorded == recorded {
					open.Samples++
					continue
				}
				if !yield(open) {
					return
				}
			}
			open, stack, recorded = m, s.Stack, r.Recorded
		}
		if open.Samples > 0 {
			yield(open)
		}
	}
}

// rounded is a confidence as it is written.
func rounded(c float32) float64 { return math.Round(float64(c)*1e4) / 1e4 }

// WriteRepairMarks gives the text of a list of marks to write, piece by piece; nothing if there
// is no mark. before stands in front of it.
func WriteRepairMarks(before string, marks iter.Seq[RepairMark], write func([]byte) error) error {
	type batch struct {
		marks []RepairMark
		first bool
		text  []byte
	}
	line := relay.New(func(b *batch) { // beside who goes through the samples for the marks
		b.text = b.text[:0]
		for i := range b.marks {
			if b.first && i == 0 {
				b.text = append(append(b.text, before...), `{"version":1,"repairs":[`...)
			} else {
				b.text = append(b.text, ',')
			}
			b.text = b.marks[i].append(b.text)
		}
	}, func(b *batch) error { return write(b.text) })
	defer line.Close()
	const atOnce = 64 // some KB of text
	var b *batch
	for m := range marks {
		if b == nil || len(b.marks) == atOnce {
			first := b == nil
			if !first && line.Send() != nil {
				break
			}
			b = line.Batch()
			b.first, b.marks = first, b.marks[:0]
		}
		b.marks = append(b.marks, m)
	}
	if b == nil {
		return nil
	}
	_ = line.Send() // Close has the error
	if err := line.Close(); err != nil {
		return err
	}
	return write([]byte("]}"))
}

func (m *RepairMark) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, "\n"+`{"pid":`...), m.PID, 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), m.TID, 10)
	b = appendMicros(append(b, `,"ts":`...), m.Time)
	b = strconv.AppendInt(append(b, `,"samples":`...), int64(m.Samples), 10)
	b = strconv.AppendQuote(append(b, `,"how":`...), m.How) // a word of letters
	b = strconv.AppendFloat(append(b, `,"confidence":`...), m.Confidence, 'f', -1, 64)
	b = strconv.AppendInt(append(b, `,"restored":`...), int64(m.Restored), 10)
	b = strconv.AppendInt(append(b, `,"above":`...), int64(m.Above), 10)
	return append(b, '}')
}

// appendMicros appends ns as microseconds with as few decimals as they need.
func appendMicros(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	if rest := ns % 1000; rest > 0 {
		digits := strconv.Itoa(int(1000 + rest))
		b = append(append(b, '.'), strings.TrimRight(digits[1:], "0")...)
	}
	return b
}

// ReadRepairMarks reads the text of a list of marks. ok is false if it is none.
func ReadRepairMarks(text []byte) (marks []RepairMark, ok bool) {
	var list struct {
		Version int `json:"version"`
		Repairs []struct {
			PID        int64       `json:"pid"`
			TID        int64       `json:"tid"`
			TS         json.Number `json:"ts"`
			Samples    int         `json:"samples"`
			How        string      `json:"how"`
			Confidence float64     `json:"confidence"`
			Restored   int         `json:"restored"`
			Above      int         `json:"above"`
		} `json:"repairs"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &list) != nil || list.Version != 1 {
		return nil, false
	}
	for _, r := range list.Repairs {
		ns, err := nanos(string(r.TS))
		if err != nil || r.Samples < 1 || r.Restored < 0 || r.Above < 0 || r.Above > r.Restored || !isWord(r.How) || !(r.Confidence >= 0 && r.Confidence <= 1) {
			continue
		}
		marks = append(marks, RepairMark{PID: r.PID, TID: r.TID, Time: ns, Samples: r.Samples, How: r.How, Confidence: r.Confidence, Restored: r.Restored, Above: r.Above})
	}
	return marks, true
}

// nanos reads microseconds.
func nanos(micros string) (int64, error) {
	whole, rest, _ := strings.Cut(micros, ".")
	if rest = (rest + "000")[:3]; len(whole) > 15 || strings.ContainsAny(micros, "eE") {
		return 0, strconv.ErrRange
	}
	return strconv.ParseInt(whole+rest, 10, 64)
}

// isWord reports whether s is a word such as stackfix has for kinds of evidence.
func isWord(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") == ""
}

// maxEarlierHows limits the kinds of evidence that a file may tell of.
const maxEarlierHows = 32

// SetRepairMarks takes in what the file of p tells of an earlier repair: its samples get
// Repairs that say so (see Repair.Earlier), as far as marks fit them, and the profile counts
// as repaired. It is called once, when p is complete.
func (p *Profile) SetRepairMarks(marks []RepairMark) {
	type id struct{ pid, tid int64 }
	byThread, byTID := map[id][]RepairMark{}, map[int64][]RepairMark{}
	p.Meta.SetEarlier(marks)
	hows := map[string]bool{}
	for _, m := range marks {
		if hows[m.How] = true; len(hows) > maxEarlierHows {
			break
		}
		byThread[id{m.PID, m.TID}] = append(byThread[id{m.PID, m.TID}], m)
		byTID[m.TID] = append(byTID[m.TID], m)
	}
	for _, t := range p.Threads {
		list := byThread[id{t.Owner().PID, t.TID}]
		if list == nil { // a format that tells no process
			list = byTID[t.TID]
		}
		if len(list) > 0 {
			text.SortRows(list, func(a, b *RepairMark) int { return int(min(1, max(-1, a.Time-b.Time))) })
			t.setMarks(p.Table, list)
		}
	}
}

// Earlier is what the file says of an earlier repair.
type Earlier struct {
	Samples  int // repaired, those with a bridge included
	Bridged  int
	Restored int // frames
}

// SetEarlier takes in how much an earlier repair did.
func (m *Meta) SetEarlier(marks []RepairMark) {
	m.Repaired, m.Earlier = true, Earlier{}
	for i := range marks {
		m.Earlier.add(&marks[i])
	}
}

func (e *Earlier) add(m *RepairMark) {
	n := min(m.Samples, math.MaxInt32)
	e.Samples += n
	e.Restored = int(min(int64(e.Restored)+int64(n)*int64(min(m.Restored, 1<<16)), math.MaxInt/2))
	if m.How == HowBridge {
		e.Bridged += n
	}
}

// setMarks gives the samples of t the repairs of marks, which are in order of time.
func (t *Thread) setMarks(tab *Table, marks []RepairMark) {
	c := t.Samples.Cursor()
	at, behind := placedSample{index: -1}, placedSample{index: -1}
	behind.read(&c)
	step := func() { at = behind; behind.read(&c) }
	for i, m := range marks {
		given := at.index                          // which has a mark already
		for behind.ok && behind.Time <= m.Time+1 { // outputs may begin a span a nanosecond late
			step()
		}
		if at.index == given || at.Dur > 0 && m.Time > at.Time+at.Dur {
			continue
		}
		stack := at.Stack
		for n := 0; n < m.Samples && at.ok && at.Stack == stack; n++ {
			r, ok := m.repair(tab, stack)
			if !ok {
				break
			}
			r.Index = at.index
			t.Repairs.Append(r)
			// What was several samples may be one now.
			if n+1 == m.Samples || !behind.ok || behind.Stack != stack || i+1 < len(marks) && marks[i+1].Time <= behind.Time+1 {
				break
			}
			step()
		}
	}
}

// A placedSample is a wanted sample with its place in the list.
type placedSample struct {
	Sample
	index int
	ok    bool
}

// read makes s the next wanted sample of c.
func (s *placedSample) read(c *Cursor) {
	for s.ok = c.Read(&s.Sample); s.ok; s.ok = c.Read(&s.Sample) {
		if s.index++; s.Written() {
			return
		}
	}
}

// repair returns what m tells of a sample with a stack. ok is false if they do not fit.
func (m *RepairMark) repair(tab *Table, stack StackID) (r Repair, ok bool) {
	r = Repair{Recorded: stack, How: m.How, Restored: m.Restored, Above: m.Above, Confidence: float32(m.Confidence), Earlier: true}
	gone, depth := m.Restored, tab.Depth(stack)
	if m.How == HowBridge {
		// A format without a place for the bridge has the stack as it was recorded.
		front := tab.bridgeAt(stack)
		if front < 0 {
			r.Restored, r.Above = 0, 0
			return r, true
		}
		if front != m.Restored-m.Above {
			return r, false
		}
		gone++
	}
	if gone >= depth {
		return r, false
	}
	frames := tab.AppendFrames(nil, stack)[gone:]
	r.Recorded = 0
	for _, f := range frames {
		r.Recorded = tab.Push(r.Recorded, f)
	}
	return r, true
}

// bridgeAt returns how many frames stand before the bridge in a stack, -1 if it has none.
func (t *Table) bridgeAt(stack StackID) int {
	for s := stack; s != 0; s = t.Parent(s) {
		if t.MethodOf(t.Frame(s)).Name == Bridge {
			return t.Depth(s) - 1
		}
	}
	return -1
}
