package activity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decoded(t *testing.T, d *Decoder, id ID) string {
	p, ok := d.Decode(id)
	require.True(t, ok)
	return p.String()
}

func shown(d *Decoder, id ID) string {
	_, path := d.Text(id)
	return path
}

func TestDecoder(t *testing.T) {
	var d Decoder
	const net10, net9 = 18496, 18581
	child, other := rawID(t, "11 c0 10", net10), rawID(t, "11 c0 10", net9)
	assert.Equal(t, "1/1/16", decoded(t, &d, child), "nothing is known of the process")
	assert.Equal(t, "1/1/16", decoded(t, &d, other))
	before := d
	assert.Equal(t, "1/1/?", decoded(t, &d, rawID(t, "11 c0", net10)))
	assert.Equal(t, "1/1/?/1", decoded(t, &d, child), "its parent proved how it is to be read")
	assert.Equal(t, "//1/1/?/1", shown(&d, child))
	assert.Equal(t, "1/1/16", decoded(t, &d, other), "of another process")
	assert.Equal(t, "//1/1/16", shown(&before, child), "a copy goes on alone")
	assert.Equal(t, []int{0, 1}, []int{before.Proven(), d.Proven()})
	assert.False(t, d.Equal(&before))
	assert.True(t, d.Lossy(net10))
	assert.False(t, d.Lossy(net9))

	// What proves it is read so itself.
	var first Decoder
	assert.Equal(t, "1/1/?/1/1/?", decoded(t, &first, rawID(t, "11 c0 11 c0", net10)))
	guid := ID{0xaa, 1, 2, 3}
	_, ok := d.Decode(guid)
	assert.False(t, ok)
	assert.Equal(t, guid.String(), shown(&d, guid))
}

// TestDecoderIsBounded: ids that prove something of ever more processes cost no more.
func TestDecoderIsBounded(t *testing.T) {
	var d Decoder
	for pid := uint32(2 * maxLossy); pid > 0; pid-- {
		d.Decode(rawID(t, "11 c0", pid))
	}
	assert.Equal(t, maxLossy, d.Proven())
	assert.True(t, d.Lossy(2*maxLossy))
	assert.False(t, d.Lossy(1))
}
