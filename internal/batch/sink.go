package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// A sink is where outputs and the journal go.
type sink interface {
	// start takes hold of the place and gives the journal of earlier runs. A place that
	// holds a batch is an error unless that is resumed; one that holds reports but no
	// batch, so that they are not ours, is an error always. force takes either, and drops
	// the journal of a batch that is not resumed.
	start(ctx context.Context, resume, force bool) (*journal, error)
	temp() string // a folder on this machine that vanishes with the run
	// place is where on this machine the output is written.
	place(rel string) (string, error)
	// publish makes the written output appear, if writing it did not already.
	publish(ctx context.Context, rel string) error
	// discard takes back place for an output that did not come about.
	discard(rel string)
	// holds says whether the output of a record is there, whole.
	holds(ctx context.Context, r *record) bool
	// eager says whether each trace is recorded as begun by itself, just before its work. A
	// bucket, where a record is an object, is told of many at once and ahead.
	eager() bool
	// exists says whether something of that name is there.
	exists(ctx context.Context, rel string) bool
	open(ctx context.Context, rel string) (io.ReadCloser, error)
	// log adds to the journal. A bucket keeps facts together for a while, unless they must
	// be known now.
	log(ctx context.Context, now bool, facts ...fact) error
	put(ctx context.Context, rel string, b []byte) error // a report
	// stop records that the run ends by itself. What begins later is not recorded, and must
	// not begin.
	stop() error
	close() error
}

// foreignReport is the error of a place that holds reports but no batch.
func foreignReport(ctx context.Context, s sink, shard Shard, place string) error {
	for _, e := range shard.ends() {
		if rel := shard.report() + e; s.exists(ctx, rel) {
			return report.UsageError{Err: fmt.Errorf("%s: %s %w", place, rel, output.ErrExists)}
		}
	}
	return nil
}

// holdsBatch is the error of a place that holds a batch which is not resumed.
func holdsBatch(place string) error {
	return report.UsageError{Err: fmt.Errorf("%s holds a batch already: --resume goes on with it, --force starts over", place)}
}

const (
	journalBegin = "journal"
	journalEnd   = ".ndjson"
	newEnd       = ".new" // of a journal that is to take the place of another
)

// errStopped is the error of what would begin in a run that ends.
var errStopped = errors.New("the run was interrupted")

func begins(facts []fact) bool {
	return slices.ContainsFunc(facts, func(f fact) bool { return f.Begin != "" })
}

// A dirSink is a folder.
type dirSink struct {
	dir   string
	shard Shard

	mu      sync.Mutex
	file    *os.File // the journal
	made    map[string]bool
	stopped bool
}

func (s *dirSink) state(name string) string { return filepath.Join(s.dir, stateDir, name) }

func (s *dirSink) path(rel string) string { return filepath.Join(s.dir, filepath.FromSlash(rel)) }

func (s *dirSink) temp() string { return s.state("tmp" + s.shard.suffix()) }

func (s *dirSink) start(ctx context.Context, resume, force bool) (*journal, error) {
	_, before := os.Stat(s.dir)
	empty := func() { // nothing stays of a batch that did not begin
		os.Remove(s.state(""))
		if before != nil {
			os.Remove(s.dir)
		}
	}
	own := s.state(journalBegin + s.shard.suffix() + journalEnd)
	f, err := s.openJournal(own)
	if err != nil {
		empty()
		return nil, err
	}
	fresh := false // this run made the journal
	mine, err := func() (mine *journal, err error) {
		if fresh, err = s.lock(f, own); err != nil {
			return nil, err
		}
		if err := s.mayBegin(ctx, fresh, resume, force); err != nil {
			return nil, err
		}
		if err := s.makeTemp(own); err != nil {
			return nil, err
		}
		if mine, f, err = s.load(own, f, force && !resume); err != nil {
			return nil, err
		}
		// From now on the place is known to hold a batch.
		if _, err := f.WriteString("{}\n"); err != nil {
			return nil, s.cannot(err)
		}
		return mine, nil
	}()
	if err == nil {
		s.file, s.made = f, map[string]bool{}
		return mine, nil
	}
	if fresh {
		os.Remove(s.temp())
		output.Settled(s.temp())
		os.Remove(own)
	}
	f.Close()
	if fresh {
		os.Remove(own) // where an open file stays
		empty()
	}
	return nil, err
}

