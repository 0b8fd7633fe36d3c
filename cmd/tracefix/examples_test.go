package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestExamplesParse reads the CI examples as YAML and every command line in them with
// the grammar of the command.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../../examples/ci/*.y*ml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var doc any
		require.NoError(t, yaml.Unmarshal(b, &doc), name)
		n := 0
		for _, script := range texts(doc) {
			script = strings.ReplaceAll(script, "\\\n", " ")
			for line := range strings.Lines(script) {
				line, ok := strings.CutPrefix(strings.TrimSpace(line), "tracefix ")
				if !ok {
					continue
				}
				n++
				line, _, _ = strings.Cut(line, " ||")
				var cli CLI
				parser, err := grammar(&cli, words(line))
				require.NoError(t, err)
				_, err = parser.Parse(words(line))
				assert.NoError(t, err, "%s: %s", name, line)
			}
		}
		assert.NotZero(t, n, "%s has no command", name)
	}
}

// texts are all strings of a YAML document.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	}
	return out
}

var word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// words splits as a shell does, with 1 for every variable.
func words(line string) []string {
	line = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\{[^}]*\}|\$\w+`).ReplaceAllString(line, "1")
	var out []string
	for _, w := range word.FindAllString(line, -1) {
		out = append(out, strings.Trim(w, `'"`))
	}
	return out
}
