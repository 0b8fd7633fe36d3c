package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
)

// A mistake is a text of kong's that says how it works inside, and what we say in its place: of the
// command that was named, and of the parts of the text.
type mistake struct {
	raw   *regexp.Regexp
	plain func(where *kong.Node, parts []string) string
}

var mistakes = sync.OnceValue(func() (list []mistake) {
	for _, m := range []struct {
		raw   string
		plain func(where *kong.Node, parts []string) string
	}{
		{`^(--?[\w-]+): (?:expected .* value but got "?EOL"?|missing value, expecting).*$`, func(_ *kong.Node, p []string) string {
			return p[1] + " needs a value"
		}},
		{`^expected "<([\w-]+)>.*"$`, func(_ *kong.Node, p []string) string {
			if what := arguments[p[1]]; what != "" {
				return "name " + what
			}
			return "<" + p[1] + "> is missing"
		}},
		{`^missing flags: (--[\w-]+)=(\S+)`, func(_ *kong.Node, p []string) string {
			return fmt.Sprintf("%s %s is missing", p[1], p[2])
		}},
		{`^(--?[\w-]+): expected .* but got "(-.*)" \(\w+ flag\).*$`, func(_ *kong.Node, p []string) string {
			return fmt.Sprintf("%[1]s needs a value, and %[2]q is a flag; write %[1]s=%[2]s if you mean it", p[1], p[2])
		}},
		{`^(--?[\w-]+): bool value must be .* but got "(.*)"$`, func(_ *kong.Node, p []string) string {
			return fmt.Sprintf("%s is there or not; it cannot be %q", p[1], p[2])
		}},
		{`^(--?[\w-]+): expected (?:a valid .*?|a float|an int) but got "(.*)"(?: \(.*\))?$`, func(_ *kong.Node, p []string) string {
			return fmt.Sprintf("%s %q is not a number", p[1], p[2])
		}},
		{`^(--?[\w-]+): expected duration but got "(.*?)".*$`, func(_ *kong.Node, p []string) string {
			return fmt.Sprintf("%s %q is not a time; write it with a unit, such as 250ms, 1.5s or 2m", p[1], p[2])
		}},
		{`^(\S+) must be one of (\S+) but got "(.*)"$`, func(_ *kong.Node, p []string) string {
			choices := strings.FieldsFunc(p[2], func(r rune) bool { return r == '"' || r == ',' })
			use := "one of " + strings.Join(choices, ", ")
			if len(choices) == 1 {
				use = choices[0]
			}
			return fmt.Sprintf("%s: there is no %q; use %s%s", strings.Trim(p[1], "<>"), p[3], use, text.DidYouMean(p[3], choices))
		}},
		{`^unknown flag (-[^\s,]*)`, unknownFlag},
		{`(?s)^unexpected (?:argument|flag argument|token) (.*?)(?:, did you mean .*\?)?$`, unexpected},
		{`^expected one of "`, func(where *kong.Node, _ []string) string {
			return "name a command, such as `tracefix info TRACE`"
		}},
	} {
		list = append(list, mistake{regexp.MustCompile(m.raw), m.plain})
	}
	return list
})

// arguments are what those of the grammar are called in a sentence.
var arguments = map[string]string{
	"in": "the trace to work on", "path": "the traces to work on", "before": "the trace to compare with", "after": "the trace to judge",
	"pid": "the process, or its diagnostics socket", "shell": "your shell: bash, zsh, fish or powershell", "report": "the reports to join",
}

// plain puts a mistake on the command line into plain words, and says which help is of use.
func plain(k *kong.Kong, err error) (what, help string) {
	where := k.Model.Node
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if n := parse.Context.Selected(); n != nil {
			where = n
		}
	}
	help = strings.TrimSpace(strings.Join(append(commandPath(where), "--help"), " "))
	for _, m := range mistakes() {
		if parts := m.raw.FindStringSubmatch(err.Error()); parts != nil {
			return m.plain(where, parts), help
		}
	}
	return err.Error(), help
}

