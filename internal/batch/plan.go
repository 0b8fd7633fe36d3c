package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json" // plans are documents that others may have written
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// The files of a plan, beside the outputs.
const (
	planName   = "batch-plan.ndjson"
	piecesName = "batch-pieces.json"
)

// A Plan is a list of inputs cut into pieces of about equal work. As a file it is one line
// with the Plan and a line for each piece; the Plan tells where each line is.
type Plan struct {
	Plan    int    `json:"plan"` // of the form of the file: 1
	Version string `json:"version,omitempty"`
	Do      string `json:"do"`
	Format  string `json:"format,omitempty"`
	List    List   `json:"list"`
	Bytes   int64  `json:"bytes"`
	Pieces  int    `json:"pieces"`
	Lengths []int  `json:"lengths"` // of the lines of the pieces, in bytes
}

// A piece is one line of a plan.
type piece struct {
	Piece   int      `json:"piece"`
	Bytes   int64    `json:"bytes"`
	Entries []*entry `json:"entries"`
}

const (
	// pieceWork is how much work a piece has if nobody says how many pieces there are to be.
	pieceWork = 64 << 20
	maxPieces = 1000 // of which nobody said how many there are to be: what schedulers take
)

// MakePlan lists the inputs of c and writes the plan of them beside where the outputs are to
// be: batch-plan.ndjson, and batch-pieces.json, which is a list of the numbers of the pieces.
// pieces is how many; 0: as many as there is work for. What the list cannot tell is an error.
func MakePlan(ctx context.Context, c Config, pieces int) (*Plan, error) {
	c.defaults()
	st := &stores{open: c.OpenURL}
	defer st.close()
	entries, n, list, err := listAll(ctx, &c, st, func(work int64) int {
		if pieces > 0 {
			return pieces
		}
		return int(min(max(work/pieceWork, 1), maxPieces))
	})
	if err != nil {
		return nil, err
	}
	if pieces == 0 { // who says how many there are to be gets them, with nothing to do if need be
		n = min(n, len(entries))
	}
	if len(entries) == 0 {
		return nil, errors.New("there is nothing to plan for: no input was found")
	}
	p := &Plan{Plan: 1, Version: c.Version, Do: c.Do, Format: c.Format, List: list}
	var body bytes.Buffer
	for i, part := range deal(entries, n) {
		x := piece{Piece: i, Entries: part.entries}
		for _, e := range part.entries {
			x.Bytes += e.bytes()
			e.keepBytes()
		}
		b, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		body.Write(append(b, '\n'))
		p.Lengths = append(p.Lengths, len(b)+1)
		p.Bytes += x.Bytes
	}
	p.Pieces = len(p.Lengths)
	head, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var numbers bytes.Buffer
	if err := p.WriteList(&numbers); err != nil {
		return nil, err
	}
	if err := writePlan(ctx, st, &c, slices.Concat(head, []byte("\n"), body.Bytes()), numbers.Bytes()); err != nil {
		return nil, err
	}
	return p, nil
}

