package events

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

func TestAppendMs(t *testing.T) {
	for want, ns := range map[string]int64{
		"0": 0, "34.491802": 34491802, "1": 1e6, "0.000001": 1, "0.1": 1e5, "-15.97": -15970000, "-0.000001": -1,
		"9223372036854.775807": math.MaxInt64, "-9223372036854.775808": math.MinInt64,
	} {
		assert.Equal(t, want, string(text.AppendMillis(nil, ns)))
	}
	assert.Equal(t, "-15.970000", string(appendMsFixed(nil, -15970000)))
	assert.Equal(t, "34.491802", string(appendMsFixed(nil, 34491802)))
}

func TestAppendFloat(t *testing.T) {
	for want, f := range map[string]float64{"0": 0, "1.5": 1.5, "1e-07": 1e-7, "1e+300": 1e300, `"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1)} {
		got := string(appendFloat(nil, f, 64))
		assert.Equal(t, want, got)
		assert.True(t, json.Valid([]byte(got)))
	}
	assert.Equal(t, "0.9992822", string(appendFloat(nil, float64(float32(0.9992822)), 32)))
}

func TestAppendTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 52, 48, 500000000, time.FixedZone("", 2*3600))
	assert.Equal(t, "2026-11-21T05:52:48.5000000Z", string(appendTime(nil, at)))
}

// FuzzQuoted holds that any text becomes valid JSON which reads back the same.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c", "line\nline\r\t", "\x00\x1f\x7f", "äöü€\U0001F600", "\xff\xfe", "a\xffb\"", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := text.AppendJSON([]byte("prefix"), s)
		require.Equal(t, "prefix", string(b[:6]))
		var got string
		require.NoError(t, json.Unmarshal(b[6:], &got), "%q", b)
		if utf8.ValidString(s) {
			require.Equal(t, s, got)
		}
	})
}

// TestPathNames holds that paths of another process name it, and that the cache keeps
// ids apart.
func TestPathNames(t *testing.T) {
	var n pathNames
	var ids []activity.ID
	for i := uint32(1); i <= 10; i++ {
		for j := uint32(1); j <= 10; j++ {
			id, err := activity.Encode(activity.NewPath(1, i, j).WithProcess(77), activity.EncoderOld)
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	for range 2 {
		for i, id := range ids {
			want := activity.NewPath(1, uint32(i/10+1), uint32(i%10+1)).String()
			assert.Equal(t, "//"+want, string(n.append(nil, nettrace.GUID(id), 77)))
			assert.Equal(t, "/#77/"+want, string(n.append(nil, nettrace.GUID(id), 78)))
		}
	}
	assert.Empty(t, n.append(nil, nettrace.GUID{1, 2, 3, 250, 251}, 77))
}

func TestCutLine(t *testing.T) {
	assert.Equal(t, "abcd", string(cutLine([]byte("abcd"), 0, 4)))
	assert.Equal(t, "abc…", string(cutLine([]byte("abcde"), 0, 4)))
	assert.Equal(t, "xxäöü…", string(cutLine([]byte("xxäöüßx"), 2, 4)))
	assert.Equal(t, bold+"ab"+reset+"c…", string(cutLine([]byte(bold+"ab"+reset+"cde"+dim+"f"+reset), 0, 4)), "marks take no place, wherever they stand")
	assert.Equal(t, "xxäöüß", string(cutLine([]byte("xxäöüß"), 2, 4)))
}

// A label that an event has several times keeps all its values where the reader of the JSON takes one.
func TestAppendLabels(t *testing.T) {
	str := func(k, v string) nettrace.Label { return nettrace.Label{Key: k, Value: v} }
	num := func(k string, n int64) nettrace.Label { return nettrace.Label{Key: k, Number: n, IsNumeric: true} }
	for _, x := range []struct {
		labels []nettrace.Label
		want   string
	}{
		{[]nettrace.Label{str("a", "1"), num("b", -2)}, `,"labels":{"a":"1","b":-2}`},
		{[]nettrace.Label{str("a", "1"), num("b", 2), str("a", ""), num("a", 3), str("c", "x")}, `,"labels":{"a":["1","",3],"b":2,"c":"x"}`},
	} {
		assert.Equal(t, x.want, string(appendLabels(nil, x.labels)))
	}
	var many []nettrace.Label
	for i := range 40 {
		many = append(many, num(string(rune('A'+i%20)), int64(i)))
	}
	assert.Contains(t, string(appendLabels(nil, many)), `,"labels":{"A":[0,20],"B":[1,21],`)
	assert.Contains(t, string(appendLabels(nil, many[:20])), `,"labels":{"A":0,"B":1,`)
}
