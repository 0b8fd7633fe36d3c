package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestWorks holds the list against a slice: stretches that touch and are for the same become one, and each
// time belongs to the stretch that ends at it.
func TestWorks(t *testing.T) {
	var none Works
	if none.At(0) != nil || len(slices.Collect(none.All())) != 0 {
		t.Error("an empty list is not empty")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		var l Works
		var want []Work
		at := int64(-5)
		for range n {
			from := at + r.Int64N(3)
			w := Work{from, from + 1 + r.Int64N(4), r.Int32N(3) - 1}
			at = w.To
			l.Add(w)
			if k := len(want) - 1; k >= 0 && want[k].To == w.From && want[k].Activity == w.Activity {
				want[k].To = w.To
			} else {
				want = append(want, w)
			}
		}
		if got := slices.Collect(l.All()); !slices.Equal(got, want) {
			t.Fatalf("%d: %v, want %v", n, got, want)
		}
		c := l.Cursor()
		for at := int64(-10); at < int64(6*n+10); at++ {
			var is *Work
			if k := slices.IndexFunc(want, func(w Work) bool { return w.From < at && at <= w.To }); k >= 0 {
				is = &want[k]
			}
			for how, got := range map[string]*Work{"list": l.At(at), "cursor": c.At(at)} {
				if (got == nil) != (is == nil) || is != nil && *got != *is {
					t.Fatalf("%d: at %d the %s says %v, want %v", n, at, how, got, is)
				}
			}
		}
	}
}

// TestWorksExtremes: times and activities that differ as much as they can.
func TestWorksExtremes(t *testing.T) {
	want := []Work{{math.MinInt64, -1, math.MaxInt32}, {0, 1, -1}, {math.MaxInt64 - 1, math.MaxInt64, math.MaxInt32}, {math.MinInt64, math.MaxInt64, 0}}
	var l Works
	for _, w := range want {
		l.Add(w)
	}
	if got := slices.Collect(l.All()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// onDisk returns a Spool that keeps nothing in memory.
func onDisk(t *testing.T) *Spool {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &Spool{Memory: 1, Create: func() (SpoolFile, error) { return f, nil }}
}

// Stretches that do not fit into memory are those that do, also for several who read at once; of
// what cannot be read any more nothing is told.
func TestWorksOnDisk(t *testing.T) {
	var here Works
	there := Works{Spool: onDisk(t)}
	r := rand.New(rand.NewPCG(5, 6))
	at := int64(0)
	for range 200_000 {
		w := Work{at + 1, at + 1 + r.Int64N(1e6), r.Int32N(1e5) - 1}
		at = w.To
		here.Add(w)
		there.Add(w)
	}
	if len(there.pieces) < manyChunks+5 || there.pieces[0].b != nil {
		t.Fatal("nothing is on disk")
	}
	a, b := here.Cursor(), there.Cursor()
	for at := int64(0); at < 1e9; at += 1e6 {
		if x, y := a.At(at), b.At(at); (x == nil) != (y == nil) || x != nil && *x != *y {
			t.Fatalf("at %d: %v, want %v", at, y, x)
		}
	}
	if want := slices.Collect(here.All()); !slices.Equal(slices.Collect(there.All()), want) {
		t.Error("the stretches are others")
	}
	there.Spool.Memory = math.MaxInt64
	there.pieces[3].at = 1 << 40
	if n := len(slices.Collect(there.All())); n == 0 || n > 5000 || there.Spool.Err() == nil {
		t.Errorf("%d stretches, error %v", n, there.Spool.Err())
	}
	p := &Profile{Threads: []*Thread{{Work: there}}}
	if p.Err() == nil {
		t.Error("the profile has no error")
	}
}

// TestActivities holds the list against a slice, over more than one page, in memory and on disk.
func TestActivities(t *testing.T) {
	for n, s := range map[int]*Spool{2*activitiesAtOnce + 3: nil, 3 * activityMemory / 100: onDisk(t)} {
		testActivities(t, n, s)
	}
}

func testActivities(t *testing.T, n int, s *Spool) {
	l := Activities{Spool: s}
	var want []Activity
	for i := range n {
		a := Activity{
			Process: uint32(i % 7), ID: [16]byte{byte(i), byte(i >> 8)}, Name: fmt.Sprint("name ", i%5), Provider: fmt.Sprint("provider ", i%3), Parent: int32(i/2) - 1,
			Start: int64(i) - 7, Started: i%2 == 0,
		}
		if i%4 == 0 {
			a.Request, a.URL, a.Title = i, fmt.Sprint("/", i), "GET /"
		}
		if n := l.Add(&a); int(n) != i {
			t.Fatalf("activity %d has the number %d", i, n)
		}
		want = append(want, a)
	}
	l.SetRequest(1, 9, "/nine", "POST /nine")
	l.Done()
	want[1].Request, want[1].URL, want[1].Title = 9, "/nine", "POST /nine"
	l.SetPath(2, "//1/2")
	if l.Len() != len(want) || l.Path(2) != "//1/2" || l.Path(3) != "" {
		t.Errorf("%d activities, want %d; paths %q, %q", l.Len(), len(want), l.Path(2), l.Path(3))
	}
	for i, a := range l.All() {
		request := 0
		for k := i; k >= 0 && request == 0; k = want[k].Parent {
			request = want[k].Request
		}
		if a != want[i] || l.At(i) != a || l.Parent(i) != a.Parent || l.RequestOf(i) != request {
			t.Fatalf("activity %d is %+v of request %d, want %+v of %d", i, a, l.RequestOf(i), want[i], request)
		}
	}
	l.Paths = func(id [16]byte) (uint32, string) { return 7, fmt.Sprint(id[0]) }
	if got := l.Path(3); got != "3" {
		t.Errorf("path %q", got)
	}
}
