package profile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
)

// Values come back in their order, by sample and all of them, from memory and from disk.
func TestValues(t *testing.T) {
	for name, l := range map[string]*Values{"in memory": new(Values), "on disk": ptr(ValuesIn(input.Aside(1)))} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			assert.Zero(t, l.Len())
			assert.Empty(t, slices.Collect(l.All()))
			l.Done()
			const n = 20_000
			var want []Value
			of := map[int][]Value{}
			for i := range n {
				for k := range r.IntN(3) { // of several weights
					v := Value{Index: int32(i), Weight: uint8(k), Name: r.Uint32(), Amount: r.Float64()}
					l.Append(v)
					if at := r.IntN(l.Len()); at < len(want) {
						l.Change(at).Amount = 7
						want[at].Amount = 7
					}
					want = append(want, v)
				}
			}
			for _, v := range want {
				of[int(v.Index)] = append(of[int(v.Index)], v)
			}
			l.Done()
			require.Equal(t, want, slices.Collect(l.All()))
			c := l.Cursor()
			for i := 0; i < n; i += 1 + r.IntN(2) {
				if got := c.Of(i); len(of[i]) > 0 {
					require.Equal(t, of[i], got)
				} else {
					require.Empty(t, got)
				}
			}
			assert.Empty(t, c.Of(n))
		})
	}
}

func ptr[T any](x T) *T { return &x }

// Samples of other events go when they are evidence no more, but for those that have values, which
// stay theirs.
func TestDropEvidence(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	spool := input.Aside(1)
	th := &Thread{Samples: SamplesIn(spool), Values: ValuesIn(spool)}
	th.Repairs = th.NewRepairs()
	var want []int64 // times of what stays
	of := map[int64][]float64{}
	for i := range 30_000 {
		s := Sample{Time: int64(i), Stack: StackID(i % 5), Type: SampleManaged}
		if r.IntN(2) == 0 {
			s.Type = SampleEvent
		}
		th.Samples.Append(s)
		n := 0
		if s.Type == SampleEvent {
			n = r.IntN(3)
		}
		for range n {
			v := Value{Index: int32(i), Amount: r.Float64()}
			th.Values.Append(v)
			of[s.Time] = append(of[s.Time], v.Amount)
		}
		if s.Type != SampleEvent || n > 0 {
			want = append(want, s.Time)
		}
	}
	p := &Profile{Threads: []*Thread{th}}
	p.DropEvidence()
	var got []int64
	values := th.Values.Cursor()
	for i, s := range th.Samples.All() {
		got = append(got, s.Time)
		var amounts []float64
		for _, v := range values.Of(i) {
			amounts = append(amounts, v.Amount)
		}
		require.Equal(t, of[s.Time], amounts)
	}
	require.Equal(t, want, got)
}
