package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNotice(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/stretchr/testify").Output()
	require.NoError(t, err)
	testify := &debug.Module{Path: "github.com/stretchr/testify", Version: strings.TrimSpace(string(out))}
	var b bytes.Buffer
	require.NoError(t, notice(&b, &debug.BuildInfo{GoVersion: "go1.99", Deps: []*debug.Module{{Path: "old", Replace: testify}}}))
	for _, want := range []string{"  Go standard library go1.99\n", "  github.com/stretchr/testify " + testify.Version + "\n", "Permission is hereby granted"} {
		assert.True(t, strings.Contains(b.String(), want), want)
	}
	assert.Error(t, notice(&b, &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.invalid/x", Version: "v1.0.0"}}}), "an unknown module is not passed over")
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "COPYING.md", "NOTICE.txt", "LICENSE-MIT", "license_test.go", "README.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666))
	}
	texts, err := licences(dir)
	require.NoError(t, err)
	var got []string
	for _, b := range texts {
		got = append(got, string(b))
	}
	assert.ElementsMatch(t, []string{"LICENSE", "COPYING.md", "NOTICE.txt", "LICENSE-MIT"}, got)
}
