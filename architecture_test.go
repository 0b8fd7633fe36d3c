package tracefix

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/tracefix/tracefix/"

// mayImport says for each package which packages of this module it may import: data flows
// one way, and what others import stands alone.
var mayImport = map[string][]string{
	// Files and algorithms: public, and each stands alone.
	"chromium":        {},
	"nettrace":        {},
	"stackfix":        {"stackfix/stacks"},
	"stackfix/stacks": {},
	"httpphases":      {},
	"activity":        {"nettrace", "internal/spool", "internal/text"}, // the names of providers; rows; GUIDs
	"runtimeevents":   {"nettrace"},
	"causality":       {"nettrace", "activity", "runtimeevents", "stackfix/stacks", "internal/spool", "internal/waits"},

	// The model, and the door to all that is done with it.
	"profile": {"stackfix/stacks", "internal/relay", "internal/spool", "internal/text", "internal/waits"},
	".":       {"chromium", "nettrace", "httpphases", "activity", "profile", "internal/input", "internal/load", "internal/spans", "internal/samples", "internal/pass", "internal/requests", "internal/export", "internal/httpreport", "internal/events", "internal/view", "internal/report", "internal/text"},

	// From bytes to the model.
	"internal/relay":        {},
	"internal/spool":        {},
	"internal/waits":        {},
	"internal/interval":     {},
	"internal/quantile":     {"internal/spool"},
	"internal/input/bitfix": {},
	"internal/input":        {"nettrace", "internal/input/bitfix", "internal/relay", "internal/spool", "internal/output", "internal/text"},
	"internal/load/pdb":     {},
	"internal/load":         {"internal/load/pdb", "nettrace", "activity", "profile", "runtimeevents", "internal/input", "internal/relay", "internal/spool", "internal/text"},
	"internal/spans":        {"chromium", "stackfix", "profile", "internal/input", "internal/relay"},
	"internal/samples":      {"profile", "internal/input", "internal/load", "internal/report"},
	"internal/requests":     {"nettrace", "activity", "httpphases", "internal/input", "internal/relay", "internal/spool", "internal/report", "internal/collect", "profile", "causality"},

	// On the model, and from it to bytes.
	"internal/pass":        {"profile", "stackfix", "internal/relay", "internal/spool"},
	"internal/httpreport":  {"nettrace", "runtimeevents", "httpphases", "internal/collect", "internal/interval", "internal/quantile", "internal/relay", "internal/report", "internal/spool", "internal/text", "profile", "activity", "internal/export", "internal/export/otlp"},
	"internal/export":      {"internal/relay", "internal/text", "profile"},
	"internal/export/otlp": {"internal/text"},
	"internal/compat":      {"nettrace", "profile", "runtimeevents", "internal/load", "internal/input"},
	"internal/view":        {"profile", "internal/report", "internal/spool", "internal/text"},

	// What is told of a file without a profile.
	"internal/events":  {"nettrace", "activity", "profile", "runtimeevents", "internal/input", "internal/load", "internal/export", "internal/export/otlp", "internal/interval", "internal/quantile", "internal/relay", "internal/report", "internal/spool", "internal/collect", "internal/text"},
	"internal/info":    {"nettrace", "chromium", "activity", "httpphases", "stackfix", "profile", "runtimeevents", "internal/input", "internal/load", "internal/spans", "internal/samples", "internal/pass", "internal/relay", "internal/report", "internal/requests", "internal/collect", "internal/text"},
	"internal/compare": {".", "nettrace", "httpphases", "profile", "runtimeevents", "internal/events", "internal/export", "internal/input", "internal/quantile", "internal/spool", "internal/text"},
	"internal/ipc":     {"nettrace", "internal/report", "internal/text"},

	// Runs of the command.
	"internal/early":        {},
	"internal/text":         {},
	"internal/collect":      {"internal/text"},
	"internal/output":       {"internal/relay", "internal/text"},
	"internal/report":       {"internal/relay", "internal/text"},
	"internal/command":      {".", "nettrace", "httpphases", "profile", "internal/input", "internal/load", "internal/compat", "internal/export", "internal/output", "internal/interval", "internal/quantile", "internal/relay", "internal/report", "internal/spool", "activity", "internal/info", "internal/events", "internal/ipc", "internal/requests", "internal/collect", "internal/text", "internal/httpreport"},
	"internal/batch":        {"internal/command", "internal/compare", "internal/input", "internal/output", "internal/relay", "internal/report", "internal/text"},
	"internal/batch/bucket": {"internal/batch"},
	"cmd/tracefix":          {".", "internal/batch", "internal/batch/bucket", "internal/collect", "internal/command", "internal/compare", "internal/early", "internal/info", "internal/input", "internal/ipc", "internal/output", "internal/report", "internal/view", "internal/text", "nettrace"},

	"packaging/bench":             {"activity", "nettrace"},
	"packaging/notice":            {},
	"packaging/nupkg":             {},
	"packaging/sbom":              {},
	"internal/tracetest":          {},
	"internal/tracetest/recorded": {"nettrace"},
}

// TestArrowsPointOneWay holds the architecture: every package has a row and keeps to it.
func TestArrowsPointOneWay(t *testing.T) {
	seen, unused := 0, maps.Clone(mayImport)
	used := map[[2]string]bool{}
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
		allowed, known := mayImport[dir]
		if !assert.True(t, known, "%s has no row in mayImport: say what it may import", dir) {
			return nil
		}
		delete(unused, dir)
		for _, im := range f.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			p, ours := strings.CutPrefix(p+"/", module)
			if !ours {
				continue
			}
			p = cmp.Or(strings.TrimSuffix(p, "/"), ".")
			seen++
			assert.NotEqual(t, "internal/tracetest", p, "%s is no test", path)
			assert.Contains(t, allowed, p, "%s must not import %s", path, p)
			used[[2]string{dir, p}] = true
		}
		return nil
	})
	require.NoError(t, err)
	assert.Empty(t, slices.Sorted(maps.Keys(unused)), "rows of packages that are gone")
	for dir, allowed := range mayImport {
		for _, a := range allowed {
			assert.True(t, used[[2]string{dir, a}], "%s may import %s and does not: take that out of its row", dir, a)
		}
	}
	assert.NotZero(t, seen, "the walk found no imports: it looked at the wrong place")
}
