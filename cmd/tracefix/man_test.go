package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManPage: every command, flag and example is on the page, in the order of the help, and roff
// has nothing to complain of.
func TestManPage(t *testing.T) {
	before, was := date, release
	t.Cleanup(func() { date, release = before, was })
	date, release = "2026-02-03T04:05:06Z", "1.2.3"
	var cli CLI
	k, err := grammar(&cli, nil, kong.Bind(streams{}))
	require.NoError(t, err)
	page := manPage(k)
	assert.Equal(t, page, manPage(k))
	assert.True(t, strings.HasPrefix(page, `.TH TRACEFIX 1 "2026-02-03" "tracefix 1.2.3" "User Commands"`+"\n"), page[:100])
	at := 0
	for _, c := range k.Model.Children {
		if c.Hidden {
			assert.NotContains(t, page, ".SS tracefix "+c.Name)
			continue
		}
		next := strings.Index(page, "\n.SS tracefix "+c.Name+" ")
		assert.Greater(t, next, at, c.Name)
		at = next
		for _, f := range ownFlags(c) {
			assert.Contains(t, page[at:], `\fB`+roffText(f.String())+`\fR`, c.Name)
		}
		for _, e := range examplesOf(c) {
			assert.Contains(t, page[at:], "\n"+roffText(e)+"\n")
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			assert.Regexp(t, regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|B|I|br|nf|fi)( |\n)`), line)
		}
	}
	lint, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("no mandoc here to read the page")
	}
	name := filepath.Join(t.TempDir(), "tracefix.1")
	require.NoError(t, os.WriteFile(name, []byte(page), 0o666))
	said, err := exec.Command(lint, "-Tlint", name).CombinedOutput()
	assert.NoError(t, err, string(said))
	assert.Empty(t, string(said))
}
