package tracefix_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLinks looks up the files that the documents link to.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	n := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range link.FindAllStringSubmatch(string(b), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				n++
				_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
				assert.NoError(t, err, "%s: %s", file, m[1])
			}
		}
	}
	assert.Greater(t, n, 20)
}
