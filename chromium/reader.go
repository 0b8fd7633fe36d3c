package chromium

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Options of a Reader. The zero value works.
type Options struct {
	// Outside gets all bytes of the input that Read does not return in an
	// event's Lead and Raw, in order and before the event that follows them:
	// brackets, the other top-level keys, events that are too large. What is
	// missing is written here as well: the end of a broken input or of an open
	// array, the brackets of bare events. What was skipped is not, and a byte order
	// mark is not passed on. So a copy is one JSON document, whatever the input.
	// Nil drops it all.
	Outside io.Writer

	// StackFrame is called for each entry of the top-level key stackFrames; it
	// may be nil. The argument is valid during the call.
	StackFrame func(*StackFrame) error

	// StackFramesEnd is called behind the last entry of stackFrames, when
	// Outside has had everything before the closing brace, so that the caller
	// can add entries. n counts those there.
	StackFramesEnd func(n int) error

	// Value is asked for each other top-level key with a value; what it returns gets the raw text
	// of both, with the separator before. Nil is asked nothing, and may be returned.
	Value func(key string) io.Writer

	// ObjectEnd is called before the last brace of the object form, as StackFramesEnd is, so that
	// the caller can add keys. n counts those there.
	ObjectEnd func(n int) error

	// EventsEnd is called before the bracket that ends an array of events, also one that is missing, when
	// Outside has had everything before it. It is where a copy inserts events behind all others.
	EventsEnd func() error

	// Behind makes Read also return the events among the bytes that stand behind the end of the
	// document, as behind an end that came too early; not those of another trace. Outside has had
	// all of the document then: a copy needs a place for them in it.
	Behind bool

	// MaxEventSize limits the bytes of one event and of one entry of
	// stackFrames. Zero means DefaultMaxEventSize.
	MaxEventSize int

	// MaxDepth limits the nesting of values. Zero means DefaultMaxDepth.
	MaxDepth int

	// Warn is called for defects that were skipped or put right; nil drops them.
	Warn func(*FormatError)

	// Checked says that an earlier reading found no defect, so that no byte need be looked
	// at for being text.
	Checked bool

	// Strict makes Read fail at the first defect instead.
	Strict bool
}

// A Thread is a pair of pid and tid as raw JSON text, strings with their
// quotes; "" is a missing one.
type Thread struct {
	PID, TID string
}

// Reader states: what is due at Reader.pos.
type state uint8

const (
	atStart  state = iota
	atKeys         // in an object of the document, before a key
	atEvents       // in traceEvents, the top-level array or a bare sequence
	atTail         // behind the document
	atBehind       // in what stands there and is no part of it
	atEnd          // err is set
)

// A Reader reads the events of a trace. It is not safe for concurrent use.
type Reader struct {
	opts Options
	src  io.Reader

	// The window: buf[mark:end] is held, buf[:mark] is done with. more moves it.
	buf            []byte
	mark, pos, end int
	base           int64 // offset of buf[0] in the input
	eof            bool
	srcErr         error

	state    state
	form     Form
	err      error
	open     []byte // brackets of the document that are open: "{", "{[", "["
	bom      bool
	count    int  // events returned or skipped
	first    bool // no element yet in this array
	blank    bool // no member yet in this object of the document
	owed     bool // what is held lacks the comma before it
	dropped  bool // an element was skipped, its comma is left over
	ended    bool // the array has its end
	found    bool // a traceEvents or a top-level array was seen
	picky    bool // parse takes nothing without a phase
	frames   int  // entries of stackFrames, of the newest if there are several
	inFrames bool
	behind   behind // what stands behind the document
	keys     []string
	passTo   int64     // offset up to which events are passed on unread
	spent    int64     // bytes of readings that came to nothing
	value    io.Writer // of Options.Value, while a value is read

	scan    scanner
	spans   []span
	leadBuf []byte
	fixed   []byte
	skip    bitStack

	names *texts
	known []nameFacts // by name
	next  [][2]int32  // by name: the name that last followed it, on E and else
	texts []string    // decoded names, made on demand

	pairs   *texts
	pair    []byte
	threads []Thread

	lastName   int32
	lastEnd    int
	lastPID    []byte
	lastTID    []byte
	lastCat    []byte
	lastThread int32
	lastTS     Time
	tsBuf      []byte
	samePID    bool
	sameTID    bool
	sameCat    bool

	layout       layout
	layoutCat    []byte
	layoutPID    []byte
	layoutTID    []byte
	layoutThread int32
	layoutPlain  bool // its bytes need no look for being text
	missed       bool // the event before was not as expected either
	plain        bool // the event at hand was, and all that may differ in it is known to be text
	useful       bool // the layout has fitted an event
	wait, waited int  // events to let pass before learning again
	guesser      guesser
}

