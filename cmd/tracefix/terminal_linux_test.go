package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tracefix/tracefix/internal/command"
)

// onTerminal runs the command on a terminal of that width and returns the lines that it shows.
func onTerminal(t *testing.T, width int, args ...string) []string {
	t.Helper()
	t.Setenv("COLUMNS", "")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(width)}))
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	shown := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // its end is an error
		shown <- string(b)
	}()
	code := run(t.Context(), args, streams{strings.NewReader(""), screen, screen})
	require.NoError(t, screen.Close())
	text := <-shown
	require.Contains(t, []int{exitOK, exitDamaged}, code, text)
	text = strings.ReplaceAll(text, "\r\x1b[K", "\n") // a line that is drawn again
	text = regexp.MustCompile("\x1b\\[[0-9;]*m|\r").ReplaceAllString(text, "")
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// TestTerminalWidth: what is written to a terminal fits it, in every command; what is there to be
// copied stays whole: commands that record, and names without a blank.
func TestTerminalWidth(t *testing.T) {
	runs := map[string][]string{}
	for _, row := range command.Table {
		in, ok := fixtures[row.Name]
		if !ok {
			in = fixtures[""]
		}
		runs[row.Name] = []string{row.Name, in}
		if row.Rewrites != nil {
			runs[row.Name] = append(runs[row.Name], "-o", filepath.Join(t.TempDir(), "out.speedscope.json"))
		}
	}
	nettrace := filepath.Join("..", "..", "testdata", "nettrace")
	chain := filepath.Join("..", "..", "testdata", "chain.nettrace.zst")
	for name, args := range map[string][]string{
		"http both":          {"http", fixtures["http"], "--side", "both"},
		"http all":           {"http", fixtures["http"], "--sort", "start"},
		"http explain":       {"http", fixtures["http"], "--explain"},
		"http summary":       {"http", fixtures["http"], "--summary"},
		"activities explain": {"activities", fixtures["activities"], "--explain"},
		"counters table":     {"counters", fixtures["counters"], "--format", "table"},
		"events text":        {"events", fixtures["http"], "--format", "text", "-n", "100"},
		"info all":           {"info", fixtures[""], "--all"},
		"top threads":        {"top", fixtures[""], "--by-thread"},
		"top method":         {"top", fixtures[""], "--method", "*MoveNext*"},
		"top alloc":          {"top", filepath.Join(nettrace, "runtime-alloc.nettrace.zst"), "--weight", "alloc"},
		"compare":            {"compare", fixtures[""], chain},
		"compare requests":   {"compare", fixtures["http"], fixtures["http"]},
		"first run":          {chain},
		"batch":              {"batch", chain, fixtures["http"], "-o", t.TempDir()},
		"batch http":         {"batch", chain, fixtures["http"], "-o", t.TempDir(), "--do", "http"},
	} {
		runs[name] = args
	}
	for name, args := range runs {
		for _, width := range []int{80, 120} {
			t.Run(name+" "+strconv.Itoa(width), func(t *testing.T) {
				if args[0] == "repair" || args[0] == "convert" || args[0] == "batch" {
					args = append(args, "--force")
				}
				lines := onTerminal(t, width, args...)
				assert.Greater(t, len(lines), 1)
				for _, l := range lines {
					words := strings.TrimLeft(l, " ")
					if utf8.RuneCountInString(l) > width && strings.Contains(words, " ") && !regexp.MustCompile("^(-> )?dotnet-trace collect ").MatchString(words) {
						t.Errorf("%d characters: %s", utf8.RuneCountInString(l), l)
					}
				}
			})
		}
	}
}
