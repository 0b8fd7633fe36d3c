package causality

import (
	"slices"

	"github.com/tracefix/tracefix/activity"
)

// A before finds out until when activities were open that began before the ids of a process were on, as where
// a recorder attaches to it. From then on the runtime gives each start that it follows an id, and the ids of an
// event are those of its execution context: one from before has none, whatever it works for, nor has its stop.
// A stop may lack an id also since it is written in another context than its start was, as that of a host is:
// then its start is one that no stop with an id ends.
type before struct {
	ids   bool // a start had one
	kinds map[[2]string]*beforeKind
}

// A beforeKind is the activities of a name and a provider.
type beforeKind struct {
	followed  bool // a start had an id
	untracked bool // a start had none when others had: the source tells the runtime not to follow them
	lost      bool // more than are kept
	open      map[activity.ID]opened
	begun     int     // of open, with those that share an id
	stops     []int64 // times of those without an id
}

// An opened is when an activity began, and others of its id: .NET 10 gives several one.
type opened struct {
	at   int64
	more []int64
}

// mostBefore is how many activities of a kind are kept that are open, and how many stops without an id.
const mostBefore = 1 << 12

// take takes a start or a stop.
func (b *before) take(e *Event) {
	if e.Runtime {
		return
	}
	key := [2]string{e.Provider, e.Name}
	k := b.kinds[key]
	if k == nil {
		if len(b.kinds) == maxKinds {
			return
		}
		if b.kinds == nil {
			b.kinds = map[[2]string]*beforeKind{}
		}
		k = &beforeKind{open: map[activity.ID]opened{}}
		b.kinds[key] = k
	}
	id := !e.ID.IsZero()
	switch {
	case e.Kind == Stop && id:
		o, ok := k.open[e.ID]
		switch {
		case len(o.more) > 0:
			k.open[e.ID] = opened{o.more[0], o.more[1:]}
		case ok:
			delete(k.open, e.ID)
		}
		if ok {
			k.begun--
		}
	case k.lost:
	case k.begun == mostBefore || len(k.stops) == mostBefore:
		k.lost, k.open, k.stops = true, nil, nil
	case e.Kind == Stop:
		k.stops = append(k.stops, e.Time)
	case id:
		b.ids, k.followed = true, true
		k.begun++
		o, ok := k.open[e.ID]
		if ok {
			o.more = append(o.more, e.Time)
		} else {
			o.at = e.Time
		}
		k.open[e.ID] = o
	case b.ids:
		k.untracked = true
	}
}

// end returns when the last of them ended that is known, 0 if none is.
func (b *before) end() (end int64) {
	for _, k := range b.kinds {
		if k.followed && !k.untracked && !k.lost {
			end = max(end, k.end())
		}
	}
	return end
}

// end returns the time of the last stop without an id that is of none of the starts that no stop with an id ends.
func (k *beforeKind) end() (end int64) {
	var starts []int64
	for _, o := range k.open {
		starts = append(append(starts, o.at), o.more...)
	}
	slices.Sort(starts)
	known := 0 // from before
	for i, at := range k.stops {
		begun, _ := slices.BinarySearch(starts, at)
		if n := i + 1 - begun; n > known {
			known, end = n, at
		}
	}
	return end
}
