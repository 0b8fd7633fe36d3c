package tracetest

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// A golden picture holds the mean colour of blocks of a page, not its pixels: fonts and the edges
// of letters differ from machine to machine, where things stand and which colour they have does
// not.
const (
	goldenBlock   = 10   // pixels of the page in a pixel of the golden picture, each way
	goldenShade   = 40   // of 255: a block that differs by more in red, green or blue is another
	goldenDiffers = 0.03 // the part of the blocks that may be others
)

// Golden holds what the page shows against the picture in file, within a tolerance; `go
// test -update` writes it anew. With TRACEFIX_SCREENSHOTS the whole picture is kept too.
func (b *Browser) Golden(file string) {
	b.t.Helper()
	name := filepath.Base(file)
	b.Screenshot(name[:len(name)-len(filepath.Ext(name))])
	got := blocks(b.t, b.Picture())
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		var out bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, got); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("%v; go test -update writes it", err)
	}
	want, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		b.t.Fatalf("%s: %v", file, err)
	}
	if want.Bounds() != got.Bounds() {
		b.t.Fatalf("%s: the page is %v blocks large, the picture %v", file, got.Bounds(), want.Bounds())
	}
	if d := Differ(got, want); d > goldenDiffers {
		b.t.Errorf("%s: the page differs in %.1f %% of its area, %.0f %% may; look at it with TRACEFIX_SCREENSHOTS=DIR, and if it is right write it anew with -update", file, 100*d, 100*goldenDiffers)
	}
}

// Differ returns the part of two pictures of one size that is not the same.
func Differ(a, b image.Image) float64 {
	n, box := 0, a.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			p, q := color.NRGBAModel.Convert(a.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(b.At(x, y)).(color.NRGBA)
			if max(apart(p.R, q.R), apart(p.G, q.G), apart(p.B, q.B)) > goldenShade {
				n++
			}
		}
	}
	return float64(n) / float64(box.Dx()*box.Dy())
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// Blocks returns the mean colours of what the page shows.
func (b *Browser) Blocks() image.Image {
	b.t.Helper()
	return blocks(b.t, b.Picture())
}

func blocks(t testing.TB, picture []byte) image.Image {
	t.Helper()
	in, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	box := in.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, box.Dx()/goldenBlock, box.Dy()/goldenBlock))
	for y := range out.Rect.Max.Y {
		for x := range out.Rect.Max.X {
			var sum [3]int
			for k := range goldenBlock * goldenBlock {
				c := color.NRGBAModel.Convert(in.At(box.Min.X+x*goldenBlock+k%goldenBlock, box.Min.Y+y*goldenBlock+k/goldenBlock)).(color.NRGBA)
				sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
			}
			const n = goldenBlock * goldenBlock
			out.SetNRGBA(x, y, color.NRGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}
