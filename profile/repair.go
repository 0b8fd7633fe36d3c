package profile

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
)

// A Repair is what was done about one cut sample.
type Repair struct {
	Index      int     // of the sample in the thread's Samples
	Recorded   StackID // the stack as it was recorded
	How        string  // how the missing frames are known: stackfix's word
	Restored   int     // frames put back
	Above      int     // of these, behind the bridge: right above the recorded ones
	Dropped    int     // suspect frames taken away
	Confidence float32 // 0..1
	// those of the frames before a bridge and of those behind it
	BaseConfidence, AboveConfidence float32
	// Earlier is set where the file says that it was repaired before: this is nothing that was
	// done to the profile.
	Earlier bool
}

// Repairs is a list of repairs in sample order. Samples in a row that share one are
// stored as one, in about ten bytes: there may be millions. The zero value is an empty list.
type Repairs struct {
	chunks []repairChunk      // of runs: see pack
	last   repairRun          // the newest run, which is not there yet; of 0 samples: none
	packed repairRun          // the one before it
	kinds  []repairKind       // by number
	number map[repairKind]int // in kinds, from 1 on
	n      int
	hows   []string
	spool  *Spool
}

// A repairChunk is some runs, in the spool or in memory.
type repairChunk struct {
	b    []byte
	at   int64 // in the spool, in place of b; 0: nowhere
	size int   // there
}

// NewRepairs returns an empty list, which may be put aside as the samples of t are.
func (t *Thread) NewRepairs() Repairs { return Repairs{spool: t.Samples.spool} }

// A repairRun is the repair of n samples in a row.
type repairRun struct {
	first, n int32
	recorded StackID
	kind     repairKind
}

// A repairKind is what repairs have in common that differ in their samples and stacks.
type repairKind struct {
	restored   int32
	above      int32
	confidence [3]float32 // Confidence, BaseConfidence, AboveConfidence
	how        uint8      // index in hows
	dropped    uint8
	earlier    bool
}

const (
	// firstRepairs are the bytes of the first chunk: each is twice the one before, up to sizeOfChunk.
	firstRepairs = 64
	// mostRun is how many bytes a run takes at most.
	mostRun = 6*binary.MaxVarintLen32 + 3 + 3*4
	// mostKinds is how many kinds have a number.
	mostKinds = 1 << 10
)

// Append adds the repair of a sample behind those of the list.
func (l *Repairs) Append(r Repair) { l.AppendRun(r, 1) }

// AppendRun adds the repair of n samples in a row, of which r.Index is the first.
func (l *Repairs) AppendRun(r Repair, n int) {
	run := repairRun{int32(r.Index), int32(n), r.Recorded, repairKind{restored: int32(r.Restored), above: int32(r.Above), confidence: [3]float32{r.Confidence, r.BaseConfidence, r.AboveConfidence}, how: l.how(r.How), dropped: uint8(r.Dropped), earlier: r.Earlier}}
	l.n += n
	if last := &l.last; last.n > 0 {
		if last.first+last.n == run.first && last.recorded == run.recorded && last.kind == run.kind {
			last.n += run.n
			return
		}
		l.pack()
	}
	l.last = run
}

// pack puts the newest run behind the others: how far behind the one before it begins, its length,
// by how much its stack differs, and the number of its kind, or 0 and its kind.
func (l *Repairs) pack() {
	run, before := &l.last, &l.packed
	kind := l.number[run.kind]
	if kind == 0 && len(l.kinds) < mostKinds {
		if l.number == nil {
			l.number = map[repairKind]int{}
		}
		l.kinds = append(l.kinds, run.kind)
		kind = len(l.kinds)
		l.number[run.kind] = kind
	}
	b := binary.AppendVarint(l.room(), int64(run.first-before.first-before.n))
	b = binary.AppendVarint(b, int64(run.n))
	b = binary.AppendVarint(b, int64(int32(run.recorded-before.recorded)))
	if b = binary.AppendUvarint(b, uint64(kind)); kind == 0 {
		b = run.kind.append(b)
	}
	l.chunks[len(l.chunks)-1].b = b
	l.packed = *run
}

// append appends k.
func (k *repairKind) append(b []byte) []byte {
	earlier := byte(0)
	if k.earlier {
		earlier = 1
	}
	b = binary.AppendVarint(b, int64(k.restored))
	b = binary.AppendVarint(b, int64(k.above))
	b = append(b, k.how, k.dropped, earlier)
	for _, c := range k.confidence {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(c))
	}
	return b
}

// room returns the newest chunk, with room for one more run.
func (l *Repairs) room() []byte {
	var b []byte
	size := firstRepairs
	if k := len(l.chunks) - 1; k >= 0 {
		last := &l.chunks[k]
		if cap(last.b)-len(last.b) >= mostRun {
			return last.b
		}
		full := sizeOfChunk(k)
		size = min(2*cap(last.b), full)
		if cap(last.b) >= full {
			size = sizeOfChunk(k + 1)
			if last.at = l.spool.Put(last.b, 0, full); last.at > 0 {
				b, last.b, last.size = last.b, nil, len(last.b)
			}
		}
	}
	if cap(b) < size {
		b = make([]byte, 0, size)
	}
	l.chunks = append(l.chunks, repairChunk{b: b[:0]})
	return b[:0]
}