// cannot is the error of the folder.
func (s *dirSink) cannot(err error) error {
	return &output.PlaceError{Name: s.dir, Err: input.Plain(err)}
}

func (s *dirSink) openJournal(own string) (*os.File, error) {
	if err := os.MkdirAll(s.state(""), 0o777); err != nil {
		return nil, s.cannot(err)
	}
	f, err := os.OpenFile(own, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, s.cannot(err)
	}
	return f, nil
}

// lock keeps other batches away, and tells whether the journal is a new one.
func (s *dirSink) lock(f *os.File, own string) (fresh bool, err error) {
	taken := fmt.Errorf("%s: another tracefix batch is at work in it", s.dir)
	if err := output.Lock(f); err != nil {
		return false, taken
	}
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	if now, err := os.Stat(own); err != nil || !os.SameFile(st, now) { // compacted meanwhile
		return false, taken
	}
	return st.Size() == 0, nil
}

// mayBegin refuses a folder that holds something which the run is not told to go on with or to
// replace.
func (s *dirSink) mayBegin(ctx context.Context, fresh, resume, force bool) error {
	switch {
	case force:
		return nil
	case fresh:
		return foreignReport(ctx, s, s.shard, s.dir)
	case !resume:
		return holdsBatch(s.dir)
	}
	return nil
}

// makeTemp removes what a killed run left of its spool and half a journal, and makes the temporary
// folder anew.
func (s *dirSink) makeTemp(own string) error {
	os.Remove(own + newEnd)
	if err := os.RemoveAll(s.temp()); err != nil {
		return err
	}
	if err := os.MkdirAll(s.temp(), 0o777); err != nil {
		return s.cannot(err)
	}
	output.Temporary(s.temp(), nil)
	return nil
}

// load reads the journal, and removes outputs that a killed run had not finished. It returns the
// file that is the journal from now on, also with an error.
func (s *dirSink) load(own string, f *os.File, over bool) (*journal, *os.File, error) {
	mine := newJournal()
	if err := mine.load(f); err != nil {
		return nil, f, err
	}
	mine.end()
	left := leftovers{}
	for out := range mine.begun {
		left.sweep(s.path(out))
	}
	for _, e := range s.shard.ends() {
		left.sweep(s.path(s.shard.report() + e))
	}
	if over {
		// What it made stays ours: a run that goes on where this one is killed may replace it.
		begun := mine.begun
		mine = newJournal()
		mine.begun = begun
	}
	if over || mine.swollen() {
		if g, err := s.compact(own, mine); err == nil {
			f.Close()
			f = g
		} else if over {
			if err := f.Truncate(0); err != nil {
				return nil, f, err
			}
		}
	}
	if over {
		return mine, f, nil
	}
	if err := endLine(f); err != nil {
		return nil, f, err
	}
	mine, err := s.others(own, mine)
	return mine, f, err
}

