//go:build unix

package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs a batch instead of the tests where TestKilled wants one to kill.
func TestMain(m *testing.M) {
	if in := os.Getenv("TRACEFIX_TEST_BATCH"); in != "" {
		_, err := Run(context.Background(), Config{Paths: []string{in}, Out: os.Getenv("TRACEFIX_TEST_OUT"), Do: DoRepair, Work: fake, Jobs: 3, Resume: true, Attempts: 1000})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilled kills a batch at random moments until it gets through, and finds in the
// end what a batch that nobody killed gives.
func TestKilled(t *testing.T) {
	in := t.TempDir()
	files := map[string]string{}
	for i := range 24 {
		word := []string{"fine", "HURT", "FAIL", "SLOW", "CUT"}[i%5]
		files[fmt.Sprintf("d%d/%02d.json", i%3, i)] = trace(word + strings.Repeat(" and more", 3000*(i%4)))
	}
	big := trace(strings.Repeat("big ", inMemory/4+100)) // goes through a temporary file
	files["x.tar.gz"] = string(gz(t, tarball(t, member{name: "a.json", content: trace("SLOW")}, member{name: "big.json", content: big}, member{name: "b.json.gz", content: string(gz(t, []byte(trace("b"))))})))
	put(t, in, files)
	clean := t.TempDir()
	run(t, Config{Paths: []string{in}, Out: clean})
	wantTree := tree(t, clean)
	wantReport, err := os.ReadFile(filepath.Join(clean, reportName+".json"))
	require.NoError(t, err)

	self, err := os.Executable()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(8, 8))
	for round := range 3 {
		out := t.TempDir()
		kills := 0
		for try := 0; ; try++ {
			require.Less(t, try, 100)
			cmd := exec.Command(self, "-test.run=^$")
			cmd.Env = append(os.Environ(), "TRACEFIX_TEST_BATCH="+in, "TRACEFIX_TEST_OUT="+out)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			// longer and longer: on a slow machine, too, one gets through
			after := time.Duration(8+rng.IntN(20<<(try/8))) * time.Millisecond
			finished := false
			select {
			case err := <-done:
				require.NoError(t, err, stderr.String())
				finished = true
			case <-time.After(after):
				if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
					require.NoError(t, err)
				}
				if <-done == nil {
					finished = true
				} else {
					kills++
				}
			}
			for name, content := range tree(t, out) {
				if strings.Contains(name, ".tracefix-") {
					continue // never taken for an output; the next run removes it
				}
				require.Equal(t, wantTree[name], content, "%s is whole or not there, after kill %d", name, kills)
			}
			if finished {
				break
			}
		}
		assert.Equal(t, wantTree, tree(t, out), "round %d, %d kills", round, kills)
		got, err := os.ReadFile(filepath.Join(out, reportName+".json"))
		require.NoError(t, err)
		assert.Equal(t, string(wantReport), string(got), "round %d, %d kills", round, kills)
		t.Logf("round %d: %d kills", round, kills)
		left, err := os.ReadDir(filepath.Join(out, stateDir))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}

// File systems take names that are no text. A plan keeps them: a piece finds the file, and names outputs
// as a run without a plan does.
func TestPlanKeepsNamesThatAreNoText(t *testing.T) {
	in, out, one := t.TempDir(), t.TempDir(), t.TempDir()
	name := filepath.Join(in, "bad\xff.json")
	if err := os.WriteFile(name, []byte(trace("")), 0o600); err != nil {
		t.Skip("this file system takes text only")
	}
	put(t, in, map[string]string{"z\xff.zip": string(zipball(t, member{name: "a.json", content: trace("")}))})
	run(t, Config{Paths: []string{in}, Out: one})
	_, err := MakePlan(t.Context(), Config{Paths: []string{in}, Out: out, Do: DoRepair}, 1)
	require.NoError(t, err)
	r := run(t, Config{Out: out, Manifest: &Manifest{Name: filepath.Join(out, planName)}})
	assert.Equal(t, 2, r.Totals.OK, "%v", outcomes(r))
	require.NoError(t, os.Remove(filepath.Join(out, planName)))
	require.NoError(t, os.Remove(filepath.Join(out, piecesName)))
	assert.Equal(t, names(tree(t, one)), names(tree(t, out)))
}

// What lies in an archive of such a name is found again: by the journal, and by who reads the report.
func TestArchiveWhoseNameIsNoText(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	name := filepath.Join(in, "d\xff", "z\xff.zip")
	write := func(content string) {
		require.NoError(t, os.WriteFile(name, zipball(t, member{name: "a.json", content: content}), 0o600))
	}
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		t.Skip("this file system takes text only")
	}
	write(trace("1"))
	r := run(t, Config{Paths: []string{in}, Out: out})
	assert.FileExists(t, filepath.Join(out, filepath.FromSlash(r.Outputs()[0])))
	write(trace("2"))
	r = run(t, Config{Paths: []string{in}, Out: out, Resume: true})
	assert.Equal(t, 1, r.Totals.OK, "%v", outcomes(r))
}

// An archive in a pipe is gone through as it comes.
func TestArchiveInAPipe(t *testing.T) {
	members := []member{{name: "1.json", content: trace("1")}, {name: "2.json", content: trace("2")}}
	tar := tarball(t, members...)
	for name, content := range map[string][]byte{
		"a": tar, "a.tgz": gz(t, tar), "a.zip": zipball(t, members...), "a.json": []byte(trace("1")), "cut.tar": tar[:1024+100],
	} {
		dir, out := t.TempDir(), t.TempDir()
		pipe := filepath.Join(dir, name)
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		go func() { _ = os.WriteFile(pipe, content, 0o600) }()
		r := run(t, Config{Paths: []string{pipe}, Out: out})
		want, failed := []string{"1.json", "2.json"}, 0
		switch name {
		case "a.json":
			want = []string{"a.json"}
		case "cut.tar":
			want, failed = []string{"1.json"}, 1
		}
		assert.Equal(t, want, names(tree(t, out)), name)
		assert.Equal(t, failed, r.Totals.Failed, name)
		assert.Zero(t, r.Totals.Skipped, name)
	}
}
