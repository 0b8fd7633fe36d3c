package nettrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Salvage describes what a clean copy of a damaged recording (see Copy) has lost.
type Salvage struct {
	Places    int64 // defects
	LostBytes int64 // of the damaged file
	LeftOut   int64 // events that were there, but not whole
	Cut       bool  // the recording had no end
}

// Events that are defined and never written: readers pass over them.
const (
	noteProvider = "tracefix"
	noteEvent    = 1
	notePrefix   = "Salvaged "
	noteForm     = notePrefix + "places=%d bytes=%d events=%d cut=%t"
)

// A Writer defines two more events that are never written: first one that announces, and last one that
// tells the length and the checksum of all that stands in front of its block. Recordings have none.
const (
	sumEvent    = 3
	markEvent   = 4
	sumForm     = "Written bytes=%d crc=%08x"
	sumFollows  = "Checksum follows"
	sumWhere    = "checksum"
	sumNoteHelp = "make the file again from the recording"
)

var sumMark = &Metadata{Provider: noteProvider, EventID: markEvent, Name: sumFollows}

// writeSum ends what is checked. All blocks are written.
func (w *Writer) writeSum() {
	if w.defined == 0 || w.flushOut() != nil {
		return
	}
	w.define(&Metadata{Provider: noteProvider, EventID: sumEvent, Name: fmt.Sprintf(sumForm, w.offset, w.sum)}, w.last)
	w.flushMetadata()
}

// noted looks at a definition that may be a note of a Writer.
func (r *Reader) noted(m *Metadata) {
	if m.Provider != noteProvider {
		return
	}
	r.notes++
	switch m.EventID {
	case markEvent:
		r.summed = r.summed || m.Name == sumFollows
	case sumEvent:
		r.checkSum(m)
	}
}

// checkSum compares the checksum of what was read with the one noted. The block of the note is not
// consumed yet.
func (r *Reader) checkSum(m *Metadata) {
	r.sumSeen = true
	var n int64
	var sum uint32
	if _, err := fmt.Sscanf(m.Name, sumForm, &n, &sum); err != nil || r.damage != nil {
		r.sumSeen = err == nil
		return // it is told already that the file is damaged, or will be
	}
	switch at := r.src.offset(); {
	case n != at:
		r.told(at, sumWhere, fmt.Errorf("%w: the file was written with %d bytes in front of this, and has %d; %s", ErrDamaged, n, at, sumNoteHelp), 0) // what is not there is no part of the file, and n may be anything
	case r.src.unsum || sum != r.src.sum:
		r.told(at, sumWhere, fmt.Errorf("%w: what stands in front of this is not what was written; %s", ErrDamaged, sumNoteHelp), 0)
	}
}

// missingSum tells, at the end of a whole file, that the checksum which it announces is not there.
func (r *Reader) missingSum() {
	if r.stats.Ended && r.summed && !r.sumSeen && r.damage == nil {
		r.told(r.src.offset(), sumWhere, fmt.Errorf("%w: the file ends without the checksum it was written with; %s", ErrDamaged, sumNoteHelp), 0)
	}
}

// note puts a salvage into the file, as the name of an event that is never written: the
// formats have no other place for words that all their readers pass over.
func (w *Writer) note(s *Salvage) {
	if s == nil || w.err != nil {
		return
	}
	m := &Metadata{Provider: noteProvider, EventID: noteEvent, Name: fmt.Sprintf(noteForm, s.Places, s.LostBytes, s.LeftOut, s.Cut)}
	w.define(m, w.last)
}

// Salvage returns, at the end of a clean copy of a damaged recording, what was lost. It is nil for
// any other file.
func (r *Reader) Salvage() *Salvage {
	for _, m := range r.meta.all {
		if m.Provider == noteProvider && strings.HasPrefix(m.Name, notePrefix) {
			s := &Salvage{}
			if n, _ := fmt.Sscanf(m.Name, noteForm, &s.Places, &s.LostBytes, &s.LeftOut, &s.Cut); n == 4 {
				return s
			}
		}
	}
	return nil
}

// textEvent is the event whose name is a piece of a text; maxText is how long one may be, and noteBlock how
// many bytes of them wait for their block.
const (
	textEvent = 2
	maxText   = 8 << 10
	noteBlock = 1 << 20
)

// Note puts a text of ASCII characters without NUL into the file, for Reader.Note, where other
// readers pass over it. name tells texts apart.
func (w *Writer) Note(name, text string) error {
	n := w.NoteWriter(name)
	if _, err := io.WriteString(n, text); err != nil {
		return err
	}
	return n.Close()
}

// NoteWriter is Note for a text that comes in pieces: Close ends it. No more than some of it is held, so
// that a text may be long. Until Close nothing else may be written.
func (w *Writer) NoteWriter(name string) io.WriteCloser {
	return &noteWriter{w: w, name: name, b: make([]byte, 0, maxText)}
}

type noteWriter struct {
	w    *Writer
	name string
	n    int    // pieces written
	b    []byte // of the next one
}

func (n *noteWriter) Write(p []byte) (int, error) {
	if !isASCII(p) || bytes.IndexByte(p, 0) >= 0 {
		return 0, fmt.Errorf("nettrace: note %s: must be ASCII without NUL", n.name)
	}
	for rest := p; len(rest) > 0; {
		if len(n.b) == maxText {
			if err := n.Close(); err != nil {
				return 0, err
			}
		}
		k := min(len(rest), maxText-len(n.b))
		n.b, rest = append(n.b, rest[:k]...), rest[k:]
	}
	return len(p), nil
}

// isASCII looks at eight bytes at a time: a repair writes megabytes of notes.
func isASCII(p []byte) bool {
	const high = 0x8080808080808080
	for ; len(p) >= 8; p = p[8:] {
		if binary.LittleEndian.Uint64(p)&high != 0 {
			return false
		}
	}
	for _, b := range p {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Close writes what is left.
func (n *noteWriter) Close() error {
	w := n.w
	if len(n.b) == 0 || w.err != nil {
		return w.err
	}
	w.define(&Metadata{Provider: noteProvider, EventID: textEvent, Name: fmt.Sprintf("%s %d %s", n.name, n.n, n.b)}, w.last)
	n.n, n.b = n.n+1, n.b[:0]
	if len(w.metas.b) >= noteBlock {
		w.flushMetadata()
		return w.flushOut()
	}
	return w.err
}

// Note returns at the end of a file the text that Writer.Note has put into it under this name.
func (r *Reader) Note(name string) string {
	var b strings.Builder
	n := 0
	for _, m := range r.meta.all {
		if m.Provider != noteProvider || m.EventID != textEvent {
			continue
		}
		if piece, ok := strings.CutPrefix(m.Name, fmt.Sprintf("%s %d ", name, n)); ok {
			b.WriteString(piece)
			n++
		}
	}
	return b.String()
}

// lostInCopy is what a copy of the file read will have lost, of which so many places are known to be damaged.
func (r *Reader) lostInCopy(leftOut, damaged int64) *Salvage {
	s := &Salvage{Places: max(r.stats.Defects, damaged, 1), LostBytes: r.stats.LostBytes, LeftOut: leftOut, Cut: !r.stats.Ended}
	if before := r.Salvage(); before != nil {
		s.Places, s.LostBytes, s.LeftOut, s.Cut = s.Places+before.Places, s.LostBytes+before.LostBytes, s.LeftOut+before.LeftOut, s.Cut || before.Cut
	}
	return s
}
