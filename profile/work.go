package profile

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
)

// An Activity is one that threads worked for.
type Activity struct {
	Process  uint32   // its id; 0: not told
	ID       [16]byte // as it stands in events
	Name     string   // of its start event, without "Start"; empty if that is not in the trace
	Provider string
	Parent   int32 // index in Profile.Activities; -1: none
	Start    int64 // ns; only if Started
	Started  bool
	// Request is the id of the HTTP request, client's or server's, that the activity is;
	// 0: it is none. URL is what was asked for, of a server's the part behind the host, and
	// Title the method and the route: the path without what is another in each request.
	Request    int
	URL, Title string
}

// Activities is a list of activities, some 50 bytes each; a parent comes before its children. The
// zero value is empty.
type Activities struct {
	// Paths returns the path of an activity, //1/2/3, by its ID, and the process that stands in
	// that; the id as text and 0 where it holds no path. nil: nobody does.
	Paths func(id [16]byte) (process uint32, path string)
	// Spool takes all but some megabytes; set before the first Add. nil: all stay in memory.
	Spool *Spool

	n      int
	pages  spool.Pages[activityPage]
	paths  map[int32]string // by index: those that were told as text
	names  pairs            // name and provider
	titles pairs            // URL and title
}

const activitiesAtOnce = 1 << 9

// An activityPage is so many activities side by side.
type activityPage [activitiesAtOnce]activity

const activityMemory = 4 << 20

// An activity is an Activity as it is kept.
type activity struct {
	id      [16]byte
	start   int64
	parent  int32
	name    uint32 // in Activities.names
	title   uint32 // in Activities.titles
	request int32
	process uint32
	started bool
}

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
func (l *Activities) Len() int { return l.n }

// Add appends an activity and returns its index.
func (l *Activities) Add(a *Activity) int32 {
	if l.n == 0 {
		l.pages = spool.PagesIn[activityPage](l.Spool, activityMemory)
	}
	if l.n%activitiesAtOnce == 0 {
		l.pages.Add()
	}
	x := activity{process: a.Process, id: a.ID, start: a.Start, parent: a.Parent, name: l.names.add(a.Name, a.Provider), request: int32(a.Request), title: l.titles.add(a.URL, a.Title), started: a.Started}
	l.pages.Mut(l.n / activitiesAtOnce)[l.n%activitiesAtOnce] = x
	l.n++
	return int32(l.n - 1)
}

// Done says that nothing is added or set any more: any number of goroutines may read.
func (l *Activities) Done() { l.pages.Done() }

func (l *Activities) at(i int32) *activity {
	return &l.pages.At(int(i / activitiesAtOnce))[i%activitiesAtOnce]
}

// At returns activity i.
func (l *Activities) At(i int32) Activity { return l.told(l.at(i)) }

// told returns an activity as it is told.
func (l *Activities) told(x *activity) Activity {
	name, title := l.names.list[x.name], l.titles.list[x.title]
	return Activity{
		Process: x.process, ID: x.id, Name: name[0], Provider: name[1], Parent: x.parent, Start: x.start, Started: x.started,
		Request: int(x.request), URL: title[0], Title: title[1],
	}
}

// All yields all activities with their indices.
func (l *Activities) All() iter.Seq2[int32, Activity] {
	return func(yield func(int32, Activity) bool) {
		var room activityPage
		for k := range l.pages.Len() {
			page := l.pages.View(k, &room)
			for i := range min(activitiesAtOnce, l.n-k*activitiesAtOnce) {
				if !yield(int32(k*activitiesAtOnce+i), l.told(&page[i])) {
					return
				}
			}
		}
	}
}

// Parent returns the index of the parent of activity i; -1: none.
func (l *Activities) Parent(i int32) int32 { return l.at(i).parent }

// Path returns the path of activity i: //1/2/3; its id as text where it holds no path.
func (l *Activities) Path(i int32) string {
	_, path := l.path(i)
	return path
}

