package causality

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// An elimination finds out what an async method that goes on works for where no event tells: the
// only activity that was open of those that it works for, and that no other thread was seen to
// run for. Whether that holds it learns from the trace: of each stretch of the method that events
// do tell it asks what it would have said.
type elimination struct {
	kinds   map[kindKey]*kind
	late    [64]*kind // by the lengths of their names
	methods map[methodKey]*methodUse
	meant   []meant // room, as the others
	parts   []part
	times   []part
}

type kindKey struct {
	process               uint32
	provider, name, route string
}

// A kind is the activities of one name, and of requests of one route where they lie in requests.
type kind struct {
	key     kindKey
	open    []*Activity
	more    int         // that are open, beside maxOpen
	ended   []*Activity // of late, in the order of their ends
	longest int64       // ns
}

type methodKey struct {
	process, method uint32
}

// A methodUse is what is known of what an async method works for.
type methodUse struct {
	kinds        []*kind
	crowded      bool // it works for more than maxUses
	right, wrong int  // of what would have been said
}

const (
	maxKinds   = 1 << 12
	maxUses    = 32         // kinds of a method
	maxOpen    = 64         // of a kind: with more, none is alone
	maxEnded   = 1 << 9     // of a kind that are looked at
	maxMeant   = 8          // among which one is looked for
	maxAway    = 16         // times in which one was seen to run
	maxTimes   = 1 << 7     // in which all others were
	maxThreads = 1 << 7     // with more, what they do just now is not looked at
	recent     = int64(1e9) // ns for which those that ended are known
	near       = int64(2e5) // ns: samples of one round are no farther apart

	leastRight   = 20  // answers that would have been right, from which on one is given
	rightToWrong = 100 // of them to one that would not
)

// start takes an activity that begins.
func (x *elimination) start(a *Activity, route string) {
	if a.Runtime {
		return
	}
	for up := a.Parent; up != nil && route == ""; up = up.Parent {
		if up.kind != nil {
			route = up.kind.key.route
			break
		}
	}
	k := x.kind(kindKey{a.Process, a.Provider, a.Name, route})
	if k == nil {
		return
	}
	if a.kind = k; len(k.open) == maxOpen {
		k.more++
		return
	}
	k.open = append(k.open, a)
}

// kind returns the kind of a key, nil if there are too many.
func (x *elimination) kind(key kindKey) *kind {
	late := &x.late[(len(key.provider)+3*len(key.name)+7*len(key.route))%len(x.late)]
	if k := *late; k != nil && k.key == key {
		return k
	}
	k := x.kinds[key]
	if k == nil {
		if len(x.kinds) == maxKinds {
			return nil
		}
		if x.kinds == nil {
			x.kinds, x.methods = map[kindKey]*kind{}, map[methodKey]*methodUse{}
		}
		k = &kind{key: key}
		x.kinds[key] = k
	}
	*late = k
	return k
}

// stop takes one of them that has ended.
func (k *kind) stop(a *Activity) {
	if i := slices.Index(k.open, a); i >= 0 {
		k.open = slices.Delete(k.open, i, i+1)
	} else {
		k.more--
	}
	k.longest = max(k.longest, a.Stop-a.Start)
	if n := len(k.ended); n == 4*maxEnded || n > 16 && k.ended[n/2].Stop < a.Stop-recent { // among looks at no more
		for _, old := range k.ended[:n/2] {
			old.ran = nil
		}
		k.ended = slices.Delete(k.ended, 0, n/2)
	}
	k.ended = append(k.ended, a)
	for i := len(k.ended) - 1; i > 0 && k.ended[i-1].Stop > a.Stop; i-- {
		k.ended[i-1], k.ended[i] = k.ended[i], k.ended[i-1]
	}
}

// A part is a time in which a flow can be that of one activity only.
type part struct {
	from, to int64
	activity *Activity
}

// A meant is activities that lie in each other, of which a flow may be one's.
type meant struct {
	outer, inner, whole *Activity // whole is the innermost one that was open all the time
	away                [maxAway]part
	n                   int // of away
}

