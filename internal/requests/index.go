package requests

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// Index tells which activity is which HTTP request. The zero value is empty.
type Index struct {
	log    spool.Log   // a requestRow each
	names  [][2]string // URL and title, each pair once
	number map[[2]string]uint32
}

// An id may come again; it does not at the same time, but in another process: two that are process
// 1 of their containers have the same ids.
type requestKey struct {
	process uint32
	id      [16]byte
	start   int64
}

// A requestRow is a request.
type requestRow struct {
	requestKey
	id   int32
	name uint32 // in Index.names
}

const (
	requestRowSize = 36
	indexMemory    = 2 << 20
)

func (r *Index) add(k requestKey, id int, url, title string) {
	if k.id == ([16]byte{}) {
		return
	}
	if r.number == nil {
		r.number, r.log = map[[2]string]uint32{}, spool.LogIn(input.Aside(1), indexMemory)
	}
	name := [2]string{url, title}
	n, ok := r.number[name]
	if !ok {
		n = uint32(len(r.names))
		r.names, r.number[name] = append(r.names, name), n
	}
	var b [requestRowSize]byte
	copy(b[:], k.id[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(k.start))
	binary.LittleEndian.PutUint32(b[24:], uint32(id))
	binary.LittleEndian.PutUint32(b[28:], n)
	binary.LittleEndian.PutUint32(b[32:], k.process)
	r.log.Add(b[:])
}

// row returns row i.
func (r *Index) row(i int) (x requestRow) {
	var b [requestRowSize]byte
	r.log.Get(b[:], int64(i)*requestRowSize)
	copy(x.requestKey.id[:], b[:])
	x.start, x.id, x.name = int64(binary.LittleEndian.Uint64(b[16:])), int32(binary.LittleEndian.Uint32(b[24:])), binary.LittleEndian.Uint32(b[28:])
	x.process = binary.LittleEndian.Uint32(b[32:])
	return x
}

// Client adds a request that the process sent.
func (r *Index) Client(q *httpphases.Request) {
	r.add(requestKey{q.Process, q.Activity, q.StartEvent}, q.ID, q.URL(), title(q.Method, httpphases.Route(q.Target)))
}

// Server adds a request that the process served.
func (r *Index) Server(q *httpphases.ServerRequest) {
	r.add(requestKey{q.Process, q.Activity, q.Start}, q.ID, cmp.Or(q.URL(), q.Target), title(q.Method, cmp.Or(q.Route, httpphases.Route(q.Target))))
}

// title is what requests for one thing have in common.
func title(method, route string) string {
	if method == "" {
		return route
	}
	return method + " " + route
}

// namedAtOnce is how many requests are looked for at once, and nearby how many activities around
// them are looked at.
const (
	namedAtOnce = 1 << 16
	nearby      = 1 << 15
)

// Name notes in the activities of p which request they are. Nothing is added any more. Requests
// stand in the order in which they ended, activities in that in which they were seen first: some
// requests at a time are looked for among the activities that began about when they did, and what
// is not found there among all.
func (r *Index) Name(p *profile.Profile) error {
	n := int(r.log.Len() / requestRowSize)
	some, left := map[requestKey]requestRow{}, map[requestKey]requestRow{}
	from := int32(0)
	for at := 0; at < n; at += namedAtOnce {
		clear(some)
		last := int64(math.MinInt64)
		for i := at; i < min(at+namedAtOnce, n); i++ {
			x := r.row(i)
			if _, twice := left[x.requestKey]; twice {
				left[x.requestKey] = x // the newest is meant
				continue
			}
			some[x.requestKey] = x
			last = max(last, x.start)
		}
		i, behind := max(0, from-nearby), 0
		for ; i < int32(p.Activities.Len()) && behind < nearby; i++ {
			if a := p.Activities.At(i); a.Start > last {
				behind++
			} else {
				behind = 0
				r.name(p, i, &a, some)
			}
		}
		from = i - int32(behind)
		maps.Copy(left, some)
	}
	if len(left) > 0 {
		for i, a := range p.Activities.All() {
			r.name(p, i, &a, left)
		}
	}
	return r.log.Err()
}

// name notes which of some requests an activity is. No other one of its process has begun with its
// id at its time; of those whose start is not in the trace there may be several.
func (r *Index) name(p *profile.Profile, i int32, a *profile.Activity, some map[requestKey]requestRow) {
	k := requestKey{a.Process, a.ID, a.Start}
	if x, ok := some[k]; ok {
		p.Activities.SetRequest(i, int(x.id), r.names[x.name][0], r.names[x.name][1])
		if a.Started {
			delete(some, k)
		}
	}
}
