package stackfix

// Fix finds the missing frames of every cut sample. It adds the repaired stacks
// to stacks and changes nothing else. The result depends on nothing but the
// arguments. Processes are repaired apart: one is no evidence for another.
func Fix(stacks Stacks, frames Frames, threads []Thread, opts Options) Result {
	of := map[uint32][]int{}
	var processes []uint32
	for i := range threads {
		p := threads[i].Process
		if of[p] == nil {
			processes = append(processes, p)
		}
		of[p] = append(of[p], i)
	}
	if len(processes) < 2 {
		return newEngine(frames, opts).fix(stacks, threads)
	}
	all := Result{Repairs: make([][]Repair, len(threads))}
	for _, p := range processes {
		own := make([]Thread, len(of[p]))
		for i, t := range of[p] {
			own[i] = threads[t]
		}
		r := newEngine(frames, opts).fix(stacks, own)
		for i, t := range of[p] {
			all.Repairs[t] = r.Repairs[i]
		}
		all.Stats.add(&r.Stats)
	}
	return all
}

func (s *Stats) add(o *Stats) {
	s.Samples += o.Samples
	s.Cut += o.Cut
	s.Restored += o.Restored
	s.Dropped += o.Dropped
	for i := range s.How {
		s.How[i] += o.How[i]
		s.Expected[i] += o.Expected[i]
	}
}
