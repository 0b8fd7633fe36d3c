package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
)

// documented are the command lines of code blocks, of the text around them, and of the help.
func documented(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```(?:sh)?$(.*?)^```$")
	for _, name := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../examples/README.md", "../../examples/ci/README.md") {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, found := range block.FindAllStringSubmatch(string(b), -1) {
			for line := range strings.Lines(found[1]) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				if strings.HasPrefix(line, "tracefix ") && !strings.HasPrefix(line, "tracefix repairs ") {
					lines[line] = filepath.Base(name)
				}
			}
		}
		for _, m := range regexp.MustCompile("`(tracefix [a-z]+ [^`]+)`").FindAllStringSubmatch(block.ReplaceAllString(string(b), ""), -1) {
			line := strings.ReplaceAll(m[1], `\|`, "|")
			// One without a trace is a mention, and needs but be a command: TestDocumentsParse.
			if regexp.MustCompile(`\.nettrace| DIR| TRACE|://|--help`).MatchString(line) {
				lines[line] = filepath.Base(name)
			}
		}
	}
	for _, row := range command.Table {
		require.NotEmpty(t, row.Examples, row.Name)
		require.NotEmpty(t, row.Group, row.Name)
	}
	var cli CLI
	k, err := grammar(&cli, nil, kong.Bind(streams{}))
	require.NoError(t, err)
	for _, n := range k.Model.Children {
		for _, n := range append([]*kong.Node{n}, n.Children...) {
			for _, e := range examplesOf(n) {
				lines[e] = "help of " + n.Name
			}
		}
	}
	return lines
}

// TestDocumentsRun runs every command line of the documents and of the help as it stands,
// on files and buckets of these names: what people copy has to work. A trace that lacks what is
// asked for is told so.
func TestDocumentsRun(t *testing.T) {
	home := filepath.Join(t.TempDir(), "files")
	layFiles(t, home)
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	lines := documented(t)
	require.Greater(t, len(lines), 60)
	done := 0
	for line, where := range lines {
		t.Run(line, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(home)))
			require.NoError(t, os.Symlink(filepath.Join(repo, "testdata"), filepath.Join(dir, "testdata")))
			t.Chdir(dir)
			for _, end := range []string{" # ", " && ", " | ", " > "} {
				line, _, _ = strings.Cut(line, end)
			}
			args := shellWords(t, strings.NewReplacer(" TRACE", " trace.nettrace").Replace(line))[1:]
			ctx := t.Context()
			switch {
			case strings.Contains(line, "s3://"):
				layBuckets(t, home, args)
			case strings.HasPrefix(line, "tracefix batch merge "), strings.HasPrefix(line, "tracefix batch compare "):
				layReports(t, line)
				args = shellWords(t, line)[1:] // with the names that are there now
			case args[0] == "snoop":
				if runtime.GOOS == "windows" {
					t.Skip("a named pipe stands for the process there: see internal/ipc")
				}
				args = layProcess(t, args)
			}
			var out, errs bytes.Buffer
			if args[0] == "view" {
				args = append(args, "--no-open")
				if s, err := os.Stat(args[1]); err == nil && s.IsDir() {
					var stop context.CancelFunc // it serves until it is interrupted
					ctx, stop = context.WithTimeout(ctx, 300*time.Millisecond)
					defer stop()
				} else if !slices.Contains(args, "-o") {
					args = append(args, "-o", "page-of-test.html")
				}
			}
			code := run(ctx, args, streams{strings.NewReader(""), &out, &errs})
			said := errs.String()
			switch code {
			case exitOK:
				done++
				assert.NotRegexp(t, `(?m)^0 traces:`, said, "%s: %s: nothing was worked on", where, line)
			case exitFailed:
				assert.Regexp(t, "nothing to write|gate |nothing moved|--fail-on|beyond noise", said, "%s: %s", where, line)
			default:
				assert.Failf(t, "a command that does not run", "%s: %s: exit %d: %s", where, line, code, said)
			}
			if args[0] == "view" && ctx != t.Context() {
				assert.Contains(t, out.String(), "http://127.0.0.1:")
			}
		})
	}
	assert.Greater(t, done, len(lines)*2/3, "most of them find what they ask for")
}

// shellWords are the words of a line, its wildcards replaced as a shell does where files match.
func shellWords(t *testing.T, line string) (list []string) {
	t.Helper()
	for _, w := range word.FindAllString(line, -1) {
		if names, err := filepath.Glob(w); err == nil && !strings.ContainsAny(w, `'"`) && len(names) > 0 {
			list = append(list, names...)
			continue
		}
		list = append(list, strings.Trim(w, `'"`))
	}
	return list
}

