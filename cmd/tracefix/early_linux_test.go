package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/early"
)

// TestEarlyHelp: the help that is printed before anything is initialised is that of the grammar.
func TestEarlyHelp(t *testing.T) {
	t.Setenv("COLUMNS", "")
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--help"}, streams{strings.NewReader(""), &out, &errs}))
	assert.Empty(t, errs.String())
	if *update {
		require.NotContains(t, out.String(), "`")
		require.NoError(t, os.WriteFile("../../internal/early/help.go", []byte("package early\n\nconst help = `"+out.String()+"`\n"), 0o666))
		return
	}
	assert.Equal(t, out.String(), early.Help, "run this test with -update")
}

// TestEarlyHelpIsPrinted: the command itself prints it, and where the width is known what the grammar makes of that.
func TestEarlyHelpIsPrinted(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		flag, columns string
		early         bool
	}{{"--help", "", true}, {"-h", "", true}, {"--help", "60", false}} {
		cmd := exec.Command(self)
		cmd.Args = []string{"tracefix", c.flag} // see testscript.Main
		cmd.Env = append(os.Environ(), "COLUMNS="+c.columns)
		out, err := cmd.Output()
		require.NoError(t, err)
		assert.Equal(t, c.early, early.Help == string(out), "%s with %q columns printed:\n%s", c.flag, c.columns, out)
	}
}

// TestEarlyComesEarly: what package early imports is initialised before it.
func TestEarlyComesEarly(t *testing.T) {
	files, err := filepath.Glob("../../internal/early/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, im := range f.Imports {
			assert.Contains(t, []string{`"os"`, `"runtime"`, `"syscall"`, `"unsafe"`}, im.Path.Value, name)
		}
	}
}
