package requests

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Each activity is the request with its id that began when it did, however far apart both stand; of
// several the one that was told last.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 3*namedAtOnce + 100
	id := func(i int) (id [16]byte) {
		binary.LittleEndian.PutUint32(id[:], uint32(i%(n/2))) // each comes twice
		id[15] = 0xff
		return id
	}
	var index Index
	var p profile.Profile
	want := map[requestKey]int{}
	add := func(i, number int) {
		q := &httpphases.ServerRequest{ID: number, Method: "GET", Target: "/a"}
		q.Activity, q.Start = id(i), int64(i)
		index.Server(q)
		want[requestKey{0, id(i), int64(i)}] = number
	}
	// Requests end in an order of their own, some long after they began.
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := range n - 50 {
		k := i + r.IntN(50)
		order[i], order[k] = order[k], order[i]
	}
	for range 300 {
		i, k := r.IntN(n), r.IntN(n)
		order[i], order[k] = order[k], order[i]
	}
	for number, i := range order {
		if i%10 != 0 { // of the others the activity is no request
			add(i, number+1)
		}
	}
	add(order[7]+1, n+1)
	add(order[n-7]+1, n+2)
	add(n, n+3)
	seen := make([]int, n)
	for i := range seen {
		seen[i] = i
	}
	for i := 0; i < n; i += 1000 { // seen at another time than its neighbours
		k := r.IntN(n)
		seen[i], seen[k] = seen[k], seen[i]
	}
	for _, i := range seen {
		p.Activities.Add(&profile.Activity{ID: id(i), Start: int64(i), Started: true, Parent: -1})
	}
	// Activities whose start is not in the trace: several may be one request.
	for range 2 {
		p.Activities.Add(&profile.Activity{ID: id(n), Start: n, Parent: -1})
	}
	require.NoError(t, index.Name(&p))
	for i, a := range p.Activities.All() {
		require.Equal(t, want[requestKey{a.Process, a.ID, a.Start}], a.Request, i)
		if a.Request > 0 {
			require.Equal(t, "GET /a", a.Title)
		}
	}
}