// among returns what was open between from and to of the kinds that the method works for, and had
// begun when its flow was first seen: that changes no more without an event. ok is false if that is
// too much.
func (u *methodUse) among(list []meant, from, to, first int64) (_ []meant, ok bool) {
	take := func(a *Activity) {
		if a.Start >= to || a.Start > first {
			return
		}
		i := 0
		for ; i < len(list); i++ {
			m := &list[i]
			if a.Below(m.inner) {
				m.inner = a
				break
			}
			if m.outer.Below(a) {
				m.outer = a
				break
			}
			if m.inner.Below(a) && a.Below(m.outer) {
				break
			}
		}
		if i == len(list) {
			list = append(list, meant{outer: a, inner: a})
		}
		if m := &list[i]; a.Start <= from && (!a.Stopped || a.Stop >= to) && (m.whole == nil || a.Below(m.whole)) {
			m.whole = a
		}
	}
	for _, k := range u.kinds {
		if k.more > 0 || from < 2*k.longest { // one may have begun before the trace
			return list, false
		}
		for _, a := range k.open {
			if take(a); len(list) > maxMeant {
				return list, false
			}
		}
		n := len(k.ended)
		for i := n - 1; i >= 0 && k.ended[i].Stop > from; i-- {
			if take(k.ended[i]); n-i > maxEnded || len(list) > maxMeant {
				return list, false
			}
		}
	}
	return list, true
}

// says returns the times in which f, a flow of t that lasts from one time to another, can be that
// of one activity only: all of it, or where all others that may be meant are seen to run elsewhere.
func (g *Engine) says(u *methodUse, t *thread, f *flow, from, to int64) []part {
	x := &g.elimination
	list, ok := u.among(x.meant[:0], from, to, cmp.Or(f.first, to))
	x.meant, x.parts = list, x.parts[:0]
	switch {
	case !ok || len(list) == 0:
		return nil
	case len(list) == 1:
		if a := list[0].whole; a != nil {
			x.parts = append(x.parts, part{from, to, a})
		}
		return x.parts
	case f.first == 0:
		return nil
	}
	for i := range list {
		g.away(&list[i], t, f)
	}
	for i := range list {
		if m := &list[i]; m.whole != nil && m.n == 0 {
			x.only(list, i, part{f.first - near, f.last + near, m.whole})
		}
	}
	return x.parts
}

// only adds the times of p in which all but one of the list were away.
func (x *elimination) only(list []meant, i int, p part) {
	for k := range list {
		if m := &list[k]; k != i && m.n == 0 {
			return
		}
	}
	// The times of the first other one, cut by those of the rest.
	times := append(x.times[:0], p)
	for k := range list {
		if k == i {
			continue
		}
		m, n := &list[k], len(times)
		for _, v := range times[:n] {
			for _, w := range m.away[:m.n] {
				if from, to := max(v.from, w.from), min(v.to, w.to); from < to {
					times = append(times, part{from, to, p.activity})
				}
			}
			if len(times) > maxTimes {
				return
			}
		}
		times = append(times[:0], times[n:]...)
	}
	x.times = times
	x.parts = append(x.parts, times...)
}

// away notes when other threads than t were seen to run for m while f was seen.
func (g *Engine) away(m *meant, t *thread, f *flow) {
	add := func(o *flow) {
		if from, to := max(f.first, o.first)-near, min(f.last, o.last)+near; o.first != 0 && from < to && m.n < maxAway {
			m.away[m.n] = part{from: from, to: to}
			m.n++
		}
	}
	for a := m.inner; a != nil; a = a.Parent {
		for _, r := range a.ran {
			if r.thread != t {
				add(r.flow)
			}
		}
		if a == m.outer {
			break
		}
	}
	if len(g.order) > maxThreads {
		return
	}
	for _, o := range g.order {
		if o == t {
			continue
		}
		var last *flow
		i := len(o.pieces)
		for i > o.head && o.pieces[i-1].to > f.first-near { // ends are in order
			i--
		}
		for ; i < len(o.pieces) && o.pieces[i].from < f.last+near; i++ {
			if p := &o.pieces[i]; p.state == Running && p.flow.known && p.flow != last {
				last = p.flow
				if a := last.activity.servedAt(p.from); a != nil && a.Below(m.outer) {
					add(last)
				}
			}
		}
	}
}

// A run is work that a thread was seen to do.
type run struct {
	thread *thread
	flow   *flow
}

