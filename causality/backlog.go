package causality

import "github.com/tracefix/tracefix/stackfix/stacks"

// A piece is a segment whose flow is perhaps not known yet.
type piece struct {
	from, to int64
	flow     *flow
	state    State
	stack    stacks.StackID
	point    *point // nil: it is time that passed
}

// A point is what happened at one time on a thread.
type point struct {
	thrown   *Exception // nil: a method is ready
	compiled int64
}

// A backlog is the time of a thread that was not handed out yet: what comes may tell its flow, or
// that it is another one.
type backlog struct {
	pieces []piece // in order of their ends
	head   int     // pieces before it were handed out
	proof  int     // piece behind the newest event that told the flow
}

// piece adds a stretch of time.
func (b *backlog) piece(from, to int64, f *flow, s State, stack stacks.StackID) {
	if to <= from {
		return
	}
	if n := len(b.pieces); n > b.open() { // an idle thread has one, however long
		if p := &b.pieces[n-1]; p.to == from && p.flow == f && p.state == s && p.stack == stack && p.point == nil {
			p.to = to
			return
		}
	}
	b.pieces = append(b.pieces, piece{from, to, f, s, stack, nil})
}

// open is the first piece that no event behind it tells the flow of.
func (b *backlog) open() int { return max(b.proof, b.head) }

// waits reports whether there is a piece that begins before a time.
func (b *backlog) waits(before int64) bool {
	return b.head < len(b.pieces) && b.pieces[b.head].from < before
}

// split puts list in the place of a piece, of whose time it is.
func (b *backlog) split(i int, list []piece) {
	if b.proof > i {
		b.proof += len(list) - 1
	}
	// as slices.Replace does, which with slices.DeleteFunc takes 10 KB of program for pieces
	all := len(b.pieces)
	b.pieces = append(b.pieces, list...)
	copy(b.pieces[i+len(list):], b.pieces[i+1:all])
	copy(b.pieces[i:], list)
	b.pieces = b.pieces[:all+len(list)-1]
}

// trim forgets what was handed out, if that is much.
func (b *backlog) trim() {
	if b.head > 32 && b.head > len(b.pieces)/2 || b.head == len(b.pieces) {
		b.pieces = append(b.pieces[:0], b.pieces[b.head:]...)
		b.proof = max(0, b.proof-b.head)
		b.head = 0
	}
}
