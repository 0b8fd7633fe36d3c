package requests

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

func TestOthers(t *testing.T) {
	served := func(id int, path string, from, to int64) *httpphases.ServerRequest {
		return &httpphases.ServerRequest{ID: id, Target: path, Start: from * 1e6, Duration: (to - from) * 1e6, HasDuration: true}
	}
	made := func(host, target string, server int) *httpphases.Request {
		return &httpphases.Request{Host: host, Target: target, Server: server, Start: 10e6, Duration: 90e6, HasDuration: true, BodyObserved: true}
	}
	for name, c := range map[string]struct {
		served  []*httpphases.ServerRequest
		made    *httpphases.Request
		want    int
		guessed bool
	}{
		"by id":             {[]*httpphases.ServerRequest{served(1, "/a", 20, 30), served(2, "/a", 20, 30)}, made("far", "/a", 2), 2, false},
		"the only one":      {[]*httpphases.ServerRequest{served(1, "/a", 20, 30), served(2, "/b", 20, 30)}, made("localhost", "/a?*", 0), 1, true},
		"escaped":           {[]*httpphases.ServerRequest{served(1, "/a b%2Fä", 20, 30)}, made("localhost", "/a%20b%2F%C3%A4", 0), 1, true},
		"no escape":         {[]*httpphases.ServerRequest{served(1, "/100%", 20, 30)}, made("localhost", "/100%25", 0), 1, true},
		"one of two":        {[]*httpphases.ServerRequest{served(1, "/a", 20, 30), served(2, "/a", 25, 35)}, made("127.0.0.1", "/a", 0), 0, false},
		"began before":      {[]*httpphases.ServerRequest{served(1, "/a", 5, 30)}, made("localhost", "/a", 0), 0, false},
		"ended long behind": {[]*httpphases.ServerRequest{served(1, "/a", 20, 130)}, made("localhost", "/a", 0), 0, false},
		"elsewhere":         {[]*httpphases.ServerRequest{served(1, "/a", 20, 30)}, made("shop.example", "/a", 0), 0, false},
	} {
		var o Others
		for _, s := range c.served {
			o.Add(s)
		}
		s, guessed := o.Of(c.made)
		got := 0
		if s != nil {
			got = s.ID
		}
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.guessed, guessed, name)
		again, _ := o.Of(c.made)
		assert.True(t, again == nil || again != s, "%s: it answers one request", name)
	}
}

