package profile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// weighed returns a profile of a thread with these stacks of methods f0, f1, ..., root first: each
// has a sample, and an event that weighs as much as its place. f5 is where the sampler stops
// threads, and f6 is not shown.
func weighed(stacks [][]int) *profile.Profile {
	p := &profile.Profile{Table: profile.NewTable(), Weights: []profile.Weight{{Name: "w"}}, Names: []string{""}}
	var frames []profile.FrameID
	for i := range 7 {
		m := profile.Method{Name: fmt.Sprint("f", i)}
		switch i {
		case 5:
			m = profile.Method{Module: "System.Private.CoreLib", Name: "System.Threading.Thread.PollGC()"}
		case 6:
			m.Kind = profile.Synthetic
		}
		frames = append(frames, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(m)}))
	}
	th := &profile.Thread{}
	for i, stack := range stacks {
		var s profile.StackID
		for _, f := range stack {
			s = p.Table.Push(s, frames[f])
		}
		th.Samples.Append(profile.Sample{Time: int64(2 * i), Stack: s, Type: profile.SampleCPU})
		th.Samples.Append(profile.Sample{Time: int64(2*i + 1), Stack: s, Type: profile.SampleEvent})
		th.Values.Append(profile.Value{Index: int32(2*i + 1), Amount: float64(i)})
	}
	th.Values.Done()
	p.Threads = []*profile.Thread{th}
	return p
}

// TestOpenFrames holds Around and TopValues, which leave frames open from one stack to the next,
// against what each stack tells by itself.
func TestOpenFrames(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		stacks := make([][]int, 30)
		for i := range stacks {
			for range rng.IntN(9) {
				stacks[i] = append(stacks[i], rng.IntN(7))
			}
		}
		p := weighed(stacks)
		for pattern, wanted := range map[string][]string{"f0": {"f0"}, "f?": {"f0", "f1", "f2", "f3", "f4"}} {
			held, callers, callees := 0, map[string]int{}, map[string]int{}
			for _, stack := range stacks {
				names := []string{profile.Root}
				for _, f := range stack {
					if f < 5 {
						names = append(names, fmt.Sprint("f", f))
					}
				}
				names = append(names, profile.Self)
				by, of := map[string]bool{}, map[string]bool{}
				for k, name := range names {
					if slices.Contains(wanted, name) {
						by[names[k-1]], of[names[k+1]] = true, true
					}
				}
				for name := range by {
					callers[name]++
				}
				for name := range of {
					callees[name]++
				}
				if len(by) > 0 {
					held++
				}
			}
			samples := func(rows []profile.AroundRow) map[string]int {
				out := map[string]int{}
				for _, r := range rows {
					out[r.Method] = r.Samples
				}
				return out
			}
			a := p.Around(pattern, false)
			assert.Equal(t, held, a.Samples, "%s, seed %d", pattern, seed)
			assert.Equal(t, callers, samples(a.Callers), "%s, seed %d", pattern, seed)
			assert.Equal(t, callees, samples(a.Callees), "%s, seed %d", pattern, seed)
		}
		self, total := map[string]float64{}, map[string]float64{}
		for i, stack := range stacks {
			met := map[string]bool{}
			last := ""
			for _, f := range stack {
				if f == 6 {
					continue
				}
				if last = fmt.Sprint("f", f); f == 5 {
					last = "System.Private.CoreLib!System.Threading.Thread.PollGC()"
				}
				if !met[last] {
					met[last] = true
					total[last] += float64(i)
				}
			}
			if last != "" {
				self[last] += float64(i)
			}
		}
		v := p.TopValues(0, 0, false)
		assert.Len(t, v.Methods, len(total))
		for _, r := range v.Methods {
			assert.Equal(t, [2]float64{self[r.Method], total[r.Method]}, [2]float64{r.Self, r.Total}, "%s, seed %d", r.Method, seed)
		}
	}
}

// TestDeepStacks: stacks each one frame more than the last take no square of their number.
func TestDeepStacks(t *testing.T) {
	for name, sum := range map[string]func(*profile.Profile){
		"Top":       func(p *profile.Profile) { p.Top(profile.TopOptions{}) },
		"Around":    func(p *profile.Profile) { p.Around("f0", false) },
		"TopValues": func(p *profile.Profile) { p.TopValues(0, 0, false) },
	} {
		t.Run(name, func(t *testing.T) {
			ps := map[int]*profile.Profile{}
			tracetest.Growth(t, 1500, func(n int) {
				if ps[n] == nil {
					p := weighed([][]int{{0}})
					th := p.Threads[0]
					s := profile.StackID(0)
					for i := range n {
						s = p.Table.Push(s, profile.FrameID(i%5))
						th.Samples.Append(profile.Sample{Time: int64(10 + 2*i), Stack: s, Type: profile.SampleCPU})
						th.Samples.Append(profile.Sample{Time: int64(11 + 2*i), Stack: s, Type: profile.SampleEvent})
						th.Values.Append(profile.Value{Index: int32(2*i + 3), Amount: 1})
					}
					th.Values.Done()
					ps[n] = p
				}
				for range 5 {
					sum(ps[n])
				}
			})
		})
	}
}
