package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/compare"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// Every key of a line of JSON stands in the section of docs/ndjson.md that is about its command.
func TestNDJSONIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/ndjson.md")
	require.NoError(t, err)
	sections := strings.Split(string(b), "\n## ")
	sectionOf := func(command string) string {
		for _, s := range sections[1:] {
			head, _, _ := strings.Cut(s, "\n")
			if strings.Contains(head, "`"+command+"`") {
				return s
			}
		}
		require.Fail(t, "no section", command)
		return ""
	}
	net31 := filepath.Join("..", "..", "internal", "requests", "testdata", "net31-more.nettrace.zst")
	data := filepath.Join("..", "..", "testdata", "nettrace")
	for _, args := range [][]string{
		{"convert", fixtures[""]},
		{"repair", fixtures[""]},
		{"repair", filepath.Join(data, "v6-nosymbols.nettrace.gz")},
		{"convert", filepath.Join(data, "runtime-locks.nettrace.zst"), "--weight", "contention,wait"},
		{"http", fixtures["http"], "--side", "both"},
		{"http", fixtures["http"], "--side", "both", "--explain"},
		{"http", net31, "--side", "both"},
		{"http", fixtures["http"], "--summary"},
		{"activities", fixtures["http"]},
		{"activities", filepath.Join(data, "probe10.nettrace.zst")},
		{"events", fixtures["http"]},
		{"events", fixtures["locks"], "--stacks"},
		{"events", filepath.Join(data, "v6-nosymbols.nettrace.gz")},
		{"counters", fixtures["counters"]},
		{"gc", fixtures["gc"]},
		{"jit", fixtures["jit"]},
		{"locks", fixtures["locks"], "--waits"},
		{"threads", fixtures["threads"]},
		{"ipc", fixtures["ipc"]},
	} {
		code, out, words := tracefix(t, append(args, "--format", "ndjson", "-o", "-")...)
		require.Equal(t, exitOK, code, words)
		keys := map[string]bool{}
		for line := range strings.Lines(out) {
			var row map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			if k, ok := row["k"].(string); ok {
				keys[k] = true
			}
			keysOf(row, keys)
		}
		require.NotEmpty(t, keys, args)
		about := args[0]
		if slices.Contains(args, "--summary") {
			about += " --summary"
		}
		text := sectionOf(about)
		if slices.Contains(args, "--explain") || args[0] == "activities" {
			text += sectionOf("http")
		}
		text += sections[0]
		var untold []string
		for k := range keys {
			if !strings.Contains(text, "`"+k+"`") {
				untold = append(untold, k)
			}
		}
		assert.Empty(t, untold, args)
	}
}

// Every key of a report stands in the section about reports, or in those about requests.
func TestReportsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/ndjson.md")
	require.NoError(t, err)
	var text string
	for _, s := range strings.Split(string(b), "\n## ")[1:] {
		if head, _, _ := strings.Cut(s, "\n"); strings.Contains(head, "`--report`") || strings.Contains(head, "`http") {
			text += s
		}
	}
	keys := map[string]bool{}
	jsonKeys(reflect.TypeFor[batch.Report](), keys, map[reflect.Type]bool{reflect.TypeFor[report.Measures](): true})
	require.Greater(t, len(keys), 80)
	for k := range keys {
		assert.Contains(t, text, "`"+k+"`")
	}
}

// Every key of the totals of requests, which are no struct, stands in the row about them: elsewhere
// the same words are other keys.
func TestTotalsOfRequestsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/ndjson.md")
	require.NoError(t, err)
	_, row, ok := strings.Cut(string(b), "\n| `summary` |")
	require.True(t, ok)
	row, _, _ = strings.Cut(row, "\n")
	code, out, words := tracefix(t, "http", filepath.Join("..", "..", "internal", "requests", "testdata", "net31-more.nettrace.zst"), "--side", "both", "--format", "json")
	require.Equal(t, exitOK, code, words)
	var told struct{ Summary map[string]any }
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	require.Contains(t, told.Summary, "served")
	keys := map[string]bool{"with_events_missing": true} // of a trace that lost some
	for _, phase := range told.Summary["phases"].(map[string]any) {
		keysOf(phase, keys)
	}
	told.Summary["phases"] = nil // whose keys are their names
	keysOf(told.Summary, keys)
	for k := range keys {
		assert.Contains(t, row, "`"+k+"`")
	}
}

// Every key of a document stands in the section about them.
func TestDocumentsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/ndjson.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(b), "\n## One document: ")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, of := range []reflect.Type{
		reflect.TypeFor[info.Facts](), reflect.TypeFor[profile.Top](), reflect.TypeFor[profile.Around](), reflect.TypeFor[profile.ValueTop](),
		reflect.TypeFor[compare.Result](), reflect.TypeFor[batch.Comparison](), reflect.TypeFor[activity.Count](), reflect.TypeFor[httpreport.ActivityTotal](),
	} {
		keys := map[string]bool{}
		jsonKeys(of, keys, map[reflect.Type]bool{reflect.TypeFor[report.Damage](): true, reflect.TypeFor[batch.GateResult](): true})
		require.NotEmpty(t, keys, of)
		for k := range keys {
			assert.Contains(t, text, "`"+k+"`", of)
		}
	}
}

// jsonKeys adds the keys under which a type is written as JSON, with those of types in it.
func jsonKeys(of reflect.Type, keys map[string]bool, seen map[reflect.Type]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		jsonKeys(of.Elem(), keys, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[of] {
		return
	}
	seen[of] = true
	if of == reflect.TypeFor[report.Repairs]() { // writes a list itself
		of = reflect.TypeFor[report.Repair]()
	}
	for i := range of.NumField() {
		f := of.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if key != "" {
			keys[key] = true
		}
		jsonKeys(f.Type, keys, seen)
	}
}

// named are objects whose keys are names of what was recorded.
var named = []string{"payload", "labels", "tags", "fields", "marked_bytes", "tiers", "reasons", "quantiles", "time_ms"}

// keysOf adds the keys of an object and of those in it.
func keysOf(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			keys[k] = true
			if !slices.Contains(named, k) {
				keysOf(x, keys)
			}
		}
	case []any:
		for _, x := range v {
			keysOf(x, keys)
		}
	}
}
