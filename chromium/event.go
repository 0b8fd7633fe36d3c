package chromium

import "bytes"

// An Event is one element of traceEvents. Its slices are parts of the reader's
// buffer: they are valid until the next call of Read. Values are raw JSON text;
// nil says that the key is missing. Of a key that stands twice the last value
// counts, as in all viewers.
type Event struct {
	Offset int64  // of Raw in the input
	Lead   []byte // what stands between the event before and this one: blanks and a comma
	Raw    []byte // the event, from brace to brace
	First  bool   // the first event of its array: Lead holds no comma

	Phase  byte   // the first byte of "ph", 0 if it is missing or no string
	Name   []byte // raw text of "name" without its quotes; nil if missing or no string
	NameID int32  // number of what Name says, however it is escaped; from 1, see Reader.Name; 0 if nil
	Cat    []byte // raw text of "cat" without its quotes; nil if missing or no string
	TS     Time
	Dur    Time
	PID    []byte // number or string with its quotes
	TID    []byte
	Thread int32 // number of the pair (PID, TID), from 0, see Reader.Thread
	SF     []byte
	ID     []byte
	Args   []byte
}

// key says which value of an event a step reads.
type key uint8

const (
	keyOther key = iota
	keyName
	keyPhase
	keyCat
	keyTS
	keyDur
	keyPID
	keyTID
	keySF
	keyID
	keyArgs
	keyEnd // no value: the event ends
)

func keyOf(b []byte) key {
	if bytes.IndexByte(b, '\\') >= 0 {
		b = []byte(Unquote(b))
	}
	switch string(b) {
	case "name":
		return keyName
	case "ph":
		return keyPhase
	case "cat":
		return keyCat
	case "ts":
		return keyTS
	case "dur":
		return keyDur
	case "pid":
		return keyPID
	case "tid":
		return keyTID
	case "sf":
		return keySF
	case "id":
		return keyID
	case "args":
		return keyArgs
	}
	return keyOther
}

// A step of a layout: the bytes lit must stand here, then the value of key.
type step struct {
	lit  []byte
	key  key
	kind byte // of the value: '"' string, '0' literal, '{' anything else
}

// A layout is the sequence of keys of an event with all bytes between the
// values that vary. Producers write event after event in one layout, so that
// comparing with the expected bytes replaces most of the scanning.
type layout struct {
	steps    []step
	pid, tid bool // they vary: these are steps
}

// A span is a value found by parse: key b[k:], value b[from:to].
type span struct {
	key      key
	from, to int
}

const maxLayoutKeys = 16

// values are those of an event by their keys; nil is a key that is missing.
type values [keyEnd][]byte

// parse reads the event at b[0], which is a brace, key by key.
func (r *Reader) parse(b []byte, ev *Event) int {
	s := &r.scan
	r.spans = r.spans[:0]
	s.loose = false
	var found values
	i := 1
	comma, first := true, true
	for {
		i = skipSpace(b, i)
		if i == len(b) {
			return needMore
		}
		if b[i] == ',' {
			if comma {
				s.loose = true
			}
			comma = true
			i++
			continue
		}
		if b[i] == '}' {
			if comma && !first {
				s.loose = true
			}
			i++
			break
		}
		if b[i] != '"' || !comma {
			s.at = i
			return badJSON
		}
		k, from, to := s.member(b, i)
		if to < 0 {
			return to
		}
		i = to
		found[k] = b[from:to]
		if len(r.spans) <= maxLayoutKeys {
			r.spans = append(r.spans, span{k, from, to})
		}
		comma, first = false, false
	}
	if r.picky && inString(found[keyPhase]) == nil {
		s.at = i
		return badJSON
	}
	ev.Raw = b[:i]
	if !s.quotes { // else it is read again once the text is put right
		r.fill(ev, &found)
	}
	return i
}

