// Package relay lets the steps of one flow of data run side by side: who makes batches hands
// them on, any number of workers may work on them, and who takes them gets them in the order
// in which they were made. So the result is the same for any number of processors.
//
// On one processor there is nothing to gain: the same steps then run one after the other on
// the goroutine of the caller, without a queue.
package relay

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// busy is how many processors others than Lines keep at work; see Reserve.
var busy atomic.Int64

// Reserve says that n processors have other work until free is called, such as further
// files of a batch.
func Reserve(n int) (free func()) {
	busy.Add(int64(n))
	return sync.OnceFunc(func() { busy.Add(-int64(n)) })
}

// Workers is how many steps of a Line that begins now can run at once: at least one.
func Workers() int { return max(1, runtime.GOMAXPROCS(0)-int(busy.Load())) }

// A Line takes batches from one goroutine, which calls its methods, through work to take.
// It must be closed. Its memory is that of a few batches for each worker, which are used
// again: nobody may keep anything of a batch.
type Line[B any] struct{ line }

// A line is what is the same for batches of all types; one is a *B.
type line struct {
	batch func() any
	work  func(any)
	take  func(any) error

	free  chan *parcel
	todo  chan *parcel // to the workers; nil without work
	order chan *parcel // to who takes; nil on one processor
	held  *parcel      // that the caller fills
	idle  []*parcel    // that he has back
	heavy int          // what those hold that he has not back, see Weigh
	wait  sync.WaitGroup

	guard
	closed bool
	err    error
}

// A guard keeps a panic of a step for the caller, and a runtime.Goexit, which is what FailNow of a
// test calls.
type guard struct {
	failed atomic.Bool // nothing more is to be done
	once   sync.Once
	what   *Panic
	exit   atomic.Bool
}

// A Panic is what another goroutine panicked with, as the caller's own panic.
type Panic struct {
	Value any
	Stack []byte // of that goroutine
}

// Recovered makes a Panic of what was recovered, on the goroutine that panicked.
func Recovered(what any) *Panic {
	if p, ok := what.(*Panic); ok { // of a goroutine of that one
		return p
	}
	return &Panic{what, debug.Stack()}
}

// Error returns the value as text, and the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// run calls f.
func (g *guard) run(f func()) {
	returned := false
	defer func() {
		if what := recover(); what != nil {
			g.once.Do(func() { g.what = Recovered(what) })
			g.failed.Store(true)
		} else if !returned {
			g.exit.Store(true)
			g.failed.Store(true)
		}
	}()
	f()
	returned = true
}

// tell panics or exits if a step did. All steps have ended.
func (g *guard) tell() {
	if g.what != nil {
		panic(g.what)
	}
	if g.exit.Load() {
		runtime.Goexit()
	}
}

// A parcel is a batch on its way.
type parcel struct {
	batch any
	ready chan struct{} // told when the work is done
	heavy int
}

// New returns a Line. work, which may be nil, is called for several batches at once and
// changes nothing but its batch; take is called for one after the other. What take returns ends the Line.
func New[B any](work func(*B), take func(*B) error) *Line[B] {
	l := &Line[B]{line{batch: func() any { return new(B) }, take: func(b any) error { return take(b.(*B)) }}}
	if work != nil {
		l.work = func(b any) { work(b.(*B)) }
	}
	l.start()
	return l
}

// start makes the batches and what works on them.
func (l *line) start() {
	workers := Workers()
	if workers == 1 {
		l.held = &parcel{batch: l.batch()}
		return
	}
	const (
		ahead = 4  // batches that wait for each who works: to wake who sleeps takes as long as some hundred events
		apart = 16 // batches of a Line without work: who fills them may make some at once, as a block of events does, and then none for as long
	)
	parcels := apart
	if l.work != nil {
		parcels = ahead * (workers + 1)
	}
	l.free = make(chan *parcel, parcels)
	for range parcels {
		l.free <- &parcel{batch: l.batch(), ready: make(chan struct{}, 1)}
	}
	l.order = make(chan *parcel, parcels)
	if l.work != nil {
		l.todo = make(chan *parcel, parcels)
		for range workers {
			l.wait.Go(l.works)
		}
	}
	l.wait.Go(l.takes)
}

// Batches is how many batches there are: so many may be on their way or about to be filled.
func (l *line) Batches() int { return max(1, cap(l.free)) }