// others adds what shards that are not ours did: another number of them may have worked
// here before, and what is done is done. Pieces of a plan have nothing in common.
func (s *dirSink) others(own string, mine *journal) (*journal, error) {
	if s.shard.Piece {
		return mine, nil
	}
	entries, err := os.ReadDir(s.state("")) // no pattern: the folder's own name may look like one
	if err != nil {
		return nil, err
	}
	all := newJournal()
	for _, e := range entries {
		name := s.state(e.Name())
		if name == own || !strings.HasPrefix(e.Name(), journalBegin) || !strings.HasSuffix(e.Name(), journalEnd) {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = all.load(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		all.end()
	}
	all.merge(mine) // last: it is the newest to us
	return all, nil
}

// compact puts a short journal in the place of a long one, and keeps the place taken.
func (s *dirSink) compact(name string, j *journal) (*os.File, error) {
	f, err := os.OpenFile(name+newEnd, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) { f.Close(); os.Remove(f.Name()); return nil, err }
	b, err := j.short()
	if err == nil {
		_, err = f.Write(b)
	}
	if err := errors.Join(err, f.Sync(), output.Lock(f)); err != nil {
		return fail(err)
	}
	if err := output.Rename(f.Name(), name); err != nil {
		return fail(err)
	}
	return f, nil
}

// endLine ends a line that a kill cut short, so that the next one stands alone.
func endLine(f *os.File) error {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, st.Size()-1); err != nil {
		return err
	}
	if b[0] != '\n' {
		_, err = f.Write([]byte("\n"))
	}
	return err
}

// leftovers are the temporary files in folders of outputs. A folder is read once, however many
// outputs it holds.
type leftovers map[string][]string

// sweep removes the temporary files of an output.
func (l leftovers) sweep(name string) {
	dir := filepath.Dir(name)
	files, read := l[dir]
	if !read {
		entries, _ := os.ReadDir(dir) // that is not there holds none
		for _, e := range entries {
			if e.Type().IsRegular() && output.IsTemporary(e.Name(), "") {
				files = append(files, e.Name())
			}
		}
		l[dir] = files
	}
	for _, f := range files {
		if output.IsTemporary(f, name) {
			os.Remove(filepath.Join(dir, f))
		}
	}
}

func (s *dirSink) place(rel string) (string, error) {
	p := s.path(rel)
	d := filepath.Dir(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stat(d); err != nil {
		// Remember which folders are ours: those that stay empty go again.
		for up := path.Dir(rel); up != "." && up != "/"; up = path.Dir(up) {
			if _, err := os.Stat(s.path(up)); err == nil {
				break
			}
			s.made[up] = true
		}
		if err := os.MkdirAll(d, 0o777); err != nil {
			return "", err
		}
	}
	return p, nil
}

func (s *dirSink) eager() bool { return true }

func (s *dirSink) publish(context.Context, string) error { return nil }

func (s *dirSink) discard(string) {}

func (s *dirSink) holds(_ context.Context, r *record) bool {
	if r.SHA256 == "" {
		return r.Trace.Output == nil
	}
	st, err := os.Lstat(s.path(r.Out))
	if err != nil || !st.Mode().IsRegular() || st.Size() != r.Size {
		return false
	}
	_, sum, err := hashFile(s.path(r.Out))
	return err == nil && sum == r.SHA256
}

func (s *dirSink) exists(_ context.Context, rel string) bool {
	_, err := os.Lstat(s.path(rel))
	return err == nil
}

func (s *dirSink) open(_ context.Context, rel string) (io.ReadCloser, error) {
	return os.Open(s.path(rel))
}

func (s *dirSink) log(_ context.Context, _ bool, facts ...fact) error {
	b, err := lines(facts...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && begins(facts) {
		return errStopped
	}
	return s.append(b)
}

func (s *dirSink) append(b []byte) error {
	n, err := s.file.Write(b)
	if err != nil && n > 0 { // a full disk: the rest of the line must not spoil the next
		s.file.Write([]byte("\n"))
	}
	if err != nil {
		return &output.PlaceError{Name: s.dir, Err: input.Plain(err)}
	}
	return nil
}

func (s *dirSink) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.file == nil {
		return nil
	}
	s.stopped = true
	b, err := fact{Stop: true}.line()
	if err != nil {
		return err
	}
	return s.append(b)
}

func (s *dirSink) put(_ context.Context, rel string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.path(rel)), 0o777); err != nil {
		return err
	}
	return writeFile(s.path(rel), b)
}

