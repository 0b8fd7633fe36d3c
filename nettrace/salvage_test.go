package nettrace

import (
	"bytes"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// sampleSeed is of the sums by which stacks are told apart.
var sampleSeed = maphash.MakeSeed()

// A sampleKey is what makes a sample the one that was recorded, beside its time: its thread,
// what it says and its stack.
type sampleKey struct {
	thread, stack uint64
	process       int
	payload       string
}

// samplesOf lists the times of the CPU samples of a file in nanoseconds.
func samplesOf(data []byte) (times map[sampleKey][]int64, all int) {
	r, err := NewReader(bytes.NewReader(data), nil)
	if err != nil {
		return nil, 0
	}
	times = map[sampleKey][]int64{}
	var ev Event
	for r.Read(&ev) == nil {
		if ev.Metadata.Role == RoleSample || ev.Metadata.Role == RoleCPU {
			k := sampleKey{ev.ThreadID, maphash.Bytes(sampleSeed, ev.Stack.raw), ev.ProcessID, string(ev.Payload)}
			times[k] = append(times[k], r.Nanos(ev.Time))
			all++
		}
	}
	for _, t := range times {
		slices.Sort(t)
	}
	return times, all
}

// A salvaged tells what was left of the samples of a file after it was damaged again and again.
type salvaged struct {
	kept, counted []float64 // shares: samples as they were recorded; all samples, changed or not
}

func mean(shares []float64) float64 {
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	return sum / float64(len(shares))
}

func worst(shares []float64) float64 {
	w := 1.0
	for _, s := range shares {
		w = min(w, s)
	}
	return w
}

// salvage damages data as often as asked for and reads what is left.
func salvage(data []byte, rounds int, damage func(b []byte, rng *rand.Rand) []byte) salvaged {
	want, all := samplesOf(data)
	rng := rand.New(rand.NewPCG(19, 4))
	var s salvaged
	for range rounds {
		got, counted := samplesOf(damage(bytes.Clone(data), rng))
		s.kept = append(s.kept, float64(tracetest.InPlace(want, got))/float64(all))
		s.counted = append(s.counted, min(1, float64(counted)/float64(all)))
	}
	return s
}

// A damageCase is a way in which files get damaged.
type damageCase struct {
	name string
	do   func(b []byte, rng *rand.Rand) []byte
}

var damages = []damageCase{
	{"one flipped bit", func(b []byte, rng *rand.Rand) []byte {
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return b
	}},
	{"4 KiB of NUL", func(b []byte, rng *rand.Rand) []byte {
		at := rng.IntN(len(b) - 4096)
		clear(b[at : at+4096])
		return b
	}},
	{"64 KiB of 0xFF", func(b []byte, rng *rand.Rand) []byte {
		at := rng.IntN(len(b) - 65536)
		for i := range 65536 {
			b[at+i] = 0xff
		}
		return b
	}},
	{"512 bytes gone", func(b []byte, rng *rand.Rand) []byte {
		at := rng.IntN(len(b) - 512)
		return append(b[:at], b[at+512:]...)
	}},
}

// A salvageFile is a recording whose salvage is measured.
type salvageFile struct {
	name string
	data []byte
}

// salvageFiles are that of testdata and, where it is at hand, some of the corpus.
func salvageFiles(t testing.TB) []salvageFile {
	files := []salvageFile{{"v6 v6-nosymbols", testFile(t, "v6-nosymbols.nettrace.gz")}}
	for _, name := range []string{"v6-shared", "v6-cl-web", "chain", "async"} {
		version := "v4 "
		if strings.HasPrefix(name, "v6") {
			version = "v6 "
		}
		data, err := os.ReadFile(filepath.Join(corpusDir, "dotnet10", name+".nettrace"))
		if err != nil {
			t.Logf("without %s: the corpus is not here", name)
			continue
		}
		files = append(files, salvageFile{version + name, data})
	}
	return files
}

// TestSalvage holds how much of a damaged file is read: after one flipped bit 99.5 % of the
// samples on average and nine in ten at the worst.
func TestSalvage(t *testing.T) {
	for _, f := range salvageFiles(t)[:1] {
		s := salvage(f.data, 60, damages[0].do)
		assert.Greater(t, mean(s.counted), 0.995)
		assert.Greater(t, worst(s.counted), 0.90)
		assert.Greater(t, mean(s.kept), 0.99)
	}
}

// TestCleanCopy holds that a copy of a damaged file is a whole one: it reads to its end
// without a word, has the events that were whole, tells no more losses of the recorder, and says what was
// lost.
func TestCleanCopy(t *testing.T) {
	for _, f := range []salvageFile{salvageFiles(t)[0], {"v4 probe9", testFile(t, "probe9.nettrace.gz")}} {
		rng := rand.New(rand.NewPCG(1, 9))
		for _, d := range damages {
			read := 0
			for range 12 {
				hit := d.do(bytes.Clone(f.data), rng)
				r, err := NewReader(bytes.NewReader(hit), nil)
				if err != nil {
					continue
				}
				read++
				var out bytes.Buffer
				w, err := NewWriter(&out, r.Header())
				require.NoError(t, err)
				damage := Copy(w, r, nil)
				require.NoError(t, w.Close())
				copied, err := NewReader(bytes.NewReader(out.Bytes()), &Options{Warn: func(e *FormatError) { t.Errorf("%s: a copy is damaged: %v", d.name, e) }})
				require.NoError(t, err)
				events, err := describeAll(t, copied)
				require.Equal(t, io.EOF, err)
				note := copied.Salvage()
				if damage != nil {
					require.NotNil(t, note)
					assert.Equal(t, r.Stats().LostBytes, note.LostBytes)
				}
				if note != nil {
					assert.Equal(t, r.Stats().Events-int64(len(events)), note.LeftOut)
				}
				assert.Equal(t, r.Stats().Lost, copied.Stats().Lost)
				// A copy of the copy is the same, and so says the same.
				require.True(t, bytes.Equal(out.Bytes(), rewrite(t, out.Bytes())), "%s: a copy of the copy differs", d.name)
			}
			assert.NotZero(t, read, "%s: no damaged file begins as one", d.name)
		}
	}
}

// BenchmarkSalvage prints the table of docs/damage.md: how much of a damaged file is read, over 200
// places where it may be damaged. It is run once: go test -run - -bench Salvage -benchtime 1x -v
func BenchmarkSalvage(b *testing.B) {
	for _, f := range salvageFiles(b) {
		for _, d := range damages {
			b.Run(f.name+"/"+d.name, func(b *testing.B) {
				for b.Loop() {
					s := salvage(f.data, 200, d.do)
					b.ReportMetric(100*mean(s.kept), "%mean")
					b.ReportMetric(100*worst(s.kept), "%worst")
					b.ReportMetric(100*mean(s.counted), "%mean-counted")
					b.ReportMetric(100*worst(s.counted), "%worst-counted")
				}
			})
		}
	}
}
