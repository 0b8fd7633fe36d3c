package tracefix_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// A salvaged file has its samples by thread and names of frames, with their times in nanoseconds.
type salvaged struct {
	times map[string][]int64
	all   int
	told  bool // that it is damaged
}

// salvage reads a file as the commands do.
func salvage(t testing.TB, path string, data []byte) salvaged {
	require.NoError(t, os.WriteFile(path, data, 0o600))
	in, err := input.Open(context.Background(), path, nil)
	if err != nil {
		return salvaged{told: true}
	}
	defer in.Close()
	if in.Kind == input.Unknown {
		return salvaged{told: true}
	}
	f := tracefix.FromInput(in)
	o := &tracefix.ReadOptions{}
	p, err := f.Profile(context.Background(), o)
	if in.Mend(context.Background()) {
		p, err = f.Profile(context.Background(), o)
	}
	s := salvaged{times: map[string][]int64{}, told: err != nil}
	if p == nil {
		return s
	}
	s.told = s.told || len(p.Meta.Damage) > 0
	names := map[profile.StackID]string{}
	var name func(id profile.StackID) string
	name = func(id profile.StackID) string {
		if id == 0 {
			return ""
		}
		n, ok := names[id]
		if !ok {
			n = name(p.Table.Parent(id)) + ";" + p.Table.MethodOf(p.Table.Frame(id)).Name
			names[id] = n
		}
		return n
	}
	for _, th := range p.Threads {
		for _, x := range th.Samples.All() {
			k := strconv.FormatInt(int64(th.TID), 10) + name(x.Stack)
			s.times[k] = append(s.times[k], x.Time)
			s.all++
		}
	}
	for _, ts := range s.times {
		slices.Sort(ts)
	}
	return s
}

// inPlace counts the samples that are found again in a damaged file, with their thread and the names of
// their frames, within a millisecond of their time.
func (want salvaged) inPlace(got salvaged) int { return tracetest.InPlace(want.times, got.times) }

// A salvageRow is what is left of a file after one flipped bit, over many places.
type salvageRow struct{ kept, worstKept, inPlace, worstInPlace, told float64 }

func flips(t testing.TB, data []byte, rounds int, seed uint64) salvageRow {
	path := filepath.Join(t.TempDir(), "x")
	want := salvage(t, path, data)
	require.False(t, want.told)
	require.NotZero(t, want.all)
	rng := rand.New(rand.NewPCG(19, seed))
	row := salvageRow{worstKept: 1, worstInPlace: 1}
	for range rounds {
		hit := bytes.Clone(data)
		at, bit := rng.IntN(len(hit)), rng.IntN(8)
		hit[at] ^= 1 << bit
		got := salvage(t, path, hit)
		kept, inPlace := min(1, float64(got.all)/float64(want.all)), float64(want.inPlace(got))/float64(want.all)
		if os.Getenv("TRACEFIX_FLIPS") != "" {
			fmt.Printf("%d.%d kept %.4f in place %.4f told %v\n", at, bit, kept, inPlace, got.told)
		}
		row.kept, row.inPlace = row.kept+kept, row.inPlace+inPlace
		row.worstKept, row.worstInPlace = min(row.worstKept, kept), min(row.worstInPlace, inPlace)
		if got.told {
			row.told++
		}
	}
	n := float64(rounds)
	row.kept, row.inPlace, row.told = row.kept/n, row.inPlace/n, row.told/n
	return row
}

// fromCorpus returns the content of a file of the corpus, unpacked; nil: it is not here.
func fromCorpus(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join("..", "shared", "corpus", filepath.FromSlash(name)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(nil)
		require.NoError(t, err)
		defer z.Close()
		data, err = z.DecodeAll(data, nil)
		require.NoError(t, err)
	}
	return data
}

// packedBy packs data with a program that users have; nil: it is not installed.
func packedBy(t testing.TB, data []byte, program ...string) []byte {
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin = bytes.NewReader(data)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
		return nil
	} else {
		require.NoError(t, err)
	}
	return out.Bytes()
}

// TestSalvageSpeedscope holds how much of a speedscope file of dotnet-trace is read after one
// flipped bit: 99.5 % of the samples on average, nine in ten at the worst.
func TestSalvageSpeedscope(t *testing.T) {
	data := fromCorpus(t, "nettrace/getsentry-sentry-dotnet/sample.speedscope.json")
	if data == nil {
		t.Skip("the corpus is not here")
	}
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	row := flips(t, data, rounds, 5)
	assert.Greater(t, row.kept, 0.995)
	assert.Greater(t, row.worstKept, 0.9)
	assert.Greater(t, row.inPlace, 0.98) // a name that was hit is another name
}

// BenchmarkSalvage prints the table of docs/damage.md: what is left of the samples of a file after
// one flipped bit, over 200 places. It is run once: go test . -run - -bench Salvage -benchtime
// 1x -timeout 2h
func BenchmarkSalvage(b *testing.B) {
	rounds := 200
	if n, err := strconv.Atoi(os.Getenv("TRACEFIX_ROUNDS")); err == nil {
		rounds = n
	}
	seed, _ := strconv.ParseUint(cmp.Or(os.Getenv("TRACEFIX_SEED"), "4"), 10, 64)
	v4 := fromCorpus(b, "dotnet10/chain.nettrace")
	for _, f := range []struct {
		name string
		data func() []byte
	}{
		{"v4", func() []byte { return v4 }},
		{"v4_async", func() []byte { return fromCorpus(b, "dotnet10/async.nettrace") }},
		{"v6", func() []byte { return fromCorpus(b, "dotnet10/v6-cl-web.nettrace") }},
		{"v6_of_one_process", func() []byte { return fromCorpus(b, "dotnet10/v6-shared.nettrace") }},
		{"speedscope", func() []byte { return fromCorpus(b, "nettrace/getsentry-sentry-dotnet/sample.speedscope.json") }},
		{"Chromium", func() []byte { return fromCorpus(b, "dotnet10/reference/async.chromium.json.zst") }},
		{"gzip", func() []byte { return packedBy(b, v4, "gzip", "-c") }},
		{"zstd", func() []byte { return packedBy(b, v4, "zstd", "-q", "-c") }},
		{"zip", func() []byte { return packedBy(b, v4, "zip", "-q", "-", "-") }},
		{"bzip2", func() []byte { return packedBy(b, v4, "bzip2", "-c") }},
	} {
		b.Run(f.name, func(b *testing.B) {
			data := f.data()
			if data == nil {
				b.Skip("its file or program is not here")
			}
			for b.Loop() {
				row := flips(b, data, rounds, seed)
				b.ReportMetric(100*row.kept, "%kept")
				b.ReportMetric(100*row.worstKept, "%worst-kept")
				b.ReportMetric(100*row.inPlace, "%in-place")
				b.ReportMetric(100*row.worstInPlace, "%worst-in-place")
				b.ReportMetric(100*row.told, "%told")
			}
		})
	}
}
