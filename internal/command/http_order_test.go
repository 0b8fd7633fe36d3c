package command

import (
	"cmp"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// fill puts something into all fields of a value, down to a depth of pointers.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) > 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Int32()) - 1<<30)
	case reflect.String:
		v.SetString(string(rune('a' + r.IntN(26))))
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth)
		}
	case reflect.Slice:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(r, v.Index(i), depth)
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth)
		}
	default:
		v.SetUint(uint64(r.Uint32()) & (1<<min(31, v.Type().Bits()) - 1))
	}
}

// Requests of either side come in order as a stable sort puts them, with all that they had, from
// memory and from disk.
func TestRowRuns(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	aside := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return file, nil }}
	random := rand.New(rand.NewPCG(1, 2))
	compare := func(a, b *httpRow) int { return cmp.Compare(a.facts().duration%100, b.facts().duration%100) }
	for _, s := range []*spool.Spool{nil, aside} {
		runs := newRowRuns(s, compare)
		var want []httpRow
		for range 9 {
			some := make([]httpRow, 1+random.IntN(300))
			for i := range some {
				if random.IntN(3) > 0 {
					some[i].made = &httpphases.Request{}
					fill(random, reflect.ValueOf(some[i].made).Elem(), 3)
				} else {
					some[i].served = &httpphases.ServerRequest{}
					fill(random, reflect.ValueOf(some[i].served).Elem(), 3)
				}
			}
			want = append(want, some...)
			runs.add(some)
		}
		slices.SortStableFunc(want, func(a, b httpRow) int { return compare(&a, &b) })
		n := 0
		for row := range runs.ordered {
			require.Equal(t, want[n], row, n)
			n++
		}
		require.Equal(t, len(want), n)
		require.NoError(t, runs.Err())
	}
	assert.True(t, aside.InUse())

	broken := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return tracetest.Unreadable{}, nil }}
	runs := newRowRuns(broken, compare)
	for range 300 {
		runs.add(slices.Repeat([]httpRow{{made: &httpphases.Request{Detail: string(make([]byte, 300))}}}, 30))
	}
	for row := range runs.ordered {
		row.facts()
	}
	assert.Error(t, runs.Err())
}

// countingWriter counts rows, and keeps the last one.
type countingWriter struct {
	n    int
	last *httpphases.Request
}

func (w *countingWriter) Request(r *httpphases.Request) error {
	w.n++
	w.last = r
	return nil
}
func (w *countingWriter) Server(*httpphases.ServerRequest) error { return nil }
func (w *countingWriter) Close(*httpreport.Summary) error        { return nil }

// As many requests come in order as are asked for, be it more than are kept in memory, and none
// costs a look at all the others.
func TestLimitBeyondMemory(t *testing.T) {
	for _, limit := range []int{3, held / 2, held - 1, held, held + 5} {
		w := &countingWriter{}
		run := httpRun{cmd: &HTTP{Sort: "duration", LimitFlag: LimitFlag{limit}}, w: w}
		for i := range 2 * held {
			d := int64(i*7919%(2*held)) + 1 // each once
			run.row(httpRow{made: &httpphases.Request{ID: i + 1, Duration: d, HasDuration: true}}, true)
		}
		require.NoError(t, run.flush())
		assert.Equal(t, limit, w.n)
		assert.Equal(t, int64(2*held-limit+1), w.last.Duration, limit)
	}
}
