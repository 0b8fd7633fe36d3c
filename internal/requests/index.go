package requests

import (
	"cmp"
	"hash/maphash"
	"math/bits"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Index tell which activity is which HTTP request, in some 20 bytes each. The zero value is empty.
type Index struct {
	rows   [][]row     // rowsAtOnce in each but the last
	names  [][2]string // URL and title, each pair once
	number map[[2]string]uint32
	seed   maphash.Seed
}

// An id may come again; it does not at the same time.
type requestKey struct {
	id    [16]byte
	start int64
}

const rowsAtOnce = 1 << 12

// A row is a request.
type row struct {
	key  uint64 // hash of the activity's id and start
	id   int32
	name uint32 // in Index.names
}

// key hashes with a secret of its own: no file can have two activities of one.
func (r *Index) key(activity [16]byte, start int64) uint64 {
	return maphash.Comparable(r.seed, requestKey{activity, start})
}

func (r *Index) add(activity [16]byte, start int64, id int, url, title string) {
	if activity == ([16]byte{}) {
		return
	}
	if r.rows == nil {
		r.number, r.seed = map[[2]string]uint32{}, maphash.MakeSeed()
	}
	name := [2]string{url, title}
	n, ok := r.number[name]
	if !ok {
		n = uint32(len(r.names))
		r.names, r.number[name] = append(r.names, name), n
	}
	k := len(r.rows)
	if k == 0 || len(r.rows[k-1]) == rowsAtOnce {
		r.rows = append(r.rows, nil)
		k++
	}
	r.rows[k-1] = append(r.rows[k-1], row{r.key(activity, start), int32(id), n})
}

// row returns the row of a number, 1 for the first.
func (r *Index) row(n int32) *row { return &r.rows[(n-1)/rowsAtOnce][(n-1)%rowsAtOnce] }

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

// Name notes in the activities of p which request they are. Nothing is added any more.
func (r *Index) Name(p *profile.Profile) {
	if len(r.rows) == 0 {
		return
	}
	n := len(r.rows) * rowsAtOnce
	at := make([]int32, 1<<bits.Len(uint(n+n/3))) // the number of the newest row of a key, from where the key says on
	slot := func(key uint64) *int32 {
		for i := key; ; i++ {
			if s := &at[i%uint64(len(at))]; *s == 0 || r.row(*s).key == key {
				return s
			}
		}
	}
	for k, rows := range r.rows {
		for i := range rows {
			*slot(rows[i].key) = int32(k*rowsAtOnce + i + 1)
		}
	}
	for i, a := range p.Activities.All() {
		if s := *slot(r.key(a.ID, a.Start)); s > 0 {
			x := r.row(s)
			p.Activities.SetRequest(i, int(x.id), r.names[x.name][0], r.names[x.name][1])
		}
	}
}
