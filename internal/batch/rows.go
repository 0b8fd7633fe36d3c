package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/text"
)

// A report as rows is one JSON line with the head of the report, one for each trace in the
// order of the inputs, and one for each file that was skipped; "k" tells them apart.
const (
	headRow  = "batch"
	traceRow = "trace"
	skipRow  = "skipped"
)

type rowOfHead struct {
	K string `json:"k"`
	*Report
	// The rows that follow take the place of these.
	Traces  *struct{} `json:"traces,omitempty"`
	Skipped *struct{} `json:"skipped,omitempty"`
}

type rowOfTrace struct {
	K string `json:"k"`
	*Result
}

type rowOfSkip struct {
	K string `json:"k"`
	Skip
}

func rowEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// WriteRows writes the report as rows.
func (r *Report) WriteRows(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	e := rowEncoder(b)
	if err := e.Encode(rowOfHead{K: headRow, Report: r}); err != nil {
		return err
	}
	if r.ledger != nil {
		if err := r.ledger.copy(b); err != nil {
			return err
		}
	} else {
		for _, t := range r.Traces {
			if err := e.Encode(rowOfTrace{traceRow, t}); err != nil {
				return err
			}
		}
	}
	for _, s := range r.Skipped {
		if err := e.Encode(rowOfSkip{skipRow, s}); err != nil {
			return err
		}
	}
	return b.Flush()
}

// A ledger holds the traces of a report outside of memory: as rows in a file, with their
// order.
type ledger struct {
	file  *os.File
	buf   *bufio.Writer
	size  int64
	lines []ledgerLine
	names map[int]string // of the reports
}

type ledgerLine struct {
	at            int64
	length        int32
	report        int32 // that it came with
	index, member int32
	troubled      bool
}

func newLedger() (*ledger, error) {
	f, err := output.TempFile("", "tracefix-merge-")
	if err != nil {
		return nil, err
	}
	return &ledger{file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (l *ledger) close() error { return output.RemoveTemp(l.file) }

func (l *ledger) add(line []byte, report, index, member int, status string) error {
	l.lines = append(l.lines, ledgerLine{l.size, int32(len(line)), int32(report), int32(index), int32(member), troubled(status)})
	l.size += int64(len(line))
	_, err := l.buf.Write(line)
	return err
}

// sort ends the adding. It names two lines of one place that came with different reports.
func (l *ledger) sort() (twice *ledgerLine, err error) {
	if err := l.buf.Flush(); err != nil {
		return nil, err
	}
	text.SortRows(l.lines, func(a, b *ledgerLine) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.member, b.member))
	})
	for i := 1; i < len(l.lines); i++ {
		a, b := l.lines[i-1], &l.lines[i]
		if a.index == b.index && a.member == b.member && a.report != b.report {
			return b, nil
		}
	}
	return nil, nil
}

func (l *ledger) read(at ledgerLine) (*Result, error) {
	b := make([]byte, at.length)
	if _, err := l.file.ReadAt(b, at.at); err != nil {
		return nil, err
	}
	t := &Result{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("%s: the row of trace %d: %w: %w", l.names[int(at.report)], at.index, errNoReport, err)
	}
	return t, nil
}

func (l *ledger) all(yield func(*Result, error) bool) { l.some(false, yield) }

func (l *ledger) troubled(yield func(*Result, error) bool) { l.some(true, yield) }

func (l *ledger) some(troubled bool, yield func(*Result, error) bool) {
	for _, at := range l.lines {
		if troubled && !at.troubled {
			continue
		}
		t, err := l.read(at)
		if !yield(t, err) || err != nil {
			return
		}
	}
}

// copy writes the rows as they came.
func (l *ledger) copy(w io.Writer) error {
	for _, at := range l.lines {
		if _, err := io.Copy(w, io.NewSectionReader(l.file, at.at, int64(at.length))); err != nil {
			return err
		}
	}
	return nil
}

// A Merger joins the reports of shards or pieces into that of the whole list. It holds no
// more of their traces in memory than where they are.
type Merger struct {
	out    *Report
	first  string
	ledger *ledger
	seen   map[int]string // which report each shard is in
	own    int            // parts of the list that the reports are of
	alone  bool           // a report of no shard is taken, too
	skips  []Skip
}

// NewMerger returns a Merger; Close it.
func NewMerger() (*Merger, error) {
	l, err := newLedger()
	if err != nil {
		return nil, err
	}
	l.names = map[int]string{}
	return &Merger{ledger: l, seen: l.names}, nil
}

// Close drops what the merger holds. The report it gave ends with it.
func (m *Merger) Close() error { return m.ledger.close() }

