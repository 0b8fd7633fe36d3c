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
		if r.IntN(9) == 0 {
			x.to = x.at + 1 + r.Int64N(1000)
		}
		all = append(all, x)
		require.True(t, c.add(&x))
	}
	c.rewind()
	var x change
	for i := range all {
		c.next(&x)
		want := &all[i]
		require.True(t, x.at == want.at && x.to == want.to && x.drop == want.drop && x.early == want.early && x.mark == want.mark && x.atEnd == want.atEnd, "%d: %+v, expected %+v", i, x, *want)
		require.True(t, slices.Equal(x.before, want.before) && slices.Equal(x.after, want.after), "%d: %+v, expected %+v", i, x, *want)
	}
	for range 2 {
		c.next(&x)
		assert.Equal(t, int64(math.MaxInt64), x.at)
		assert.False(t, x.changes())
	}
}

// Events in a row that are dropped are one change, as far as it is known where they end.
func TestDrops(t *testing.T) {
	type told struct {
		at   int64
		drop bool
		next bool
	}
	for name, c := range map[string]struct {
		events []told
		want   [][2]int64 // at and to
	}{
		"one, and what is next":         {[]told{{10, true, true}, {20, false, true}}, [][2]int64{{10, 20}}},
		"one, and what is not next":     {[]told{{10, true, true}, {20, false, false}}, [][2]int64{{10, 0}}},
		"the last":                      {[]told{{10, true, true}}, [][2]int64{{10, 0}}},
		"three":                         {[]told{{10, true, false}, {20, true, true}, {30, true, true}, {40, false, true}}, [][2]int64{{10, 40}}},
		"three, and what is not next":   {[]told{{10, true, false}, {20, true, true}, {30, true, true}, {40, false, false}}, [][2]int64{{10, 30}, {30, 0}}},
		"two with something in between": {[]told{{10, true, true}, {20, true, false}, {30, false, true}}, [][2]int64{{10, 0}, {20, 30}}},
		"none":                          {[]told{{10, false, true}, {20, false, true}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := &changes{}
			for _, e := range c.events {
				require.True(t, all.follow(&change{at: e.at, edit: edit{drop: e.drop}}, e.next))
			}
			require.True(t, all.close(0))
			all.rewind()
			var got [][2]int64
			var x change
			for all.next(&x); x.at < math.MaxInt64; all.next(&x) {
				assert.True(t, x.drop)
				got = append(got, [2]int64{x.at, x.to})
			}
			assert.Equal(t, c.want, got)
		})
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