// commandPath is what one types for a command.
func commandPath(node *kong.Node) (path []string) {
	for n := node; n.Parent != nil; n = n.Parent {
		if n.Parent.DefaultCmd != n {
			path = append(path, n.Name)
		}
	}
	slices.Reverse(path)
	return append([]string{"tracefix"}, path...)
}

// unknownFlag offers the flags that may have been meant, or the command of that name.
func unknownFlag(where *kong.Node, parts []string) string {
	flag := parts[1]
	name := strings.TrimLeft(flag, "-")
	root := where
	var names []string
	for n := where; n != nil; n = n.Parent {
		root = n
		for _, f := range n.Flags {
			names = append(names, f.Name)
		}
	}
	what := fmt.Sprintf("there is no flag %s", flag)
	if where.Parent != nil {
		what = fmt.Sprintf("`%s` has no flag %s", strings.Join(commandPath(where), " "), flag)
		if do := doneWith(where, name); do != "" {
			return fmt.Sprintf("%s but with --do %s", what, do)
		}
	} else if slices.Contains(childNames(root), name) {
		return fmt.Sprintf("%s; %s is a command: `tracefix %[2]s`", what, name)
	}
	if slices.Contains(formatsOf(where, nil), name) {
		return fmt.Sprintf("%s; write --format %s", what, name)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "help" && name != "help" })
	meant := text.Nearest(name, names)
	for i := range meant {
		meant[i] = "--" + meant[i]
	}
	if len(meant) > 0 {
		what += "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return what
}

// doneWith names the commands whose flag it is: with --do of them a batch has it, too.
func doneWith(where *kong.Node, flag string) string {
	if where.Name != "run" {
		return ""
	}
	var cli CLI
	k, err := grammar(&cli, nil, kong.Bind(streams{}))
	if err != nil {
		return ""
	}
	var list []string
	for _, c := range k.Model.Children {
		if slices.Contains(batch.DoingNames(), c.Name) && slices.ContainsFunc(c.Flags, func(f *kong.Flag) bool { return f.Name == flag || string(f.Short) == flag }) {
			list = append(list, c.Name)
		}
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	return strings.Join(list, "")
}

// unexpected tells a word too many from a command that there is not.
func unexpected(where *kong.Node, parts []string) string {
	word := strings.Trim(parts[1], `"`)
	shown := text.Line(word)
	if where.Parent != nil {
		return fmt.Sprintf("%q is one too many: see how `%s` is used", shown, strings.Join(commandPath(where), " "))
	}
	switch s, err := os.Stat(word); {
	case word == "":
		return "the name of the command is empty"
	case err == nil && s.IsDir():
		return fmt.Sprintf("%s is a folder; name a command first: `tracefix batch %[1]s -o DIR` works on all of it", shown)
	case err == nil:
		return fmt.Sprintf("%s is a file; name a command first, such as `tracefix info %s`", shown, text.ShellWord(shown))
	}
	if does := otherWords[strings.ToLower(word)]; does != "" {
		return fmt.Sprintf("there is no command %q; `tracefix %s` does that", shown, does)
	}
	if meant := text.DidYouMean(word, childNames(where)); meant != "" {
		return fmt.Sprintf("there is no command %q%s", shown, meant)
	}
	return fmt.Sprintf("there is no command and no file %q%s", shown, input.MeantFile(word))
}

// otherWords are what people may call what a command does.
var otherWords = map[string]string{
	"alloc": "top --weight alloc", "allocations": "top --weight alloc", "exceptions": "top --weight exceptions", "errors": "top --weight exceptions",
	"cpu": "top", "hot": "top", "report": "top", "stacks": "view", "flamegraph": "view", "open": "view", "show": "view",
	"fix": "repair", "export": "convert", "requests": "http", "contention": "locks", "threadpool": "threads", "diff": "compare", "check": "info", "meters": "counters",
}

// childNames are the commands below a node that people know.
func childNames(node *kong.Node) (names []string) {
	for _, c := range node.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}
