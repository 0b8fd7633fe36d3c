package runtimeevents

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// told is all that a collection tells, as it stands.
func told(g *GC) string {
	c := *g
	c.Pauses, c.inner, c.within = nil, nil, nil // pointers; what they tell follows
	c.running, c.unsized = 0, false
	return fmt.Sprintf("%+v pause %d from %d, suspending %d, waking %d", c, g.Pause(), g.PauseStart(), g.Suspend(), g.Waking())
}

// settling collects what has settled, in the words of that moment.
type settling struct {
	GCs
	byPID     map[int][]string
	unclaimed map[int][]*Suspension
	early     int // handed on before the end
}

func newSettling() *settling {
	s := &settling{byPID: map[int][]string{}, unclaimed: map[int][]*Suspension{}}
	s.Settled = func(pid int, g *GC) {
		s.byPID[pid] = append(s.byPID[pid], told(g))
		s.early++
	}
	return s
}

// requireSame compares with what was collected without settling.
func (s *settling) requireSame(t *testing.T, whole []*GCProcess) {
	t.Helper()
	for _, p := range s.Finish() {
		s.unclaimed[p.PID] = p.Suspensions
		require.Empty(t, p.Collections)
	}
	for _, p := range whole {
		var want []string
		for _, g := range p.Collections {
			want = append(want, told(g))
		}
		require.Equal(t, want, s.byPID[p.PID])
		require.Equal(t, len(p.Unclaimed()), len(s.unclaimed[p.PID]))
	}
}

// A settled collection tells all that it would tell at the end, and few are left to the end.
func TestSettled(t *testing.T) {
	all, _ := filepath.Glob(corpus + "*.nettrace*")
	if len(all) == 0 {
		t.Skip("no corpus beside the repository:", corpus)
	}
	for _, f := range all {
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		t.Run(name, func(t *testing.T) {
			var whole GCs
			s := newSettling()
			replay(t, name+".nettrace", func(ev *nettrace.Event, ns int64) {
				whole.Event(ev, ns, 0)
				s.Event(ev, ns, 0)
			})
			early, want := s.early, whole.Finish()
			s.requireSame(t, want)
			n := 0
			for _, p := range want {
				n += len(p.Collections)
			}
			assert.LessOrEqual(t, n-early, 4+n/20, "of %d", n)
		})
	}
}

// A collection of which an event was lost does not hold up those behind it for long: all would be in memory.
func TestSettledBehindLoss(t *testing.T) {
	for name, lost := range map[string]step{"a background one": gcStart(120, 9, 1, 2, BackgroundGC), "another one": gcStart(120, 9, 1, 0, NonConcurrentGC)} {
		t.Run(name, func(t *testing.T) {
			steps := []step{lost}
			const n = mostUnsettled + 100
			for i := range uint32(n) {
				at := int64(1000 * (i + 1))
				steps = append(steps, suspend(at, 2, 1, i), mark(at+10, 2, IDSuspendEEEnd), gcStart(at+20, 2, i+10, 0, NonConcurrentGC), gcEnd(at+30, 2, i+10),
					mark(at+40, 2, IDRestartEEBegin), mark(at+50, 2, IDRestartEEEnd))
			}
			s := newSettling()
			for _, st := range steps {
				s.Event(event(st.id, 1, st.tid, st.fields...), st.at, 0)
			}
			assert.GreaterOrEqual(t, s.early, n-1)
			s.requireSame(t, []*GCProcess{collect(steps)})
		})
	}
}
