package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/command"
)

// fixtures are small traces with something for each row of the table.
var fixtures = map[string]string{
	"http":       filepath.Join("..", "..", "internal", "requests", "testdata", "http-more.nettrace.zst"),
	"activities": filepath.Join("..", "..", "internal", "requests", "testdata", "http-more.nettrace.zst"),
	"counters":   filepath.Join("..", "..", "testdata", "nettrace", "counters.nettrace.zst"),
	"ipc":        filepath.Join("..", "..", "testdata", "ipc", "reverse.rec.zst"),
	"gc":         filepath.Join("..", "..", "testdata", "nettrace", "runtime-gc.nettrace.zst"),
	"jit":        filepath.Join("..", "..", "testdata", "nettrace", "runtime-jit.nettrace.zst"),
	"locks":      filepath.Join("..", "..", "testdata", "nettrace", "runtime-locks.nettrace.zst"),
	"threads":    filepath.Join("..", "..", "testdata", "nettrace", "runtime-threads.nettrace.zst"),
	"":           filepath.Join("..", "..", "testdata", "nettrace", "async.nettrace.zst"), // all others
}

// TestTable does every row of the table in each of its formats, once alone and once in a
// batch: a batch can do what a single run can, and writes the same bytes.
func TestTable(t *testing.T) {
	for _, row := range command.Table {
		in, ok := fixtures[row.Name]
		if !ok {
			in = fixtures[""]
		}
		for _, format := range row.Outputs {
			t.Run(row.Name+" "+format.Name, func(t *testing.T) {
				require.NotEmpty(t, format.Extensions, "a file of it has a name")
				dir := t.TempDir()
				name := "trace" + format.Extensions[0]
				var all []byte
				if !row.Alone {
					code, _, words := tracefix(t, "batch", in, "-o", filepath.Join(dir, "all"), "--do", row.Name, "--format", format.Name)
					require.Equal(t, exitOK, code, words)
					name, all = onlyOutput(t, filepath.Join(dir, "all"))
				}
				single := filepath.Join(dir, name)
				args := []string{row.Name, in, "-o", single}
				if row.Name == "info" {
					args = append(args, "--all") // as batches do
				}
				code, _, words := tracefix(t, args...)
				require.Equal(t, exitOK, code, words)
				assert.Contains(t, words, filepath.Base(in)+" -> "+single+": ")
				alone, err := os.ReadFile(single)
				require.NoError(t, err)
				if !row.Alone {
					assert.True(t, string(alone) == string(all), "%d bytes alone, %d in a batch", len(alone), len(all))
				}
				// Who gives it back is told what it is.
				_, _, words = tracefix(t, "info", single)
				assert.NotContains(t, words, "no traceEvents")
			})
		}
	}
}

// onlyOutput returns the one output of a batch and its name.
func onlyOutput(t *testing.T, dir string) (string, []byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "[^.b]*")) // no state, no batch-report
	require.NoError(t, err)
	require.Len(t, found, 1)
	b, err := os.ReadFile(found[0])
	require.NoError(t, err)
	return filepath.Base(found[0]), b
}

// TestBatchTakesFlags: the flags of what is done are those of batch, too, and no others.
func TestBatchTakesFlags(t *testing.T) {
	dir := t.TempDir()
	code, _, words := tracefix(t, "batch", fixtures["http"], "-o", filepath.Join(dir, "a"), "--do", "http", "--failed", "--limit=2")
	require.Equal(t, exitOK, code, words)
	b, err := os.ReadFile(filepath.Join(dir, "a", "http-more.http.ndjson"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(b), "\n"))
	code, _, words = tracefix(t, "batch", fixtures["http"], "-o", filepath.Join(dir, "b"), "--failed")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, words, "has no flag --failed")
	code, text, _ := tracefix(t, "batch", "run", "--do=events", "--help")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, text, "--provider")
	assert.NotContains(t, text, "--min-confidence")
}

// TestCommandsDocument holds docs/commands.md to the table.
func TestCommandsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten by `go test ./cmd/tracefix -run TestCommandsDocument -update` from the grammar of the command line.\n" +
		"What works on one trace, but `ipc`, also works as `tracefix batch ... --do COMMAND`, with the same flags.\n")
	var cli CLI
	parser, err := grammar(&cli, nil)
	require.NoError(t, err)
	commands := map[string]*kong.Node{}
	for _, n := range parser.Model.Children {
		commands[n.Name] = n
	}
	for _, row := range command.Table {
		fmt.Fprintf(&b, "\n## %s\n\n%s Reads %s.\n\n| format | extensions | |\n|---|---|---|\n", row.Name, row.Help, row.Inputs())
		for i, f := range row.Outputs {
			var marks []string
			if i == 0 && row.Rewrites == nil {
				marks = append(marks, "default")
			}
			if f.Name == row.Screen {
				marks = append(marks, "default on a terminal")
			}
			if f.Name == row.Batch {
				marks = append(marks, "default of batches")
			}
			name := f.Name
			if f.Also != "" {
				name += " or " + f.Also
			}
			if marks != nil {
				name += " (" + strings.Join(marks, ", ") + ")"
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", name, strings.Join(f.Extensions, "`, `"), f.Help)
		}
		if r := row.Rewrites; r != nil {
			fmt.Fprintf(&b, "\nDefault: the input's own format, in a file beside it named `NAME%s.EXT`.\n", r.Own)
		}
		writeFlags(&b, commands[row.Name], row.Examples)
		delete(commands, row.Name)
	}
	for _, n := range parser.Model.Children {
		if commands[n.Name] == nil || n.Hidden {
			continue
		}
		for _, n := range append([]*kong.Node{n}, n.Children...) {
			if n.Parent.DefaultCmd == n {
				continue // it goes by the name of the command above
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", strings.Join(commandPath(n)[1:], " "), n.Help)
			writeFlags(&b, n, examplesOf(n))
		}
	}
	file := filepath.Join("..", "..", "docs", "commands.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o666))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, b.String(), string(got), "run the test with -update")
}

// writeFlags writes the examples and the flags of a command.
func writeFlags(b *strings.Builder, n *kong.Node, examples []string) {
	if examples != nil {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.Join(examples, "\n"))
	}
	list := ownFlags(n)
	if list == nil {
		return
	}
	b.WriteString("\n| flag | |\n|---|---|\n")
	cell := strings.NewReplacer("|", `\|`)
	for _, f := range list {
		fmt.Fprintf(b, "| `%s` | %s |\n", cell.Replace(f.String()), cell.Replace(f.Help))
	}
}
