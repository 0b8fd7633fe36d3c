package batch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json" // to check whole documents of users
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	Manifest  *Manifest // a piece of a plan in place of Paths; it is resumed always
	Attempts  int       // a trace is given up when that many runs died at work on it; 0: 3
	Gates     []Gate
	Ignore    []string // files that are no inputs: other outputs of the run

	Stdin    io.Reader
	OpenURL  OpenURL // nil: no URLs
	Progress *Progress
}

// LeastAttempts is the least number of deaths after which a trace is given up: what was at
// work beside it must not pay for it.
const LeastAttempts = 3

func (c *Config) defaults() {
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
	c.Attempts = max(c.Attempts, LeastAttempts)
}

// lister lists the inputs of c.
func (c *Config) lister(ctx context.Context, st *stores, yield func(*entry) bool) *lister {
	l := &lister{
		ctx: ctx, stdin: c.Stdin, do: c.Do, format: c.Format, stores: st,
		names: newOutNamer(true), progress: c.Progress, yield: yield,
	}
	for _, name := range append([]string{c.Out}, c.Ignore...) {
		if st, err := os.Stat(name); err == nil && !isURL(name) {
			l.ignore = append(l.ignore, st)
		}
	}
	return l
}

// An UnwrittenError reports that all is done and in the Report, but that not all of its files could be written.
type UnwrittenError struct{ error }

// Unwrap returns the causes.
func (e UnwrittenError) Unwrap() error { return e.error }

// Run works on everything that c names. An error says that the batch as a whole
// could not be done, an UnwrittenError that only its reports could not be written; that
// traces failed is in the report. When ctx ends Run returns its error and the report of
// what is done so far.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.defaults()
	if dst, err := os.Stat(c.Out); err == nil && !isURL(c.Out) {
		for _, p := range c.Paths {
			if src, err := os.Stat(local(p)); err == nil && os.SameFile(src, dst) {
				return nil, report.UsageError{Err: fmt.Errorf("%s: is an input itself; name another folder for the outputs", c.Out)}
			}
		}
	}
	if c.Manifest == nil && slices.Contains(c.Paths, "-") {
		stop, err := c.peekList(ctx)
		defer stop()
		if err != nil {
			return nil, err
		}
	}
	r := &runner{Config: &c, budget: newBudget(c.MaxMemory), stores: &stores{open: c.OpenURL}}
	defer r.stores.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
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

	r.sink, r.journal, r.reads = s, j, r.findReads()
	// The process may be ended before its workers are: what is at work did not kill it.
	defer context.AfterFunc(ctx, func() { s.stop() })()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.Version, c.Do, c.Format, c.Options))
	r.options = hex.EncodeToString(sum[:])
	err = r.run(ctx)
	rep, ferr := r.report()
	if err == nil {
		err = ferr
	}
	if err == nil {
		err = r.writeReports(ctx, rep)
		if err != nil && ctx.Err() == nil {
			err = UnwrittenError{err}
		}
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
	stores  *stores
	sink    sink
	journal *journal
	budget  *budget
	options string // hash
	list    List
	part    []*entry // what is to be done, if that is known before anything is begun

	mu      sync.Mutex
	results []*Result
	logErr  error // the first failure to write the journal

	reads *reads

	redone atomic.Int64 // traces that others had done: another version, or with other flags
}

// prepare finds out what a shard or a piece has to do, before anything is begun.
func (r *runner) prepare(ctx context.Context) error {
	switch {
	case r.Manifest != nil:
		plan, piece, err := r.Manifest.read(ctx, r.stores)
		if err != nil {
			return err
		}
		if plan.Do != r.Do || plan.Format != r.Format {
			return report.UsageError{Err: fmt.Errorf("%s is a plan for %s; give the same flags", r.Manifest.Name, strings.TrimSpace("--do "+plan.Do+" --format "+plan.Format))}
		}
		r.list, r.part = plan.List, piece.Entries
		r.Shard = Shard{Index: piece.Piece + 1, Count: plan.Pieces, Piece: true}
		r.Resume = r.Resume || !r.Force
	case r.Shard.Count > 1:
		all, n, list, err := listAll(ctx, r.Config, r.stores, func(int64) int { return r.Shard.Count })
		if err != nil {
			return err
		}
		r.list, r.part = list, deal(all, n)[r.Shard.Index-1].entries
	}
	r.list.Own = len(r.part)
	return nil
}

