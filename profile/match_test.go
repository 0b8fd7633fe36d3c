package profile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsActivityID(t *testing.T) {
	for _, s := range []string{"//1/2", "/1", "1/2", "//1/2/", "/#4297/1/2/", "//1/?/2", "//1/2$7", "//1/2$?", "{AAAAAAAA-0000-0000-0000-000000000000}"} {
		assert.True(t, IsActivityID(s), s)
	}
	for _, s := range []string{"", "12", "//", "/#x/1", "/#12", "/#12/", "//a", "//0", "//01", "//+1", "//1//2", "//1/2$", "//1/2$0", "Provider/Name", "*/1", "//4294967296"} {
		assert.False(t, IsActivityID(s), s)
	}
}

func TestActivityMatcherPaths(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"//1/2", "//1/2", true}, {"//1/2", "1/2", true}, {"1/2/", "//1/2/3", true}, {"//1/2", "//1", false}, {"//1/2", "//1/3", false}, {"//1/2", "//1/22", false},
		{"//1/2", "//1/2$7", true}, {"//1/2$7", "//1/2$7", true}, {"//1/2$7", "//1/2$8", false}, {"//1/2$7", "//1/2$77", false}, {"//1/?", "//1/?/1", true},
		{"/#4297/1/2/", "//1/2/3", true}, {"/#4298/1/2/", "//1/2/3", false}, {"Request", "//1/2", false},
	} {
		m := NewActivityMatcher([]string{"//9", c.pattern})
		assert.Equal(t, c.want, m.Path(4297, c.path), "%s of %s", c.path, c.pattern)
	}
	m := NewActivityMatcher([]string{"/#4297/1/2", "Lab*"})
	assert.False(t, m.Path(0, "//1/2"), "of an unknown process")
	assert.True(t, m.Name("Lab", "Request"))
	assert.True(t, m.Name("P", "Labour"))
	assert.False(t, m.Name("P", "Request"))
	assert.False(t, NewActivityMatcher([]string{"*"}).Name("P", ""))
	assert.False(t, NewActivityMatcher([]string{"Lab"}).HasPaths())
}
