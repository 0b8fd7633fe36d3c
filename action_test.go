package tracefix_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestActionTellsWhatIsNotThere runs the step of the GitHub action that installs, with a curl that
// finds nothing: what to do about it is told, and not the number that curl had for an answer.
func TestActionTellsWhatIsNotThere(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it needs bash")
	}
	b, err := os.ReadFile("action.yml")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "      run: |\n")
	require.True(t, ok)
	var script strings.Builder
	for line := range strings.Lines(rest) {
		code, ok := strings.CutPrefix(line, "        ")
		if !ok {
			break
		}
		script.WriteString(code)
	}
	for _, c := range []struct{ name, version, curl, want string }{
		{"none", "latest", "echo 404", "::error::tracefix has no release yet: https://github.com/tracefix/tracefix/releases; until then "},
		{"limit", "latest", "echo 403", "::error::the newest release of tracefix is not known: GitHub answered 403"},
		{"offline", "latest", "exit 6", "GitHub answered nothing"},
		{"other", "latest", `echo '{}' >"$RUNNER_TEMP/tracefix-latest.json"; echo 200`, "has no version in what GitHub answered"},
		{"mistyped", "v9.9.9", "echo 'curl: (22) The requested URL returned error: 404' >&2; exit 22", "tracefix_9.9.9_linux_amd64.tar.gz could not be had; is there a version 9.9.9 at https://"},
		{"newest", "latest", `case "$*" in *api.github.com*) echo '{"tag_name": "v1.2.3"}' >"$RUNNER_TEMP/tracefix-latest.json"; echo 200 ;; *) exit 22 ;; esac`, "is there a version 1.2.3 at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "curl"), []byte("#!/bin/sh\n"+c.curl+"\n"), 0o755))
			cmd := exec.Command(bash, "-c", script.String())
			cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "VERSION="+c.version,
				"RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+dir, "GITHUB_PATH="+filepath.Join(dir, "path"), "TOKEN=")
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, string(out), c.want)
			assert.NoFileExists(t, filepath.Join(dir, "path"))
		})
	}
}
