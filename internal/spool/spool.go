// Package spool keeps pieces of bytes that do not fit into memory in a file: samples and repairs of
// a profile, activities and what tracks tell, and events until the names of their frames are known.
package spool

import (
	"cmp"
	"fmt"
	"io"
	"sync"
)

// A Spool takes pieces beyond some megabytes to a file. The zero value and nil take none. Where
// there is no file to be had, or no room in it, pieces stay in memory too. It may be used by
// several goroutines.
type Spool struct {
	// Create makes the file, when it is needed.
	Create func() (File, error)
	// Memory is how many bytes stay in memory; 0 means defaultHeld.
	Memory int64

	mu   sync.Mutex
	held int64 // bytes of pieces in memory
	file File
	full bool  // nothing more goes into the file
	end  int64 // of the file
	err  error // that a reading had
}

// A File is what a Spool writes to and reads from, at several places at once.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// defaultHeld is what the samples of some 40 MB of nettrace take.
const defaultHeld = 6 << 20

// Put writes a piece to the file and returns where it is: at, where it was before (0: nowhere), or
// a place of its own, which has room for so many bytes. 0: it stays in memory.
func (p *Spool) Put(b []byte, at int64, room int) int64 {
	if p == nil || p.Create == nil || len(b) > room {
		return 0
	}
	p.mu.Lock()
	if at == 0 {
		if p.held+int64(len(b)) <= cmp.Or(p.Memory, defaultHeld) || p.full {
			p.held += int64(len(b))
			p.mu.Unlock()
			return 0
		}
		if p.file == nil {
			var err error
			if p.file, err = p.Create(); err != nil {
				p.full = true
				p.mu.Unlock()
				return 0
			}
			p.end = int64(room) // 0 is no place
		}
		at = p.end
		p.end += int64(room)
	}
	file := p.file
	p.mu.Unlock()
	if _, err := file.WriteAt(b, at); err != nil {
		p.mu.Lock()
		p.full = true
		p.mu.Unlock()
		return 0
	}
	return at
}

// InUse reports whether there is a file that takes more.
func (p *Spool) InUse() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.file != nil && !p.full
}

// Much reports whether there is so much more in the file than in memory that what is there might as
// well be in the file.
func (p *Spool) Much() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.full && p.end > 8*cmp.Or(p.Memory, defaultHeld)
}

// Get reads the piece of len(b) bytes that is at a place. It reports whether it could; see Err.
func (p *Spool) Get(b []byte, at int64) bool {
	if _, err := p.file.ReadAt(b, at); err != nil {
		p.mu.Lock()
		p.err = cmp.Or(p.err, fmt.Errorf("what was put aside on disk cannot be read again (TMPDIR names another folder for it): %w", err))
		p.mu.Unlock()
		return false
	}
	return true
}

// Err is the error that reading the file had: pieces that were asked for since are not what they were.
func (p *Spool) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
