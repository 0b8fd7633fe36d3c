package view_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestPictures makes the pictures of the README anew: the page of one thread in time order, as it was
// recorded and as it is repaired, over the same time and with the same height of a frame.
//
//	TRACEFIX_PICTURES=$PWD/docs go test ./internal/view -run Pictures
func TestPictures(t *testing.T) {
	dir := os.Getenv("TRACEFIX_PICTURES")
	if dir == "" {
		t.Skip("TRACEFIX_PICTURES does not name the folder of the README's pictures")
	}
	b := tracetest.NewBrowser(t, 1100, 640)
	address := pageOf(t, "../../testdata/chain.nettrace.zst")
	var from, to []float64
	for _, name := range []string{"before", "after"} {
		hash := "#view=time&time=1200000000-1700000000"
		if name == "before" {
			hash += "&recorded=1"
		}
		b.Open("about:blank", "document.readyState === 'complete'")
		b.Open(address+hash, drawn)
		s := look(t, b)
		from, to = append(from, s.From), append(to, s.To)
		assert.Equal(t, name == "before", s.Recorded)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), small(t, b.Picture()), 0o644))
	}
	assert.Equal(t, from[0], from[1])
	assert.Equal(t, to[0], to[1])
}

// small writes a picture anew with the 64 colours that it holds most of.
func small(t *testing.T, b []byte) []byte {
	t.Helper()
	in, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	count := map[color.NRGBA]int{}
	box := in.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[color.NRGBAModel.Convert(in.At(x, y)).(color.NRGBA)]++
		}
	}
	var colours []color.NRGBA
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.NRGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette := color.Palette{}
	for _, c := range colours[:min(64, len(colours))] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			out.Set(x, y, in.At(x, y))
		}
	}
	var w bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out))
	return w.Bytes()
}
