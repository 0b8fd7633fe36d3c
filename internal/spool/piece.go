package spool

import (
	"bytes"
	"slices"
)

// A Piece is where some bytes are.
type Piece struct {
	memory []byte // nil: on disk
	at     int64  // there
	size   int
}

// InMemory is how many bytes it has in memory.
func (x *Piece) InMemory() int { return cap(x.memory) }

// Keep keeps b, which may be used for something else then.
func (p *Spool) Keep(b []byte) Piece {
	at := p.Put(b, 0, len(b))
	if at == 0 {
		return Piece{memory: bytes.Clone(b)}
	}
	return Piece{at: at, size: len(b)}
}

// Read returns the bytes of a piece, which are not to be changed: in room, if they are on disk;
// none if they cannot be read (see Err).
func (p *Spool) Read(x *Piece, room *[]byte) []byte {
	if x.memory != nil || x.size == 0 {
		return x.memory
	}
	*room = slices.Grow((*room)[:0], x.size)[:x.size]
	if !p.Get(*room, x.at) {
		return nil
	}
	return *room
}

// Rooms are what Read reads into, handed from who has read a piece to who reads the next one. The
// zero value has none.
type Rooms [][]byte

// Take returns a room, nil if none was given back.
func (r *Rooms) Take() []byte {
	n := len(*r)
	if n == 0 {
		return nil
	}
	room := (*r)[n-1]
	*r = (*r)[:n-1]
	return room
}

// Give gives a room back.
func (r *Rooms) Give(room []byte) { *r = append(*r, room) }

// fill reads a piece into b, which has its size: zeros, if it cannot be read (see Err).
func (p *Spool) fill(b []byte, x *Piece) {
	if x.memory != nil {
		copy(b, x.memory)
	} else if !p.Get(b, x.at) {
		clear(b)
	}
}

// again keeps b where the piece is, which has its size.
func (p *Spool) again(b []byte, x *Piece) {
	if x.memory != nil {
		copy(x.memory, b)
	} else if p.Put(b, x.at, x.size) == 0 {
		*x = Piece{memory: bytes.Clone(b)}
	}
}
