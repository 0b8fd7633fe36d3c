package spans

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/profile"
)

// ownBytes is what `tracefix convert` makes of a profile.
func ownBytes(t testing.TB, p *profile.Profile) []byte {
	var b bytes.Buffer
	require.NoError(t, export.Chromium(&b, p, export.Options{}))
	return b.Bytes()
}

func loadChain(t testing.TB) *profile.Profile {
	file := unpack(t, "../../testdata/chain.nettrace.zst")
	p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }, nil)
	require.NoError(t, err)
	return p
}

func chainTruth(_, _ int64, marks []labMark) []labMark {
	if len(marks) == 0 {
		return nil
	}
	last := marks[len(marks)-1]
	return run(last.family, last.level)
}

// stretchesOf tells what a thread did from when to when: its samples, with equal
// neighbours joined. A sample of a profile from nettrace holds until the next.
func stretchesOf(tab *profile.Table, th *profile.Thread) []string {
	var out []string
	last := ""
	for _, s := range th.Samples.All() {
		if text := fmt.Sprint(strings.Join(names(tab, s.Stack), "\n"), s.Cut); text != last {
			out = append(out, fmt.Sprint(s.Time, " ", text))
			last = text
		}
	}
	return out
}

// A recording that was converted before it was repaired loses nothing by that: the
// same stacks are found cut, and their repair is as good as that of the recording.
func TestOwnOutput(t *testing.T) {
	p := loadChain(t)
	in := ownBytes(t, p)
	require.True(t, bytes.HasPrefix(in, []byte(`{"traceEvents":[{"`)))
	tr := readBytes(t, in, nil)
	require.Equal(t, 100, tr.Profile.Meta.DepthLimit)

	// The profile is what it was, but for what the file cannot tell.
	threads := map[int64]*profile.Thread{}
	for _, th := range tr.Profile.Threads {
		threads[th.TID] = th
	}
	cut := 0
	for _, th := range p.Threads {
		if th.Samples.Len() == 0 {
			continue
		}
		got := threads[th.TID]
		require.NotNil(t, got, "thread %d", th.TID)
		// Whether a stack of 100 frames is cut, only a repair can tell here.
		all := strings.NewReplacer("depth", "")
		want, have := stretchesOf(p.Table, th), stretchesOf(tr.Profile.Table, got)
		for i := range want {
			want[i] = all.Replace(want[i])
		}
		for i := range have {
			have[i] = all.Replace(have[i])
		}
		require.Equal(t, want, have, "thread %d", th.TID)
		cut += got.Samples.Cuts()
	}
	require.Equal(t, tr.Facts.Cut, cut)

	// Nothing is to be done: not a byte changes. Converted again, the spans are the same.
	assert.True(t, bytes.Equal(in, rewriteBytes(t, tr, false)))
	again := readBytes(t, in, &Options{Weighted: true})
	assert.True(t, maps.EqualFunc(spansOf(parse(t, in)), spansOf(parse(t, ownBytes(t, again.Profile))), slices.Equal))

	pass.FixStacks(tr.Profile, 0.9)
	got := score(t, tr, chainTruth)
	t.Logf("converted: %.2f %% exact, %.2f %% wrong, %.2f %% bridged of %d", percent(got, "exact"), percent(got, "wrong"), percent(got, "bridged"), got["judged"])
	assert.GreaterOrEqual(t, percent(got, "exact"), 97.0)
	assert.LessOrEqual(t, percent(got, "wrong"), 0.3)

	out := rewriteBytes(t, tr, false)
	checkSpans(t, parse(t, out))
	twice, _ := repairBytes(t, out, false)
	assert.True(t, bytes.Equal(out, twice), "repair of the repaired trace changes it")

	// What was written is what the repair says.
	back := readBytes(t, out, nil)
	for _, th := range back.Profile.Threads {
		want := stretchesOf(tr.Profile.Table, threads[th.TID])
		have := stretchesOf(back.Profile.Table, th)
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "depth")
		}
		require.Equal(t, want, have, "thread %d", th.TID)
	}

	// The recording itself, repaired and then converted.
	pass.FixStacks(p, 0.9)
	direct := readBytes(t, ownBytes(t, p), nil)
	same, all := 0, 0
	for _, th := range direct.Profile.Threads {
		want := stretchesOf(direct.Profile.Table, th)
		have := stretchesOf(tr.Profile.Table, threads[th.TID])
		for i := range have {
			have[i] = strings.TrimSuffix(have[i], "depth")
		}
		for _, w := range want {
			if _, ok := slices.BinarySearchFunc(have, w, byTime); ok {
				same++
			}
			all++
		}
	}
	t.Logf("%d of %d stacks are those of the recording repaired directly", same, all)
	assert.GreaterOrEqual(t, float64(same), 0.97*float64(all))
}

