package chromium

import "bytes"

// A guesser knows what event comes next, mostly: the end of the span that began last, or
// the begin of one that began under it before. To compare an event with the whole text of
// the guess is faster than to read it value by value. It is for the one layout in which
// dotnet-trace writes begins and ends: name, phase, time, at most sf, and nothing else that
// varies.
type guesser struct {
	on     bool   // the layout is of that kind
	layout uint32 // number of the layout
	sf     bool   // it has sf
	names  []guess
	open   []int32 // names of the spans that are open, those of all threads
	time   Time
	timed  []byte // text of time
	middle []byte // what stands between the phase and sf, or the end if there is none
}

// A guess is what is known of a name.
type guess struct {
	layout  uint32   // that of the texts; 0: there are none
	met     bool     // once is not enough for texts: they take memory
	begin   []byte   // up to the phase
	end     []byte   // sf and all behind it, if the layout has sf
	callees [2]int32 // the names that began under it lately
}

const (
	maxOpen    = 4096 // open spans that are remembered
	maxGuessed = 4096 // bytes of a name that is guessed: its text is held once more
)

// newLayout looks at the layout just learnt.
func (g *guesser) newLayout(steps []step) {
	g.on, g.sf = false, len(steps) == 5
	g.layout++
	g.timed = g.timed[:0]
	if len(steps) != 4 && !g.sf {
		return
	}
	is := func(i int, k key, kind byte) bool { return steps[i].key == k && steps[i].kind == kind }
	g.on = is(0, keyName, '"') && is(1, keyPhase, '"') && is(2, keyTS, '0') && (!g.sf || is(3, keySF, '0'))
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
	names := [3]int32{callees[0], callees[1], caller}
	if r.lastEnd == 1 {
		names = [3]int32{caller, callees[0], callees[1]}
	}
	for _, name := range names {
		x := &g.names[name]
		if x.layout != g.layout || len(b) < len(x.begin) || string(b[:len(x.begin)]) != string(x.begin) {
			continue
		}
		at := len(x.begin) + 1
		if len(b) < at+len(g.middle)+len(x.end) {
			return 0
		}
		phase := b[at-1]
		if phase == '"' || phase == '\\' || string(b[at:at+len(g.middle)]) != string(g.middle) {
			return 0
		}
		end := at + len(g.middle)
		ev.SF = nil
		if g.sf {
			if string(b[end:end+len(x.end)]) != string(x.end) {
				return 0
			}
			ev.SF = b[end : end+len(x.end)-len(r.layout.steps[4].lit)]
			end += len(x.end)
		}
		steps := r.layout.steps
		ev.Raw = b[:end]
		ev.Phase = phase
		ev.Name, ev.NameID = b[len(steps[0].lit):at-1-len(steps[1].lit)], name
		ev.Cat = r.layoutCat
		from := at + len(steps[2].lit)
		ev.TS = g.time
		ev.TS.Text = b[from : from+len(g.timed)]
		ev.Dur, ev.ID, ev.Args = Time{}, nil, nil
		ev.PID, ev.TID = r.layoutPID, r.layoutTID
		if r.lastThread != r.layoutThread {
			r.switchThread(r.layoutPID, r.layoutTID)
		}
		ev.Thread = r.lastThread
		r.lastName = name
		r.plain = r.layoutPlain && r.known[name].text && !isOdd(phase)
		return end
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
		g.middle = append(g.middle[:0], steps[2].lit...)
		g.middle = append(g.middle, g.timed...)
		g.middle = append(g.middle, steps[3].lit...)
	}
	x := &g.names[ev.NameID]
	if !x.met || len(r.names.raw[ev.NameID]) > maxGuessed {
		x.met = true
		return
	}
	if x.layout != g.layout {
		x.layout = g.layout
		x.begin = append(x.begin[:0], steps[0].lit...)
		x.begin = append(x.begin, r.names.raw[ev.NameID]...)
		x.begin = append(x.begin, steps[1].lit...)
	}
	if g.sf {
		x.end = append(x.end[:0], ev.SF...)
		x.end = append(x.end, steps[4].lit...)
	}
}
