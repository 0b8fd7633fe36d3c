package causality

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tracefix/tracefix/activity"
)

// An Activity is what a start event began.
type Activity struct {
	ID         activity.ID
	Process    uint32
	Started    bool      // its start event is in the trace
	Stopped    bool      // its stop event is
	Runtime    bool      // of the runtime itself
	Call       bool      // a request to another side
	Parent     *Activity // nil: none that is known
	Provider   string
	Name       string
	Label      string    // what it is called where Name does not tell it from others, as no span's does
	Start      int64     // ns; only if Started
	Stop       int64     // ns; only if Stopped
	Number     int32     // for who uses an Engine; 0 at first
	unsuffixed bool      // its name has no suffix; see Event.Unsuffixed
	key        int64     // Event.Task of its start
	older      *Activity // the newest that was open and had its id, when it began: .NET 10 leaves out numbers
	alike      uint8     // how many of those there are
	inside     uint8     // it has the id of Parent, in which it was started, and so many have; 0: one of its own

	ran  []run // work for it that was seen of late
	kind *kind // of a started one
	work *work // of those that Explainer.Root chose
}

// outermost returns the activity that a is in, and none other: a itself if it is in none.
func (a *Activity) outermost() *Activity {
	for a != nil && a.Parent != nil {
		a = a.Parent
	}
	return a
}

// open reports whether a is running at a time.
func (a *Activity) openAt(t int64) bool {
	return (!a.Stopped || t < a.Stop) && (a.inside == 0 || a.Parent.openAt(t))
}

// at returns the innermost activity from a upwards that was running at a time and is not
// the runtime's own; nil if there is none.
func (a *Activity) at(t int64) *Activity {
	for a != nil && (a.Runtime || !a.openAt(t)) {
		a = a.Parent
	}
	return a
}

// servedAt returns what a thread in the flow of a worked for: what at returns, and behind
// the end of all of them still the innermost.
func (a *Activity) servedAt(t int64) *Activity {
	if live := a.at(t); live != nil {
		return live
	}
	for a != nil && a.Runtime {
		a = a.Parent
	}
	return a
}

// inCall reports whether a or an activity above it is a request to another side that was open at a time.
func (a *Activity) inCall(t int64) bool {
	for ; a != nil; a = a.Parent {
		if a.Call && a.openAt(t) {
			return true
		}
	}
	return false
}

// Below reports whether a is other or lies below it.
func (a *Activity) Below(other *Activity) bool {
	for ; a != nil; a = a.Parent {
		if a == other {
			return true
		}
	}
	return false
}

// An index finds the newest activity of an id. There are several look-ups for each event, most of
// them of memory that was not touched lately: a map takes three times as long. The zero value is empty.
type index struct {
	slots []indexSlot // a power of two; those behind a slot that is taken follow it
	n     int
}

type indexSlot struct {
	hash uint64
	a    *Activity
}

// indexSeed keeps ids of a file from meeting in one place on purpose.
var indexSeed = maphash.MakeSeed()

// slot returns the slot of an activity, or the free one where it belongs.
func (x *index) slot(process uint32, id *activity.ID, hash uint64) *indexSlot {
	for i := hash; ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if s.a == nil || s.hash == hash && s.a.ID == *id && s.a.Process == process {
			return s
		}
	}
}

func (x *index) find(process uint32, id *activity.ID) *Activity {
	if x.n == 0 {
		return nil
	}
	return x.slot(process, id, maphash.Bytes(indexSeed, id[:])).a
}

// add adds an activity, which takes the place of one with its id.
func (x *index) add(a *Activity) {
	if 2*x.n >= len(x.slots) {
		old := x.slots
		x.slots = make([]indexSlot, max(1<<8, 2*len(old)))
		for _, s := range old {
			if s.a != nil {
				*x.slot(s.a.Process, &s.a.ID, s.hash) = s
			}
		}
	}
	hash := maphash.Bytes(indexSeed, a.ID[:])
	s := x.slot(a.Process, &a.ID, hash)
	if s.a == nil {
		x.n++
	}
	*s = indexSlot{hash, a}
}

// activities finds activities by id.
type activities struct {
	byID   [2]index                  // of late, and of the time before that
	within map[*Activity][]*Activity // those with the id of one that are open, if they are few; see Activity.inside
	met    [2]*Activity              // found last and before that, which are looked for again most often
	since  int64                     // ns: when the newer one began
	ids    activity.Decoder
	begun  beginning // see begins
	keep   int64     // ns for which those stopped are known at least, while they are few
	enough int       // in the newer index: so many are no longer few
}