func (s *dirSink) close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.stop(), os.RemoveAll(s.temp()))
	output.Settled(s.temp())
	var dirs []string
	for d := range s.made {
		dirs = append(dirs, d)
	}
	sort.Sort(sort.Reverse(sort.StringSlice(dirs))) // the inner ones first
	for _, d := range dirs {
		os.Remove(s.path(d)) // fails for those that hold something
	}
	return errors.Join(err, s.file.Sync(), s.file.Close())
}

func hashFile(name string) (int64, string, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return n, hex.EncodeToString(sum.Sum(nil)), err
}

// A storeSink is a bucket. Outputs are written on this machine and put into it whole;
// the journal is a row of objects, since objects cannot grow.
type storeSink struct {
	store  Store
	prefix string // of keys: empty, or ending in /
	shard  Shard
	folder *output.TempFolder // on this machine; nil before start
	// there are the outputs that the bucket held at first, with their size. A piece, which
	// may replace what is its own, does not ask.
	there map[string]int64

	mu      sync.Mutex
	lines   bytes.Buffer
	flushed time.Time
	segment int
	began   bool // the journal says that this run did
	stopped bool
}

const (
	flushEvery = 5 * time.Second
	// maxSegments is how many objects a journal may have before it is made one again.
	maxSegments = 16
)

func (s *storeSink) key(rel string) string { return s.prefix + rel }

func (s *storeSink) temp() string { return filepath.Join(s.folder.Path, "tmp") }

// journalOf is where the keys of a journal begin.
func (s *storeSink) journalOf(shard Shard) string {
	return s.key(stateDir + "/" + journalBegin + shard.suffix() + ".")
}

func (s *storeSink) start(ctx context.Context, resume, force bool) (*journal, error) {
	dir, err := output.TempDir("tracefix-batch-")
	if err != nil {
		return nil, err
	}
	s.folder = dir
	if err := os.Mkdir(s.temp(), 0o777); err != nil {
		return nil, err
	}
	s.flushed = time.Now()
	own := s.journalOf(s.shard)
	list := s.key(stateDir + "/" + journalBegin)
	if s.shard.Piece {
		list = own
	}
	var mine, others []string
	for o, err := range s.store.List(ctx, list) {
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(o.Key, own):
			mine = append(mine, o.Key)
		default:
			others = append(others, o.Key)
		}
	}
	if len(mine) > 0 {
		if !resume && !force {
			return nil, holdsBatch("the output URL")
		}
		last := strings.TrimSuffix(strings.TrimPrefix(mine[len(mine)-1], own), journalEnd)
		if s.segment, err = strconv.Atoi(last); err != nil {
			return nil, fmt.Errorf("%s is no part of a journal; remove it", mine[len(mine)-1])
		}
	}
	if !s.shard.Piece {
		if err := s.look(ctx); err != nil {
			return nil, err
		}
	}
	if len(mine) == 0 && !force && !s.shard.Piece {
		if err := foreignReport(ctx, s, s.shard, "the output URL"); err != nil {
			return nil, err
		}
	}
	j := newJournal()
	if !force || resume {
		if j, err = s.load(ctx, others, mine); err != nil {
			return nil, err
		}
	}
	// From now on the place is known to hold a batch.
	s.lines.WriteString("{}\n")
	err = s.flush(ctx)
	s.began = err == nil
	return j, err
}

// look lists what the bucket holds at first.
func (s *storeSink) look(ctx context.Context) error {
	s.there = map[string]int64{}
	for o, err := range s.store.List(ctx, s.prefix) {
		if err != nil {
			return err
		}
		if rel := strings.TrimPrefix(o.Key, s.prefix); !strings.HasPrefix(rel, stateDir+"/") {
			s.there[rel] = o.Size
		}
	}
	return nil
}