// member scans the member whose key begins at b[i]. Its value is b[from:to]; to is negative if there
// is none.
func (s *scanner) member(b []byte, i int) (k key, from, to int) {
	j := stringEnd(b, i+1) // a key holds no quotes
	if j < 0 {
		return 0, 0, j
	}
	k = keyOf(b[i+1 : j])
	i = skipSpace(b, j+1)
	if i == len(b) {
		return 0, 0, needMore
	}
	if b[i] != ':' {
		s.at = i
		return 0, 0, badJSON
	}
	i = skipSpace(b, i+1)
	if i == len(b) {
		return 0, 0, needMore
	}
	switch b[i] {
	case '"':
		if to = s.stringEnd(b, i+1); to >= 0 {
			to++
		}
	case '{', '[':
		to = s.value(b, i)
	default:
		to = s.literal(b, i)
	}
	return k, i, to
}

// fill gives ev the values that were found.
func (r *Reader) fill(ev *Event, v *values) {
	ev.Phase = 0
	if t := inString(v[keyPhase]); len(t) > 0 {
		ev.Phase = t[0]
	}
	ev.Name, ev.NameID = inString(v[keyName]), 0
	if ev.Name != nil {
		ev.NameID = r.nameID(ev.Name)
	}
	ev.Cat = inString(v[keyCat])
	ev.TS = parseKey(v[keyTS])
	ev.Dur = parseKey(v[keyDur])
	ev.PID, ev.TID, ev.SF, ev.ID, ev.Args = v[keyPID], v[keyTID], v[keySF], v[keyID], v[keyArgs]
	r.samePID, r.sameTID = same(ev.PID, r.lastPID), same(ev.TID, r.lastTID)
	r.sameCat = same(ev.Cat, r.lastCat)
	if !r.sameCat {
		r.lastCat = cloneInto(r.lastCat, ev.Cat)
	}
	r.switchThread(ev.PID, ev.TID)
	ev.Thread = r.lastThread
}

// same reports whether two values are equal; a missing one equals only itself.
func same(a, b []byte) bool {
	return bytes.Equal(a, b) && (a == nil) == (b == nil)
}

func parseKey(v []byte) Time {
	if v == nil {
		return Time{}
	}
	return ParseTime(v)
}