func (l *Activities) path(i int32) (process uint32, path string) {
	if l.Paths == nil {
		return 0, l.paths[i]
	}
	return l.Paths(l.at(i).id)
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
	x := &l.pages.Mut(int(i / activitiesAtOnce))[i%activitiesAtOnce]
	x.request, x.title = int32(id), l.titles.add(url, title)
	l.pages.Trim()
}

// A Work is a stretch of time in which it is known for whom a thread worked.
type Work struct {
	From, To int64 // ns; an instant at To belongs to it, one at From does not
	Activity int32 // index in Profile.Activities; -1: for none
}

// Works is a list of stretches, some five bytes each, in order of time. The zero value is empty.
type Works struct {
	// Spool takes what does not fit into memory; set before the first Add. nil: all stays there.
	Spool *Spool

	pieces []workPiece
	b      []byte // behind those of pieces
	prev   Work   // the one before last
	last   Work
	any    bool
}

// A workPiece is stretches one behind the other, in memory or on disk.
type workPiece struct {
	b  []byte
	at int64
	n  int // bytes
}

// mostWork is how many bytes a stretch takes at most.
const mostWork = 3 * binary.MaxVarintLen64

// Add appends a stretch of time.
func (l *Works) Add(w Work) {
	if l.any && l.last.To == w.From && l.last.Activity == w.Activity {
		l.last.To = w.To
		return
	}
	if l.any {
		if len(l.b) > sizeOfChunk(len(l.pieces))-mostWork {
			l.putAside()
		}
		l.b = appendWork(l.b, &l.prev, &l.last)
		l.prev = l.last
	}
	l.last, l.any = w, true
}

// keep leaves the stretches that keep says yes of.
func (l *Works) keep(keep func(*Work) bool) {
	kept := Works{Spool: l.Spool}
	for w := range l.All() {
		if keep(&w) {
			kept.Add(w)
		}
	}
	*l = kept
}

// putAside begins a new piece.
func (l *Works) putAside() {
	if at := l.Spool.Put(l.b, 0, sizeOfChunk(len(l.pieces))); at > 0 {
		l.pieces, l.b = append(l.pieces, workPiece{at: at, n: len(l.b)}), l.b[:0]
	} else {
		l.pieces = append(l.pieces, workPiece{b: l.b})
		l.b = make([]byte, 0, sizeOfChunk(len(l.pieces)))
	}
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
	works  *Works
	pieces []workPiece // still to come
	b      []byte
	room   []byte // of what is read from the disk
	tail   bool   // what is behind the pieces is still to come
	left   bool   // and the last one
	w      Work   // the newest that was reached
	on     bool   // it is not over
}

// Cursor returns a cursor at the start. Nothing is added while it is used.
func (l *Works) Cursor() WorkCursor {
	return WorkCursor{works: l, pieces: l.pieces, tail: true, left: l.any}
}

// next goes to the next stretch; false behind the last one.
func (c *WorkCursor) next() bool {
	if len(c.b) == 0 {
		c.more()
	}
	switch c.on = true; {
	case len(c.b) > 0:
		c.w.From = c.w.To + c.varint()
		c.w.To = c.w.From + c.varint()
		c.w.Activity += int32(c.varint())
	case c.left:
		c.w, c.left = c.works.last, false
	default:
		c.on = false
	}
	return c.on
}

// more goes to the next piece. It is empty behind the last one, and if it cannot be read; see the
// Spool's Err.
func (c *WorkCursor) more() {
	switch {
	case len(c.pieces) > 0:
		p := c.pieces[0]
		c.pieces = c.pieces[1:]
		if c.b = p.b; p.b == nil {
			c.room = slices.Grow(c.room[:0], p.n)[:p.n]
			if c.b = c.room; !c.works.Spool.Get(c.b, p.at) {
				c.b, c.pieces, c.tail, c.left = nil, nil, false, false
			}
		}
	case c.tail:
		c.b, c.tail = c.works.b, false
	}
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
