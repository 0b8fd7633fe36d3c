package spans

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// Changes come as they were added.
func TestChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(most int) []insert {
		var list []insert
		for range r.IntN(most) {
			list = append(list, insert{phase: "BE"[r.IntN(2)], frame: profile.FrameID(r.IntN(1 << 20)), early: r.IntN(2) > 0})
		}
		return list
	}
	var all []change
	c := &changes{}
	at := int64(0)
	for range 20_000 {
		at += 1 + r.Int64N(1<<r.IntN(40))
		x := change{at: at, edit: edit{drop: r.IntN(2) > 0, early: r.IntN(9) == 0, mark: r.IntN(9) == 0}, atEnd: r.IntN(9) == 0}
		if r.IntN(9) == 0 {
			x.before, x.after = some(1<<r.IntN(9)), some(4)
		}
		all = append(all, x)
		require.True(t, c.add(&x))
	}
	c.rewind()
	var x change
	for i := range all {
		c.next(&x)
		want := &all[i]
		require.True(t, x.at == want.at && x.drop == want.drop && x.early == want.early && x.mark == want.mark && x.atEnd == want.atEnd, "%d: %+v, expected %+v", i, x, *want)
		require.True(t, slices.Equal(x.before, want.before) && slices.Equal(x.after, want.after), "%d: %+v, expected %+v", i, x, *want)
	}
	for range 2 {
		c.next(&x)
		assert.Equal(t, int64(math.MaxInt64), x.at)
		assert.False(t, x.changes())
	}
}

// A trace with more changes than are held is read once more instead.
func TestManyChanges(t *testing.T) {
	defer func(n int) { mostChanged = n }(mostChanged)
	in, _, _ := walk(t, tracetest.Walk{Seed: 1, Threads: 3, Bytes: 1 << 20, Deep: 0.5})
	var copies [][]byte
	for _, mostChanged = range []int{mostChanged, 1000} {
		tr := readBytes(t, in, nil)
		pass.FixStacks(tr.Profile, 0.9)
		var out bytes.Buffer
		require.NoError(t, tr.Rewrite(context.Background(), &out, false))
		copies = append(copies, out.Bytes())
	}
	assert.False(t, bytes.Equal(in, copies[0]))
	assert.True(t, bytes.Equal(copies[0], copies[1]))
}
