package httpphases_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// service makes the events of a service that Hosting recorded without activity ids: clients that ask one
// request after the other, of routes that run on their thread to the end, and of such that go on on any.
// It returns the truth by the order of starts, and what the builder made of them.
func service(t *testing.T, clients, requests int) (truth, got []*httpphases.ServerRequest) {
	rng := rand.New(rand.NewPCG(3, uint64(clients)))
	routes := []struct {
		path   string
		sync   bool
		ms     float64
		throws bool
	}{{"/cpu", true, 4, false}, {"/none", true, 0.1, false}, {"/db", false, 8, false}, {"/slow", false, 30, false}, {"/fail", false, 3, true}}
	type step struct {
		at     int64
		stop   *httpphases.ServerRequest
		thread uint64 // that it has to be on; 0: any
	}
	var steps []step
	push := func(s step) {
		i, _ := slices.BinarySearchFunc(steps, s, func(a, b step) int { return int(max(-1, min(1, a.at-b.at))) })
		steps = slices.Insert(steps, i, s)
	}
	for i := range clients {
		push(step{at: int64(i) * 1e5})
	}
	b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) { got = append(got, s) }})
	busy := map[uint64]int64{} // until when a thread runs a request
	idle := func(at int64) uint64 {
		for {
			if th := 1 + rng.Uint64N(uint64(clients)+3); busy[th] <= at {
				return th
			}
		}
	}
	for len(steps) > 0 {
		s := steps[0]
		steps = steps[1:]
		if s.stop == nil {
			if len(truth) == requests {
				continue
			}
			r := routes[rng.IntN(len(routes))]
			took := int64(1e6 * r.ms * math.Exp(0.3*rng.NormFloat64()))
			th := idle(s.at)
			q := &httpphases.ServerRequest{ID: len(truth), Target: r.path, Thread: th, Start: s.at, Duration: took}
			if r.throws {
				q.Outcome = httpphases.Failed
			}
			truth = append(truth, q)
			b.Add(&httpphases.Event{Kind: httpphases.ServerRequestStart, Time: s.at, Thread: th, Method: "GET", Text: r.path})
			on := uint64(0)
			if busy[th] = s.at + 2e5; r.sync {
				busy[th], on = s.at+took, th
			}
			push(step{s.at + took, q, on})
			continue
		}
		th := s.thread
		if th == 0 {
			th = idle(s.at)
		}
		if s.stop.Outcome == httpphases.Failed {
			b.Add(&httpphases.Event{Kind: httpphases.ServerUnhandled, Time: s.at, Thread: th})
		}
		b.Add(&httpphases.Event{Kind: httpphases.ServerRequestStop, Time: s.at, Thread: th})
		push(step{at: s.at + 1e5})
	}
	b.Finish(truth[len(truth)-1].Start + 1e9)
	require.Len(t, got, len(truth))
	sort.Slice(got, func(i, k int) bool { return got[i].Start < got[k].Start })
	return truth, got
}

// TestStopsWithoutIDs: a stop that tells nothing is of the request that most likely ends: what runs on its
// thread to the end has the right one, the rest the right distribution, and none stays open for ever.
func TestStopsWithoutIDs(t *testing.T) {
	for _, tt := range []struct {
		clients           int
		sync, all, failed float64 // least shares that are right
	}{{1, 1, 1, 1}, {2, 0.99, 0.85, 0.98}, {4, 0.98, 0.7, 0.97}, {16, 0.98, 0.45, 0.85}} {
		truth, got := service(t, tt.clients, 4000)
		var right, sync, syncs, failed, fails float64
		var was, is []float64
		for i, q := range truth {
			s := got[i]
			require.Equal(t, q.Target, s.Target)
			require.True(t, s.HasDuration, "%d clients: %s at %d is open", tt.clients, q.Target, q.Start)
			require.Equal(t, tt.clients > 1 || s.Guessed > 0, s.Guessed > 0)
			ok := s.Duration == q.Duration
			if ok {
				right++
			}
			if q.Target == "/cpu" || q.Target == "/none" {
				if syncs++; ok {
					sync++
				}
			}
			if s.Outcome == httpphases.Failed {
				if fails++; q.Target == "/fail" {
					failed++
				}
			}
			was, is = append(was, float64(q.Duration)), append(is, float64(s.Duration))
		}
		t.Logf("%d clients: %.3f right, %.3f of those that stay on their thread, %.3f of failures", tt.clients, right/float64(len(truth)), sync/syncs, failed/fails)
		assert.GreaterOrEqual(t, sync/syncs, tt.sync, tt.clients)
		assert.GreaterOrEqual(t, right/float64(len(truth)), tt.all, tt.clients)
		assert.GreaterOrEqual(t, failed/fails, tt.failed, tt.clients)
		sort.Float64s(was)
		sort.Float64s(is)
		for _, p := range []float64{0.5, 0.9, 0.99, 1} {
			i := int(p * float64(len(was)-1))
			assert.InEpsilon(t, was[i], is[i], 0.3, "%d clients: quantile %g", tt.clients, p)
		}
	}
}
