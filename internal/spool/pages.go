package spool

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Pages are pages of memory, all of one type, not all of which need to be in memory: those that
// were there longest go to a Spool, and come back when they are looked at. The zero value is empty
// and keeps all in memory. A copy is the same pages, but for the zero value's.
//
// Who fills them is alone with them. When all is filled (Done), any number of goroutines may look (At).
type Pages[T any] struct { // T holds no pointers: the collector does not see what is on disk
	pages *pages
}

// PagesIn returns pages of which about that many bytes stay in memory, a quarter of that when all
// is filled; the others go to s.
func PagesIn[T any](s *Spool, memory int) Pages[T] {
	var page T
	size := int(unsafe.Sizeof(page))
	return Pages[T]{&pages{spool: s, size: size, most: max(4, memory/size)}}
}

// Len returns the number of pages.
func (p *Pages[T]) Len() int {
	if p.pages == nil {
		return 0
	}
	return len(p.pages.list)
}

// Add appends a page of zeros.
func (p *Pages[T]) Add() *T {
	if p.pages == nil {
		*p = PagesIn[T](nil, 0)
	}
	return (*T)(p.pages.add())
}

// At returns a page, which is not to be changed.
func (p *Pages[T]) At(i int) *T {
	if memory := atomic.LoadPointer(&p.pages.list[i].memory); memory != nil {
		return (*T)(memory)
	}
	return (*T)(p.pages.back(i))
}

// View returns a page as it is now, for who goes through all of them: in room, if it is on disk or
// may still be changed.
func (p *Pages[T]) View(i int, room *T) *T {
	memory := atomic.LoadPointer(&p.pages.list[i].memory)
	switch {
	case memory == nil:
		p.pages.read(i, unsafe.Pointer(room))
	case p.pages.done:
		return (*T)(memory)
	default:
		*room = *(*T)(memory)
	}
	return room
}

// Mut returns a page that may be changed. Before Done, neither it nor one of At is to be used any
// more when Add or Trim are called.
func (p *Pages[T]) Mut(i int) *T {
	p.pages.list[i].changed = true
	return p.At(i)
}

// Trim puts aside what is too much for the memory.
func (p *Pages[T]) Trim() {
	if p.pages != nil {
		p.pages.trim()
	}
}

// Cut drops the pages from n on.
func (p *Pages[T]) Cut(n int) {
	if p.pages != nil {
		p.pages.list = p.pages.list[:n]
		p.pages.here = slices.DeleteFunc(p.pages.here, func(i int32) bool { return int(i) >= n })
	}
}

// Done says that no page is changed any more.
func (p *Pages[T]) Done() {
	if p.pages != nil && !p.pages.done {
		p.pages.most = max(4, p.pages.most/4) // who looks goes through most of them in order
		p.pages.trim()
		p.pages.done, p.pages.free = true, nil
	}
}

// Err is the error that the Spool had.
func (p *Pages[T]) Err() error {
	if p.pages == nil {
		return nil
	}
	return p.pages.spool.Err()
}

// pages do what Pages do, whatever is in them.
type pages struct {
	spool *Spool
	size  int // bytes of a page
	most  int // pages in memory
	list  []pageSlot
	done  bool
	free  []unsafe.Pointer // pages that nobody looks at any more

	mu   sync.Mutex // of here while there are several who look
	here []int32    // pages in memory that may leave it, the one that came first is the first
}

type pageSlot struct {
	memory  unsafe.Pointer // nil: on disk
	at      int64          // there; 0: nowhere
	changed bool           // since it was written there
}

func (p *pages) add() unsafe.Pointer {
	p.trim()
	s := pageSlot{memory: p.room(), changed: true}
	clear(p.bytes(s.memory))
	p.list = append(p.list, s)
	p.here = append(p.here, int32(len(p.list)-1))
	return s.memory
}

// room returns room for a page, whatever is in it.
func (p *pages) room() unsafe.Pointer {
	if n := len(p.free); n > 0 {
		memory := p.free[n-1]
		p.free = p.free[:n-1]
		return memory
	}
	return memoryFor(p.size)
}

func (p *pages) bytes(memory unsafe.Pointer) []byte { return unsafe.Slice((*byte)(memory), p.size) }

// trim puts pages aside until one more may be in memory.
func (p *pages) trim() {
	if p.spool == nil || len(p.here) < p.most {
		return
	}
	n := len(p.here) - p.most + 1
	for _, i := range p.here[:n] {
		if memory := p.list[i].memory; p.leave(i) {
			p.free = append(p.free, memory)
		}
	}
	p.here = append(p.here[:0], p.here[n:]...)
}

// leave puts a page aside. It reports whether it could: one for which there is no room on disk
// stays for good.
func (p *pages) leave(i int32) bool {
	s := &p.list[i]
	if s.changed {
		at := p.spool.Put(p.bytes(s.memory), s.at, p.size)
		if at == 0 {
			return false
		}
		s.at, s.changed = at, false
	}
	atomic.StorePointer(&s.memory, nil)
	return true
}

// back reads a page.
func (p *pages) back(i int) unsafe.Pointer {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.list[i]
	if s.memory != nil { // another goroutine was faster
		return s.memory
	}
	memory := p.room()
	p.read(i, memory)
	atomic.StorePointer(&s.memory, memory)
	p.here = append(p.here, int32(i))
	for k := 0; k < len(p.here)-1 && len(p.here) > p.most; {
		if j := p.here[k]; p.list[j].changed && !p.done { // somebody may be about to change it once more
			k++
		} else {
			p.leave(j)
			p.here = slices.Delete(p.here, k, k+1)
		}
	}
	return memory
}

// read reads a page from the disk.
func (p *pages) read(i int, memory unsafe.Pointer) {
	if b := p.bytes(memory); !p.spool.Get(b, p.list[i].at) {
		clear(b) // Err tells
	}
}

// peek fills b with what is on a page from a byte on, which stays on disk if it is there.
func (p *pages) peek(b []byte, i, from int) {
	s := &p.list[i]
	if memory := atomic.LoadPointer(&s.memory); memory != nil {
		copy(b, p.bytes(memory)[from:])
	} else if !p.spool.Get(b, s.at+int64(from)) {
		clear(b) // Err tells
	}
}
