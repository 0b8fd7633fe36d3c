package requests

import (
	"cmp"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Index tell which activity is which HTTP request. The zero value is empty.
type Index struct{ rows map[requestKey]row }

// An id may come again; it does not at the same time.
type requestKey struct {
	id    [16]byte
	start int64
}

type row struct {
	id         int
	url, title string
}

func (r *Index) add(id [16]byte, start int64, x row) {
	if r.rows == nil {
		r.rows = map[requestKey]row{}
	}
	if id != ([16]byte{}) {
		r.rows[requestKey{id, start}] = x
	}
}

// Client adds a request that the process sent.
func (r *Index) Client(q *httpphases.Request) {
	r.add(q.Activity, q.Start, row{q.ID, q.URL(), title(q.Method, httpphases.Route(q.Target))})
}

// Server adds a request that the process served.
func (r *Index) Server(q *httpphases.ServerRequest) {
	r.add(q.Activity, q.Start, row{q.ID, q.Target, title(q.Method, cmp.Or(q.Route, httpphases.Route(q.Target)))})
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
			p.Activities.SetRequest(i, x.id, x.url, x.title)
		}
	}
}