// Add takes the report of a shard, as JSON or as rows. name is what messages call it.
func (m *Merger) Add(name string, rd io.Reader) error {
	b := bufio.NewReaderSize(rd, 256<<10)
	first, _ := b.ReadBytes('\n') // what cannot be read is told by who reads it
	add := m.addDocument
	var row struct {
		K string `json:"k"`
	}
	// Other programs write rows with spaces, or with their keys in another order.
	if bytes.HasPrefix(first, []byte(`{"k":"`)) || json.Unmarshal(first, &row) == nil && row.K != "" {
		add = m.addRows
	}
	if err := add(name, io.MultiReader(bytes.NewReader(first), b)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (m *Merger) addDocument(name string, rd io.Reader) error {
	r, err := ReadReport(rd)
	if err != nil {
		return err
	}
	if r.TracesIn != "" {
		return fmt.Errorf("lists only the worst of its traces; give %s, which has all", r.TracesIn)
	}
	if err := breaksOff(len(r.Traces), r); err != nil {
		return err
	}
	n, err := m.addHead(name, r)
	if err != nil {
		return err
	}
	var row bytes.Buffer
	e := rowEncoder(&row)
	for _, t := range r.Traces {
		row.Reset()
		if err := e.Encode(rowOfTrace{traceRow, t}); err != nil {
			return err
		}
		if err := m.ledger.add(row.Bytes(), n, t.Index, t.Member, t.Status); err != nil {
			return err
		}
	}
	for _, s := range r.Skipped {
		m.addSkip(s)
	}
	return nil
}

func (m *Merger) addRows(name string, rd io.Reader) error {
	b := bufio.NewReaderSize(rd, 256<<10)
	traces, n := 0, 0
	var head *Report
	for at := int64(0); ; {
		line, err := b.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("offset %d: the report breaks off: %w", at, err)
		}
		var row struct {
			K      string `json:"k"`
			Index  int    `json:"index"`
			Member int    `json:"member"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			return fmt.Errorf("offset %d: %w: %w", at, errNoReport, err)
		}
		switch {
		case head == nil && row.K == headRow:
			head = &Report{}
			if err = json.Unmarshal(line, head); err == nil {
				n, err = m.addHead(name, head)
			}
		case head == nil:
			err = errNoReport
		case row.K == traceRow:
			traces++
			err = m.ledger.add(line, n, row.Index, row.Member, row.Status)
		case row.K == skipRow:
			var s Skip
			if err = json.Unmarshal(line, &s); err == nil {
				m.addSkip(s)
			}
		}
		if err != nil {
			return fmt.Errorf("offset %d: %w", at, err)
		}
		at += int64(len(line))
	}
	if head == nil {
		return errNoReport
	}
	return breaksOff(traces, head)
}

// breaksOff refuses a report that does not hold as many traces as it counts.
func breaksOff(traces int, r *Report) error {
	if traces != r.Totals.Traces {
		return fmt.Errorf("the report breaks off: %d of its %d traces are there", traces, r.Totals.Traces)
	}
	return nil
}

func (m *Merger) addSkip(s Skip) {
	m.skips = append(m.skips, s)
	if len(m.skips) > 4*maxSkips {
		m.cutSkips()
	}
}

func (m *Merger) cutSkips() {
	text.SortRows(m.skips, func(a, b *Skip) int { return cmp.Compare(a.Index, b.Index) })
	m.skips = m.skips[:min(len(m.skips), maxSkips)]
}

// addHead adds what a report says of all of its traces, if it is one of those that belong
// together, and returns its number.
func (m *Merger) addHead(name string, r *Report) (int, error) {
	if r.Command != "batch" {
		return 0, errNoReport
	}
	if r.Shard == nil && m.alone {
		r.Shard = &Shard{Index: 1, Count: 1}
	}
	if r.Shard == nil {
		return 0, errors.New("is not of a shard")
	}
	if m.out == nil {
		m.first = name
		shard := *r.Shard
		m.out = &Report{Command: "batch", Version: r.Version, Do: r.Do, Format: r.Format, List: r.List, Shard: &shard}
	}
	out := m.out
	switch {
	case r.Do != out.Do || r.Format != out.Format:
		return 0, fmt.Errorf("is of --do %s, %s of --do %s", r.Do, m.first, out.Do)
	case r.Shard.Count != out.Shard.Count || r.Shard.Piece != out.Shard.Piece:
		return 0, fmt.Errorf("is of %s, %s of %s", r.Shard, m.first, out.Shard)
	case m.seen[r.Shard.Index] != "":
		return 0, fmt.Errorf("is of %s, and so is %s", r.Shard, m.seen[r.Shard.Index])
	case r.List.Digest != out.List.Digest || r.List.Inputs != out.List.Inputs || r.List.Parts != out.List.Parts:
		return 0, fmt.Errorf("is of another list of inputs (%d, digest %.12s) than %s (%d, digest %.12s): the inputs changed between the two, so that some may have been done by neither; run the shards again, or make a plan, which lists once",
			r.List.Inputs, r.List.Digest, m.first, out.List.Inputs, out.List.Digest)
	}
	m.seen[r.Shard.Index] = name
	m.own += r.List.Own
	if r.Version != out.Version {
		out.note("the shards were run by different versions of tracefix")
	}
	for _, n := range r.Notes {
		if n != noTrace {
			out.note(n)
		}
	}
	out.Reasons = sum(out.Reasons, r.Reasons)
	out.measures.Add(r.Totals.Measures)
	return r.Shard.Index, nil
}

// Do is what the shards did.
func (m *Merger) Do() string {
	if m.out == nil {
		return ""
	}
	return m.out.Do
}

// Report joins what was added. A shard that is missing is an error.
func (m *Merger) Report(gates []Gate) (*Report, error) {
	out := m.out
	if out == nil {
		return nil, errors.New("no reports to merge")
	}
	if missing := m.missing(); missing != "" {
		return nil, fmt.Errorf("the report of %s is missing", missing)
	}
	if out.List.Parts > 0 && m.own != out.List.Parts {
		return nil, fmt.Errorf("the shards had %d parts of the list, of which there are %d", m.own, out.List.Parts)
	}
	twice, err := m.ledger.sort()
	if err != nil {
		return nil, err
	}
	if twice != nil {
		t, err := m.ledger.read(*twice)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("more than one shard did %s", t.Input.Name)
	}
	m.cutSkips()
	out.Skipped = m.skips
	if len(out.Skipped) == 0 {
		out.Skipped = nil
	}
	slices.Sort(out.Notes)
	out.Shard, out.List.Parts, out.List.Own = nil, 0, 0
	out.ledger = m.ledger
	return out, out.finish(gates)
}

func (m *Merger) missing() string {
	const most = 10
	var names []string
	s := *m.out.Shard
	for s.Index = 1; s.Index <= s.Count; s.Index++ {
		if m.seen[s.Index] != "" {
			continue
		}
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// AddFrom takes the reports that an argument names: one in a file or at a URL, or all shards'
// and pieces' in a folder or below a URL.
func (m *Merger) AddFrom(ctx context.Context, c Config, name string) error {
	st := &stores{open: c.OpenURL}
	defer st.close()
	name = local(name)
	if isReport(withoutQuery(name)) {
		dir, base := splitPlace(name)
		p, err := openPlace(ctx, st, dir)
		if err != nil {
			return err
		}
		return m.addAt(ctx, p, base)
	}
	if st, err := os.Stat(name); err == nil && !st.IsDir() && !isURL(name) {
		return fmt.Errorf("%s: %w (they end in .json or .ndjson)", name, errNoReport)
	}
	p, err := openPlace(ctx, st, name)
	if err != nil {
		return err
	}
	rels, err := p.list(ctx, reportName+"-")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, rel := range rels {
		there[rel] = true
	}
	for _, rel := range rels {
		stem, isJSON := strings.CutSuffix(rel, ".json")
		if !isReport(rel) || isJSON && there[stem+rowsEnd] {
			continue
		}
		if err := m.addAt(ctx, p, rel); err != nil {
			return err
		}
	}
	return nil
}

func isReport(name string) bool {
	return strings.HasSuffix(name, rowsEnd) || strings.HasSuffix(name, ".json")
}

func (m *Merger) addAt(ctx context.Context, p *place, rel string) error {
	r, err := p.open(ctx, rel)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name(rel), input.Plain(err))
	}
	defer r.Close()
	return m.Add(p.name(rel), r)
}

// WriteAll writes all forms of the report into a folder or below a URL: none of them, if one
// is there and may not be replaced.
func (r *Report) WriteAll(ctx context.Context, c Config) error {
	st := &stores{open: c.OpenURL}
	defer st.close()
	p, err := openPlace(ctx, st, c.Out)
	if err != nil {
		return err
	}
	forms := r.writers("")
	for _, w := range forms {
		if err := p.free(ctx, reportName+w.end, c.Force); err != nil {
			return err
		}
	}
	for _, w := range forms {
		if err := p.make(ctx, reportName+w.end, w.write); err != nil {
			return fmt.Errorf("%s: %w", p.name(reportName+w.end), err)
		}
	}
	return nil
}
