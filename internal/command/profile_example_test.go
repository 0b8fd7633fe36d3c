package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// sampleSize is how many traces of the corpus are compared where not all are.
const sampleSize = 25

// The example of the README counts what the command counts, on the traces of testdata and a
// sample of the corpus or all of it.
func TestExampleRepairsAsTheCommand(t *testing.T) {
	example := buildExample(t, "repair")
	seen := 0
	for _, name := range traces(t) {
		in, err := input.Open(t.Context(), name, nil)
		if err != nil || in.Kind == input.Unknown {
			continue
		}
		seen++
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			defer in.Close()
			rep := &report.Trace{}
			err = writeProfile(context.Background(), in, io.Discard, "", &Config{Repair: true}, rep)
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

// buildExample builds a program of examples/ and returns its path. It is no longer than 28 lines.
func buildExample(t *testing.T, name string) string {
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", name, "main.go"))
	require.NoError(t, err)
	assert.LessOrEqual(t, bytes.Count(source, []byte("\n")), 28, "lines of examples/%s", name)
	program := filepath.Join(t.TempDir(), name+".exe")
	out, err := exec.Command("go", "build", "-o", program, "../../examples/"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// traces lists the files in testdata, and those of the corpus that are compared, if it is there.
func traces(t *testing.T) []string {
	names, err := files("../../testdata")
	require.NoError(t, err)
	if testing.Short() {
		t.Log("skipped: the corpus, since -short is set; the traces of testdata are compared")
		return names
	}
	corpus, err := files("../../../shared/corpus")
	if err != nil {
		t.Logf("skipped: the corpus is not here (%v); the traces of testdata are compared", err)
	}
	corpus = slices.DeleteFunc(corpus, func(name string) bool { return !isTrace(t, name) })
	if tracetest.Every(t) {
		return append(names, corpus...)
	}
	for i := range min(sampleSize, len(corpus)) {
		names = append(names, corpus[i*len(corpus)/min(sampleSize, len(corpus))])
	}
	return names
}

func isTrace(t *testing.T, name string) bool {
	in, err := input.Open(t.Context(), name, nil)
	if err != nil {
		return false
	}
	defer in.Close()
	return in.Kind != input.Unknown
}

func files(root string) (names []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	return names, err
}