// A ticket is an item that has its share of the memory.
type ticket struct {
	it      *item
	release func()
}

// run takes entries to those who open them, and their items to those who work on them.
// What may have killed earlier runs comes last, and alone.
func (r *runner) run(whole context.Context) error {
	ctx, stop := context.WithCancel(whole)
	defer stop()
	queue := make(chan ticket)
	var workers sync.WaitGroup
	for range r.Jobs {
		workers.Go(func() {
			for t := range queue {
				r.one(ctx, t.it)
				t.it.close()
				t.release()
			}
		})
	}
	entries := make(chan *entry)
	var listed error
	var last []*entry
	go func() {
		defer close(entries)
		last, listed = r.feed(ctx, entries)
		if listed != nil {
			stop()
		}
	}()
	var openers sync.WaitGroup
	for range r.Jobs {
		openers.Go(func() {
			w := r.walker(ctx, queue, false)
			for e := range entries {
				r.open(ctx, w, e)
			}
		})
	}
	openers.Wait()
	w := r.walker(ctx, queue, true)
	for _, e := range last {
		if all, err := r.budget.acquire(ctx, r.budget.all); err == nil {
			all() // nothing else is at work any more
			r.open(ctx, w, e)
		}
	}
	close(queue)
	workers.Wait()
	return cmp.Or(whole.Err(), listed, ctx.Err())
}

// feed hands on what there is to do, and returns what is to come last. A bucket is told of
// many entries at once that they begin.
func (r *runner) feed(ctx context.Context, to chan<- *entry) (last []*entry, err error) {
	const most, mostBytes = 32, 256 << 20
	var group []*entry
	var bytes int64
	flush := func() bool {
		if err = r.beginAll(ctx, group); err != nil {
			return false
		}
		for _, e := range group {
			select {
			case to <- e:
			case <-ctx.Done():
				return false
			}
		}
		group, bytes = group[:0], 0
		return true
	}
	take := func(e *entry) bool {
		if r.deaths(e.Out) >= LeastAttempts-1 {
			last = append(last, e)
			return ctx.Err() == nil
		}
		group, bytes = append(group, e), bytes+e.bytes()
		return len(group) < most && bytes < mostBytes && !r.sink.eager() || flush()
	}
	if r.list.Digest != "" {
		for _, e := range r.part {
			if !take(e) {
				return last, err
			}
		}
	} else {
		sum := sha256.New()
		n := 0
		l := r.lister(ctx, r.stores, func(e *entry) bool {
			e.addTo(sum)
			if !e.own {
				n++
			}
			return take(e)
		})
		werr := l.walk(r.Paths)
		r.list = List{Inputs: n, Digest: hex.EncodeToString(sum.Sum(nil))}
		if err = cmp.Or(err, werr); err != nil {
			return last, err
		}
	}
	flush()
	return last, err
}

// deaths is how many runs died at work on an output or, of an archive, on what is in it.
func (r *runner) deaths(out string) int { return r.journal.tries[out] }

// beginAll records that entries begin, where that is done for many at once.
func (r *runner) beginAll(ctx context.Context, group []*entry) error {
	if r.sink.eager() {
		return nil
	}
	var facts []fact
	for _, e := range group {
		if e.Out != "" && r.deaths(e.Out) == 0 && r.known(e.Out, e.Version) == nil {
			facts = append(facts, fact{Begin: e.Out})
		}
	}
	if len(facts) == 0 {
		return nil
	}
	if err := r.sink.log(ctx, true, facts...); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	return nil
}

