package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

// usual is what `tracefix` alone prints: the usual tasks.
const usual = `tracefix repairs .NET traces and shows what is in them. The usual tasks:

  tracefix info TRACE                   is it usable, what to record next time
  tracefix repair TRACE -o OUT.json     restore cut stacks, for Perfetto and speedscope
  tracefix view TRACE                   repair it and open it in the browser, offline
  tracefix top TRACE                    hottest methods
  tracefix http TRACE                   HTTP requests with their phases
  tracefix batch DIR -o OUT             the same for folders, archives and buckets

All commands: tracefix --help. Flags of one: tracefix COMMAND --help.
`

// asked turns what people type into what the grammar knows: help, version, and the name of
// a trace alone, which asks what it is.
func asked(k *kong.Kong, args []string) (rest []string, trace string) {
	switch {
	case len(args) == 0:
		return nil, ""
	case args[0] == "help":
		return asked(k, append(slices.Clone(args[1:]), "--help"))
	case len(args) > 1 && args[0] == "batch" && !slices.Contains(batchCommands, args[1]) && (slices.Contains(args, "--help") || slices.Contains(args, "-h")):
		return append([]string{"batch", "run"}, args[1:]...), "" // whose flags are those of batch
	case len(args) == 1 && args[0] == "version":
		return []string{"--version"}, ""
	case len(args) == 1 && !strings.HasPrefix(args[0], "-") && !isCommand(k, args[0]):
		if s, err := os.Stat(args[0]); err == nil && s.Mode().IsRegular() {
			return nil, args[0]
		}
	}
	return args, ""
}

func isCommand(k *kong.Kong, name string) bool {
	return slices.ContainsFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == name })
}

// introduce says what a file is and which commands make sense for it.
func introduce(ctx context.Context, w io.Writer, name string) error {
	if err := output.Check("-", &output.Options{Stdout: w, Inputs: []string{name}}); err != nil {
		return usage(err)
	}
	in, err := input.Open(ctx, name, nil)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := info.Of(ctx, in, nil)
	if err != nil {
		return err
	}
	o := info.TextOptions{}
	if t := terminalOf(w); t != nil {
		o.Width, o.Color = t.Width, t.Color
	}
	if err := f.WriteVerdicts(w, &o); err != nil {
		return err
	}
	file := text.ShellWord(text.Line(name))
	var do [][2]string
	if f.Stacks != nil && f.Stacks.CutTotal() > 0 {
		do = append(do, [2]string{"tracefix repair " + file, "put the cut stacks right"})
	}
	if f.HTTP != nil && f.HTTP.Requests > 0 {
		do = append(do, [2]string{"tracefix http " + file, "its requests, with phases"})
	}
	if f.Samples != nil && f.Samples.Count > 0 || f.Spans != nil && f.Spans.Stacks() {
		do = append(do, [2]string{"tracefix view " + file, "look at it in the browser"}, [2]string{"tracefix top " + file, "hottest methods"})
	}
	for _, v := range f.Verdicts {
		switch {
		case v.State != info.Good:
		case v.Topic == "activities":
			do = append(do, [2]string{"tracefix activities " + file, "the tree of activities, with durations"})
		case v.Topic == "counters":
			do = append(do, [2]string{"tracefix counters " + file, "values of counters"})
		}
	}
	for _, r := range runtimeReports {
		if recorded(f, r.event) {
			do = append(do, [2]string{"tracefix " + strings.Replace(r.command, "TRACE", file, 1), r.tells})
		}
	}
	if f.Format == "nettrace" || f.Format == "netperf" {
		do = append(do, [2]string{"tracefix events " + file, "every event, decoded"})
	}
	do = append(do, [2]string{"tracefix info " + file, "all about it"})
	fmt.Fprintln(w, "\nNext:")
	width := 0
	do = do[:min(maxNext, len(do))]
	for _, d := range do {
		width = max(width, len(d[0]))
	}
	for _, d := range do {
		line := fmt.Sprintf("  %-*s   %s", width, d[0], d[1])
		if o.Width > 0 && utf8.RuneCountInString(line) > o.Width { // a long path
			line = fmt.Sprintf("  %s\n      %s", d[0], d[1])
		}
		fmt.Fprintln(w, line)
	}
	if f.Damages > 0 {
		return damaged{fmt.Errorf("%s is damaged", name)}
	}
	return nil
}

// maxNext is how many commands are named: those that a trace has most for.
const maxNext = 4

// runtimeReports are what the runtime's events are for, where a trace holds little else.
var runtimeReports = []struct{ event, command, tells string }{
	{"GC/AllocationTick", "top TRACE --weight alloc", "what was allocated, and where"},
	{"GC/AllocationSampled", "top TRACE --weight alloc", "what was allocated, and where"},
	{"GC/Start", "gc TRACE", "collections and their pauses"},
	{"Contention/Start", "locks TRACE", "who waited for which lock"},
}

// recorded reports whether a trace holds an event of the runtime.
func recorded(f *info.Facts, event string) bool {
	return slices.ContainsFunc(f.Providers, func(p *info.Provider) bool {
		return nettrace.OfRuntime(p.Name) && slices.ContainsFunc(p.Types, func(t *info.EventType) bool { return t.Name == event })
	})
}