// minWindow is the size of the buffer at the start. It fits the L2 cache.
const minWindow = 256 << 10

// NewReader returns a Reader of r, having looked at the first bytes; nil opts
// means defaults. Input that cannot be a trace gives a FormatError that says
// what it looks like.
func NewReader(r io.Reader, opts *Options) (*Reader, error) {
	d := &Reader{names: newTexts(), pairs: newTexts(), lastThread: -1,
		known: make([]nameFacts, 1), next: make([][2]int32, 1), buf: make([]byte, minWindow)}
	if opts == nil {
		opts = &Options{}
	}
	if err := d.Reset(r, opts); err != nil {
		return nil, err
	}
	return d, nil
}

// Reset makes r read another input, with other options unless opts is nil. Names
// and threads keep their numbers.
func (r *Reader) Reset(src io.Reader, opts *Options) error {
	if opts != nil {
		r.opts = *opts
		if r.opts.MaxEventSize <= 0 {
			r.opts.MaxEventSize = DefaultMaxEventSize
		}
		if r.opts.MaxDepth <= 0 {
			r.opts.MaxDepth = DefaultMaxDepth
		}
		r.scan.maxDepth = r.opts.MaxDepth
	}
	r.src = src
	r.mark, r.pos, r.end, r.base = 0, 0, 0, 0
	r.eof, r.srcErr, r.err = false, nil, nil
	r.state, r.form, r.open, r.bom, r.count = atStart, FormUnknown, r.open[:0], false, 0
	r.passTo, r.spent, r.keys = 0, 0, nil
	r.guesser.open = r.guesser.open[:0]
	r.first, r.ended, r.found, r.inFrames, r.frames, r.dropped = false, false, false, false, 0, false
	r.blank, r.owed, r.behind = true, false, behind{}
	return r.start()
}

// Form returns the form of the input as far as it is known; it is certain once
// Read has returned io.EOF.
func (r *Reader) Form() Form {
	if r.form == FormArray && r.state == atEnd && !r.ended {
		return FormOpen
	}
	return r.form
}

// maxKeys limits what Keys holds.
const maxKeys = 1000

// Keys returns the top-level keys met so far, in their order.
func (r *Reader) Keys() []string { return r.keys }

// BOM reports whether the input began with a byte order mark.
func (r *Reader) BOM() bool { return r.bom }

// InputOffset returns the offset behind the last event read.
func (r *Reader) InputOffset() int64 { return r.base + int64(r.pos) }

// PassTo makes the next Read pass everything up to the offset off on to Outside
// unread. An earlier reading of the same input must have found an event of the
// same array to end there (or begin, but for its separator) and no defect before
// it. It is for rewriting in two passes, where most of a trace stays as it is.
func (r *Reader) PassTo(off int64) { r.passTo = off }

// LeaveOut passes on what stands before the offset from, as PassTo does, and then leaves out all up
// to the offset to: both are ends of events of the array that the event read last is in.
func (r *Reader) LeaveOut(from, to int64) error {
	if r.err != nil {
		return r.err
	}
	if r.passTo = from; r.InputOffset() < from {
		if err := r.passUnread(); err != nil {
			return r.fail(err)
		}
	}
	r.passTo = to
	if err := r.unread(func() error { r.mark = r.pos; return nil }); err != nil {
		return r.fail(err)
	}
	return nil
}

