package tracefix_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
)

// stacksOf counts the samples of a file by their thread and stack, each for the time it holds.
func stacksOf(t testing.TB, data []byte) (stacks map[string]int, all int) {
	path := filepath.Join(t.TempDir(), "x.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := tracefix.Open(context.Background(), path)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	p, err := f.Profile(context.Background(), nil)
	if err != nil {
		return nil, 0
	}
	stacks = map[string]int{}
	for _, th := range p.Threads {
		for _, s := range th.Samples.All() {
			k := fmt.Sprint(th.TID, " ", s.Time/1e6, " ")
			for id := s.Stack; id != 0; id = p.Table.Parent(id) {
				k += p.Table.MethodOf(p.Table.Frame(id)).Name + ";"
			}
			stacks[k]++
			all++
		}
	}
	return stacks, all
}

// TestSalvageSpeedscope holds how much of a speedscope file of dotnet-trace is read after one
// flipped bit: 99.5 % of the samples on average, nine in ten at the worst.
func TestSalvageSpeedscope(t *testing.T) {
	data, err := os.ReadFile(filepath.FromSlash("../shared/corpus/nettrace/getsentry-sentry-dotnet/sample.speedscope.json"))
	if err != nil {
		t.Skip("the corpus is not here")
	}
	want, all := stacksOf(t, data)
	rng := rand.New(rand.NewPCG(19, 5))
	sum, inPlace, least, rounds := 0.0, 0.0, 1.0, 60
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		hit := bytes.Clone(data)
		at, bit := rng.IntN(len(hit)), rng.IntN(8)
		hit[at] ^= 1 << bit
		got, counted := stacksOf(t, hit)
		kept := 0
		for k, n := range got {
			kept += min(n, want[k])
		}
		share := min(1, float64(counted)/float64(all))
		sum, inPlace, least = sum+share, inPlace+float64(kept)/float64(all), min(least, share)
	}
	n := float64(rounds)
	t.Logf("mean %.2f %%, worst %.2f %%; with their stacks %.2f %%", 100*sum/n, 100*least, 100*inPlace/n)
	assert.Greater(t, sum/n, 0.995)
	assert.Greater(t, least, 0.9)
	assert.Greater(t, inPlace/n, 0.98) // a name that was hit is another name
}
