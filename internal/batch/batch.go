package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json" // to check whole documents of users
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"

	"bytes"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/report"
)

// DoRepair is what a batch does unless it is told otherwise.
const DoRepair = "repair"

// A Job is one trace for a Work.
type Job struct {
	Out    string // path of the output
	Format string // of the output; empty: the trace's own, or the default of what is done
	Force  bool   // an older output of this batch may be there
}

// A Work makes an output of one trace. An error means that none was written; what
// happened is in the report in either case.
type Work func(ctx context.Context, in *input.File, job Job) (*report.Trace, error)

// Config is one batch.
type Config struct {
	Paths   []string // files, folders, globs, archives, URLs; "-" is a list on Stdin
	Out     string   // folder or URL
	Do      string   // a row of the table of commands; shapes names of outputs
	Format  string   // of outputs; empty: each trace's own
	Options string   // all else that shapes outputs, in any fixed form; a change of it redoes them
	Version string   // of this program
	Work    Work

	Jobs      int   // traces at a time; 0: one for each processor
	MaxMemory int64 // for all traces in work together; 0: DefaultMemory
	MaxSize   int64 // of one trace as stored; 0: 1 TiB
	Resume    bool
	Force     bool
	Shard     Shard
	Gates     []Gate
	Ignore    []string // files that are no inputs: other outputs of the run

	Stdin    io.Reader
	OpenURL  OpenURL // nil: no URLs
	Progress *Progress
}

// Run works on everything that c names. An error says that the batch as a whole
// could not be done; that traces failed is in the report. When ctx ends Run returns
// its error and the report of what is done so far.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.Out = local(c.Out)
	if c.Jobs <= 0 {
		c.Jobs = runtime.GOMAXPROCS(0)
	}
	if c.MaxMemory <= 0 {
		c.MaxMemory = DefaultMemory()
	}
	if c.MaxSize <= 0 {
		c.MaxSize = 1 << 40
	}
	if c.Progress == nil {
		c.Progress = &Progress{}
	}
	if dst, err := os.Stat(c.Out); err == nil && !isURL(c.Out) {
		for _, p := range c.Paths {
			if src, err := os.Stat(local(p)); err == nil && os.SameFile(src, dst) {
				return nil, report.UsageError{Err: fmt.Errorf("%s: is an input itself; name another folder for the outputs", c.Out)}
			}
		}
	}
	s, err := openSink(ctx, &c)
	if err != nil {
		return nil, err
	}
	j, err := s.start(ctx, c.Resume, c.Force)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	// The budget holds for what traces are estimated to need; where they need more the
	// collector works harder before more is taken. With room there is no need to hurry.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(heapLimit(c.MaxMemory)))
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	defer relay.Reserve(c.Jobs - 1)()

	r := &runner{Config: &c, sink: s, journal: j, budget: newBudget(c.MaxMemory), digest: sha256.New()}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.Version, c.Do, c.Format, c.Options))
	r.options = hex.EncodeToString(sum[:])
	err = r.run(ctx)
	rep := r.report()
	if err == nil {
		err = r.writeReports(ctx, rep)
	}
	if cerr := s.close(); err == nil && cerr != nil {
		err = fmt.Errorf("%s: %w", c.Out, cerr)
	}
	return rep, err
}

func openSink(ctx context.Context, c *Config) (sink, error) {
	if !isURL(c.Out) {
		return &dirSink{dir: c.Out, shard: c.Shard}, nil
	}
	if c.OpenURL == nil {
		return nil, report.UsageError{Err: fmt.Errorf("%s: URLs are not supported here", c.Out)}
	}
	s, key, err := c.OpenURL(ctx, c.Out)
	if err != nil {
		return nil, err
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		key += "/"
	}
	return &storeSink{store: s, prefix: key, shard: c.Shard}, nil
}

// A runner is one batch at work.
type runner struct {
	*Config
	sink    sink
	journal *journal
	budget  *budget
	options string // hash
	digest  hash.Hash
	total   int // items in the list, over all shards

	mu      sync.Mutex
	results []*Result
	logErr  error // the first failure to write the journal
}

type ticket struct {
	it      *item
	release func()
}

func (r *runner) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan ticket)
	var wg sync.WaitGroup
	for range r.Jobs {
		wg.Go(func() {
			for t := range queue {
				r.one(ctx, t.it)
				t.it.close()
				t.release()
			}
		})
	}
	w := &walker{
		ctx: ctx, temp: r.sink.temp(), stdin: r.Stdin, do: r.Do, format: r.Format,
		maxSize: r.MaxSize, openURL: r.OpenURL, names: newOutNamer(), progress: r.Progress,
	}
	for _, name := range append([]string{r.Out}, r.Ignore...) {
		if st, err := os.Stat(name); err == nil && !isURL(name) {
			w.ignore = append(w.ignore, st)
		}
	}
	var failed error
	w.yield = func(it *item) bool {
		fmt.Fprintf(r.digest, "%q\n", it.name)
		r.total++
		if !r.Shard.has(it.name) {
			it.close()
			r.Progress.credit(it.credit)
			return ctx.Err() == nil
		}
		if it.skip != "" || it.err != nil {
			r.leave(it)
			return ctx.Err() == nil
		}
		need := cost(it.stored, it.packed)
		if r.Resume && r.journal.tries[it.out] >= 2 {
			// It was in work when earlier runs ended, twice. If that was for want of
			// memory, it is to have all of it now.
			need = r.budget.all
		}
		release, err := r.budget.acquire(ctx, need)
		if err != nil {
			it.close()
			return false
		}
		if err := it.capture(r.sink.temp()); err != nil {
			defer release()
			if ctx.Err() == nil {
				it.err = err
				r.leave(it)
			}
			it.close()
			return ctx.Err() == nil
		}
		select {
		case queue <- ticket{it, release}:
			return true
		case <-ctx.Done():
			it.close()
			release()
			return false
		}
	}
	failed = w.walk(r.Paths)
	close(queue)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return failed
}