// NumNames returns one more than the largest Event.NameID so far.
func (r *Reader) NumNames() int { return len(r.names.raw) }

// Name returns the decoded text of an Event.NameID.
func (r *Reader) Name(id int32) string {
	for len(r.texts) < len(r.names.raw) {
		r.texts = append(r.texts, Unquote(r.names.raw[len(r.texts)]))
	}
	return r.texts[id]
}

// RawName returns the raw text of an Event.NameID as the first event spells it, which must not be changed.
func (r *Reader) RawName(id int32) []byte { return r.names.raw[id] }

// RawNames returns the raw texts of all names so far by Event.NameID, which must not be changed. They are as
// they were when the Reader has read on, on another goroutine, too.
func (r *Reader) RawNames() [][]byte { return r.names.raw }

// Threads returns the threads seen so far by Event.Thread. Events that have
// neither pid nor tid count as one thread as well.
func (r *Reader) Threads() []Thread { return r.threads }

// All returns an iterator over the events that are left. An error other than
// io.EOF comes last, with a nil event.
func (r *Reader) All() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var ev Event
		for {
			err := r.Read(&ev)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&ev, nil) {
				return
			}
		}
	}
}

// Read reads the next event into ev. It returns io.EOF behind the last event
// of a properly ended trace, a FormatError wrapping io.ErrUnexpectedEOF behind
// the last whole event of a cut one. Errors stick.
func (r *Reader) Read(ev *Event) error {
	for r.err == nil {
		switch r.state {
		case atEvents:
			if r.InputOffset() < r.passTo {
				if err := r.passUnread(); err != nil {
					return r.fail(err)
				}
			}
			ok, err := r.readElement(ev)
			if err != nil {
				return r.fail(err)
			}
			if ok {
				return nil
			}
		case atKeys:
			if err := r.readKey(); err != nil {
				return r.fail(err)
			}
		case atTail:
			if err := r.readTail(); err != nil {
				return r.fail(err)
			}
		case atBehind:
			ok, err := r.readBehind(ev)
			if err != nil {
				return r.fail(err)
			}
			if ok {
				return nil
			}
		default:
			return r.fail(errZeroReader)
		}
	}
	return r.err
}

var errZeroReader = errors.New("a Reader is made by NewReader")

func (r *Reader) fail(err error) error {
	r.err = err
	r.state = atEnd
	return err
}

// more reads more input behind buf[:end], keeping buf[mark:end]. It is false
// at the end of the input, on a failing reader, and when the bytes held have
// reached limit; the first two are found by r.stopped.
func (r *Reader) more(limit int) bool {
	if r.eof || r.srcErr != nil {
		return false
	}
	held := r.end - r.mark
	if held >= limit {
		return false
	}
	if free := len(r.buf) - r.end; free < max(held, 4<<10) || free == 0 {
		if len(r.buf) < 2*held+4<<10 {
			buf := make([]byte, 2*len(r.buf)+2*held)
			copy(buf, r.buf[r.mark:r.end])
			r.buf = buf
		} else {
			copy(r.buf, r.buf[r.mark:r.end])
		}
		r.base += int64(r.mark)
		r.pos -= r.mark
		r.end -= r.mark
		r.mark = 0
	}
	// What is held will be scanned again: read as much anew, so that a slow
	// reader does not make that quadratic.
	want := r.end + max(1, min(held, len(r.buf)-r.end))
	for empty := 0; r.end < want; {
		n, err := r.src.Read(r.buf[r.end:])
		if n < 0 || n > len(r.buf)-r.end {
			r.srcErr = errors.New("chromium: reader returned an impossible count")
			return false
		}
		r.end += n
		if err == io.EOF {
			r.eof = true
			return n > 0 || r.end-r.mark > held
		}
		if err != nil {
			r.srcErr = fmt.Errorf("offset %d: %w", r.base+int64(r.end), err)
			return false
		}
		if n == 0 {
			if empty++; empty == 100 {
				r.srcErr = fmt.Errorf("offset %d: %w", r.base+int64(r.end), io.ErrNoProgress)
				return false
			}
		}
	}
	return true
}

