package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Rewrite copies a trace with repaired stacks. fix repairs the profile, with the
// stacks of all events in it; nil only copies. All events, payloads and their order
// stay, and so do stacks that were not repaired.
//
// A frame of a nettrace is an address and nothing else: the bridge gets one where no code can be,
// which other readers show as a frame without a name, and this package as the bridge.
//
// The file is read twice: what is repaired is known at its end only, and a copy that holds
// back all events until then would hold the file.
func Rewrite(ctx context.Context, open input.Opener, w io.Writer, o *Options, fix func(*profile.Profile)) (*profile.Profile, *Info, error) {
	damaged := int64(0)
	warn := func(e *nettrace.FormatError) {
		damaged++
		if o.Warn != nil {
			o.Warn(e)
		}
	}
	l := newLoader(&Options{Source: o.Source, DepthLimit: o.DepthLimit, Warn: warn, Evidence: fix != nil, Rules: ByTime})
	if _, err := input.Read(ctx, open, warn, l); err != nil {
		return nil, nil, err
	}
	if fix != nil {
		fix(l.profile)
	}
	in, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	rw := newRewriter(l)
	var c *nettrace.Copier
	n, size := 0, copyAlone
	if relay.Workers() > 1 {
		size = copyBeside
	}
	line := relay.New(nil, func(b *nettrace.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		n += b.Len()
		return c.Write(b)
	})
	defer line.Close()
	r, err := nettrace.NewReader(in, &nettrace.Options{Hold: line.Batches() * size})
	if err != nil {
		return nil, nil, err
	}
	h := l.info.Header
	if h.Version == 6 && len(rw.threads) > 0 && h.KeyValue(repairedKey) == "" {
		h.KeyValues = append(slices.Clip(h.KeyValues), nettrace.KeyValue{Key: repairedKey, Value: "1"})
	}
	out, err := nettrace.NewWriter(w, &h)
	if err != nil {
		return nil, nil, err
	}
	out.Damaged(damaged)
	c = nettrace.NewCopier(out, r, rw.edits())
	var ended error
	for ended == nil {
		b := line.Batch()
		ended = r.ReadBatch(b, size)
		line.Weigh(b.Carried())
		if err := line.Send(); err != nil {
			return nil, nil, err
		}
	}
	if err := line.Close(); err != nil {
		return nil, nil, err
	}
	err = c.End(ended)
	if err != nil {
		if _, ok := input.Damage(r, err); !ok { // damage was told when the file was read first
			return nil, nil, err
		}
	}
	if err := l.sameEvents(n, false); err != nil {
		return nil, nil, err
	}
	if err != nil && n == 0 {
		return nil, nil, fmt.Errorf("no event could be saved: %w", err)
	}
	if err := noteRepairs(out, r, l.profile); err != nil {
		return nil, nil, err
	}
	return l.profile, &l.info, out.Close()
}

// repairsNote is the name of the note that lists the repairs.
const repairsNote = "Repairs"

// noteRepairs puts the list of repairs into a copy: that of the file, if it was repaired before.
func noteRepairs(out *nettrace.Writer, r *nettrace.Reader, p *profile.Profile) error {
	if list := r.Note(repairsNote); list != "" {
		return out.Note(repairsNote, list)
	}
	note := out.NoteWriter(repairsNote)
	if err := profile.WriteRepairMarks("", p.RepairMarks(nil), func(piece []byte) error {
		_, err := note.Write(piece)
		return err
	}); err != nil {
		return err
	}
	return note.Close()
}

// How many events go at once to who writes them: on one processor few enough to stay in its first cache.
const (
	copyAlone  = 32
	copyBeside = 1024
)

// repairedKey is the key of the Trace block of v6 by which a repaired recording is known:
// such stacks have no common limit that repaired ones could go beyond. Readers pass over
// keys that they do not know (nettrace.md section 2.6).
const repairedKey = "TracefixRepaired"

// A fixed is a repaired sample of a thread.
type fixed struct {
	index int
	stack profile.StackID
}

// A repairs is what is left to do for one thread.
type repairs struct {
	seen  int // samples of the thread so far
	fixed fixes
	next  fixed
	more  bool                    // there is a next one
	order map[int]profile.StackID // instead of next, where samples were put into another order
	perm  []int32
}

type rewriter struct {
	l       *loader
	replay  *replay
	threads map[*thread]*repairs
	newest  struct { // the thread that was asked for last, as it mostly is again
		t *thread
		q *repairs
	}
	renamed bool // code has another extent or name than in the file
	stacks  [stacksAtHand]struct {
		id profile.StackID
		of nettrace.Stack
	}
	bridge profile.MethodID
	addrs  []uint64
}

func newRewriter(l *loader) *rewriter {
	rw := &rewriter{l: l, replay: newReplay(l), threads: map[*thread]*repairs{}, bridge: l.table.AddBridge()}
	for _, p := range l.order {
		rw.renamed = rw.renamed || len(p.names.clipped) > 0 || len(p.names.respelled) > 0
		for _, t := range p.threads {
			q := &repairs{fixed: fixesOf(t.trace)}
			if q.next, q.more = q.fixed.next(); !q.more {
				continue
			}
			if t.perm != nil {
				q.perm, q.order = t.perm, map[int]profile.StackID{}
				for ; q.more; q.next, q.more = q.fixed.next() {
					q.order[q.next.index] = q.next.stack
				}
			}
			rw.threads[t] = q
		}
	}
	return rw
}

