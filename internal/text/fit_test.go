package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		s             string
		width, indent int
		want          string
	}{
		{"one two three", 0, 2, "one two three"},
		{"one two three", 13, 2, "one two three"},
		{"one two three", 12, 2, "one two\n  three"},
		{"one two three", 7, 2, "one two\n  three"},
		{"one two three", 6, 2, "one\n  two\n  three"},
		{"äöü äöü äöü", 7, 0, "äöü äöü\näöü"},
		{"any muchlongerword b", 6, 2, "any\n  muchlongerword\n  b"},
		{"muchlongerword", 6, 2, "muchlongerword"},
		{"one two", 4, 40, "one\n  two"}, // an indent leaves room for text
		{"record it so: dotnet-trace collect --profile cpu -p 1", 10, 2, "record it\n  so:\n  dotnet-trace collect --profile cpu -p 1"},
	} {
		assert.Equal(t, c.want, Wrapped(c.s, c.width, c.indent), "%q in %d", c.s, c.width)
	}
}

func TestFit(t *testing.T) {
	const s = "http://höst/path/end"
	assert.Equal(t, s, Fit(s, utf8.RuneCountInString(s)))
	assert.Equal(t, "http://hö…/path/end", Fit(s, 19))
	assert.Equal(t, "ht…d", Fit(s, 4))
	assert.Equal(t, "…", Fit(s, 1))
	assert.Empty(t, Fit(s, 0))
	assert.Empty(t, Fit(s, -1))
}

// Names give before columns are left out; these only where names would become too short.
func TestFitColumns(t *testing.T) {
	head := []string{"name", "total", "self", "url"}
	for _, c := range []struct {
		name  string
		wide  []int
		width int
		want  []int
		out   string
	}{
		{"any width", []int{90, 8, 8, 90}, 0, []int{90, 8, 8, 90}, ""},
		{"all fits", []int{20, 8, 8, 30}, 74, []int{20, 8, 8, 30}, ""},
		{"the widest gives", []int{20, 8, 8, 30}, 70, []int{20, 8, 8, 26}, ""},
		{"then both", []int{26, 8, 8, 30}, 69, []int{22, 8, 8, 23}, ""},
		{"as far as names can be read", []int{26, 8, 8, 30}, 64, []int{20, 8, 8, 20}, ""},
		{"the first spare one goes", []int{26, 8, 8, 30}, 63, []int{24, 8, -1, 25}, "(a wider terminal shows also self)"},
		{"and the other one", []int{26, 8, 8, 30}, 50, []int{23, -1, -1, 23}, "(a wider terminal shows also total, self)"},
		{"names that are too short", []int{26, 8, 8, 30}, 20, []int{8, -1, -1, 8}, "(a wider terminal shows also total, self)"},
		{"no room at all", []int{26, 8, 8, 30}, 1, []int{1, -1, -1, 1}, "(a wider terminal shows also total, self)"},
	} {
		FitColumns(c.wide, c.width, 2, []int{0, 3}, []int{2, 1})
		assert.Equal(t, c.want, c.wide, c.name)
		assert.Equal(t, c.out, LeftOut(head, c.wide), c.name)
	}
}

func TestParseGUID(t *testing.T) {
	want := [16]byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	const guid = "00112233-4455-6677-8899-aabbccddeeff"
	for _, s := range []string{guid, strings.ToUpper(guid), "{" + guid + "}"} {
		id, err := ParseGUID(s)
		assert.NoError(t, err, s)
		assert.Equal(t, want, id, s)
	}
	for _, s := range []string{"", guid[1:], guid + "0", strings.ReplaceAll(guid, "-", ""), "g" + guid[1:],
		"001122334-455-6677-8899-aabbccddeeff", "00112233-44556-677-8899-aabbccddeeff", "00112233-4455-66778-899-aabbccddeeff", "00112233-4455-6677-8899a-abbccddeeff",
	} {
		_, err := ParseGUID(s)
		assert.ErrorContains(t, err, "is not a GUID", s)
	}
}
