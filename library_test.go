package tracefix_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exported lists what a package exports: Name, Type.Method and Type.Field.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if id, ok := of.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						if st, ok := s.Type.(*ast.StructType); ok {
							for _, field := range st.Fields.List {
								for _, n := range field.Names {
									names[s.Name.Name+"."+n.Name] = true
								}
							}
						}
					}
				}
			}
		}
	}
	return names
}

// docs/library.md names nothing that there is not, and every package that others can import.
func TestLibraryIsDocumented(t *testing.T) {
	b, err := os.ReadFile("docs/library.md")
	require.NoError(t, err)
	packages := map[string]map[string]bool{"tracefix": exported(t, ".")}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if !d.IsDir() || path == "." {
			return nil
		}
		switch d.Name() {
		case "internal", "cmd", "examples", "packaging", "testdata", "docs":
			return filepath.SkipDir
		}
		if strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			packages[d.Name()] = exported(t, path)
			assert.Contains(t, string(b), "`"+d.Name()+"`", "a package that docs/library.md does not name")
		}
		return nil
	}))
	n := 0
	for _, m := range regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z.]*)`").FindAllStringSubmatch(string(b), -1) {
		names, ours := packages[m[1]]
		if !ours {
			continue // of the standard library
		}
		n++
		assert.True(t, names[m[2]], "docs/library.md names %s.%s", m[1], m[2])
	}
	assert.Greater(t, n, 40)
}
