package profile

import (
	"cmp"
	"fmt"
	"io"
	"sync"
)

// A Spool keeps samples and repairs of a profile out of memory: what its threads have beyond some megabytes goes to a
// file. The zero value and nil keep all in memory. Where there is no file to be had, or no room in it, samples
// stay in memory too.
type Spool struct {
	// Create makes the file, when it is needed.
	Create func() (SpoolFile, error)
	// Memory is how many bytes stay in memory; 0 means defaultHeld. Where there is a file, samples that are changed go there, too.
	Memory int64

	mu   sync.Mutex
	held int64 // bytes of full chunks in memory
	file SpoolFile
	full bool  // nothing more goes into the file
	end  int64 // of the file
	err  error // that a reading had
}

// A SpoolFile is what a Spool writes to and reads from, at several places at once.
type SpoolFile interface {
	io.ReaderAt
	io.WriterAt
}

// defaultHeld is what the samples of 75 MB of nettrace take.
const defaultHeld = 6 << 20

// spoolSlot is what a chunk has in the file, so that it may grow a little when it is edited.
const spoolSlot = chunkSize + chunkSize/4

// put writes a chunk to the file and returns where it is: at, where it was before (0: nowhere) and has room,
// or a place of its own. 0: it stays in memory.
func (p *Spool) put(b []byte, at int64) int64 {
	if p == nil || p.Create == nil {
		return 0
	}
	if len(b) > spoolSlot {
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
			p.end = spoolSlot // 0 is no place
		}
		at = p.end
		p.end += spoolSlot
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

// inUse reports whether there is a file that takes more.
func (p *Spool) inUse() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.file != nil && !p.full
}

// get reads a chunk.
func (p *Spool) get(b []byte, at int64) bool {
	if _, err := p.file.ReadAt(b, at); err != nil {
		p.mu.Lock()
		p.err = cmp.Or(p.err, fmt.Errorf("what was put aside on disk cannot be read again: %w", err))
		p.mu.Unlock()
		return false
	}
	return true
}

// Err is the error that reading the file had: samples that were asked for since are not what they were.
func (p *Spool) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