// newActivities returns what knows none yet.
func newActivities(keep int64) activities { return activities{keep: keep, enough: manyActivities} }

// manyActivities is how many may begin before those stopped until then are forgotten, however short a time
// that is: those of 10 s would be 300 MB where a program starts 100,000 a second.
const manyActivities = 1 << 17

// A beginning is what the ids of a start event tell.
type beginning struct {
	own, above       activity.Path // of its id, and of the related one
	hasOwn, hasAbove bool
	// in is the activity in which one starts that gets no id of its own, and shows that of its thread: the source has
	// ActivityOptions.Disable, the program chose a related id, or there are a hundred around it. It is nil
	// of all others. An id that lost a number is that of several.
	in *Activity
}

// begins finds out what the ids of a start event tell. It is valid until the next one.
func (as *activities) begins(e *Event) *beginning {
	x := &as.begun
	x.own, x.hasOwn = as.ids.Decode(e.ID)
	if x.hasAbove = false; !e.Related.IsZero() {
		x.above, x.hasAbove = as.ids.Decode(e.Related)
	}
	x.in = nil
	if !x.hasOwn || x.own.HasLost() || x.hasAbove && x.above.MayStart(&x.own) {
		return x // as nearly always: it is not looked for
	}
	if a := as.known(e.Process, &e.ID); a != nil && a.Started {
		x.in = a
	}
	return x
}

// maxWithin is how many activities without an id of their own are known of one that has it, and how
// many lie in each other. Most of those that are more were never stopped.
const maxWithin = 64

// start adds the activity that e, of which x is known, starts on a thread that works for now.
func (as *activities) start(e *Event, x *beginning, now *Activity) *Activity {
	if e.Time-as.since > as.keep || as.byID[0].n >= as.enough {
		as.forget(e.Time)
	}
	a := &Activity{
		ID: e.ID, Process: e.Process, Provider: e.Provider, Name: e.Name, Label: e.Label, Start: e.Time, Started: true, Runtime: e.Runtime, unsuffixed: e.Unsuffixed, key: e.Task,
	}
	if up := x.in; up != nil {
		if a.Parent = up.innermost(now, e.Time); a.Parent.inside == maxWithin {
			a.Parent = up
		}
		a.inside = a.Parent.inside + 1
		a.Call = e.Call && !(e.Span && a.Parent.inCall(e.Time))
		if l := as.within[up]; len(l) < maxWithin {
			if as.within == nil {
				as.within = map[*Activity][]*Activity{}
			}
			as.within[up] = append(l, a)
		}
		return a
	}
	if !e.Related.IsZero() && !(x.hasAbove && x.hasOwn && !x.above.MayStart(&x.own)) {
		var sure bool
		a.Parent, sure = as.meant(e, e.Related, now)
		// All of them are below the first one whose id is its own.
		for n := 0; !sure && a.Parent != nil; n++ {
			path, _ := as.ids.Decode(a.Parent.ID)
			if sure = !path.HasLost() || n == maxAlike; !sure {
				a.Parent = a.Parent.Parent
			}
		}
	}
	if a.Parent == nil {
		a.Parent = as.prefix(e.Process, e.ID)
	}
	a.Call = e.Call && !(e.Span && a.Parent.inCall(e.Time))
	if x.own.HasLost() {
		if old := as.known(e.Process, &e.ID).running(); old != nil && old.alike < maxAlike {
			a.older, a.alike = old, old.alike+1
		}
	}
	as.byID[0].add(a)
	as.meet(a) // before one of its id that was found
	return a
}

// forget drops those that were stopped before the newer index began.
func (as *activities) forget(now int64) {
	var open []*Activity
	room := as.byID[1].slots
	for _, s := range room {
		if a := s.a.running(); a != nil && as.byID[0].find(a.Process, &a.ID) == nil {
			open = append(open, a)
		}
	}
	if len(room) > 2*len(as.byID[0].slots) {
		room = nil
	}
	clear(room)
	as.byID[0], as.byID[1] = index{slots: room}, as.byID[0]
	as.since, as.met = now, [2]*Activity{}
	maps.DeleteFunc(as.within, func(a *Activity, l []*Activity) bool { return a.Stopped || len(l) == 0 })
	for _, a := range open {
		as.byID[0].add(a)
	}
	as.enough = 2*len(open) + manyActivities // those that never stop are not moved at each start
}

