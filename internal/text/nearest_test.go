package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	files := []string{"trace.nettrace", "other.nettrace", "notes.txt", "Trace.zip"}
	for want, names := range map[string][]string{
		"tarce.nettrace": {"trace.nettrace", "other.nettrace"},
		"trace.netrace":  {"trace.nettrace", "other.nettrace"},
		"trace":          {"Trace.zip", "trace.nettrace"},
		"TRACE.NETTRACE": {"trace.nettrace"},
		"x":              nil,
		"":               nil,
		"nothing-like":   nil,
	} {
		got := Nearest(want, files)
		if len(names) > 0 && len(got) > 0 && want != "trace" { // more may be offered behind the likeliest
			got, names = got[:1], names[:1]
		}
		if want == "trace" {
			got = got[:2]
		}
		assert.Equal(t, names, got, want)
	}
	assert.Equal(t, []string{"--side"}, Nearest("--sied", []string{"--side", "--format", "--tracks"}), "two letters exchanged are one mistake")
	assert.Equal(t, []string{"Lab!Lab.Deep.Level(int32)"}, NearestEnd("Levle", []string{"Lab!Lab.Deep.Level(int32)", "Lab!Lab.Other()"}))
	assert.Equal(t, []string{"System.Net.Http"}, NearestEnd("*Htpp*", []string{"System.Net.Http", "Microsoft.Extensions"}))
	assert.Equal(t, "; did you mean a\uFFFDb?", DidYouMean("a\x1bc", []string{"a\x1bb"}))
	assert.Empty(t, DidYouMean("x", []string{"abc"}))
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"side", "sied", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"äb", "bä", 1}} {
		assert.Equal(t, c.want, edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}
