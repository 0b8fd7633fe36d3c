package compare

import (
	"cmp"
	"iter"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
)

// A Request is one that was served, or where none was, one that was made.
type Request struct {
	Duration int64 // ns; -1: not told
	start    int64 // ns
	ID       int32 // from 1 on
	asked    int32 // for what, a number of Requests
	process  uint32
	answer   answer
}

// An answer is how a request ended, as far as the share of errors goes by it.
type answer uint8

const (
	unended  answer = iota // it had not ended, as far as the trace tells
	ended                  // without a failure; no event tells its status
	fine                   // answered with a status below 400
	upgraded               // to a WebSocket: it lasts as long as who talks there wants
	refused                // answered with another one
	failed                 // or canceled, without an answer
)

// answerOf returns that of a request.
func answerOf(o httpphases.Outcome, status int) answer {
	switch {
	case o == httpphases.Incomplete:
		return unended
	case status >= 400:
		return refused
	case o != httpphases.OK:
		return failed
	case status > 0:
		return fine
	}
	return ended
}

// answerOfServed returns that of a request that was served. A WebSocket that failed, or is open yet, is like others.
func answerOfServed(r *httpphases.ServerRequest) answer {
	end := answerOf(r.Outcome, r.Status)
	if r.Upgraded() && (end == ended || end == fine) {
		return upgraded
	}
	return end
}

// asked is what requests of one kind ask for.
type asked struct {
	Route string // with the method before it, where that is told
	path  string // of the route, without the method
	url   string // if requests are selected by it
}

// Requests are those of one side, in the order of their ends. There may be millions: most of them
// are on disk.
type Requests struct {
	rows    spool.Pages[requestPage]
	n       int
	kinds   []asked
	kind    map[[3]string]int32
	urls    bool // kinds have theirs
	methods bool // of any the method is told
	paths   bool // of any what was asked for is told
	aside   *spool.Spool
}

const requestsOnPage = 512

type requestPage [requestsOnPage]Request

// What stays in memory of the requests of a side, and of numbers that are kept by number, bytes.
const (
	requestMemory = 1 << 20
	numberMemory  = 2 << 20
)

// newRequests returns a list of none.
func newRequests(urls bool) *Requests {
	aside := input.Aside(1)
	return &Requests{kind: map[[3]string]int32{}, urls: urls, aside: aside, rows: spool.PagesIn[requestPage](aside, requestMemory)}
}

func (l *Requests) add(id int, method, route, url string, process uint32, start, duration int64, ended bool, end answer) {
	if !ended {
		duration = -1
	}
	if !l.urls {
		url = ""
	}
	l.methods, l.paths = l.methods || method != "", l.paths || route != ""
	k := [3]string{method, route, url}
	of, ok := l.kind[k]
	if !ok {
		of = int32(len(l.kinds))
		l.kinds, l.kind[k] = append(l.kinds, asked{strings.TrimSpace(method + " " + route), route, url}), of
	}
	l.append(&Request{duration, start, int32(id), of, process, end})
}

// named reports whether of any of them is told what was asked for.
func (l *Requests) named() bool { return l != nil && l.paths }

func (l *Requests) addServed(r *httpphases.ServerRequest) {
	start := r.Start
	if r.StartUnknown { // what is told of it is its end
		start += r.Duration
	}
	l.add(r.ID, r.Method, cmp.Or(r.Route, httpphases.Route(r.Target)), r.Target, r.Process, start, r.Duration, r.Whole(), answerOfServed(r))
}

func (l *Requests) append(r *Request) {
	i := l.n / requestsOnPage
	if i == l.rows.Len() {
		l.rows.Add()
	}
	l.rows.Mut(i)[l.n%requestsOnPage] = *r
	l.n++
}

// routesAlike leaves the methods of requests away where none is told of the other trace: System.Net.Http has
// none, and the DiagnosticSource bridge has. What was asked for would all seem to be something else.
func routesAlike(a, b *Requests) {
	if a.Len() == 0 || b.Len() == 0 || a.methods == b.methods {
		return
	}
	for _, l := range []*Requests{a, b} {
		for i := range l.kinds {
			l.kinds[i].Route = l.kinds[i].path
		}
	}
}

// Len returns how many there are; nil has none.
func (l *Requests) Len() int {
	if l == nil {
		return 0
	}
	return l.n
}

// all yields them; each is valid until the next one.
func (l *Requests) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if l == nil {
			return
		}
		room := new(requestPage)
		for at := 0; at < l.n; at += requestsOnPage {
			page := l.rows.View(at/requestsOnPage, room)
			for i := range min(requestsOnPage, l.n-at) {
				if !yield(&page[i]) {
					return
				}
			}
		}
	}
}

// of returns what r asks for.
func (l *Requests) of(r *Request) *asked { return &l.kinds[r.asked] }

// chosen returns those that are wanted.
func (l *Requests) chosen(wanted func(*Request) bool) *Requests {
	list := newRequests(l.urls)
	list.kinds, list.kind, list.methods = l.kinds, l.kind, l.methods
	for r := range l.all() {
		if wanted(r) {
			list.append(r)
		}
	}
	return list
}

// Err is the error that reading them had: what was told of them is not to be believed then.
func (l *Requests) Err() error {
	if l == nil {
		return nil
	}
	return l.aside.Err()
}

// numbers are numbers by number, 0 where none was set. Most of them are on disk, near the others of
// that place.
type numbers struct{ pages spool.Pages[numberPage] }

type numberPage [1 << 12]int32

// numbers returns such numbers, which share the file of l and its error.
func (l *Requests) numbers() numbers {
	return numbers{spool.PagesIn[numberPage](l.aside, numberMemory)}
}

func (x *numbers) set(i int, n int32) {
	for i/len(numberPage{}) >= x.pages.Len() {
		x.pages.Add()
	}
	x.pages.Mut(i / len(numberPage{}))[i%len(numberPage{})] = n
}

// done says that no number is set any more.
func (x *numbers) done() { x.pages.Done() }

func (x *numbers) get(i int) int32 {
	if i < 0 || i/len(numberPage{}) >= x.pages.Len() {
		return 0
	}
	return x.pages.At(i / len(numberPage{}))[i%len(numberPage{})]
}
