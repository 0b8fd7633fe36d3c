package spans

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/profile"
)

// Which stacks a recorder cut at no limit of frames is known after a conversion to Chromium JSON and
// to speedscope: a repair of either finds as much, and one of the repaired file finds nothing.
func TestToldCuts(t *testing.T) {
	files, err := filepath.Glob("../../../shared/corpus/dotnet10/v6-*.nettrace")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Log("without the shared corpus only the recording in testdata is read")
	}
	if testing.Short() {
		files = nil
	}
	for _, name := range append(files, "../../testdata/nettrace/v6-nosymbols.nettrace.gz") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			p, _, err := load.Profile(context.Background(), opener(unpack(t, name)), nil)
			require.NoError(t, err)
			in := ownBytes(t, p)
			tr := readBytes(t, in, nil)
			assert.Zero(t, tr.Facts.CutUntold)
			sameCuts(t, p, tr)

			var b bytes.Buffer
			require.NoError(t, export.Speedscope(&b, p, export.Options{}))
			var sp *SpeedscopeReader
			as, err := Read(context.Background(), opener(b.Bytes()), &Options{Events: func(open func() (io.ReadCloser, error), _ func(*chromium.FormatError), frame func(*chromium.StackFrame) error) (Source, error) {
				sp, err = NewSpeedscopeReader(open, nil, frame)
				return sp, err
			}})
			require.NoError(t, err)
			assert.Equal(t, lastingCuts(tr), lastingCuts(as))
			assert.Zero(t, as.Facts.CutUntold)

			pass.FixStacks(tr.Profile, 0.9)
			out := rewriteBytes(t, tr, false)
			checkSpans(t, parse(t, out))
			back := readBytes(t, out, nil)
			assert.Zero(t, back.Facts.Cut)
			twice, _ := repairBytes(t, out, false)
			assert.True(t, bytes.Equal(out, twice), "repair of the repaired trace changes it")

			// What was written is what the repair says.
			for i, th := range back.Profile.Threads {
				have := th.Samples.Cursor()
				h, _ := have.Next()
				for _, w := range tr.Profile.Threads[i].Samples.All() {
					if w.Dur <= 2 {
						continue
					}
					for end(&h) <= middle(&w) {
						h, _ = have.Next()
					}
					require.Equal(t, names(tr.Profile.Table, w.Stack), names(back.Profile.Table, h.Stack), "thread %d at %d ns", th.TID, w.Time)
				}
			}
		})
	}
}

// end returns when the time is over that a sample speaks for.
func end(s *profile.Sample) int64 { return s.Time + s.Dur }

func middle(s *profile.Sample) int64 { return s.Time + s.Dur/2 }

// sameCuts checks that the samples of a file that p was written to are cut where those of p are.
func sameCuts(t *testing.T, p *profile.Profile, tr *Trace) {
	t.Helper()
	timing := p.Timing()
	for _, th := range tr.Profile.Threads {
		var of *profile.Thread
		for _, x := range p.Threads {
			if x.TID == th.TID && x.Owner().PID == th.Owner().PID {
				of = x
			}
		}
		require.NotNil(t, of)
		var stretches []profile.Stretch
		for st := range timing.Stretches(of) {
			stretches = append(stretches, st)
		}
		for _, s := range th.Samples.All() {
			if s.Dur <= 2 {
				continue // what does not last is written some nanoseconds later
			}
			at := middle(&s)
			for len(stretches) > 0 && stretches[0].End <= at {
				stretches = stretches[1:]
			}
			require.NotEmpty(t, stretches)
			require.Equal(t, stretches[0].Cut, s.Cut, "thread %d at %d ns", th.TID, s.Time)
			require.Equal(t, stretches[0].Suspect, s.Suspect)
		}
	}
	assert.NotZero(t, lastingCuts(tr))
}

// lastingCuts counts the cut samples that last.
func lastingCuts(tr *Trace) (n int) {
	for _, th := range tr.Profile.Threads {
		for _, s := range th.Samples.All() {
			if s.Cut != profile.Whole && s.Dur > 2 {
				n++
			}
		}
	}
	return n
}

// Numbers that tracefix does not write are not believed.
func TestReadCuts(t *testing.T) {
	assert.Equal(t, toldCuts{{10, 15, 3, profile.CutBytes, 0}, {15, 16, 4, profile.CutBroken, 2}}, readCuts([]int64{10, 5, 3, 0, 0, 1, 4, 5}))
	for _, list := range [][]int64{
		nil, {1}, {0, 5, 3}, {-1, 5, 3, 0}, {0, 0, 3, 0}, {0, 5, 0, 0}, {0, 5, 3, -1}, {0, 5, 3, 8},
		{math.MaxInt64, 1, 1, 0}, {1, math.MaxInt64, 1, 0}, {1, 1, 1, 0, math.MaxInt64 - 1, 1, 1, 0},
	} {
		assert.Nil(t, readCuts(list), "%v", list)
	}
	cuts := readCuts([]int64{10, 5, 3, 0, 5, 5, 4, 1})
	for _, c := range []struct {
		ns    int64
		depth int
		want  profile.Cut
	}{{9, 3, profile.Whole}, {10, 3, profile.CutBytes}, {14, 3, profile.CutBytes}, {14, 4, profile.Whole}, {15, 3, profile.Whole}, {20, 4, profile.CutBroken}, {25, 4, profile.Whole}} {
		got := profile.Whole
		if x := cuts.at(c.ns, c.depth); x != nil {
			got = x.cut
		}
		assert.Equal(t, c.want, got, "%+v", c)
	}
}