// A fixes finds the samples of a thread that have got another stack, in their order. One without any frames
// gets no lone bridge.
type fixes struct {
	samples profile.Cursor
	repairs profile.RepairCursor
	index   int // of the next sample
}

func fixesOf(t *profile.Thread) fixes {
	if t.Repairs.Len() == 0 {
		return fixes{}
	}
	return fixes{samples: t.Samples.Cursor(), repairs: t.Repairs.Cursor()}
}

func (f *fixes) next() (fixed, bool) {
	var s profile.Sample
	for f.samples.Read(&s) {
		i := f.index
		f.index++
		if r := f.repairs.Of(i); r != nil && !r.Earlier && s.Stack != r.Recorded && (r.Recorded != 0 || r.How != profile.HowBridge) {
			return fixed{i, s.Stack}, true
		}
	}
	return fixed{}, false
}

// bridgeAddress is the address of the bridge in a process with pointers of that many bytes: none that
// a processor takes ("tracefix" in ASCII is not canonical), or the last one of 32 bits.
func bridgeAddress(pointerSize int) uint64 {
	if pointerSize == 4 {
		return math.MaxUint32
	}
	return 0x7472616365666978
}

// edits returns what changes the events, nil if all stay as they are.
func (rw *rewriter) edits() func(*nettrace.Event) bool {
	if !rw.renamed && len(rw.threads) == 0 {
		return nil
	}
	return func(ev *nettrace.Event) bool {
		rw.edit(ev)
		return true
	}
}

// edit gives an event its repaired stack.
func (rw *rewriter) edit(ev *nettrace.Event) {
	if rw.renamed && (ev.Metadata.Source == nettrace.SourceSystem || ev.Metadata.Role.NamesMethods()) {
		for _, p := range rw.l.order {
			if last, ok := p.names.clipped[ev.Offset]; ok {
				ev.Payload = clippedPayload(ev, last)
			}
			for _, r := range p.names.respelled { // mostly none
				if r.offset == ev.Offset {
					ev.Payload = respelledPayload(ev, r)
				}
			}
		}
	}
	if ev.Metadata.Source == nettrace.SourceSystem {
		rw.replay.pass(ev)
		return
	}
	if len(rw.threads) == 0 {
		return
	}
	if _, ok := rw.l.sampleOf(ev); !ok {
		return
	}
	t := rw.replay.thread(ev)
	if t == nil {
		return
	}
	if t != rw.newest.t {
		rw.newest.t, rw.newest.q = t, rw.threads[t]
	}
	q := rw.newest.q
	if q == nil {
		return
	}
	i := q.seen
	q.seen++
	if q.perm != nil {
		if i < len(q.perm) {
			if s, ok := q.order[int(q.perm[i])]; ok {
				ev.Stack = rw.stack(s)
			}
		}
		return
	}
	if q.more && q.next.index == i {
		ev.Stack = rw.stack(q.next.stack)
		q.next, q.more = q.fixed.next()
	}
}

// clippedPayload returns the payload of a method or a symbol whose code ends at another address.
func clippedPayload(ev *nettrace.Event, last uint64) []byte {
	if ev.Metadata.Role == nettrace.RoleSymbol {
		var s nettrace.Symbol
		if ev.Symbol(&s) != nil {
			return ev.Payload
		}
		head := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, s.ID), s.MappingID), s.Start)
		_, n := binary.Uvarint(ev.Payload[len(head):])
		return append(binary.AppendUvarint(head, last), ev.Payload[len(head)+n:]...)
	}
	const startAt, sizeAt = 16, 24 // MethodStartAddress and MethodSize
	b := bytes.Clone(ev.Payload)
	start := binary.LittleEndian.Uint64(b[startAt:])
	binary.LittleEndian.PutUint32(b[sizeAt:], uint32(last-start+1))
	return b
}

// stacksAtHand is how many repaired stacks are kept for samples that follow: as many as threads
// that run at once, and some more.
const stacksAtHand = 64

// stack returns the addresses of a stack, leaf first, until it is asked for others.
func (rw *rewriter) stack(id profile.StackID) nettrace.Stack {
	at := &rw.stacks[id%stacksAtHand]
	if at.id == id && id != 0 {
		return at.of
	}
	rw.addrs = rw.addrs[:0]
	tab := rw.l.table
	for s := id; s != 0; {
		callers, frame := tab.Node(s)
		f := tab.FrameAt(frame)
		if f.Method == rw.bridge {
			f.Addr = bridgeAddress(rw.l.info.Header.PointerSize)
		}
		rw.addrs = append(rw.addrs, f.Addr)
		s = callers
	}
	at.id, at.of = id, at.of.Again(rw.addrs)
	return at.of
}
