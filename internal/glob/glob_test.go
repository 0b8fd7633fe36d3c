package glob

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
