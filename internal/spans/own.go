package spans

import (
	"encoding/json"
	"math"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
)

// tracefix's own Chromium output has no synthetic roots and no leaf that says what a
// thread did. The thread_name event of each thread tells instead what its spans are:
//
//	"args":{"name":"Main","tracefix":{"holds":"samples","limit":100,"type":"external"}}
//	"args":{"name":"HTTP","tracefix":{"holds":"track"}}
//
// Of stacks that were cut at another place than a limit it tells the number ("cut") and which
// they are ("cuts", see toldCuts). Where the recorder did not tell managed code from the rest, it
// says so ("untyped"), and when the thread waited for locks ("locked", see readLocked).
//
// limit is the number of frames at which the recorder cut stacks, absent if it did
// not cut by depth; type is that of all samples of the thread, absent if they differ.
// The category of a frame is its module.

// holding says what the spans of a thread of tracefix's own output are.
type holding uint8

const (
	holdsUnknown holding = iota // not tracefix's own output
	holdsSamples
	holdsTrack // things in time that are no stacks
)

// An ownThread is what the name event of a thread of tracefix's own output says.
type ownThread struct {
	holds holding
	limit int
	typ   profile.SampleType
	typed bool
	cuts  toldCuts
}

// holds says what the spans of a thread are by chromium.Event.Thread.
func (t *frameTable) holds(thread int32) holding {
	if int(thread) < len(t.owns) {
		return t.owns[thread].holds
	}
	return holdsUnknown
}

// own returns what is known of a thread by chromium.Event.Thread.
func (t *frameTable) own(thread int32) ownThread {
	if int(thread) < len(t.owns) {
		return t.owns[thread]
	}
	return ownThread{}
}

// mark takes in args.tracefix of a thread's name event. Spans that came before it
// were taken for those of somebody else, and so are those behind it then.
func (d *reading) mark(thread int32, text json.RawMessage) {
	if int(thread) < len(d.lanes) && d.lanes[thread] != nil || int(thread) < len(d.slices) && d.slices[thread] != nil {
		return
	}
	var args struct {
		Holds string  `json:"holds"`
		Limit int     `json:"limit"`
		Cut   int     `json:"cut"`
		Cuts  []int64 `json:"cuts"`
		Type  string  `json:"type"`

		Untyped bool    `json:"untyped"`
		Locked  []int64 `json:"locked"`
	}
	if json.Unmarshal(text, &args) != nil {
		return
	}
	o := ownThread{limit: max(0, args.Limit)}
	switch args.Holds {
	case "samples":
		o.holds = holdsSamples
	case "track":
		o.holds = holdsTrack
	default:
		return
	}
	for _, s := range []profile.SampleType{profile.SampleManaged, profile.SampleExternal, profile.SampleCPU, profile.SampleError} {
		if args.Type == s.String() {
			o.typ, o.typed = s, true
		}
	}
	if o.holds == holdsSamples && args.Untyped {
		d.untyped = true
		if locked := readLocked(args.Locked); locked != nil {
			if d.locked == nil {
				d.locked = map[int32][]profile.Interval{}
			}
			d.locked[thread] = locked
		}
		if !o.typed { // the few that were called managed are so by their stacks, too
			o.typ, o.typed = profile.SampleExternal, true
		}
	}
	if o.holds == holdsSamples {
		if o.cuts = readCuts(args.Cuts); o.cuts == nil {
			d.Facts.CutUntold += min(max(0, args.Cut), math.MaxInt32)
		}
	}
	for int(thread) >= len(d.table.owns) {
		d.table.owns = append(d.table.owns, ownThread{})
	}
	d.table.owns[thread] = o
	if o.holds == holdsSamples && d.opts.MaxDepth == 0 {
		d.limit = o.limit
	}
}