// known returns the newest activity of an id, nil if there is none.
func (as *activities) known(process uint32, id *activity.ID) *Activity {
	if a := as.byID[0].find(process, id); a != nil {
		return a
	}
	return as.byID[1].find(process, id)
}

// find returns the newest activity of an id, which it adds if the trace began inside.
func (as *activities) find(process uint32, id activity.ID) *Activity {
	if id.IsZero() {
		return nil
	}
	for _, a := range as.met {
		if a != nil && a.ID == id && a.Process == process {
			return a
		}
	}
	a := as.known(process, &id)
	if a == nil {
		a = &Activity{ID: id, Process: process}
		a.Parent = as.prefix(process, id)
		as.byID[0].add(a)
	}
	as.meet(a)
	return a
}

// meet notes that a is the newest of its id and was looked for.
func (as *activities) meet(a *Activity) { as.met = [2]*Activity{a, as.met[0]} }

// prefix returns the activity of the longest known path above that of id.
func (as *activities) prefix(process uint32, id activity.ID) *Activity {
	p, ok := as.ids.Decode(id)
	if !ok {
		return nil
	}
	for n := p.Len() - 1; n > 1; n-- {
		above := activity.NewPath(p.Numbers()[:n]...).WithProcess(p.Process())
		for _, enc := range [...]activity.Encoder{activity.EncoderNew, activity.EncoderOld} {
			if up, err := activity.Encode(above, enc); err == nil {
				if a := as.known(process, &up); a != nil {
					return a
				}
			}
		}
	}
	return nil
}

// maxAlike is how many activities of one id are known. The encoder of .NET 10 leaves out the numbers 11 to 255.
const maxAlike = 255

// running returns a, or the newest of those with its id that began before, that is not stopped.
func (a *Activity) running() *Activity {
	for a != nil && a.Stopped {
		a = a.older
	}
	return a
}

// meant returns the activity with an id that e tells on a thread that works for now. Of several that are
// open it is the one whose stop says so, else that which the thread is in, else the innermost if all
// others are around it. If it may be any of them it is the oldest, and sure is false.
func (as *activities) meant(e *Event, id activity.ID, now *Activity) (a *Activity, sure bool) {
	if a = as.find(e.Process, id); a == nil || a.older == nil {
		return a, true
	}
	var inner, oldest *Activity
	open := 0
	for x := a; x != nil; x = x.older {
		if !x.openAt(e.Time) {
			continue
		}
		if e.Kind == Stop && e.Task != 0 && e.Task == x.key {
			return x, true
		}
		if open++; inner == nil {
			inner = x
		}
		oldest = x
	}
	if in, _ := now.upTo(a, e.Time); in != nil {
		return in, true
	}
	if inner == nil {
		return a, true
	}
	if _, n := inner.upTo(a, e.Time); n == open {
		return inner, true
	}
	return oldest, false
}

// upTo returns the innermost open activity with the id of x from a upwards, and how many there are.
func (a *Activity) upTo(x *Activity, t int64) (in *Activity, n int) {
	for levels := 0; a != nil && levels < maxAlike; a, levels = a.Parent, levels+1 {
		if a.ID == x.ID && a.Process == x.Process && a.openAt(t) {
			if n++; in == nil {
				in = a
			}
		}
	}
	return in, n
}

// innermost returns the activity that a thread works for whose events have the id of a: now, if that is
// in a without an id of its own, else a.
func (a *Activity) innermost(now *Activity, t int64) *Activity {
	if now != nil && now.inside > 0 && now.ID == a.ID && now.Process == a.Process && now.openAt(t) {
		return now
	}
	return a
}

// stopped returns the activity that e stops: of those of its id the newest that is called so. It
// returns nil where e found none of its own, and carries the id of another one.
func (as *activities) stopped(e *Event, now *Activity) *Activity {
	a, _ := as.meant(e, e.ID, now)
	if a == nil || !a.Started {
		return a
	}
	for i, in := range slices.Backward(as.within[a]) {
		if in.isOf(e) {
			as.within[a] = slices.Delete(as.within[a], i, i+1)
			return in
		}
	}
	if a.isOf(e) {
		return a
	}
	return nil
}

// isOf reports whether e, which has the id of a, is a stop of what a is.
func (a *Activity) isOf(e *Event) bool {
	return a.Provider == e.Provider && (a.Name == e.Name || a.unsuffixed && e.Unsuffixed)
}

// stop ends an activity, and reports whether it had not ended yet.
func (a *Activity) stop(t int64) bool {
	if a.Stopped {
		return false
	}
	a.Stop, a.Stopped = t, true
	return true
}
