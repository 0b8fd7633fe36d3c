package pass

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// deep makes a thread that works 130 frames deep between whole stacks, recorded with
// a limit of 100 frames.
func deep(limit int) *profile.Profile {
	tab := profile.NewTable()
	frames := make([]profile.FrameID, 131)
	for i := range frames {
		m := tab.AddMethod(profile.Method{Module: "app", Name: fmt.Sprintf("F%03d()", i)})
		frames[i] = tab.AddFrame(profile.Frame{Method: m})
	}
	stack := func(depth int) (profile.StackID, profile.Cut) {
		var s profile.StackID
		cut := profile.Whole
		if depth > limit {
			cut = profile.CutDepth
		}
		for _, f := range frames[max(0, depth-limit):depth] {
			s = tab.Push(s, f)
		}
		return s, cut
	}
	th := &profile.Thread{Process: &profile.Process{PID: 7}, TID: 1}
	for i := range 400 {
		d := 20 + i%110
		s, cut := stack(d)
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: s, Cut: cut, Type: profile.SampleManaged})
	}
	return &profile.Profile{Table: tab, Threads: []*profile.Thread{th}, Processes: []*profile.Process{th.Process}}
}

func TestFixStacksRestoresAndKeepsSamples(t *testing.T) {
	p := deep(100)
	th := p.Threads[0]
	before, cuts := th.Samples.Len(), th.Samples.Cuts()
	require.NotZero(t, cuts)
	var recorded []profile.Sample
	for _, s := range th.Samples.All() {
		recorded = append(recorded, s)
	}
	FixStacks(p, 0.9)
	assert.Equal(t, before, th.Samples.Len(), "no sample is deleted")
	require.Equal(t, cuts, th.Repairs.Len(), "every cut sample has its repair")
	repairs := th.Repairs.Cursor()
	for i, s := range th.Samples.All() {
		assert.Equal(t, recorded[i].Time, s.Time)
		if recorded[i].Cut == profile.Whole {
			assert.Equal(t, recorded[i], s, "whole samples stay as they are")
			continue
		}
		r := repairs.Of(i)
		require.NotNil(t, r)
		assert.Equal(t, i, r.Index)
		assert.Equal(t, recorded[i].Stack, r.Recorded)
		got := p.Table.AppendFrames(nil, s.Stack)
		want := p.Table.AppendFrames(nil, r.Recorded)
		assert.Equal(t, want, got[len(got)-len(want):], "what was recorded stays the leaf end")
	}
}

// The samples of a process in which no answer is missing are not read, and counted.
func TestFixStacksCountsAllSamples(t *testing.T) {
	p := deep(100)
	whole := &profile.Thread{Process: &profile.Process{PID: 8}, TID: 2}
	for i, s := range p.Threads[0].Samples.All() {
		if s.Cut == profile.Whole && i < 300 {
			whole.Samples.Append(s)
		}
	}
	require.NotZero(t, whole.Samples.Len())
	p.Threads, p.Processes = append(p.Threads, whole), append(p.Processes, whole.Process)
	assert.Equal(t, 400+whole.Samples.Len(), FixStacks(p, 0.9).Samples)
	p.Threads, p.Processes = p.Threads[1:], p.Processes[1:]
	assert.Equal(t, whole.Samples.Len(), FixStacks(p, 0.9).Samples)
}

// TestFixStacksOnAllProcessors: the line that says how many there are was lost once, and the search
// went on one.
func TestFixStacksOnAllProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 3} {
		runtime.GOMAXPROCS(n)
		assert.Equal(t, n, new(FixOptions).options(deep(100)).Workers)
	}
}

func TestBridgeFrameIsOne(t *testing.T) {
	tab := profile.NewTable()
	a := BridgeFrame(tab)
	assert.Equal(t, a, BridgeFrame(tab))
	assert.Equal(t, profile.Bridge, tab.MethodOf(a).Full())
}

