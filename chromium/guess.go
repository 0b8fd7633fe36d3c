package chromium

import "bytes"

// A guesser knows what event comes next, mostly: the end of the span that began last, or the begin
// of one that began under it before. To compare an event with the whole text of the guess is faster
// than to read it value by value. It is for layouts in which nothing varies but the phase, the time
// behind it, and what mostly is the same for a name: the name itself, before or behind these, and
// category and sf behind them. dotnet-trace and tracefix write begins and ends so.
type guesser struct {
	on      bool   // the layout is of that kind
	layout  uint32 // number of the layout
	phase   int    // its step that is the phase: 1 behind the name, else 0
	cat, sf bool   // it has such steps
	names   []guess
	open    []int32 // names of the spans that are open, those of all threads
	time    Time
	timed   []byte // text of time
	middle  []byte // what stands between the phase and the end of a guess
}

// A guess is what is known of a name.
type guess struct {
	layout  uint32   // that of the texts; 0: there are none
	met     bool     // once is not enough for texts: they take memory
	plain   bool     // no byte of the texts need be looked at for being text
	begin   []byte   // up to the phase
	end     []byte   // behind the time and what always follows it
	name    part     // of begin, or of end if it stands there
	cat, sf part     // of end, if the layout has such steps
	callees [2]int32 // the names that began under it lately
}

// A part is where a value stands in a text.
type part struct{ from, to int32 }

func (p part) of(text []byte) []byte { return text[p.from:p.to:p.to] }

const (
	maxOpen    = 4096 // open spans that are remembered
	maxGuessed = 4096 // bytes of a name that is guessed, with what is known of it: they are held once more
)

// newLayout looks at the layout just learnt.
func (g *guesser) newLayout(steps []step) {
	g.layout++
	g.timed = g.timed[:0]
	g.on, g.phase, g.cat, g.sf = false, 0, false, false
	named := steps[0].key == keyName
	if named {
		g.phase = 1
	}
	if len(steps) < g.phase+3 || steps[g.phase].key != keyPhase || steps[g.phase+1].key != keyTS || steps[g.phase+1].kind != '0' {
		return
	}
	for _, st := range steps[g.phase+2 : len(steps)-1] {
		switch st.key {
		case keyName:
			named = true
		case keyCat:
			g.cat = true
		case keySF:
			if g.sf = true; st.kind != '0' {
				return
			}
		default:
			return
		}
	}
	g.on = named
}

// caller returns the name of the span that began last and is open, or 0.
func (g *guesser) caller() int32 {
	if n := len(g.open); n > 0 {
		return g.open[n-1]
	}
	return 0
}

// follow takes in the event just read.
func (g *guesser) follow(phase byte, name int32) {
	switch {
	case phase == 'B':
		if len(g.open) == maxOpen {
			g.open = g.open[:copy(g.open, g.open[maxOpen/2:])]
		}
		g.open = append(g.open, name)
	case phase == 'E' && len(g.open) > 0:
		g.open = g.open[:len(g.open)-1]
	}
}

// guess reads the event at b[0] if it is as guessed, else it returns 0.
func (r *Reader) guess(b []byte, ev *Event) int {
	g := &r.guesser
	caller := g.caller()
	if int(caller) >= len(g.names) {
		return 0
	}
	callees := &g.names[caller].callees
	first, second, third := callees[0], callees[1], caller // no array: to copy what was just written in parts waits
	if r.lastEnd == 1 {
		first, second, third = caller, callees[0], callees[1]
	}
	for range 3 {
		name := first
		first, second = second, third
		x := &g.names[name]
		at := len(x.begin)
		end := at + 1 + len(g.middle)
		to := end + len(x.end)
		if x.layout != g.layout || len(b) < to || string(b[:at]) != string(x.begin) || string(b[end:to]) != string(x.end) {
			continue
		}
		phase := b[at]
		if phase == '"' || phase == '\\' || string(b[at+1:end]) != string(g.middle) {
			return 0
		}
		ev.Raw = b[:to]
		ev.Phase = phase
		ev.NameID = name
		if g.phase > 0 {
			ev.Name = x.name.of(b)
		} else {
			ev.Name = x.name.of(b[end:])
		}
		ev.Cat, ev.SF = r.layoutCat, nil
		if g.cat {
			ev.Cat = x.cat.of(b[end:])
		}
		if g.sf {
			ev.SF = x.sf.of(b[end:])
		}
		from := at + 1 + len(r.layout.steps[g.phase+1].lit)
		ev.TS = g.time
		ev.TS.Text = b[from : from+len(g.timed)]
		ev.Dur, ev.ID, ev.Args = Time{}, nil, nil
		ev.PID, ev.TID = r.layoutPID, r.layoutTID
		if r.lastThread != r.layoutThread {
			r.switchThread(r.layoutPID, r.layoutTID)
		}
		ev.Thread = r.lastThread
		r.lastName = name
		r.plain = x.plain && !isOdd(phase)
		return to
	}
	return 0
}

// note learns from an event that was not guessed.
func (r *Reader) note(ev *Event) {
	g := &r.guesser
	if ev.Phase != 'B' && ev.Phase != 'E' {
		return
	}
	g.names = append(g.names, make([]guess, len(r.names.raw)-len(g.names))...)
	if ev.Phase == 'B' {
		if c := &g.names[g.caller()].callees; c[0] != ev.NameID {
			c[0], c[1] = ev.NameID, c[0]
		}
	}
	steps := r.layout.steps
	if !bytes.Equal(g.timed, ev.TS.Text) {
		g.timed = append(g.timed[:0], ev.TS.Text...)
		g.time = ev.TS
		g.middle = append(g.middle[:0], steps[g.phase+1].lit...)
		g.middle = append(g.middle, g.timed...)
		g.middle = append(g.middle, steps[g.phase+2].lit...)
	}
	x := &g.names[ev.NameID]
	if !x.met || len(ev.Name)+len(ev.Cat) > maxGuessed {
		x.met = true
		return
	}
	if x.layout == g.layout && (!g.cat || bytes.Equal(x.cat.of(x.end), ev.Cat)) && (!g.sf || bytes.Equal(x.sf.of(x.end), ev.SF)) {
		return
	}
	x.layout = g.layout
	x.plain = r.layoutPlain && r.known[ev.NameID].text && (!g.cat || oddByte(ev.Cat) < 0) && (!g.sf || oddByte(ev.SF) < 0)
	add := func(text *[]byte, value []byte) part {
		from := len(*text)
		*text = append(*text, value...)
		return part{int32(from), int32(len(*text))}
	}
	x.begin, x.end = append(x.begin[:0], steps[0].lit...), x.end[:0]
	if g.phase > 0 {
		x.name = add(&x.begin, ev.Name)
		x.begin = append(x.begin, steps[1].lit...)
	}
	for i := g.phase + 2; steps[i].key != keyEnd; i++ {
		switch steps[i].key {
		case keyName:
			x.name = add(&x.end, ev.Name)
		case keyCat:
			x.cat = add(&x.end, ev.Cat)
		case keySF:
			x.sf = add(&x.end, ev.SF)
		}
		x.end = append(x.end, steps[i+1].lit...)
	}
}