func (l *Repairs) how(word string) uint8 {
	for i, h := range l.hows {
		if h == word {
			return uint8(i)
		}
	}
	l.hows = append(l.hows, word)
	return uint8(len(l.hows) - 1)
}

// Over returns the repairs of l, and for samples that have none there those of below.
func (l *Repairs) Over(below *Repairs) Repairs {
	if below.n == 0 {
		return *l
	}
	out := Repairs{spool: l.spool}
	next, stop := iter.Pull(below.All())
	defer stop()
	b, more := next()
	for r := range l.All() {
		for ; more && b.Index <= r.Index; b, more = next() {
			if b.Index < r.Index {
				out.Append(b)
			}
		}
		out.Append(r)
	}
	for ; more; b, more = next() {
		out.Append(b)
	}
	return out
}

// Len returns the number of repairs.
func (l *Repairs) Len() int { return l.n }

// All yields every repair, in sample order.
func (l *Repairs) All() iter.Seq[Repair] {
	return func(yield func(Repair) bool) {
		for r, n := range l.Runs() {
			for range n {
				if !yield(r) {
					return
				}
				r.Index++
			}
		}
	}
}

// Runs yields the repairs of samples in a row that share one as one, with how many they are.
func (l *Repairs) Runs() iter.Seq2[Repair, int] {
	return func(yield func(Repair, int) bool) {
		for c := l.Cursor(); c.next(); {
			if !yield(l.repair(&c.run, int(c.run.first)), int(c.run.n)) {
				return
			}
		}
	}
}

func (l *Repairs) repair(run *repairRun, index int) Repair {
	k := &run.kind
	return Repair{
		Index: index, Recorded: run.recorded, How: l.hows[k.how], Restored: int(k.restored), Above: int(k.above), Dropped: int(k.dropped),
		Confidence: k.confidence[0], BaseConfidence: k.confidence[1], AboveConfidence: k.confidence[2], Earlier: k.earlier,
	}
}

// Cursor returns a cursor before the first repair.
func (l *Repairs) Cursor() RepairCursor { return RepairCursor{list: l} }

// A RepairCursor finds the repairs of samples that are asked for in order. Repairs must
// not be appended while it is used.
type RepairCursor struct {
	list  *Repairs
	run   repairRun // where it is: one that ends behind the sample asked for last
	chunk int       // the next one
	rest  []byte    // of the one before
	buf   []byte    // for what comes from the spool
	end   bool      // it is at the newest run, or behind
	r     Repair
}

// next moves on to the next run, and tells whether there is one.
func (c *RepairCursor) next() bool {
	run := &c.run
	for len(c.rest) == 0 {
		if c.chunk == len(c.list.chunks) {
			if c.end {
				return false
			}
			c.end = true
			*run = c.list.last
			return run.n > 0
		}
		chunk := &c.list.chunks[c.chunk]
		c.rest = chunk.b
		c.chunk++
		if chunk.at > 0 && !c.fetch(chunk) {
			return false
		}
	}
	run.first += run.n + c.varint()
	run.n = c.varint()
	run.recorded += StackID(c.varint())
	kind, n := binary.Uvarint(c.rest)
	if c.rest = c.rest[n:]; kind > 0 {
		run.kind = c.list.kinds[kind-1]
	} else {
		c.kind(&run.kind)
	}
	return true
}

// kind reads what append has written.
func (c *RepairCursor) kind(k *repairKind) {
	k.restored, k.above = c.varint(), c.varint()
	k.how, k.dropped, k.earlier = c.rest[0], c.rest[1], c.rest[2] == 1
	for i := range k.confidence {
		k.confidence[i] = math.Float32frombits(binary.LittleEndian.Uint32(c.rest[3+4*i:]))
	}
	c.rest = c.rest[3+4*len(k.confidence):]
}

// fetch gets a chunk from the spool. Behind one that cannot be read there are no repairs, and the
// spool has the error.
func (c *RepairCursor) fetch(chunk *repairChunk) bool {
	c.buf = slices.Grow(c.buf[:0], chunk.size)[:chunk.size]
	c.rest = c.buf
	if c.list.spool.Get(c.rest, chunk.at) {
		return true
	}
	c.chunk, c.end = len(c.list.chunks), true
	c.rest, c.run = nil, repairRun{}
	return false
}

func (c *RepairCursor) varint() int32 {
	v, n := binary.Varint(c.rest)
	c.rest = c.rest[n:]
	return int32(v)
}

// Of returns the repair of a sample, nil if it has none. It is valid until the next call.
func (c *RepairCursor) Of(index int) *Repair {
	for int(c.run.first+c.run.n) <= index {
		if !c.next() {
			return nil
		}
	}
	if int(c.run.first) > index {
		return nil
	}
	c.r = c.list.repair(&c.run, index)
	return &c.r
}
