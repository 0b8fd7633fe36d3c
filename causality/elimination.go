package causality

import (
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// An elimination finds out what an async method that goes on works for where no event tells: the
// only activity that was open of those that it works for. Whether that holds it learns from the
// trace: of each stretch of the method that events tell it asks what it would have said.
type elimination struct {
	kinds   map[kindKey]*kind
	late    [64]*kind // by the lengths of their names
	methods map[methodKey]*methodUse
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
	maxKinds     = 1 << 12
	maxOpen      = 64 // of a kind: with more, none is alone
	maxUses      = 32
	maxEnded     = 1 << 9     // of a kind that are looked at
	recent       = int64(1e9) // ns for which those that ended are known
	leastRight   = 20         // that would have been right, from which on it is said
	rightToWrong = 100        // of them to one that would not
)

// start takes an activity that begins.
func (x *elimination) start(a *Activity, route string) {
	if a.Runtime {
		return
	}
	if a.route = route; route == "" && a.Parent != nil {
		a.route = a.Parent.route
	}
	k := x.kind(kindKey{a.Process, a.Provider, a.Name, a.route})
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
	if n := len(k.ended); n > 16 && k.ended[n/2].Stop < a.Stop-recent {
		k.ended = slices.Delete(k.ended, 0, n/2)
	}
	k.ended = append(k.ended, a)
	for i := len(k.ended) - 1; i > 0 && k.ended[i-1].Stop > a.Stop; i-- {
		k.ended[i-1], k.ended[i] = k.ended[i], k.ended[i-1]
	}
}

// alone returns the innermost activity that was open all the time between from and to, if
// those of the kinds that were open in it lie in each other.
func (u *methodUse) alone(from, to int64) *Activity {
	var outer, inner, found *Activity
	take := func(a *Activity) bool {
		switch {
		case a.Start >= to:
			return true
		case outer == nil:
			outer, inner = a, a
		case a.Below(inner):
			inner = a
		case outer.Below(a):
			outer = a
		case !(inner.Below(a) && a.Below(outer)):
			return false
		}
		if a.Start <= from && (!a.Stopped || a.Stop >= to) && (found == nil || a.Below(found)) {
			found = a
		}
		return true
	}
	for _, k := range u.kinds {
		if k.more > 0 || from < 2*k.longest { // one may have begun before the trace
			return nil
		}
		for _, a := range k.open {
			if !take(a) {
				return nil
			}
		}
		n := len(k.ended)
		for i := n - 1; i >= 0 && k.ended[i].Stop > from; i-- {
			if n-i > maxEnded || !take(k.ended[i]) {
				return nil
			}
		}
	}
	return found
}

// sure reports whether what alone says may be believed.
func (u *methodUse) sure() bool {
	return !u.crowded && u.right >= leastRight && u.wrong*rightToWrong <= u.right
}

// learn takes a stretch of time of a method, of which it is known what it worked for; nil is nothing.
func (x *elimination) learn(m methodKey, a *Activity, from, to int64) {
	u := x.methods[m]
	if u == nil {
		if a == nil || len(x.methods) == maxKinds {
			return
		}
		u = &methodUse{}
		x.methods[m] = u
	}
	if said := u.alone(from, to); said != nil {
		if a.Below(said) {
			u.right++
		} else {
			u.wrong++
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

// eliminate learns from the flow of a piece that is handed out, the first of its flow, or asks what it is.
func (g *Engine) eliminate(t *thread, p *piece) {
	x, f := &g.elimination, p.flow
	if f.asked || f.root || p.state == Queued || p.thrown != nil || len(x.kinds) == 0 || p.from < g.now-recent {
		return
	}
	if f.known {
		if p.stack != 0 {
			f.asked = true
			if m, ok := g.asyncMethod(p.stack); ok {
				x.learn(methodKey{t.key.process, m}, f.activity.servedAt(p.from), p.from, p.to)
			}
		}
		return
	}
	f.asked = true
	to := p.to
	rest := t.pieces[t.head:]
	for i := range rest {
		if q := &rest[i]; q.flow == f && q.state != Queued {
			to = max(to, q.to)
		}
	}
	var found *Activity
	for i := range rest {
		q := &rest[i]
		if q.flow != f || q.stack == 0 {
			continue
		}
		m, ok := g.asyncMethod(q.stack)
		if !ok {
			continue
		}
		u := x.methods[methodKey{t.key.process, m}]
		if u == nil || !u.sure() {
			return
		}
		a := u.alone(p.from, to)
		switch {
		case a == nil:
			return
		case found == nil || found.Below(a):
			found = a
		case !a.Below(found):
			return
		}
	}
	if found != nil {
		f.activity, f.known = found, true
	}
}