// passUnread passes on what stands before passTo.
func (r *Reader) passUnread() error {
	if w := r.copies(); w != nil {
		w.strip, w.fresh = false, false
	}
	return r.unread(r.pass)
}

// unread goes to passTo, and calls done for what is held before pos again and again.
func (r *Reader) unread(done func() error) error {
	r.first, r.dropped = false, false
	for {
		left := r.passTo - r.InputOffset()
		n := int(min(left, int64(r.end-r.pos)))
		r.pos += n
		if err := done(); err != nil {
			return err
		}
		if left -= int64(n); left == 0 {
			return nil
		}
		if !r.more(1 << 30) {
			if r.srcErr != nil {
				return r.srcErr
			}
			return r.cut(r.InputOffset(), r.where())
		}
	}
}

// peek returns the next byte that is not blank and stands on it. Blanks are
// passed on if the window is full of them. ok is false at the end.
func (r *Reader) peek() (c byte, ok bool, err error) {
	for {
		r.pos = skipSpace(r.buf[:r.end], r.pos)
		if r.pos < r.end {
			return r.buf[r.pos], true, nil
		}
		if r.end-r.mark >= minWindow {
			if err := r.pass(); err != nil {
				return 0, false, err
			}
		}
		if !r.more(1 << 30) {
			return 0, false, r.srcErr
		}
	}
}

// pass gives what is held before pos to Outside.
func (r *Reader) pass() error {
	if r.owed {
		r.owed = false
		if err := r.outside([]byte{','}); err != nil {
			return err
		}
	}
	b := r.buf[r.mark:r.pos]
	r.mark = r.pos
	return r.outside(b)
}

func (r *Reader) outside(b []byte) error {
	if r.value != nil {
		if _, err := r.value.Write(b); err != nil {
			return err
		}
	}
	if r.opts.Outside == nil || len(b) == 0 {
		return nil
	}
	_, err := r.opts.Outside.Write(b)
	return err
}

func (r *Reader) where() string {
	if n := len(r.open); r.state == atBehind || n > 0 && r.open[n-1] == '[' {
		return fmt.Sprintf("traceEvents[%d]", r.count)
	}
	return "document"
}

// warn reports a defect at the offset off.
func (r *Reader) warn(off int64, where string, err error) error {
	fe := &FormatError{Offset: off, Where: where, Err: err}
	if r.opts.Strict {
		return fe
	}
	if r.opts.Warn != nil {
		r.opts.Warn(fe)
	}
	return nil
}

// start looks at the first bytes.
func (r *Reader) start() error {
	if w := r.copies(); w != nil {
		if err := w.starts(); err != nil {
			return err
		}
	}
	for r.end-r.mark < 4 && r.more(1<<30) {
	}
	if r.srcErr != nil {
		return r.srcErr
	}
	b := r.buf[:r.end]
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		r.bom = true
		r.pos, r.mark = 3, 3
	}
	foreign := func(what string) error {
		return &FormatError{Offset: r.base + int64(r.pos), Where: "document", Err: fmt.Errorf("%w: %s", ErrNoTrace, what)}
	}
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return foreign("UTF-16 text; convert it to UTF-8")
	}
	c, ok, err := r.peek()
	if err != nil {
		return err
	}
	switch {
	case !ok:
		return foreign("empty input")
	case c == '[':
		r.form, r.state = FormArray, atEvents
		return r.enterArray()
	case c == '{':
		bare, err := r.isBare()
		if err != nil {
			return err
		}
		if bare {
			return r.enterBare()
		}
		r.form, r.state = FormObject, atKeys
		r.open = append(r.open, '{')
		r.pos++
		return r.pass()
	case c == ',':
		// A fragment that was to be appended to others begins with a comma.
		return r.enterBare()
	case c == '<':
		return foreign("HTML; extract the trace from the page")
	case c == '#':
		return foreign("ftrace text")
	}
	n := min(r.end-r.pos, 16)
	return foreign(fmt.Sprintf("expected { or [, found %q", r.buf[r.pos:r.pos+n]))
}