// works is the goroutine of a worker.
func (l *line) works() {
	for p := range l.todo {
		l.step(l.works, func() { p.ready <- struct{}{} }, func() { l.work(p.batch) })
	}
}

// step runs f unless a step failed before, and then. Where f ends the goroutine, another one goes
// on with rest: who fills batches would wait for ever.
func (l *line) step(rest, then, f func()) {
	returned := false
	defer func() {
		then()
		if !returned {
			l.wait.Go(rest)
		}
	}()
	if !l.failed.Load() {
		l.run(f)
	}
	returned = true
}

// takes is the goroutine that takes batches in their order.
func (l *line) takes() {
	for p := range l.order {
		<-p.ready
		l.step(l.takes, func() { l.free <- p }, func() {
			if l.err = l.take(p.batch); l.err != nil {
				l.failed.Store(true)
			}
		})
	}
}

// Batch returns the batch to fill next. It holds what it was left with when it was taken
// the last time, so that its memory can be used again.
func (l *Line[B]) Batch() *B { return l.hold().batch.(*B) }

// hold returns the parcel to fill next.
func (l *line) hold() *parcel {
	switch {
	case l.held != nil:
	case l.closed:
		l.held = &parcel{batch: l.batch()}
	default:
		for len(l.idle) == 0 || l.heavy > mostHeavy {
			p := <-l.free
			l.idle, l.heavy, p.heavy = append(l.idle, p), l.heavy-p.heavy, 0
		}
		last := len(l.idle) - 1
		l.held, l.idle = l.idle[last], l.idle[:last]
	}
	return l.held
}

// mostHeavy is how many bytes of Weigh may be on their way where another batch is filled.
const mostHeavy = 4 << 20

// Weigh says that the batch that Batch returns holds so many bytes beside the memory that is used
// again, and does no more when it was taken. While more than some MB of these are on their way,
// Batch waits.
func (l *line) Weigh(bytes int) {
	p := l.hold()
	if l.order != nil && !l.closed {
		l.heavy, p.heavy = l.heavy+bytes-p.heavy, bytes
	}
}

// Send hands on the batch that Batch returns. It returns the error that take has returned
// for an earlier one, if that is known by now: nothing is taken any more then.
func (l *line) Send() error {
	p := l.hold()
	if l.order == nil {
		l.one(p)
		return l.err
	}
	l.held = nil
	if l.closed {
		return l.err
	}
	l.order <- p
	if l.todo != nil {
		l.todo <- p
	} else {
		p.ready <- struct{}{}
	}
	if l.failed.Load() {
		return l.Close()
	}
	return nil
}

// one takes a batch through all steps.
func (l *line) one(p *parcel) {
	if l.err != nil {
		return
	}
	if l.work != nil {
		l.work(p.batch)
	}
	l.err = l.take(p.batch)
}

// Close waits until all batches that were sent are taken, and returns the error that ended
// that. A panic of a step becomes one of the caller.
func (l *line) Close() error {
	if l.order != nil && !l.closed {
		l.closed = true
		close(l.order)
		if l.todo != nil {
			close(l.todo)
		}
		l.wait.Wait()
		l.tell()
	}
	return l.err
}

// Each calls f for 0 to n-1, for several at once where there are processors for it, and returns
// when all are done. f changes nothing but what is its own. A panic of f becomes one of the caller.
func Each(n int, f func(i int)) {
	workers := min(Workers(), n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var g guard
	var wait sync.WaitGroup
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && !g.failed.Load(); i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	for range workers - 1 {
		wait.Go(func() { g.run(work) })
	}
	g.run(work)
	wait.Wait()
	g.tell()
}

// Shares calls add for 0 to n-1, for several at once where there are processors for it, and returns
// what the calls made of a value for each of those who work. The calls with one value come one after
// the other, with ever higher i; which ones they are differs from run to run.
func Shares[V any](n int, add func(v *V, i int)) []*V {
	type own struct {
		value V
		_     [128]byte // two processors that write into one cache line wait for each other
	}
	values := make([]*V, min(Workers(), n))
	for w := range values {
		values[w] = &new(own).value
	}
	var next atomic.Int64
	Each(len(values), func(w int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			add(values[w], i)
		}
	})
	return values
}
