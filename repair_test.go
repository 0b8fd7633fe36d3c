package tracefix_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// A countdown is a context that ends when it was asked so often.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// stacksOf lists the stack of every sample.
func stacksOf(p *profile.Profile) (list []profile.StackID) {
	for _, t := range p.Threads {
		for _, s := range t.Samples.All() {
			list = append(list, s.Stack)
		}
	}
	return list
}

// A repair that is given up changes no sample, and another one gives what it would have given.
func TestRepairContext(t *testing.T) {
	for _, processors := range []int{1, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			nothingLeft(t)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			read := func() *profile.Profile {
				p, err := tracefix.Read(t.Context(), "testdata/chain.nettrace.zst", &tracefix.ReadOptions{Evidence: true})
				require.NoError(t, err)
				return p
			}
			p, whole := read(), read()
			tracefix.Repair(whole, nil)
			before := stacksOf(p)
			asked := &countdown{Context: t.Context()}
			asked.left.Store(1 << 40)
			for _, n := range []int64{0, 1, 2, 3, 5, 10, 20} {
				ctx := &countdown{Context: t.Context()}
				ctx.left.Store(n)
				require.ErrorIs(t, tracefix.RepairContext(ctx, p, nil), context.Canceled, "after %d questions", n)
				assert.True(t, slices.Equal(before, stacksOf(p)))
				assert.Zero(t, p.Counts().Known)
			}
			require.NoError(t, tracefix.RepairContext(asked, p, nil))
			assert.Greater(t, int64(1<<40)-asked.left.Load(), int64(25), "it asks often enough")
			assert.Equal(t, whole.Counts(), p.Counts())
		})
	}
}

// A profile that is made by hand needs a Table only: threads may be of no process.
func TestRepairOfAProfileMadeByHand(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	var frames []profile.FrameID
	for i := range 120 {
		frames = append(frames, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Module: "M", Name: fmt.Sprintf("T.F%d()", i)})}))
	}
	for tid := range int64(3) {
		th := &profile.Thread{TID: tid}
		for i, s := range []profile.Sample{{Stack: p.Table.Add(frames...)}, {Stack: p.Table.Add(frames[20:]...), Cut: profile.CutDepth}, {Stack: p.Table.Add(frames...)}} {
			s.Time = int64(i) * 1e6
			th.Samples.Append(s)
		}
		p.Threads = append(p.Threads, th)
	}
	tracefix.Repair(p, nil)
	c := p.Counts()
	assert.Equal(t, 3, c.Cut)
	assert.Equal(t, 3, c.Known)
	for _, f := range tracefix.Formats() {
		if f.FromProfile() {
			assert.NoError(t, tracefix.Write(io.Discard, p, f.Name, nil), f.Name)
		}
	}
}

// Nor do logical stacks need more.
func TestLogicalOfAProfileMadeByHand(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	var frames []profile.FrameID
	for _, name := range []string{
		"System.Threading.ThreadPoolWorkQueue.Dispatch()", "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1.MoveNext()",
		"App+<Work>d__1.MoveNext()", "App.Inner()",
	} {
		frames = append(frames, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Module: "M", Name: name})}))
	}
	th := &profile.Thread{TID: 1}
	th.Samples.Append(profile.Sample{Stack: p.Table.Add(frames...)})
	p.Threads = append(p.Threads, th)
	tracefix.Logical(p)
	var names []string
	for _, s := range th.Samples.All() {
		for _, f := range p.Table.AppendFrames(nil, s.Stack) {
			names = append(names, p.Table.MethodOf(f).Name)
		}
	}
	assert.Equal(t, []string{profile.CallerUnknown, "App+<Work>d__1.MoveNext()", "App.Inner()"}, names)
}
