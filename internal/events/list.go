package events

import (
	"cmp"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
)

// reportMemory is how many bytes of what a report is about stay in memory: there may be millions of such.
const reportMemory = 4 << 20

// lists are those of several processes.
type lists[T any] struct { // T holds no pointers
	aside *spool.Spool
	pids  []int // in the order of their first records
	of    map[int]*spool.List[T]
}

func listsIn[T any](s *spool.Spool) lists[T] {
	return lists[T]{aside: s, of: map[int]*spool.List[T]{}}
}

func (l *lists[T]) add(pid int, x *T) {
	own := l.of[pid]
	if own == nil {
		own = spool.ListIn[T](l.aside)
		l.of[pid] = own
		l.pids = append(l.pids, pid)
	}
	own.Add(x)
}

// list returns that of a process.
func (l *lists[T]) list(pid int) *spool.List[T] {
	if own := l.of[pid]; own != nil {
		return own
	}
	return spool.ListIn[T](nil)
}

// longest finds the n longest times of a list, and of equal ones the first.
type longest struct {
	n     int
	first []numbered
}

// A numbered time is that of the record with this number.
type numbered struct {
	ns int64
	at int
}

// add adds a time. They come in order of their numbers.
func (l *longest) add(ns int64, at int) {
	if l.first = append(l.first, numbered{ns, at}); len(l.first) >= 2*l.n+1024 { // most of them are not among the longest
		l.cut()
	}
}

func (l *longest) cut() {
	text.SortRows(l.first, func(a, b *numbered) int { return cmp.Compare(b.ns, a.ns) })
	l.first = l.first[:min(l.n, len(l.first))]
}

// numbers returns those of the longest, the longest first.
func (l *longest) numbers() []int {
	l.cut()
	var numbers []int
	for _, x := range l.first {
		numbers = append(numbers, x.at)
	}
	return numbers
}
