package stackfix

import (
	"context"
	"iter"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Fix finds the missing frames of every cut sample. It adds stacks to the tree, the
// repaired ones and others, and changes nothing else. The result depends on nothing but
// the arguments. Processes are repaired apart: one is no evidence for another, and one
// in which nothing is cut costs no more than to read its samples.
func Fix(tree *stacks.Tree, frames Frames, threads []Thread, opts Options) Result {
	res, _ := FixContext(context.Background(), tree, frames, threads, opts) // it does not end
	return res
}

// FixContext is Fix that gives up when ctx ends: soon after that its error is returned, with no
// Result. What Options.Found took until then is not all there is, and stacks may have come to the
// tree.
func FixContext(ctx context.Context, tree *stacks.Tree, frames Frames, threads []Thread, opts Options) (Result, error) {
	ends := &stop{ctx: ctx}
	of := map[uint32][]int{}
	var processes []uint32
	for i := range threads {
		p := threads[i].Process
		if of[p] == nil {
			processes = append(processes, p)
		}
		of[p] = append(of[p], i)
	}
	res := Result{Repairs: make([][]Repair, len(threads))}
	if opts.Found == nil {
		opts.Found = func(thread int, repairs []Repair) { res.Repairs[thread] = append(res.Repairs[thread], repairs...) }
	}
	var s *solver
	for _, p := range processes {
		n, cut := look(ends, threads, of[p], opts.SamplesOnly)
		if ends.stopped() {
			break
		}
		if !cut {
			res.Stats.Samples += n
			continue
		}
		if s == nil {
			s = newSolver(tree, frames, opts)
			s.stop = ends
		}
		s.fix(threads, of[p], &res)
	}
	if ends.stopped() {
		return Result{}, ctx.Err()
	}
	return res, nil
}

// look tells whether a sample of these threads is cut whose repair is asked for; if none is, also how many
// there are.
func look(ends *stop, threads []Thread, which []int, samplesOnly bool) (n int, cut bool) {
	for _, i := range which {
		for s := range threads[i].from(0) {
			if s.Cut != Whole && !(s.Evidence && samplesOnly) || ends.stoppedAt(n) {
				return 0, true
			}
			n++
		}
	}
	return n, false
}

// from yields the samples of t, which may have none, from number n on.
func (t *Thread) from(n int) iter.Seq[Sample] {
	if t.Samples == nil {
		return func(func(Sample) bool) {}
	}
	return t.Samples(n)
}