// load reads the journals of others, which may have had another number of shards, and our
// own, and makes our own short again.
func (s *storeSink) load(ctx context.Context, others, mine []string) (*journal, error) {
	j := newJournal()
	before := ""
	for _, key := range others {
		name := strings.TrimSuffix(strings.TrimSuffix(key, journalEnd), path.Ext(strings.TrimSuffix(key, journalEnd)))
		if name != before {
			j.end()
			before = name
		}
		if err := s.loadOne(ctx, j, key); err != nil {
			return nil, err
		}
	}
	j.end()
	own := newJournal()
	for _, key := range mine {
		if err := s.loadOne(ctx, own, key); err != nil {
			return nil, err
		}
	}
	own.end()
	if len(mine) > maxSegments {
		if err := s.compact(ctx, own, mine); err != nil {
			return nil, err
		}
	}
	j.merge(own)
	return j, nil
}

func (s *storeSink) loadOne(ctx context.Context, j *journal, key string) error {
	r, err := whole(ctx, s.store, key)
	if err != nil {
		return err
	}
	defer r.Close()
	return j.load(r)
}

// compact writes what a journal comes to as its next part, and removes the others.
func (s *storeSink) compact(ctx context.Context, j *journal, parts []string) error {
	b, err := j.short()
	if err != nil {
		return err
	}
	s.lines.Write(b)
	if err := s.flush(ctx); err != nil {
		return err
	}
	for _, key := range parts {
		if err := s.store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *storeSink) place(rel string) (string, error) {
	p := filepath.Join(s.folder.Path, "out", filepath.FromSlash(rel))
	return p, os.MkdirAll(filepath.Dir(p), 0o777)
}

func (s *storeSink) eager() bool { return false }

func (s *storeSink) publish(ctx context.Context, rel string) error {
	p, err := s.place(rel)
	if err != nil {
		return err
	}
	defer os.Remove(p)
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.store.Put(ctx, s.key(rel), f)
}

func (s *storeSink) discard(rel string) {
	if p, err := s.place(rel); err == nil {
		os.Remove(p)
	}
}

func (s *storeSink) holds(ctx context.Context, r *record) bool {
	if r.SHA256 == "" {
		return r.Trace.Output == nil
	}
	if s.there != nil {
		n, ok := s.there[r.Out]
		return ok && n == r.Size
	}
	o, err := s.store.Stat(ctx, s.key(r.Out))
	return err == nil && o.Size == r.Size
}

func (s *storeSink) exists(ctx context.Context, rel string) bool {
	if s.there != nil {
		_, ok := s.there[rel]
		return ok
	}
	_, err := s.store.Stat(ctx, s.key(rel))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s *storeSink) open(ctx context.Context, rel string) (io.ReadCloser, error) {
	return whole(ctx, s.store, s.key(rel))
}

func (s *storeSink) log(ctx context.Context, now bool, facts ...fact) error {
	b, err := lines(facts...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && begins(facts) {
		return errStopped
	}
	s.lines.Write(b)
	if !now && time.Since(s.flushed) < flushEvery {
		return nil
	}
	return s.flush(ctx)
}

func (s *storeSink) flush(ctx context.Context) error {
	if s.lines.Len() == 0 {
		return nil
	}
	s.segment++
	key := fmt.Sprintf("%s%06d%s", s.journalOf(s.shard), s.segment, journalEnd)
	s.flushed = time.Now()
	if err := s.store.Put(ctx, key, bytes.NewReader(s.lines.Bytes())); err != nil {
		return err
	}
	s.lines.Reset()
	return nil
}

func (s *storeSink) put(ctx context.Context, rel string, b []byte) error {
	return s.store.Put(ctx, s.key(rel), bytes.NewReader(b))
}

func (s *storeSink) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		return nil
	}
	if !s.stopped {
		b, err := fact{Stop: true}.line()
		if err != nil {
			return err
		}
		s.lines.Write(b)
		s.stopped = true
	}
	// The run may have been interrupted: what is done is to be known all the same.
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	return s.flush(ctx)
}

func (s *storeSink) close() error {
	err := s.stop()
	if s.folder != nil {
		err = errors.Join(err, s.folder.Remove())
	}
	return errors.Join(err, s.store.Close())
}
