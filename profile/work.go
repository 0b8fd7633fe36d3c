package profile

import (
	"encoding/binary"
	"iter"
)

// An Activity is one that threads worked for.
type Activity struct {
	ID       [16]byte // as it stands in events
	Name     string   // of its start event, without "Start"; empty if that is not in the trace
	Provider string
	Parent   int32 // index in Profile.Activities; -1: none
	Start    int64 // ns; only if Started
	Started  bool
	// Lossy says that what wrote ID leaves numbers of the path out where they don't fit.
	Lossy bool
	// Request is the id of the HTTP request, client's or server's, that the activity is;
	// 0: it is none. URL is what was asked for, of a server's the part behind the host, and
	// Title the method and the route: the path without what is another in each request.
	Request    int
	URL, Title string
}

// Activities is a list of activities, some 40 bytes each; a parent comes before its children. The
// zero value is empty.
type Activities struct {
	// Paths tells the path of an activity, //1/2/3, by its ID and Lossy; the id as text where it
	// holds no path. nil: nobody does.
	Paths func(id [16]byte, lossy bool) string

	chunks [][]activity
	paths  map[int32]string // by index: those that were told as text
	names  pairs            // name and provider
	titles pairs            // URL and title
}

// activityChunk is how many activities are kept side by side: the list never moves as a whole.
const activityChunk = 1 << 10

// An activity is an Activity as it is kept.
type activity struct {
	id      [16]byte
	start   int64
	parent  int32
	name    uint32 // in Activities.names
	title   uint32 // in Activities.titles
	request int32
	flags   uint8
}

const (
	activityStarted = 1 << iota
	activityLossy
)

// pairs are pairs of strings, each kept once.
type pairs struct {
	list   [][2]string
	number map[[2]string]uint32
}

func (p *pairs) add(a, b string) uint32 {
	k := [2]string{a, b}
	n, ok := p.number[k]
	if !ok {
		if p.number == nil {
			p.number = map[[2]string]uint32{}
		}
		n = uint32(len(p.list))
		p.list, p.number[k] = append(p.list, k), n
	}
	return n
}

// Len returns the number of activities.
func (l *Activities) Len() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return (len(l.chunks)-1)*activityChunk + len(l.chunks[len(l.chunks)-1])
}

// Add appends an activity and returns its index.
func (l *Activities) Add(a *Activity) int32 {
	n := len(l.chunks)
	if n == 0 || len(l.chunks[n-1]) == activityChunk {
		size := activityChunk
		if n == 0 {
			size = 0 // most traces have few
		}
		l.chunks, n = append(l.chunks, make([]activity, 0, size)), n+1
	}
	x := activity{id: a.ID, start: a.Start, parent: a.Parent, name: l.names.add(a.Name, a.Provider), request: int32(a.Request), title: l.titles.add(a.URL, a.Title)}
	if a.Started {
		x.flags |= activityStarted
	}
	if a.Lossy {
		x.flags |= activityLossy
	}
	l.chunks[n-1] = append(l.chunks[n-1], x)
	return int32(l.Len() - 1)
}

func (l *Activities) at(i int32) *activity { return &l.chunks[i/activityChunk][i%activityChunk] }

// At returns activity i.
func (l *Activities) At(i int32) Activity {
	x := l.at(i)
	name, title := l.names.list[x.name], l.titles.list[x.title]
	return Activity{
		ID: x.id, Name: name[0], Provider: name[1], Parent: x.parent, Start: x.start, Started: x.flags&activityStarted != 0, Lossy: x.flags&activityLossy != 0,
		Request: int(x.request), URL: title[0], Title: title[1],
	}
}

// All yields all activities with their indices.
func (l *Activities) All() iter.Seq2[int32, Activity] {
	return func(yield func(int32, Activity) bool) {
		for i := range int32(l.Len()) {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// Parent returns the index of the parent of activity i; -1: none.
func (l *Activities) Parent(i int32) int32 { return l.at(i).parent }

// Path returns the path of activity i: //1/2/3; its id as text where it holds no path.
func (l *Activities) Path(i int32) string {
	x := l.at(i)
	if l.Paths == nil {
		return l.paths[i]
	}
	return l.Paths(x.id, x.flags&activityLossy != 0)
}

// SetPath says what Path returns for activity i, where Paths is nil.
func (l *Activities) SetPath(i int32, path string) {
	if l.paths == nil {
		l.paths = map[int32]string{}
	}
	l.paths[i] = path
}

// RequestOf returns the id of the HTTP request that activity i is or lies in; 0: none.
func (l *Activities) RequestOf(i int32) int {
	for ; i >= 0; i = l.at(i).parent {
		if n := l.at(i).request; n != 0 {
			return int(n)
		}
	}
	return 0
}

// SetRequest says which HTTP request activity i is.
func (l *Activities) SetRequest(i int32, id int, url, title string) {
	x := l.at(i)
	x.request, x.title = int32(id), l.titles.add(url, title)
}

// A Work is a stretch of time in which it is known for whom a thread worked.
type Work struct {
	From, To int64 // ns; an instant at To belongs to it, one at From does not
	Activity int32 // index in Profile.Activities; -1: for none
}

// Works is a list of stretches, some five bytes each, in order of time. The zero value is empty.
type Works struct {
	b    []byte
	prev Work // the one before last
	last Work
	any  bool
}

// Add appends a stretch of time.
func (l *Works) Add(w Work) {
	if l.any && l.last.To == w.From && l.last.Activity == w.Activity {
		l.last.To = w.To
		return
	}
	if l.any {
		l.b = appendWork(l.b, &l.prev, &l.last)
		l.prev = l.last
	}
	l.last, l.any = w, true
}

// appendWork appends w as what it differs in from the stretch before.
func appendWork(b []byte, before, w *Work) []byte {
	b = binary.AppendVarint(b, w.From-before.To)
	b = binary.AppendVarint(b, w.To-w.From)
	return binary.AppendVarint(b, int64(w.Activity)-int64(before.Activity))
}

// All yields the stretches.
func (l *Works) All() iter.Seq[Work] {
	return func(yield func(Work) bool) {
		for c := l.Cursor(); c.next(); {
			if !yield(c.w) {
				return
			}
		}
	}
}

// At returns what the thread worked for at a time, nil if the trace does not tell. A cursor
// finds many.
func (l *Works) At(at int64) *Work {
	c := l.Cursor()
	return c.At(at)
}

// A WorkCursor finds the work at times that are asked for in order.
type WorkCursor struct {
	b    []byte
	last Work // behind those of b
	left bool // last is still to come
	w    Work // the newest that was reached
	on   bool // it is not over
}

// Cursor returns a cursor at the start.
func (l *Works) Cursor() WorkCursor { return WorkCursor{b: l.b, last: l.last, left: l.any} }

// next goes to the next stretch; false behind the last one.
func (c *WorkCursor) next() bool {
	switch c.on = true; {
	case len(c.b) > 0:
		c.w.From = c.w.To + c.varint()
		c.w.To = c.w.From + c.varint()
		c.w.Activity += int32(c.varint())
	case c.left:
		c.w, c.left = c.last, false
	default:
		c.on = false
	}
	return c.on
}

func (c *WorkCursor) varint() int64 {
	v, n := binary.Varint(c.b)
	c.b = c.b[n:]
	return v
}

// At does what Works.At does.
func (c *WorkCursor) At(at int64) *Work {
	for !c.on || c.w.To < at {
		if !c.next() {
			return nil
		}
	}
	if c.w.From >= at {
		return nil
	}
	return &c.w
}
