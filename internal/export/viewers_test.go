package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestOpensInSpeedscope opens outputs in the real speedscope in a headless browser. It
// needs chromium and the unpacked npm package:
//
//	npm install speedscope
//	TRACEFIX_SPEEDSCOPE=node_modules/speedscope go test ./internal/export -run Speedscope
//
// With TRACEFIX_SCREENSHOTS=DIR it leaves pictures of what it saw.
func TestOpensInSpeedscope(t *testing.T) {
	dir := os.Getenv("TRACEFIX_SPEEDSCOPE")
	if dir == "" {
		t.Skip("TRACEFIX_SPEEDSCOPE does not name speedscope's npm package")
	}
	page, err := filepath.Abs(filepath.Join(dir, "dist", "release", "index.html"))
	require.NoError(t, err)
	require.FileExists(t, page)
	browser := tracetest.BrowserPath(t)
	shots := os.Getenv("TRACEFIX_SCREENSHOTS")
	for _, c := range []struct {
		file, shown string
		write       func(*bytes.Buffer) error
	}{
		{"example.speedscope.json", "shop (42) Main (42)", func(b *bytes.Buffer) error { return Speedscope(b, example(), Options{}) }},
		{"example.chromium.json", "shop (pid 42), Main (tid 42)", func(b *bytes.Buffer) error { return Chromium(b, example(), Options{}) }},
		{"large.speedscope.json", "Thread 4242", func(b *bytes.Buffer) error { return Speedscope(b, large(300), Options{}) }},
		{"large.chromium.json", "Thread 4242 (tid 4242)", func(b *bytes.Buffer) error { return Chromium(b, large(300), Options{}) }},
	} {
		var out bytes.Buffer
		require.NoError(t, c.write(&out))
		// speedscope loads a script that hands it the file, as its own command does.
		temp := t.TempDir()
		script := filepath.Join(temp, "profile.js")
		text := fmt.Sprintf("speedscope.loadFileFromBase64(%q, %q)", c.file, base64.StdEncoding.EncodeToString(out.Bytes()))
		require.NoError(t, os.WriteFile(script, []byte(text), 0o644))
		args := []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader",
			"--allow-file-access-from-files", "--user-data-dir=" + filepath.Join(temp, "browser"),
			"--window-size=1500,900", "--virtual-time-budget=20000",
		}
		address := "file://" + page + "#localProfilePath=" + script
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		dom, err := exec.CommandContext(ctx, browser, append(args, "--dump-dom", address)...).Output()
		require.NoError(t, err)
		assert.Contains(t, string(dom), c.shown, c.file)
		assert.NotContains(t, string(dom), "Something went wrong", c.file)
		if shots != "" {
			shot := filepath.Join(shots, c.file+".png")
			require.NoError(t, exec.CommandContext(ctx, browser, append(args, "--screenshot="+shot, address)...).Run())
		}
		cancel()
	}
}
