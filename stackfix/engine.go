package stackfix

// engine is the state of one Fix.
type engine struct {
	stacks  Stacks
	frames  Frames
	threads []Thread
	opts    Options
	res     Result
}

func newEngine(stacks Stacks, frames Frames, threads []Thread, opts Options) *engine {
	return &engine{stacks: stacks, frames: frames, threads: threads, opts: opts}
}

func (e *engine) run() Result {
	e.res.Repairs = make([][]Repair, len(e.threads))
	for i, t := range e.threads {
		for j, s := range t.Samples {
			if s.Cut != Whole {
				e.res.Repairs[i] = append(e.res.Repairs[i], Repair{Index: j, Stack: e.bridge(s.Stack), How: Bridge})
			}
		}
	}
	return e.res
}

// bridge puts the bridge frame under s.
func (e *engine) bridge(s StackID) StackID {
	var fs []FrameID
	for ; s != 0; s = e.stacks.Parent(s) {
		fs = append(fs, e.stacks.Frame(s))
	}
	out := e.stacks.Push(0, e.opts.Bridge)
	for i := len(fs) - 1; i >= 0; i-- {
		out = e.stacks.Push(out, fs[i])
	}
	return out
}
