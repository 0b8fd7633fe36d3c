package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
)

// The example program finds the requests, phases and activities that the commands find, on the
// traces of testdata, those with requests, and a sample of the corpus or all of it.
func TestExampleRequestsAsTheCommands(t *testing.T) {
	example := buildExample(t, "requests")
	http, err := files("../requests/testdata")
	require.NoError(t, err)
	requests, activities := 0, 0
	for _, name := range append(traces(t), http...) {
		in, err := input.Open(t.Context(), name, nil)
		if err != nil || !in.Kind.IsRecording() {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			defer in.Close()
			want := append(requestLines(t, in), activityLines(t, in)...)
			out, err := exec.Command(example, name).Output()
			require.NoError(t, err)
			got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(out) == 0 {
				got = nil
			}
			slices.Sort(want)
			slices.Sort(got)
			if len(got) != len(want) {
				only := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
				more := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
				t.Fatalf("missing %q, too many %q", only, more)
			}
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
			for _, line := range got {
				if strings.HasPrefix(line, "activity ") {
					activities++
				} else {
					requests++
				}
			}
		})
	}
	assert.NotZero(t, requests)
	assert.NotZero(t, activities)
}

// requestLines is what the example is to print for the rows of `http`.
func requestLines(t *testing.T, in *input.File) (lines []string) {
	type row struct {
		ID, Status int
		Kind       string
		URL, Path  string
		DurationMs json.Number `json:"duration_ms"`
		Phases     []struct {
			Name       string
			DurationMs json.Number `json:"duration_ms"`
		}
	}
	for r := range rowsOf[row](t, in, "http", func(j Job) { j.(*HTTP).Side = "both" }) {
		if r.Kind == "server" {
			lines = append(lines, fmt.Sprintln("served", r.ID, r.Status, r.Path, nanos(t, r.DurationMs, "0"), "ns"))
			continue
		}
		var phases []string
		for _, p := range r.Phases {
			phases = append(phases, p.Name+" "+nanos(t, p.DurationMs, "open"))
		}
		lines = append(lines, fmt.Sprintln(r.ID, r.Status, r.URL, nanos(t, r.DurationMs, "0"), "ns", phases))
	}
	return trimmed(lines)
}

// activityLines is what the example is to print for the rows of `activities`.
func activityLines(t *testing.T, in *input.File) (lines []string) {
	type row struct {
		Row                    *int
		ParentRow              *int `json:"parent_row"`
		Provider, Name, Status string
		StartMs                json.Number `json:"start_ms"`
		StopMs                 json.Number `json:"stop_ms"`
	}
	for r := range rowsOf[row](t, in, "activities", func(Job) {}) {
		if r.Row == nil { // a summary
			continue
		}
		parent := -1
		if r.ParentRow != nil {
			parent = *r.ParentRow
		}
		lines = append(lines, fmt.Sprintln("activity", *r.Row, "below", parent, r.Provider, r.Name, r.Status, nanos(t, r.StartMs, "0"), "to", nanos(t, r.StopMs, "0"), "ns"))
	}
	return trimmed(lines)
}

// rowsOf runs a command and yields the lines that it writes.
func rowsOf[T any](t *testing.T, in *input.File, name string, set func(Job)) func(func(*T) bool) {
	row := Lookup(name)
	job := row.New()
	set(job)
	var out bytes.Buffer
	_, err := row.Run(t.Context(), job, in, Options{Out: "-", Stdout: &out, Format: "ndjson"})
	require.NoError(t, err)
	return func(yield func(*T) bool) {
		for line := range strings.Lines(out.String()) {
			var r T
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			if !yield(&r) {
				return
			}
		}
	}
}

// nanos is a number of milliseconds in nanoseconds; none where there is no number.
func nanos(t *testing.T, ms json.Number, none string) string {
	if ms == "" {
		return none
	}
	f, err := ms.Float64()
	require.NoError(t, err)
	return fmt.Sprint(int64(math.Round(f * 1e6)))
}

func trimmed(lines []string) []string {
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return lines
}
