package activity

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/internal/spool"
)

const (
	idsAtOnce = 1 << 8  // of a page: what is read for one id that is asked for
	idMemory  = 8 << 20 // bytes of pages in memory while they are filled, and a quarter of it then
)

type idPage [idsAtOnce]owned

// sortedIDs are ids in order of their places, most of them on disk.
type sortedIDs struct {
	pages  spool.Pages[idPage]
	firsts []uint64 // place of the first id of each page
	n      int
}

// place is where id stands among others: by how it begins, so that those of paths, which are asked
// for in about the order in which they were given, are on few pages at a time; behind that by a
// hash, so that few have the same place, whatever a file says.
func (s *IDSet) place(id *owned) uint64 {
	return (binary.BigEndian.Uint64(id.id[:])&^(1<<24-1) | s.hash(id.process, &id.id)>>40) >> 1 // it is a signed number to a Sorter
}

// sortIDs takes the ids of a Sorter by their places.
func sortIDs(set *IDSet, sorter *spool.Sorter[owned], s *spool.Spool) *sortedIDs {
	l := &sortedIDs{pages: spool.PagesIn[idPage](s, idMemory)}
	var same []owned // those of one place
	var place uint64
	for id := range sorter.Ascending {
		if p := set.place(id); p != place {
			same, place = same[:0], p
		}
		if slices.Contains(same, *id) {
			continue
		}
		same = append(same, *id)
		if l.n%idsAtOnce == 0 {
			l.pages.Add()
			l.firsts = append(l.firsts, place)
		}
		l.pages.Mut(l.n / idsAtOnce)[l.n%idsAtOnce] = *id
		l.n++
	}
	l.pages.Done()
	return l
}

// has reports whether id is in l, which is that of set.
func (l *sortedIDs) has(set *IDSet, id *owned) bool {
	place := set.place(id)
	page := sort.Search(len(l.firsts), func(i int) bool { return l.firsts[i] >= place })
	if page > 0 { // it may begin on the page before
		page--
	}
	for ; page < len(l.firsts) && l.firsts[page] <= place; page++ {
		ids := l.pages.At(page)[:min(idsAtOnce, l.n-page*idsAtOnce)]
		at := sort.Search(len(ids), func(i int) bool { return set.place(&ids[i]) >= place })
		for ; at < len(ids); at++ {
			if ids[at] == *id {
				return true
			}
			if set.place(&ids[at]) != place {
				return false
			}
		}
	}
	return false
}