// known is the record of an output whose input need not be opened to know that it is done.
func (r *runner) known(out, version string) *record {
	if !r.Resume || version == "" {
		return nil
	}
	if old := r.journal.done[out]; old != nil && old.Options == r.options && old.Version == version {
		return old
	}
	return nil
}

// takeOver takes what an earlier run did to an entry, if all of that is still there.
func (r *runner) takeOver(ctx context.Context, e *entry, old *record) bool {
	members := []memberRecord{{Out: e.Out, Bytes: e.Size}}
	if old.Members != nil {
		members = old.Members
	}
	if !old.Span.equal(e.Members) && old.Members != nil {
		return false
	}
	items := make([]*item, len(members))
	for i, m := range members {
		it := &item{entry: e, index: e.Index, member: m.Member, seq: m.Seq, name: e.Name + m.Name, out: m.Out, stored: m.Bytes, skip: m.Skip}
		if m.Skip == "" {
			if it.old = r.known(m.Out, e.Version); it.old == nil || !r.sink.holds(ctx, it.old) {
				return false
			}
		}
		items[i] = it
	}
	for _, it := range items {
		r.leave(it)
	}
	r.Progress.credit(e.Size)
	return true
}

func (r *runner) walker(ctx context.Context, queue chan<- ticket, alone bool) *walker {
	w := &walker{
		ctx: ctx, temp: r.sink.temp(), do: r.Do, format: r.Format,
		maxSize: r.MaxSize, stores: r.stores, progress: r.Progress,
	}
	w.archived = func(e *entry) error {
		e.archive.Options = r.options
		if !r.sink.eager() {
			return nil // it is told ahead
		}
		return r.sink.log(ctx, true, fact{Begin: e.Out})
	}
	w.known = func(it *item) *record {
		if old := r.known(it.out, it.version); old != nil && r.sink.holds(ctx, old) {
			return old
		}
		return nil
	}
	w.yield = func(it *item) bool { return r.take(ctx, queue, it, alone) }
	return w
}

// open takes one entry through a walker.
func (r *runner) open(ctx context.Context, w *walker, e *entry) {
	if ctx.Err() != nil {
		return
	}
	plain := &item{entry: e, index: e.Index, name: e.Name, out: e.Out, stored: e.Size, credit: e.Size}
	old := r.known(e.Out, e.Version)
	if old != nil && r.takeOver(ctx, e, old) {
		return
	}
	n := r.deaths(e.Out)
	if n-r.journal.inside[e.Out] >= r.Attempts {
		r.giveUp(plain, n)
		return
	}
	if (n > 0 || old != nil) && !r.sink.eager() { // it was not told ahead
		if err := r.sink.log(ctx, true, fact{Begin: e.Out}); err != nil {
			plain.err = fmt.Errorf("the journal: %w", ofStore(err))
			r.leave(plain)
			return
		}
	}
	e.left = newShared(func() {
		if ctx.Err() == nil && e.archive != nil { // all of its members are done
			r.log(ctx, e.outcome())
		}
	})
	defer e.left.done()
	w.open(e)
}

// giveUp records what killed too many runs.
func (r *runner) giveUp(it *item, deaths int) {
	res := &Result{Index: it.index, Member: it.member, seq: it.seq, Trace: r.blank(it), Quarantined: true}
	res.Status = Failed
	res.Error = fmt.Sprintf("given up: %d runs were killed, or ran out of memory, while they worked on it; try it alone on a machine with more memory, or --attempts %d to try it here again", deaths, deaths+1)
	r.add(it, res, nil)
	it.close()
}

// passOver records that the members of an archive come that earlier runs were through with, and where that ends:
// a run that dies in between, since it is killed again and again, did not die of the archive.
func (r *runner) passOver(ctx context.Context, it *item) {
	e, far, old := it.entry, r.journal.far[it.entry.Out], r.journal.done[it.out]
	switch {
	case !e.passed && it.seq < far && r.Resume && old != nil && old.Options == r.options:
		r.log(ctx, fact{Pass: e.Out})
	case e.passed && it.seq >= far:
		r.log(ctx, fact{Begin: e.Out})
	default:
		return
	}
	e.passed = !e.passed
}

