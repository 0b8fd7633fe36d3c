package stackfix

// Fix finds the missing frames of every cut sample. It adds the repaired stacks
// to stacks and changes nothing else. The result depends on nothing but the
// arguments.
func Fix(stacks Stacks, frames Frames, threads []Thread, opts Options) Result {
	return newEngine(frames, opts).fix(stacks, threads)
}
