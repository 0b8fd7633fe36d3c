package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestExamplesParse reads the CI examples as YAML and every command line in them with
// the grammar of the command.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../../examples/ci/*.y*ml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var docs []any
		for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
			var doc any
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			docs = append(docs, doc)
		}
		var doc any = docs
		n := 0
		for _, command := range commands(doc) {
			n++
			parsesWords(t, name, command)
		}
		for _, script := range texts(doc) {
			script = strings.ReplaceAll(script, "\\\n", " ")
			for line := range strings.Lines(script) {
				line, ok := strings.CutPrefix(strings.TrimSpace(line), "tracefix ")
				if !ok {
					continue
				}
				n++
				line, _, _ = strings.Cut(line, " ||")
				parses(t, name, line)
			}
		}
		assert.NotZero(t, n, "%s has no command", name)
	}
}

// parses asserts that the grammar takes a command line.
func parses(t *testing.T, name, line string) {
	t.Helper()
	parsesWords(t, name, words(line))
}

func parsesWords(t *testing.T, name string, words []string) {
	t.Helper()
	var cli CLI
	parser, err := grammar(&cli, words, kong.Bind(streams{}))
	require.NoError(t, err)
	_, err = parser.Parse(words)
	assert.NoError(t, err, "%s: %s", name, words)
}

// commands are the lists of a YAML document that begin with the name of the program, without it.
func commands(v any) (out [][]string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && v[0] == "tracefix" {
			var words []string
			for _, w := range v[1:] {
				words = append(words, fmt.Sprint(w))
			}
			return [][]string{words}
		}
		for _, e := range v {
			out = append(out, commands(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, commands(e)...)
		}
	}
	return out
}

// TestDocumentsParse reads every command line in the code blocks of the README and of docs/
// with the grammar of the command: what people copy has to work.
func TestDocumentsParse(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	files = append(files, "../../README.md", "../../examples/README.md", "../../examples/ci/README.md")
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?ms)^```(?:sh)?$(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
			for line := range strings.Lines(block[1]) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				line, ok := strings.CutPrefix(line, "tracefix ")
				if !ok || strings.HasPrefix(line, "repairs ") {
					continue
				}
				n++
				line, _, _ = strings.Cut(line, " # ")
				line, _, _ = strings.Cut(line, " && ")
				line, _, _ = strings.Cut(line, " | ")
				line, _, _ = strings.Cut(line, " > ")
				if line = strings.TrimSpace(line); line != "--version" {
					parses(t, name, line)
				}
			}
		}
	}
	assert.Greater(t, n, 20)
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