// leave records an item that is not worked on.
func (r *runner) leave(it *item) {
	res := &Result{Index: it.index, Trace: r.blank(it)}
	if it.skip != "" {
		res.Status, res.Reason = Skipped, it.skip
	} else {
		res.Status, res.Error = Failed, it.err.Error()
	}
	r.add(it, res)
}

func (r *runner) blank(it *item) report.Trace {
	return report.Trace{Command: r.Do, Input: report.Input{Name: it.name, Bytes: it.stored}}
}

func (r *runner) add(it *item, res *Result) {
	r.Progress.ended(it, res)
	r.mu.Lock()
	r.results = append(r.results, res)
	r.mu.Unlock()
}

// one takes one item through the work. Nothing that happens in it stops the batch.
func (r *runner) one(ctx context.Context, it *item) {
	r.Progress.began(it)
	res := &Result{Index: it.index, Trace: r.blank(it)}
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("internal error: %v; please report it with the trace, if you can share it", p)
			}
		}()
		return r.do(ctx, it, res)
	}()
	if err != nil {
		r.sink.discard(it.out)
		if ctx.Err() != nil {
			return // not failed but interrupted
		}
		res.Status, res.Error, res.Output = Failed, r.relative(err.Error()), nil
	}
	r.add(it, res)
}

// relative takes the output folder out of a message: the same batch in another place
// gives the same report.
func (r *runner) relative(msg string) string {
	for _, dir := range []string{r.Out, filepath.Clean(r.Out)} {
		msg = strings.ReplaceAll(msg, strings.TrimSuffix(dir, "/")+string(filepath.Separator), "")
	}
	return msg
}

