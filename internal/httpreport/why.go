package httpreport

import (
	"github.com/tracefix/tracefix/httpphases"
)

// why appends where the time of a request went.
func (o *object) why(w *httpphases.Explanation) {
	if w == nil {
		return
	}
	o.key("time")
	o.b = appendTime(o.b, w)
	if w.CompileTotal > 0 {
		o.ms("compile_ms", w.CompileTotal)
	}
	if w.Compiled > 0 {
		o.int("compiled", int64(w.Compiled))
	}
	o.list("exceptions", len(w.Exceptions), func(q *object, i int) {
		x := &w.Exceptions[i]
		q.str("type", x.Type)
		q.str("message", x.Message)
		q.str("cause", x.Cause)
		q.ms("at_ms", x.At)
		q.int("count", int64(x.Count))
	})
	o.list("hot", len(w.Hot), func(q *object, i int) {
		q.str("method", w.Hot[i].Method)
		q.ms("cpu_ms", w.Hot[i].Time)
	})
	o.list("blocked", len(w.Blocked), func(q *object, i int) {
		q.str("kind", w.Blocked[i].Kind)
		q.ms("ms", w.Blocked[i].Time)
		q.strs("frames", w.Blocked[i].Frames)
	})
	if s := w.Server; s != nil {
		o.key("server")
		o.b = AppendServerRequest(o.b, s)
		o.flag("server_guessed", w.ServerGuessed)
	}
	o.list("children", len(w.Children), func(q *object, i int) {
		c := &w.Children[i]
		q.str("name", c.Name)
		q.str("activity_path", c.Path)
		q.ms("start_ms", c.Start)
		if c.HasDuration {
			q.ms("duration_ms", c.Duration)
		}
	})
}

// AppendExplanation appends the keys that a row has for where its time went, without braces.
func AppendExplanation(b []byte, w *httpphases.Explanation) []byte {
	o := object{b, true}
	o.why(w)
	return o.b
}

// list appends an array of n objects, and nothing if n is 0.
func (o *object) list(k string, n int, each func(q *object, i int)) {
	if n == 0 {
		return
	}
	o.key(k)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		q := open(o.b)
		each(&q, i)
		o.b = q.close()
	}
	o.b = append(o.b, ']')
}

// appendTime appends the causes. Those of a blocked thread stand together. No CPU beside time of
// which nothing is known is CPU that the trace does not tell.
func appendTime(b []byte, w *httpphases.Explanation) []byte {
	t := &w.Time
	o := open(b)
	told := t.CPU > 0 || w.CPUTotal > 0 || t.Unknown == 0
	if told {
		o.ms("cpu_ms", t.CPU)
	}
	o.key("blocked_ms")
	q := open(o.b)
	for _, c := range []struct {
		k  string
		ns int64
	}{{"lock", t.Lock}, {"sleep", t.Sleep}, {"wait", t.Wait}, {"io", t.IO}, {"other", t.Other}} {
		if c.ns > 0 {
			q.ms(c.k, c.ns)
		}
	}
	o.b = q.close()
	o.ms("gc_ms", t.GC)
	o.ms("pool_ms", t.Pool)
	o.ms("other_side_ms", t.OtherSide)
	o.ms("await_ms", t.Await)
	o.ms("unknown_ms", t.Unknown)
	if told {
		o.ms("cpu_total_ms", w.CPUTotal)
	}
	return o.close()
}