// enterBare begins a sequence of events that stands in no array. To Outside it is one.
func (r *Reader) enterBare() error {
	r.form, r.state, r.first, r.found = FormBare, atEvents, true, true
	r.open = append(r.open, '[')
	r.eventsBegin()
	return r.outside([]byte{'['})
}

// enterArray steps over the bracket of an array of events.
func (r *Reader) enterArray() error {
	r.open = append(r.open, '[')
	r.pos++
	r.first, r.found, r.ended = true, true, false
	r.state = atEvents
	r.eventsBegin()
	return r.pass()
}

// isBare reports whether the brace at pos begins an event, not a document: it
// has the key ph, or other keys of events only, and not traceEvents.
func (r *Reader) isBare() (bool, error) {
	for {
		b := r.buf[r.pos:r.end]
		n := r.probe(b)
		if n != needMore || len(b) >= 1<<20 {
			return n > 0, nil
		}
		if !r.more(1 << 30) {
			return false, r.srcErr
		}
	}
}

// probe scans the keys of the object at b[0] until one decides.
func (r *Reader) probe(b []byte) int {
	s := &r.scan
	i := 1
	for {
		for i < len(b) && (isSpace(b[i]) || b[i] == ',') {
			i++
		}
		if i == len(b) {
			return needMore
		}
		if b[i] != '"' {
			return 0
		}
		j := stringEnd(b, i+1)
		if j < 0 {
			return needMore
		}
		k := b[i+1 : j]
		if keyOf(k) == keyPhase {
			return 1
		}
		if name := Unquote(k); name == "traceEvents" || name == "stackFrames" {
			return 0
		}
		i = skipSpace(b, j+1)
		if i == len(b) {
			return needMore
		}
		if b[i] != ':' {
			return 0
		}
		if i = s.value(b, i+1); i == needMore {
			return needMore
		} else if i < 0 {
			return 0
		}
	}
}

// readKey reads one top-level key, and its value if that holds no events.
func (r *Reader) readKey() error {
	c, ok, err := r.peek()
	switch {
	case err != nil:
		return err
	case !ok:
		return r.cut(r.base+int64(r.pos), "document")
	case c == ',':
		r.pos++
		return nil
	case c == '}':
		return r.endObject()
	case c != '"':
		return r.brokenKey()
	}
	if err := r.separate("document", r.blank); err != nil {
		return err
	}
	name, value, err := r.scanKey()
	switch {
	case err != nil:
		return err
	case value > 0:
		return r.readMember(name, value)
	case value == badJSON:
		return r.brokenKey()
	case r.eof:
		return r.cut(r.base+int64(r.pos), "document")
	}
	return r.skipValue("document", true) // larger than an event may be
}

// endObject steps over the brace at pos, which ends an object of the document.
func (r *Reader) endObject() error {
	if i := bytes.IndexByte(r.buf[r.mark:r.pos], ','); i >= 0 {
		if err := r.warn(r.base+int64(r.mark+i), "document", ErrComma); err != nil {
			return err
		}
		if err := r.withoutCommas(); err != nil {
			return err
		}
	}
	if len(r.open) == 1 {
		if err := r.objectEnd(); err != nil {
			return err
		}
	}
	r.pos++
	r.open = r.open[:len(r.open)-1]
	r.blank = false
	if err := r.pass(); err != nil {
		return err
	}
	if len(r.open) > 0 {
		return nil
	}
	r.state = atTail
	if !r.found {
		return r.warn(r.InputOffset(), "document", fmt.Errorf("%w: no traceEvents", ErrNoTrace))
	}
	return nil
}

