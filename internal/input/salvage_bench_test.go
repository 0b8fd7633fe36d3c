package input

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// A sampleKey is what makes a sample the one that was recorded, beside its time.
type sampleKey struct {
	thread, stack uint64
	payload       string
}

// A sampleTimes consumer lists the times of the CPU samples of a trace in nanoseconds.
type sampleTimes struct {
	r    *nettrace.Reader
	seed maphash.Seed
	of   map[sampleKey][]int64
	all  int
}

func (s *sampleTimes) Begin(r *nettrace.Reader) { s.r = r }

func (s *sampleTimes) Event(ev *nettrace.Event) error {
	if ev.Metadata.Role == nettrace.RoleSample || ev.Metadata.Role == nettrace.RoleCPU {
		var h maphash.Hash
		h.SetSeed(s.seed)
		for _, a := range ev.Stack.AppendTo(nil) {
			maphash.WriteComparable(&h, a)
		}
		k := sampleKey{ev.ThreadID, h.Sum64(), string(ev.Payload)}
		s.of[k] = append(s.of[k], s.r.Nanos(ev.Time))
		s.all++
	}
	return nil
}

func (s *sampleTimes) End() {}

var sampleSeed = maphash.MakeSeed()

// samplesIn reads the samples of a file as every command does.
func samplesIn(t testing.TB, path string) (*sampleTimes, error) {
	f, err := Open(context.Background(), path, nil)
	if err != nil {
		return &sampleTimes{}, err
	}
	defer f.Close()
	for {
		s := &sampleTimes{seed: sampleSeed, of: map[sampleKey][]int64{}}
		var first error
		_, err = Read(context.Background(), f.Reader, func(e *nettrace.FormatError) {
			if first == nil {
				first = e
			}
		}, s)
		if !f.Mend(context.Background()) {
			return s, cmp.Or(err, first)
		}
	}
}

// inPlace counts the samples that are found again within a millisecond of their time.
func (s *sampleTimes) inPlace(want *sampleTimes) (n int) {
	for k, times := range s.of {
		rest := slices.Sorted(slices.Values(want.of[k]))
		slices.Sort(times)
		for _, t := range times {
			for len(rest) > 0 && rest[0] < t-1e6 {
				rest = rest[1:]
			}
			if len(rest) > 0 && rest[0] <= t+1e6 {
				n, rest = n+1, rest[1:]
			}
		}
	}
	return n
}

// BenchmarkSalvage prints the rows of docs/damage.md about compressed recordings: how many samples are read in
// place after one flipped bit, over 200 places. It is run once: go test -run - -bench Salvage -benchtime 1x
func BenchmarkSalvage(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "corpus", "dotnet10", "chain.nettrace"))
	if err != nil {
		b.Log("without the corpus: a part of it")
		data = trace(b)
	}
	for name, packed := range packs(b, data) {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "x")
			require.NoError(b, os.WriteFile(path, packed, 0o600))
			want, err := samplesIn(b, path)
			require.NoError(b, err)
			const rounds = 200
			for b.Loop() {
				rng := rand.New(rand.NewPCG(19, 4))
				sum, least := 0.0, 1.0
				for range rounds {
					hit := bytes.Clone(packed)
					at := rng.IntN(len(hit))
					hit[at] ^= 1 << rng.IntN(8)
					require.NoError(b, os.WriteFile(path, hit, 0o600))
					got, _ := samplesIn(b, path)
					share := float64(got.inPlace(want)) / float64(want.all)
					sum, least = sum+share, min(least, share)
				}
				b.ReportMetric(100*sum/float64(rounds), "%mean")
				b.ReportMetric(100*least, "%worst")
			}
		})
	}
}
