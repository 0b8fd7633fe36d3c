package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onProcessors runs f with so many processors as a user's --jobs sets.
func onProcessors(t *testing.T, n int, f func(t *testing.T)) {
	t.Run(fmt.Sprint(n), func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		before := runtime.NumGoroutine()
		f(t)
		for range 1000 { // one that has ended may be counted for a moment
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Error("goroutines are left")
	})
}

type numbers struct{ in, out []int }

// TestOrder sends batches whose work takes longest for the first ones.
func TestOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		onProcessors(t, n, func(t *testing.T) {
			var got []int
			l := New(func(b *numbers) {
				b.out = b.out[:0]
				for _, v := range b.in {
					if v < 50 {
						runtime.Gosched()
					}
					b.out = append(b.out, v*v)
				}
			}, func(b *numbers) error {
				got = append(got, b.out...)
				return nil
			})
			var want []int
			for i := range 1000 {
				b := l.Batch()
				b.in = append(b.in[:0], i, i+1)
				want = append(want, i*i, (i+1)*(i+1))
				require.NoError(t, l.Send())
			}
			require.NoError(t, l.Close())
			require.NoError(t, l.Close(), "once more is harmless")
			assert.Equal(t, want, got)
		})
	}
}

// TestFirstErrorWins ends a Line in its middle: the sender gets to know, and nothing behind is taken.
func TestFirstErrorWins(t *testing.T) {
	enough := errors.New("enough")
	for _, n := range []int{1, 2, 4} {
		onProcessors(t, n, func(t *testing.T) {
			taken := 0
			l := New(nil, func(b *int) error {
				taken++
				if *b >= 10 {
					return fmt.Errorf("%d: %w", *b, enough)
				}
				return nil
			})
			for i := 0; ; i++ {
				*l.Batch() = i
				if err := l.Send(); err != nil {
					assert.EqualError(t, err, "10: enough")
					break
				}
			}
			*l.Batch() = 7
			assert.ErrorIs(t, l.Send(), enough, "errors stick")
			assert.ErrorIs(t, l.Close(), enough)
			assert.Equal(t, 11, taken)
		})
	}
}

// TestPanic hands the panic of a step to the caller, who may tell what he was doing.
func TestPanic(t *testing.T) {
	for _, n := range []int{1, 2} {
		onProcessors(t, n, func(t *testing.T) {
			assert.Panics(t, func() {
				l := New(func(b *int) { _ = 1 / *b }, func(*int) error { return nil })
				for range 20 {
					*l.Batch() = 0
					if l.Send() != nil {
						break
					}
				}
				_ = l.Close()
			})
		})
	}
}

func TestEach(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		onProcessors(t, n, func(t *testing.T) {
			got := make([]int, 1000)
			Each(len(got), func(i int) { got[i] += i * i })
			for i, v := range got {
				require.Equal(t, i*i, v)
			}
			Each(0, func(int) { t.Error("nothing is to be done") })
			assert.Panics(t, func() { Each(20, func(i int) { got[1000+i] = 1 }) })
		})
	}
}

// What it was that a goroutine panicked with stays known, with the stack of that one, through as
// many goroutines as there are.
func TestPanicKeepsItsValue(t *testing.T) {
	mine := errors.New("mine")
	onProcessors(t, 4, func(t *testing.T) {
		defer func() {
			err, _ := recover().(error)
			require.ErrorIs(t, err, mine)
			var p *Panic
			require.ErrorAs(t, err, &p)
			assert.Contains(t, string(p.Stack), "throws")
			assert.Contains(t, err.Error(), "mine\n")
		}()
		var both sync.WaitGroup // both are gone on with by others than the caller, and one of these panics
		both.Add(2)
		Each(2, func(i int) {
			both.Done()
			both.Wait()
			Each(2, func(int) { throws(mine) })
		})
	})
	assert.NoError(t, (&Panic{Value: "text"}).Unwrap())
}

func throws(err error) { panic(err) }

func TestReserve(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	assert.Equal(t, 4, Workers())
	free := Reserve(3)
	assert.Equal(t, 1, Workers())
	free()
	free()
	assert.Equal(t, 4, Workers())
}

func BenchmarkLine(b *testing.B) {
	b.ReportAllocs()
	sum := 0
	l := New(nil, func(n *int) error { sum += *n; return nil })
	for b.Loop() {
		*l.Batch() = 1
		_ = l.Send()
	}
	_ = l.Close()
}

// TestCancel ends a Line whose sender waits for a place in the queue, as an interrupt does: take
// waits for somebody who does not come, until its context ends.
func TestCancel(t *testing.T) {
	for _, n := range []int{2, 4} {
		onProcessors(t, n, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			worked := atomic.Int64{}
			l := New(func(*int) { worked.Add(1) }, func(*int) error {
				<-ctx.Done()
				return ctx.Err()
			})
			time.AfterFunc(10*time.Millisecond, cancel)
			var err error
			sent := 0
			for ; err == nil; sent++ {
				*l.Batch() = sent
				err = l.Send()
			}
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, l.Close(), context.Canceled)
			assert.LessOrEqual(t, sent, l.Batches()+2, "the queue is bounded")
			assert.LessOrEqual(t, worked.Load(), int64(sent))
		})
	}
}

func TestShares(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		onProcessors(t, n, func(t *testing.T) {
			var got []int
			parts := 0
			for _, own := range Shares(1000, func(own *[]int, i int) { *own = append(*own, i) }) {
				assert.True(t, slices.IsSorted(*own))
				got = append(got, *own...)
				parts++
			}
			slices.Sort(got)
			for i, v := range got {
				require.Equal(t, i, v)
			}
			assert.Len(t, got, 1000)
			assert.Equal(t, n, parts)
			for range Shares(0, func(*int, int) {}) {
				t.Error("nothing is to be done")
			}
		})
	}
}

// TestWeigh sends batches of which some are heavy: few of those are on their way at one time, in
// order, also where they are not taken any more.
func TestWeigh(t *testing.T) {
	enough := errors.New("enough")
	for _, n := range []int{1, 2, 4} {
		onProcessors(t, n, func(t *testing.T) {
			var out atomic.Int64 // bytes on their way
			last, most := 0, int64(0)
			l := New(nil, func(b *[2]int) error {
				time.Sleep(time.Millisecond)
				assert.Equal(t, last+1, b[0])
				last = b[0]
				out.Add(-int64(b[1]))
				if last == 90 {
					return enough
				}
				return nil
			})
			for i := 1; ; i++ {
				b := l.Batch()
				*b = [2]int{i, mostHeavy / 3}
				if i%10 == 0 {
					b[1] = 2 * mostHeavy
				}
				l.Weigh(1) // what was said before does not count
				l.Weigh(b[1])
				most = max(most, out.Add(int64(b[1])))
				if l.Send() != nil {
					break
				}
			}
			assert.ErrorIs(t, l.Close(), enough)
			assert.Equal(t, 90, last)
			if n > 1 {
				assert.GreaterOrEqual(t, most, int64(2*mostHeavy))
			}
			assert.LessOrEqual(t, most, int64(4*mostHeavy))
		})
	}
}
