package profile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/tracefix/tracefix/internal/spool"
)

// TestSliceLog adds slices of every kind of value, of strings that are kept once and that are not, and
// of sizes beyond a chunk, and reads them in another order than they came in, from memory and from a file.
func TestSliceLog(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, aside := range map[string]*Spool{
		"in memory": nil,
		"on disk":   {Create: func() (spool.File, error) { return f, nil }, Memory: 1},
	} {
		t.Run(name, func(t *testing.T) { testSliceLog(t, aside, f) })
	}
}

func testSliceLog(t *testing.T, aside *Spool, f *os.File) {
	l := SliceLog{Spool: aside}
	var want [][]Slice
	var at []SlicePlace
	add := func(list ...Slice) { want, at = append(want, list), append(at, l.Add(list)) }
	add()
	add(Slice{})
	add(Slice{Start: math.MinInt64, Dur: math.MaxInt64}, Slice{Start: math.MaxInt64, Dur: math.MinInt64, Instant: true}, Slice{Start: -1, Open: true})
	add(Slice{Name: "GET /", Category: "http", ID: math.MaxUint64, FlowIn: 1, FlowOut: 2, Ties: 3, Args: []Arg{
		{"string", "x"}, {"empty", ""}, {"hex", "0123456789abcdef"}, {"long hex", strings.Repeat("f0", 16)}, {"upper", "0123456789ABCDEF"}, {"almost", "0123456789abcdeg"},
		{"true", true}, {"false", false}, {"int", int64(math.MinInt64)}, {"uint", uint64(math.MaxUint64)}, {"float", -0.5}, {"inf", math.Inf(1)},
		{"json", json.RawMessage(`{"a":1}`)}, {"none", nil}, {"", "\x00\xff"},
	}})
	add(Slice{Name: strings.Repeat("n", maxWord)}, Slice{Name: strings.Repeat("n", maxWord+1)}, Slice{Name: strings.Repeat("n", 3<<16)})
	for i := range 2 * maxWords { // more words than are kept once
		add(Slice{Start: int64(i), Name: "word " + strconv.Itoa(i), Args: []Arg{{"key " + strconv.Itoa(i%7), "value"}}})
	}
	for i := range 10_000 { // more than stays in memory
		add(Slice{Start: int64(i), Name: strings.Repeat("n", 500+i%500)}, Slice{Start: -int64(i), Args: []Arg{{"json", json.RawMessage(`{"a":2}`)}}})
	}
	if l.log.Len() < 3*sliceMemory/2 || aside.InUse() != (aside != nil) || len(l.words) != maxWords {
		t.Fatalf("%d bytes and %d words: the limits are not reached", l.log.Len(), len(l.words))
	}
	l.Done()
	r := l.Reader()
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(at)) {
		dst := r.Read(at[i])
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
	if aside == nil {
		return
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if list := r.Read(at[len(at)/2]); len(list) != 0 || aside.Err() == nil {
		t.Fatalf("%d slices of a file that lost them, and error %v", len(list), aside.Err())
	}
}
