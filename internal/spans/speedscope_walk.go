package spans

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// A walker reads a file from its start and hands on its profiles.
type walker struct {
	s          *scanner
	framesOnly bool // stop where the frames are known, and what else stands behind that for which it is needed
	own        bool // tracefix wrote the file
	dotnet     bool // or dotnet-trace
	frames     int  // that are known; all, in the second reading
	facts      SpeedscopeFacts
	first      []*SpeedscopeProfile // as a first reading found them, if it came so far
	names      []string
	done       bool // stop

	begin   func(p *SpeedscopeProfile, holds json.RawMessage) bool
	earlier json.RawMessage // the list of an earlier repair
	event   func(open bool, frame int, at float64) bool
}

// knownKeys are those of the format, at any place, and those that tracefix adds.
var knownKeys = []string{"$schema", "shared", "frames", "profiles", "name", "activeProfileIndex", "exporter", "type", "unit", "startValue", "endValue", "events", "samples", "weights", "frame", "at", "file", "line", "col", "tracefix", "version"}

// like returns the key that this one was before one of its bytes was hit.
func like(key string, keys ...string) string {
	for _, k := range keys {
		if len(k) != len(key) {
			continue
		}
		n := 0
		for i := range k {
			if k[i] != key[i] {
				n++
			}
		}
		if n == 1 {
			return k
		}
	}
	return key
}

// key mends a key.
func (w *walker) key(key string, of ...string) string {
	if slices.Contains(knownKeys, key) {
		return key
	}
	k := like(key, of...)
	if k != key {
		w.s.damage("key %q, read as %q", key, k)
	}
	return k
}

// file reads the whole file.
func (w *walker) file() {
	s := w.s
	if s.ahead(3) == "\xef\xbb\xbf" {
		for range 3 {
			s.next()
		}
	}
	whole := s.object(false, w.top)
	for !whole && !w.done && !s.ended() {
		// Something at the top is broken: go on at the next object that is known by its first key.
		s.toBrace()
		switch next := s.ahead(10); {
		case s.ended():
		case strings.HasPrefix(next, `{"type":"O`), strings.HasPrefix(next, `{"type":"C`):
			w.loose()
		case strings.HasPrefix(next, `{"type"`):
			w.profile()
		case strings.HasPrefix(next, `{"name"`) && len(w.names) == 0:
			w.oneFrame()
			w.frameList()
		default:
			s.next()
			whole = s.peek() == 0 && s.ended()
		}
	}
	switch {
	case w.done:
	case s.err == io.EOF && !whole:
		s.last = true
		s.damage("the file breaks off: %v", io.ErrUnexpectedEOF)
	case whole:
		if next := s.space(); !s.ended() {
			s.where = "document"
			s.damage("bytes after the end of the trace, beginning with %q: left out", next)
		}
	}
}

func (w *walker) top(key string) bool {
	s := w.s
	s.where = key
	switch key = w.key(key, "shared", "profiles", "exporter", "$schema"); key {
	case "exporter", "name":
		if s.value().kind == '"' {
			if key == "name" {
				w.facts.Name = string(s.tok)
			} else {
				w.facts.Exporter = string(s.tok)
			}
		} else {
			s.damage("%s that is not a string", key)
		}
	case "shared":
		return s.object(false, func(key string) bool {
			if w.key(key, "frames") == "frames" {
				s.elements(w.oneFrame, w.moreFrames)
			} else {
				s.skip()
			}
			return !w.done
		}) && !w.done
	case "profiles":
		s.elements(w.profile, func() bool { return strings.HasPrefix(s.ahead(8), `,{"type"`) })
	case repairsKey:
		w.earlier = s.text()
	default:
		s.skip()
	}
	return !w.done
}

// moreFrames reports whether another frame follows where the list seems to end.
func (w *walker) moreFrames() bool { return strings.HasPrefix(w.s.ahead(8), `,{"name"`) }

// frameList reads the frames behind one whose list was not found.
func (w *walker) frameList() {
	for w.moreFrames() {
		w.s.toBrace()
		w.oneFrame()
	}
}

