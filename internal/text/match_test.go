package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"A*", "abc", true}, {"*c", "abc", true}, {"a?c", "abc", true},
		{"a*b*c", "aXXbYYc", true}, {"a*b*c", "aXXcYYb", false}, {"", "", true}, {"*", "", true}, {"?", "", false},
		{"*Main(*", "app!Program.<Main>$(class X)", false}, {"*<main>*", "app!Program.<Main>$(class X)", true},
	} {
		assert.Equal(t, c.want, Match(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
}

func TestList(t *testing.T) {
	assert.True(t, List(nil).Match("anything"))
	assert.True(t, List{"x", "b*"}.Match("a", "bc"))
	assert.False(t, List{"x", "b*"}.Match("a", "c"))
	assert.False(t, List{"["}.Match("a"), "a bracket is a character as any other")
	assert.True(t, List{"a[1]*"}.Match("A[1]/b"), "and so is a slash")

	assert.True(t, List(nil).MatchID(7, ""))
	assert.True(t, List{"7"}.MatchID(7, ""))
	assert.True(t, List{"0x1F"}.MatchID(31, ""))
	assert.True(t, List{"web*"}.MatchID(7, "WebServer"))
	assert.False(t, List{"*"}.MatchID(7, ""), "a thing without a name has none that matches")
	assert.False(t, List{"8", "db"}.MatchID(7, "web"))
}
