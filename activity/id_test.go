package activity

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rawID(t *testing.T, data string, pid uint32) ID {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(data, " ", ""))
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 12)
	var id ID
	copy(id[:], b)
	sum, _ := id.check()
	binary.LittleEndian.PutUint32(id[12:], sum^pid)
	return id
}

func TestVectors(t *testing.T) {
	require.Len(t, vectors, 67)
	for _, v := range vectors {
		id, err := ParseID(v.guid)
		require.NoError(t, err, "vector %d", v.n)
		assert.Equal(t, v.guid, id.String(), "vector %d: text", v.n)
		assert.Equal(t, rawID(t, v.bytes, v.pid), id, "vector %d: bytes", v.n)

		want, err := ParsePath(v.path)
		require.NoError(t, err)
		want = want.WithProcess(v.pid)
		lossy := v.encoder == "new"
		got, ok := Decode(id, lossy)
		require.True(t, ok, "vector %d", v.n)
		assert.Equal(t, v.path, got.String(), "vector %d: path", v.n)
		assert.Equal(t, v.pid, got.Process(), "vector %d: pid", v.n)
		if v.encoder != "new" || !strings.Contains(v.path, "?") {
			notLossy, ok := Decode(id, false)
			require.True(t, ok, "vector %d", v.n)
			assert.Equal(t, v.path, notLossy.String(), "vector %d: path, not lossy", v.n)
		}
		for _, e := range map[string][]Encoder{
			"both": {EncoderOld, EncoderNew}, "old": {EncoderOld}, "new": {EncoderNew}, "ideal": {EncoderIdeal},
		}[v.encoder] {
			enc, err := Encode(want, e)
			require.NoError(t, err, "vector %d", v.n)
			assert.Equal(t, v.guid, enc.String(), "vector %d: encoder %d", v.n, e)
		}
	}
}

func TestAmbiguousPath(t *testing.T) {
	id := rawID(t, "11 c0 10", 18496)
	p, ok := Decode(id, false)
	require.True(t, ok)
	assert.Equal(t, "1/1/16", p.String())
	assert.False(t, p.ProvesLossy())
	p, ok = Decode(id, true)
	require.True(t, ok)
	assert.Equal(t, "1/1/?/1", p.String())
	assert.True(t, p.HasLost())
	p, ok = Decode(rawID(t, "11 c0", 18496), false)
	require.True(t, ok)
	assert.Equal(t, "1/1/?", p.String())
	assert.True(t, p.ProvesLossy(), "its value byte cannot be there")

	// A zero byte behind a number that was taken for a lost one proves nothing: it is there in the
	// older form too.
	id = rawID(t, "11 c0 c0", 18581)
	for lossy, want := range map[bool]string{false: "1/1/192", true: "1/1/?/?"} {
		p, ok = Decode(id, lossy)
		require.True(t, ok)
		assert.Equal(t, want, p.String())
		assert.False(t, p.ProvesLossy(), "lossy: %v", lossy)
	}
}

func TestOverflowDoesNotFit(t *testing.T) {
	p, err := ParsePath("1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/300")
	require.NoError(t, err)
	_, err = Encode(p, EncoderOld)
	assert.ErrorIs(t, err, ErrOverflow)
}

func TestRefused(t *testing.T) {
	foreign, err := ParseID("00000001-0000-0000-0000-000000000000")
	require.NoError(t, err)
	_, ok := Decode(foreign, false)
	assert.False(t, ok, "the dummy that some SDKs set")
	_, ok = Decode(ID{}, false)
	assert.False(t, ok, "no id")
	for _, data := range []string{
		"11 b5",                               // B followed by a nibble below C
		"11 11 11 11 11 11 11 11 11 11 11 1d", // the value runs past byte 11
		"10 01",                               // data after the end nibble
		"11 d5 01 02",                         // padding nibble not 0
		"11 bc 01 10",                         // data after an overflow number
		"1d 01 00",                            // 1 written with code D
		"11 e0 01 00 00",                      // 1 written with code E
	} {
		_, ok := Decode(rawID(t, data, 7), false)
		assert.False(t, ok, data)
	}
}

func TestRandomGUIDsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	passed := 0
	for range 1 << 20 {
		var id ID
		binary.LittleEndian.PutUint64(id[:], r.Uint64())
		binary.LittleEndian.PutUint64(id[8:], r.Uint64())
		if _, ok := Decode(id, false); ok {
			passed++
		}
	}
	assert.Less(t, passed, 100, "of a million")
}

// Whatever a runtime can encode must come back.
func TestEncodeDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	edge := []uint32{1, 2, 9, 10, 11, 12, 255, 256, 257, 4095, 4096, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<32 - 1}
	for range 20000 {
		var p Path
		for range 1 + r.IntN(9) {
			v := edge[r.IntN(len(edge))]
			if r.IntN(2) == 0 {
				v = 1 + r.Uint32()>>(r.IntN(32))
			}
			p.push(max(v, 1))
		}
		p.process = r.Uint32N(maxProcess + 1)
		if r.IntN(4) == 0 {
			p = p.WithOverflow(1 + r.Uint32N(5000))
		}
		for _, e := range []Encoder{EncoderOld, EncoderIdeal} {
			id, err := Encode(p, e)
			if err != nil {
				continue
			}
			got, ok := Decode(id, false)
			require.True(t, ok, "%s with encoder %d: %s", p, e, id)
			require.Equal(t, p.String(), got.String())
			require.Equal(t, p.process, got.process)
		}
		if id, err := Encode(p, EncoderNew); err == nil {
			got, ok := Decode(id, true)
			require.True(t, ok, "%s: %s", p, id)
			again, err := Encode(got, EncoderNew)
			require.NoError(t, err)
			require.Equal(t, id, again, "%s read as %s", p, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		id, _ := ParseID(v.guid)
		f.Add(id[:], v.encoder == "new")
	}
	f.Fuzz(func(t *testing.T, b []byte, lossy bool) {
		if len(b) != 16 {
			return
		}
		id := ID(b)
		p, ok := Decode(id, lossy)
		if !ok {
			return
		}
		back, err := ParsePath(p.String())
		require.NoError(t, err)
		require.Equal(t, p.Numbers(), back.Numbers())
		for _, e := range []Encoder{EncoderOld, EncoderIdeal, EncoderNew} {
			if enc, err := Encode(p, e); err == nil && enc == id {
				return
			}
		}
		// A path of .NET 5 to 9 may have been cut where its stray zero byte is the last.
		require.True(t, p.Old() || p.HasLost(), "%x read as %s by no encoder", b, p)
	})
}

func TestParseID(t *testing.T) {
	want, err := ParseID("0123abcd-4567-89ab-cdef-0123456789ab")
	require.NoError(t, err)
	for _, same := range []string{"{0123abcd-4567-89ab-cdef-0123456789ab}", "0123ABCD-4567-89AB-CDEF-0123456789AB"} {
		id, err := ParseID(same)
		require.NoError(t, err, same)
		assert.Equal(t, want, id, same)
	}
	for _, bad := range []string{"", "{}", "Request", "0123abcd456789abcdef0123456789ab0000", "0123abcd-4567-89ab-cdef-0123456789--", "0123abcd-4567-89ab-cdef-0123456789xy"} {
		_, err := ParseID(bad)
		assert.ErrorContains(t, err, "is not a GUID", bad)
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "1//2", "0", "1/0/2", "-1", "1/x", "1/4294967296", "1/2$", "1/2$0", "1/2$x", "1/2$3/4",
		strings.Repeat("1/", MaxDepth) + "1",
	} {
		_, err := ParsePath(text)
		assert.ErrorContains(t, err, "is not a path", text)
	}
	p, err := ParsePath(strings.Repeat("1/", MaxDepth))
	require.NoError(t, err)
	assert.Len(t, p.Numbers(), MaxDepth)
}
