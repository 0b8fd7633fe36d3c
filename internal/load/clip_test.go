package load

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// TestSizeHit holds that a method whose size was hit does not take the samples of others, that this
// is told, and that a copy reads without a word.
func TestSizeHit(t *testing.T) {
	in, err := opener(t, "dotnet10/chain.nettrace")()
	require.NoError(t, err)
	data, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	whole, _, err := Profile(t.Context(), bytesOpener(data), nil)
	require.NoError(t, err)

	r, err := nettrace.NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var first []byte // of the methods in their order in memory
	var ev nettrace.Event
	var m nettrace.Method
	lowest := ^uint64(0)
	for r.Read(&ev) == nil {
		if ev.Metadata.Role.NamesMethods() && ev.Method(&m) == nil && m.Verbose && m.Flags&nettrace.MethodJitted != 0 && m.StartAddress < lowest {
			lowest, first = m.StartAddress, bytes.Clone(ev.Payload)
		}
	}
	at := bytes.Index(data, first)
	require.Positive(t, at)
	hit := bytes.Clone(data)
	hit[at+24+3] ^= 0x10

	var told []*nettrace.FormatError
	o := &Options{Warn: func(e *nettrace.FormatError) { told = append(told, e) }}
	p, _, err := Profile(t.Context(), bytesOpener(hit), o)
	require.NoError(t, err)
	assert.Equal(t, namesOf(whole), namesOf(p))
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], nettrace.ErrDamaged)
	assert.InDelta(t, at, told[0].Offset, 128)

	var out bytes.Buffer
	_, _, err = Rewrite(t.Context(), bytesOpener(hit), &out, o, nil)
	require.NoError(t, err)
	told = nil
	p, _, err = Profile(t.Context(), bytesOpener(out.Bytes()), o)
	require.NoError(t, err)
	assert.Empty(t, told)
	assert.Equal(t, namesOf(whole), namesOf(p))
}

// TestCopySays holds that a copy of a damaged recording tells of as many damaged places as its
// input did, also of those that only a reader of its methods can see, and a copy of the copy does.
func TestCopySays(t *testing.T) {
	for _, name := range []string{"v6-nosymbols.nettrace", "probe9.nettrace", "dotnet10/v6-shared.nettrace"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(find(t, name))
			require.NoError(t, err)
			if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(z)
				require.NoError(t, err)
			}
			rng := rand.New(rand.NewPCG(19, 32))
			hits, rounds := 0, 60
			if testing.Short() {
				rounds = 10
			}
			for range rounds {
				hit := bytes.Clone(data)
				hit[rng.IntN(len(hit))] ^= 1 << rng.IntN(8)
				told := int64(0)
				o := &Options{Warn: func(*nettrace.FormatError) { told++ }}
				var out bytes.Buffer
				if _, _, err := Rewrite(t.Context(), bytesOpener(hit), &out, o, nil); err != nil || told == 0 {
					continue
				}
				hits++
				for range 2 {
					says := told
					told = 0
					var again bytes.Buffer
					_, _, err = Rewrite(t.Context(), bytesOpener(out.Bytes()), &again, o, nil)
					require.NoError(t, err)
					assert.Zero(t, told)
					r, err := nettrace.NewReader(bytes.NewReader(out.Bytes()), nil)
					require.NoError(t, err)
					var ev nettrace.Event
					for r.Read(&ev) == nil {
					}
					if assert.NotNil(t, r.Salvage()) {
						assert.Equal(t, says, r.Salvage().Places)
					}
					out, told = again, says
				}
			}
			t.Log(hits)
			assert.NotZero(t, hits)
		})
	}
}

// namesOf counts the samples of each leaf.
func namesOf(p *profile.Profile) map[string]int {
	n := map[string]int{}
	for _, th := range p.Threads {
		for _, s := range th.Samples.All() {
			n[p.Table.MethodOf(p.Table.Frame(s.Stack)).Full()]++
		}
	}
	return n
}
