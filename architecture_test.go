package tracefix

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/tracefix/tracefix/"

// mayImport says for each layer which packages of this module it may import: data
// flows one way, and what others import stands alone. The longest prefix counts.
var mayImport = map[string][]string{
	"chromium":        {},
	"nettrace":        {},
	"stackfix":        {},
	"stackfix/stacks": {},
	"httpphases":      {},
	"activity":        {},
	"runtimeevents":   {"nettrace"},
	"profile":         {"stackfix/stacks", "internal/glob"},
	"internal/output": {},
	"internal/report": {},
	"internal/input":  {"profile"},
	"internal/export": {"chromium", "nettrace", "httpphases", "activity", "profile", "internal/compat", "internal/export"},
	"internal/symbol": {"profile"},
	"cmd/tracefix":    nil, // anything
	"internal/":       nil,
}

// TestArrowsPointOneWay holds the architecture: public packages import neither each
// other nor internal packages, and nothing imports the command.
func TestArrowsPointOneWay(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "examples" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err, path)
		dir := filepath.ToSlash(filepath.Dir(path))
		best := ""
		for layer := range mayImport {
			if (dir == layer || strings.HasPrefix(dir, strings.TrimSuffix(layer, "/")+"/")) && len(layer) > len(best) {
				best = layer
			}
		}
		allowed, known := mayImport[best]
		if !known || best == "" {
			return nil
		}
		for _, im := range f.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			if !strings.HasPrefix(p, module) {
				continue
			}
			p = strings.TrimPrefix(p, module)
			seen++
			assert.False(t, strings.HasPrefix(p, "cmd/"), "%s imports the command", path)
			assert.False(t, p == "internal/tracetest", "%s is no test and imports tracetest", path)
			if allowed == nil {
				continue
			}
			ok := false
			for _, a := range allowed {
				ok = ok || p == a || strings.HasPrefix(p, a+"/")
			}
			assert.True(t, ok || strings.HasPrefix(p, dir+"/") || strings.HasPrefix(dir, p+"/"), "%s must not import %s", path, p)
		}
		return nil
	})
	require.NoError(t, err)
	assert.NotZero(t, seen, "the walk found no imports: it looked at the wrong place")
}