// scanKey reads the key at pos up to the first byte of its value, which are held together; value
// is where that stands behind pos. It is needMore where they are not within the limit or the input
// ends, and badJSON if no colon stands between them.
func (r *Reader) scanKey() (name string, value int, err error) {
	for {
		b := r.buf[r.pos:r.end]
		if j := stringEnd(b, 1); j >= 0 {
			name = Unquote(b[1:j])
			i := skipSpace(b, j+1)
			if i < len(b) && b[i] != ':' {
				return name, badJSON, nil
			}
			if i < len(b) {
				if i = skipSpace(b, i+1); i < len(b) {
					return name, i, nil
				}
			}
		}
		if !r.more(r.opts.MaxEventSize) {
			return name, needMore, r.srcErr
		}
	}
}

// readMember reads the member at pos of the document, whose value begins at pos+value, up to the
// first event in it.
func (r *Reader) readMember(name string, value int) error {
	c := r.buf[r.pos+value]
	if want, ok := r.misspelt(name, c); ok {
		if err := r.warn(r.base+int64(r.pos), "document", fmt.Errorf("%w: the key %q; it is read as %q", ErrSyntax, name, want)); err != nil {
			return err
		}
		r.pos += value
		return r.goOn()
	}
	if len(r.keys) < maxKeys {
		r.keys = append(r.keys, name)
	}
	switch {
	case name == "traceEvents" && c == '[':
		r.blank = false
		r.pos += value
		return r.enterArray()
	case name == "traceEvents" && c == '{' && len(r.open) < 16:
		if err := r.warn(r.base+int64(r.pos+value), "traceEvents", ErrNested); err != nil {
			return err
		}
		r.pos += value + 1
		r.open = append(r.open, '{')
		r.blank = true
		return r.pass()
	case name == "traceEvents":
		if err := r.warn(r.base+int64(r.pos+value), "traceEvents", fmt.Errorf("%w: expected an array, found %q", ErrNotEvent, c)); err != nil {
			return err
		}
	case name == "stackFrames" && c == '{':
		r.blank = false
		r.pos += value + 1
		return r.readFrames()
	}
	if r.opts.Value != nil {
		r.value = r.opts.Value(name)
		defer func() { r.value = nil }()
	}
	return r.skipValue(name, true)
}

// misspelt reports whether a key whose value begins with c is nearly the one that the document
// still lacks.
func (r *Reader) misspelt(name string, c byte) (want string, ok bool) {
	want, bracket := r.wanted()
	return want, c == bracket && name != want && len(r.open) == 1 && (!r.found || r.frames == 0) && nearly(name, want)
}

// objectEnd lets the caller add keys to the document, whose brace is at pos.
func (r *Reader) objectEnd() error {
	if err := r.pass(); err != nil || r.opts.ObjectEnd == nil {
		return err
	}
	return r.opts.ObjectEnd(len(r.keys))
}

// separate makes the separator that is held before a member of an object what it should be.
func (r *Reader) separate(where string, first bool) error {
	held := r.buf[r.mark:r.pos]
	commas := bytes.Count(held, []byte{','})
	if first && commas == 0 || !first && commas == 1 {
		return nil
	}
	if err := r.warn(r.base+int64(r.mark), where, ErrComma); err != nil {
		return err
	}
	r.owed = !first && commas == 0
	for i, c := range held {
		if c == ',' && (first || i > bytes.IndexByte(held, ',')) {
			held[i] = ' '
		}
	}
	return nil
}

// brokenKey goes on at the events, if they are still to come. Else it gives up on the rest of the
// document: without its keys nothing behind this point can be understood.
func (r *Reader) brokenKey() error {
	off := r.base + int64(r.pos)
	err := fmt.Errorf("%w: expected a key, found %q", ErrSyntax, r.buf[r.pos:min(r.end, r.pos+16)])
	r.mark = r.pos
	return r.brokenValue(&FormatError{Offset: off, Where: "document", Err: err})
}

// closeAll writes the brackets that are missing.
func (r *Reader) closeAll() error {
	r.value, r.owed = nil, false
	for n := len(r.open) - 1; n >= 0; n-- {
		c := byte('}')
		if r.open[n] == '[' {
			c = ']'
			if err := r.eventsEnd(); err != nil {
				return err
			}
		} else if n == 0 && r.opts.ObjectEnd != nil {
			if err := r.opts.ObjectEnd(len(r.keys)); err != nil {
				return err
			}
		}
		if err := r.outside([]byte{c}); err != nil {
			return err
		}
	}
	r.open = r.open[:0]
	return nil
}