// take hands an item to the workers once there is memory for it.
func (r *runner) take(ctx context.Context, queue chan<- ticket, it *item, alone bool) bool {
	it.closers = append([]func(){it.entry.left.use()}, it.closers...)
	r.passOver(ctx, it)
	if it.skip != "" || it.err != nil || it.old != nil {
		r.leave(it)
		it.close()
		return ctx.Err() == nil
	}
	deaths := r.deaths(it.out)
	if deaths >= r.Attempts && it.out != it.entry.Out {
		r.giveUp(it, deaths)
		return ctx.Err() == nil
	}
	need := cost(it.stored, it.packed)
	if alone || deaths >= LeastAttempts-1 {
		need = r.budget.all
	}
	release, err := r.budget.acquire(ctx, need)
	if err != nil {
		it.close()
		return false
	}
	if !it.alone {
		if err := it.capture(r.sink.temp()); err != nil {
			defer release()
			if ctx.Err() == nil {
				it.err = err
				r.leave(it)
			}
			it.close()
			return ctx.Err() == nil
		}
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

// leave records an item that is not worked on.
func (r *runner) leave(it *item) {
	res := &Result{Index: it.index, Member: it.member, seq: it.seq, Trace: r.blank(it)}
	f := &fact{End: it.out}
	switch {
	case it.old != nil:
		res.take(it.old)
		f = &fact{Done: it.old}
	case it.skip != "":
		res.Status, res.Reason = Skipped, it.skip
	default:
		res.fail(it.err)
	}
	r.add(it, res, f)
}

func (r *runner) blank(it *item) report.Trace {
	return report.Trace{Command: r.Do, Input: report.Input{Name: it.name, Bytes: it.stored}}
}

// add takes a result, and what the journal is to know of it.
func (r *runner) add(it *item, res *Result, f *fact) {
	r.Progress.ended(it, res)
	r.mu.Lock()
	r.results = append(r.results, res)
	it.entry.came(it, res, f)
	r.mu.Unlock()
	if f != nil && it.old == nil && (f.Done != nil || f.End != "") {
		r.log(context.Background(), *f)
	}
}

// log adds to the journal what can do without: the outputs stand, and a resumed run will
// only make them once more.
func (r *runner) log(ctx context.Context, f fact) {
	if err := r.sink.log(ctx, f.Begin != "", f); err != nil && !errors.Is(err, errStopped) {
		r.mu.Lock()
		r.logErr = cmp.Or(r.logErr, err) // the disk is as full for each trace that follows
		r.mu.Unlock()
	}
}

// one takes one item through the work. Nothing that happens in it stops the batch.
func (r *runner) one(ctx context.Context, it *item) {
	r.Progress.began(it)
	res := &Result{Index: it.index, Member: it.member, seq: it.seq, Trace: r.blank(it)}
	var rec *record
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("internal error: %v; please report it with the trace, if you can share it", p)
			}
		}()
		rec, err = r.do(ctx, it, res)
		return err
	}()
	if err != nil {
		r.sink.discard(it.out)
		if ctx.Err() != nil {
			return // not failed but interrupted
		}
		res.fail(err)
		res.Error, res.Output = r.relative(res.Error), nil
	}
	f := &fact{End: it.out}
	if err == nil && rec != nil {
		f = &fact{Done: rec}
	}
	r.add(it, res, f)
}

// relative takes the output folder out of a message: the same batch in another place
// gives the same report.
func (r *runner) relative(msg string) string {
	switch filepath.Base(r.Out) {
	case ".", "..", string(filepath.Separator): // any path may begin so
		return msg
	}
	given, clean := strings.TrimSuffix(r.Out, "/"), filepath.Clean(r.Out)
	msg = withoutFolder(msg, given+string(filepath.Separator))
	if clean != given {
		msg = withoutFolder(msg, clean+string(filepath.Separator))
	}
	return msg
}

