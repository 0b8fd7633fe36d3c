package export

import (
	"container/heap"
	"strconv"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// track writes one track: instants, calls that nest as B and E, and what may overlap
// as async b and e with an id for each chain of slices that nest. Slices are made of what a trace
// holds while those before them are written.
func (c *chromiumWriter) track(t *profile.Track, tid int64) {
	w := trackWriter{c: c, ids: appendIDs(nil, c.ids.pid(c.ids.owner(t)), tid), nested: t.Nested, live: map[uint64]*chain{}}
	line := relay.New(nil, func(b *sliceBatch) error {
		for i := range b.slices {
			s := &b.slices[i]
			s.Args = b.args[b.ends[i]-len(s.Args) : b.ends[i]]
			w.slice(s)
		}
		b.slices, b.args, b.ends = b.slices[:0], b.args[:0], b.ends[:0]
		return c.err
	})
	for s := range t.Slices {
		b := line.Batch()
		b.slices = append(b.slices, *s)
		b.args = append(b.args, s.Args...)
		b.ends = append(b.ends, len(b.args))
		if len(b.slices) == batchSlices && line.Send() != nil {
			break
		}
	}
	_ = line.Send() // of what take returns; c.err has it
	if line.Close() == nil {
		w.endBefore(1<<63 - 1)
	}
}

// A sliceBatch is slices on their way to who writes them.
type sliceBatch struct {
	slices []profile.Slice // with the number of their Args
	args   []profile.Arg   // of all of them
	ends   []int           // by slice: where its own end in args
}

const batchSlices = 256

// A chain is slices of one async id that are open: each within the one before.
type chain struct {
	id    uint64 // as it is written
	given uint64 // as the slices say; 0: none
	ends  []int64
}

// An openSlice waits for its end.
type openSlice struct {
	end   int64
	seq   int    // later ones end first at the same time: they are inside
	tail  []byte // name and category
	chain *chain // nil: B and E
}

type trackWriter struct {
	c      *chromiumWriter
	ids    []byte
	nested bool
	open   openSlices
	stack  []int64 // ends of the open B, outermost first
	live   map[uint64]*chain
	seq    int
	last   int64 // time of the newest event: they must not go back
}

func (w *trackWriter) slice(s *profile.Slice) {
	c := w.c
	start := max(s.Start, w.last) // the model promises the order of starts
	w.endBefore(start)
	w.last = start
	name := s.Name
	if name == "" {
		name = "(unnamed)"
	}
	cat := s.Category
	if cat == "" {
		cat = "event"
	}
	tail := text.AppendJSON(append([]byte(nil), `"name":`...), name)
	tail = text.AppendJSON(append(tail, `,"cat":`...), cat)
	if s.Instant {
		c.begin('i', start, w.ids)
		c.b = append(append(c.b, c.prefix...), tail...)
		c.str(`,"s":"t"`)
		c.args(s)
		c.str("}")
		c.flushed()
		return
	}
	end := max(start, s.Start+max(0, s.Dur))
	// speedscope takes an end before a begin of its time that has other args.
	if lasts := max(end, start+1); w.nested && w.fits(lasts) {
		end = lasts
		c.begin('B', start, w.ids)
		c.b = append(append(c.b, c.prefix...), tail...)
		c.args(s)
		c.str("}")
		c.flushed()
		w.flow('s', start, s.FlowOut)
		w.flow('f', start, s.FlowIn)
		w.stack = append(w.stack, end)
		// With args of its own, speedscope does not take the end for that of a begin of
		// its name at its time.
		w.push(openSlice{end: end, tail: append(tail, `,"args":{}}`...)})
		return
	}
	// Perfetto keys async tracks by category and id and reads each as a stack.
	ch := w.chain(s.ID, end)
	tail = strconv.AppendUint(append(tail, `,"id":"0x`...), ch.id, 16)
	tail = append(tail, '"')
	c.begin('b', start, w.ids)
	c.b = append(append(c.b, c.prefix...), tail...)
	c.args(s)
	switch {
	case s.FlowIn != 0:
		c.bind(s.FlowIn, `,"flow_in":true`)
	case s.FlowOut != 0:
		c.bind(s.FlowOut, `,"flow_out":true`)
	}
	c.str("}")
	if s.FlowIn != 0 && s.FlowOut != 0 {
		// An event has one bind_id; the second tie gets an instant inside the slice.
		c.begin('n', start, w.ids)
		c.b = append(append(c.b, c.prefix...), tail...)
		c.bind(s.FlowOut, `,"flow_out":true`)
		c.str("}")
	}
	c.flushed()
	w.push(openSlice{end: end, tail: append(tail, '}'), chain: ch})
}

// fits says whether a slice that ends at end lies within those that are open.
func (w *trackWriter) fits(end int64) bool {
	return len(w.stack) == 0 || w.stack[len(w.stack)-1] >= end
}

// chain returns the chain that a slice with that id and end extends. A slice that
// does not lie within the others of its id gets an id of its own.
func (w *trackWriter) chain(id uint64, end int64) *chain {
	if id != 0 {
		if ch := w.live[id]; ch != nil && ch.ends[len(ch.ends)-1] >= end {
			ch.ends = append(ch.ends, end)
			return ch
		}
	}
	w.c.asyncID++
	ch := &chain{id: w.c.asyncID, given: id, ends: []int64{end}}
	if id != 0 && w.live[id] == nil {
		w.live[id] = ch
	}
	return ch
}

func (w *trackWriter) push(o openSlice) {
	w.seq++
	o.seq = w.seq
	heap.Push(&w.open, o)
}

// endBefore ends what ends until at, the inner slices first.
func (w *trackWriter) endBefore(at int64) {
	c := w.c
	for len(w.open) > 0 && w.open[0].end <= at {
		o := heap.Pop(&w.open).(openSlice)
		phase := byte('E')
		if ch := o.chain; ch != nil {
			phase = 'e'
			ch.ends = ch.ends[:len(ch.ends)-1]
			if len(ch.ends) == 0 && w.live[ch.given] == ch {
				delete(w.live, ch.given)
			}
		} else {
			w.stack = w.stack[:len(w.stack)-1]
		}
		c.begin(phase, o.end, w.ids)
		c.b = append(append(c.b, c.prefix...), o.tail...)
		c.flushed()
		w.last = max(w.last, o.end)
	}
}

// flow writes a flow event; it ties to the slice that is open on the track.
func (w *trackWriter) flow(phase byte, at int64, id uint64) {
	if id == 0 {
		return
	}
	c := w.c
	c.begin(phase, at, w.ids)
	c.b = append(append(c.b, c.prefix...), `"name":"flow","cat":"flow","id":"0x`...)
	c.b = strconv.AppendUint(c.b, id, 16)
	c.str(`","bp":"e"}`)
	c.flushed()
}

func (c *chromiumWriter) bind(id uint64, how string) {
	c.str(`,"bind_id":"0x`)
	c.b = strconv.AppendUint(c.b, id, 16)
	c.str(`"`)
	c.str(how)
}

// args appends the details of a slice.
func (c *chromiumWriter) args(s *profile.Slice) {
	if len(s.Args) == 0 && !s.Open {
		return
	}
	c.str(`,"args":{`)
	for i, a := range s.Args {
		if i > 0 {
			c.str(",")
		}
		c.b = text.AppendJSON(c.b, a.Key)
		c.str(":")
		c.b = appendValue(c.b, a.Value)
	}
	if s.Open {
		if len(s.Args) > 0 {
			c.str(",")
		}
		c.str(`"tracefix":{"open":true}`)
	}
	c.str("}")
}

// openSlices is a heap of what ends first.
type openSlices []openSlice

func (h openSlices) Len() int { return len(h) }

func (h openSlices) Less(i, j int) bool {
	if h[i].end != h[j].end {
		return h[i].end < h[j].end
	}
	return h[i].seq > h[j].seq
}

func (h openSlices) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *openSlices) Push(x any)   { *h = append(*h, x.(openSlice)) }

func (h *openSlices) Pop() any {
	o := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return o
}
