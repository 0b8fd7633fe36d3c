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
		return &httpphases.Request{Host: host, Target: target, Server: server, Start: 10e6, Duration: 90e6, HasDuration: true}
	}
	for name, c := range map[string]struct {
		served  []*httpphases.ServerRequest
		made    *httpphases.Request
		want    int
		guessed bool
	}{
		"by id":             {[]*httpphases.ServerRequest{served(1, "/a", 20, 30), served(2, "/a", 20, 30)}, made("far", "/a", 2), 2, false},
		"the only one":      {[]*httpphases.ServerRequest{served(1, "/a", 20, 30), served(2, "/b", 20, 30)}, made("localhost", "/a?*", 0), 1, true},
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
