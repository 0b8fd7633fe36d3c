package view

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rgb is a colour of linear light, 0 to 1.
type rgb [3]float64

func light(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func ofHex(t *testing.T, s string) (c rgb) {
	for i := range c {
		v, err := strconv.ParseUint(s[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c[i] = light(float64(v) / 255)
	}
	return c
}

func ofHSL(h, s, l float64) (c rgb) {
	for i, n := range []float64{0, 8, 4} {
		k := math.Mod(n+h/30, 12)
		c[i] = light(l - s*min(l, 1-l)*max(-1, min(k-3, 9-k, 1)))
	}
	return c
}

// deuteranope is how c looks to a person without green cones (Machado, Oliveira, Fernandes 2009).
func (c rgb) deuteranope() (d rgb) {
	for i, row := range [3]rgb{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}} {
		d[i] = min(1, max(0, row[0]*c[0]+row[1]*c[1]+row[2]*c[2]))
	}
	return d
}

func (c rgb) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// lab is c in CIE Lab, where distances are those that people see.
func (c rgb) lab() [3]float64 {
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	x, y, z := f((0.4124*c[0]+0.3576*c[1]+0.1805*c[2])/0.95047), f(c.luminance()), f((0.0193*c[0]+0.1192*c[1]+0.9505*c[2])/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func distance(a, b rgb) float64 {
	p, q := a.lab(), b.lab()
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}

func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestColours holds the page's colours to be distinct for people with deuteranopia, and text to be
// legible on all of them. A distance of 2.3 can just be seen; 10 is plain at a glance.
func TestColours(t *testing.T) {
	style, err := os.ReadFile("page/style.css")
	require.NoError(t, err)
	program, err := os.ReadFile("page/draw.js")
	require.NoError(t, err)
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(style), 2)
	require.Len(t, themes, 2)
	lists := regexp.MustCompile(`(?s)light: (\[\[.*?\]\]),\s*dark:\s*(\[\[.*?\]\])`).FindSubmatch(program)
	require.NotNil(t, lists)
	for i, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			named := map[string]rgb{}
			for _, m := range regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(themes[i][1], -1) {
				named[m[1]] = ofHex(t, m[2])
			}
			for _, pair := range [][2]string{{"ok", "bridge"}, {"ok", "left"}, {"bridge", "left"}, {"cpu", "wait"}, {"cpu", "bg"}, {"wait", "bg"}, {"left", "bg"}, {"ok", "bg"}, {"bridge", "bg"}} {
				assert.Greater(t, distance(named[pair[0]].deuteranope(), named[pair[1]].deuteranope()), 18.0, "%v", pair)
			}
			for _, text := range []string{"ink", "dim", "accent", "left"} {
				assert.Greater(t, contrast(named[text], named["bg"]), 4.5, text)
			}
			var modules [][3]float64
			require.NoError(t, json.Unmarshal(lists[i+1], &modules))
			require.Len(t, modules, 8)
			for k, a := range modules {
				one := ofHSL(a[0], a[1]/100, a[2]/100)
				for _, b := range modules[:k] {
					two := ofHSL(b[0], b[1]/100, b[2]/100)
					assert.Greater(t, distance(one.deuteranope(), two.deuteranope()), 12.0, "%v %v", a, b)
					assert.Greater(t, distance(one, two), 12.0, "%v %v", a, b)
				}
				for _, shade := range []float64{-3, 3} { // methods of one module
					assert.Greater(t, contrast(named["ink"], ofHSL(a[0], a[1]/100, (a[2]+shade)/100)), 4.5, "text on %v", a)
				}
			}
		})
	}
}