// withoutFolder takes dir out of the paths of a message that begin with it: with "out/",
// "checkout/bad" stays.
func withoutFolder(msg, dir string) string {
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(msg[at:], dir)
		if i < 0 {
			return b.String() + msg[at:]
		}
		b.WriteString(msg[at : at+i])
		if at += i; at > 0 && !strings.ContainsRune(" \"'`([=:", rune(msg[at-1])) {
			b.WriteString(dir)
		}
		at += len(dir)
	}
}

// do makes the output of an item. The record is nil where there is nothing to go by later.
func (r *runner) do(ctx context.Context, it *item, res *Result) (*record, error) {
	old := r.earlier(it)
	if it.alone {
		if err := it.capture(r.sink.temp()); err != nil {
			return nil, err
		}
		res.Input.Bytes = it.stored
	}
	if it.cut != nil && (ofStores(it.cut) || it.entry.Out == it.out) {
		return nil, ofStore(it.cut)
	}
	rec := &record{Out: it.out, Version: it.version, Options: r.options}
	if it.cut == nil {
		var err error
		if rec.Content, err = it.content(ctx); err != nil {
			return nil, input.Plain(err)
		}
		if old != nil && old.Content == rec.Content && r.sink.holds(ctx, old) {
			res.take(old)
			again := *old
			again.Version = it.version
			return &again, nil
		}
	}
	in, err := it.input(ctx, &input.Options{TempDir: r.sink.temp(), RatioAfter: memberAfter})
	var unpack *input.UnpackError
	if errors.As(err, &unpack) && !looksLikeTrace(it.name) && archiveName(it.name) == "" {
		return r.skipped(rec, res, skipNoTrace), nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	res.Input.Format, res.Input.Layers = in.Kind.String(), in.Layers
	if why, err := r.notTrace(ctx, in, it); why != "" || err != nil {
		return r.skipped(rec, res, why), err
	}
	to, err := r.target(ctx, it)
	if err != nil {
		return nil, err
	}
	defer to.drop()
	if err := r.begin(ctx, it, to.there); err != nil {
		return nil, fmt.Errorf("the journal: %w", ofStore(err))
	}
	rep, err := r.Work(ctx, in, Job{Out: to.path, Format: r.Format, Force: to.replace})
	if rep != nil {
		rep.Input.Name, rep.Input.Bytes = it.name, res.Input.Bytes
		res.Trace = *rep
	}
	if err != nil {
		return nil, err
	}
	if it.cut != nil {
		res.AddDamage(it.lostBehind())
	}
	if res.Output != nil {
		res.Output.Name = it.out
		if err := r.publish(ctx, rec, to); err != nil {
			return nil, err
		}
	}
	res.trim()
	rec.Trace = &res.Trace
	if it.cut != nil {
		return nil, nil // the archive may be whole next time
	}
	return rec, nil
}

// earlier is the record that a run with these options left of an item, if this one goes on with it.
func (r *runner) earlier(it *item) *record {
	old := r.journal.done[it.out]
	if !r.Resume || old == nil {
		return nil
	}
	if old.Options != r.options {
		r.redone.Add(1)
		return nil
	}
	return old
}

// A target is where the output of an item is made.
type target struct {
	path    string
	replace bool // what is there already
	there   bool // an output is, and what is made at path only tells whether it is the same
}

func (t *target) drop() {
	if t.there {
		os.Remove(t.path)
	}
}

// target finds out where the output of an item is to be made.
func (r *runner) target(ctx context.Context, it *item) (*target, error) {
	ours := r.journal.begun[it.out]
	replace := r.Force || ours || r.Resume && !r.sink.eager()
	there := !replace && r.sink.exists(ctx, it.out)
	taken := there && !r.Resume
	p, err := r.sink.place(it.out)
	if err != nil {
		return nil, err
	}
	if err := output.Check(p, &output.Options{Force: true, Inputs: []string{it.path}}); err != nil {
		return nil, err
	}
	// No input is replaced with Force either: what helps is told first.
	if (replace || taken) && r.reads.has(p, ours) {
		return nil, fmt.Errorf("%s: is an input of this batch as well; name another folder for the outputs", it.out)
	}
	if taken {
		return nil, fmt.Errorf("%s: %w", it.out, output.ErrExists)
	}
	if there {
		// The journal may lack what was made just before a machine went down. What would be made again
		// tells: if it is the same, nothing is replaced.
		p = filepath.Join(r.sink.temp(), "again", filepath.FromSlash(it.out))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return nil, inTemp(r.sink.temp(), err)
		}
	}
	return &target{path: p, replace: replace, there: there}, nil
}

