package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
)

// usual is what `tracefix` alone prints: the usual tasks.
const usual = `tracefix repairs .NET traces and tells what is in them. The usual tasks:

  tracefix info TRACE                   is it usable, and what to record next time
  tracefix repair TRACE -o OUT.json     put cut stacks right, for Perfetto and speedscope
  tracefix view TRACE                   look at it in the browser, offline
  tracefix top TRACE                    hottest methods
  tracefix http TRACE                   HTTP requests with their phases
  tracefix batch DIR -o OUT             all of that over folders, archives and buckets

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
	case len(args) > 1 && args[0] == "batch" && !slices.Contains([]string{"merge", "plan", "compare", "run"}, args[1]) && (slices.Contains(args, "--help") || slices.Contains(args, "-h")):
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
	if f.Samples != nil && f.Samples.Count > 0 {
		do = append(do, [2]string{"tracefix view " + file, "look at it in the browser"}, [2]string{"tracefix top " + file, "hottest methods"})
	}
	if f.Format == "nettrace" || f.Format == "netperf" {
		do = append(do, [2]string{"tracefix events " + file, "every event, decoded"})
	}
	do = append(do, [2]string{"tracefix info " + file, "all about it"})
	fmt.Fprintln(w, "\nNext:")
	width := 0
	for _, d := range do[:min(3, len(do))] {
		width = max(width, len(d[0]))
	}
	for _, d := range do[:min(3, len(do))] {
		fmt.Fprintf(w, "  %-*s   %s\n", width, d[0], d[1])
	}
	return nil
}

// Texts of kong's that say how it works inside.
var (
	noValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(--?[\w-]+): (?:expected .* value but got "?EOL"?|missing value, expecting).*$`)
	})
	noArg     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^expected "<([\w-]+)>.*"$`) })
	noFlag    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^missing flags: (--[\w-]+)=(\S+)`) })
	badNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(--?[\w-]+): expected a valid .*? but got "(.*)"$`) })
	likeFlag  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(--?[\w-]+): expected .* but got "(-.*)" \(\w+ flag\).*$`)
	})
	noBool = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(--?[\w-]+): bool value must be .* but got "(.*)"$`)
	})
	badDuration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(--?[\w-]+): expected duration but got "(.*?)".*$`) })
	badChoice   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\S+) must be one of (\S+) but got "(.*)"$`) })
)

// arguments are what those of the grammar are called in a sentence.
var arguments = map[string]string{
	"in": "the trace to work on", "path": "the traces to work on", "before": "the trace to compare with", "after": "the trace to judge",
	"pid": "the process, or its diagnostics socket", "shell": "your shell: bash, zsh, fish or powershell", "reports": "the reports to join",
}

// plain puts a mistake on the command line into plain words.
func plain(err error) string {
	msg := err.Error()
	if m := noValue().FindStringSubmatch(msg); m != nil {
		return m[1] + " needs a value"
	}
	if m := noArg().FindStringSubmatch(msg); m != nil {
		if what := arguments[m[1]]; what != "" {
			return "name " + what
		}
	}
	if m := noFlag().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%s %s is missing", m[1], m[2])
	}
	if m := likeFlag().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%[1]s needs a value, and %[2]q is a flag; write %[1]s=%[2]s if you mean it", m[1], m[2])
	}
	if m := noBool().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%s is there or not; it cannot be %q", m[1], m[2])
	}
	if m := badNumber().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%s %q is not a number", m[1], m[2])
	}
	if m := badDuration().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%s %q is not a time; write it with a unit, such as 250ms, 1.5s or 2m", m[1], m[2])
	}
	if m := badChoice().FindStringSubmatch(msg); m != nil {
		choices := strings.ReplaceAll(strings.TrimPrefix(strings.ReplaceAll(m[2], `"`, ""), ","), ",", ", ")
		return fmt.Sprintf("%s: there is no %q; use one of %s", strings.Trim(m[1], "<>"), m[3], choices)
	}
	return msg
}