func (r *runner) do(ctx context.Context, it *item, res *Result) error {
	old := r.journal.done[it.out]
	resumable := r.Resume && old != nil && old.Options == r.options
	if resumable && it.version != "" && old.Version == it.version && r.sink.holds(ctx, old) {
		res.take(old)
		return nil
	}
	if it.fetch != nil {
		src, err := it.fetch()
		if err != nil {
			return err
		}
		it.stream = src
		err = it.capture(r.sink.temp())
		src.Close()
		if err != nil {
			return err
		}
		if it.cut != nil {
			return it.cut // a network's failure says nothing about the trace
		}
		res.Input.Bytes = it.stored
	}
	var content string
	var err error
	if it.cut == nil {
		if content, err = it.content(ctx); err != nil {
			return plain(err)
		}
		if resumable && old.Content == content && r.sink.holds(ctx, old) {
			res.take(old)
			return nil
		}
	}
	in, err := it.input(ctx, &input.Options{TempDir: r.sink.temp(), RatioAfter: memberAfter})
	var unpack *input.UnpackError
	if errors.As(err, &unpack) && !looksLikeTrace(it.rel) {
		res.Status, res.Reason = Skipped, skipNoTrace
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	res.Input.Format, res.Input.Layers = in.Kind.String(), in.Layers
	if why, err := r.notTrace(ctx, in, it); why != "" || err != nil {
		res.Status, res.Reason = Skipped, why
		return err
	}
	replace := r.Force || r.journal.begun[it.out] || r.Resume && !r.sink.begins()
	if !replace && r.sink.exists(ctx, it.out) {
		return fmt.Errorf("%s: %w", it.out, output.ErrExists)
	}
	if r.sink.begins() {
		if err := r.sink.log(ctx, entry{Begin: it.out}); err != nil {
			return fmt.Errorf("the journal: %w", err)
		}
	}
	p, err := r.sink.place(it.out)
	if err != nil {
		return err
	}
	if err := output.Check(p, &output.Options{Force: true, Inputs: []string{it.path}}); err != nil {
		return err
	}
	rep, err := r.Work(ctx, in, Job{Out: p, Format: r.Format, Force: replace})
	if rep != nil {
		rep.Input.Name, rep.Input.Bytes = it.name, res.Input.Bytes
		res.Trace = *rep
	}
	if err != nil {
		return err
	}
	if it.cut != nil {
		what := "the archive ends or breaks inside this member, and what stood behind it is lost: " + it.cut.Error()
		if errors.Is(it.cut, input.ErrZipDirectory) {
			what = it.cut.Error()
		}
		res.AddDamage(report.Damage{Offset: it.stored, Where: "archive", What: what})
	}
	rec := &record{Out: it.out, Content: content, Version: it.version, Options: r.options}
	if res.Output != nil {
		res.Output.Name = it.out
		if rec.Size, rec.SHA256, err = hashFile(p); err != nil {
			return err
		}
		if err := r.sink.publish(ctx, it.out); err != nil {
			return err
		}
	}
	res.trim()
	rec.Trace = &res.Trace
	if it.cut != nil {
		return nil // the archive may be whole next time
	}
	if err := r.sink.log(ctx, entry{Done: rec}); err != nil {
		// The output stands; a resumed run will only make it once more.
		r.mu.Lock()
		r.logErr = errors.Join(r.logErr, err)
		r.mu.Unlock()
	}
	return nil
}

// notTrace says why a file that is no trace is left out. What another tool wrote is named; other
// files whose name promises a trace are not left out: they fail.
func (r *runner) notTrace(ctx context.Context, in *input.File, it *item) (why string, err error) {
	row := command.Lookup(r.Do)
	if in.Kind == input.Unknown && (row == nil || !row.Takes(in)) {
		if what := input.Foreign(in.Head()); what != "" {
			return skipForeign + what, nil
		}
	}
	switch takes := row == nil || row.Takes(in); {
	case in.Kind == input.Unknown:
		if takes || looksLikeTrace(it.rel) {
			return "", nil
		}
		return skipNoTrace, nil
	case in.Kind == input.Chromium:
		other, err := otherJSON(ctx, in, it.rel)
		switch {
		case err != nil:
			return "", nil // the work tells what is wrong with it
		case other:
			return skipJSON, nil
		}
	}
	if row != nil && !row.Takes(in) {
		// It lies beside what it was made from.
		return fmt.Sprintf("a %s trace: --do %s reads %s", in.Kind, r.Do, row.Inputs()), nil
	}
	return "", nil
}

// otherJSON reports whether content is whole JSON without a trace event: one document,
// or the first of many, as in a log.
func otherJSON(ctx context.Context, in *input.File, name string) (bool, error) {
	const most = 16 << 20 // no manifest is larger, and no line of a log
	r, err := in.Reader()
	if err != nil {
		return false, err
	}
	defer r.Close()
	var doc []byte
	chunk := 64 << 10
	whole := false
	for !whole && len(doc) <= most {
		n := len(doc)
		doc = append(doc, make([]byte, chunk)...)
		m, err := io.ReadFull(r, doc[n:])
		doc = doc[:n+m]
		from := max(0, n-32)
		for _, mark := range []string{`"traceEvents"`, `"ph"`} {
			if bytes.Contains(doc[from:], []byte(mark)) {
				return false, nil
			}
		}
		whole = err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !whole || ctx.Err() != nil {
			return false, err
		}
		chunk = min(2*chunk, 1<<20)
	}
	doc = bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(doc))
	var first json.RawMessage
	switch err := d.Decode(&first); {
	case err != nil: // of a file called .json it is worth to tell what is wrong
		return whole && !looksLikeTrace(name), nil
	case bytes.Equal(first, []byte("[]")):
		return false, nil
	}
	rest := bytes.TrimLeft(doc[d.InputOffset():], " \t\r\n")
	return whole && len(rest) == 0 || len(rest) > 0 && (rest[0] == '{' || rest[0] == '['), nil
}

// report gathers the results in input order.
func (r *runner) report() *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	sort.Slice(r.results, func(i, j int) bool { return r.results[i].Index < r.results[j].Index })
	rep := &Report{
		Command: "batch", Version: r.Version, Do: r.Do, Format: r.Format,
		Traces: []*Result{},
		List:   List{Inputs: r.total, Digest: hex.EncodeToString(r.digest.Sum(nil))},
	}
	if r.Shard.Count > 1 {
		s := r.Shard
		rep.Shard = &s
	}
	for _, res := range r.results {
		rep.add(res)
	}
	rep.finish(r.Gates)
	return rep
}

// writeReports writes the reports beside the outputs.
func (r *runner) writeReports(ctx context.Context, rep *Report) error {
	if r.logErr != nil {
		rep.Notes = append(rep.Notes, "the journal could not be written; --resume will do more again than it needs to: "+r.logErr.Error())
	}
	for _, w := range rep.writers("") {
		var b bytes.Buffer
		if err := w.write(&b); err != nil {
			return err
		}
		rel := reportName + r.Shard.suffix() + w.end
		if err := r.sink.put(ctx, rel, b.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
	}
	return nil
}

// writeFile makes a file appear whole, replacing an older one.
func writeFile(name string, b []byte) error {
	f, err := output.Create(name, &output.Options{Force: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Commit()
}

// Outputs lists the names of a batch's outputs in the order of their inputs.
func (r *Report) Outputs() []string {
	var names []string
	for _, t := range r.Traces {
		if t.Output != nil {
			names = append(names, t.Output.Name)
		}
	}
	return names
}
