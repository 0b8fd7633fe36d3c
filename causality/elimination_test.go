package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A shop is a lab in which requests of two routes run async methods, which events tell first.
type shop struct {
	*lab
	n uint32 // requests so far
}

var (
	shopItem  = []stacks.FrameID{frameTop, frameDispatch, frameRun}
	shopCarts = append(shopItem[:3:3], frameMoveNext)
)

// begin begins a request on thread 2 and runs its method there.
func (s *shop) begin(route string) uint32 {
	s.n++
	s.add(Event{Kind: Start, ID: s.id(s.n), Name: "Request", Text: route, Thread: 2}, shopItem...)
	s.add(Event{Kind: Sample, Thread: 2}, shopCarts...)
	s.add(Event{Kind: Other, ID: s.id(s.n), Thread: 2}, shopCarts...)
	s.add(Event{Kind: Idle, Thread: 2})
	return s.n
}

func (s *shop) end(n uint32) {
	s.add(Event{Kind: Stop, ID: s.id(n), Name: "Request", Thread: 2}, shopItem...)
	s.add(Event{Kind: Idle, Thread: 2})
}

// goesOn has thread 1 go on with a method that no event tells of, and returns the time of that in ms.
func (s *shop) goesOn(frames ...stacks.FrameID) int64 {
	s.add(Event{Kind: Idle})
	s.add(Event{Kind: Sample}, frames...)
	s.add(Event{Kind: Sample}, frames...)
	at := s.now / 1e6
	s.add(Event{Kind: Idle})
	s.add(Event{Kind: Idle})
	return at
}

// newShop returns one in which the method was for a request so many times, and for nothing so many.
func newShop(t *testing.T, requests, others int) *shop {
	s := &shop{lab: newLab(t)}
	s.now = 1e9 // no request is as long
	s.end(s.begin("/other"))
	for range requests {
		s.end(s.begin("/carts"))
	}
	for range others {
		n := s.begin("/carts")
		s.add(Event{Kind: Sample}, shopCarts...)
		s.add(Event{Kind: Other}, shopCarts...) // for none
		s.add(Event{Kind: Idle})
		s.end(n)
	}
	return s
}

func TestTheOnlyRequestThatCanBeMeant(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	one := s.begin("/carts")
	alone := s.goesOn(shopCarts...)
	plain := s.goesOn(append(shopItem[:3:3], frameUser)...)
	other := s.begin("/other")
	both := s.goesOn(shopCarts...) // /other ran it as well
	s.end(other)
	again := s.goesOn(shopCarts...)
	s.end(one)
	none := s.goesOn(shopCarts...)
	s.g.Finish()
	for at, want := range map[int64]uint32{alone: one, plain: 0, both: 0, again: one, none: 0} {
		a, known, _ := s.workAt(at)
		assert.Equal(t, want != 0, known, "at %d ms", at)
		assert.Same(t, s.acts[int(want)], a, "at %d ms", at)
	}
}

// What lies in a request and runs the method too is meant, where it was open all the time.
func TestTheInnermostThatCanBeMeant(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	one := s.begin("/carts")
	s.add(Event{Kind: Start, ID: s.id(one, 1000), Related: s.id(one), Name: "Job", Thread: 2}, shopCarts...)
	s.add(Event{Kind: Sample, Thread: 2}, append(shopCarts[:4:4], frameUser)...)
	s.add(Event{Kind: Other, ID: s.id(one, 1000), Thread: 2}, append(shopCarts[:4:4], frameUser)...)
	s.add(Event{Kind: Idle, Thread: 2})
	inner := s.goesOn(shopCarts...)
	s.add(Event{Kind: Stop, ID: s.id(one, 1000), Name: "Job", Thread: 2}, shopCarts...)
	s.add(Event{Kind: Idle, Thread: 2})
	outer := s.goesOn(shopCarts...)
	s.g.Finish()
	a, _, _ := s.workAt(inner)
	assert.Same(t, s.acts[1000], a)
	a, _, _ = s.workAt(outer)
	assert.Same(t, s.acts[int(one)], a)
}

// Of two that can be meant it is the one that no other thread runs for, where that was seen.
func TestTheOtherOneRunsElsewhere(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	one, two := s.begin("/carts"), s.begin("/carts")
	s.add(Event{Kind: Other, ID: s.id(one), Thread: 3}, shopCarts...)
	s.add(Event{Kind: Idle})
	var at []int64
	for range 2 {
		s.add(Event{Kind: Sample}, shopCarts...)
		at = append(at, s.now/1e6)
		s.now -= 1e6 - 1e4 // in the same round
		s.add(Event{Kind: Sample, Thread: 3}, append(shopCarts[:4:4], frameUser)...)
	}
	s.add(Event{Kind: Other, ID: s.id(one), Thread: 3}, shopCarts...)
	s.add(Event{Kind: Idle, Thread: 3})
	s.add(Event{Kind: Sample}, shopCarts...)
	alone := s.now / 1e6 // of neither it is known then
	s.add(Event{Kind: Idle})
	s.g.Finish()
	for _, ms := range at {
		a, known, _ := s.workAt(ms)
		assert.True(t, known, "at %d ms", ms)
		assert.Same(t, s.acts[int(two)], a, "at %d ms", ms)
	}
	_, known, _ := s.workAt(alone)
	assert.False(t, known)
	for i := range s.out {
		for k := range i {
			if a, b := &s.out[i], &s.out[k]; a.Thread == b.Thread {
				assert.LessOrEqual(t, min(a.To, b.To), max(a.From, b.From), "in order, and none twice")
			}
		}
	}
}

