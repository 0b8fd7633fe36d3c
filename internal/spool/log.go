package spool

// A Log is pieces of bytes, one behind the other, of which the newest are in memory. The zero value
// is empty and keeps all in memory.
type Log struct {
	pages Pages[logPage]
	end   int64
}

type logPage [1 << 16]byte

// LogIn returns a Log of which about that many bytes stay in memory; the others go to s.
func LogIn(s *Spool, memory int) Log { return Log{pages: PagesIn[logPage](s, memory)} }

// Add appends a piece and returns its place.
func (l *Log) Add(b []byte) int64 {
	at := l.end
	for len(b) > 0 {
		i, from := int(l.end/int64(len(logPage{}))), int(l.end%int64(len(logPage{})))
		var page *logPage
		if i == l.pages.Len() {
			page = l.pages.Add()
		} else {
			page = l.pages.Mut(i)
		}
		n := copy(page[from:], b)
		b = b[n:]
		l.end += int64(n)
	}
	return at
}

// Len is how many bytes there are: the place of the next piece.
func (l *Log) Len() int64 { return l.end }

// Err is the error that the Spool had.
func (l *Log) Err() error { return l.pages.Err() }

// Done says that nothing is added any more: any number of goroutines may call Get.
func (l *Log) Done() { l.pages.Done() }

// Get fills b with what is at a place.
func (l *Log) Get(b []byte, at int64) {
	for len(b) > 0 {
		n := copy(b, l.pages.At(int(at / int64(len(logPage{}))))[at%int64(len(logPage{})):])
		b = b[n:]
		at += int64(n)
	}
}

// Peek fills b with what is at a place, and reads no more than that from the disk: for who reads a
// little here and there.
func (l *Log) Peek(b []byte, at int64) {
	for len(b) > 0 {
		from := int(at % int64(len(logPage{})))
		n := min(len(b), len(logPage{})-from)
		l.pages.pages.peek(b[:n], int(at/int64(len(logPage{}))), from)
		b = b[n:]
		at += int64(n)
	}
}