// WriteList writes the numbers of the pieces as a JSON list, which engines hand out.
func (p *Plan) WriteList(w io.Writer) error {
	numbers := make([]int, p.Pieces)
	for i := range numbers {
		numbers[i] = i
	}
	b, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Summary is the one line at the end.
func (p *Plan) Summary() string {
	return fmt.Sprintf("%s input%s, %s, in %s piece%s: 0 to %d", report.Count(p.List.Inputs), report.Plural(p.List.Inputs), size(p.Bytes), report.Count(p.Pieces), report.Plural(p.Pieces), p.Pieces-1)
}

// writePlan writes the files of a plan. The same plan again changes nothing; another one is
// taken with Force only.
func writePlan(ctx context.Context, st *stores, c *Config, plan, numbers []byte) error {
	out, err := openPlace(ctx, st, c.Out)
	if err != nil {
		return err
	}
	if !c.Force {
		old, err := out.read(ctx, planName)
		switch {
		case err == nil && !bytes.Equal(old, plan):
			return report.UsageError{Err: fmt.Errorf("%s: another plan is there already; use --force to replace it", out.name(planName))}
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	if err := out.write(ctx, planName, plan); err != nil {
		return err
	}
	return out.write(ctx, piecesName, numbers)
}

// A Manifest names a piece of a plan: a path or a URL, with #N for a piece.
type Manifest struct {
	Name  string
	Piece int

	plan *Plan // that was read
	at   int64 // where its first piece stands
}

// pieceVariables are where engines tell a worker its number, all counted from 0.
var pieceVariables = []string{"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"}

// ParseManifest finds the piece to do. name may end in #N; empty, it is the plan in out.
// Where no number is given, the environment of the engine tells it.
func ParseManifest(name, number, out string, getenv func(string) string) (*Manifest, error) {
	if name == "" && number == "" {
		return nil, nil
	}
	m := &Manifest{Name: cmp.Or(name, inPlace(out, planName))}
	if i := strings.LastIndexByte(m.Name, '#'); i >= 0 && number == "" {
		m.Name, number = m.Name[:i], m.Name[i+1:]
	}
	from := "the piece"
	for _, v := range pieceVariables {
		if number == "" {
			number, from = getenv(v), v
		}
	}
	if number == "" {
		return nil, fmt.Errorf("which piece of %s? Add #N or --piece N (from 0), or set one of %s as engines do", m.Name, strings.Join(pieceVariables, ", "))
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%s %q: must be a number, counted from 0", from, number)
	}
	m.Piece = n
	return m, nil
}

// inPlace names a file in a folder or below a URL, whose options stay behind.
func inPlace(dir, name string) string {
	if !isURL(dir) {
		return strings.TrimSuffix(dir, "/") + "/" + name
	}
	shown := withoutQuery(dir)
	return strings.TrimSuffix(shown, "/") + "/" + name + strings.TrimPrefix(dir, shown)
}

// planHead is how much of a plan is read to find a piece: the first line of most.
const planHead = 256 << 10

// Doing returns what the plan is for: the command, and the format if one was asked for.
func (m *Manifest) Doing(ctx context.Context, c Config) (do, format string, err error) {
	st := &stores{open: c.OpenURL}
	defer st.close()
	open, err := m.opener(ctx, st)
	if err != nil {
		return "", "", err
	}
	if err := m.readPlan(open); err != nil {
		return "", "", err
	}
	return m.plan.Do, m.plan.Format, nil
}

// readPlan reads the first line of the plan, once.
func (m *Manifest) readPlan(open openAt) (err error) {
	if m.plan == nil {
		m.plan, m.at, err = planOf(open)
	}
	return err
}

// planOf reads the first line of a plan, and tells how long that is.
func planOf(open openAt) (*Plan, int64, error) {
	head, err := readLine(open, 0, planHead)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("%w; `tracefix batch plan` writes it", err)
	}
	if err != nil {
		return nil, 0, err
	}
	p := &Plan{}
	if err := json.Unmarshal(head, p); err != nil || p.Plan == 0 {
		return nil, 0, errors.New("is not a plan: `tracefix batch plan` writes them")
	}
	if p.Plan != 1 || p.Pieces != len(p.Lengths) {
		return nil, 0, fmt.Errorf("is a plan of form %d, which this version does not read", p.Plan)
	}
	return p, int64(len(head)), nil
}

// read reads one piece of a plan, and no other.
func (m *Manifest) read(ctx context.Context, st *stores) (*Plan, *piece, error) {
	bad := func(err error) (*Plan, *piece, error) { return nil, nil, fmt.Errorf("%s: %w", m.Name, err) }
	open, err := m.opener(ctx, st)
	if err != nil {
		return bad(err)
	}
	if err := m.readPlan(open); err != nil {
		return bad(err)
	}
	p, at := m.plan, m.at
	if m.Piece >= p.Pieces {
		return bad(fmt.Errorf("has the pieces 0 to %d, and not %d", p.Pieces-1, m.Piece))
	}
	for _, n := range p.Lengths[:m.Piece] {
		at += int64(n)
	}
	line, err := readLine(open, at, int64(p.Lengths[m.Piece]))
	if err != nil {
		return bad(err)
	}
	x := &piece{}
	if err := json.Unmarshal(line, x); err != nil || x.Piece != m.Piece {
		return bad(fmt.Errorf("offset %d: is not piece %d of the plan", at, m.Piece))
	}
	for _, e := range x.Entries {
		if e == nil {
			return bad(fmt.Errorf("offset %d: an entry is null", at))
		}
		e.restoreBytes()
	}
	return p, x, nil
}

// keepBytes puts the name of a file that is no text where JSON keeps its bytes.
func (e *entry) keepBytes() {
	if !utf8.ValidString(e.Path) {
		e.PathBytes = []byte(e.Path)
	}
}

func (e *entry) restoreBytes() {
	if e.PathBytes != nil {
		e.Path = string(e.PathBytes)
	}
}

type openAt func(at, length int64) (io.ReadCloser, error)

func (m *Manifest) opener(ctx context.Context, st *stores) (openAt, error) {
	if !isURL(m.Name) {
		return func(at, length int64) (io.ReadCloser, error) {
			f, err := os.Open(local(m.Name))
			if err != nil {
				return nil, input.Plain(err)
			}
			if _, err := f.Seek(at, io.SeekStart); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		}, nil
	}
	s, l, err := st.at(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	return func(at, length int64) (io.ReadCloser, error) { return s.Open(ctx, Object{Key: l.key}, at, length) }, nil
}

// readLine reads the line that begins at a place. length is how much to ask for at first.
func readLine(open openAt, at, length int64) ([]byte, error) {
	for {
		r, err := open(at, length)
		if err != nil {
			return nil, err
		}
		line, err := bufio.NewReaderSize(io.LimitReader(r, length), 64<<10).ReadBytes('\n')
		r.Close()
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if int64(len(line)) < length {
			return nil, io.ErrUnexpectedEOF
		}
		length *= 8
	}
}
