package profile

import "sort"

// An Activity is one that threads worked for.
type Activity struct {
	ID       [16]byte // as it stands in events
	Path     string   // //1/2/3; the id as text where it holds no path
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

// A Work is a stretch of time in which it is known for whom a thread worked.
type Work struct {
	From, To int64 // ns; an instant at To belongs to it, one at From does not
	Activity int32 // index in Profile.Activities; -1: for none
}

// WorkAt returns what t worked for at a time, nil if the trace does not tell.
func (t *Thread) WorkAt(at int64) *Work {
	i := sort.Search(len(t.Work), func(i int) bool { return t.Work[i].To >= at })
	if i == len(t.Work) || t.Work[i].From >= at {
		return nil
	}
	return &t.Work[i]
}

// AddWork appends a stretch of time behind those of t.
func (t *Thread) AddWork(w Work) {
	if n := len(t.Work); n > 0 && t.Work[n-1].To == w.From && t.Work[n-1].Activity == w.Activity {
		t.Work[n-1].To = w.To
		return
	}
	t.Work = append(t.Work, w)
}

// A WorkCursor finds the work at times that are asked for in order.
type WorkCursor struct{ list []Work }

// WorkCursor returns a cursor at the start.
func (t *Thread) WorkCursor() WorkCursor { return WorkCursor{t.Work} }

// At returns what WorkAt does.
func (c *WorkCursor) At(at int64) *Work {
	for len(c.list) > 0 && c.list[0].To < at {
		c.list = c.list[1:]
	}
	if len(c.list) == 0 || c.list[0].From >= at {
		return nil
	}
	return &c.list[0]
}
