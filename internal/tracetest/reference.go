// Package tracetest holds what tests of several packages need.
package tracetest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// A ReferenceEvent is one line of a reference event list: an event as an independent
// decoder sees it.
type ReferenceEvent struct {
	MS       json.Number                `json:"ms"`
	PID      uint32                     `json:"pid"`
	TID      uint64                     `json:"tid"`
	Provider string                     `json:"provider"`
	ID       int                        `json:"id"`
	Version  int                        `json:"version"`
	Name     string                     `json:"name"`
	Opcode   int                        `json:"opcode"`
	Activity string                     `json:"activity"`
	Related  string                     `json:"related"`
	Payload  map[string]json.RawMessage `json:"payload"`
}

// Nanos returns the time of the event, exactly.
func (e *ReferenceEvent) Nanos(t testing.TB) int64 {
	whole, frac, _ := strings.Cut(e.MS.String(), ".")
	frac = (frac + "000000")[:6]
	var ns int64
	for _, c := range whole + frac {
		require.True(t, c >= '0' && c <= '9', "time %q", e.MS)
		ns = ns*10 + int64(c-'0')
	}
	return ns
}

// started is the folder of the package that is tested: go test starts there. The name of a source
// file does not tell it, where the build leaves folders out (-trimpath).
var started, _ = os.Getwd()

// Corpus returns the path of a file of the corpus, which lies beside the project. It
// skips the test where the corpus is absent.
func Corpus(t testing.TB, name ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{root(t), "..", "shared", "corpus"}, name...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("the corpus is not here: %v", err)
	}
	return p
}

// root returns the folder of the project: the nearest one above the test that holds go.mod.
func root(t testing.TB) string {
	t.Helper()
	for dir := started; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "no go.mod above %s", started)
	}
}

// ReferenceEvents calls f with every event of the reference list of a recording of
// corpus/dotnet10, in order. The event is valid during the call.
func ReferenceEvents(t testing.TB, name string, f func(*ReferenceEvent)) {
	t.Helper()
	in, err := os.Open(Corpus(t, "dotnet10", "reference", name+".events.ndjson.zst"))
	require.NoError(t, err)
	defer in.Close()
	z, err := zstd.NewReader(in)
	require.NoError(t, err)
	defer z.Close()
	s := bufio.NewScanner(z)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e ReferenceEvent
		require.NoError(t, json.Unmarshal(s.Bytes(), &e))
		f(&e)
	}
	require.NoError(t, s.Err())
}

// Every reports whether a test that takes long shall use every recording there is: with
// TRACEFIX_EVERY=1 in the environment. Else it uses a few of each kind, and its log says so.
func Every(t testing.TB) bool {
	t.Helper()
	if os.Getenv("TRACEFIX_EVERY") != "" {
		return true
	}
	t.Log("some recordings of the corpus are left out; TRACEFIX_EVERY=1 uses all")
	return false
}