// preceded runs a command that has to work before another one can.
func preceded(t *testing.T, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}), "%s: %s", args, errs.String())
}

// layReports makes the reports of shards and of two days, as the documents call them.
func layReports(t *testing.T, line string) {
	t.Helper()
	if m := regexp.MustCompile(`-of-(\d)`).FindStringSubmatch(line); m != nil {
		of, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		for i := range of {
			preceded(t, "batch", "traces", "-o", "out", "--do", "info", "--shard", fmt.Sprintf("%d/%d", i+1, of))
		}
		return
	}
	preceded(t, "batch", "traces", "-o", "monday", "--do", "http")
	preceded(t, "batch", "traces", "-o", "tuesday", "--do", "http")
}

// layBuckets starts a store with the traces of the documents, and does what stands before a command
// there: a piece has a plan, and what is joined was done.
func layBuckets(t *testing.T, home string, args []string) {
	t.Helper()
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true)).Server())
	t.Cleanup(server.Close)
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	was := openURL
	t.Cleanup(func() { openURL = was })
	openURL = func(ctx context.Context, url string) (batch.Store, string, error) {
		url, _, _ = strings.Cut(url, "?")
		return was(ctx, url+"?endpoint="+server.URL+"&region=us-east-1&use_path_style=true")
	}
	store, _, err := openURL(t.Context(), "s3://bucket/")
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(home, "DIR", "a.nettrace.zst"))
	require.NoError(t, err)
	for i := range 20 {
		require.NoError(t, store.Put(t.Context(), fmt.Sprintf("nightly/%02d.nettrace.zst", i), bytes.NewReader(b)))
	}
	for i := range 4 {
		require.NoError(t, store.Put(t.Context(), fmt.Sprintf("traces/%02d.nettrace", i), bytes.NewReader(b)))
	}
	plan := []string{"batch", "plan", "s3://bucket/nightly/", "-o", "s3://bucket/fixed/", "--pieces", "400"}
	switch {
	case args[1] == "merge":
		preceded(t, append(plan[:len(plan)-1], "20")...)
		for i := range 20 {
			preceded(t, "batch", "--piece", strconv.Itoa(i), "-o", "s3://bucket/fixed/", "--for-merge")
		}
	case args[1] == "compare":
		for _, day := range []string{"monday", "tuesday"} {
			preceded(t, "batch", "s3://bucket/nightly/", "-o", "s3://bucket/"+day+"/", "--do", "http")
		}
	case slices.Contains(args, "--piece") || slices.Contains(args, "--manifest"):
		preceded(t, plan...)
	}
}

// layProcess lets this process stand for that of the documents, with a diagnostics server that
// nobody asks, and ends the recording.
func layProcess(t *testing.T, args []string) []string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(os.TempDir(), fmt.Sprintf("dotnet-diagnostic-%d-4711-socket", os.Getpid()))) // where a process has its own
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	require.NoError(t, os.Remove("session.rec"))
	for i, a := range args {
		if a == "4711" {
			args[i] = strconv.Itoa(os.Getpid())
		}
	}
	return append(args, "--duration", "50ms")
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

// TestPagesReachNothing: the browser keeps whoever forged a name that became part of a page from the
// network, as the threat model says of all pages.
func TestPagesReachNothing(t *testing.T) {
	dir := t.TempDir()
	page := func(name string) string { return filepath.Join(dir, name) }
	for name, args := range map[string][]string{
		"requests.html": {"http", fixtures["http"]},
		"summary.html":  {"http", fixtures["http"], "--summary"},
		"gc.html":       {"gc", fixtures["gc"]},
		"stacks.html":   {"convert", fixtures[""]},
		"weighed.html":  {"convert", fixtures["locks"], "--weight", "contention"},
		"compare.html":  {"compare", fixtures[""], fixtures["locks"]},
	} {
		code, _, words := tracefix(t, append(args, "-o", page(name))...)
		require.Equal(t, exitOK, code, words)
	}
	code, _, words := tracefix(t, "batch", fixtures["gc"], "-o", page("batch"), "--do", "info")
	require.Equal(t, exitOK, code, words)
	pages, err := filepath.Glob(page("*.html"))
	require.NoError(t, err)
	require.Len(t, pages, 6)
	for _, name := range append(pages, page("batch/batch-report.html")) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(b), "<style")
		assert.Contains(t, head, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'`, name)
	}
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