// TestSamplesOnly: stacks of events are evidence and stay as they were recorded, but on a thread
// whose events weigh something.
func TestSamplesOnly(t *testing.T) {
	for name, weighs := range map[string]bool{"evidence": false, "weights": true} {
		t.Run(name, func(t *testing.T) {
			read := func() (*profile.Profile, *profile.Thread) {
				p := deep(100)
				th := p.Threads[0]
				var mixed profile.Samples
				for i, s := range th.Samples.All() {
					e := s
					e.Type = profile.SampleEvent
					e.Stack = p.Table.Push(e.Stack, profile.FrameID(0)) // or it is in a row with the sample
					mixed.Append(e)
					if weighs && i%3 == 0 {
						th.Values.Append(profile.Value{Index: int32(2 * i), Amount: 1})
					}
					mixed.Append(s)
				}
				th.Values.Done()
				th.Samples = mixed
				return p, th
			}
			p, all := read()
			FixStacks(p, 0.9)
			q, some := read()
			_, err := FixStacksContext(t.Context(), q, FixOptions{MinConfidence: 0.9, SamplesOnly: true})
			require.NoError(t, err)
			var repaired []profile.StackID
			for _, s := range all.Samples.All() {
				repaired = append(repaired, s.Stack)
			}
			old, now := all.Repairs.Cursor(), some.Repairs.Cursor()
			left, same := 0, 0
			for i, s := range some.Samples.All() {
				was, is := old.Of(i), now.Of(i)
				switch {
				case was == nil:
					assert.Nil(t, is)
				case s.Type == profile.SampleEvent && !weighs:
					left++
					assert.Nil(t, is)
					assert.Equal(t, was.Recorded, s.Stack)
				case assert.NotNil(t, is):
					same++
					assert.Equal(t, *was, *is)
					assert.Equal(t, repaired[i], s.Stack)
				}
			}
			assert.Equal(t, !weighs, left > 0)
			assert.NotZero(t, same)
		})
	}
}

// TestSamplesOnlyOfMany: where five of six cut stacks are of other events, samples are repaired as
// if all were.
func TestSamplesOnlyOfMany(t *testing.T) {
	path := corpus + "real/bus.nettrace.zst"
	all, _ := loadTrace(t, path, true)
	some, _ := loadTrace(t, path, true)
	FixStacks(all, 0)
	_, err := FixStacksContext(t.Context(), some, FixOptions{SamplesOnly: true})
	require.NoError(t, err)
	all.DropEvidence()
	some.DropEvidence()
	known := 0
	for i, th := range some.Threads {
		other := all.Threads[i]
		require.Equal(t, other.Samples.Len(), th.Samples.Len())
		is, was := th.Samples.Cursor(), other.Samples.Cursor()
		repairs, repaired := th.Repairs.Cursor(), other.Repairs.Cursor()
		var s, o profile.Sample
		for k := range th.Samples.Len() {
			is.Read(&s)
			was.Read(&o)
			require.Equal(t, all.Table.AppendFrames(nil, o.Stack), some.Table.AppendFrames(nil, s.Stack))
			if r, x := repairs.Of(k), repaired.Of(k); x != nil {
				require.NotNil(t, r)
				require.Equal(t, []any{x.How, x.Confidence, x.Restored}, []any{r.How, r.Confidence, r.Restored})
				known++
			}
		}
	}
	assert.NotZero(t, known)
}

func TestDropEvidenceKeepsRepairsWithTheirSamples(t *testing.T) {
	p := deep(100)
	th := p.Threads[0]
	var mixed profile.Samples
	n := 0
	for _, s := range th.Samples.All() {
		if n++; n%3 == 0 {
			e := s
			e.Type = profile.SampleEvent
			mixed.Append(e)
		}
		mixed.Append(s)
	}
	th.Samples = mixed
	FixStacks(p, 0.9)
	type row struct {
		time   int64
		stack  profile.StackID
		repair profile.Repair
	}
	rows := func() (all []row) {
		c := th.Repairs.Cursor()
		for i, s := range th.Samples.All() {
			r := row{time: s.Time, stack: s.Stack}
			if rep := c.Of(i); rep != nil {
				r.repair = *rep
				r.repair.Index = 0
			}
			if s.Type != profile.SampleEvent {
				all = append(all, r)
			}
		}
		return all
	}
	before := rows()
	p.DropEvidence()
	assert.Equal(t, before, rows())
	assert.Equal(t, 400, th.Samples.Len())
}

// How many turns of a recursion are missing is not made up: a serializer that calls itself, of which
// 100 frames were recorded, has not been given 250 more of the same.
func TestTurnsAreNotMadeUp(t *testing.T) {
	path := tracetest.Corpus(t, "dotnet10", "web.nettrace")
	p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, &load.Options{Evidence: true})
	require.NoError(t, err)
	FixStacks(p, DefaultConfidence)
	behind := 0 // stacks that have frames behind the bridge
	for _, th := range p.Threads {
		for r := range th.Repairs.All() {
			if r.Above > 0 {
				behind++
			}
			if recorded := p.Table.Tree.Depth(r.Recorded); r.Above > recorded {
				own := map[profile.MethodID]bool{}
				for s := r.Recorded; s != 0; s = p.Table.Tree.Parent(s) {
					own[p.Table.Method(p.Table.Tree.Frame(s))] = true
				}
				c := th.Samples.Cursor()
				c.Seek(r.Index)
				sample, _ := c.Next()
				fixed := p.Table.Tree.AppendFrames(nil, sample.Stack)
				for _, f := range fixed[len(fixed)-recorded-r.Above : len(fixed)-recorded] {
					require.False(t, own[p.Table.Method(f)], "sample %d of thread %d, %d frames", r.Index, th.TID, r.Above)
				}
			}
		}
	}
	assert.Greater(t, behind, 20)
}
