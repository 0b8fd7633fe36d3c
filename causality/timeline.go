package causality

// A timeline is a set of stretches of time, each with the time from which on it counts, in
// buckets. The zero value is empty.
type timeline struct {
	pages  map[int64]*page
	latest *page // that was asked for, of the number at
	at     int64
	found  []stretch // room for within
}

// A page is the buckets of a time, each in order of its beginnings.
type page [1 << pageBits][]stretch

type stretch struct{ from, to, born int64 }

const (
	bucket   = int64(1) << 24 // ns
	pageBits = 6              // buckets of a page
	crowded  = 1 << 7         // stretches of a bucket, from which on they are joined
	longSpan = 1 << 19        // buckets: more is damage
)

// bucket returns where a bucket is, nil if nothing is there and nothing is to be added.
func (l *timeline) bucket(n int64, add bool) *[]stretch {
	if at := n >> pageBits; at != l.at || add && l.latest == nil {
		p := l.pages[at]
		if p == nil && add {
			if l.pages == nil {
				l.pages = map[int64]*page{}
			}
			p = new(page)
			l.pages[at] = p
		}
		l.latest, l.at = p, at
	}
	if l.latest == nil {
		return nil
	}
	return &l.latest[n&(1<<pageBits-1)]
}

// drop forgets what lies before a time, as far as pages end before it.
func (l *timeline) drop(before int64) {
	first := before / bucket >> pageBits
	for at := range l.pages {
		if at < first {
			delete(l.pages, at)
		}
	}
	if l.at < first {
		l.latest = nil
	}
}

// add adds the time between from and to, which counts for who began before born.
func (l *timeline) add(from, to, born int64) {
	if to/bucket-from/bucket > longSpan {
		return
	}
	for from < to {
		b := from / bucket
		end := min(to, (b+1)*bucket)
		at := l.bucket(b, true)
		list := *at
		if n := len(list); n > 0 && list[n-1].to == from && list[n-1].born == born {
			list[n-1].to = end
		} else {
			list = append(list, stretch{from, end, born})
			for i := n; i > 0 && list[i].from < list[i-1].from; i-- { // they come about in order
				list[i], list[i-1] = list[i-1], list[i]
			}
			if len(list) >= crowded {
				list = join(list)
			}
		}
		*at = list
		from = end
	}
}

// within returns the stretches that overlap a span and count for who began at a time. They
// are in order and apart, and valid until the next call.
func (l *timeline) within(from, to, began int64) []stretch {
	if len(l.pages) == 0 {
		return nil
	}
	found := l.found[:0]
	for b := from / bucket; b <= to/bucket && b-from/bucket <= longSpan; b++ {
		at := l.bucket(b, false)
		if at == nil {
			b |= 1<<pageBits - 1 // the rest of the page
			continue
		}
		for _, s := range *at {
			if s.born >= began && s.to > from && s.from < to {
				found = append(found, s)
			}
		}
	}
	l.found = found
	return join(found)
}

// join makes overlapping stretches, which are in order of their beginnings, one, which counts for
// all of those for whom one of them did. It changes the list.
func join(list []stretch) []stretch {
	out := list[:0]
	for _, v := range list {
		if n := len(out); n > 0 && v.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, v.to)
			out[n-1].born = max(out[n-1].born, v.born)
			continue
		}
		out = append(out, v)
	}
	return out
}

// turns tell what of a time a thread that was ready to run had of a processor, by slots of
// about the time between samples. The zero value is empty.
type turns struct {
	buckets map[int64]*[slots]turn
	latest  *[slots]turn // that was asked for, of the time at
	at      int64
}

// turn is of one slot, ns; more than fit are as many as fit.
type turn struct {
	wanted uint32 // of all threads that ran or were ready to
	halted uint32 // nobody ran: the process was stopped, to be sampled most often
}

const (
	slotBits = 20
	slot     = int64(1) << slotBits // ns
	turnBits = 27
	slots    = 1 << turnBits / slot
	maxTurns = 1 << 14     // buckets: half an hour
	maxReady = int64(10e9) // ns: nobody is ready for longer and never seen
)

// drop forgets what was in buckets that end before a time.
func (t *turns) drop(before int64) {
	first := before >> turnBits
	for at := range t.buckets {
		if at < first {
			delete(t.buckets, at)
		}
	}
	if t.at < first {
		t.latest = nil
	}
}

// wanted notes that a thread ran or was ready to between from and to.
func (t *turns) wanted(from, to int64) {
	if to-from > maxReady {
		return
	}
	t.each(from, to, true, func(u *turn, ns int64) { u.wanted = uint32(min(int64(u.wanted)+ns, 1<<32-1)) })
}

// halted notes that nobody ran between from and to.
func (t *turns) halted(from, to int64) {
	if to-from > maxReady {
		return
	}
	t.each(from, to, true, func(u *turn, ns int64) { u.halted = uint32(min(int64(u.halted)+ns, slot)) })
}

// share returns for how long one of the threads that were ready between from and to ran: all
// of the time but halts, if there was a processor for each. Zero processors are enough.
func (t *turns) share(from, to int64, processors int) (ran int64) {
	if to-from > maxReady {
		return to - from
	}
	had := int64(processors) * slot
	t.each(from, to, false, func(u *turn, ns int64) {
		if u == nil {
			ran += ns
			return
		}
		if wanted := int64(u.wanted); had > 0 && wanted > had {
			ns = ns * had / wanted
		}
		ran += ns * (slot - int64(u.halted)) / slot
	})
	return ran
}

// bucket returns that of a time, nil if nothing is known of it and none is to be added.
func (t *turns) bucket(at int64, add bool) *[slots]turn {
	if t.latest != nil && t.at == at {
		return t.latest
	}
	b := t.buckets[at]
	if b == nil && add {
		if t.buckets == nil || len(t.buckets) >= maxTurns {
			t.buckets = map[int64]*[slots]turn{}
		}
		b = new([slots]turn)
		t.buckets[at] = b
	}
	t.latest, t.at = b, at
	return b
}

// each calls f with the slots between from and to and the time inside each; nil for one of
// which nothing is known. Slots of the past give way to new ones if there are too many.
func (t *turns) each(from, to int64, add bool, f func(u *turn, ns int64)) {
	for from < to {
		end := min(to, (from>>slotBits+1)<<slotBits)
		b := t.bucket(from>>turnBits, add)
		var u *turn
		if b != nil {
			u = &b[from>>slotBits&(slots-1)]
		}
		f(u, end-from)
		from = end
	}
}
