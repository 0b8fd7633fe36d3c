package load

import (
	"slices"

	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/internal/trace"
)

// markCuts decides for every sample whether its stack is cut, and puts samples that
// came late into order. It runs when all frames have names.
func (l *loader) markCuts() {
	var mark func(trace.Sample) trace.Sample
	if l.info.Header.Version >= 6 {
		mark = l.copyCuts()
	} else {
		mark = l.depthCuts()
	}
	late := map[*trace.Thread]bool{}
	for _, p := range l.order {
		for _, t := range p.threads {
			if t.late {
				late[t.trace] = true
			}
		}
	}
	for _, t := range l.profile.Threads {
		if mark == nil && !late[t] {
			continue
		}
		if mark == nil {
			mark = func(s trace.Sample) trace.Sample { return s }
		}
		var out trace.Samples
		if late[t] {
			var all []trace.Sample
			for _, s := range t.Samples.All() {
				all = append(all, s)
			}
			slices.SortStableFunc(all, func(a, b trace.Sample) int {
				switch {
				case a.Time < b.Time:
					return -1
				case a.Time > b.Time:
					return 1
				}
				return 0
			})
			for _, s := range all {
				out.Append(mark(s))
			}
		} else {
			for _, s := range t.Samples.All() {
				out.Append(mark(s))
			}
		}
		t.Samples = out
	}
}

// depthCuts finds the stacks that EventPipe cut: exactly as deep as the limit, and not
// beginning where a thread begins. A thread begins in a method in which shorter stacks
// begin and which nobody is ever seen to call. A method that is called, too, such as
// ExecutionContext.RunInternal, proves it only together with its callee.
func (l *loader) depthCuts() func(trace.Sample) trace.Sample {
	limit := l.limit()
	if limit == 0 {
		return nil
	}
	tab := l.table
	type pair struct{ caller, callee trace.MethodID }
	called := make([]bool, tab.Methods())
	calledPair := map[pair]bool{}
	roots := map[trace.MethodID]bool{}
	rootPairs := map[pair]bool{}
	outer := func(s trace.StackID) pair { // the two outermost methods
		p := pair{callee: ^trace.MethodID(0)}
		for ; s != 0; s = tab.Parent(s) {
			if up := tab.Parent(s); up == 0 {
				p.caller = tab.Method(tab.Frame(s))
			} else if tab.Parent(up) == 0 {
				p.callee = tab.Method(tab.Frame(s))
			}
		}
		return p
	}
	any := false
	short := map[trace.StackID]bool{}
	for _, t := range l.profile.Threads {
		for _, s := range t.Samples.All() {
			switch d := tab.Depth(s.Stack); {
			case d == limit:
				any = true
			case d < limit && d > 0 && !short[s.Stack]:
				short[s.Stack] = true
				p := outer(s.Stack)
				roots[p.caller] = true
				rootPairs[p] = true
			}
		}
	}
	if !any {
		return nil
	}
	for id := 1; id < tab.Stacks(); id++ {
		s := trace.StackID(id)
		up := tab.Parent(s)
		if up == 0 {
			continue
		}
		called[tab.Method(tab.Frame(s))] = true
		if tab.Parent(up) != 0 {
			p := pair{tab.Method(tab.Frame(up)), tab.Method(tab.Frame(s))}
			if roots[p.caller] {
				calledPair[p] = true
			}
		}
	}
	known := map[trace.StackID]trace.Cut{}
	return func(s trace.Sample) trace.Sample {
		if tab.Depth(s.Stack) != limit {
			return s
		}
		c, ok := known[s.Stack]
		if !ok {
			c = trace.CutDepth
			p := outer(s.Stack)
			if roots[p.caller] && !called[p.caller] || rootPairs[p] && !calledPair[p] {
				c = trace.Whole
			}
			known[s.Stack] = c
		}
		s.Cut = c
		return s
	}
}

// copyCuts finds the stacks that collect-linux cut at the end of its copy of the
// stack, and takes words off their root end that can be no code (nettrace.md 12.3).
func (l *loader) copyCuts() func(trace.Sample) trace.Sample {
	type verdict struct {
		stack   trace.StackID
		cut     trace.Cut
		suspect uint8
	}
	var fs []trace.FrameID
	known := map[trace.StackID]verdict{}
	judge := func(id trace.StackID) verdict {
		fs = l.table.AppendFrames(fs[:0], id)
		garbage := 0
		for garbage < len(fs) && l.classes[fs[garbage]]&symbol.Garbage != 0 {
			garbage++
		}
		v := verdict{stack: id, cut: cutOf(l.classes, fs[garbage:])}
		if l.o.Rules == symbol.Reference {
			return v
		}
		if v.cut == trace.CutBytes {
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
	return func(s trace.Sample) trace.Sample {
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
func cutOf(classes []symbol.Class, fs []trace.FrameID) trace.Cut {
	if len(fs) == 0 {
		return trace.CutBroken
	}
	outer := classes[fs[0]]
	switch {
	case outer&symbol.Root != 0:
		return trace.Whole
	case outer&symbol.InKernel != 0:
		// Kernel frames only: the user part is missing.
		return trace.CutBroken
	case len(fs) >= minCopied || outer&symbol.JIT != 0:
		return trace.CutBytes
	}
	return trace.CutBroken
}
