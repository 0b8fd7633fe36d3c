package main

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// What each filter says that drops all: what there is instead.
var filters = map[string]struct{ nothing, there string }{
	"process":  {"nosuch", "its processes are "},
	"thread":   {"nosuch", "its threads are "},
	"from":     {"1h", "the trace runs from 0 to "},
	"to":       {"1ns", "the trace runs from 0 to "},
	"activity": {"Reqest", "near that name are |its activities are |it has no activities|without activity ids"},
	"request":  {"/nosuch", "its requests are |it has no requests|without activity ids"},
	"frame":    {"MoveNxt", "near that name are |the filters drop all"},
	"provider": {"nosuch", "its providers [a-z ]*are "},
	"event":    {"nosuch", "its events are "},
	"name":     {"nosuch", "its counters are |its activities are "},
	"host":     {"nosuch", "its hosts are "},
	"status":   {"orphan-stop", "they are unfinished, ok, "}, // of activities
	"slow":     {"1h", "the longest took "},
	"id":       {"100000", "its ids end with "},
}

// The filters that each command can have. A garbage collection is of no thread, a value of a
// counter of no thread and no activity; info tells of the file, ipc of a conversation.
var matrix = map[string]string{
	"repair":     "process thread from to activity request frame",
	"convert":    "process thread from to activity request frame",
	"view":       "process thread from to activity request frame",
	"top":        "process thread from to activity request frame",
	"compare":    "process thread from to activity request frame",
	"http":       "process thread from to activity request host status slow id",
	"activities": "process thread from to activity request provider name slow status",
	"events":     "process thread from to activity request provider event",
	"jit":        "process thread from to activity request",
	"locks":      "process thread from to activity request",
	"threads":    "process thread from to",
	"gc":         "process from to",
	"counters":   "process from to provider name",
	"info":       "",
	"ipc":        "",
}

// TestFiltersEverywhere: every command takes the filters that it can have, by the same names, and says
// what there is where one drops all.
func TestFiltersEverywhere(t *testing.T) {
	var cli CLI
	parser, err := grammar(&cli, nil)
	require.NoError(t, err)
	for _, node := range parser.Model.Children {
		want, ok := matrix[node.Name]
		if !ok {
			require.Nil(t, command.Lookup(node.Name), "the matrix has no row of %s", node.Name)
			continue
		}
		var has []string
		for _, f := range node.Flags {
			if _, ok := filters[f.Name]; ok {
				has = append(has, f.Name)
			}
		}
		assert.ElementsMatch(t, strings.Fields(want), has, node.Name)
		for _, name := range has {
			t.Run(node.Name+" "+name, func(t *testing.T) {
				in, ok := fixtures[node.Name]
				if !ok {
					in = fixtures[""]
				}
				dropsAll(t, in, node.Name, name)
			})
		}
	}
}

// TestFiltersOfWork: samples that are known to be work for requests are filtered by these.
func TestFiltersOfWork(t *testing.T) {
	in := tracetest.Corpus(t, "dotnet10", "requests-flow.nettrace")
	for _, cmd := range []string{"convert", "top", "compare"} {
		for filter, there := range map[string]string{"activity": "near that name are Request", "request": "its requests are (/cpu/5, )?http://localhost:36803/"} {
			words := dropsAll(t, in, cmd, filter)
			assert.Regexp(t, there, words, "%s %s", cmd, filter)
		}
	}
	// Who asks for an id is told which there are, and whether it is one that no thread was seen to work for.
	for _, args := range [][]string{{"top", in}, {"convert", in, "-o", "-", "--format", "folded"}, {"top", in, "--weight", "exceptions"}} {
		var out, words bytes.Buffer
		code := run(t.Context(), append(args, "--request", "99999"), streams{nil, &out, &words})
		assert.Equal(t, exitFailed, code, args)
		assert.Regexp(t, "it has no request 99999: ids go up to [0-9]+, and `tracefix http --side both` of the recording lists them", words.String(), args)
	}
	lines := filepath.Join(t.TempDir(), "lines.ndjson")
	require.Equal(t, exitOK, run(t.Context(), []string{"convert", in, "-o", lines}, streams{nil, io.Discard, io.Discard}))
	var words bytes.Buffer
	assert.Equal(t, exitFailed, run(t.Context(), []string{"top", lines, "--request", "/nosuch"}, streams{nil, io.Discard, &words}))
	assert.Contains(t, words.String(), "it tells ids of requests and no URLs")
}

// dropsAll runs a command with a filter that drops all, and returns what it says.
func dropsAll(t *testing.T, in, cmd, filter string) string {
	t.Helper()
	f := filters[filter]
	if cmd == "http" && filter == "status" {
		f.nothing, f.there = "999", "its answers are "
	}
	args := []string{cmd, in, "--" + filter, f.nothing}
	switch cmd {
	case "activities":
		if filter == "status" || filter == "to" { // by which the trace has some
			args = append(args, "--name", "Handshake")
		}
	case "view":
		args = append(args, "--no-open", "-o", filepath.Join(t.TempDir(), "page.html"))
	case "repair", "convert":
		args = append(args, "-o", filepath.Join(t.TempDir(), "out.folded"))
	case "compare":
		args = slices.Insert(args, 1, in)
	}
	code, _, words := tracefix(t, args...)
	assert.Contains(t, []int{exitOK, exitFailed}, code, "%s: %s", args, words)
	assert.Regexp(t, f.there, words, "%s", args)
	return words
}
