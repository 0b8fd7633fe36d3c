package tracetest

import (
	"cmp"
	"slices"
)

// A SpanEvent is a begin ('B') or end ('E') event of a thread.
type SpanEvent struct {
	Phase byte
	Name  string
	Args  string // as JSON text, "" if it has none
	TS    float64
}

// id is what speedscope tells events apart by.
func (e *SpanEvent) id() string { return e.Name + " " + e.Args }

// Speedscope takes the begins and ends of one thread, in the order of the file, through
// the rules of speedscope's import (1.25, src/import/trace-event.ts). It returns how
// many ends were lost, because another frame was on top, how many frames were open in
// the end, and how many at most.
func Speedscope(events []SpanEvent) (lost, open, deepest int) {
	var begins, ends, stack []*SpanEvent
	for i := range events {
		if e := &events[i]; e.Phase == 'B' {
			begins = append(begins, e)
		} else {
			ends = append(ends, e)
		}
	}
	byTime := func(a, b *SpanEvent) int { return cmp.Compare(a.TS, b.TS) }
	slices.SortStableFunc(begins, byTime)
	slices.SortStableFunc(ends, byTime)
	for len(begins) > 0 || len(ends) > 0 {
		if len(ends) == 0 || len(begins) > 0 && beginsFirst(begins[0], ends[0]) {
			stack = append(stack, begins[0])
			begins = begins[1:]
			deepest = max(deepest, len(stack))
			continue
		}
		var top *SpanEvent
		if len(stack) > 0 {
			top = stack[len(stack)-1]
			toFront(ends, top)
		}
		if top == nil || ends[0].Name != top.Name {
			lost++
		} else {
			stack = stack[:len(stack)-1]
		}
		ends = ends[1:]
	}
	return lost, len(stack), deepest
}

func beginsFirst(b, e *SpanEvent) bool {
	return b.TS < e.TS || b.TS == e.TS && b.id() == e.id()
}

// toFront swaps the first of the ends with one of its time that is like top: by args
// too if there is one, else by name.
func toFront(ends []*SpanEvent, top *SpanEvent) {
	for _, same := range []func(e *SpanEvent) bool{
		func(e *SpanEvent) bool { return e.Name == top.Name && e.Args == top.Args }, // its id, without making it
		func(e *SpanEvent) bool { return e.Name == top.Name },
	} {
		for i := 1; i < len(ends) && ends[i].TS == ends[0].TS; i++ {
			if same(ends[i]) {
				ends[0], ends[i] = ends[i], ends[0]
				return
			}
		}
	}
}