// byTime orders what stretchesOf returns; equal are only equal ones.
func byTime(a, b string) int {
	if a == b {
		return 0
	}
	var x, y int64
	fmt.Sscan(a, &x)
	fmt.Sscan(b, &y)
	if x < y {
		return -1
	}
	return 1
}

// ownProfile makes a profile of stacks that last a ms each; an empty one is a gap.
func ownProfile(limit int, threads ...[]string) *profile.Profile {
	tab := profile.NewTable()
	frames := map[string]profile.FrameID{}
	p := &profile.Profile{Table: tab, Meta: profile.Meta{DepthLimit: limit}}
	for i, stacks := range threads {
		th := &profile.Thread{TID: int64(7 + i), Process: &profile.Process{PID: 5, Name: "Lab"}}
		if i > 0 {
			th.Process = p.Threads[0].Process
		}
		for j, n := range stacks {
			if n == "" {
				continue
			}
			n, off := strings.CutPrefix(n, "off:")
			full := stack(n)
			cut := full
			if limit > 0 {
				cut = full[max(0, len(full)-limit):]
			}
			s := profile.Sample{Time: int64(100*i+j+10) * 1e6, Dur: 1e6}
			if off {
				s.Type = profile.SampleOffCPU
			}
			for _, name := range cut {
				f, ok := frames[name]
				if !ok {
					module, method, _ := strings.Cut(name, "!")
					f = tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: module, Name: method})})
					frames[name] = f
				}
				s.Stack = tab.Push(s.Stack, f)
			}
			if len(cut) < len(full) {
				s.Cut = profile.CutDepth
			}
			th.Samples.Append(s)
		}
		p.Threads = append(p.Threads, th)
	}
	return p
}

// How stacks follow each other makes no difference: calls only, returns only, gaps,
// time off the CPU.
func TestOwnTransitions(t *testing.T) {
	for _, c := range []struct {
		name   string
		stacks []string
	}{
		{"calls only", []string{"Root a", "Root a b", "Root a b c"}},
		{"returns only", []string{"Root a b c", "Root a b", "Root a"}},
		{"returns only, cut", []string{b90, d120, b90 + "d0..d20", b90}},
		{"calls only, cut", []string{b90, b90 + "d0..d20", d120}},
		{"a gap in cut stacks", []string{b90, d120, "", d120, "", b90}},
		{"a gap before cut stacks", []string{b90, "", d120, d120 + "x"}},
		{"off CPU", []string{b90, d120, "off:" + d120, d120, "off:" + d120 + "w"}},
		{"a callee of the caller's name", []string{"Root a b a", "Root b a b", "Root a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ownProfile(100, c.stacks)
			tr := readBytes(t, ownBytes(t, p), nil)
			if !assert.Len(t, tr.Profile.Threads, 1) {
				return
			}
			th := tr.Profile.Threads[0]
			require.Equal(t, stretchesOf(p.Table, p.Threads[0]), stretchesOf(tr.Profile.Table, th))
			for i, s := range th.Samples.All() {
				off := strings.HasPrefix(slices.DeleteFunc(slices.Clone(c.stacks), func(n string) bool { return n == "" })[i], "off:")
				assert.Equal(t, off, s.Type == profile.SampleOffCPU, "sample %d", i)
			}
			pass.FixStacks(tr.Profile, 0.9)
			out := rewriteBytes(t, tr, false)
			checkSpans(t, parse(t, out))
			back := readBytes(t, out, nil)
			for i, s := range back.Profile.Threads[0].Samples.All() {
				want := slices.DeleteFunc(slices.Clone(c.stacks), func(n string) bool { return n == "" })[i]
				assert.Equal(t, stack(strings.TrimPrefix(want, "off:")), names(back.Profile.Table, s.Stack), "sample %d", i)
			}
			twice, _ := repairBytes(t, out, false)
			assert.True(t, bytes.Equal(out, twice))
		})
	}
}

