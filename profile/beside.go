package profile

import (
	"iter"

	"github.com/tracefix/tracefix/internal/spool"
)

// A beside is a list of what a thread has beside its samples, in their order. The zero value is
// empty and keeps all in memory.
type beside[T any] struct {
	spool *Spool
	list  *spool.List[T] // nil: there are none
}

// Append appends one.
func (l *beside[T]) Append(x T) {
	if l.list == nil {
		l.list = spool.ListIn[T](l.spool)
	}
	l.list.Add(&x)
}

// Len is how many there are.
func (l *beside[T]) Len() int {
	if l.list == nil {
		return 0
	}
	return l.list.Len()
}

// All yields them.
func (l *beside[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for c := l.cursor(); c.Peek() != nil; c.Next() {
			if !yield(*c.Peek()) {
				return
			}
		}
	}
}

func (l *beside[T]) cursor() spool.Cursor[T] {
	if l.list == nil {
		return spool.Cursor[T]{}
	}
	return l.list.From(0)
}
