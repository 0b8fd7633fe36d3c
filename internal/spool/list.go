package spool

import "unsafe"

// A List is records of one type, one behind the other, of which the newest are in memory. The zero value is empty and
// keeps all in memory.
type List[T any] struct { // T holds no pointers: the collector does not see what is on disk
	log Log
	n   int
}

// ListIn returns a List of which about that many bytes stay in memory; the others go to s.
func ListIn[T any](s *Spool, memory int) *List[T] { return &List[T]{log: LogIn(s, memory)} }

// Add appends a record.
func (l *List[T]) Add(x *T) {
	l.log.Add(bytesOf(x))
	l.n++
}

// At returns a record.
func (l *List[T]) At(i int) (x T) {
	l.log.Get(bytesOf(&x), int64(i)*int64(unsafe.Sizeof(x)))
	return x
}

// Len returns the number of records.
func (l *List[T]) Len() int { return l.n }

// Done says that nothing is added any more: any number of goroutines may call At.
func (l *List[T]) Done() { l.log.Done() }

func bytesOf[T any](x *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x)) }