// One that began when the work was under way is not what it is for.
func TestWhatBeganLaterIsNotMeant(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	one := s.begin("/carts")
	s.add(Event{Kind: Idle})
	s.add(Event{Kind: Sample}, shopCarts...)
	two := s.begin("/carts")
	s.add(Event{Kind: Sample}, shopCarts...)
	at := s.now / 1e6
	s.add(Event{Kind: Idle})
	s.add(Event{Kind: Idle})
	both := s.goesOn(shopCarts...)
	s.end(two)
	s.end(one)
	s.g.Finish()
	a, known, _ := s.workAt(at)
	assert.True(t, known)
	assert.Same(t, s.acts[int(one)], a)
	_, known, _ = s.workAt(both)
	assert.False(t, known)
}

// Where all that can be meant run elsewhere it is none of them.
func TestAllOfThemRunElsewhere(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	one, two := s.begin("/carts"), s.begin("/carts")
	s.add(Event{Kind: Other, ID: s.id(one), Thread: 3}, shopCarts...)
	s.add(Event{Kind: Other, ID: s.id(two), Thread: 4}, shopCarts...)
	s.add(Event{Kind: Idle})
	s.add(Event{Kind: Sample}, shopCarts...)
	at := s.now / 1e6
	for thread := uint64(3); thread < 5; thread++ {
		s.now -= 1e6 - 1e4 // in the same round
		s.add(Event{Kind: Sample, Thread: thread}, append(shopCarts[:4:4], frameUser)...)
	}
	s.add(Event{Kind: Other, ID: s.id(one), Thread: 3}, shopCarts...)
	s.add(Event{Kind: Other, ID: s.id(two), Thread: 4}, shopCarts...)
	s.add(Event{Kind: Idle})
	s.g.Finish()
	_, known, _ := s.workAt(at)
	assert.False(t, known)
}

func TestWhereTheTraceDoesNotShowThatItHoldsNothingIsSaid(t *testing.T) {
	for name, s := range map[string]*shop{"too few": newShop(t, leastRight-1, 0), "wrong": newShop(t, 2*leastRight, 2)} {
		s.begin("/carts")
		at := s.goesOn(shopCarts...)
		s.g.Finish()
		_, known, _ := s.workAt(at)
		assert.False(t, known, name)
	}
}

// A request that began before the trace may be open without a word of it.
func TestNothingIsSaidAtTheBeginningOfATrace(t *testing.T) {
	s := newShop(t, leastRight+1, 0)
	long := s.begin("/carts")
	s.now += 2e9
	s.end(long)
	one := s.begin("/carts")
	early := s.goesOn(shopCarts...)
	s.add(Event{Kind: Other}, shopItem...) // what was before is handed out
	s.now += 2e9
	late := s.goesOn(shopCarts...)
	s.g.Finish()
	_, known, _ := s.workAt(early)
	assert.False(t, known)
	a, known, _ := s.workAt(late)
	assert.True(t, known)
	assert.Same(t, s.acts[int(one)], a)
}

// Of threads of which nothing tells for whom they work all is kept for a while: who else ran just
// now is not looked for in all of it.
func TestWhoElseRanIsFoundNearby(t *testing.T) {
	tracetest.Growth(t, 200, func(rounds int) {
		s := newShop(t, leastRight+1, 0)
		s.begin("/carts")
		s.begin("/carts")
		own := [2]stacks.StackID{s.tree.Add(frameTop, frameUser), s.tree.Add(frameTop, frameUser, frameOther)}
		carts := s.tree.Add(shopCarts...)
		add := func(e Event) {
			e.Time, e.Process = s.now, 1
			s.g.Add(&e)
		}
		for r := range rounds {
			for n := range uint64(50) {
				add(Event{Kind: Sample, Thread: 100 + n, Stack: own[r%2]})
			}
			for range 20 {
				s.now += 1e4
				add(Event{Kind: Idle, Thread: 3})
				add(Event{Kind: Sample, Thread: 3, Stack: carts})
				s.now += 1e4
				add(Event{Kind: Other, Thread: 3, Stack: carts, ID: s.id(s.n), HasID: true})
			}
		}
		s.g.Finish()
	})
}