// readLocked reads when a thread waited for locks: two numbers for each wait, ns from the end of the one
// before and ns that it lasts. It returns nil if they are not what tracefix writes.
func readLocked(list []int64) []profile.Interval {
	if len(list)%2 != 0 {
		return nil
	}
	var locked []profile.Interval
	for at := int64(0); len(list) > 0; list = list[2:] {
		gap, length := list[0], list[1]
		if gap < 0 || length <= 0 || gap > math.MaxInt64-at || length > math.MaxInt64-at-gap {
			return nil
		}
		locked = append(locked, profile.Interval{From: at + gap, To: at + gap + length})
		at += gap + length
	}
	return locked
}

// ownMethod is the method of a frame of tracefix's own output.
func ownMethod(name, cat string) (profile.Method, kind) {
	m := profile.Method{Name: name}
	switch cat {
	case "managed":
	case "native":
		m.Kind = profile.Native
	case "kernel":
		m.Kind = profile.Kernel
	case "unresolved":
		m.Kind = profile.Unresolved
	case "tracefix":
		switch name {
		case profile.Bridge:
			m.Kind = profile.Synthetic
			return m, kindBridge
		case profile.OffCPU:
			m.Kind = profile.Synthetic
			return m, kindMarker
		}
		m.Module = cat
	default:
		m.Module = cat
		m.Kind = profile.KindOf(m)
	}
	return m, kindCode
}

// ownID returns the frame of a begin or end event of tracefix's own output: one for
// each name and module.
func (t *frameTable) ownID(b *brief) profile.FrameID {
	for int(b.name) >= len(t.byOwn) {
		t.byOwn = append(t.byOwn, make([]int32, 64+len(t.byOwn))...)
	}
	f := t.byOwn[b.name]
	if f == 0 {
		t.byOwn[b.name] = 1 + t.addOwn(b)
		return profile.FrameID(t.byOwn[b.name] - 1)
	}
	cat := unmarked(b.cat)
	if t.frames[f-1].cat == string(cat) {
		return profile.FrameID(f - 1)
	}
	k := frameKey{b.name, "cat " + string(cat)} // no sf begins so
	f, ok := t.other[k]
	if !ok {
		f = t.addOwn(b)
		t.other[k] = f
	}
	return profile.FrameID(f)
}

func (t *frameTable) addOwn(b *brief) int32 {
	name := ""
	if b.name != 0 {
		name = t.r.Name(b.name)
	}
	cat := unmarked(b.cat)
	m, k := ownMethod(name, chromium.Unquote(cat))
	t.table.AddFrame(profile.Frame{Method: t.table.AddMethod(m)})
	t.frames = append(t.frames, frame{name: b.name, kind: k, cat: string(cat)})
	return int32(len(t.frames) - 1)
}

// ownStep takes a begin or end of frame f to a lane of tracefix's own output. What is
// open for a while is a sample there, also if begins lead to it from a caller, or
// ends alone.
func (d *reading) ownStep(l *lane, phase byte, f profile.FrameID, name int32, ns int64, same, near bool, start int64) {
	t := d.table.table
	if l.seen && l.heldOwn(phase, ns) {
		d.sample(l, ns, l.cur == 0)
		l.tied = 0
		if lasts(l.began, ns) {
			l.tied = l.depth(t) // unless a begin behind ends tells more
		}
		l.start, l.low, l.from = start, l.depth(t), state{cur: l.cur}
		l.tie.reset()
	}
	if phase == 'B' {
		if !l.begun {
			l.firstBegin(d.table, f, same)
		}
		l.cur = t.Push(l.cur, f)
		l.deepest = max(l.deepest, l.depth(t))
		l.begun = true
	} else {
		d.endStep(l, f, name, false, near, start)
		l.begun = false
	}
	l.began, l.last, l.seen = ns, start, true
}

// heldOwn reports whether what is open in l was open for a while before an event at
// ns: whether a sample, or with nothing open a transition, ends there.
func (l *lane) heldOwn(phase byte, ns int64) bool {
	if l.begun {
		// A begin and its end at one time are a sample that does not last.
		return phase == 'E' || ns > l.began
	}
	// Where a frame closes and opens at one time, it may close a nanosecond early.
	return ns > l.began+1
}
