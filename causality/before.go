package causality

// A before finds out until when activities were open that began before the ids of a process were on, as where
// a recorder attaches to it. From then on the runtime gives each start that it follows an id, and the ids of an
// event are those of its execution context: one from before has none, whatever it works for. So has the stop
// of an activity from before, and no other.
type before struct {
	ids   bool // a start had one
	kinds map[[2]string]beforeKind
}

// A beforeKind is the activities of a name and a provider.
type beforeKind struct {
	stop      int64 // time of the last stop without an id
	followed  bool  // a start had an id
	untracked bool  // a start had none when others had: the source tells the runtime not to follow them
}

// take takes a start or a stop.
func (b *before) take(e *Event) {
	id := !e.ID.IsZero()
	if e.Runtime || id && e.Kind == Stop {
		return
	}
	key := [2]string{e.Provider, e.Name}
	k, ok := b.kinds[key]
	was := k
	switch {
	case e.Kind == Stop:
		k.stop = e.Time
	case id:
		b.ids, k.followed = true, true
	case b.ids:
		k.untracked = true
	}
	if k == was || !ok && len(b.kinds) == maxKinds {
		return
	}
	if b.kinds == nil {
		b.kinds = map[[2]string]beforeKind{}
	}
	b.kinds[key] = k
}

// end returns when the last of them ended that is known, 0 if none is.
func (b *before) end() (end int64) {
	for _, k := range b.kinds {
		if k.followed && !k.untracked {
			end = max(end, k.stop)
		}
	}
	return end
}