// inString returns the raw text within the quotes, nil if v is not a string.
func inString(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

// nameFacts are what is found out about a name once.
type nameFacts struct {
	faulty bool  // control characters or wrong escapes
	text   bool  // nothing is wrong with it
	id     int32 // number of the first spelling of the same text
}

// nameID interns a name, given as raw text. JSON has several spellings of one text ("a\/b" and "a/b"): all
// have the number of the one that was met first, so that what is compared by numbers is one name. Only text
// with a backslash is decoded, and once. Text with faults is a name of its own.
func (r *Reader) nameID(raw []byte) int32 {
	id, isNew := r.names.id(raw)
	if isNew {
		r.addName(raw, id)
		if r.known[id].text && bytes.IndexByte(raw, '\\') >= 0 {
			plain := AppendQuoted(nil, Unquote(raw))
			plain = plain[1 : len(plain)-1]
			first, isNew := r.names.id(plain)
			if isNew { // a number of which no event is: whoever spells it so later finds the other here
				r.addName(plain, id)
			}
			r.known[id].id = r.known[first].id
		}
	}
	return r.known[id].id
}

// addName notes what is known of a new spelling, of the name of number id.
func (r *Reader) addName(raw []byte, id int32) {
	var f textFault
	f.add(raw)
	r.known = append(r.known, nameFacts{f.odd, f == textFault{}, id})
	r.next = append(r.next, [2]int32{})
}

// switchThread makes (pid, tid) the last thread seen.
func (r *Reader) switchThread(pid, tid []byte) {
	if same(pid, r.lastPID) && same(tid, r.lastTID) && r.lastThread >= 0 {
		return
	}
	r.pair = append(r.pair[:0], pid...)
	r.pair = append(r.pair, 0)
	r.pair = append(r.pair, tid...)
	if pid == nil {
		r.pair = append(r.pair, 1)
	}
	if tid == nil {
		r.pair = append(r.pair, 2)
	}
	id, isNew := r.pairs.id(r.pair)
	r.lastThread = id - 1
	if isNew {
		r.threads = append(r.threads, Thread{PID: string(pid), TID: string(tid)})
	}
	r.lastPID = cloneInto(r.lastPID, pid)
	r.lastTID = cloneInto(r.lastTID, tid)
}

func cloneInto(dst, src []byte) []byte {
	if src == nil {
		return nil
	}
	if dst == nil {
		dst = make([]byte, 0, len(src))
	}
	return append(dst[:0], src...)
}

// learn makes the layout of ev, just read by parse from b, the expected one.
// Values that are the same as in the event before count as fixed: pid, tid, cat.
func (r *Reader) learn(ev *Event) {
	r.layout.steps, r.layout.pid, r.layout.tid = r.layout.steps[:0], false, false
	r.guesser.on = false
	if len(r.spans) > maxLayoutKeys || r.scan.loose {
		return
	}
	b := ev.Raw
	lit := 0
	var seen [keyEnd]bool
	add := func(to int, k key, kind byte) {
		r.layout.steps = append(r.layout.steps, step{bytes.Clone(b[lit:to]), k, kind})
	}
	for _, s := range r.spans {
		if s.key != keyOther && seen[s.key] {
			r.layout.steps = r.layout.steps[:0] // a key that stands twice
			return
		}
		seen[s.key] = true
		v := b[s.from:s.to]
		switch s.key {
		case keyPID:
			if r.samePID {
				continue
			}
			r.layout.pid = true
		case keyTID:
			if r.sameTID {
				continue
			}
			r.layout.tid = true
		case keyCat:
			if r.sameCat && v[0] == '"' {
				continue
			}
		}
		kind := byte('0')
		switch v[0] {
		case '"':
			kind = '"'
		case '{', '[':
			kind = '{'
		}
		if s.key == keyPhase && (kind != '"' || len(v) != 3) {
			r.layout.steps = r.layout.steps[:0]
			return
		}
		if kind == '"' {
			add(s.from+1, s.key, kind)
			lit = s.to - 1
		} else {
			add(s.from, s.key, kind)
			lit = s.to
		}
	}
	add(len(b), keyEnd, 0)
	r.layoutPlain = faultOf(b) == textFault{}
	r.layoutCat = cloneInto(r.layoutCat, ev.Cat)
	r.layoutPID, r.layoutTID = cloneInto(r.layoutPID, ev.PID), cloneInto(r.layoutTID, ev.TID)
	r.layoutThread = r.lastThread
	r.guesser.newLayout(r.layout.steps)
}

// expect reads the event at b[0] if it has the expected layout, else returns 0.
func (r *Reader) expect(b []byte, ev *Event) int {
	steps := r.layout.steps
	if len(steps) == 0 {
		return 0
	}
	i := 0
	plain := r.layoutPlain
	ev.Cat = r.layoutCat
	ev.Phase, ev.Name, ev.NameID = 0, nil, 0
	ev.TS, ev.Dur = Time{}, Time{}
	ev.SF, ev.ID, ev.Args = nil, nil, nil
	for n := range steps {
		st := &steps[n]
		if len(b)-i <= len(st.lit) {
			// The last step may end just at the end of b.
			if st.key != keyEnd || len(b)-i != len(st.lit) {
				return 0
			}
		}
		if string(b[i:i+len(st.lit)]) != string(st.lit) {
			return 0
		}
		i += len(st.lit)
		switch st.key {
		case keyEnd:
			ev.Raw = b[:i]
			if !r.layout.pid {
				ev.PID = r.layoutPID
			}
			if !r.layout.tid {
				ev.TID = r.layoutTID
			}
			if r.layout.pid || r.layout.tid || r.lastThread != r.layoutThread {
				r.switchThread(ev.PID, ev.TID)
			}
			ev.Thread = r.lastThread
			r.plain = plain
			return i
		case keyPhase:
			if b[i] == '"' || b[i] == '\\' {
				return 0
			}
			ev.Phase = b[i]
			plain = plain && !isOdd(b[i])
			i++
			continue
		case keyName:
			if st.kind != '"' {
				return 0
			}
			from := i
			if i = r.expectName(b, i, ev); i < 0 {
				return 0
			}
			ev.Name = b[from:i]
			plain = plain && r.known[ev.NameID].text
			continue
		case keyTS:
			// All events of a sample carry the same text.
			if t := r.lastTS.Text; st.kind == '0' && len(t) > 0 && len(b)-i > len(t) &&
				string(b[i:i+len(t)]) == string(t) && !literalByte[b[i+len(t)]] {
				ev.TS = r.lastTS
				ev.TS.Text = b[i : i+len(t)]
				i += len(t)
				continue
			}
		}
		to := i
		switch st.kind {
		case '"':
			to = stringEnd(b, i)
		case '0':
			to = literalEnd(b, i)
		default:
			to = r.bracketEnd(b, i)
		}
		if to < 0 || !r.take(ev, st, b, i, to) {
			return 0
		}
		if st.kind != '0' { // all bytes of a literal are plain
			plain = plain && oddByte(b[i:to]) < 0
		}
		i = to
	}
	return 0
}

// literalEnd returns where the number or word at b[i] ends. It is inlined here; scanner.literal is
// slower by a fiftieth with it.
func literalEnd(b []byte, i int) int {
	j := i
	for j < len(b) && literalByte[b[j]] {
		j++
	}
	if j == len(b) || j == i {
		return needMore
	}
	return j
}

// bracketEnd returns where the array or object at b[i] ends, which must be valid.
func (r *Reader) bracketEnd(b []byte, i int) int {
	if c := b[i]; c != '{' && c != '[' {
		return badJSON
	}
	r.scan.loose = false
	if i = r.scan.value(b, i); r.scan.loose {
		return badJSON
	}
	return i
}

// take gives ev the value b[from:to] of a step; false if it is not one that the key can have.
func (r *Reader) take(ev *Event, st *step, b []byte, from, to int) bool {
	v := b[from:to]
	switch {
	case st.kind == '0' && st.key != keySF && !validLiteral(v):
		return false
	case st.kind == '"' && st.key != keyCat:
		v = b[from-1 : to+1]
	}
	switch st.key {
	case keyCat:
		ev.Cat = v
		return st.kind == '"'
	case keyTS:
		ev.TS = ParseTime(v)
		r.lastTS = ev.TS
		r.tsBuf = append(r.tsBuf[:0], v...)
		r.lastTS.Text = r.tsBuf
	case keyDur:
		ev.Dur = ParseTime(v)
	case keyPID:
		ev.PID = v
	case keyTID:
		ev.TID = v
	case keySF:
		ev.SF = v
		return st.kind != '0' || isNatural(v)
	case keyID:
		ev.ID = v
	case keyArgs:
		ev.Args = v
	}
	return true
}

// isNatural reports whether v is digits that do not begin with a zero, or 0.
func isNatural(v []byte) bool {
	for _, c := range v {
		if c-'0' >= 10 {
			return false
		}
	}
	return len(v) == 1 || v[0] != '0'
}

// expectName reads the name whose text starts at b[i] and returns the index of
// its closing quote. What name followed the last one in the same direction
// (begin or end) mostly follows again, which saves search and hash.
func (r *Reader) expectName(b []byte, i int, ev *Event) int {
	next := &r.next[r.lastName][r.lastEnd]
	if want := r.names.raw[*next]; *next != 0 && len(b)-i > len(want) &&
		string(b[i:i+len(want)]) == string(want) && b[i+len(want)] == '"' {
		ev.NameID = *next
		r.lastName = *next
		return i + len(want)
	}
	j := stringEnd(b, i)
	if j < 0 {
		return j
	}
	id := r.nameID(b[i:j])
	r.next[r.lastName][r.lastEnd] = id
	r.lastName = id
	ev.NameID = id
	return j
}
