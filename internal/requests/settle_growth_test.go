package requests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
)

type aRow struct {
	r *httpphases.Request
	s *httpphases.ServerRequest
}

func (x aRow) sides() (*httpphases.Request, *httpphases.ServerRequest) { return x.r, x.s }

func servedAt(id int, from, duration int64, requestID string) aRow {
	return aRow{s: &httpphases.ServerRequest{ID: id, Target: "/a", Start: from, Duration: duration, HasDuration: true, RequestID: requestID}}
}

func madeAt(id int, from, duration, connection int64) aRow {
	return aRow{r: &httpphases.Request{
		ID: id, Host: "localhost", Target: "/a", Start: from, Duration: duration, HasDuration: true, BodyObserved: true,
		Connection: &httpphases.Connection{ID: connection, HasID: connection > 0},
		Phases:     []httpphases.Phase{{Name: httpphases.RequestHeaders, Start: from, Duration: 1}},
	}}
}

// TestSettleGrowth: requests that are all in flight at the same time, on connections of their own or on one.
func TestSettleGrowth(t *testing.T) {
	for name, pair := range map[string]func(i, n int) []aRow{
		"own": func(i, n int) []aRow {
			at := int64(i) * 1e6
			return []aRow{madeAt(2*i+1, at, int64(n)*1e6, 0), servedAt(2*i+2, at+1e5, int64(2*n)*1e6, "")}
		},
		"one": func(i, n int) []aRow {
			at := int64(i) * 1e6
			if i%2 > 0 {
				return []aRow{madeAt(2*i+1, int64(i), int64(n)*1e6, 1)}
			}
			return []aRow{servedAt(2*i+2, at+1e5, 1e5, fmt.Sprintf("A:%x", i+1)), madeAt(2*i+1, at, 5e5, 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracetest.Growth(t, 2000, func(n int) {
				var rows []aRow
				for i := range n {
					rows = append(rows, pair(i, n)...)
				}
				Settle(rows, aRow.sides)
			})
		})
	}
}

// TestTheOnly holds the search against a look at all.
func TestTheOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	told := 0
	for range 3000 {
		var all []*httpphases.ServerRequest
		at := int64(0)
		for i := range random.IntN(12) {
			at += random.Int64N(2) * 1e6
			s := servedAt(i+1, at, random.Int64N(9)*1e6, "").s
			s.HasDuration, s.Port = random.IntN(5) > 0, random.IntN(2)
			all = append(all, s)
		}
		byPath := map[string][]*httpphases.ServerRequest{"/a": all}
		u := untakenOf(nil, nil, byPath, &Pairs{})
		free := map[int]bool{}
		for _, s := range all {
			if free[s.ID] = random.IntN(4) > 0; !free[s.ID] {
				take(u, s)
			}
		}
		q := asked{path: "/a", port: 1, from: random.Int64N(9) * 1e6}
		q.to = q.from + random.Int64N(9)*1e6
		q.answered, q.end, q.gaveUp, q.guessed = q.to, q.to+slack, random.IntN(3) == 0, random.IntN(3) == 0
		if q.gaveUp || random.IntN(3) == 0 {
			q.end = math.MaxInt64
		}
		var only [3][]*httpphases.ServerRequest
		late := false
		for _, c := range all {
			switch {
			case !free[c.ID] || !q.reaches(c):
			case q.gaveUp && c.Start > q.to && c.Start <= q.to+slack:
				late = true
			case q.served(c) && q.end < math.MaxInt64 && c.Start+c.Duration > q.to:
				only[1] = append(only[1], c)
			case q.served(c):
				only[0] = append(only[0], c)
			case q.began(c) && c.HasDuration && !q.guessed: // it went on
				only[2] = append(only[2], c)
			}
		}
		var want *httpphases.ServerRequest
		switch {
		case late:
		case len(only[0]) == 1:
			want = only[0][0]
		case len(only[0]) == 0 && len(only[1]) == 1:
			want = only[1][0]
		case len(only[0])+len(only[1]) == 0 && len(only[2]) == 1:
			want = only[2][0]
		}
		require.Equal(t, want, (*Pairs)(nil).theOnly(&q, u["/a"]))
		if want != nil {
			told++
		}
	}
	assert.Greater(t, told, 300)
}

// TestManyOthers: what is answered by id leaves nothing behind, what nobody asked for here goes
// when there is too much, the oldest first, and it is not looked at by all that are made.
func TestManyOthers(t *testing.T) {
	var o Others
	for i := range 5 * others {
		at := int64(i) * 1e6
		s := servedAt(2*i+1, at, 1e5, "").s
		o.Add(s)
		r := madeAt(2*i+2, at, 2e5, 0).r
		r.Server, r.TraceID = s.ID, "1"
		by, guessed := o.Of(r)
		require.Equal(t, s, by)
		require.False(t, guessed)
	}
	assert.LessOrEqual(t, len(o.byPath["/a"]), others)

	o = Others{}
	for i := range others + 1 {
		o.Add(servedAt(i+1, int64(i)*1e6, 1e5, "").s)
	}
	s, guessed := o.Of(madeAt(others+2, int64(others-1)*1e6-1, 3e5, 0).r)
	require.NotNil(t, s, "what was added last but one")
	assert.Equal(t, others, s.ID)
	assert.True(t, guessed)

	tracetest.Growth(t, 2000, func(n int) {
		var o Others
		for i := range n {
			s := servedAt(2*i+1, int64(i)*1e6, 1e5, "").s
			s.Port = 80
			o.Add(s)
			r := madeAt(2*i+2, int64(i)*1e6, 2e5, 0).r
			r.Port = 81 // a proxy asks another process
			by, _ := o.Of(r)
			require.Nil(t, by)
		}
	})
}