// publish puts the output that was made into its place, and into the record.
func (r *runner) publish(ctx context.Context, rec *record, made *target) (err error) {
	if rec.Size, rec.SHA256, err = hashFile(made.path); err != nil {
		return err
	}
	if made.there && !r.sink.holds(ctx, rec) {
		return fmt.Errorf("%s: %w", rec.Out, output.ErrExists)
	}
	return ofStore(r.sink.publish(ctx, rec.Out))
}

// skipped tells that a file is not a trace. Of an object it is worth to remember: it would be
// asked for again only to find the same.
func (r *runner) skipped(rec *record, res *Result, why string) *record {
	if why == "" {
		return nil
	}
	res.Status, res.Reason = Skipped, why
	if rec.Version == "" {
		return nil
	}
	rec.Skip, rec.Trace = why, &res.Trace
	return rec
}

// begin records that the work on an item begins, unless its group was told ahead.
func (r *runner) begin(ctx context.Context, it *item, there bool) error {
	f := fact{Begin: it.out, There: there}
	if it.out != it.entry.Out {
		f.In, f.At = it.entry.Out, it.seq
	}
	switch {
	case r.sink.eager():
	case f.In == "" || r.deaths(f.In) == 0 && r.deaths(it.out) == 0:
		return nil
	}
	return r.sink.log(ctx, true, f)
}

// notTrace says why a file that is not a trace is left out. What another tool wrote is named; other
// files whose name promises a trace are not left out: they fail.
func (r *runner) notTrace(ctx context.Context, in *input.File, it *item) (why string, err error) {
	row := command.Lookup(r.Do)
	if tarHeader(in.Head()) || in.Kind == input.Unknown && (row == nil || !row.Takes(in)) { // of a tar salvage makes one trace
		if err := brokenArchive(in, it.name); err != nil {
			return "", err
		}
		if what := input.Foreign(in.Head()); what != "" {
			return skipForeign + what, nil
		}
	}
	switch takes := row == nil || row.Takes(in); {
	case in.Kind == input.Unknown:
		if takes || looksLikeTrace(it.name) {
			return "", nil
		}
		return skipNoTrace, nil
	case in.Kind == input.Chromium:
		other, err := otherJSON(ctx, in, it.name)
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
func (r *runner) report() (*Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.results, func(a, b *Result) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Member, b.Member), cmp.Compare(a.seq, b.seq))
	})
	rep := &Report{
		Command: "batch", Version: r.Version, Do: r.Do, Format: r.Format,
		Traces: []*Result{},
		List:   r.list,
		Redone: int(r.redone.Load()),
	}
	if r.Shard.Count > 1 || r.Shard.Piece {
		s := r.Shard
		rep.Shard = &s
	}
	for _, res := range r.results {
		rep.add(res)
	}
	return rep, rep.finish(r.Gates)
}

// writeReports writes the reports beside the outputs: one that cannot be does not keep the others from it.
func (r *runner) writeReports(ctx context.Context, rep *Report) error {
	if r.logErr != nil {
		rep.Notes = append(rep.Notes, "the journal could not be written; --resume will do more again than it needs to: "+r.logErr.Error())
	}
	var failed error
	for _, w := range rep.writers("") {
		if !slices.Contains(r.Shard.ends(), w.end) {
			continue
		}
		var b bytes.Buffer
		if err := w.write(&b); err != nil {
			return err
		}
		rel := r.Shard.report() + w.end
		if err := r.sink.put(ctx, rel, b.Bytes()); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", rel, err))
		}
	}
	return failed
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
