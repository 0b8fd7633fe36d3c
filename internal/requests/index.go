package requests

import (
	"cmp"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Index tell which activity is which HTTP request. The zero value is empty.
type Index struct {
	rows   map[requestKey]row
	names  [][2]string // URL and title, each pair once
	number map[[2]string]uint32
}

// An id may come again; it does not at the same time.
type requestKey struct {
	id    [16]byte
	start int64
}

type row struct {
	id   int32
	name uint32 // in Index.names
}

func (r *Index) add(activity [16]byte, start int64, id int, url, title string) {
	if activity == ([16]byte{}) {
		return
	}
	if r.rows == nil {
		r.rows, r.number = map[requestKey]row{}, map[[2]string]uint32{}
	}
	name := [2]string{url, title}
	n, ok := r.number[name]
	if !ok {
		n = uint32(len(r.names))
		r.names, r.number[name] = append(r.names, name), n
	}
	r.rows[requestKey{activity, start}] = row{int32(id), n}
}

// Client adds a request that the process sent.
func (r *Index) Client(q *httpphases.Request) {
	r.add(q.Activity, q.Start, q.ID, q.URL(), title(q.Method, httpphases.Route(q.Target)))
}

// Server adds a request that the process served.
func (r *Index) Server(q *httpphases.ServerRequest) {
	r.add(q.Activity, q.Start, q.ID, q.Target, title(q.Method, cmp.Or(q.Route, httpphases.Route(q.Target))))
}

// title is what requests for one thing have in common.
func title(method, route string) string {
	if method == "" {
		return route
	}
	return method + " " + route
}

// Name notes in the activities of p which request they are.
func (r *Index) Name(p *profile.Profile) {
	for i, a := range p.Activities.All() {
		if x, ok := r.rows[requestKey{a.ID, a.Start}]; ok {
			p.Activities.SetRequest(i, int(x.id), r.names[x.name][0], r.names[x.name][1])
		}
	}
}