// oneFrame reads a frame. Whatever it is, it counts as one.
func (w *walker) oneFrame() {
	s := w.s
	w.facts.Frames++
	name, cut := "?", false
	named := false
	whole := s.object(false, func(key string) bool {
		v := s.value()
		named = named || like(key, "name") == "name"
		if v.kind != '"' {
			if key == "name" {
				s.damage("a name that is not a string")
			}
			if v.kind == '{' || v.kind == '[' {
				s.skip()
			}
			return v.kind != 0
		}
		if key != "name" && like(key, "name") != "name" {
			return true
		}
		name = string(s.tok)
		if i := strings.LastIndexByte(name, '}'); i >= 0 && strings.Trim(name[i+1:], " \t\r\n,") == "{" {
			// The quote at its end was hit: it goes on to that of the next frame's key.
			s.damage("a name without end: %.80q", name)
			name, cut = strings.TrimRight(name[:i], " \t\r\n"), true
			return false
		}
		return true
	})
	if !whole && s.ended() && name == "?" {
		w.facts.Frames-- // it only began
		return
	}
	w.names = append(w.names, name)
	if whole && !named {
		s.damage("a frame without a name")
	}
	if cut {
		w.restOfFrame()
	} else if !whole && !s.ended() {
		for !s.ended() && !strings.HasPrefix(s.ahead(7), `{"name"`) && s.peek() != ']' {
			s.next()
		}
	}
}

// restOfFrame reads a frame of whose first key the quote was read already.
func (w *walker) restOfFrame() {
	s := w.s
	s.literal()
	if s.peek() != '"' {
		return
	}
	s.next()
	if s.space() == ':' {
		s.next()
	}
	w.facts.Frames++
	name := "?"
	if s.value().kind == '"' {
		name = string(s.tok)
	}
	w.names = append(w.names, name)
	s.toBrace()
	if s.peek() == '}' {
		s.next()
	}
}

// profile reads a profile. The keys before events or samples are needed to read those.
func (w *walker) profile() {
	next := w.rest(&SpeedscopeProfile{}, false)
	for next != nil && !w.done {
		next = w.rest(next, true)
	}
}

// rest reads a profile from its brace on, or from behind its first key. It returns one whose first
// key was read in its place.
func (w *walker) rest(p *SpeedscopeProfile, opened bool) (next *SpeedscopeProfile) {
	s := w.s
	s.where = "profiles"
	var samples [][]int
	begun := false
	begin := func() bool {
		if begun {
			return true
		}
		begun = true
		if n := len(w.facts.Profiles); n < len(w.first) { // some tools write keys in the order of the alphabet
			late := w.first[n]
			p.Name, p.Unit = cmp.Or(p.Name, late.Name), cmp.Or(p.Unit, late.Unit)
			if p.holds == nil {
				p.holds = late.holds
			}
		}
		w.facts.Profiles = append(w.facts.Profiles, p)
		if p.Unit == "" {
			s.damage("a profile without a unit")
		}
		p.Unit = w.unit(p.Unit)
		return w.begin == nil || w.begin(p, p.holds)
	}
	p.Ended = s.object(opened, func(key string) bool {
		if isSum(p.holds) {
			s.skip()
			return !w.done
		}
		key = w.key(key, "name", "unit", "startValue", "endValue", "events", "samples", "weights", "type")
		if w.framesOnly && len(w.names) > 0 && p.Unit != "" && slices.Contains([]string{"events", "samples", "weights"}, key) {
			w.done = true
			return false
		}
		switch key {
		case "name", "unit":
			if s.value().kind == '"' {
				if key == "name" {
					p.Name = string(s.tok)
				} else {
					p.Unit = string(s.tok)
				}
			}
		case "startValue", "endValue":
			n, ok := s.number()
			if !ok {
				s.damage("%s is not a number", key)
			} else if key == "endValue" {
				p.End = n
			} else {
				p.Start = n
			}
		case "tracefix":
			p.holds = s.text()
		case "events":
			if !begin() {
				w.done = true
				return false
			}
			next = w.events(p)
			return next == nil && !w.done
		case "samples":
			// Weights stand behind the samples, and a stack is as long as a call is
			// deep: this is the one part of a file that is held.
			samples = w.samples()
		case "weights":
			if !begin() {
				w.done = true
				return false
			}
			w.weights(p, samples)
		default:
			s.skip()
		}
		return !w.done
	})
	if p.Ended && !begun && !isSum(p.holds) {
		s.damage("a profile without events, and without samples and weights")
	}
	return next
}