// Random walks through a program, read back and repaired.
func TestOwnWalks(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var threads [][]string
		for range 3 {
			var stacks []string
			depth := 0
			for range 200 {
				depth = min(max(0, depth+rnd.IntN(41)-20), 180)
				n := fmt.Sprintf("Root a0..a%d", depth)
				if rnd.IntN(4) == 0 {
					n += fmt.Sprintf(" b%d", rnd.IntN(3))
				}
				if rnd.IntN(20) == 0 {
					n = ""
				}
				stacks = append(stacks, n)
			}
			threads = append(threads, stacks)
		}
		in := ownBytes(t, ownProfile(100, threads...))
		out, tr := repairBytes(t, in, rnd.IntN(2) == 0)
		require.NotZero(t, tr.Facts.Cut)
		checkSpans(t, parse(t, out))
		checkNeverShrinks(t, parse(t, in), parse(t, out))
		exact, all := 0, 0
		back := readBytes(t, out, nil)
		for _, th := range back.Profile.Threads {
			i := int(th.TID - 7)
			for _, s := range th.Samples.All() {
				want := stack(threads[i][s.Time/1e6-int64(100*i+10)])
				have := names(back.Profile.Table, s.Stack)
				if len(want) == 0 {
					continue // whole stacks on both sides of a gap: what they share stays open
				}
				if all++; slices.Equal(want, have) {
					exact++
					continue
				}
				at := slices.Index(have, profile.Bridge)
				require.GreaterOrEqual(t, at, 0, "seed %d, at %d ns: %d frames, %d are true", seed, s.Time, len(have), len(want))
				require.Equal(t, want[:at], have[:at], "before the bridge")
				require.Equal(t, want[len(want)-(len(have)-at-1):], have[at+1:], "behind the bridge")
			}
		}
		assert.Greater(t, exact, all*9/10, "seed %d", seed)
	}
}

// What was not cut by depth is not taken for it, and another limit is known.
func TestOwnLimit(t *testing.T) {
	for _, c := range []struct {
		limit, ask, cut int
	}{
		{100, 0, 1}, {60, 0, 3}, {0, 0, 0}, {100, 60, 0}, {0, 120, 1},
	} {
		p := ownProfile(c.limit, []string{b90, b90 + "d0..d28 x", b90})
		tr := readBytes(t, ownBytes(t, p), &Options{MaxDepth: c.ask})
		assert.Equal(t, c.cut, tr.Facts.Cut, "%+v", c)
	}
}

// Stacks that a recorder cut at no limit of frames are known, unless they were repaired.
func TestOwnCuts(t *testing.T) {
	p := ownProfile(0, []string{"a b", "a c", "a b", "a b d"}, []string{"a b", "a c"})
	cuts := []profile.Cut{profile.CutBytes, profile.CutBroken, profile.Whole, profile.CutBytes, profile.Whole, profile.CutBroken}
	i := -1
	for _, th := range p.Threads {
		th.Samples.Change(func(s *profile.Sample) bool {
			i++
			s.Cut = cuts[i]
			return true
		})
	}
	told := func(in []byte) (cuts []profile.Cut) {
		tr := readBytes(t, in, nil)
		assert.Zero(t, tr.Facts.CutUntold)
		for _, th := range tr.Profile.Threads {
			for _, s := range th.Samples.All() {
				cuts = append(cuts, s.Cut)
			}
		}
		return cuts
	}
	in := ownBytes(t, p)
	assert.Equal(t, cuts, told(in))

	for _, index := range []int{0, 3} {
		p.Threads[0].Repairs.Append(profile.Repair{Index: index, How: "before"})
		cuts[index] = profile.Whole
	}
	assert.Equal(t, cuts, told(ownBytes(t, p)))

	// Where it is only told how many they are, or what nobody writes, nothing is taken for cut.
	for _, list := range []string{``, `,"cuts":[1,2]`, `,"cuts":[]`} {
		tr := readBytes(t, regexp.MustCompile(`,"cuts":\[[0-9,]*\]`).ReplaceAll(in, []byte(list)), nil)
		assert.Equal(t, 4, tr.Facts.CutUntold)
		assert.Zero(t, tr.Facts.Cut)
	}
	assert.Zero(t, readBytes(t, ownBytes(t, loadChain(t)), nil).Facts.CutUntold)
}

// Tracks hold no stacks, and the modules of frames are their categories.
func TestOwnTracks(t *testing.T) {
	p := ownProfile(100, []string{"Root a", "Root b"})
	p.Tracks = []*profile.Track{{Name: "HTTP", Group: "http", Nested: true, Process: p.Threads[0].Process, Slices: func(yield func(*profile.Slice) bool) {
		yield(&profile.Slice{Start: 1e6, Dur: 3e6, Name: "GET /", Category: "http"})
	}}}
	for _, weighted := range []bool{false, true} {
		in := ownBytes(t, p)
		tr := readBytes(t, in, &Options{Weighted: weighted})
		require.Len(t, tr.Profile.Threads, 1)
		th := tr.Profile.Threads[0]
		assert.Equal(t, "Lab", th.Process.Name)
		assert.Equal(t, int64(7), th.TID)
		s := th.Samples.Cursor()
		first, _ := s.Next()
		assert.Equal(t, []string{"m!Root", "m!a"}, names(tr.Profile.Table, first.Stack))
		assert.True(t, bytes.Equal(in, rewriteBytes(t, tr, false)))
	}
}
