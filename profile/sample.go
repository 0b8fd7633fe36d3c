package profile

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/internal/spool"
)

// SampleType says what a sample was taken of. Its names are those of the ndjson
// form of samples.
type SampleType uint8

// Sample types. Event is the stack of another event (an exception, an
// allocation, a page fault): evidence for a repair, and no CPU sample.
const (
	SampleManaged  SampleType = iota // in managed code when the sampler looked
	SampleExternal                   // in native code, blocked or running: the sampler cannot tell
	SampleCPU                        // on a CPU (collect-linux)
	SampleOffCPU                     // switched out at Time, for Dur (collect-linux)
	SampleError                      // the runtime could not tell
	SampleEvent                      // the stack of another event
)

// String returns the type as ndjson spells it.
func (t SampleType) String() string {
	if names := [...]string{"managed", "external", "cpu", "offcpu", "error", "event"}; int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("SampleType(%d)", uint8(t))
}

// OnCPU reports whether a sample of type t saw its thread on a CPU.
func (t SampleType) OnCPU() bool { return t == SampleManaged || t == SampleCPU }

// sampleTypes is a set of them.
type sampleTypes uint8

func (s *sampleTypes) add(t SampleType) { *s |= 1 << t }

// tellManaged reports whether samples of these types tell what was in managed code, and not what was on a CPU:
// those of EventPipe, also where nothing but waiting is left. In a pprof what is not CPU time is external.
func (s sampleTypes) tellManaged() bool {
	return s&(1<<SampleManaged) != 0 || s&(1<<SampleExternal|1<<SampleCPU) == 1<<SampleExternal
}

// Cut says why a stack misses its root frames.
type Cut uint8

// Kinds of cuts.
const (
	Whole     Cut = iota
	CutDepth      // at the depth limit of EventPipe
	CutBytes      // at the recorder's copy of the stack
	CutBroken     // where unwinding failed
)

