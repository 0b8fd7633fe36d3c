package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/command"
)

// documented are the command lines of code blocks, of the README's table and of the help.
func documented(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, name := range append(files, "../../README.md", "../../examples/README.md") {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?ms)^```(?:sh)?$(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
			for line := range strings.Lines(block[1]) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				if strings.HasPrefix(line, "tracefix ") && !strings.HasPrefix(line, "tracefix repairs ") {
					lines[line] = filepath.Base(name)
				}
			}
		}
		for _, cell := range regexp.MustCompile(`(?m)^\|.*$`).FindAllString(string(b), -1) {
			for _, m := range regexp.MustCompile("`(tracefix [a-z]+ [^`]+)`").FindAllStringSubmatch(cell, -1) {
				lines[strings.ReplaceAll(m[1], `\|`, "|")] = filepath.Base(name)
			}
		}
	}
	for _, row := range command.Table {
		require.NotEmpty(t, row.Examples, row.Name)
		require.NotEmpty(t, row.Group, row.Name)
		for _, e := range row.Examples {
			lines[e] = "help of " + row.Name
		}
	}
	return lines
}

// What cannot be run here, and why.
var notRun = map[string]string{
	"tracefix snoop ":        "needs a running .NET process",
	"s3://":                  "needs a bucket",
	"tracefix batch merge ":  "needs the reports of shards; batch_shard.txtar joins some",
	"tracefix view traces/ ": "serves until it is interrupted",
}

// TestDocumentsRun runs every command line of the documents and of the help as it stands,
// on files of these names: what people copy has to work. A trace that lacks what is asked for
// is told so.
func TestDocumentsRun(t *testing.T) {
	home := filepath.Join(t.TempDir(), "files")
	layFiles(t, home)
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	lines := documented(t)
	require.Greater(t, len(lines), 45)
	done := 0
	for line, where := range lines {
		skipped := false
		for prefix := range notRun {
			skipped = skipped || strings.Contains(line, prefix)
		}
		if skipped {
			continue
		}
		t.Run(line, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(home)))
			require.NoError(t, os.Symlink(filepath.Join(repo, "testdata"), filepath.Join(dir, "testdata")))
			t.Chdir(dir)
			for _, end := range []string{" # ", " && ", " | ", " > "} {
				line, _, _ = strings.Cut(line, end)
			}
			args := words(strings.TrimSpace(line))[1:]
			if args[0] == "view" {
				args = append(args, "--no-open", "-o", "page.html")
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs})
			said := errs.String()
			switch code {
			case exitOK:
				done++
			case exitFailed:
				assert.Regexp(t, "nothing to write|gate |nothing moved|--fail-on|beyond noise", said, "%s: %s", where, line)
			default:
				assert.Failf(t, "a command that does not run", "%s: %s: exit %d: %s", where, line, code, said)
			}
		})
	}
	assert.Greater(t, done, len(lines)/2, "most of them find what they ask for")
}

// layFiles makes a folder with the files that documents name.
func layFiles(t *testing.T, dir string) {
	t.Helper()
	unpacked := func(name string) []byte {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		z, err := zstd.NewReader(bytes.NewReader(b))
		require.NoError(t, err)
		defer z.Close()
		var out bytes.Buffer
		_, err = out.ReadFrom(z)
		require.NoError(t, err)
		return out.Bytes()
	}
	trace := unpacked(fixtures["http"])
	packed, err := os.ReadFile(fixtures["http"])
	require.NoError(t, err)
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	w, err := z.Create("b.nettrace")
	require.NoError(t, err)
	_, err = w.Write(trace)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	put := func(name string, b []byte) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, b, 0o666))
	}
	for _, name := range []string{"trace.nettrace", "big.nettrace", "before.nettrace", "after.nettrace"} {
		put(name, trace)
	}
	chromium, err := os.ReadFile(filepath.Join("..", "..", "testdata", "chain.chromium.json.zst"))
	require.NoError(t, err)
	put("trace.chromium.json", chromium) // found by what it holds
	put("session.rec", unpacked(fixtures["ipc"]))
	put("traces/a.nettrace.zst", packed)
	put("DIR/a.nettrace.zst", packed)
	put("dumps/b.zip", zipped.Bytes())
	put("archive.tar.zst", packed)
}

// TestHelpFits: the help of every command fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	commands := []string{"", "view", "batch", "batch run", "batch plan", "batch merge", "batch compare", "compare", "snoop", "completion", "man"}
	for _, row := range command.Table {
		commands = append(commands, row.Name)
	}
	for _, c := range commands {
		code, text, words := tracefix(t, append(strings.Fields(c), "--help")...)
		require.Equal(t, exitOK, code, words)
		if c != "batch" { // whose help is that of run
			require.True(t, strings.HasPrefix(text, strings.TrimSpace("Usage: tracefix "+c)), text)
		}
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, "%s: %s", c, line)
		}
	}
}
