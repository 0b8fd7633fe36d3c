package interval

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInterval(t *testing.T) {
	all, middle := Interval{}, Interval{From: 10, To: 20}
	for _, x := range []struct {
		in             Interval
		from, until    int64
		overlaps       bool
		clipped, ended int64
	}{
		{all, -5, 7, true, -5, 7},
		{all, 5, math.MaxInt64, true, 5, math.MaxInt64},
		{middle, 0, 9, false, 10, 10},
		{middle, 0, 10, true, 10, 10},
		{middle, 5, 15, true, 10, 15},
		{middle, 12, 15, true, 12, 15},
		{middle, 15, 25, true, 15, 20},
		{middle, 20, 25, true, 20, 20},
		{middle, 21, 25, false, 21, 21},
		{Interval{From: 10}, 5, 30, true, 10, 30},
		{Interval{To: 20}, -5, 30, true, -5, 20},
	} {
		assert.Equal(t, x.overlaps, x.in.Overlaps(x.from, x.until), x)
		from, until := x.in.Clip(x.from, x.until)
		assert.Equal(t, []int64{x.clipped, x.ended}, []int64{from, until}, x)
		assert.Equal(t, x.ended-x.clipped, x.in.Part(x.from, x.until), x)
	}
	assert.True(t, middle.Overlaps(5, -1), "it has no end")
	assert.False(t, middle.Overlaps(21, -1))
	assert.True(t, all.Contains(-1), "before the trace began")
	assert.False(t, middle.Contains(9))
	assert.True(t, middle.Contains(20))
	for end, want := range map[int64][2]int64{5: {10, 10}, 15: {10, 15}, 30: {10, 20}} {
		from, until := middle.Resolve(end)
		assert.Equal(t, want, [2]int64{from, until}, end)
	}
}
