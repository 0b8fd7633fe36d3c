package pipeline

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// The example of the README counts what the command counts, on all traces that there are.
func TestExampleRepairsAsTheCommand(t *testing.T) {
	example := filepath.Join(t.TempDir(), "repair.exe")
	out, err := exec.Command("go", "build", "-o", example, "../../examples/repair").CombinedOutput()
	require.NoError(t, err, "%s", out)
	seen := 0
	for _, name := range everyTrace(t) {
		in, err := input.Open(t.Context(), name, nil)
		if err != nil || in.Kind == input.Unknown {
			continue
		}
		seen++
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			defer in.Close()
			rep := &report.Trace{}
			err = Write(context.Background(), in, io.Discard, "", Config{Repair: true}, rep)
			got, failed := exec.Command(example, name).Output()
			if err != nil && rep.Samples > 0 {
				t.Fatal(err)
			}
			if failed != nil {
				assert.Error(t, err, "the example fails where the command does")
				return
			}
			bridged := rep.Repaired["bridge"]
			done := -bridged
			for _, n := range rep.Repaired {
				done += n
			}
			line, _, _ := strings.Cut(string(got), "\n")
			assert.Equal(t, fmt.Sprintf("%d samples, %d cut: %d repaired, %d bridged, %d frames restored", rep.Samples, rep.Cut, done, bridged, rep.Restored), line)
		})
	}
	assert.Greater(t, seen, 10)
}

// everyTrace lists the files in testdata and in the corpus, if it is there.
func everyTrace(t *testing.T) (names []string) {
	for _, root := range []string{"../../testdata", "../../../shared/corpus"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				names = append(names, path)
			}
			return err
		})
		if root == "../../testdata" {
			require.NoError(t, err)
		} else if err != nil {
			t.Logf("skipped: the corpus is not here (%v); the traces of testdata are compared", err)
		}
		if testing.Short() {
			t.Log("skipped: the corpus, since -short is set; the traces of testdata are compared")
			break
		}
	}
	return names
}
