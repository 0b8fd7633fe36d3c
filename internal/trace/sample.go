package trace

import (
	"encoding/binary"
	"iter"
)

// SampleType says what a sample was taken of. Its names are those of the ndjson
// form of samples.
type SampleType uint8

// Sample types. Event is the stack of another event (an exception, an
// allocation, a page fault): evidence for a repair, and no CPU sample.
const (
	SampleManaged  SampleType = iota // in managed code when the sampler looked
	SampleExternal                   // in native code, blocked or running: the sampler cannot tell
	SampleCPU                        // on a CPU (collect-linux)
	SampleOffCPU                     // switched out for Dur, until Time (collect-linux)
	SampleError                      // the runtime could not tell
	SampleEvent                      // the stack of another event
)

func (t SampleType) String() string {
	return [...]string{"managed", "external", "cpu", "offcpu", "error", "event"}[t]
}

// Cut says why a stack misses its root frames.
type Cut uint8

// Kinds of cuts.
const (
	Whole     Cut = iota
	CutDepth      // at the depth limit of EventPipe
	CutBytes      // at the recorder's copy of the stack
	CutBroken     // where unwinding failed
)

func (c Cut) String() string { return [...]string{"", "depth", "bytes", "broken"}[c] }

// A Sample is one look at a thread's stack.
type Sample struct {
	Time  int64 // ns since the start of the trace
	Dur   int64 // ns; of SampleOffCPU and weighted samples only
	Stack StackID
	Type  SampleType
	Cut   Cut
	// Suspect is how many of the outermost frames of a cut stack may be garbage, 0
	// to 3: a recorder that copies bytes reads past the last real frame.
	Suspect uint8
}

// Samples is a list of samples in the order they were appended, a few bytes each.
// The zero value is an empty list.
type Samples struct {
	chunks [][]byte
	n      int
	last   int64 // time of the newest sample
	cuts   int
}

const chunkSize = 32 << 10

// Append adds s to the end of the list.
func (l *Samples) Append(s Sample) {
	if len(l.chunks) == 0 || len(l.chunks[len(l.chunks)-1])+32 > chunkSize {
		size := chunkSize
		if len(l.chunks) == 0 {
			size = 256 // most threads of a process have few samples
		}
		l.chunks = append(l.chunks, make([]byte, 0, size))
	}
	b := l.chunks[len(l.chunks)-1]
	flags := byte(s.Type) | byte(s.Cut)<<3 | min(s.Suspect, 3)<<5
	if s.Dur != 0 {
		flags |= 0x80
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, s.Time-l.last)
	b = binary.AppendUvarint(b, uint64(s.Stack))
	if s.Dur != 0 {
		b = binary.AppendVarint(b, s.Dur)
	}
	l.chunks[len(l.chunks)-1] = b
	l.last = s.Time
	l.n++
	if s.Cut != Whole {
		l.cuts++
	}
}

// Len returns the number of samples.
func (l *Samples) Len() int { return l.n }

// Cuts returns the number of samples that are cut.
func (l *Samples) Cuts() int { return l.cuts }

// All yields every sample with its index, in order.
func (l *Samples) All() iter.Seq2[int, Sample] {
	return func(yield func(int, Sample) bool) {
		c := l.Cursor()
		for i := 0; ; i++ {
			s, ok := c.Next()
			if !ok || !yield(i, s) {
				return
			}
		}
	}
}

// A Cursor reads a list from its start, for merging several lists. Samples must not
// be appended while it is used.
type Cursor struct {
	chunks [][]byte
	b      []byte
	time   int64
}

// Cursor returns a cursor before the first sample.
func (l *Samples) Cursor() Cursor { return Cursor{chunks: l.chunks} }

// Next returns the next sample, and false after the last one.
func (c *Cursor) Next() (s Sample, ok bool) {
	for len(c.b) == 0 {
		if len(c.chunks) == 0 {
			return Sample{}, false
		}
		c.b, c.chunks = c.chunks[0], c.chunks[1:]
	}
	b := c.b
	flags := b[0]
	s.Type, s.Cut, s.Suspect = SampleType(flags&7), Cut(flags>>3&3), flags>>5&3
	pos := 1
	d, n := binary.Varint(b[pos:])
	pos += n
	c.time += d
	s.Time = c.time
	id, n := binary.Uvarint(b[pos:])
	pos += n
	s.Stack = StackID(id)
	if flags&0x80 != 0 {
		s.Dur, n = binary.Varint(b[pos:])
		pos += n
	}
	c.b = b[pos:]
	return s, true
}
