package activity

import (
	"iter"

	"github.com/tracefix/tracefix/internal/spool"
)

// A Forest is rows as trees, in some 12 bytes each; see Options.Spool.
type Forest struct {
	links spool.Pages[linkPage]
	first int32 // 1 + the first tree's row; 0: there is none
}

// linkMemory is how many bytes of links stay in memory where there is a Spool.
const linkMemory = 2 << 20

const linksAtOnce = 1 << 11

type linkPage [linksAtOnce]link

// A link is where a row is in a Forest. All are 1 + the row; 0: there is none.
type link struct {
	up    int32 // the row above it that is in the Forest, too
	first int32 // below it; leftOut of a row that is not in the Forest
	next  int32 // beside it
}

const leftOut = -1

// Forest returns the rows that keep wants, nil: all. What lies below one that it does not want moves up.
func (t *Rows) Forest(keep func(i int, r *Row) bool) *Forest { return t.forest(keep, linkMemory) }

func (t *Rows) forest(keep func(i int, r *Row) bool, memory int) *Forest {
	f := &Forest{links: spool.PagesIn[linkPage](t.spool, memory)}
	for i, r := range t.All() {
		if i%linksAtOnce == 0 {
			f.links.Add()
		}
		up := int32(1 + r.Parent) // its own links are known: a parent comes before its children
		if up > 0 {
			if above := f.at(up); above.first == leftOut {
				up = above.up
			}
		}
		x := f.change(int32(1 + i))
		if x.up = up; keep != nil && !keep(i, r) {
			x.first = leftOut
		}
	}
	for i := int32(t.Len()); i > 0; i-- { // backwards: lists come out in order of start
		x := f.at(i)
		if x.first == leftOut {
			continue
		}
		head := &f.first
		if x.up > 0 {
			head = &f.change(x.up).first
		}
		next := *head
		*head = i
		f.change(i).next = next
		if (i-1)%linksAtOnce == 0 {
			f.links.Trim()
		}
	}
	f.links.Done()
	return f
}

func (f *Forest) at(i int32) link { return f.links.At(int(i-1) / linksAtOnce)[(i-1)%linksAtOnce] }

func (f *Forest) change(i int32) *link {
	return &f.links.Mut(int(i-1) / linksAtOnce)[(i-1)%linksAtOnce]
}

// All yields the numbers of the rows, each before those below it, in order of start, and how many
// are above it.
func (f *Forest) All() iter.Seq2[int, int] {
	return func(yield func(row, level int) bool) {
		level := 0
		for i := f.first; i > 0; {
			if !yield(int(i-1), level) {
				return
			}
			x := f.at(i)
			if x.first > 0 {
				i = x.first
				level++
				continue
			}
			for x.next == 0 && x.up > 0 {
				level--
				x = f.at(x.up)
			}
			i = x.next
		}
	}
}
