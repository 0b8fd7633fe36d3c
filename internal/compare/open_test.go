package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// methodsOf returns the methods of a stack, each once.
func methodsOf(c *costs, id profile.StackID) []int {
	var found []int
	for ; id != 0; id = c.trace.Profile.Table.Parent(id) {
		if n := c.innermost(id); n >= 0 && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	return found
}

// served makes the trace of threads that work for requests, whose stacks come from next: that of a sample is
// made from the one before it. Every so many samples a thread goes to another request, or to work of its own.
func served(threads, samples, turn int, table *profile.Table, next func(profile.StackID) profile.StackID) *Trace {
	const requests = 20
	p := &profile.Profile{Table: table, Meta: profile.Meta{End: int64(samples) * 1e6}}
	tr := &Trace{Profile: p, Requests: newRequests(false)}
	for id := 1; id <= requests; id++ {
		tr.Requests.add(id, "GET", []string{"/a", "/b"}[id%2], "", 1, 0, p.Meta.End, true, fine)
		p.Activities.Add(&profile.Activity{Request: id, Parent: -1})
	}
	pr := &profile.Process{PID: 1}
	p.Processes = []*profile.Process{pr}
	for k := range threads {
		th := &profile.Thread{Process: pr, TID: int64(k)}
		var stack profile.StackID
		for i := range samples {
			stack = next(stack)
			at := int64(i) * 1e6
			th.Samples.Append(profile.Sample{Time: at, Stack: stack, Type: profile.SampleManaged})
			if i%turn == 0 {
				activity := int32((i/turn*7+k)%(requests+1)) - 1
				th.Work.Add(profile.Work{From: at - 1, To: at + int64(turn)*1e6 - 1, Activity: activity})
			}
		}
		p.Threads = append(p.Threads, th)
	}
	p.Activities.Done()
	return tr
}

// TestByRequest holds what methods cost requests against what each stretch tells for itself.
func TestByRequest(t *testing.T) {
	for _, turn := range []int{1, 3, 500} {
		rng := rand.New(rand.NewPCG(1, uint64(turn)))
		table := profile.NewTable()
		var frames []profile.FrameID
		for i := range 9 {
			frames = append(frames, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Name: fmt.Sprint("f", i), Kind: profile.Managed})}))
		}
		tr := served(3, 1000, turn, table, func(stack profile.StackID) profile.StackID {
			for range rng.IntN(4) {
				stack = table.Parent(stack)
			}
			for range 1 + rng.IntN(4) {
				stack = table.Push(stack, frames[rng.IntN(len(frames))])
			}
			return stack
		})
		c := newCosts(tr, &names{ids: map[string]int{}})
		require.NotZero(t, c.told)
		require.NotEqual(t, c.all, c.told)
		wanted := map[int]bool{0: true, 2: true, 3: true, 7: true}
		type cost struct {
			thing   string
			request int
		}
		costs := map[cost]int64{}
		c.each(func(leaf int, _ *profile.Thread, st *profile.Stretch, request int) {
			if c.of(int32(request)) == nil {
				return
			}
			costs[cost{fmt.Sprint("self ", leaf), request}] += st.Nanos()
			for _, m := range methodsOf(c, st.Stack) {
				costs[cost{fmt.Sprint("total ", m), request}] += st.Nanos()
			}
		})
		c.byRequest(wanted)
		for m := range wanted {
			for thing, s := range map[string]*sum{"self": c.self.of(m), "total": c.total.of(m)} {
				want := map[string]pair{}
				for request := 1; request <= tr.Requests.Len(); request++ { // in their order
					if ns := costs[cost{fmt.Sprint(thing, " ", m), request}]; ns != 0 {
						x := sum{routes: want}
						x.count(c.of(int32(request)).Route, ns)
					}
				}
				assert.NotEmpty(t, want)
				assert.Equal(t, want, s.routes, "%s %d", thing, m)
			}
		}
	}
}

// Stacks of which each is one frame more than the last take time as their frames do, not as their sum.
func TestByRequestOfStacksThatGrow(t *testing.T) {
	tracetest.Growth(t, 1000, func(n int) {
		table := profile.NewTable()
		i := 0
		tr := served(1, n, n, table, func(stack profile.StackID) profile.StackID {
			i++
			return table.Push(stack, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Name: fmt.Sprint("f", i), Kind: profile.Managed})}))
		})
		tr.Profile.Threads[0].Work = profile.Works{}
		tr.Profile.Threads[0].Work.Add(profile.Work{From: -1, To: tr.Profile.Meta.End, Activity: 3})
		c := newCosts(tr, &names{ids: map[string]int{}})
		wanted := map[int]bool{}
		for m := range c.total {
			wanted[m] = true
		}
		c.byRequest(wanted)
		require.Equal(t, c.told, c.total.of(0).routes["GET /a"].sum)
	})
}

// TestOpenStack holds sums by calls and returns against those of each stretch for itself.
func TestOpenStack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := profile.NewTable()
	var frames []profile.FrameID
	for i := range 9 {
		kind := profile.Managed
		if i == 0 {
			kind = profile.Synthetic // no code
		}
		frames = append(frames, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Name: fmt.Sprint("f", i), Kind: kind})}))
	}
	n := &names{ids: map[string]int{}}
	tr := &Trace{Profile: &profile.Profile{Table: table}}
	const whole = 1e12
	c, plain := noCosts(tr, n), noCosts(tr, n)
	open := openStack{c: c, whole: whole}
	for range 4 {
		th := &profile.Thread{}
		var now int64
		var stack profile.StackID
		known := false
		for range 3000 {
			for range rng.IntN(4) {
				stack = table.Parent(stack)
			}
			for range rng.IntN(4) {
				stack = table.Push(stack, frames[rng.IntN(len(frames))])
			}
			if rng.IntN(20) == 0 {
				now += together + rng.Int64N(3) - 1
			}
			if rng.IntN(10) == 0 {
				known = !known
			}
			st := &profile.Stretch{Sample: profile.Sample{Stack: stack}, Start: now, End: now + rng.Int64N(2e6)}
			now = st.End
			open.add(th, st, known)
			for _, m := range methodsOf(plain, stack) {
				s, ns := plain.total.add(m), float64(st.Nanos())
				s.time += ns
				s.squares += ns * ns
				s.samples++
				if !known {
					s.rest.add(th, st.Start, st.End, ns, whole)
				}
			}
		}
	}
	open.end()
	require.Len(t, plain.total, 8)
	for m, want := range plain.total {
		got := c.total.of(m)
		require.NotNil(t, got)
		assert.Equal(t, want.time, got.time)
		assert.Equal(t, want.samples, got.samples)
		assert.InEpsilon(t, want.squares, got.squares, 1e-9)
		assert.Equal(t, want.rest.time, got.rest.time)
		assert.Equal(t, want.rest.covered, got.rest.covered)
		assert.InEpsilon(t, want.rest.own, got.rest.own, 1e-9)
		assert.InEpsilon(t, want.rest.squares, got.rest.squares, 1e-9)
		assert.InEpsilon(t, want.rest.variance(whole), got.rest.variance(whole), 1e-9)
	}
}
