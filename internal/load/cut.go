package load

import (
	"cmp"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// markCuts decides for every sample whether its stack is cut, and puts samples that
// came late into order. It runs when all frames have names.
func (l *loader) markCuts() {
	late := map[*profile.Thread]*thread{}
	for _, p := range l.order {
		for _, t := range p.threads {
			if t.late {
				late[t.trace] = t
			}
		}
	}
	for _, t := range l.profile.Threads {
		if lt := late[t]; lt != nil {
			lt.sort(l.spool)
		}
	}
	if l.weigh != nil {
		l.weigh.finish(l.order)
	}
	l.bridged = l.table.Bridged()
	if l.info.Header.Version < 6 {
		l.markDepthCuts()
		return
	}
	mark := l.copyCuts()
	l.profile.Meta.Repaired = l.info.Header.KeyValue(repairedKey) != ""
	for _, t := range l.profile.Threads {
		t.Samples.Change(func(s *profile.Sample) bool {
			old := *s
			*s = mark(old)
			return *s != old
		})
	}
}

// sort puts the samples of t into the order of time.
func (t *thread) sort(spool *profile.Spool) {
	type sample struct {
		profile.Sample
		at int32
	}
	t.trace.Walks = profile.Walks{}
	var all []sample
	for i, s := range t.trace.Samples.All() {
		all = append(all, sample{s, int32(i)})
	}
	text.SortRows(all, func(a, b *sample) int { return cmp.Compare(a.Time, b.Time) })
	t.perm = make([]int32, len(all))
	out := profile.SamplesIn(spool)
	for i, s := range all {
		t.perm[s.at] = int32(i)
		out.Append(s.Sample)
	}
	t.trace.Samples = out
	t.trace.Tasks = profile.TaskMarks{} // they nest in the order in which they were written only
}

// holdsBridge reports whether an earlier repair could not know all of s.
func (l *loader) holdsBridge(s profile.StackID) bool { return l.bridged != nil && l.bridged[s] }

// A rootPair is the outermost two methods of a stack. The callee is noMethod where
// there is one frame only.
type rootPair struct{ caller, callee profile.MethodID }

const noMethod = ^profile.MethodID(0)

// outermost returns the outermost two methods of s.
func outermost(tab *profile.Table, s profile.StackID) rootPair {
	p := rootPair{noMethod, noMethod}
	for ; s != 0; s = tab.Parent(s) {
		if up := tab.Parent(s); up == 0 {
			p.caller = tab.Method(tab.Frame(s))
		} else if tab.Parent(up) == 0 {
			p.callee = tab.Method(tab.Frame(s))
		}
	}
	return p
}

// roots tells where the threads of a trace begin, and who is called by whom.
type roots struct {
	tab     *profile.Table
	limit   int
	deepest int
	// methods and pairs in which stacks begin that are not as deep as the limit
	methods map[profile.MethodID]bool
	pairs   map[rootPair]bool
	called  []bool // by method: somebody is seen to call it
	calls   map[rootPair]bool
}

// findRoots looks at the stacks of samples. Those limit deep, or as deep as any, may be
// cut and say nothing.
func (l *loader) findRoots(limit, deepest int, stacks []profile.StackID) *roots {
	r := &roots{tab: l.table, limit: limit, deepest: deepest, methods: map[profile.MethodID]bool{}, pairs: map[rootPair]bool{}, calls: map[rootPair]bool{}}
	for _, s := range stacks {
		if d := r.tab.Depth(s); d > 0 && !r.suspicious(d) && !l.holdsBridge(s) {
			p := outermost(r.tab, s)
			r.methods[p.caller] = true
			r.pairs[p] = true
		}
	}
	r.called = make([]bool, r.tab.Methods())
	for id := 1; id < r.tab.Stacks(); id++ {
		s := profile.StackID(id)
		up := r.tab.Parent(s)
		if up == 0 {
			continue
		}
		r.called[r.tab.Method(r.tab.Frame(s))] = true
		if r.tab.Parent(up) != 0 {
			if p := (rootPair{r.tab.Method(r.tab.Frame(up)), r.tab.Method(r.tab.Frame(s))}); r.methods[p.caller] {
				r.calls[p] = true
			}
		}
	}
	return r
}

// suspicious reports whether stacks of this depth may be cut.
func (r *roots) suspicious(depth int) bool {
	return depth == r.limit || depth == r.deepest && (depth > r.limit || r.limit == 0)
}

// begins reports whether s begins where a thread begins: in a method in which other
// stacks begin and which nobody is seen to call. A method that is called, too, such as
// ExecutionContext.RunInternal, proves it only together with its callee.
func (r *roots) begins(s profile.StackID) bool {
	p := outermost(r.tab, s)
	if r.methods[p.caller] && !r.called[p.caller] || r.pairs[p] && !r.calls[p] {
		return true
	}
	// Beyond the runtime's limit stacks are deep by nature, or repaired.
	return r.deepest > r.limit && r.limit > 0 && r.pairs[p]
}

// shallowLimit finds a limit below the runtime's own: that of a trace cut by a tool.
// Many stacks are as deep as any then, and begin in methods that are called elsewhere.
func (l *loader) shallowLimit(deepest int, stacks []profile.StackID) int {
	if deepest < 4 {
		return 0
	}
	r := l.findRoots(0, deepest, stacks)
	begin := map[profile.MethodID]bool{}
	cuts := map[profile.StackID]bool{}
	for _, s := range stacks {
		if r.tab.Depth(s) != r.deepest {
			continue
		}
		if m := outermost(r.tab, s).caller; r.called[m] && !r.begins(s) {
			begin[m] = true
			cuts[s] = true
		}
	}
	if len(begin) < 3 {
		return 0
	}
	all, cut := 0, 0
	for _, t := range l.profile.Threads {
		for _, s := range t.Samples.All() {
			if s.Type == profile.SampleEvent || r.tab.Depth(s.Stack) != r.deepest {
				continue
			}
			all++
			if cuts[s.Stack] {
				cut++
			}
		}
	}
	if cut >= 10 && cut*2 >= all {
		return r.deepest
	}
	return 0
}

// markDepthCuts finds and marks the stacks that EventPipe cut: exactly as deep as the
// limit, and not beginning where a thread begins. In a trace with deeper stacks, those as
// deep as any are held against the same rule: its runtime may have another limit.
func (l *loader) markDepthCuts() {
	stacks := l.sampled
	limit, deepest := l.o.DepthLimit, 0
	for _, p := range l.order {
		for _, t := range p.threads {
			deepest = max(deepest, t.deepest)
		}
	}
	if limit == 0 {
		limit = defaultLimit
		if deepest < limit {
			if found := l.shallowLimit(deepest, stacks); found > 0 {
				limit = found
			}
		}
	}
	l.profile.Meta.DepthLimit = limit
	if deepest < limit && l.bridged == nil {
		return
	}
	r := l.findRoots(limit, deepest, stacks)
	if l.o.DepthLimit > 0 {
		r.deepest = limit // deeper ones are whole: the user says so
	}
	var cut []bool // by stack
	repaired := r.deepest > limit
	for _, s := range stacks {
		bridged, d := l.holdsBridge(s), r.tab.Depth(s)
		if bridged || r.suspicious(d) && !r.begins(s) {
			if cut == nil {
				cut = make([]bool, r.tab.Stacks())
			}
			cut[s] = true
			repaired = repaired && (bridged || d != r.deepest)
		}
	}
	if r.deepest > limit {
		l.profile.Meta.Repaired = repaired
	}
	if cut == nil {
		return
	}
	var deep []*profile.Thread
	for _, p := range l.order {
		for _, t := range p.threads {
			if t.deepest >= limit || l.bridged != nil {
				deep = append(deep, t.trace)
			}
		}
	}
	relay.Each(len(deep), func(i int) { markDepth(deep[i], cut) })
}

// markDepth marks the samples of t whose stack is one of cut.
func markDepth(t *profile.Thread, cut []bool) {
	t.Samples.Change(func(s *profile.Sample) bool {
		if !cut[s.Stack] {
			return false
		}
		s.Cut = profile.CutDepth
		return true
	})
}

// copyCuts finds the stacks that collect-linux cut at the end of its copy of the
// stack, and takes words off their root end that can be no code (nettrace.md 12.3).
func (l *loader) copyCuts() func(profile.Sample) profile.Sample {
	type verdict struct {
		stack   profile.StackID
		cut     profile.Cut
		suspect uint8
	}
	var fs []profile.FrameID
	known := map[profile.StackID]verdict{}
	judge := func(id profile.StackID) verdict {
		if l.holdsBridge(id) {
			return verdict{stack: id, cut: profile.CutBytes}
		}
		fs = l.table.AppendFrames(fs[:0], id)
		garbage := 0
		for garbage < len(fs) && l.classes[fs[garbage]]&Garbage != 0 {
			garbage++
		}
		v := verdict{stack: id, cut: cutOf(l.classes, fs[garbage:])}
		if l.o.Rules == Reference {
			return v
		}
		if v.cut == profile.CutBytes {
			// The outermost two of the frames as recorded cannot be trusted.
			v.suspect = uint8(max(0, 2-garbage))
		}
		if garbage > 0 {
			v.stack = 0
			for _, f := range fs[garbage:] {
				v.stack = l.table.Push(v.stack, f)
			}
		}
		return v
	}
	return func(s profile.Sample) profile.Sample {
		if s.Type == profile.SampleEvent && s.Stack == 0 {
			return s // it has no stack that could be cut
		}
		v, ok := known[s.Stack]
		if !ok {
			v = judge(s.Stack)
			known[s.Stack] = v
		}
		s.Stack, s.Cut, s.Suspect = v.stack, v.cut, v.suspect
		return s
	}
}

// minCopied is the depth from which a stack without a thread root counts as cut at the
// end of the copy and not as broken.
const minCopied = 8

// cutOf judges a stack, root first and without garbage.
func cutOf(classes []Class, fs []profile.FrameID) profile.Cut {
	if len(fs) == 0 {
		return profile.CutBroken
	}
	outer := classes[fs[0]]
	switch {
	case outer&Root != 0:
		return profile.Whole
	case outer&InKernel != 0:
		// Kernel frames only: the user part is missing.
		return profile.CutBroken
	case len(fs) >= minCopied || outer&JIT != 0:
		return profile.CutBytes
	}
	return profile.CutBroken
}
