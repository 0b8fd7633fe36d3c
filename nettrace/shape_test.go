package nettrace

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestDefinitionHit holds that no sample is lost with the one definition of the sampler, or with all of a
// v6 file: what events look like tells what they are.
func TestDefinitionHit(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "testdata", "chain.nettrace.zst"))
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	v4, err := io.ReadAll(z)
	require.NoError(t, err)
	v6 := testFile(t, "v6-nosymbols.nettrace.gz")
	sampler := bytes.Index(v4, appendStringUTF16(nil, ProviderSampler))
	events := bytes.Index(v6, []byte(providerEvents))
	symbol := bytes.Index(v6, []byte("ProcessSymbol"))
	for _, c := range []struct {
		name string
		data []byte
		hit  func(b []byte)
	}{
		{"v4 name", v4, func(b []byte) { b[sampler+6] ^= 4 }},
		{"v4 high byte of the name", v4, func(b []byte) { b[sampler+7] ^= 0x40 }},
		{"v4 id of the sampler's event", v4, func(b []byte) { b[sampler+2*len(ProviderSampler)+2] ^= 4 }},
		{"v4 zeroed", v4, func(b []byte) { clear(b[sampler-12 : sampler+2*len(ProviderSampler)]) }},
		{"v6 provider", v6, func(b []byte) { b[events+3] ^= 2 }},
		{"v6 name", v6, func(b []byte) { b[bytes.Index(v6, []byte("cpu"))] ^= 1 }},
		{"v6 length", v6, func(b []byte) { b[events-1] ^= 4 }},
		{"v6 id of an event", v6, func(b []byte) { b[symbol-2] ^= 8 }},
		{"v6 all", v6, func(b []byte) { clear(b[events-4 : bytes.Index(v6, []byte("ProcessMappingMetadata"))]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, all := samplesOf(c.data)
			hit := bytes.Clone(c.data)
			c.hit(hit)
			got, n := samplesOf(hit)
			assert.Equal(t, all, n)
			assert.Equal(t, all, tracetest.InPlace(want, got))
			_, _, err := read(t, hit)
			require.ErrorIs(t, err, ErrDamaged)
			r, err := NewReader(bytes.NewReader(hit), nil)
			require.NoError(t, err)
			var out bytes.Buffer
			w, err := NewWriter(&out, r.Header())
			require.NoError(t, err)
			require.Error(t, Copy(w, r, nil))
			require.NoError(t, w.Close())
			_, _, err = read(t, out.Bytes())
			require.Equal(t, io.EOF, err, "a clean copy is damaged")
		})
	}
}

// TestKnownProvider holds that only names of well-known providers are put right.
func TestKnownProvider(t *testing.T) {
	for name, want := range map[string]string{
		"Microsoft-DotNETCore-SampleProfiler": "",
		"Microsoft-DotNETCore-SampleProfilep": ProviderSampler,
		"Microsoft-DotNETCore-SampleProfilex": "", // another letter, and no flipped bit
		"System.Net.Htt\u8070":                "System.Net.Http",
		"System.Net.Hxxp":                     "",
		"MyCompany-Provider1":                 "",
		"":                                    "",
	} {
		assert.Equal(t, want, knownProvider(name), name)
	}
}

// TestNamedIsNoRuntime holds that a provider of somebody's own, one letter off the runtime's, stays
// what it is: the runtime's events have no names.
func TestNamedIsNoRuntime(t *testing.T) {
	const own = "Microsoft-Windows-DotNETRuntimd" // e and d are one bit apart
	require.Equal(t, ProviderRuntime, knownProvider(own))
	var out bytes.Buffer
	w, err := NewWriter(&out, &Header{Version: 4, PointerSize: 8, Frequency: 1e9})
	require.NoError(t, err)
	require.NoError(t, w.Write(&Event{Metadata: &Metadata{ID: 1, Provider: own, EventID: 7, Name: "Order", Version: 1}, ThreadID: 1, Time: 1}))
	require.NoError(t, w.Close())
	r, err := NewReader(bytes.NewReader(out.Bytes()), &Options{Warn: func(e *FormatError) { t.Error(e) }})
	require.NoError(t, err)
	var ev Event
	require.NoError(t, r.Read(&ev))
	assert.Equal(t, own, ev.Metadata.Provider)
}