// cut ends an input that stops too early. What is held is dropped.
func (r *Reader) cut(off int64, where string) error {
	r.mark = r.end
	r.pos = r.end
	if r.inFrames {
		if err := r.framesEnd(); err != nil {
			return err
		}
	}
	if err := r.closeAll(); err != nil {
		return err
	}
	return &FormatError{Offset: off, Where: where, Err: io.ErrUnexpectedEOF}
}

// readTail reads what stands behind the document.
func (r *Reader) readTail() error {
	c, ok, err := r.peek()
	if err != nil {
		return err
	}
	if err := r.pass(); err != nil {
		return err
	}
	if !ok {
		return io.EOF
	}
	r.behind = behind{from: r.InputOffset(), begins: c, trace: r.beginsTrace()}
	if r.opts.Strict {
		return r.behind.tell(r)
	}
	r.state = atBehind
	return nil
}

// readElement reads the separator and the element at pos. ok is false if there
// was no event, for instance because the array has ended.
func (r *Reader) readElement(ev *Event) (ok bool, err error) {
	// 1. The separator: blanks and one comma.
	commas := 0
	if b := r.buf[r.pos:r.end]; len(b) > 2 && b[0] == ',' && b[1] == ' ' && b[2] == '{' {
		r.pos += 2
		commas = 1
	} else {
		for {
			for r.pos < r.end && (isSpace(r.buf[r.pos]) || r.buf[r.pos] == ',') {
				if r.buf[r.pos] == ',' {
					commas++
				}
				r.pos++
			}
			if r.pos < r.end {
				break
			}
			if r.end-r.mark >= 1<<20 {
				// Nothing but separators in a megabyte: keep one.
				r.mark = r.end - 1
				r.buf[r.mark] = ' '
				if commas > 0 {
					r.buf[r.mark] = ','
				}
			}
			if !r.more(1 << 30) {
				if r.srcErr != nil {
					return false, r.srcErr
				}
				return false, r.eventsAtEOF()
			}
		}
	}
	// 2. The element.
	switch r.buf[r.pos] {
	case '{':
		return r.readEvent(ev, commas)
	case ']':
		return false, r.endArray(commas)
	}
	return r.oddElement(ev, commas)
}

// lead returns the separator before the element at pos as it should be.
func (r *Reader) lead(commas int) ([]byte, error) {
	lead := r.buf[r.mark:r.pos]
	want := 1
	if r.first {
		want = 0
	}
	if commas == want {
		return lead, nil
	}
	if !r.dropped && (r.form != FormBare || commas > 1) {
		if err := r.warn(r.base+int64(r.mark), r.where(), ErrComma); err != nil {
			return nil, err
		}
	}
	r.leadBuf = r.leadBuf[:0]
	if want == 1 {
		r.leadBuf = append(r.leadBuf, ',')
	}
	for _, c := range lead {
		if c != ',' {
			r.leadBuf = append(r.leadBuf, c)
		}
	}
	return r.leadBuf, nil
}

// endArray steps over the bracket at pos.
func (r *Reader) endArray(commas int) error {
	if commas > 0 {
		if r.form != FormBare {
			if err := r.warn(r.base+int64(r.mark), r.where(), ErrComma); err != nil {
				return err
			}
		}
		if err := r.withoutCommas(); err != nil {
			return err
		}
	}
	if r.opts.EventsEnd != nil {
		if err := r.pass(); err != nil {
			return err
		}
	}
	if err := r.eventsEnd(); err != nil {
		return err
	}
	r.pos++
	r.ended = true
	r.open = r.open[:len(r.open)-1]
	r.state = atKeys
	if len(r.open) == 0 {
		r.state = atTail
	}
	return r.pass()
}

