package command

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
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
		var o others
		for _, s := range c.served {
			o.add(s)
		}
		s, guessed := o.of(c.made)
		got := 0
		if s != nil {
			got = s.ID
		}
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.guessed, guessed, name)
		again, _ := o.of(c.made)
		assert.True(t, again == nil || again != s, "%s: it answers one request", name)
	}
}

// Who answered a request does not depend on what else is shown.
func TestOthersOfFewRows(t *testing.T) {
	file := "../../../shared/corpus/dotnet10/requests-full.nettrace"
	if _, err := os.Stat(file); err != nil {
		t.Skip("no ../shared/corpus: it holds the recording of a service with its requests")
	}
	answered := func(h HTTP) map[int]int {
		in, err := input.Open(t.Context(), file, nil)
		require.NoError(t, err)
		defer in.Close()
		h.Explain = true
		var out bytes.Buffer
		require.NoError(t, h.Do(t.Context(), &Call{In: in, Out: &out, Format: "ndjson", Report: &report.Trace{}}))
		by := map[int]int{}
		for d := json.NewDecoder(&out); d.More(); {
			var row struct {
				ID     int
				Server struct{ ID int }
			}
			require.NoError(t, d.Decode(&row))
			by[row.ID] = row.Server.ID
		}
		return by
	}
	all := answered(HTTP{})
	require.Equal(t, 59, all[56])
	for name, h := range map[string]HTTP{
		"one": {ID: []int{56}}, "slow": {Slow: 20 * time.Millisecond}, "late": {TimeFlags: TimeFlags{From: time.Second}},
	} {
		few := answered(h)
		assert.NotEmpty(t, few, name)
		for id, by := range few {
			assert.Equal(t, all[id], by, "%s: %d", name, id)
		}
	}
}