// isSum reports whether tracefix says that the profile adds up the others.
func isSum(holds json.RawMessage) bool {
	var own struct{ Sum bool }
	return len(holds) > 0 && json.Unmarshal(holds, &own) == nil && own.Sum
}

// unit mends a unit.
func (w *walker) unit(u string) string {
	units := []string{"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
	if slices.Contains(units, u) {
		return u
	}
	if k := like(u, units...); k != u {
		w.s.damage("unit %q, read as %q", u, k)
		return k
	}
	if u == "" && w.dotnet {
		return "milliseconds"
	}
	return u
}

// number reads a number, which may stand in quotes.
func (s *scanner) number() (float64, bool) {
	switch v := s.value(); v.kind {
	case '0':
		return v.num, true
	case '"':
		return jsonNumber(s.tok)
	case '{', '[':
		s.skip()
	}
	return 0, false
}

// text passes over a value and returns its text.
func (s *scanner) text() json.RawMessage {
	var b bytes.Buffer
	s.keep = &b
	s.skip()
	s.keep = nil
	return b.Bytes()
}

// An event of an evented profile.
type profileEvent struct {
	open, typed bool
	frame       int
	at          float64
	timed       bool
	offset      int64
}

// loose reads events whose profile was not found.
func (w *walker) loose() {
	p := &SpeedscopeProfile{Unit: w.unit("")}
	w.facts.Profiles = append(w.facts.Profiles, p)
	if w.begin != nil && !w.begin(p, nil) {
		w.done = true
		return
	}
	n := newNest(w, p)
	for !w.done && w.moreEvents("{") {
		w.oneEvent(n)
		if w.s.space() == ',' {
			w.s.next()
		}
	}
	n.end()
}

// moreEvents reports whether another event follows.
func (w *walker) moreEvents(lead string) bool {
	next := w.s.ahead(10 + len(lead))
	return strings.HasPrefix(next, lead+`"type":"O`) || strings.HasPrefix(next, lead+`"type":"C`)
}

// events reads the events of a profile. Where its end is missing and another profile begins, it
// returns that one, whose first key was read.
func (w *walker) events(p *SpeedscopeProfile) (next *SpeedscopeProfile) {
	s := w.s
	s.where = "events"
	n := newNest(w, p)
	s.elements(func() {
		if next == nil && !w.done {
			next = w.oneEvent(n)
		}
		if next != nil || w.done {
			s.err = cmpErr(s.err, errStop)
		}
	}, func() bool { return w.moreEvents(",{") || w.moreEvents("") || w.moreEvents(",") || w.moreEvents("},{") })
	if s.err == errStop {
		s.err = nil
	}
	n.end()
	return next
}

// oneEvent reads an event.
func (w *walker) oneEvent(n *nest) (next *SpeedscopeProfile) {
	s := w.s
	e := profileEvent{frame: -1, offset: s.off}
	fields := 0
	s.short = true
	whole := s.object(false, func(key string) bool {
		at := s.off
		switch v := s.value(); v.kind {
		case '"':
			if t := string(s.tok); t == "O" || t == "C" {
				e.open, e.typed = t == "O", true
			} else if fields == 0 && (t == "evented" || t == "sampled") {
				next = &SpeedscopeProfile{}
				return false
			} else if f, ok := jsonNumber(s.tok); ok && key != "type" {
				e.set(key, f)
			}
		case '0':
			e.set(key, v.num)
		case 'a':
			s.damageAt(at, "%q is not a number", s.tok)
		default:
			s.damageAt(at, "no value of %q", key)
			return false
		}
		fields++
		return true
	})
	s.short = false
	if next != nil {
		s.damage("a profile begins among events")
		return next
	}
	if !whole {
		if s.off == e.offset {
			s.next() // what broke it
		}
		w.nextEvent()
		if fields == 0 {
			return nil
		}
	}
	switch {
	case !whole && s.ended():
		return nil // that the file breaks off is told at its end
	case e.frame < 0 || e.frame >= w.frames:
		s.damageAt(e.offset, "frame %d of %d", e.frame, w.frames)
		return nil
	case !e.typed:
		s.damageAt(e.offset, "an event that neither opens nor closes")
	case !e.timed:
		s.damageAt(e.offset, "an event without a time")
	}
	n.add(e)
	return nil
}

// nextEvent passes over the rest of a broken event, to the next one or the end of the array.
func (w *walker) nextEvent() {
	s := w.s
	for {
		s.toBrace()
		switch next := s.ahead(3); {
		case s.ended() || strings.HasPrefix(next, "{") || strings.HasPrefix(next, "]}") || strings.HasPrefix(next, `],"`):
			return
		}
		s.next()
	}
}

// set takes a number by its key; one whose key was hit goes where one is missing.
func (e *profileEvent) set(key string, n float64) {
	isFrame := key == "frame" || key != "at" && e.frame < 0
	switch {
	case isFrame && n >= 0 && n < 1<<31 && n == float64(int(n)):
		e.frame = int(n)
	case !isFrame && !e.timed:
		e.at, e.timed = n, true
	}
}

// samples reads the stacks of a sampled profile.
func (w *walker) samples() (all [][]int) {
	s := w.s
	if s.space() != '[' {
		s.damage("samples are not a list")
		return nil
	}
	s.next()
	for {
		switch c := s.space(); {
		case s.ended():
			return all
		case c == ']':
			s.next()
			return all
		case c == '[':
			s.next()
			all = append(all, w.stack())
		case c == ',':
			s.next()
		case c == '}' || c == '"':
			s.damage("%s where ] should be", show(c))
			return all
		default:
			s.damage("%s where [ should be", show(c))
			s.next()
		}
	}
}

// stack reads a stack of a sampled profile, behind its bracket.
func (w *walker) stack() (stack []int) {
	s := w.s
	for {
		switch c := s.space(); {
		case s.ended():
			return stack
		case c == ']':
			s.next()
			return stack
		case c == '[' || c == '{' || c == '}' || c == '"':
			s.damage("%s where ] should be", show(c))
			return stack
		case c == ',':
			s.next()
		default:
			at := s.off
			v := s.value()
			if v.kind == 0 {
				s.next()
			}
			if v.kind != '0' || v.num < 0 || v.num != float64(int32(v.num)) || !w.framesOnly && int(v.num) >= w.frames {
				s.damageAt(at, "frame %s of %d", s.tok, w.frames)
				continue
			}
			stack = append(stack, int(v.num))
		}
	}
}

// weights reads the weights of a sampled profile and hands on its stacks as begins and ends:
// what two neighbours share stays open.
func (w *walker) weights(p *SpeedscopeProfile, samples [][]int) {
	s := w.s
	var open []int
	at := p.Start
	step := func(to []int) {
		k := 0
		for k < len(open) && k < len(to) && open[k] == to[k] {
			k++
		}
		for j := len(open) - 1; j >= k; j-- {
			w.emit(false, open[j], at)
		}
		for _, f := range to[k:] {
			w.emit(true, f, at)
		}
		open = to
	}
	if s.space() != '[' {
		s.damage("weights are not a list")
		return
	}
	s.next()
	for i := 0; !w.done; {
		c := s.space()
		if s.ended() || c == ']' || c == '}' {
			if c == ']' {
				s.next()
			}
			if i < len(samples) && !s.ended() {
				s.damage("%d samples, but %d weights", len(samples), i)
			}
			break
		}
		if c == ',' {
			s.next()
			continue
		}
		from := s.off
		n, ok := s.number()
		if !ok {
			s.damageAt(from, "a weight that is not a number")
			if s.off == from {
				s.next()
			}
		}
		p.Weights++
		if i >= len(samples) {
			s.damageAt(from, "more weights than samples")
			i++
			continue
		}
		step(samples[i])
		i++
		at += max(n, 0)
	}
	step(nil)
	p.Last = at
}

// emit hands on an event.
func (w *walker) emit(open bool, frame int, at float64) {
	if w.event != nil && !w.done && !w.event(open, frame, at) {
		w.done = true
	}
}