// eventsEnd is called before the bracket that ends an array of events is passed on.
func (r *Reader) eventsEnd() error {
	if r.opts.EventsEnd != nil {
		if err := r.opts.EventsEnd(); err != nil {
			return err
		}
	}
	if w := r.copies(); w != nil {
		w.ends()
	}
	return nil
}

// copies returns the Writer of a copy.
func (r *Reader) copies() *Writer {
	o, _ := r.opts.Outside.(outsideWriter)
	return o.w
}

// eventsBegin is called behind the bracket before events.
func (r *Reader) eventsBegin() {
	if w := r.copies(); w != nil {
		w.begins()
	}
}

// withoutCommas passes on the blanks of the separator that is held.
func (r *Reader) withoutCommas() error {
	held := r.buf[r.mark:r.pos]
	r.mark = r.pos
	return r.outside(bytes.ReplaceAll(held, []byte{','}, nil))
}

// eventsAtEOF ends an array that has no bracket.
func (r *Reader) eventsAtEOF() error {
	if r.form == FormObject {
		return r.cut(r.base+int64(r.mark), r.where())
	}
	if err := r.withoutCommas(); err != nil {
		return err
	}
	if err := r.closeAll(); err != nil {
		return err
	}
	return io.EOF
}

// took notes that the event before pos is done with.
func (r *Reader) took() {
	r.mark = r.pos
	r.first, r.dropped = false, false
	r.count++
}

// readEvent reads the event whose brace is at pos.
func (r *Reader) readEvent(ev *Event, commas int) (ok bool, err error) {
	var n int
	for {
		b := r.buf[r.pos:r.end]
		if r.guesser.on {
			if n = r.guess(b, ev); n > 0 {
				r.missed, r.useful = false, true
				break
			}
		}
		if n = r.expect(b, ev); n > 0 {
			r.missed, r.useful = false, true
			if r.guesser.on {
				r.note(ev)
			}
			break
		}
		if n = r.parse(b, ev); n > 0 {
			if r.missed && r.worthLearning() {
				r.learn(ev)
			}
			r.missed = true
			r.lastName = ev.NameID
			break
		}
		if n == needMore {
			if r.more(r.opts.MaxEventSize) {
				continue
			}
			if r.srcErr != nil {
				return false, r.srcErr
			}
			if !r.eof {
				return false, r.largeEvent(commas)
			}
		}
		return r.brokenEvent(ev, commas, n)
	}
	lead := r.buf[r.mark:r.pos]
	if r.first || commas != 1 {
		if lead, err = r.lead(commas); err != nil {
			return false, err
		}
	}
	return true, r.finish(ev, n, lead)
}

// worthLearning reports whether to make a layout of the event just parsed. Where
// layouts fit no second event, because events of many kinds alternate, that is done
// less and less often.
func (r *Reader) worthLearning() bool {
	if r.waited++; r.waited < r.wait {
		return false
	}
	r.waited = 0
	if r.useful {
		r.wait = 0
	} else {
		r.wait = min(2*r.wait+1, 255)
	}
	r.useful = false
	return true
}

// finish completes the event of n bytes at pos.
func (r *Reader) finish(ev *Event, n int, lead []byte) error {
	ev.Lead = lead
	ev.Offset = r.base + int64(r.pos)
	ev.First = r.first
	var fault textFault
	if !r.opts.Checked && (r.missed || !r.plain) {
		fault = faultOf(ev.Raw)
	}
	if r.missed && r.scan.loose || r.known[ev.NameID].faulty {
		fault.odd = true
	}
	if fault != (textFault{}) {
		if err := r.tellFault(ev.Offset, r.where(), fault); err != nil {
			return err
		}
		r.fixed = r.scan.fix(r.fixed[:0], ev.Raw)
		r.scan.quotes = false
		if r.parse(r.fixed, ev) != len(r.fixed) {
			panic("chromium: internal error: event is broken after it was put right")
		}
	}
	r.lastEnd = 0
	if ev.Phase == 'E' {
		r.lastEnd = 1
	}
	if r.guesser.on {
		r.guesser.follow(ev.Phase, ev.NameID)
	}
	r.pos += n
	r.took()
	return nil
}
