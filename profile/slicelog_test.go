package profile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestSliceLog adds slices of every kind of value, of strings that are kept once and that are not, and
// of sizes beyond a chunk, and reads them in another order than they came in.
func TestSliceLog(t *testing.T) {
	var l SliceLog
	var want [][]Slice
	var at []SlicePlace
	add := func(list ...Slice) { want, at = append(want, list), append(at, l.Add(list)) }
	add()
	add(Slice{})
	add(Slice{Start: math.MinInt64, Dur: math.MaxInt64}, Slice{Start: math.MaxInt64, Dur: math.MinInt64, Instant: true}, Slice{Start: -1, Open: true})
	add(Slice{Name: "GET /", Category: "http", ID: math.MaxUint64, FlowIn: 1, FlowOut: 2, Args: []Arg{
		{"string", "x"}, {"empty", ""}, {"hex", "0123456789abcdef"}, {"long hex", strings.Repeat("f0", 16)}, {"upper", "0123456789ABCDEF"}, {"almost", "0123456789abcdeg"},
		{"true", true}, {"false", false}, {"int", int64(math.MinInt64)}, {"uint", uint64(math.MaxUint64)}, {"float", -0.5}, {"inf", math.Inf(1)},
		{"json", json.RawMessage(`{"a":1}`)}, {"none", nil}, {"", "\x00\xff"},
	}})
	add(Slice{Name: strings.Repeat("n", maxWord)}, Slice{Name: strings.Repeat("n", maxWord+1)}, Slice{Name: strings.Repeat("n", 3*sliceChunk)})
	for i := range 2 * maxWords { // more words than are kept once
		add(Slice{Start: int64(i), Name: "word " + strconv.Itoa(i), Args: []Arg{{"key " + strconv.Itoa(i%7), "value"}}})
	}
	if len(l.chunks) < 3 || len(l.words) != maxWords {
		t.Fatalf("%d chunks and %d words: the limits are not reached", len(l.chunks), len(l.words))
	}
	var dst []Slice
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(at)) {
		dst = l.Read(at[i], dst)
		if len(dst) != len(want[i]) {
			t.Fatalf("%d: %d slices, want %d", i, len(dst), len(want[i]))
		}
		for k := range dst {
			got := dst[k]
			if len(got.Args) == 0 {
				got.Args = nil // the room of an earlier slice
			}
			if !reflect.DeepEqual(got, want[i][k]) {
				t.Fatalf("%d: slice %d is %+v, want %+v", i, k, got, want[i][k])
			}
		}
	}
}