// TestSettle: who asked may end first, with the headers of an answer or because it gave up; it
// comes behind who served it.
func TestSettle(t *testing.T) {
	type row struct {
		r *httpphases.Request
		s *httpphases.ServerRequest
	}
	served := func(id int, path string, from, to int64) row {
		return row{s: &httpphases.ServerRequest{ID: id, Target: path, Start: from * 1e6, Duration: (to - from) * 1e6, HasDuration: true}}
	}
	made := func(id int, path string, from, to int64, change func(r *httpphases.Request)) row {
		r := &httpphases.Request{ID: id, Host: "localhost", Target: path, Start: from * 1e6, Duration: (to - from) * 1e6, HasDuration: true, BodyObserved: true,
			Phases: []httpphases.Phase{{Name: httpphases.RequestHeaders, Start: from*1e6 + 1e5}}}
		if change != nil {
			change(r)
		}
		return row{r: r}
	}
	canceled := func(r *httpphases.Request) { r.Outcome = httpphases.Canceled }
	again := func(r *httpphases.Request) {
		r.Phases = append(r.Phases, httpphases.Phase{Name: httpphases.RequestHeaders, Start: 5e6, Duration: 1e5})
	}
	for name, c := range map[string]struct {
		rows  []row
		order []int
		by    int // who served the request 1
	}{
		"ended before":            {[]row{served(2, "/a", 1, 9), made(1, "/a", 0, 10, nil)}, []int{2, 1}, 2},
		"writes its end later":    {[]row{made(1, "/a", 0, 10, nil), made(3, "/b", 0, 11, nil), served(2, "/a", 1, 12)}, []int{3, 2, 1}, 2},
		"goes on":                 {[]row{made(1, "/a", 0, 10, nil), served(2, "/a", 1, 90)}, []int{2, 1}, 2},
		"one of two goes on":      {[]row{served(3, "/a", 1, 9), made(1, "/a", 0, 10, nil), served(2, "/a", 1, 90)}, []int{3, 1, 2}, 3},
		"two go on":               {[]row{made(1, "/a", 0, 10, nil), served(2, "/a", 1, 90), served(3, "/a", 1, 91)}, []int{1, 2, 3}, 0},
		"another gave up":         {[]row{made(4, "/a", 0, 9, canceled), made(1, "/a", 0, 10, nil), served(2, "/a", 1, 90)}, []int{4, 2, 1}, 2},
		"its end is a guess":      {[]row{made(1, "/a", 0, 10, func(r *httpphases.Request) { r.Guessed = 1 }), served(2, "/a", 1, 90)}, []int{1, 2}, 0},
		"who gave up comes last":  {[]row{made(4, "/a", 0, 5, canceled), served(2, "/a", 1, 9), made(1, "/a", 0, 10, nil), served(3, "/a", 7, 9)}, []int{4, 2, 1, 3}, 0},
		"who had an answer first": {[]row{made(4, "/a", 0, 5, canceled), served(2, "/a", 1, 9), made(1, "/a", 0, 10, nil), served(3, "/a", 7, 90)}, []int{4, 2, 1, 3}, 2},
		"another one ends later":  {[]row{served(2, "/a", 1, 9), made(1, "/a", 0, 10, nil), served(3, "/a", 2, 12)}, []int{2, 1, 3}, 2},
		"streamed":                {[]row{made(1, "/a", 0, 10, func(r *httpphases.Request) { r.BodyObserved = false }), served(2, "/a", 1, 90)}, []int{2, 1}, 2},
		"began behind it":         {[]row{made(1, "/a", 0, 10, canceled), served(2, "/a", 1, 90), served(3, "/a", 12, 91)}, []int{1, 2, 3}, 0},
		"gave up":                 {[]row{made(1, "/a", 0, 10, canceled), served(2, "/a", 1, 90)}, []int{2, 1}, 2},
		"one of two":              {[]row{made(1, "/a", 0, 10, canceled), served(2, "/a", 1, 90), served(3, "/a", 2, 91)}, []int{1, 2, 3}, 0},
		"the other is taken":      {[]row{served(3, "/a", 2, 8), made(4, "/a", 1, 9, nil), made(1, "/a", 0, 10, canceled), served(2, "/a", 1, 90)}, []int{3, 4, 2, 1}, 2},
		"another gave up, too":    {[]row{made(4, "/a", 0, 9, canceled), made(1, "/a", 0, 10, canceled), served(2, "/a", 1, 90)}, []int{4, 1, 2}, 0},
		"another had given up":    {[]row{made(4, "/a", 0, 3, canceled), made(1, "/a", 2, 10, canceled), served(2, "/a", 4, 90)}, []int{4, 2, 1}, 2},
		"gave up, not sent":       {[]row{made(1, "/a", 0, 10, func(r *httpphases.Request) { canceled(r); r.Phases = nil }), served(2, "/a", 1, 90)}, []int{1, 2}, 0},
		"began before it is sent": {[]row{made(1, "/a", 5, 10, nil), served(2, "/a", 5, 9)}, []int{1, 2}, 0},
		"the last hop": {[]row{served(2, "/a", 1, 2), served(3, "/b", 6, 9), made(1, "/a", 0, 10, func(r *httpphases.Request) {
			r.Phases[0].Start = 5e6
			r.Redirects = []httpphases.Redirect{{From: "http://localhost/a", URL: "http://localhost:81/b", Duration: 4e6}}
		})}, []int{2, 3, 1}, 3},
		"the last hop went elsewhere": {[]row{served(2, "/a", 1, 2), made(1, "/a", 0, 10, func(r *httpphases.Request) {
			r.Redirects = []httpphases.Redirect{{From: "http://localhost/a", URL: "http://shop.example/a", Duration: 4e5}}
		})}, []int{2, 1}, 0},
		"the last try": {[]row{served(2, "/a", 1, 3), served(3, "/a", 6, 9), made(1, "/a", 0, 10, again)}, []int{2, 3, 1}, 3},
		"the last try had no answer": {[]row{served(2, "/a", 1, 3), made(1, "/a", 0, 10, func(r *httpphases.Request) {
			again(r)
			canceled(r)
			r.HeadersAt = 3e6
		}), served(3, "/a", 6, 90)}, []int{2, 3, 1}, 3},
		"of somebody, perhaps": {[]row{served(2, "/a", 1, 3), served(3, "/a", 6, 9), made(1, "/a", 0, 10, func(r *httpphases.Request) {
			again(r)
			r.Guessed = 1
		})}, []int{2, 3, 1}, 0},
		"still open": {[]row{{r: &httpphases.Request{ID: 1, Host: "localhost", Target: "/a"}}, served(2, "/a", 1, 2)}, []int{1, 2}, 0},
	} {
		Settle(c.rows, func(r row) (*httpphases.Request, *httpphases.ServerRequest) { return r.r, r.s })
		var order []int
		by := 0
		for _, r := range c.rows {
			if r.s != nil {
				order = append(order, r.s.ID)
				continue
			}
			if order = append(order, r.r.ID); r.r.ID == 1 && r.r.Why != nil && r.r.Why.Server != nil {
				by = r.r.Why.Server.ID
				assert.True(t, r.r.Why.ServerGuessed, name)
				s, guessed := (&Others{}).Of(r.r)
				assert.Equal(t, r.r.Why.Server, s, name)
				assert.True(t, guessed, name)
			}
		}
		assert.Equal(t, c.order, order, name)
		assert.Equal(t, c.by, by, name)
	}
}

// TestSettleLate: a request that gave up before anybody began to serve it is told by ids all the same.
func TestSettleLate(t *testing.T) {
	r := &httpphases.Request{ID: 1, Host: "localhost", Target: "/a", TraceID: "t", Duration: 10e6, HasDuration: true, Outcome: httpphases.Canceled}
	other := &httpphases.Request{ID: 2, Host: "localhost", Target: "/b", TraceID: "u", Duration: 10e6, HasDuration: true, Outcome: httpphases.Canceled}
	s := &httpphases.ServerRequest{ID: 3, Target: "/a", Client: 1, Start: 20e6, Duration: 5e6, HasDuration: true}
	rows := []any{r, other, s, &httpphases.ServerRequest{ID: 4, Target: "/b", Start: 21e6, Duration: 5e6, HasDuration: true}}
	Settle(rows, func(row any) (*httpphases.Request, *httpphases.ServerRequest) {
		made, _ := row.(*httpphases.Request)
		served, _ := row.(*httpphases.ServerRequest)
		return made, served
	})
	assert.Equal(t, 3, r.Server)
	assert.Same(t, s, r.Why.Server)
	assert.False(t, r.Why.ServerGuessed)
	assert.Zero(t, other.Server)
	assert.Nil(t, other.Why.Server)
}