// String returns the cause as ndjson spells it, "" for Whole.
func (c Cut) String() string {
	if names := [...]string{"", "depth", "bytes", "broken"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Cut(%d)", uint8(c))
}

// A Sample is one look at a thread's stack.
type Sample struct {
	Time  int64 // ns since the start of the trace
	Dur   int64 // ns; of SampleOffCPU and weighted samples only
	Stack StackID
	Type  SampleType
	Cut   Cut
	// Suspect is how many of the outermost frames of a cut stack may be garbage, 0
	// to 3: a recorder that copies bytes reads past the last real frame.
	Suspect uint8
	// Fresh is how many of the innermost frames of a recorded span began with it, at most
	// MaxFresh: they are none of those that the sample before ended with, even if the names are
	// the same. 0 of sampled stacks, of which nobody knows.
	Fresh uint16
	// Hidden marks a sample that is not wanted. It still ends the time for which the one
	// before holds.
	Hidden bool
}

// Written reports whether s is a sample, and wanted.
func (s *Sample) Written() bool { return s.Type != SampleEvent && !s.Hidden }

// Samples is a list of samples in the order they were appended, a few bytes each.
// The zero value is an empty list.
type Samples struct {
	chunks []chunk
	n      int
	last   packed // state behind the newest sample
	spool  *Spool
	// loose is set where the time of a sample may begin before that of the one before.
	loose bool

	// How many there are.
	cuts      int
	cutBy     [CutBroken + 1]int // wanted ones, events left out
	cutEvents int                // wanted ones
	types     [SampleEvent + 1]int
	hidden    int // other samples than events
}

// SamplesIn returns an empty list that may put samples aside.
func SamplesIn(spool *Spool) Samples { return Samples{spool: spool} }

// Spool returns where samples are put aside; nil: nowhere.
func (l *Samples) Spool() *Spool { return l.spool }

// A chunk is a part of a list that can be read by itself.
type chunk struct {
	b       []byte
	first   int // index of its first sample
	before  packed
	at      int64 // where it is in the spool, in place of b; 0: nowhere
	size, n int32 // bytes and samples there
}

// The first manyChunks of a list of samples, repairs or stretches of work have chunkSize bytes, the
// others largeChunk: of what is on disk the list of chunks stays in memory.
const (
	chunkSize  = 8 << 10
	largeChunk = 32 << 10
	manyChunks = 128
)

// sizeOfChunk is how many bytes chunk k of a list has.
func sizeOfChunk(k int) int {
	if k < manyChunks {
		return chunkSize
	}
	return largeChunk
}

// slotOf is what a chunk of a size has in the file, so that it may grow a little when it is edited.
func slotOf(size int) int { return size + size/4 }

// A Spool keeps samples and repairs of a profile out of memory: what its threads have beyond some
// megabytes goes to a file, and where there is one, so does what is changed. The zero value and nil
// keep all in memory. It may be used by several goroutines, and for several profiles. Its fields
// are
//
//	Create func() (SpoolFile, error) // makes the file when it is needed; an *os.File is one, and removing it is the caller's
//	Memory int64                     // how many bytes stay in memory; 0: 6 MiB
//
// Where there is no file to be had, or no room in it, all stays in memory; its method Err tells of
// what could not be read again, as Profile.Err does.
type Spool = spool.Spool

// A SpoolFile is what a Spool writes to and reads from, at several places at once: an io.ReaderAt
// and io.WriterAt.
type SpoolFile = spool.File

// packed is what a sample is told apart from the one before by: a number, whose lowest
// bit says that a byte of flags follows and whose rest is the difference of the stack
// ids, then what the flags tell of. Neighbours have mostly equal flags, and stacks that
// were first seen at about the same time.
type packed struct {
	time  int64
	stack StackID
	flags byte
}

// The lowest three bits of the flags are the type, the next two the cut.
const (
	hasMore = 1 << 5 // a byte: Suspect, Fresh, and isHidden; if Fresh is manyFresh, how many more they are follows
	hasTime = 1 << 6 // another one than the sample before
	hasDur  = 1 << 7

	isHidden   = 1 << 7
	freshShift = 2 // behind Suspect
)

// MaxFresh is the largest Sample.Fresh.
const MaxFresh = 1<<16 - 1

// manyFresh is the largest one that stands in the byte.
const manyFresh = 31

// append appends s to b.
func (p *packed) append(b []byte, s *Sample) []byte {
	flags := byte(s.Type) | byte(s.Cut)<<3
	more := min(s.Suspect, 3) | byte(min(s.Fresh, manyFresh))<<freshShift
	if s.Hidden {
		more |= isHidden
	}
	if more != 0 {
		flags |= hasMore
	}
	if s.Time != p.time {
		flags |= hasTime
	}
	if s.Dur != 0 {
		flags |= hasDur
	}
	d := int64(s.Stack) - int64(p.stack)
	n := uint64(d<<1^d>>63) << 1
	if flags == p.flags {
		b = binary.AppendUvarint(b, n)
	} else {
		b = append(binary.AppendUvarint(b, n|1), flags)
	}
	if more != 0 {
		b = append(b, more)
	}
	if s.Fresh >= manyFresh {
		b = binary.AppendUvarint(b, uint64(s.Fresh-manyFresh))
	}
	if s.Time != p.time {
		b = binary.AppendVarint(b, s.Time-p.time)
	}
	if s.Dur != 0 {
		b = binary.AppendVarint(b, s.Dur)
	}
	p.time, p.stack, p.flags = s.Time, s.Stack, flags
	return b
}

// next reads a sample and returns what follows it.
func (p *packed) next(b []byte, s *Sample) []byte {
	n, pos := uvarint(b)
	p.stack += StackID(n>>2) ^ -StackID(n>>1&1)
	if n&1 != 0 {
		p.flags = b[pos]
		pos++
	}
	flags := p.flags
	s.Type, s.Cut, s.Stack = SampleType(flags&7), Cut(flags>>3&3), p.stack
	if flags&hasMore != 0 {
		s.Suspect, s.Fresh, s.Hidden = b[pos]&3, uint16(b[pos]&^isHidden>>freshShift), b[pos]&isHidden != 0
		pos++
		if s.Fresh == manyFresh {
			d, n := uvarint(b[pos:])
			s.Fresh += uint16(d)
			pos += n
		}
	}
	b = b[pos:]
	if flags&hasTime != 0 {
		d, n := uvarint(b)
		b = b[n:]
		p.time += int64(d>>1) ^ -int64(d&1)
	}
	s.Time = p.time
	if flags&hasDur != 0 {
		d, n := uvarint(b)
		b = b[n:]
		s.Dur = int64(d>>1) ^ -int64(d&1)
	}
	return b
}

// uvarint is binary.Uvarint. What takes up to four bytes, as hardly anything in a sample takes
// more, is read without a loop: how long it is cannot be foreseen.
func uvarint(b []byte) (uint64, int) {
	if len(b) >= 4 {
		if v, n := short(binary.LittleEndian.Uint32(b)); n > 0 {
			return v, n
		}
	}
	return binary.Uvarint(b)
}

// short is uvarint of four bytes. n is 0 if they do not hold all of it.
func short(w uint32) (v uint64, n int) {
	ends := ^w & 0x80808080
	if ends == 0 {
		return 0, 0
	}
	w &= ends ^ (ends - 1) // what follows its last byte is not its
	return uint64(w&0x7f | w>>1&0x3f80 | w>>2&0x1fc000 | w>>3&0xfe00000), bits.TrailingZeros32(ends)>>3 + 1
}

// mayRepeat reports whether the sample that b begins with differs from the one before in its time
// alone, which short can tell if it is near.
func (p *packed) mayRepeat(b []byte) bool {
	return len(b) > 4 && b[0] == 0 && p.flags&(hasMore|hasTime|hasDur) == hasTime
}

// Append adds s to the end of the list.
func (l *Samples) Append(s Sample) {
	if k := len(l.chunks) - 1; k < 0 || len(l.chunks[k].b)+32 > sizeOfChunk(k) {
		var b []byte
		size := sizeOfChunk(k + 1)
		if k < 0 {
			size = 256 // most threads of a process have few samples
		} else if full := l.chunks[k].b; l.spool != nil && l.putAside(k, full, l.n-l.chunks[k].first) {
			b = full[:0]
		}
		if cap(b) < size {
			b = make([]byte, 0, size)
		}
		l.chunks = append(l.chunks, chunk{b: b, first: l.n, before: l.last})
	}
	c := &l.chunks[len(l.chunks)-1]
	l.loose = l.loose || s.Time < l.last.time
	c.b = l.last.append(c.b, &s)
	l.n++
	l.count(&s, 1)
}

// putAside puts n samples into the spool in place of those that chunk k has, if that wants them.
func (l *Samples) putAside(k int, b []byte, n int) bool {
	c := &l.chunks[k]
	at := l.spool.Put(b, c.at, slotOf(sizeOfChunk(k)))
	if at == 0 {
		return false
	}
	c.b, c.at, c.size, c.n = nil, at, int32(len(b)), int32(n)
	return true
}

// putAllAside puts aside what was kept in memory while nobody knew how much there would be, if most
// is on disk.
func (l *Samples) putAllAside() {
	for k := range max(0, len(l.chunks)-1) {
		if c := &l.chunks[k]; c.at == 0 {
			l.putAside(k, c.b, l.chunks[k+1].first-c.first)
		}
	}
}

// Edit calls f for the samples of rows and keeps what it makes of them. Rows are the
// index of the first sample and the number of samples, in order. What is far from them is
// not read.
func (l *Samples) Edit(rows iter.Seq2[int, int], f func(index int, s *Sample)) {
	e := editor{l: l, k: -1}
	at := 0
	change := func(s *Sample) bool {
		f(at, s)
		return true
	}
	for first, n := range rows {
		for i := first; i < min(first+n, l.n); i++ {
			if k := l.chunkOf(max(e.k, 0), i); k != e.k {
				e.leave()
				e.enter(k)
			}
			for e.c.index < i {
				e.next(nil)
			}
			at = i
			e.next(change)
		}
	}
	e.leave()
}

// Change calls f for all samples and keeps what it makes of those of which it returns true.
func (l *Samples) Change(f func(s *Sample) bool) {
	e := editor{l: l, k: -1}
	for k := range l.chunks {
		e.enter(k)
		for len(e.c.b) > 0 {
			e.next(f)
		}
		e.leave()
	}
}

// Delete takes away the samples of which f returns true. f leaves them as they are.
func (l *Samples) Delete(f func(s *Sample) bool) {
	e := editor{l: l, k: -1}
	for k := range l.chunks {
		e.enter(k)
		l.chunks[k].first -= e.gone
		for len(e.c.b) > 0 {
			e.sift(f)
		}
		e.leave()
	}
	l.n -= e.gone
}

// An editor changes samples of a chunk. Bytes that need not change are copied.
type editor struct {
	l      *Samples
	k      int    // the chunk; -1: none
	b      []byte // of it
	c      Cursor // in b
	out    []byte // what becomes of b, up to from
	from   int
	state  packed // behind out and the bytes of b that follow it unchanged
	s      Sample // scratch
	gone   int    // samples deleted
	before int    // of these, before the chunk
}

func (e *editor) enter(k int) {
	buf := e.c.buf
	e.c = Cursor{chunks: e.l.chunks[k:], spool: e.l.spool, buf: buf}
	e.c.enter()
	e.k, e.b = k, e.c.b
	e.out, e.from, e.state, e.before = e.out[:0], 0, e.c.state, e.gone
}

// next takes the next sample, of which f makes what it will, and returns true; nil keeps it.
func (e *editor) next(f func(s *Sample) bool) {
	at, before, s := len(e.b)-len(e.c.b), e.c.state, &e.s
	e.c.Read(s)
	old := *s
	changed := f != nil && f(s)
	if !changed && e.state == before {
		e.state = e.c.state
		return
	}
	e.take(at)
	if changed {
		e.l.loose = e.l.loose || s.Time != old.Time
		e.l.count(&old, -1)
		e.l.count(s, 1)
	} else {
		*s = old // f may have begun to change it
	}
	e.out = e.state.append(e.out, s)
}

// sift takes the next sample, and deletes it if f says so.
func (e *editor) sift(f func(s *Sample) bool) {
	at, before, s := len(e.b)-len(e.c.b), e.c.state, &e.s
	e.c.Read(s)
	switch {
	case f(s):
		e.take(at)
		e.l.count(s, -1)
		e.gone++
	case e.state == before:
		e.state = e.c.state
	default:
		e.take(at)
		e.out = e.state.append(e.out, s)
	}
}

// take copies what has not changed before the sample at at, which is told apart from it anew, if at all.
func (e *editor) take(at int) {
	if e.from < at {
		e.out = append(e.out, e.b[e.from:at]...)
	}
	e.from = len(e.b) - len(e.c.b)
}

// leave writes the chunk, if anything in it has changed.
func (e *editor) leave() {
	if e.k < 0 || e.from == 0 {
		return
	}
	for len(e.c.b) > 0 && e.state != e.c.state { // told apart from what has changed
		e.next(nil)
	}
	chunk := &e.l.chunks[e.k]
	n := int(chunk.n)
	aside := chunk.at > 0
	if !aside && e.k < len(e.l.chunks)-1 && e.l.spool.InUse() { // there is more than stays in memory: this need not
		n = e.l.chunks[e.k+1].first - chunk.first - e.before // those behind have their old numbers
		aside = true
	}
	if aside {
		e.out = append(e.out, e.b[e.from:]...)
		if !e.l.putAside(e.k, e.out, n-(e.gone-e.before)) {
			chunk.b, chunk.at = slices.Clone(e.out), 0
		}
		return
	}
	chunk.b = append(make([]byte, 0, len(e.out)+len(e.b)-e.from), e.out...)
	chunk.b = append(chunk.b, e.b[e.from:]...)
	if e.k == len(e.l.chunks)-1 && len(e.c.b) == 0 {
		e.l.last = e.state
	}
}

// count adds n to what is counted of samples like s.
func (l *Samples) count(s *Sample, n int) {
	if s.Cut != Whole {
		l.cuts += n
		switch {
		case s.Hidden:
		case s.Type == SampleEvent:
			l.cutEvents += n
		default:
			l.cutBy[s.Cut] += n
		}
	}
	if s.Hidden && s.Type != SampleEvent {
		l.hidden += n
	} else {
		l.types[s.Type] += n
	}
}

// chunkOf returns the chunk of sample i, which is in chunk k or behind it.
func (l *Samples) chunkOf(k, i int) int {
	for k+1 < len(l.chunks) && l.chunks[k+1].first <= i {
		k++
	}
	return k
}

// Len returns the number of samples.
func (l *Samples) Len() int { return l.n }

// Cuts returns the number of samples that are cut.
func (l *Samples) Cuts() int { return l.cuts }

// CutBy returns the number of samples that are wanted, events left out, and cut in that way.
func (l *Samples) CutBy(c Cut) int { return l.cutBy[c] }

// Written returns the number of samples that are wanted, events left out.
func (l *Samples) Written() int { return l.n - l.types[SampleEvent] - l.hidden }

// Count returns the number of samples of a type, those that are not wanted left out
// unless they are events.
func (l *Samples) Count(t SampleType) int { return l.types[t] }

// All yields every sample with its index, in order.
func (l *Samples) All() iter.Seq2[int, Sample] {
	return func(yield func(int, Sample) bool) {
		c := l.Cursor()
		var s Sample
		// s is copied field by field: a copy at once of what was just written field by field keeps
		// a processor waiting, as long as it takes to read the next sample.
		for i := 0; c.Read(&s) && yield(i, Sample{s.Time, s.Dur, s.Stack, s.Type, s.Cut, s.Suspect, s.Fresh, s.Hidden}); i++ {
		}
	}
}

// A Cursor reads a list from its start, for merging several lists. Samples must not
// be appended nor edited while it is used, and of a copy of a Cursor and the Cursor one only.
type Cursor struct {
	chunks []chunk // those to come
	b      []byte
	state  packed
	index  int // of the next sample
	loose  bool
	spool  *Spool
	buf    []byte // for what comes from it
}

// Cursor returns a cursor before the first sample.
func (l *Samples) Cursor() Cursor { return Cursor{chunks: l.chunks, loose: l.loose, spool: l.spool} }

// enter goes to the next chunk.
func (c *Cursor) enter() {
	n := &c.chunks[0]
	c.b, c.state, c.index = n.b, n.before, n.first
	if n.at > 0 {
		c.fetch(n)
	}
	c.chunks = c.chunks[1:]
}

// fetch gets a chunk from the spool. Of one that cannot be read the samples are all alike: there are as many
// of them, and the spool has the error.
func (c *Cursor) fetch(n *chunk) {
	c.buf = slices.Grow(c.buf[:0], int(n.size))[:n.size]
	c.b = c.buf
	if !c.spool.Get(c.b, n.at) {
		c.b = c.buf[:n.n]
		clear(c.b)
		c.state.flags = 0
	}
}

// Index is that of the next sample, or how many there are behind the last one.
func (c *Cursor) Index() int {
	if len(c.b) == 0 && len(c.chunks) > 0 {
		return c.chunks[0].first
	}
	return c.index
}

// Seek moves on to sample i, which must not be behind: Next returns it.
func (c *Cursor) Seek(i int) {
	if k := sort.Search(len(c.chunks), func(k int) bool { return c.chunks[k].first > i }); k > 0 {
		c.chunks = c.chunks[k-1:]
		c.enter()
	}
	var s Sample
	for c.index < i && c.Read(&s) {
	}
}

// SkipTo moves on towards the first sample at or behind a time, as far as that takes no reading of
// samples: what it passes over is before that time. Where samples are in no order it does not move.
func (c *Cursor) SkipTo(time int64) {
	if c.loose {
		return
	}
	if k := sort.Search(len(c.chunks), func(k int) bool { return c.chunks[k].before.time >= time }); k > 0 {
		c.chunks = c.chunks[k-1:]
		c.enter()
	}
}

// Next returns the next sample, and false after the last one.
func (c *Cursor) Next() (s Sample, ok bool) {
	ok = c.Read(&s)
	return s, ok
}

// Read reads the next sample into s, or returns false after the last one.
func (c *Cursor) Read(s *Sample) bool {
	for len(c.b) == 0 {
		if len(c.chunks) == 0 {
			return false
		}
		c.enter()
	}
	c.index++
	s.Dur, s.Suspect, s.Fresh, s.Hidden = 0, 0, 0, false // the rest is always told
	// Most samples differ from the one before in their time alone. To foresee that, and so where
	// the next one begins, takes half the time of finding it out.
	if p := &c.state; p.mayRepeat(c.b) {
		if d, n := short(binary.LittleEndian.Uint32(c.b[1:])); n > 0 {
			c.b = c.b[1+n:]
			p.time += int64(d>>1) ^ -int64(d&1)
			s.Time, s.Stack, s.Type, s.Cut = p.time, p.stack, SampleType(p.flags&7), Cut(p.flags>>3&3)
			return true
		}
	}
	c.b = c.state.next(c.b, s)
	return true
}
