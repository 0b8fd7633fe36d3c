package compare

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// slice is how long the pieces are that a recording is dealt out in, ns: longer than what
// happens in one go.
const slice = 100_000_000

// halves deals the pieces of a recording to two sides by chance: traces of one program that
// differ in nothing. Of the samples of the second side that have a frame of the method named
// by faster the part by is left out.
func halves(t *Trace, rng *rand.Rand, faster string, by float64) (a, b *Trace) {
	second := make([]bool, t.Profile.Meta.End/slice+2)
	for i, at := range rng.Perm(len(second)) {
		second[at] = i%2 == 0
	}
	isSecond := func(at int64) bool { return second[min(max(0, at/slice), int64(len(second)-1))] }
	has := map[profile.StackID]bool{}
	table := t.Profile.Table
	for id := profile.StackID(1); int(id) < table.Stacks(); id++ {
		has[id] = has[table.Parent(id)] || faster != "" && table.MethodOf(table.Frame(id)).Full() == faster
	}
	side := func(want bool) *Trace {
		p := *t.Profile
		p.Threads = nil
		for _, th := range t.Profile.Threads {
			like := *th
			like.Samples = profile.Samples{}
			for _, s := range th.Samples.All() {
				s.Hidden = s.Hidden || isSecond(s.Time) != want || want && has[s.Stack] && rng.Float64() < by
				like.Samples.Append(s)
			}
			p.Threads = append(p.Threads, &like)
		}
		half := &Trace{Name: "half", Profile: &p, Requests: t.Requests.chosen(func(r *Request) bool { return isSecond(r.start) == want })}
		for _, g := range t.GC {
			if isSecond(g.start) == want {
				half.GC = append(half.GC, g)
			}
		}
		return half
	}
	return side(false), side(true)
}

// TestRateOfFalseFindings deals out recordings of services: of sides that differ in nothing at
// most one pair in twenty may show something, and a method that lost four tenths of its cost must
// show. Programs that go through phases are left out: their halves do differ. TRACEFIX_EVERY=1
// tries more.
func TestRateOfFalseFindings(t *testing.T) {
	const dir = "../../../shared/corpus/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no corpus beside the repository")
	}
	recordings, pairs := []string{"dotnet10/compare-before", "dotnet10/compare-same", "dotnet10/requests-full"}, 10
	if os.Getenv("TRACEFIX_EVERY") != "" {
		recordings, pairs = append(recordings, "dotnet10/compare-after", "dotnet10/requests-convoy", "dotnet10/web-60s", "runtime/alloc-tick"), 40
	}
	const burn = "Lab!Lab.Req.BurnA(float64)"
	tried, wrong, slower, found := 0, 0, 0, 0
	for _, name := range recordings {
		f, err := tracefix.Open(context.Background(), dir+name+".nettrace")
		require.NoError(t, err)
		tr, err := Read(context.Background(), f, name, Options{})
		require.NoError(t, err)
		f.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		before := wrong
		for range pairs {
			tried++
			if Traces(halves(tr, rng, "", 0)).Summary() != "nothing moved beyond noise" {
				wrong++
			}
			if name == "dotnet10/compare-before" {
				slower++
				if verdictOf(Traces(halves(tr, rng, burn, 0.4)), burn) == Less {
					found++
				}
			}
		}
		t.Logf("%s: %d of %d pairs that do not differ show something", name, wrong-before, pairs)
	}
	t.Logf("%d of %d pairs show what is not there; %d of %d show what is", wrong, tried, found, slower)
	assert.LessOrEqual(t, 20*wrong, tried)
	assert.GreaterOrEqual(t, 10*found, 7*slower)
}
