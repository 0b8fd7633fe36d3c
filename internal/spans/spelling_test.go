package spans

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

var nameText = regexp.MustCompile(`"name": ?"([A-Za-z])`)

// respelled is a trace in which the name of two of three events, and of entries of stackFrames, begins
// with an escape.
func respelled(in []byte) []byte {
	n := 0
	return nameText.ReplaceAllFunc(in, func(b []byte) []byte {
		if n++; n%3 == 0 {
			return b
		}
		return fmt.Appendf(nil, `%s\u%04x`, b[:len(b)-1], b[len(b)-1])
	})
}

// How names are escaped makes no difference: to frames and their modules, to pairs of begin and end,
// and to the repair. Events that it leaves alone keep their bytes.
func TestSpellings(t *testing.T) {
	for seed := range uint64(3) {
		plain, _, _ := walk(t, tracetest.Walk{Seed: 300 + seed, Threads: 3, Bytes: 1 << 19, Deep: 0.3})
		in := respelled(plain)
		require.False(t, bytes.Equal(plain, in))
		want, wantTrace := repairBytes(t, plain, false)
		got, trace := repairBytes(t, in, false)
		require.NotEmpty(t, wantTrace.zones, "something is repaired")
		assert.Equal(t, wantTrace.Facts.Unmatched(), trace.Facts.Unmatched())
		assert.Equal(t, parse(t, want), parse(t, got))
		kept := map[string]bool{}
		for _, e := range rawEvents(t, in, "") {
			kept[e] = true
		}
		n := 0
		for _, e := range rawEvents(t, got, "") {
			if kept[e] && bytes.Contains([]byte(e), []byte(`"name": "\u00`)) {
				n++
			}
		}
		assert.NotZero(t, n)
	}
}

func TestSpellingsAreOneFrame(t *testing.T) {
	in := []byte(`{"traceEvents":[
{"name":"A\/b","cat":"sampleEvent","ph":"B","ts":0,"pid":1,"tid":1,"sf":0},
{"name":"\u0041/b","cat":"sampleEvent","ph":"E","ts":10,"pid":1,"tid":1,"sf":0},
{"name":"A/b","cat":"sampleEvent","ph":"B","ts":20,"pid":1,"tid":1,"sf":0},
{"name":"A/b","cat":"sampleEvent","ph":"E","ts":30,"pid":1,"tid":1,"sf":0}
],"displayTimeUnit":"ms","stackFrames":{"0":{"name":"A\u002fb","category":"Mod"}}}`)
	tr := readBytes(t, in, &Options{Log: true, Weighted: true})
	out := rewriteBytes(t, tr, false)
	assert.Equal(t, string(in), string(out))
	assert.Zero(t, tr.Facts.Unmatched())
	n := 0
	for _, s := range tr.Profile.Threads[0].Samples.All() {
		assert.Equal(t, []string{"Mod!A/b"}, names(tr.Profile.Table, s.Stack))
		n++
	}
	assert.Equal(t, 2, n)
	assert.Equal(t, 1, tr.Profile.Table.Frames())
}
