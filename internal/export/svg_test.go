package export

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSVG: the file is XML, frames stay within the picture, and none is wider than the one
// it stands on.
func TestSVG(t *testing.T) {
	for seed := range uint64(20) {
		p := random(seed)
		var out bytes.Buffer
		require.NoError(t, SVG(&out, p, Options{Name: "a<b>\x01"}))
		d := xml.NewDecoder(&out)
		rows := map[string]float64{} // width by y
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			e, ok := tok.(xml.StartElement)
			if !ok || e.Name.Local != "rect" {
				continue
			}
			at := map[string]string{}
			for _, a := range e.Attr {
				at[a.Name.Local] = a.Value
			}
			if at["width"] == "100%" {
				continue
			}
			x, err := strconv.ParseFloat(at["x"], 64)
			require.NoError(t, err)
			w, err := strconv.ParseFloat(at["width"], 64)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, x, float64(svgSide))
			assert.LessOrEqual(t, x+w, float64(svgWidth-svgSide)+0.1)
			rows[at["y"]] += w
		}
		for y, w := range rows {
			assert.LessOrEqual(t, w, float64(svgWidth-2*svgSide)+1, "row %s", y)
		}
	}
}

func TestLabel(t *testing.T) {
	const name = "Rt!Lab.Rt.AllocMode.Load(class System.Random)"
	for chars, want := range map[int]string{60: name, 30: "Rt!Lab.Rt.AllocMode.Load", 23: "Lab.Rt.AllocMode.Load", 14: "AllocMode.Load", 13: "Load", 4: "Load", 3: "Lo…"} {
		assert.Equal(t, want, label(name, chars))
	}
	assert.Equal(t, "Dictionary`2[S…", label("M!System.Dictionary`2[System.Int32].Add(!0)", 15))
}