// note keeps that t was seen to work for a.
func (a *Activity) note(t *thread, f *flow) {
	if len(a.ran) == maxAway {
		a.ran = slices.Delete(a.ran, 0, maxAway/2)
	}
	a.ran = append(a.ran, run{t, f})
}

// sure reports whether what is said of the method may be believed.
func (u *methodUse) sure() bool {
	return !u.crowded && u.right >= leastRight && u.wrong*rightToWrong <= u.right
}

// learn takes a flow of t of which it is known what the method worked for in it; nil is nothing.
func (g *Engine) learn(t *thread, f *flow, m methodKey, a *Activity, from, to int64) {
	x := &g.elimination
	u := x.methods[m]
	if u == nil {
		if a == nil || len(x.methods) == maxKinds {
			return
		}
		u = &methodUse{}
		x.methods[m] = u
	}
	if parts := g.says(u, t, f, from, to); len(parts) > 0 {
		if slices.ContainsFunc(parts, func(p part) bool { return !a.Below(p.activity) }) {
			u.wrong++
		} else {
			u.right++
		}
	}
	if a == nil || a.kind == nil {
		return
	}
	switch {
	case slices.Contains(u.kinds, a.kind):
	case len(u.kinds) == maxUses:
		u.crowded = true
	default:
		u.kinds = append(u.kinds, a.kind)
	}
}

// asyncMethod returns the innermost async method of the work that a stack shows.
func (g *Engine) asyncMethod(s stacks.StackID) (method uint32, ok bool) {
	for s != 0 {
		up, f := g.o.Tree.Node(s)
		switch g.o.Role(f) {
		case Steps:
			return g.o.Method(f), true
		case Captured, Dispatch, ThreadTop:
			return 0, false
		}
		s = up
	}
	return 0, false
}

// eliminate learns from the flow of a piece of t that is to be handed out, the first of its flow,
// or finds out what the flow is, or parts of it: the piece may be cut. What is found out so is no
// evidence for others.
func (g *Engine) eliminate(t *thread, p *piece) {
	x, f := &g.elimination, p.flow
	if f.asked || f.root || p.state == Queued || p.point != nil || len(x.kinds) == 0 || p.from < g.now-recent || f.known && p.stack == 0 {
		return
	}
	f.asked = true
	if f.known {
		if m, ok := g.asyncMethod(p.stack); ok {
			g.learn(t, f, methodKey{t.key.process, m}, f.activity.servedAt(p.from), p.from, p.to)
		}
		return
	}
	u, to := g.use(t, f)
	if u == nil {
		return
	}
	switch parts := g.says(u, t, f, p.from, to); {
	case len(parts) == 0:
	case parts[0].from == p.from && parts[0].to == to:
		f.activity, f.known, f.noted = parts[0].activity, true, true
	default:
		for _, v := range parts {
			g.cut(t, f, v)
		}
	}
}

// use returns what is known of the first async method that the pieces of a flow show, and when the
// last of them ends; nil if one of their methods is not to be believed.
func (g *Engine) use(t *thread, f *flow) (u *methodUse, to int64) {
	for i := t.head; i < len(t.pieces); i++ {
		p := &t.pieces[i]
		if p.flow != f || p.state == Queued {
			continue
		}
		to = p.to
		m, ok := g.asyncMethod(p.stack)
		if !ok {
			continue
		}
		v := g.elimination.methods[methodKey{t.key.process, m}]
		if v == nil || !v.sure() {
			return nil, 0
		}
		if u == nil {
			u = v
		}
	}
	return u, to
}

// cut gives part of a flow of t that is not known to an activity.
func (g *Engine) cut(t *thread, f *flow, v part) {
	is := g.flows.add(flow{activity: v.activity, known: true, asked: true, noted: true})
	for i := t.head; i < len(t.pieces); i++ {
		p := &t.pieces[i]
		if p.flow != f || p.state == Queued || p.point != nil || p.to <= v.from || p.from >= v.to {
			continue
		}
		cut := [3]piece{*p, *p, *p}
		from, to := max(p.from, v.from), min(p.to, v.to)
		cut[0].to, cut[1].from, cut[1].to, cut[2].from = from, from, to, to
		cut[1].flow = is
		list := cut[:0]
		for _, c := range cut {
			if c.from < c.to {
				list = append(list, c)
			}
		}
		t.split(i, list)
		i += len(list) - 1
	}
}
